"""The cache keeps where jobs failed, also of Workloads that it does not keep."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.fields import format_time
from placement_ac.core.inputs.state import FleetState, HubFacts, Key, PlacementPolicy
from tests.support.builders import NOW, kind_of, workload
from tests.support.decided import decided

POLICY = PlacementPolicy(dispatcher=True, avoid_after_failure=600.0)
START = NOW - timedelta(minutes=20)


def spec(image: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    return {"active": True, "podSets": [{"name": "main", "count": 1, "template": template}]}


def failed(number: int, on: str = "p-a") -> dict[str, Any]:
    """A Workload that has failed after ten seconds."""
    raw = workload(f"failed{number}", cluster=on, finished=True, check="Ready", mk="Ready")
    ended = START + timedelta(seconds=10 + number)
    for condition in raw["status"]["conditions"]:
        condition |= {"reason": "Failed", "lastTransitionTime": format_time(ended)}
    admitted = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""}
    raw["status"]["conditions"].append(admitted | {"lastTransitionTime": format_time(START)})
    return raw | {"spec": spec(f"image{number}")}


def fleet(*more: Any, policy: PlacementPolicy = POLICY, put: bool = False) -> FleetState:
    """Five jobs have failed on a; the clusters are a, b and c."""
    cache = Cache(HubFacts(), policy=policy)
    first = [*decided("abc"), *([] if put else [failed(number) for number in range(5)]), *more]
    for kind in cache.kinds:
        cache.load(kind, [raw for raw in first if kind_of(raw) == kind], "1")
    for number in range(5) if put else ():
        cache.put(WORKLOAD, failed(number))
    return cache.snapshot(Key("placement", "p"), NOW, {}).fleet


@pytest.mark.parametrize("put", [False, True], ids=["listed", "seen as they end"])
def test_finished_workloads_count(put: bool) -> None:
    state = fleet(put=put)
    assert list(state.quarantined) == ["a"]
    assert state.retry_at == {"a": START + timedelta(seconds=14, minutes=10)}
    assert state.reliability == {"a": 0.0}


def test_it_costs_nothing_unless_it_is_set() -> None:
    state = fleet(policy=replace(POLICY, avoid_after_failure=0.0))
    assert state == replace(FleetState(), labels=state.labels, managed=state.managed)


@pytest.mark.parametrize(("minutes", "wanted"), [(9, ["a"]), (10, []), (19, []), (21, ["a"])])
def test_a_job_that_is_well_there_for_ten_minutes_ends_the_quarantine(
    minutes: int, wanted: list[str]
) -> None:
    """One that was placed before the last failure shows nothing."""
    placed = NOW - timedelta(minutes=minutes)
    state = fleet(workload("well", cluster="p-a", since=placed, check="Ready", mk="Ready"))
    assert list(state.quarantined) == wanted


def test_a_job_that_is_submitted_again_avoids_the_cluster() -> None:
    again = workload("again", check="Ready", mk="Pending") | {"spec": spec("image3")}
    recent = failed(3)
    for condition in recent["status"]["conditions"]:
        condition["lastTransitionTime"] = format_time(NOW - timedelta(minutes=4))
    recent["metadata"] |= {"name": "recent", "uid": "recent"}
    assert fleet(again, recent).avoided == {"Workload/again": {"a": NOW + timedelta(minutes=16)}}
    another = workload("another", check="Ready", mk="Pending") | {"spec": spec("image9")}
    assert fleet(another, recent).avoided == {}
