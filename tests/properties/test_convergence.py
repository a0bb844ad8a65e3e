"""
From any world, with a crash between any two writes, the controller comes to rest in one and the same world.

Pure: the hub is `tests.support.memory`, there is no HTTP and no clock.
"""

import copy
from collections.abc import Iterable
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from placement_ac.cache.store import Cache
from placement_ac.core.api import constants
from placement_ac.core.api.constants import Kind
from placement_ac.core.inputs.state import HubFacts, Key, Snapshot
from placement_ac.core.plan.diff import Action, Apply, Delete
from tests.support.builders import (
    AT_ONCE,
    NOW,
    NS,
    Raw,
    check,
    check_with,
    decision,
    foreign_cluster,
    foreign_config,
    kind_of,
    multikueue_check,
    our_cluster,
    our_config,
    placement,
    secret,
    undecided,
    unreadable,
)
from tests.support.memory import MemoryHub, carry_out, id_of, settle, todo

PLACEMENTS = ("a", "a-b", "p")
CLUSTERS = ("b-c", "c", "x")
CHECKS = ("one", "two")
ELSEWHERE = "elsewhere"
SPACES = (NS, ELSEWHERE)
ADOPT = {constants.ANNOTATION_ADOPT: "true"}

placements = st.sampled_from(PLACEMENTS)
real_clusters = st.sampled_from(CLUSTERS)
owners = st.lists(st.sampled_from(("one", "two", "mk-a", "mk-p")), max_size=2, unique=True)
annotations = st.sampled_from(({}, {}, ADOPT))
mostly = st.sampled_from((True, True, True, False))
seldom = mostly.map(lambda yes: not yes)
selected = st.sampled_from((None, None, 0, 1, 2))


@st.composite
def worlds(draw: st.DrawFn) -> list[Raw]:
    """Placements with checks, most of them in order; and what may be there from before, ours or not."""
    objects = [raw for name in PLACEMENTS if draw(mostly) for raw in draw(branches(name))]
    objects += [secret(f"multikueue-{cluster}") for cluster in CLUSTERS if draw(mostly)]
    objects += draw(st.lists(leftovers, max_size=4))
    if draw(seldom):
        objects.append(check_with({"kind": "Typo"}, "one"))
    return list({id_of(raw): raw for raw in objects}.values())


@st.composite
def branches(draw: st.DrawFn, of: str) -> list[Raw]:
    """A Placement and what belongs to it."""
    spaces = (NS,) * draw(mostly) + (ELSEWHERE,) * draw(seldom)
    objects = [placement(of, draw(selected), namespace=namespace) for namespace in spaces]
    objects += [check(name, of) for name in CHECKS if draw(seldom)] or [check(f"of-{of}", of)] * draw(mostly)
    objects += [multikueue_check(f"mk-{of}", of)] * draw(seldom)
    for namespace in (NS, *spaces[1:]):
        indexes = range(1, draw(st.integers(1, 2)) + 1)
        objects += [draw(decisions(of, index, namespace)) for index in indexes]
    return objects


def decisions(of: str, index: int, namespace: str = NS) -> st.SearchStrategy[Raw]:
    entries = st.one_of(
        real_clusters, real_clusters, st.tuples(real_clusters, st.integers(-2, 2)), st.just("")
    )
    good = st.builds(
        lambda cs, group: decision(*cs, of=of, index=index, group=group, namespace=namespace),
        st.lists(entries, max_size=3),
        st.integers(0, 2),
    )
    odd = st.sampled_from((undecided(of, index, namespace), unreadable(of, index, namespace)))
    return st.one_of(good, good, good, odd.map(copy.deepcopy))


def _config(of: str, listed: list[tuple[str, bool]], owners: list[str], stripped: bool) -> Raw:
    rest = {"labels": {}} if stripped else {}
    clusters = dict.fromkeys(cluster if shared else f"{of}-{cluster}" for cluster, shared in listed)
    return our_config(*clusters, of=of, owners=owners, **rest)


def _cluster(cluster: str, of: str | None, owners: list[str], stripped: bool) -> Raw:
    return our_cluster(cluster, of, owners=owners, **({"labels": {}} if stripped else {}))


pairs = st.tuples(real_clusters, st.booleans())
leftovers = st.one_of(
    st.builds(_config, placements, st.lists(pairs, max_size=3), owners, seldom),
    st.builds(_cluster, real_clusters, st.one_of(st.none(), placements), owners, seldom),
    st.builds(foreign_config, placements, st.just("by-hand"), annotations=annotations),
    st.builds(
        lambda of, cluster, notes: foreign_cluster(f"{of}-{cluster}" if of else cluster, annotations=notes),
        st.one_of(st.none(), placements),
        real_clusters,
        annotations,
    ),
    real_clusters.map(lambda cluster: secret(f"multikueue-{cluster}", b"\xff")),
)
facts = st.builds(
    HubFacts,
    naming=st.sampled_from((constants.PER_PLACEMENT, constants.SHARED)),
    clusters_max=st.integers(1, 3),
    namespaces=st.sampled_from(((NS,), (NS, ELSEWHERE), (ELSEWHERE, NS))),
)
hubs = st.builds(MemoryHub, worlds(), facts)
quick = settings(max_examples=150, derandomize=True)


def what_matters(hub: MemoryHub) -> dict[Any, Any]:
    """Everything but what the API server numbers as it goes."""
    return {id_: _without_numbers(raw) for id_, raw in hub.objects.items()}


def _without_numbers(raw: Raw) -> Raw:
    metadata = {k: v for k, v in raw["metadata"].items() if k not in ("uid", "resourceVersion")}
    return {k: v for k, v in raw.items() if k != "metadata"} | {"metadata": metadata}


@quick
@given(hubs)
def test_it_comes_to_rest_and_a_new_start_finds_nothing_to_do(hub: MemoryHub) -> None:
    settle(hub, hub.world())
    assert settle(hub, hub.world()) == []


@quick
@given(hubs, st.integers(0, 12))
def test_a_crash_between_any_two_writes_changes_nothing_of_the_end(hub: MemoryHub, survived: int) -> None:
    crashed = copy.deepcopy(hub)
    done = settle(hub, hub.world())
    world = crashed.world()
    for action in done[:survived]:
        carry_out(crashed, world, action)
    settle(crashed, crashed.world())
    assert what_matters(crashed) == what_matters(hub)


changes = st.one_of(
    st.one_of([decisions(of, index, where) for of in PLACEMENTS for index in (1, 2) for where in SPACES]),
    st.builds(check, st.sampled_from(CHECKS), placements),
    st.just(check_with(None, "one")),
    st.builds(placement, placements, selected, namespace=st.sampled_from(SPACES)),
    leftovers,
)


@quick
@given(hubs, st.lists(st.tuples(changes, seldom), min_size=1, max_size=4))
def test_whatever_changes_the_keys_it_touches_are_enough(
    hub: MemoryHub, news: list[tuple[Raw, bool]]
) -> None:
    world = hub.world()
    settle(hub, world)
    for raw, gone in news:
        if gone:
            found = hub.objects.pop(id_of(raw), None)
            touched = world.remove(kind_of(raw), found) if found else set()
        else:
            raw["metadata"]["uid"] += f"/{hub.version}" * (id_of(raw) not in hub.objects)
            hub.put(raw)
            touched = world.put(kind_of(raw), hub.objects[id_of(raw)])
        settle(hub, world, touched)
        everything = world.keys()
        assert [action for key in everything for action in todo(world, key)] == []


TWO_PAIRS_OF_ONE_NAME = [
    *(check("of-a", "a"), check("of-a-b", "a-b"), placement("a", 1), placement("a-b", 1)),
    *(decision("b-c", of="a"), decision("c", of="a-b"), secret("multikueue-b-c"), secret("multikueue-c")),
]


@quick
@example(MemoryHub(TWO_PAIRS_OF_ONE_NAME, HubFacts()), "of-a", "a")
@given(hubs, st.sampled_from((*CHECKS, *(f"of-{name}" for name in PLACEMENTS))), placements)
def test_that_a_check_is_gone_may_be_heard_after_what_it_owned(
    hub: MemoryHub, gone: str, reconciled_last: str
) -> None:
    world = hub.world()
    settle(hub, world)
    last, touched_last = Key("placement", reconciled_last), set[Key]()
    check_gone = hub.objects.pop((constants.ADMISSION_CHECK, "", gone), None)
    heard_last = [check_gone] if check_gone else []
    while news := hub.collect() + heard_last:
        heard_last = []
        for raw in news:
            touched = world.remove(kind_of(raw), raw)
            touched_last |= touched & {last}
            settle(hub, world, touched - {last})
    settle(hub, world, touched_last)
    everything = world.keys()
    assert [action for key in everything for action in todo(world, key)] == []


@quick
@given(hubs, st.permutations(PLACEMENTS))
def test_nothing_that_is_not_ours_is_touched(hub: MemoryHub, order: list[str]) -> None:
    world = hub.world()
    for key in [Key("placement", name) for name in order * 3] + [Key("check", "one")]:
        seen = world.snapshot(key, NOW, {})
        for action in todo(world, key):
            assert may(action, hub, seen), action
            carry_out(hub, world, action)


def may(action: Action, hub: MemoryHub, snapshot: Snapshot) -> bool:
    found = hub.objects.get((action.kind, "", action.name))
    if not isinstance(action, Apply | Delete):
        return found is not None and found["spec"]["controllerName"] == constants.OUR_CONTROLLER
    if found is None:
        return isinstance(action, Apply) and action.observed is None
    metadata = found["metadata"]
    handed_over = metadata.get("annotations") == ADOPT and isinstance(action, Apply)
    labels = metadata.get("labels", {})
    mine = labels.get(constants.LABEL_PLACEMENT, snapshot.name) == snapshot.name
    return handed_over or ("managedFields" in metadata and mine)


Event = tuple[str, Kind, Raw]


@st.composite
def histories(draw: st.DrawFn) -> tuple[MemoryHub, list[Event]]:
    """A hub, and all that a watch may tell of how it came to be: late, doubled, in any order."""
    hub = draw(hubs)
    events: list[Event] = [("put", kind, raw) for (kind, _, _), raw in hub.objects.items()]
    for (kind, _, _), raw in list(hub.objects.items()):
        if draw(st.booleans()):
            events.append(("put", kind, _as_it_was(raw, "0")))
        if draw(st.booleans()):
            events.append(("remove", kind, _as_it_was(raw, "0", uid="an earlier one")))
            events.append(("put", kind, _as_it_was(raw, "0", uid="an earlier one")))
        if draw(st.booleans()):
            del hub.objects[kind, raw["metadata"].get("namespace", ""), raw["metadata"]["name"]]
            events.append(("remove", kind, raw))
    doubled = draw(st.lists(st.sampled_from(events), max_size=5)) if events else []
    return hub, draw(st.permutations(events + doubled))


def _as_it_was(raw: Raw, version: str, **metadata: str) -> Raw:
    earlier = copy.deepcopy(raw)
    earlier.pop("status", None)
    earlier["metadata"] |= {"resourceVersion": version, "labels": {"earlier": "yes"}} | metadata
    return earlier


def tell_all(world: Cache, events: Iterable[Event]) -> None:
    for change, kind, raw in events:
        (world.put if change == "put" else world.remove)(kind, raw)


@quick
@given(histories())
def test_the_order_of_events_does_not_matter(history: tuple[MemoryHub, list[Event]]) -> None:
    hub, events = history
    world = Cache(hub.facts, policy=AT_ONCE)
    world.replace(constants.MANAGED_CLUSTER, (), "1")  # an empty list says something as well
    tell_all(world, events)
    straight = hub.world()
    assert world.keys() == straight.keys()
    for key in straight.keys() | {Key("placement", name) for name in PLACEMENTS}:
        assert world.snapshot(key, NOW, {}) == straight.snapshot(key, NOW, {})
