"""A wrong context, and a user with few rights: the commands say what is missing and exit with 1."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_lab.hub import Hub
from tests.support.commands import default_settings, listing, on_hub, reader
from tests.support.driver import Driver
from tests.support.real_hub import HubMaker
from tests.support.rights import rule
from tests.support.whatif import SAMPLES

KUEUE, OCM = "kueue.x-k8s.io", "cluster.open-cluster-management.io"
COMMANDS = [
    words.split()
    for words in (
        "status",
        "explain check p",
        "explain cluster a",
        f"plan -f {SAMPLES}/placement-demo2-2.yaml",
    )
]


def run(kubeconfig: Path, *words: str) -> tuple[int, str, str]:
    done = on_hub(kubeconfig)(*words)
    return done.exit_code, done.stdout, done.stderr


def error_code(words: list[str]) -> int:
    """Return the exit code of an error: 2 for plan, as of `kubectl diff`."""
    return 2 if words[0] == "plan" else 1


@pytest.fixture
def elsewhere(a_hub: HubMaker, tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a cluster that is no hub: it serves neither Kueue's nor OCM's kinds."""
    path = tmp_path / "kubeconfig"
    with a_hub(crds=()) as hub:
        hub.write_kubeconfig(path)
        yield path


def test_without_the_settings_of_the_controller_what_depends_on_them_is_refused(
    admin: Driver, kubeconfig: Path, tmp_path: Path
) -> None:
    metadata = {"name": "placement-ac", "labels": {"app.kubernetes.io/name": "placement-ac"}}
    container = {"name": "controller", "image": "placement-ac", "args": ["run", "--settle=never"]}
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    space = "/api/v1/namespaces"
    admin.ask("POST", space, {"metadata": {"name": "placement-ac-system"}})
    admin.ask(
        "POST",
        "/apis/apps/v1/namespaces/placement-ac-system/deployments",
        {"metadata": metadata, "spec": spec},
    )
    admin.check("p")
    for words in (["status"], ["explain", "check", "p"]):
        code, stdout, stderr = run(kubeconfig, *words)
        assert (code, stdout) == (1, "")
        assert "the controller's settings are unknown: settle: 'never' is not possible" in stderr
        assert run(kubeconfig, *words, *default_settings(tmp_path))[0] == 0


def test_a_wrong_context_is_an_error(elsewhere: Path) -> None:
    server = json.loads(elsewhere.read_text())["clusters"][0]["cluster"]["server"]
    for words in COMMANDS:
        code, stdout, stderr = run(elsewhere, *words)
        assert (code, stdout) == (error_code(words), "")
        assert stderr.startswith(
            f"Error: check the context, or install what is missing: {server} does not serve Kueue's "
            "admissionchecks, multikueueconfigs, multikueueclusters, workloads and OCM's placements, "
            "placementdecisions"
        )
        assert len(stderr.splitlines()) == 1


def test_a_user_without_rights_gets_one_line(hub: Hub, admin: Driver, tmp_path: Path) -> None:
    admin.check("p")
    kubeconfig = reader(hub, tmp_path)
    for words in COMMANDS:
        code, stdout, stderr = run(kubeconfig, *words)
        assert (code, stdout, len(stderr.splitlines())) == (error_code(words), "", 1)
        assert stderr.startswith(
            "Error: ask an admin to bind placement-ac's viewer roles to you (kubectl get "
        )
        assert "you may not list admissionchecks, multikueueconfigs, multikueueclusters, " in stderr


SHOWN = {"status": "AdmissionCheck p", "status -o mermaid": "AdmissionCheck<br/>p", "explain p": "Condition"}
"""Words, and what they show with some rights."""


def test_with_some_rights_missing_the_rest_is_shown_and_the_exit_code_is_1(
    hub: Hub, admin: Driver, tmp_path: Path
) -> None:
    admin.check("p")
    admin.select("p", "a")
    kubeconfig = reader(hub, tmp_path, *listing(KUEUE), rule("get list", OCM, "placements"))
    for words, shows in SHOWN.items():
        code, stdout, stderr = run(kubeconfig, *words.split(), *default_settings(tmp_path))
        assert (code, shows in stdout, len(stderr.splitlines())) == (1, True, 1)
        assert stderr.startswith("missing rights: ask an admin to bind placement-ac's viewer roles to you")
        assert stderr.endswith("; what depends on that is unknown\n")
