"""`plan --moves`: which running jobs would be moved now, and why not each of the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.moves import (
    IS_OFF,
    NOT_MOVABLE,
    NOT_READ,
    may_move,
    move_text,
    planned_moves,
    workers_for_moves,
)
from placement_ac.core.api.constants import ANNOTATION_MOVABLE
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere
from tests.kubectl_placement.test_explain_workload import MK, P, a_job, view_of
from tests.support import commands
from tests.support.builders import Raw
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues
from tests.support.whatif import as_list

USED = {"cluster1": (8, 8), "cluster2": (8, 2), "cluster3": (8, 7)}


def runs(name: str, cluster: str, movable: str = "true", **rest: Any) -> Raw:
    annotations = {ANNOTATION_MOVABLE: movable} if movable else {}
    where: Any = {"cluster": f"{P}-{cluster}", MK: "Ready"}
    return a_job(name, pods=gpu_pods(1), annotations=annotations, **(where | rest))


JOBS = (
    runs("first", "cluster1"),
    runs("second", "cluster1"),
    runs("fine", "cluster2"),
    runs("still", "cluster1", ""),
)


def view(*jobs: Raw, **settings: Any) -> HubView:
    counted = WorkloadsThere(frozenset(job["metadata"]["uid"] for job in jobs))
    facts = {
        f"{P}-{name}": WorkerFacts(
            queues((GPU, "f", *amounts), queue=("default", "user-queue-demo2")), counted
        )
        for name, amounts in USED.items()
    }
    return view_of(*jobs, **({"dispatch_profile": "headroom", "moves": True} | settings)).with_queue_facts(
        facts
    )


def test_one_moves_now_and_each_of_the_others_has_its_reason() -> None:
    report = planned_moves(view(*JOBS))
    assert [(job.name, job.cluster, job.target) for job in report.moving] == [
        ("second", "cluster1", "cluster2")
    ]
    why = {job.name: job.why for job in report.jobs}
    assert why["second"] == "cluster2 has room, and 42 points more"
    assert why["first"] == "default/second moves first: one at a time"
    assert why["fine"] == "no cluster is better by 20 points: cluster3 has 50 points, its own cluster 93"
    assert why["still"] == NOT_MOVABLE
    assert (report.left, report.objections, report.notes) == ({P: 12}, {}, ())


def test_what_is_missing_is_said() -> None:
    unread = view_of(*JOBS, dispatch_profile="headroom")
    report = planned_moves(unread)
    assert (report.moving, report.notes) == ((), (IS_OFF, NOT_READ))
    assert set(workers_for_moves(unread)) == {f"{P}-{name}" for name in USED}


@pytest.mark.parametrize(
    ("form", "output"), [(["-o", "name"], ""), ([], "stays on cluster1: no other cluster is known")]
)
def test_the_command(tmp_path: Path, form: list[str], output: str) -> None:
    path = tmp_path / "hub.json"
    path.write_text(as_list(view_of(*JOBS).dump))
    done = commands.run("plan", "--moves", "--from-dump", str(path), *form)
    assert done.exit_code == 0
    assert output in done.stdout
    assert NOT_READ in done.stderr


# -- explain workload


def test_explain_workload_says_the_same_of_one_job() -> None:
    seen = view(*JOBS)
    text = {one.meta.name: move_text(seen, one) for one in map(workload_with_job, JOBS) if may_move(one)}
    assert text == {
        "first": "it may be moved, but not now: default/second moves first: one at a time",
        "second": "it would be moved to cluster2 now: cluster2 has room, and 42 points more",
        "fine": "it may be moved, but not now: no cluster is better by 20 points: cluster3 has 50"
        " points, its own cluster 93",
    }


def test_the_command_explain_workload_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "hub.json"
    path.write_text(as_list(view_of(*JOBS).dump))
    shown = commands.run("explain", "workload", "first", "--from-dump", str(path), "-o", "json")
    notes = json.loads(shown.stdout)["workload"]["notes"]
    assert (
        f"it may be moved, but not now: no other cluster is known to have room for it; {IS_OFF}; {NOT_READ}"
        in notes
    )
    stays = commands.run("explain", "workload", "still", "--from-dump", str(path))
    assert "be moved" not in stays.stdout


def test_either_manifests_or_moves() -> None:
    assert "use either -f, for manifests, or --moves" in commands.run("plan").stderr
