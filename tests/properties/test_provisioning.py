"""
From any state of a cluster's credentials, and whatever is deleted by hand, they come to rest in order.

Pure: the hub is `tests.support.memory`; OCM is played by `ocm`, which reports tokens and grants rights.
"""

import copy
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from placement_ac.cache.store import Cache
from placement_ac.core.api import constants
from placement_ac.core.api.constants import ACCOUNT, ADDON_ACCOUNT, MULTIKUEUE_CLUSTER, PERMISSION, SECRET
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.state import HubFacts, Key
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.diff import Action, Apply, Delete
from tests.support.builders import (
    NOW,
    NS,
    PROVISIONING,
    Raw,
    check,
    decision,
    encoded,
    foreign_cluster,
    grant,
    jwt,
    kubeconfig_spec,
    managed_cluster,
    multikueue_check,
    our_cluster,
    our_config,
    our_grant,
    our_secret,
    placement,
    secret,
    token,
)
from tests.support.memory import MemoryHub, carry_out, id_of, settle, show, todo

CLUSTERS = ("a", "b")
MADE_NAMES = ("placement-ac", ADDON_ACCOUNT, "before")
ADOPT = {constants.ANNOTATION_ADOPT: "true"}

mostly = st.sampled_from((True, True, True, False))
clusters = st.sampled_from(CLUSTERS)
made_names = st.sampled_from(MADE_NAMES)
grants = st.sampled_from((ACCOUNT, PERMISSION))
owners = st.lists(st.sampled_from(("check", "gone")), max_size=2, unique=True)
notes: st.SearchStrategy[Any] = st.sampled_from(({}, {}, {"annotations": ADOPT}))
stripped: st.SearchStrategy[Any] = st.sampled_from(({}, {}, {}, {"labels": {}}))

parts = st.one_of(
    st.builds(
        lambda kind, cluster, name, owners, done, rest: our_grant(
            kind, cluster, name, owners=owners, done=done, **rest
        ),
        *(grants, clusters, made_names, owners, mostly, stripped),
    ),
    st.builds(
        lambda kind, cluster, name, done, rest: grant(kind, cluster, name, done=done, **rest),
        *(grants, clusters, made_names, st.booleans(), notes),
    ),
    st.builds(token, clusters, made_names),
    st.builds(
        lambda cluster, name, owners, text, rest: our_secret(
            cluster, name, owners=owners, text=text, **({} if name == "before" else rest)
        ),
        *(clusters, made_names, owners, st.sampled_from((None, "old")), stripped),
    ),
    st.builds(lambda cluster, name, rest: secret(f"{name}-{cluster}", **rest), clusters, made_names, notes),
    clusters.map(lambda cluster: secret(f"kueue-admin-{cluster}-kubeconfig")),
    clusters.map(lambda cluster: secret(f"multikueue-{cluster}", b"{")),
)


def standing(cluster: str, name: str, owners: list[str], foreign: bool) -> Raw:
    """A MultiKueueCluster, ours or not, that stands on a Secret."""
    spec = kubeconfig_spec(f"{name}-{cluster}")
    if foreign:
        return foreign_cluster(f"by-hand-{cluster}", spec=spec)
    return our_cluster(cluster, owners=owners or ["check"], spec=spec)


users = st.builds(standing, clusters, made_names, owners, st.booleans())


@st.composite
def hubs(draw: st.DrawFn) -> MemoryHub:
    """Two clusters in any state of making, taking away or adoption."""
    selected = [cluster for cluster in CLUSTERS if draw(st.booleans())]
    objects = [placement(), decision(*selected)] + [check()] * draw(mostly) + [multikueue_check()]
    objects += [managed_cluster(cluster) for cluster in CLUSTERS if draw(mostly)] + [managed_cluster("c")]
    objects += draw(st.lists(parts, max_size=8)) + draw(st.lists(users, max_size=2))
    listed = [raw["metadata"]["name"] for raw in objects if raw["kind"] == "MultiKueueCluster"]
    if listed and draw(st.booleans()):
        objects.append(our_config(*dict.fromkeys(listed)))
    spaces = draw(st.sampled_from(((NS,), ("first", NS))))
    if draw(st.booleans()):
        objects += [placement(namespace="first")] * draw(mostly)
        objects.append(decision(*draw(st.sets(clusters)), namespace="first"))
    return MemoryHub({id_of(raw): raw for raw in objects}.values(), HubFacts(namespaces=spaces), PROVISIONING)


quick = settings(max_examples=100, derandomize=True)


# -- OCM


def ocm(hub: MemoryHub) -> dict[Any, tuple[Raw | None, Raw | None]]:
    """Do what OCM does next, and return what has changed: id → before and after."""
    before = dict(hub.objects)
    for (kind, cluster, name), raw in before.items():
        is_there = (constants.MANAGED_CLUSTER, "", cluster) in before
        if kind in (ACCOUNT, PERMISSION) and is_there and not _is_done(raw):
            hub.put(raw | {"status": grant(kind, cluster, name)["status"]})
        if kind == ACCOUNT and is_there and (SECRET, cluster, name) not in before:
            hub.put(token(cluster, name, uid=f"token-{hub.version}"))
    for kind, namespace, name in before:
        if kind == SECRET and namespace != NS and (ACCOUNT, namespace, name) not in before:
            del hub.objects[SECRET, namespace, name]
    ids = before.keys() | hub.objects.keys()
    return {
        id_: (before.get(id_), hub.objects.get(id_))
        for id_ in sorted(ids, key=str)
        if before.get(id_) != hub.objects.get(id_)
    }


def _is_done(raw: Raw) -> bool:
    return bool(raw.get("status", {}).get("conditions"))


def work(hub: MemoryHub, world: Cache, keys: set[Key] | None = None) -> list[Action]:
    """Let the controller and OCM work in turns until neither has anything to do; return our writes."""
    done = settle(hub, world, keys)
    for _ in range(20):
        changed = ocm(hub)
        if not changed:
            return done
        touched = {key for before, after in changed.values() for key in show(hub, world, before, after)}
        done += settle(hub, world, touched)
    raise AssertionError(f"still not at rest: {done[-5:]}")


# -- what must hold


@quick
@given(hubs())
def test_it_comes_to_rest_and_a_new_start_finds_nothing_to_do(hub: MemoryHub) -> None:
    work(hub, hub.world())
    assert work(hub, hub.world()) == []


@quick
@given(hubs(), st.lists(st.one_of(parts, users, users), max_size=3), st.data())
def test_whatever_is_changed_or_deleted_by_hand_the_keys_it_touches_are_enough(
    hub: MemoryHub, news: list[Raw], data: st.DataObject
) -> None:
    world = hub.world()
    work(hub, world)
    for raw in news:
        before = hub.objects.get(id_of(raw))
        raw["metadata"]["uid"] += f"/{hub.version}"
        hub.put(raw)
        work(hub, world, show(hub, world, before, hub.objects[id_of(raw)]))
    for kinds in ([MULTIKUEUE_CLUSTER], [SECRET, ACCOUNT, PERMISSION], WATCHED_KINDS):
        found = sorted((id_ for id_ in hub.objects if id_[0] in kinds), key=str)
        before = hub.objects.pop(data.draw(st.sampled_from(found)), None) if found else None
        work(hub, world, show(hub, world, before, None))
    assert [action for key in world.keys() for action in todo(world, key)] == []  # noqa: SIM118  no dict
    new_start = hub.world()
    assert [key for key in new_start.keys() if todo(new_start, key)] == []  # noqa: SIM118  likewise


@quick
@given(hubs(), st.integers(0, 8))
def test_a_crash_between_any_two_writes_changes_nothing_of_what_remains(
    hub: MemoryHub, survived: int
) -> None:
    crashed = copy.deepcopy(hub)
    done = settle(hub, hub.world())
    work(hub, hub.world())
    world = crashed.world()
    for action in done[:survived]:
        carry_out(crashed, world, action)
    work(crashed, crashed.world())
    assert set(crashed.objects) == set(hub.objects)


@quick
@given(hubs())
def test_in_the_end_all_is_there_that_is_needed_and_nothing_else(hub: MemoryHub) -> None:
    world = hub.world()
    work(hub, world)
    for cluster in CLUSTERS:
        seen = world.provisioning_inputs(cluster, NOW, {})
        is_ready = isinstance(
            world.snapshot(Key("placement", "p"), NOW, {}).credentials.selected.get(cluster), CredentialSource
        )
        usage = seen.usage
        event(f"selected {usage.selected}, external {seen.external}, in use {usage.in_use}, ready {is_ready}")
        ours = {
            (id_[0].kind, id_[2])
            for id_, raw in hub.objects.items()
            if id_[0] in (ACCOUNT, PERMISSION) and id_[1] == cluster and _is_ours(raw)
        }
        ours |= {
            (id_[0].kind, id_[2])
            for id_, raw in hub.objects.items()
            if id_[0] == SECRET and id_[1] == NS and id_[2].endswith(f"-{cluster}") and _is_ours(raw)
        }
        if not seen.usage.selected or seen.objects.managed_cluster is None:
            assert not ours or _is_stood_on(hub, cluster), "nobody needs it"
        elif not seen.external and not any(_is_foreign(hub, id_) for id_ in _ids(seen.account_name, cluster)):
            assert ours >= {(kind.kind, name) for kind, _, name in _ids(seen.account_name, cluster)}
            assert is_ready


def _ids(name: str, cluster: str) -> list[Any]:
    return [(ACCOUNT, cluster, name), (PERMISSION, cluster, name), (SECRET, NS, f"{name}-{cluster}")]


def _is_ours(raw: Raw) -> bool:
    return any(
        entry["manager"] == constants.FIELD_MANAGER for entry in raw["metadata"].get("managedFields", ())
    )


def _is_foreign(hub: MemoryHub, id_: Any) -> bool:
    return id_ in hub.objects and not _is_ours(hub.objects[id_])


def _is_stood_on(hub: MemoryHub, cluster: str) -> bool:
    return any(
        raw["spec"]["clusterSource"]["kubeConfig"]["location"] in {f"{name}-{cluster}" for name in MADE_NAMES}
        for (kind, _, _), raw in hub.objects.items()
        if kind == MULTIKUEUE_CLUSTER
    )


@quick
@given(hubs())
def test_nothing_that_is_not_ours_is_touched(hub: MemoryHub) -> None:
    world = hub.world()
    for key in sorted(world.keys(), key=str) * 3:
        for action in todo(world, key):
            assert _may(action, hub), action
            carry_out(hub, world, action)


def _may(action: Action, hub: MemoryHub) -> bool:
    if not isinstance(action, Apply | Delete) or action.kind not in (ACCOUNT, PERMISSION, SECRET):
        return True
    namespace = action.body["metadata"]["namespace"] if isinstance(action, Apply) else action.namespace
    found = hub.objects.get((action.kind, namespace, action.name))
    if found is None:
        return isinstance(action, Apply) and action.observed is None
    return _is_ours(found) or found["metadata"].get("annotations") == ADOPT


@quick
@given(hubs(), clusters, st.integers(1, 3))
def test_a_new_token_writes_the_secret_and_nothing_else(hub: MemoryHub, cluster: str, times: int) -> None:
    world = hub.world()
    work(hub, world)
    name = world.provisioning_inputs(cluster, NOW).account_name
    before = hub.objects.get((SECRET, cluster, name))
    if before is None:
        return
    for number in range(times):
        data = {"token": encoded(jwt(f"{cluster}-{number}"))}
        hub.put(before | {"data": before["data"] | data})
        touched = show(hub, world, before, hub.objects[SECRET, cluster, name])
        written = [(action.kind, action.name) for action in settle(hub, world, touched)]
        assert written in ([], [(SECRET, f"{name}-{cluster}")])
        made = world.provisioning_inputs(cluster, NOW)
        if (
            made.objects.secret
            and made.usage.in_use
            and made.objects.managed_cluster
            and made.usage.owners
            and not _blocked(hub, made)
        ):
            assert written


def _blocked(hub: MemoryHub, made: Any) -> bool:
    return any(_is_foreign(hub, id_) for id_ in _ids(made.account_name, made.cluster))
