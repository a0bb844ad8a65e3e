"""A listed cluster gets another name only when nothing runs there; a list never holds both names."""

from typing import Any

import pytest

from placement_ac.core.inputs.state import PlacementPolicy, Since, SinceKind, Snapshot, WorkerCopies
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.builders import (
    SHARED,
    check,
    decision,
    foreign_cluster,
    inputs,
    listed_in,
    managed_clusters,
    multikueue_check,
    our_cluster,
    our_objects,
    placement,
    running,
    secrets,
    snapshot,
    world,
)
from tests.support.decided import NO_COPIES

ACTIVE = {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": ""}]}
HUB = [
    *(check(), multikueue_check(), placement(), decision("a", "b"), *secrets("a", "b")),
    *(*our_objects("a", "b"), *managed_clusters("a", "b")),
]
CLOSED = Since(SinceKind.GATE_CLOSED_FOR, "a")
QUIET = Since(SinceKind.QUIET, "a")


def shared(cluster: str, connected: bool = True) -> Any:
    return our_cluster(cluster, None, owners=(), **({"status": ACTIVE} if connected else {}))


def renaming_inputs(*objects: Any, ages: Any = None, **copies: WorkerCopies) -> Snapshot:
    return inputs(*HUB, *objects, hub=SHARED, ages=ages, copies=copies)


def listed(seen: Snapshot) -> tuple[str, ...]:
    return listed_in(plan(seen))


def test_the_new_multikueuecluster_exists_before_anything_is_renamed() -> None:
    wanted = plan(renaming_inputs(running("job", "p-a")))
    assert [cluster.name for cluster in wanted.clusters] == ["p-a", "p-b", "a", "b"]
    assert wanted.config is not None
    assert wanted.config.clusters == ("p-a", "p-b")


@pytest.mark.parametrize(
    ("objects", "leaving"),
    [
        pytest.param([shared("a"), shared("b"), running("job", "p-a")], ["b"], id="jobs run on a"),
        pytest.param([shared("a"), shared("b", connected=False)], ["a", "b"], id="no connection at all"),
        pytest.param([shared("a")], ["a"], id="b has no new name yet"),
    ],
)
def test_a_name_leaves_when_nothing_runs_there(objects: list[Any], leaving: list[str]) -> None:
    targets = select_targets(renaming_inputs(*objects, running("elsewhere", "p-z")))
    assert [step.cluster for step in targets.drain.staying] == leaving
    assert [entry.name for entry in targets.to_list] == ["p-a", "p-b"], "both stay listed meanwhile"


def test_the_new_name_takes_the_place_of_the_old_one_in_one_write() -> None:
    objects = [shared("a"), shared("b"), running("job", "p-b")]
    still = renaming_inputs(*objects, ages={CLOSED: 9.0, QUIET: 1.0}, **{"p-a": NO_COPIES})
    assert listed(still) == ("p-a", "p-b")
    gone = renaming_inputs(*objects, ages={CLOSED: 9.0, QUIET: 3.0}, **{"p-a": NO_COPIES})
    assert set(listed(gone)) == {"a", "p-b"}


def test_with_a_stable_list_the_old_name_does_not_stand_by() -> None:
    policy = PlacementPolicy(dispatcher=True, unlist_after=3600.0, loss_grace=0.0)
    objects = [*HUB, shared("a"), shared("b"), running("job", "p-b")]
    seen = world(objects, hub=SHARED, policy=policy)
    assert listed(snapshot(seen, ages={QUIET: 3.0}, **{"p-a": NO_COPIES})) == ("a", "p-b")


def test_both_names_are_never_in_one_list() -> None:
    for ages in ({}, {CLOSED: 9.0}, {CLOSED: 9.0, QUIET: 3.0}):
        for jobs in ([], [running("job", "p-a")], [running("job", "p-b")]):
            names = listed(renaming_inputs(shared("a"), shared("b"), *jobs, ages=ages, **{"p-a": NO_COPIES}))
            assert len({name.removeprefix("p-") for name in names}) == len(names) == 2


def test_a_foreign_object_of_the_new_name_is_reported() -> None:
    assert plan(renaming_inputs(foreign_cluster("a"))).verdicts["check"].reason == "NameTaken"
