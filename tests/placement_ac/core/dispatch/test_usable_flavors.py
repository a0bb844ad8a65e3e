"""A job on a worker whose flavors are known: only those count that its Pods may use."""

from typing import Any

import pytest

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.filters import FILTERS
from placement_ac.core.dispatch.room import Room, room_of
from placement_ac.core.dispatch.scores.headroom import headroom
from placement_ac.core.dispatch.shortage import shortage
from placement_ac.core.inputs.flavors import Flavor
from placement_ac.core.inputs.queue_facts import with_flavors
from tests.support.jobs_to_dispatch import GPU, cluster, gpu_pods, job, queues

FLAVORS = {
    "a100": Flavor({"accelerator": "a100"}),
    "h100": Flavor({"accelerator": "h100"}),
    "spot": Flavor({"accelerator": "h100"}, (("spot", "true", "NoSchedule"),)),
}


def wants(gpus: int, accelerator: str = "h100", **pod: Any) -> Workload:
    [template] = gpu_pods(gpus)
    return job(pods=({"spec": template["spec"] | {"nodeSelector": {"accelerator": accelerator}} | pod},))


def offers(*quotas: tuple[Any, ...]) -> Cluster:
    """A worker with these flavors: name, nominal quota, and what is reserved of it and may be borrowed."""
    return cluster(queue_facts=with_flavors(queues(*((GPU, *quota) for quota in quotas)), FLAVORS))


def too_little(asked: int, most: int, of: str, by: str = "") -> str:
    usable = f" in flavors that its Pods may use, by node labels and taints ({of})" if of else ""
    return f"had too little quota: {asked} {GPU} asked{by}, {most} at most{usable}"


A100, HOPPER = (
    {"spec": gpu_pods(6)[0]["spec"] | {"nodeSelector": {"accelerator": one}}} for one in ("a100", "h100")
)


@pytest.mark.parametrize(
    ("asks", "candidate", "reason"),
    [
        pytest.param(
            wants(8),
            offers(("a100", 16), ("h100", 4)),
            too_little(8, 4, "1 of 2"),
            id="the larger is not its",
        ),
        pytest.param(wants(8), offers(("a100", 4), ("h100", 8)), None, id="its own is enough"),
        pytest.param(wants(8), offers(("spot", 16)), too_little(8, 0, "0 of 1"), id="a taint"),
        pytest.param(
            wants(8, tolerations=[{"key": "spot", "operator": "Exists"}]),
            offers(("spot", 16)),
            None,
            id="it is tolerated",
        ),
        pytest.param(
            wants(8),
            offers(("a100", 16, 0, None)),
            too_little(8, 0, "0 of 1"),
            id="a cohort lends none of another flavor",
        ),
        pytest.param(wants(8), offers(("h100", 4, 0, None)), None, id="a cohort may lend"),
        pytest.param(wants(8), offers(("new", 16)), None, id="a flavor that is not known"),
        pytest.param(
            job(pods=(A100, HOPPER)), offers(("a100", 6), ("h100", 6)), None, id="a flavor for each podSet"
        ),
        pytest.param(
            job(pods=(HOPPER, HOPPER)),
            offers(("a100", 6), ("h100", 6)),
            too_little(12, 6, "1 of 2", " by 2 podSets"),
            id="podSets that share one",
        ),
    ],
)
def test_capacity(asks: Workload, candidate: Cluster, reason: str | None) -> None:
    assert FILTERS["Capacity"](asks, candidate) == reason


@pytest.mark.parametrize(
    ("candidate", "room"),
    [
        pytest.param(offers(("a100", 16), ("h100", 8, 4)), Room.FULL, id="its own is full"),
        pytest.param(offers(("a100", 16, 16), ("h100", 8)), Room.NOMINAL, id="its own is free"),
        pytest.param(offers(("a100", 16)), Room.FULL, id="none is its"),
    ],
)
def test_room(candidate: Cluster, room: Room) -> None:
    assert room_of(headroom(wants(8), candidate)) is room


def test_those_before_it_take_from_the_flavors_that_they_may_use() -> None:
    candidate = offers(("a100", 8), ("h100", 8))
    candidate.add_waiting([wants(8)])
    assert [room_of(headroom(wants(8, one), candidate)) for one in ("a100", "h100")] == [
        Room.NOMINAL,
        Room.FULL,
    ]


@pytest.mark.parametrize(
    ("candidate", "what"),
    [
        pytest.param(
            offers(("a100", 16), ("h100", 8, 8)), f"0 of 8 {GPU} free (8 used by 0 jobs)", id="full"
        ),
        pytest.param(
            offers(("a100", 16)),
            f"ClusterQueue cluster-queue has no flavor of {GPU} that its Pods may use",
            id="none",
        ),
    ],
)
def test_shortage(candidate: Cluster, what: str) -> None:
    assert shortage(wants(8), candidate) == what


def test_a_flavor_is_judged_once_for_all_resources_of_equal_podsets(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Flavor] = []
    admits = Flavor.admits
    monkeypatch.setattr(Flavor, "admits", lambda self, pods: judged.append(self) or admits(self, pods))
    names = [f"r{number}" for number in range(20)]
    [template] = gpu_pods(1, **dict.fromkeys(names, 1))
    many = job(pods=({"spec": template["spec"] | {"nodeSelector": {"accelerator": "h100"}}},) * 5)
    found = queues(*((name, flavor, 99) for name in (GPU, *names) for flavor in FLAVORS))
    candidate = cluster(queue_facts=with_flavors(found, FLAVORS))
    assert FILTERS["Capacity"](many, candidate) is None
    assert len(judged) == len(FLAVORS)


@pytest.mark.parametrize(("number", "may"), [(32, False), (33, True)])
def test_of_more_tolerations_than_are_compared_each_taint_counts_as_tolerated(number: int, may: bool) -> None:
    others = [{"key": f"k{at}", "operator": "Exists"} for at in range(number)]
    reason = FILTERS["Capacity"](wants(8, tolerations=others), offers(("spot", 16)))
    assert (reason is None) is may
