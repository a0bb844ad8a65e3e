"""A swap comes to the very write that a look at everything comes to, whatever there is, and whatever came."""

import copy

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from placement_ac.cache.mapping import route
from placement_ac.cache.store import World
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, PLACEMENT_DECISION, Kind
from placement_ac.core.api.decode import decision
from placement_ac.core.inputs.state import HubFacts, Policy
from placement_ac.core.plan.diff import diff, first_phases
from placement_ac.core.plan.plan import complete, outline, plan
from placement_ac.core.plan.swap import is_at_rest, swap
from tests.support import builders
from tests.support.builders import NOW, Raw, kind_of
from tests.support.memory import MemoryHub, show

CLUSTERS = ("a", "b", "c", "d", "e")
DECISION = "p-decision-1"

mostly = st.sampled_from((True, True, True, True, True, False))
entries = st.one_of(
    st.sampled_from(CLUSTERS),
    st.sampled_from(CLUSTERS),
    st.tuples(st.sampled_from(CLUSTERS), st.integers(-2, 2)),
    st.sampled_from(("", "unknown")),
)
swaps = st.lists(st.sampled_from(CLUSTERS), min_size=2, max_size=2, unique=True)
decisions = st.one_of(swaps, swaps, swaps, st.lists(entries, max_size=4)).map(
    lambda clusters: builders.decision(*clusters)
)
changes = st.one_of(
    st.sampled_from(CLUSTERS).map(lambda cluster: builders.secret(f"multikueue-{cluster}", b"\xff")),
    st.sampled_from(CLUSTERS).map(lambda cluster: builders.secret(f"multikueue-{cluster}")),
    st.sampled_from(CLUSTERS).map(builders.our_cluster),
    st.sampled_from(CLUSTERS).map(lambda cluster: builders.our_cluster(cluster, owners=["another"])),
    st.sampled_from(CLUSTERS).map(lambda cluster: builders.foreign_cluster(f"p-{cluster}")),
    st.sampled_from(CLUSTERS).map(
        lambda cluster: builders.managed_clusters(cluster, unreachable=[cluster])[0]
    ),
    st.sampled_from(CLUSTERS).map(lambda cluster: builders.scores(cluster, gpu=7)),
    st.builds(builders.workload, cluster=st.sampled_from(("", "p-a", "p-b")), check=st.just("Ready")),
    st.builds(builders.workload, finished=st.just(True), check=st.just("Ready")),
    st.builds(builders.check, st.sampled_from(("check", "another")), st.sampled_from(("p", "q"))),
    st.builds(builders.placement, selected=st.sampled_from((None, 2, 3))),
    st.just(builders.placement(selected=2, groups=[([DECISION], 2)], weights={"usage/gpu": 1})),
    st.just(builders.decision("c", index=2)),
    st.just(builders.our_config("p-a", "p-e")),
)


def fleet() -> list[Raw]:
    """Two of five clusters are listed, and each has a MultiKueueCluster that is kept for a while."""
    kept = [builders.our_cluster(cluster) for cluster in CLUSTERS[2:]]
    return [
        builders.check(),
        builders.placement(selected=2, groups=[([DECISION], 2)]),
        builders.decision("a", "b"),
        *builders.secrets(*CLUSTERS),
        *builders.made("a", "b"),
        *builders.managed_clusters(*CLUSTERS),
        *kept,
        *(builders.scores(cluster, gpu=number) for number, cluster in enumerate(CLUSTERS)),
    ]


def look(hub: MemoryHub, world: World) -> int:
    """Compare both ways, and do what the long one says, as often as `reconcile` would; return the swaps."""
    swaps = 0
    for _ in range(3):
        before = world.at_rest("p", NOW)
        write = swap(before) if before else None
        seen = builders.snapshot(world)
        drawn = outline(seen)
        phases = first_phases(seen, drawn)
        if before and write:
            swaps += 1
            assert phases == ((write,),)
            assert complete(before, outline(before)) == complete(seen, drawn)
            assert diff(before, plan(before)) == diff(seen, plan(seen))
        if not phases and is_at_rest(seen, drawn):
            world.rest(seen)
        for action in (action for phase in phases for action in phase):
            if action.kind is MULTIKUEUE_CONFIG:
                before = hub.objects.get((MULTIKUEUE_CONFIG, "", "p"))
                hub.act(action)
                told(hub, world, before, hub.objects.get((MULTIKUEUE_CONFIG, "", "p")))
    return swaps


def told(hub: MemoryHub, world: World, before: Raw | None, after: Raw | None) -> None:
    """Tell the world of a change: it touches the same keys as where nobody is at rest."""
    nobody_rests = world.copy()
    touched = show(hub, world, before, after)
    assert touched == show(hub, nobody_rests, before, after)
    if after and kind_of(after) is PLACEMENT_DECISION:
        assert touched == route(PLACEMENT_DECISION, [decision(raw) for raw in (before, after) if raw], world)


def played(news: list[Raw]) -> int:
    """Let it all come, one after the other, and return how many swaps came of it."""
    hub = MemoryHub(fleet(), HubFacts())
    world = builders.world(hub.objects.values(), policy=Policy(loss_grace=0.0))
    swaps = look(hub, world)
    for raw in news:
        kind: Kind = kind_of(raw)
        id_ = kind, raw["metadata"].get("namespace", ""), raw["metadata"]["name"]
        before = hub.objects.get(id_)
        hub.put(copy.deepcopy(raw))
        told(hub, world, before, hub.objects[id_])
        swaps += look(hub, world)
    return swaps


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(decisions, decisions, decisions, changes), min_size=1, max_size=6))
def test_both_ways_come_to_the_same_write(news: list[Raw]) -> None:
    event(f"swaps: {played(news)}")


def test_swaps_are_among_what_is_compared() -> None:
    news = [builders.decision(*clusters) for clusters in (("b", "e"), ("e", "c"), ("c", "a"), ("d", "b"))]
    assert played(news) == len(news)
