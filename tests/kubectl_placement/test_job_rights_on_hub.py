"""`job` and `jobs` of a user who may read little: what can be seen is shown, the rest is named."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_placement.cli.job_options import JOB_VIEWER, JOB_VIEWER_KINDS
from tests.kubectl_placement.test_jobs_on_hub import NAMES
from tests.placement_ac.controller.test_dispatch import ALL
from tests.support.accounts import kubeconfig_of
from tests.support.commands import Run, on_hub
from tests.support.driver import Controllers, Driver
from tests.support.hub_client import Client
from tests.support.jobs import Stage, dispatched
from tests.support.rights import ACCOUNTS, allow, allow_here, rule, token_of

KUEUE = "kueue.x-k8s.io"


@pytest.fixture
def there(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    with dispatched(admin, controllers, ALL, held=["c"]) as opened:
        opened.submit("train", annotations={NAMES: "b"})
        opened.until_runs("train", "b")
        opened.submit("waits", annotations={NAMES: "c"})
        opened.until_waits("waits", "c")
        yield opened


@pytest.fixture
def owner(there: Stage, tmp_path: Path) -> Run:
    """A user who may list Workloads in the namespace `default`, and nothing else."""
    client = Client(there.admin.hub)
    client.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    allow_here(client, rule("get list watch", KUEUE, "workloads"))
    return on_hub(kubeconfig_of(there.admin.hub, tmp_path / "owner", token_of(client)))


def asked(there: Stage, begin: int) -> set[str]:
    """The last parts of the paths that the user has read."""
    mine = [one for one in list(there.admin.hub.journal)[begin:] if one.user.endswith(":sa")]
    assert {one.method for one in mine} == {"GET"}
    return {one.path.rpartition("/")[2] for one in mine}


def test_the_right_to_workloads_in_a_namespace_is_enough_and_the_role_names_clusters(
    there: Stage, owner: Run
) -> None:
    begin = len(there.admin.hub.journal)
    done = owner("jobs", "-o", "json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    found = [(job["name"], job["state"], job["cluster"], job["waitsFor"]) for job in document["jobs"]]
    assert found == [("train", "running", "p-b", ""), ("waits", "waiting", "", "quota on p-c")]
    assert any(JOB_VIEWER in note for note in document["notes"])
    done = owner("job", "waits", "-o", "json")
    assert done.exit_code == 0, done.output
    story = json.loads(done.stdout)
    assert (story["job"]["state"], story["job"]["waitsFor"]) == ("waiting", "quota on p-c")
    assert story["explanation"] is None
    notes = "\n".join(story["notes"])
    assert JOB_VIEWER in notes
    assert "kubectl auth can-i list localqueues.kueue.x-k8s.io -n default" in notes
    assert "kubectl auth can-i list events -n default" in notes
    assert "no table of filters and scores: ask an admin to bind placement-ac's viewer roles" in notes
    assert "secrets" not in asked(there, begin)
    for words, right in (
        (["jobs", "-A"], "name your namespace with -n, or ask an admin for the right to list workloads."),
        (
            ["jobs", "-n", "other"],
            "ask an admin for the right to list workloads.kueue.x-k8s.io in namespace other",
        ),
        (
            ["job", "train", "-n", "other"],
            "(check: kubectl auth can-i list workloads.kueue.x-k8s.io -n other)",
        ),
    ):
        done = owner(*words)
        assert (done.exit_code, right in done.stderr) == (1, True), done.stderr

    plurals = " ".join(kind.plural for kind in JOB_VIEWER_KINDS)
    allow(Client(there.admin.hub), rule("get list watch", KUEUE, plurals))
    document = json.loads(owner("jobs", "-o", "json").stdout)
    assert [job["cluster"] for job in document["jobs"]] == ["b", ""]
    assert not any(JOB_VIEWER in note for note in document["notes"])
    assert json.loads(owner("job", "waits", "-o", "json").stdout)["job"]["waitsFor"] == "quota on c"
