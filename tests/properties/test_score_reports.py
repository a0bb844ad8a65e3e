"""Scores that are reported: noise changes no decision of OCM's scheduler, and damping limits the writes."""

import itertools
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_placement.scheduling import Fleet, schedule
from placement_ac.core.inputs.score_reports import ScorePolicy
from tests.support.score_reports import POLICY, VirtualScores, with_policy

NS = "kueue-system"
NOISE = 8
Raw = dict[str, Any]


def _cluster(name: str) -> Raw:
    labels = {"cluster.open-cluster-management.io/clusterset": "s"}
    return {
        "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"hubAcceptsClient": True},
    }


COORDINATE = {"type": "AddOn", "addOn": {"resourceName": "placement-ac", "scoreName": "gpuFree"}}
PLACEMENT: Raw = {
    "kind": "Placement",
    "metadata": {"name": "p", "namespace": NS, "uid": "p"},
    "spec": {
        "numberOfClusters": 1,
        "clusterSets": ["s"],
        # As in Story 3: nothing of OCM's damps the choice.
        "prioritizerPolicy": {
            "mode": "Exact",
            "configurations": [{"scoreCoordinate": COORDINATE, "weight": 1}],
        },
    },
}
SETS: list[Raw] = [
    {"kind": "ManagedClusterSet", "metadata": {"name": "s"}, "spec": {}},
    {
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "s", "namespace": NS},
        "spec": {"clusterSet": "s"},
        "status": {"conditions": [{"type": "Bound", "status": "True"}]},
    },
]


class Hub:
    """Clusters whose scores are reported, and OCM's scheduler, which decides after each write."""

    def __init__(self, clusters: Sequence[str], policy: ScorePolicy = POLICY) -> None:
        self.world = VirtualScores(policy)
        self.clusters = [_cluster(name) for name in clusters]
        self.decisions = [self.decided()]
        """Every decision that differs from the one before."""

    def decided(self) -> tuple[str, ...]:
        written = [{"kind": "AddOnPlacementScore", **obj} for obj in self.world.objects.values()]
        result = schedule(PLACEMENT, Fleet.of([*self.clusters, *SETS, *written]), self.world.now)
        entries = (entry for decision in result.decisions for entry in decision["status"]["decisions"])
        return tuple(entry["clusterName"] for entry in entries)

    def read(self, cluster: str, value: int) -> None:
        before = len(self.world.writes)
        self.world.read(cluster, gpuFree=value)
        if len(self.world.writes) > before:
            decided = self.decided()
            if decided != self.decisions[-1]:
                self.decisions.append(decided)
            self.world.selected = decided


def _noisy(mean: int, noise: random.Random) -> int:
    return min(100, mean + noise.randint(-NOISE, NOISE))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "means", [(50, 50, 50, 50, 50), (50, 45, 55, 48, 52), (100, 100, 100), (20, 90, 89)], ids=str
)
def test_noise_changes_no_decision_in_a_day(means: tuple[int, ...], seed: int) -> None:
    noise, hub = random.Random(seed), Hub([f"c{number}" for number in range(len(means))])

    def read() -> None:
        for number, mean in enumerate(means):
            hub.read(f"c{number}", _noisy(mean, noise))

    read()  # the first scores make the first choice
    first = hub.decisions[-1]
    hub.decisions = [first]
    hub.world.wait(86_400, read)
    assert hub.decisions == [first]
    assert hub.world.now - timedelta(hours=24) == hub.world.writes[0][0]


def test_the_same_noise_without_damping_changes_it_all_the_time() -> None:
    """The scenario shows something: without step and hold, decisions follow the noise."""
    noise, hub = random.Random(0), Hub(["c0", "c1"], with_policy(step=1, hold=0.0, interval=15.0))

    def read() -> None:
        for name in ("c0", "c1"):
            hub.read(name, _noisy(50, noise))

    hub.world.wait(3600, read)
    assert len(hub.decisions) > 20


READINGS = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(-100, 100)), st.integers(1, 5)),
    max_size=40,
)
"""A cluster, its value from then on (None: it cannot be read), and for how many readings nothing changes."""


@settings(max_examples=60, deadline=None)
@given(READINGS, st.lists(st.booleans(), min_size=40, max_size=40))
def test_damping_limits_the_writes(changes: list[tuple[str, int | None, int]], restarts: list[bool]) -> None:
    hub = Hub("abc")
    world, values = hub.world, dict.fromkeys("abc", 0)
    readable: dict[str, int | None] = dict(values)

    def read() -> None:
        for name, value in readable.items():
            if value is None:
                world.fail(name)
                continue
            hub.read(name, value)
            assert world.value(name) is not None, "it expires only while it cannot be read"

    for (name, value, readings), restarts_now in zip(changes, restarts, strict=False):
        readable[name] = value
        if restarts_now:
            world.restart()
        world.wait(readings * world.policy.reading, read)
    for name in "abc":
        writes = [(at, scores["gpuFree"]) for at, cluster, scores in world.writes if cluster == name]
        for (before_at, before), (at, value) in itertools.pairwise(writes):
            apart = (at - before_at).total_seconds()
            assert apart >= world.policy.interval
            # An expired score counts no longer, so the next value may be any.
            assert value == before or abs(value - before) >= world.policy.step or apart > world.policy.valid
