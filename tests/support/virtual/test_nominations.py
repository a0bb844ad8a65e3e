"""The virtual Kueue follows an external dispatcher as the recordings of real Kueue (shared/kueue)."""

from collections.abc import Callable
from typing import Any

import pytest

from placement_ac.core.api.errors import Conflict, Refused
from placement_lab.standins.multikueue import KueueSettings
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.kueues import ALL, kueue, runs_on, seeds, submitted, without

EXTERNAL = KueueSettings(dispatcher="open-cluster-management.io/placement")


def dispatched(seed: int, *clusters: str, **how: Any) -> VirtualKueue:
    """All workers hold; the Workload is nominated to `clusters`, and a copy waits on each."""
    at = kueue(seed, settings=EXTERNAL)
    at.hold(*ALL)
    submitted(at).until(lambda: at.holds("b1", "QuotaReserved"))
    at.advance(5)
    assert (at.nominated("b1"), at.has_copy("b1")) == ([], set())
    at.nominate("b1", clusters, **how)
    assert at.until(lambda: at.has_copy("b1") == set(clusters)) < 0.2
    return at


@seeds
def test_a_nomination_as_kueue_admission_is_recorded(seed: int) -> None:
    """external-dispatcher.txt: copy 0.05 s later, clusterName after 1.1 s."""
    at = dispatched(seed, "worker2")
    at.release(*ALL)
    assert at.until(lambda: at.placed("b1") == "worker2") < 1.5
    assert at.nominated("b1") == []


@pytest.mark.parametrize("manager", ["placement-ac", "kueue-admission/Update"])
@seeds
def test_any_other_managers_nomination_is_never_recorded(seed: int, manager: str) -> None:
    """external-dispatcher.txt, the table: dispatched, clusterName never."""
    at = dispatched(seed, "worker2", manager=manager)
    at.release(*ALL)
    at.advance(60)
    assert at.running("b1") == {"worker2"}
    assert (at.placed("b1"), at.nominated("b1")) == ("", ["worker2"])


def test_an_apply_with_the_names_alone_takes_quota_away_for_a_moment() -> None:
    """external-dispatcher.txt: admission and the conditions are back 0.3 s later."""
    at = kueue(1, settings=EXTERNAL)
    submitted(at).until(lambda: at.holds("b1", "QuotaReserved"))
    at.nominate("b1", ["worker2"], complete=False)
    assert not at.holds("b1", "QuotaReserved")
    assert at.until(lambda: at.holds("b1", "QuotaReserved")) < 0.5


def test_a_nomination_of_a_placed_workload_is_refused_and_an_old_version_is_a_conflict() -> None:
    """DESIGN.md: 422 means that it is placed."""
    at = dispatched(1, "worker2")
    read = at.workload("b1")["metadata"]["resourceVersion"]
    at.release(*ALL)
    at.until(runs_on(at, "worker2"))
    with pytest.raises(Conflict):
        at.nominate("b1", ["worker1"], resource_version=read)
    with pytest.raises(Refused):
        at.nominate("b1", ["worker1"])


@seeds
def test_a_denominated_cluster_loses_its_waiting_copy_and_can_be_unlisted(seed: int) -> None:
    """external-dispatcher.txt: gone after 0.04 to 0.6 s, unlisted: nothing left (5 of 5)."""
    at = dispatched(seed, "worker2", "worker3")
    at.nominate("b1", ["worker3"])
    assert at.until(lambda: at.has_copy("b1") == {"worker3"}) < 0.6
    at.set_config(without("worker2"))
    at.release(*ALL)
    at.until(runs_on(at, "worker3"))
    at.advance(60)
    assert (at.max_copies["b1"], at.squatting("b1")) == (1, set())


def raced(seed: int) -> VirtualKueue:
    """worker2 has admitted, and leaves the nominations before the hub has recorded it."""
    at = dispatched(seed, "worker2", "worker3")
    at.advance(3)
    at.release("worker2")
    at.until(lambda: at.squatting("b1") == {"worker2"})
    at.nominate("b1", ["worker3"])
    at.advance(6)
    return at


@seeds
def test_denominated_during_its_admission_the_copy_runs_unrecorded(seed: int) -> None:
    """external-dispatcher.txt, race, dt 0.04 to 0.4."""
    at = raced(seed)
    assert at.running("b1") == {"worker2"}
    assert (at.placed("b1"), at.has_copy("b1")) == ("", {"worker2"})


@seeds
def test_unlisting_after_the_race_runs_the_job_twice(seed: int) -> None:
    """external-dispatcher.txt, race: worker2 AND worker3."""
    at = raced(seed)
    at.set_config(without("worker2"))
    at.release("worker3")
    at.until(runs_on_both(at))
    assert at.max_copies["b1"] == 2


def runs_on_both(at: VirtualKueue) -> Callable[[], bool]:
    return lambda: at.running("b1") == {"worker2", "worker3"}


@seeds
def test_a_cluster_nominated_again_is_recorded(seed: int) -> None:
    """external-dispatcher.txt, heal: within 0.3 s, one copy."""
    at = raced(seed)
    at.nominate("b1", ["worker2", "worker3"])
    assert at.until(lambda: at.placed("b1") == "worker2") < 0.4
    at.advance(30)
    assert (at.max_copies["b1"], len(at.starts["b1"])) == (1, 1)
