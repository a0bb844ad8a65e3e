"""
Every command in the fenced blocks of README and of the first pages, run in their order on the demo's hub.

The output that a page shows below a command is compared with the real one; times and random names may differ.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.documents import README, ROOT, is_test
from tests.support.driver import eventually
from tests.support.transcripts import Fragment, Shown, shown_on

PAGES: Final = (
    README,
    ROOT / "docs" / "getting-started" / "laptop.md",
    ROOT / "docs" / "inspect.md",
    ROOT / "docs" / "draining.md",
    ROOT / "docs" / "job-logs.md",
    ROOT / "docs" / "capacity.md",
    ROOT / "docs" / "jobs.md",
)
KEEPS: Final = "placement-ac demo --keep"
KUBECONFIG: Final = "export KUBECONFIG=…/kubeconfig"
OWN_KUBECONFIG: Final = "export KUBECONFIG=$PWD/hub.kubeconfig"
DISPATCHED: Final = (
    "placement-ac hub --workers 3 --gpus 8 --dispatcher-name open-cluster-management.io/placement"
)
SERVERS: Final = {
    "placement-ac hub --workers 3 --gpus 8": "hub.kubeconfig",
    "placement-ac run": "",
    DISPATCHED: "hub.kubeconfig",
    "placement-ac run --dispatcher true": "",
}
"""Commands that run in a terminal of their own → the file that they write when they are ready."""
ACTIVATES: Final = "source .venv/bin/activate"
RUNS_THIS: Final = "make test"
PREPARE: Final = (KEEPS, KUBECONFIG, ACTIVATES)
"""Commands that `Terminal` runs itself."""
ELSEWHERE: Final = {
    "placement-ac ui --open": (
        "tests/kubectl_placement/cli/test_ui.py::test_it_opens_a_browser_and_ends_with_ctrl_c"
    ),
    "make demo": "tests/placement_lab/demo/test_demo.py::test_all_stories_as_json",
    "python3 -m venv .venv": "tests/install/test_image.py::test_each_wheel_is_complete",
    "pip install . ./kubectl_placement ./placement_lab": (
        "tests/install/test_image.py::test_each_wheel_is_complete"
    ),
    "kubectl apply -k ../my-overlay": "tests/install/test_install.py::test_default",
    "helm install placement-ac charts/placement-ac --namespace placement-ac-system --create-namespace \\\n"
    "    --set image.repository=registry.example/placement-ac": (
        "tests/install/test_helm.py::test_the_commands_in_the_page"
    ),
    "kubectl create rolebinding placement-ac-viewer --role=placement-ac-viewer --user=jane "
    "-n placement-ac-system": ("tests/install/test_viewer.py::test_the_commands_in_the_page_bind_the_roles"),
}
"""Commands that install something, or run all tests → the test that shows that they work."""
EXAMPLES: Final = {
    "Controller: placement-ac-7c9d": (
        "tests/kubectl_placement/test_status.py::test_the_example_in_the_documentation_is_what_is_shown"
    ),
    "├── Held by the gate": (
        "tests/kubectl_placement/test_status.py::test_the_example_of_who_waits_is_what_is_shown"
    ),
    "JOB        QUEUE": (
        "tests/kubectl_placement/test_job_texts.py"
        "::test_the_list_of_jobs_in_the_documentation_is_what_is_shown"
    ),
    "Job default/train: waiting": (
        "tests/kubectl_placement/test_job_texts.py"
        "::test_the_story_of_a_job_that_waits_is_as_in_the_documentation"
    ),
    "Job default/eval: running": (
        "tests/kubectl_placement/test_job_texts.py"
        "::test_the_story_of_a_job_whose_pods_do_not_start_is_as_in_the_documentation"
    ),
    "FAIL  cluster-set-bindings": (
        "tests/kubectl_placement/doctor/test_folding.py::test_the_example_in_the_documentation_is_what_is_shown"
    ),
}
"""How the output of a hub begins that is not the demo's → the test that compares it."""
SOON_SECONDS: Final = 40.0
SHORTER: Final = {" --for 10m": " --for 2s"}
EXITS: Final = {
    "placement-ac plan -f": (0, 1),  # 1: a change, as `kubectl diff`
    "placement-ac doctor --workers": (2,),  # the demo's workers have no queues
}
"""The exit codes of commands that may not exit with 0."""
VARIES: Final = (
    (
        re.compile(
            r"Controller: \S+ leads since \S+ \(renewed \d+s ago\)(, after \S+)?(; \d+ changes? of leader)?"
        ),
        "Controller: … leads",
    ),
    (re.compile(r" +$", re.MULTILINE), ""),
    (re.compile(r"\b(train-\d)-[0-9a-f]{5}\b"), r"\1-…"),
)
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not all(map(shutil.which, ("kubectl", "jq"))), reason="kubectl and jq are not both on PATH"
    ),
]


def same(text: str) -> str:
    """Return the text without what varies from run to run."""
    for pattern, instead in VARIES:
        text = pattern.sub(instead, text)
    return text.strip("\n")


class Terminal:
    """A shell in a folder with the repository's samples; it remembers KUBECONFIG."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "400",
        }
        for name in ("samples", "docs"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "fleet").symlink_to(ROOT / "samples" / "fleet")
        self._stack = ExitStack()

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        if command in SERVERS:
            self._stack.enter_context(self._started(command))
            command = "true"
        elif command == OWN_KUBECONFIG:
            self._environment["KUBECONFIG"] = str(self._folder / "hub.kubeconfig")
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @contextmanager
    def _started(self, command: str) -> Iterator[None]:
        """Run a command that does not end, from when it is ready until `demo` ends."""
        process = subprocess.Popen(command.split(), cwd=self._folder, env=self._environment)
        try:
            eventually((self._folder / SERVERS[command]).exists, True, seconds=SOON_SECONDS)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)

    @contextmanager
    def demo(self) -> Iterator[None]:
        """Run the demo and keep its hub; KUBECONFIG is what it prints."""
        with (self._folder / "demo.out").open("w+") as output:
            process = subprocess.Popen(
                KEEPS.split(), cwd=self._folder, env=self._environment, stdout=output, text=True
            )
            try:
                self._environment["KUBECONFIG"] = printed_kubeconfig(process, self._folder / "demo.out")
                with self._stack:
                    yield
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(20)


def printed_kubeconfig(process: subprocess.Popen[str], output: Path) -> str:
    end = time.monotonic() + 100
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"export KUBECONFIG=(\S+)", output.read_text()):
            return found[1]
        time.sleep(0.2)  # another process plays the stories
    raise AssertionError(output.read_text())


def problem_of(terminal: Terminal, shown: Shown) -> str:
    """Return what is not as the page says; a change that was made just before may need some seconds."""
    end = time.monotonic() + SOON_SECONDS
    while problem := problem_now(terminal, shown):
        if shown.output is None or time.monotonic() > end:
            break
        time.sleep(0.5)  # another process acts
    return problem


def problem_now(terminal: Terminal, shown: Shown) -> str:
    """Run the command, and return what is not as the page says; "" if all is."""
    command = shown.command
    for long, short in SHORTER.items():
        command = command.replace(long, short)
    done = terminal.run(command)
    codes = next((codes for begin, codes in EXITS.items() if begin in command), (0,))
    if done.returncode not in codes:
        return f"$ {command}\nexit code {done.returncode}: {done.stdout}{done.stderr}"
    if shown.output is not None and same(done.stdout) != same(shown.output):
        return f"$ {command}\n{done.stdout}\ninstead of\n{shown.output}"
    return ""


def to_run(page: Path) -> list[Shown]:
    """Return the commands of a page, without those whose test is elsewhere."""
    done_elsewhere = {*ELSEWHERE, *PREPARE, RUNS_THIS}
    return [
        one
        for one in shown_on(page.read_text("utf-8"))
        if isinstance(one, Shown) and one.command not in done_elsewhere and not is_example(one.output or "")
    ]


def is_example(output: str) -> bool:
    return output.startswith(tuple(EXAMPLES))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page(page: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    commands = to_run(page)
    assert commands
    with terminal.demo():
        problems = [problem_of(terminal, shown) for shown in commands]
    assert [problem for problem in problems if problem] == []


def test_each_example_that_another_test_covers_is_on_a_page_and_its_test_exists() -> None:
    on_pages = [one for page in PAGES for one in shown_on(page.read_text("utf-8"))]
    commands = {one.command for one in on_pages if isinstance(one, Shown)}
    outputs = [one.output or "" for one in on_pages]
    assert {*ELSEWHERE, *PREPARE, RUNS_THIS} <= commands
    assert [begin for begin in EXAMPLES if not any(text.startswith(begin) for text in outputs)] == []
    assert [one.output for one in on_pages if isinstance(one, Fragment) and not is_example(one.output)] == []
    assert [test for test in (*ELSEWHERE.values(), *EXAMPLES.values()) if not is_test(test)] == []
