"""The cache keeps where jobs failed, also of Workloads that it does not keep."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import ANNOTATION_CLUSTER_NAMES, WORKLOAD
from placement_ac.core.api.fields import format_time
from placement_ac.core.inputs.state import FleetState, HubFacts, Key, PlacementPolicy
from tests.support.builders import NOW, kind_of, workload, world
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


def ended(number: int, namespace: str, on: str, *, well: bool = False, pinned: bool = False) -> Any:
    """A Workload of a namespace that has ended, well or within ten seconds."""
    raw = failed(number, on)
    raw["metadata"] |= {name: f"{namespace}-{raw['metadata'][name]}" for name in ("name", "uid")}
    raw["metadata"]["namespace"] = namespace
    if pinned:
        raw["metadata"]["annotations"] = {ANNOTATION_CLUSTER_NAMES: on}
    for condition in raw["status"]["conditions"] if well else ():
        condition["reason"] = condition["reason"].replace("Failed", "Succeeded")
    return raw


def tenant(namespace: str, **rest: Any) -> list[Any]:
    """30 jobs, on clusters a and b."""
    return [ended(number, namespace, f"p-{'ab'[number % 2]}", **rest) for number in range(30)]


@pytest.mark.parametrize(
    ("ends", "whose"),
    [
        pytest.param([], {}, id="nothing else"),
        pytest.param(
            [*tenant("evil"), *tenant("good", well=True)], {"a": ("evil",), "b": ("evil",)}, id="one"
        ),
        pytest.param([*tenant("evil"), *tenant("good")], {"a": (), "b": ()}, id="two"),
        pytest.param([*tenant("evil", pinned=True)], {}, id="pinned"),
        pytest.param(
            [*tenant("evil"), *tenant("good", well=True), *tenant("other")],
            {"a": (), "b": ()},
            id="two of three",
        ),
        pytest.param(
            [*tenant("evil"), *tenant("good", well=True), ended(99, "good", "p-a")],
            {"a": ("evil",), "b": ("evil",)},
            id="a single failure of another",
        ),
    ],
)
def test_a_namespace_whose_jobs_fail_quarantines_a_cluster_for_itself_alone(
    ends: list[Any], whose: dict[str, tuple[str, ...]]
) -> None:
    """30 failing jobs on two clusters quarantined both for all, where 30 jobs of another had ended well."""
    cache = world(decided("abcd"), ends, policy=POLICY)
    found = cache.snapshot(Key("placement", "p"), NOW, {}).fleet
    assert {cluster: found.quarantined_for.get(cluster, ()) for cluster in found.quarantined} == whose
