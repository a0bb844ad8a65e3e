"""`placement-ac demo`: its stories as JSON and as text; story 4 has a module of its own."""

import functools
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kubernetes.dynamic import DynamicClient
from rich.console import Console

from placement_ac.core.api.constants import DRAIN, IMMEDIATE
from placement_lab.cli.demo import command
from placement_lab.demo import steps, story3
from placement_lab.demo.renderers import TerminalRenderer, TextRenderer
from placement_lab.demo.runner import DemoStepResult, JobResult
from placement_lab.demo.steps import ExpectedResult, Scenario, StepEnvironment, StoryStep
from placement_lab.demo.stories import scenario
from placement_lab.demo.story3 import UNSAFE
from placement_lab.demo.story4 import STORY_4
from placement_lab.demo.viewer import JobStatus
from placement_lab.standins.fleet import JobCounts
from placement_lab.standins.manifests import resource_of
from tests.support.driver import eventually

LONG = pytest.mark.long
STORIES = Path(__file__).resolve().parents[3] / "docs" / "stories.md"

GENERATED = "MultiKueueConfig and MultiKueueCluster generated"
SECRETS = {
    "placement-demo2-cluster2": "kueue-admin-cluster2-kubeconfig",
    "placement-demo2-cluster3": "multikueue-cluster3",
}


def documents(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def listed(document: dict[str, Any]) -> list[str]:
    configs = [obj for obj in document["objects"] if obj["kind"] == "MultiKueueConfig"]
    return list(configs[0]["spec"]["clusters"]) if configs else []


def sources(document: dict[str, Any]) -> dict[str, Any]:
    return {
        obj["metadata"]["name"]: obj["spec"]["clusterSource"]
        for obj in document["objects"]
        if obj["kind"] == "MultiKueueCluster"
    }


@LONG
@pytest.mark.timeout(90)
def test_all_stories_as_json() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "placement_ac", "demo", "-o", "json"],
        capture_output=True,
        text=True,
        timeout=60,  # docs/stories.md: less than a minute
        check=False,
    )
    assert run.returncode == 0, run.stderr
    *shown, last = documents(run.stdout)
    of_story_4 = dict.fromkeys(STORY_4.expected.jobs, STORY_4.expected.counts) if STORY_4.expected else {}
    assert last["jobs"] == {"train": {"maxCopies": 1, "starts": 1, "finished": True}} | of_story_4
    assert [doc["ok"] for doc in shown] == [True] * 20
    assert [doc["step"] for doc in shown] == [*range(1, 21)]
    assert all(doc["elapsedMilliseconds"] > 0 for doc in shown)
    assert [(doc["story"], listed(doc)) for doc in shown] == [
        (1, ["placement-demo1-cluster1", "placement-demo1-cluster2", "placement-demo1-cluster3"]),
        (2, ["placement-demo2-cluster2", "placement-demo2-cluster3"]),
        (2, ["placement-demo2-cluster1", "placement-demo2-cluster2", "placement-demo2-cluster3"]),
        (2, ["placement-demo2-cluster2", "placement-demo2-cluster3"]),
        *((3, names) for names in lists_of(DRAIN)),
        *[(4, [f"placement-demo4-{name}" for name in ("cluster3", "cluster1", "cluster2")])] * 10,
    ]
    end_of_story_2 = shown[3]
    condition = end_of_story_2["condition"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Active", GENERATED)
    assert sources(end_of_story_2) == {
        name: {"kubeConfig": {"location": secret, "locationType": "Secret"}}
        for name, secret in SECRETS.items()
    }


C2, C3 = SECRETS
LISTS: dict[story3.Story3Mode, list[list[str] | None]] = {
    DRAIN: [[C3], [C3], [C2, C3], None, [C2], [C3]],
    IMMEDIATE: [[C3], [C3], [C2, C3], [C2], [C2], [C2], [C3]],
    UNSAFE: [[C3], [C3], [C2], [C2]],
}
"""The list after each step of Story 3; None: the old list or the new one, by timing."""
ARGUMENTS: dict[story3.Story3Mode, list[str]] = {
    DRAIN: [],
    IMMEDIATE: ["--removal-policy", "immediate"],
    UNSAFE: ["--unsafe"],
}
COUNTED: dict[story3.Story3Mode, JobCounts] = {
    DRAIN: {"maxCopies": 1, "starts": 1, "finished": True},
    IMMEDIATE: {"maxCopies": 1, "starts": 2, "finished": True},
    UNSAFE: {"maxCopies": 2, "starts": 2, "finished": True},
}
MODES: list[story3.Story3Mode] = [DRAIN, IMMEDIATE, UNSAFE]


class Either:
    """Equal to the lists before and after a cluster is removed."""

    def __eq__(self, other: object) -> bool:
        return other in ([C2, C3], [C2])

    def __hash__(self) -> int:
        return 0


def lists_of(mode: story3.Story3Mode) -> list[Any]:
    return [names or Either() for names in LISTS[mode]]


def jobs_of(document: dict[str, Any]) -> list[tuple[str, str | None]]:
    """The Workloads in a step's document: name of the Job, and clusterName on the hub."""
    return [
        (obj["metadata"]["ownerReferences"][0]["name"], obj["status"].get("clusterName"))
        for obj in document["objects"]
        if obj["kind"] == "Workload"
    ]


@functools.cache
def shown_as_json(mode: story3.Story3Mode) -> tuple[int, str]:
    """Play Story 3 once; return the exit code and the output."""
    run = CliRunner().invoke(command, ["--story", "3", "-o", "json", *ARGUMENTS[mode]])
    return run.exit_code, run.output


@LONG
@pytest.mark.parametrize("mode", MODES)
def test_a_job_runs_while_scores_change(mode: story3.Story3Mode) -> None:
    """At most one copy with either policy; two with `--unsafe`, so the count does notice a second one."""
    exit_code, output = shown_as_json(mode)
    *shown, last = documents(output)
    assert last["jobs"] == {"train": COUNTED[mode]}
    assert (exit_code, last["ok"]) == (0, True)
    assert [(doc["step"], doc["ok"]) for doc in shown] == [(n, True) for n in range(1, len(shown) + 1)]
    assert [doc["title"] for doc in shown] == [step.title for step in scenario(3, mode).steps]
    assert [listed(doc) for doc in shown] == lists_of(mode)
    assert last["summary"] in STORIES.read_text("utf-8")


@LONG
def test_the_cluster_that_drains_is_listed_last_and_keeps_its_job() -> None:
    *shown, _ = documents(shown_as_json(DRAIN)[1])
    assert {doc["title"]: jobs_of(doc) for doc in shown[1:5]} == {
        "A job is created: it runs on cluster3": [("train", C3)],
        "Its GPUs fill up: cluster2 takes over, cluster3 drains": [("train", C3)],
        "The job on cluster3 finishes": [("train", C3)],
        "cluster3 is empty: it is removed from the list": [("train", C3)],
    }
    assert [shown[n]["condition"]["message"] for n in (2, 4)] == [
        f"{GENERATED}; draining: cluster3 (Workloads run there)",
        GENERATED,
    ]
    assert [shown[n]["reactionMilliseconds"] is not None for n in range(6)] == [
        True, False, True, False, False, True
    ]  # fmt: skip  # where OCM decided anew


@functools.cache
def shown_as_text() -> tuple[int, str]:
    """Play Story 3 once, which ends all its threads; return the exit code and the output."""
    before = set(threading.enumerate())
    run = CliRunner().invoke(command, ["--story", "3"])
    # A closed loop does not wait for its executor's threads.
    eventually(lambda: [thread.name for thread in threading.enumerate() if thread not in before], [])
    return run.exit_code, run.output


def test_one_story_as_plain_text() -> None:
    """JSON has the same: `test_a_job_runs_while_scores_change`."""
    exit_code, shown = shown_as_text()
    assert exit_code == 0, shown
    lines = shown.splitlines()
    assert [line for line in lines if line.startswith("Story")] == [
        "Story 3, step 1: The cluster with the most free GPUs: cluster3",
        "Story 3, step 2: A job is created: it runs on cluster3",
        "Story 3, step 3: Its GPUs fill up: cluster2 takes over, cluster3 drains",
        "Story 3, step 4: The job on cluster3 finishes",
        "Story 3, step 5: cluster3 is empty: it is removed from the list",
        "Story 3, step 6: GPUs are free again: back to cluster3",
    ]
    assert "  $ kubectl apply -f samples/placement-demo2-2.yaml" in lines
    assert "  $ sed 's/generateName: .*/name: train/' samples/job-demo2.yaml | kubectl create -f -" in lines
    assert '  ["placement-demo2-cluster2","placement-demo2-cluster3"]' in lines
    assert "  placement-demo2-cluster2   True        kueue-admin-cluster2-kubeconfig   <none>" in lines
    assert f"  True Active {GENERATED}; draining: cluster3 (Workloads run there)" in lines
    assert "  train   placement-demo2-cluster3   Ready   <none>" in lines
    running = "train runs on cluster3; started 1 time, at most 1 copy at a time"
    assert f"  # on the workers: {running}" in lines
    assert lines[-2].startswith("Job train: started 1 time, at most 1 copy at a time, finished: ")
    assert lines[-1].startswith("6 of 6 steps succeeded in ")


def test_the_documented_output_is_current() -> None:
    """The second block of output under that heading: a step with a job, but for the times."""
    _, shown = shown_as_text()
    blocks = STORIES.read_text("utf-8").partition("## What the demo shows\n")[2].split("```")
    documented = blocks[3].removeprefix("console\n")
    assert "Story 3, step 7: " in documented, "the third step of the story"
    assert untimed(documented.replace("step 7", "step 3")) in untimed(shown)


def untimed(text: str) -> str:
    return re.sub(r"\d+(\.\d)? (ms|s)\b", "… ms", text)


@pytest.mark.parametrize(
    "words",
    [
        ["--story", "2", "--unsafe"],
        ["--unsafe", "--removal-policy", "Immediate"],
        ["--removal-policy", "kill"],
        ["--story", "4", "--unsafe"],
        ["--story", "4", "--credentials", "made"],
        ["--story", "6"],
    ],
)
def test_invalid_options_are_rejected(words: list[str]) -> None:
    run = CliRunner().invoke(command, words)
    assert (run.exit_code, run.stdout) == (2, "")


@LONG
def test_an_unexpected_second_copy_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's report if the safe policy had the result of the unsafe one."""
    monkeypatch.setitem(story3.EXPECTED_RESULTS, UNSAFE, story3.EXPECTED_RESULTS[DRAIN])
    run = CliRunner().invoke(command, ["--story", "3", "--unsafe"])
    assert run.exit_code == 1
    message = "Job train: started 2 times, 2 copies at a time, finished: FAILED; expected "
    assert message + '{"maxCopies":1,"starts":1,"finished":true}' in run.output.splitlines()


@LONG
def test_a_failed_step_is_reported_with_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo fails on a fleet without the Secret for cluster3, which Story 3 selects."""
    monkeypatch.setattr("placement_lab.demo.runner.STEP_SECONDS", 0.5)

    def no_cluster3(client: DynamicClient, stage: StepEnvironment) -> None:
        steps.create_fleet(client, stage)
        resource_of(client, "v1", "Secret").delete("multikueue-cluster3", "kueue-system")

    monkeypatch.setattr("placement_lab.demo.runner.create_fleet", no_cluster3)
    run = CliRunner().invoke(command, ["--story", "3"])
    assert run.exit_code == 1
    assert "FAILED" in run.output
    assert "NoClusterUsable" in run.output
    assert "; expected ['placement-demo2-cluster3'], the job on cluster3" in run.output
    assert "0 of 6 steps succeeded" in run.output


def last_answers(shown: str) -> dict[str, list[str]]:
    """Return the last output of each `$ kubectl get …`."""
    answers: dict[str, list[str]] = {}
    answer: list[str] = []
    for line in map(str.strip, shown.splitlines()):
        if line.startswith("$ kubectl get"):
            answer = answers[line[2:]] = []
        elif not line or line.startswith(("$", "#", "OK after")):
            answer = []
        else:
            answer.append(line)
    return answers


def assert_kubectl_answers(kubeconfig: str, answers: dict[str, list[str]]) -> None:
    for asked, answer in answers.items():
        run = subprocess.run(
            asked,
            shell=True,
            check=False,
            env=os.environ | {"KUBECONFIG": kubeconfig},
            capture_output=True,
            text=True,
        )
        assert [line.strip() for line in run.stdout.splitlines()] == answer, run.stderr


@LONG
def test_a_kept_hub_serves_kubectl() -> None:
    """The output of the demo "as kubectl would" equals kubectl's."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "placement_ac", "demo", "--story", "3", "--keep"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        shown = ""
        while "export KUBECONFIG=" not in shown:
            assert demo.stdout is not None
            shown += next(demo.stdout)
        kubeconfig = shown.rpartition("export KUBECONFIG=")[2].strip()
        assert Path(kubeconfig).stat().st_mode & 0o077 == 0, "it holds a token"
        if shutil.which("kubectl"):
            answers = last_answers(shown)
            assert len(answers) == 4
            assert_kubectl_answers(kubeconfig, answers)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(20) == 0
        assert not Path(kubeconfig).exists()
    finally:
        demo.kill()
        demo.communicate()


def _outcome(*, right: bool) -> DemoStepResult:
    step = scenario(2).steps[0]
    config = {"kind": "MultiKueueConfig", "metadata": {"name": "p"}, "spec": {"clusters": ["p-a"]}}
    cluster = {
        "kind": "MultiKueueCluster",
        "metadata": {"name": "p-a"},
        "spec": {"clusterSource": {"clusterProfileRef": {"name": "a"}}},
    }
    condition = {"status": "True", "reason": "Active", "message": GENERATED}
    return DemoStepResult(1, step, right, 42.0, 7.0, ("a",), (config, cluster), condition)


def _of_step(number: int, step: StoryStep) -> DemoStepResult:
    """The result of a step in which each cluster's credentials have the longest name of the samples."""
    secret = {"kubeConfig": {"location": SECRETS["placement-demo2-cluster2"], "locationType": "Secret"}}
    clusters = [
        {
            "kind": "MultiKueueCluster",
            "metadata": {"name": name},
            "spec": {"clusterSource": secret},
            "status": {"conditions": [{"type": "Active", "status": "True"}]},
        }
        for name in step.expected_clusters
    ]
    config = {
        "kind": "MultiKueueConfig",
        "metadata": {"name": step.placement},
        "spec": {"clusters": step.expected_clusters},
    }
    message = f"{GENERATED}; draining: cluster3 (nothing runs there any more)" if step.draining else GENERATED
    condition = {"status": "True", "reason": "Active", "message": message}
    job = JobStatus("train", ("cluster2", "cluster3"), COUNTED[UNSAFE]) if step.job else None
    decided = step.clusters or ()
    return DemoStepResult(number, step, True, 42.0, 7.0, decided, (config, *clusters), condition, job)


def _finale(*, right: bool) -> list[JobResult]:
    wanted = COUNTED[DRAIN if right else IMMEDIATE]
    return [JobResult((JobStatus("train", (), COUNTED[DRAIN]),), ExpectedResult(wanted, "all is well"))]


@pytest.mark.parametrize("right", [True, False])
def test_a_terminal_shows_a_panel_for_each_step(right: bool) -> None:
    console = Console(force_terminal=True, width=120, record=True, file=io.StringIO())
    with TerminalRenderer(console) as show:
        show.step_started(1, scenario(2).steps[0])
        show.step_finished(_outcome(right=right))
        show.demo_finished([_outcome(right=right)], _finale(right=right))
    text = console.export_text()
    assert "Story 2, step 1: The clusters with a T4 GPU, by label" in text
    assert "ClusterProfile a" in text
    assert ("FAILED after 42 ms" in text) is not right
    assert ("finished: FAILED; expected" in text) is not right
    assert ("finished: all is well." in text) is right


@pytest.mark.parametrize("mode", MODES)
def test_a_terminal_of_80_columns_truncates_nothing(mode: story3.Story3Mode) -> None:
    console = Console(force_terminal=True, width=80, record=True, file=io.StringIO())
    with TerminalRenderer(console) as show:
        for number, step in enumerate(_programme(mode).steps, start=1):
            show.step_finished(_of_step(number, step))
    lines = [line.strip("│ ") for line in console.export_text().splitlines()]
    assert [line for line in lines if "…" in line] == []
    for number, step in enumerate(_programme(mode).steps, start=1):
        assert any(f" Story {step.story}, step {number}: {step.title} " in line for line in lines)
    assert "placement-demo2-cluster2  True       Secret kueue-admin-cluster2-kubeconfig" in lines
    assert "Job on the workers: train runs on cluster2 and cluster3; started 2 times, 2" in lines


def _programme(mode: story3.Story3Mode) -> Scenario:
    return scenario(None, mode)


def test_missing_objects_are_shown_as_kubectl_does(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = DemoStepResult(1, scenario(1).steps[0], False, 1.0, None, (), (), {})
    TextRenderer().step_finished(outcome)
    shown = capsys.readouterr().out
    assert "Error from server (NotFound)" in shown
    assert "(none)" in shown
