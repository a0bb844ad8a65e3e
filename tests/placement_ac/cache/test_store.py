"""The cache after events and lists in any order, and the keys that a change touches."""

import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from placement_ac.cache.mapping import possible_pairs
from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    token_kind,
)
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.state import HubFacts, Key, PlacementCluster, Since, SinceKind
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from tests.support.builders import (
    NOW,
    PROVISIONING,
    SERVER,
    Raw,
    check,
    check_with,
    decision,
    foreign_cluster,
    foreign_config,
    grant,
    inputs,
    jwt,
    kind_of,
    kubeconfig,
    kubeconfig_spec,
    managed_cluster,
    multikueue_check,
    our_cluster,
    our_config,
    our_grant,
    our_objects,
    our_secret,
    placement,
    profile,
    provided,
    provisioned_cluster,
    scores,
    secret,
    secrets,
    snapshot,
    token,
    undecided,
    world,
)

SHARED = HubFacts(naming="{cluster}")
HOUR = timedelta(hours=1)


def placements(*names: str) -> set[Key]:
    return {Key("placement", name) for name in names}


def decided_clusters(cache: Cache, name: str = "p") -> list[str]:
    """The clusters that a Placement's decisions hold, by the cache."""
    return [cluster.cluster for cluster in cache.snapshot(Key("placement", name), NOW, {}).decisions.clusters]


def at(version: int, *clusters: str, uid: str = "1") -> Raw:
    """A version of the one PlacementDecision that these tests follow."""
    return decision(*clusters, version=version, uid=uid)


# -- late, repeated and lost events


@pytest.mark.parametrize(
    ("events", "clusters"),
    [
        pytest.param([("put", at(1, "a"))], ["a"], id="one"),
        pytest.param([("put", at(1, "a")), ("put", at(2, "b"))], ["b"], id="in order"),
        pytest.param([("put", at(2, "b")), ("put", at(1, "a"))], ["b"], id="a late one"),
        pytest.param([("put", at(9, "a")), ("put", at(10, "b"))], ["b"], id="versions are numbers"),
        pytest.param([("put", at(1, "a")), ("put", at(1, "b"))], ["a"], id="a repeated one"),
        pytest.param([("put", at(1, "a")), ("remove", at(2, "a"))], [], id="gone"),
        pytest.param([("remove", at(2, "a")), ("put", at(1, "a"))], [], id="gone before it was seen"),
        pytest.param(
            [("put", at(1, "a")), ("remove", at(2)), ("put", at(1, "a"))], [], id="gone, and a late event"
        ),
        pytest.param(
            [("put", at(1, "a")), ("remove", at(2)), ("put", at(3, "b", uid="2"))], ["b"], id="made again"
        ),
        pytest.param(
            [("put", at(1, "a")), ("put", at(3, "b", uid="2")), ("remove", at(2))],
            ["b"],
            id="made again first",
        ),
        pytest.param([("remove", at(2))], [], id="never seen"),
        pytest.param(
            [
                ("put", at(1, "a") | {"metadata": at(1)["metadata"] | {"resourceVersion": "x"}}),
                ("put", at(1, "b")),
            ],
            ["b"],
            id="a version that is no number",
        ),
    ],
)
def test_the_newest_version_is_known(events: list[tuple[str, Raw]], clusters: list[str]) -> None:
    seen = world(placement())
    for change, raw in events:
        (seen.put if change == "put" else seen.remove)(PLACEMENT_DECISION, raw)
    assert decided_clusters(seen) == clusters


def test_a_change_without_effect_touches_no_key() -> None:
    seen = world(placement(), at(2, "a"))
    assert seen.put(PLACEMENT_DECISION, at(2, "a")) == set()
    assert seen.put(PLACEMENT_DECISION, at(1, "b")) == set()
    assert seen.remove(PLACEMENT_DECISION, at(1, uid="another")) == set()
    assert seen.remove(PLACEMENT_DECISION, decision(of="q")) == set()


@pytest.mark.parametrize(
    ("known", "items", "version", "clusters"),
    [
        pytest.param(at(5, "a"), [], "6", [], id="it vanished"),
        pytest.param(at(5, "a"), [], "4", ["a"], id="it is newer than the list"),
        pytest.param(at(5, "a"), [at(7, "b")], "7", ["b"], id="it changed"),
        pytest.param(at(5, "a"), [at(4, "b")], "4", ["a"], id="it changed after the list"),
        pytest.param(at(5, "a"), [at(6, "b", uid="2")], "7", ["b"], id="it was made again"),
        pytest.param(at(5, "a", uid="2"), [at(3, "b")], "4", ["a"], id="it was made again after the list"),
    ],
)
def test_a_list_after_a_gap_shows_the_changes_that_the_watch_missed(
    known: Raw, items: list[Raw], version: str, clusters: list[str]
) -> None:
    seen = world(placement())
    seen.put(PLACEMENT_DECISION, known)
    before = decided_clusters(seen)
    touched = seen.replace(PLACEMENT_DECISION, items, version)
    assert (decided_clusters(seen), touched) == (clusters, placements("p") if clusters != before else set())


def test_a_list_that_was_under_way_brings_nothing_back() -> None:
    seen = world(placement(), at(5, "a"))
    seen.remove(PLACEMENT_DECISION, at(9))
    seen.replace(PLACEMENT_DECISION, [at(5, "a")], "8")
    assert decided_clusters(seen) == []


def test_a_restored_hub_begins_its_versions_again() -> None:
    seen = world(placement())
    seen.replace(PLACEMENT_DECISION, [at(500, "a")], "900")
    assert seen.replace(PLACEMENT_DECISION, [at(5, "b")], "7") == placements("p")
    assert decided_clusters(seen) == ["b"]


def test_a_restore_that_is_listed_in_parts_makes_nothing_complete_before_its_end() -> None:
    seen = world(placement(), check())
    seen.replace(PLACEMENT_DECISION, [at(500, "a")], "900")
    assert (seen.begin_replace(PLACEMENT_DECISION, "901"), decided_clusters(seen), seen.has_synced) == (
        set(),
        ["a"],
        True,
    )
    assert seen.begin_replace(PLACEMENT_DECISION, "7") == placements("p")
    assert (decided_clusters(seen), seen.has_synced) == ([], False)
    seen.put(PLACEMENT_DECISION, at(5, "b"))
    assert seen.end_replace(PLACEMENT_DECISION, {("kueue-system", "p-decision-1")}, "7") == set()
    assert (decided_clusters(seen), seen.has_synced) == (["b"], True)


def test_a_restore_brings_back_what_had_gone() -> None:
    seen = world(placement())
    seen.replace(PLACEMENT_DECISION, [at(500, "a")], "900")
    seen.remove(PLACEMENT_DECISION, at(901))
    seen.replace(PLACEMENT_DECISION, [at(5, "a")], "7")
    assert decided_clusters(seen) == ["a"]


def test_nothing_is_complete_before_every_kind_has_been_listed() -> None:
    seen = Cache()
    for kind in WATCHED_KINDS:
        assert (seen.has_synced, str(kind) in " ".join(seen.unsynced())) == (False, True)
        seen.put(ADMISSION_CHECK, check())
        seen.replace(kind, [], "")
    assert (seen.has_synced, seen.unsynced()) == (True, [])


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        pytest.param(PLACEMENT, placement(namespace="elsewhere"), id="Placement"),
        pytest.param(PLACEMENT_DECISION, decision("a", namespace="elsewhere"), id="PlacementDecision"),
        pytest.param(SECRET, secret("multikueue-a", namespace="elsewhere"), id="Secret"),
        pytest.param(CLUSTER_PROFILE, profile("a", "elsewhere", secret=("kueue-system", "s")), id="profile"),
    ],
)
def test_other_namespaces_are_ignored(kind: Any, raw: Raw) -> None:
    seen = world(check(), placement(), decision("a"))
    before = snapshot(seen)
    assert (seen.put(kind, raw), snapshot(seen)) == (set(), before)


# -- the keys that a change touches

BEFORE = [check(), placement(), decision("a"), *our_objects("a"), check("two", "q"), decision("b", of="q")]


@pytest.mark.parametrize(
    ("raw", "touched"),
    [
        pytest.param(check("new", "x"), placements("x"), id="a check"),
        pytest.param(check("check", "q", version=2), placements("p", "q"), id="changed parameters"),
        pytest.param(
            check_with(None, version=2), placements("p") | {Key("check", "check")}, id="parameters turned bad"
        ),
        pytest.param(check_with(None, "bad"), {Key("check", "bad")}, id="bad parameters"),
        pytest.param(multikueue_check("mk", "q"), placements("q"), id="a multikueue check"),
        pytest.param(multikueue_check("mk", ""), set(), id="a multikueue check without config"),
        pytest.param(placement("q"), placements("q"), id="a Placement"),
        pytest.param(decision("a", version=2), placements("p"), id="a decision"),
        pytest.param(
            decision("a", version=2, labels={}), placements("p"), id="a decision that lost its label"
        ),
        pytest.param(decision("a", of="x", labels={}), set(), id="a decision without label"),
        pytest.param(secret("multikueue-a"), placements("p"), id="a Secret by name"),
        pytest.param(secret("kueue-admin-b-kubeconfig"), placements("q"), id="a Secret by the other name"),
        pytest.param(secret("unrelated"), set(), id="another Secret"),
        pytest.param(profile("b"), placements("q"), id="a ClusterProfile"),
        pytest.param(scores("a", gpu=1), placements("p"), id="scores"),
        pytest.param(foreign_config("x"), placements("x"), id="a foreign config"),
        pytest.param(our_config(of="x"), placements("x"), id="our config"),
        pytest.param(our_cluster("z", "x"), placements("x"), id="our cluster"),
        pytest.param(foreign_cluster("q-a-b"), placements("q", "q-a"), id="a name that may be wanted"),
        pytest.param(
            our_cluster("a", version=2, labels={}), placements("p", "p-a"), id="a cluster without labels"
        ),
    ],
)
def test_the_keys_that_a_change_touches(raw: Raw, touched: set[Key]) -> None:
    assert world(*BEFORE).put(kind_of(raw), raw) == touched


def test_a_deleted_object_touches_the_keys_that_it_touched() -> None:
    seen = world(*BEFORE)
    assert seen.remove(ADMISSION_CHECK, check()) == placements("p")
    assert seen.remove(MULTIKUEUE_CONFIG, our_config()) == placements("p")


def test_a_secret_touches_those_whose_profile_names_it() -> None:
    seen = world(*BEFORE, profile("a", secret=("kueue-system", "given")))
    assert seen.put(SECRET, secret("given")) == placements("p")


def test_a_cluster_that_is_listed_but_not_selected_counts_as_well() -> None:
    seen = world(check(), placement(), undecided(), our_objects("a"))
    assert seen.put(SECRET, secret("multikueue-a")) == placements("p")


def test_fixed_parameters_touch_the_objects_that_were_held() -> None:
    seen = world(check_with(None), our_objects("a"))
    assert seen.put(ADMISSION_CHECK, check(placement="q", version=2)) == placements("p", "q") | {
        Key("check", "check")
    }


def test_a_shared_cluster_touches_those_who_share_it() -> None:
    objects = [check("one", "p"), check("two", "q"), decision("a"), decision("a", of="q")]
    seen = world(*objects, our_config("a", of="r", owners=["three"]), hub=SHARED)
    assert seen.put(MULTIKUEUE_CLUSTER, our_cluster("a", None)) == placements("p", "q", "r", "a")
    assert seen.put(MULTIKUEUE_CLUSTER, our_cluster("z", None)) == placements("z")
    assert seen.put(MULTIKUEUE_CLUSTER, foreign_cluster("a", version=2)) == placements("p", "q", "r", "a")


def test_a_change_touches_a_shared_cluster_that_may_be_needed_no_more() -> None:
    objects = [check("one", "p"), check("two", "q"), decision("a"), our_cluster("a", None)]
    seen = world(*objects, hub=SHARED)
    assert seen.put(PLACEMENT_DECISION, decision("b", version=2)) == placements("p", "a")
    assert seen.put(MULTIKUEUE_CONFIG, our_config("a")) == placements("p", "a")
    assert seen.put(MULTIKUEUE_CONFIG, our_config("a", of="q")) == placements("q"), "another lists it as well"
    assert seen.put(PLACEMENT_DECISION, decision("a", version=3)) == placements("p")
    assert seen.put(MULTIKUEUE_CONFIG, our_config("b", version=2)) == placements("p")
    assert seen.remove(MULTIKUEUE_CONFIG, our_config("a", of="q")) == placements("q", "a")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("a-b-c", [("a", "b-c"), ("a-b", "c")], id="two ways"),
        pytest.param("a", [], id="none"),
        pytest.param("-a", [], id="no placement"),
        pytest.param("a-", [], id="no cluster"),
        pytest.param("a--b", [("a", "-b"), ("a-", "b")], id="two dashes"),
        pytest.param("", [], id="empty"),
    ],
)
def test_a_name_may_be_made_of_several_pairs(name: str, expected: list[Any]) -> None:
    assert list(possible_pairs(name)) == expected


# -- the first keys


def test_the_first_keys_are_those_of_checks_and_of_our_objects() -> None:
    seen = world(
        check("one", "p"),
        check_with(None, "bad"),
        multikueue_check("mk", "foreign"),
        foreign_config("foreign"),
        foreign_cluster("x-y"),
        placement("unused"),
        decision("a", of="unused"),
        our_config(of="left"),
        our_cluster("a", "behind"),
        our_cluster("shared", None),
    )
    assert seen.keys() == placements("p", "left", "behind", "shared") | {Key("check", "bad")}


# -- the snapshot


def test_a_snapshot_holds_all_that_a_placement_depends_on() -> None:
    objects = [
        *(check("one"), check("other", "q"), multikueue_check("mk"), multikueue_check("mk-q", "q")),
        *(check_with(None, "held"), check_with(None, "bad")),
        *(placement(weights={"usage/gpu": 1}), placement("q"), decision("a"), decision("b", of="q")),
        *(scores("a", gpu=1), scores("a", "other", gpu=1), scores("b", gpu=1)),
        *(secrets("a", "b"), our_objects("a", owners=["one", "held"]), our_cluster("b", "q")),
    ]
    seen = inputs(*objects, ages={"a": 1.0})
    assert (
        [c.meta.name for c in seen.checks.ours],
        [c.meta.name for c in seen.checks.multikueue],
        [c.meta.name for c in seen.checks.former],
        seen.decisions.placement and seen.decisions.placement.name,
        [cluster.cluster for cluster in seen.decisions.clusters],
        seen.decisions.scored,
        dict(seen.credentials.selected),
        seen.objects.config and seen.objects.config.meta.name,
        list(seen.objects.clusters),
        (seen.objects.name_conflicts, seen.objects.unneeded, seen.all_ages, seen.now),
    ) == (
        ["one"],
        ["mk"],
        ["held"],
        "p",
        ["a"],
        {"a"},
        {"a": CredentialSource("Secret", "multikueue-a")},
        "p",
        ["p-a"],
        ({}, frozenset(), {Since(SinceKind.REMOVAL_UNSETTLED, "a"): 1.0}, NOW),
    )


def test_methods_and_kueues_version_decide_the_source() -> None:
    objects = [placement(), decision("a", "b"), *secrets("a"), profile("a", providers=["x"])]
    seen = inputs(*objects, profile("b", "other", providers=["x"]), methods=["access-provider", "secret"])
    assert seen.credentials.selected["a"] == CredentialSource("ClusterProfile", "a")
    old = inputs(*objects, hub=HubFacts(cluster_version="v1beta1"), methods=["access-provider"])
    assert "too old" in getattr(old.credentials.selected["a"], "why", "")


def test_credentials_count_until_they_expire_or_change() -> None:
    seen = world(check(), decision("a"), secret("multikueue-a", kubeconfig(jwt(hours=1))))

    def way(at: datetime) -> CredentialSource | Unusable:
        return seen.snapshot(Key("placement", "p"), at, {}).credentials.selected["a"]

    assert way(NOW) == way(NOW) == CredentialSource("Secret", "multikueue-a")
    assert isinstance(way(NOW + HOUR), Unusable)
    assert way(NOW) == CredentialSource("Secret", "multikueue-a")
    other = seen.copy()
    other.remove(SECRET, secret("multikueue-a"))
    assert isinstance(other.snapshot(Key("placement", "p"), NOW, {}).credentials.selected["a"], Unusable)
    assert way(NOW) == CredentialSource("Secret", "multikueue-a"), "what a copy knows is its own"
    seen.put(SECRET, secret("kueue-admin-a-kubeconfig"))
    assert way(NOW) == CredentialSource("Secret", "kueue-admin-a-kubeconfig")


def test_a_name_conflict_is_another_pair_that_comes_first() -> None:
    objects = [check("one", "a"), check("two", "a-b"), decision("b-c", of="a"), decision("c", of="a-b")]
    seen = world(*objects, secrets("c", "b-c"))
    assert (snapshot(seen, "a").objects.name_conflicts, snapshot(seen, "a-b").objects.name_conflicts) == (
        {},
        {"a-b-c": PlacementCluster("kueue-system/a", "b-c")},
    )
    shared = world(*objects, secrets("c", "b-c"), hub=SHARED)
    assert snapshot(shared, "a-b").objects.name_conflicts == {}


@pytest.mark.parametrize(
    "free",
    [
        pytest.param((ADMISSION_CHECK, check("one", "a")), id="the check"),
        pytest.param((PLACEMENT_DECISION, decision("b-c", of="a")), id="the decision"),
        pytest.param((SECRET, secret("multikueue-b-c")), id="the credentials"),
    ],
)
def test_whatever_frees_a_name_touches_the_placement_that_waits_for_it(free: Any) -> None:
    objects = [check("one", "a"), check("two", "a-b"), decision("b-c", of="a"), decision("c", of="a-b")]
    seen = world(*objects, secrets("c", "b-c"))
    assert snapshot(seen, "a-b").objects.name_conflicts
    assert Key("placement", "a-b") in seen.remove(*free)
    assert not snapshot(seen, "a-b").objects.name_conflicts
    shared = world(*objects, secrets("c", "b-c"), hub=SHARED)
    assert Key("placement", "a-b") not in shared.remove(*free)


def test_a_label_that_is_off_a_config_does_not_free_its_holder() -> None:
    config, cluster = our_objects("a")
    config["metadata"]["labels"] = {}
    assert [c.meta.name for c in inputs(check_with(None), config, cluster).checks.former] == ["check"]


@pytest.mark.parametrize(
    ("objects", "naming", "unneeded"),
    [
        pytest.param([decision("a")], "{cluster}", False, id="selected"),
        pytest.param([our_config("a", of="r")], "{cluster}", False, id="listed"),
        pytest.param([our_config("a", of="r")], "{placement}-{cluster}", False, id="listed by its old name"),
        pytest.param([decision("a")], "{placement}-{cluster}", True, id="selected by another name"),
        pytest.param([decision("a", of="unused")], "{cluster}", True, id="selected without a check"),
        pytest.param([decision("b")], "{cluster}", True, id="neither"),
    ],
)
def test_a_shared_cluster_that_no_placement_needs(objects: list[Raw], naming: str, unneeded: bool) -> None:
    seen = world(check(), our_cluster("a", None), *objects, hub=HubFacts(naming=naming))
    assert snapshot(seen, "a").objects.unneeded == ({"a"} if unneeded else set())
    assert snapshot(seen, "p").objects.unneeded == set(), "the key of its name removes it"


def test_an_object_is_not_changed_by_being_looked_at() -> None:
    raw = decision("a")
    before = copy.deepcopy(raw)
    inputs(raw, check(), placement())
    assert raw == before
    assert world(raw).remove(CLUSTER_PROFILE, profile("a")) == set()


# -- provisioned credentials

TOKENS = token_kind("placement-ac")
ON_A = {"spec": kubeconfig_spec("placement-ac-a")}


def credentials(*clusters: str) -> set[Key]:
    return {Key("cluster", cluster) for cluster in clusters}


@pytest.mark.parametrize(
    ("kind", "news"),
    [
        pytest.param(ACCOUNT, grant(ACCOUNT, "a"), id="somebody's account"),
        pytest.param(ACCOUNT, grant(ACCOUNT, "a", "multikueue"), id="the addon's"),
        pytest.param(PERMISSION, our_grant(PERMISSION, "a"), id="our permission"),
        pytest.param(TOKENS, token("a"), id="the token"),
        pytest.param(token_kind("multikueue"), token("a", "multikueue"), id="the token of the addon's"),
        pytest.param(MANAGED_CLUSTER, managed_cluster("a"), id="the worker's address"),
        pytest.param(SECRET, our_secret("a"), id="our Secret"),
        pytest.param(SECRET, our_secret("a", labels={}), id="our Secret without its labels"),
        pytest.param(SECRET, secret("placement-ac-a"), id="somebody else's Secret in our way"),
        pytest.param(SECRET, secret("a-placement-ac", None), id="OCM's copy of the token"),
        pytest.param(SECRET, secret("a-multikueue", None), id="its copy of the addon's"),
        pytest.param(SECRET, secret("multikueue-a"), id="a found Secret"),
        pytest.param(CLUSTER_PROFILE, profile("a"), id="its ClusterProfile"),
    ],
)
def test_the_objects_on_which_the_credentials_of_a_cluster_depend(kind: Any, news: Raw) -> None:
    objects = [check(), decision("a"), check("other", "q"), decision("b", of="q")]
    wanted = placements("p") | credentials("a")
    seen = world(*objects, provisioning=PROVISIONING)
    assert seen.put(kind, news) >= wanted
    assert seen.remove(kind, news) >= wanted
    assert not world(*objects, news, provisioning=PROVISIONING).remove(kind, news) & (
        placements("q") | credentials("b")
    ), "nobody else"


@pytest.mark.parametrize(
    ("kind", "news"),
    [
        pytest.param(ADMISSION_CHECK, check(), id="a check of ours that selects it"),
        pytest.param(PLACEMENT_DECISION, decision("a"), id="a decision"),
        pytest.param(MULTIKUEUE_CLUSTER, provisioned_cluster("a"), id="our MultiKueueCluster"),
        pytest.param(MULTIKUEUE_CLUSTER, foreign_cluster("x", **ON_A), id="somebody's that stands on it"),
        pytest.param(MULTIKUEUE_CLUSTER, provisioned_cluster("a", labels={}), id="one whose labels are off"),
        pytest.param(
            MULTIKUEUE_CLUSTER,
            foreign_cluster("x", spec={"clusterSource": {"clusterProfileRef": {"name": "a"}}}),
            id="one on its ClusterProfile",
        ),
    ],
)
def test_who_uses_the_credentials_of_a_cluster(kind: Any, news: Raw) -> None:
    seen = world(*([decision("a")] if kind is not PLACEMENT_DECISION else []), provisioning=PROVISIONING)
    assert Key("cluster", "a") in seen.put(kind, news)
    assert Key("cluster", "a") in seen.remove(kind, news)


def test_a_check_that_moves_on_brings_up_the_clusters_of_both_placements() -> None:
    seen = world(check(), decision("a"), decision("b", of="q"), provisioning=PROVISIONING)
    assert seen.put(ADMISSION_CHECK, check(placement="q", version=2)) >= credentials("a", "b")


@pytest.mark.parametrize("taken", ["put", "fill"])
@pytest.mark.parametrize(
    ("provisioning", "server"), [(PROVISIONING, SERVER), (ProvisioningPolicy(), "")], ids=["made", "not made"]
)
def test_the_workers_address_is_kept_only_for_provisioned_credentials(
    provisioning: ProvisioningPolicy, server: str, taken: str
) -> None:
    """The CA is most of what is known of a cluster."""
    world = Cache(provisioning=provisioning)
    raw = managed_cluster("a", bundle="Y2E=")
    world.put(MANAGED_CLUSTER, raw) if taken == "put" else world.load(MANAGED_CLUSTER, [raw], "1")
    seen = world.provisioning_inputs("a", NOW).objects.managed_cluster
    assert seen is not None
    assert (seen.server, seen.authority) == (server, "Y2E=" if server else "")


def test_without_provision_no_credentials_key_is_touched() -> None:
    seen = world(check(), decision("a"), our_secret("a"))
    assert kinds_for(ProvisioningPolicy()) == WATCHED_KINDS
    assert seen.keys() == placements("p")
    assert seen.remove(SECRET, our_secret("a")) == placements("p")


def test_the_first_keys_are_all_clusters_that_may_need_credentials_or_have_some() -> None:
    seen = world(
        *(check(), decision("selected"), decision("not-ours", of="q"), multikueue_check("mk", "q")),
        *(our_secret("secret"), our_grant(ACCOUNT, "account"), our_grant(PERMISSION, "permission")),
        *(
            grant(
                ACCOUNT,
                "handed",
                "multikueue",
                annotations={"placement-ac.open-cluster-management.io/adopt": "true"},
            ),
        ),
        *(grant(ACCOUNT, "theirs"), secret("placement-ac-theirs"), provisioned_cluster("drained")),
        provisioning=PROVISIONING,
    )
    everything = seen.keys()
    assert {key for key in everything if key.kind == "cluster"} == credentials(
        "selected", "secret", "account", "permission", "handed", "drained"
    )


def test_tokens_are_recognized_by_name_and_namespace() -> None:
    seen = world(check(), decision("a"), provisioning=PROVISIONING)
    assert seen.put(TOKENS, token("a", "another")) == set(), "not the one that is asked for"
    assert seen.put(SECRET, token("a")) == set(), "not in Kueue's namespace"
    assert seen.provisioning_inputs("a", NOW).objects.token is None
    seen.put(TOKENS, token("a"))
    assert seen.provisioning_inputs("a", NOW).objects.token is not None
    assert seen.provisioning_inputs("b", NOW).objects.token is None


def test_the_cache_is_not_complete_before_the_tokens_are_listed() -> None:
    seen = Cache(provisioning=PROVISIONING)
    for kind in kinds_for(PROVISIONING):
        assert not seen.has_synced
        seen.replace(kind, [], "1")
    assert seen.has_synced


def test_a_provisioning_error_touches_the_placements_once() -> None:
    seen = world(check(), decision("a"), provisioning=PROVISIONING)
    assert seen.set_provisioning_error("a", "") == set()
    assert seen.set_provisioning_error("a", "no") == placements("p")
    assert seen.set_provisioning_error("a", "no") == set()
    assert (seen.provisioning_inputs("a", NOW).error, seen.provisioning_inputs("b", NOW).error) == (
        "no",
        "",
    )
    assert seen.set_provisioning_error("a", "") == placements("p")


MANY = [f"c{at:02}" for at in range(60)]
FIRST = frozenset(MANY[:22])


def needed(cache: Cache) -> list[str]:
    return [cluster for cluster in MANY if cache.provisioning_inputs(cluster, NOW).usage.selected]


def test_only_the_clusters_that_come_or_go_are_touched_when_others_get_credentials() -> None:
    seen = world(check(), decision(*MANY), provisioning=PROVISIONING)
    assert seen.set_provisioned("p", FIRST) == credentials(*MANY), "nothing was known of any"
    assert seen.set_provisioned("p", FIRST) == set()
    assert seen.set_provisioned("p", FIRST - {"c21"} | {"c40"}) == credentials("c21", "c40")
    assert needed(seen) == [*MANY[:21], "c40"]
    seen.put(PLACEMENT_DECISION, decision(*MANY[:22], version=2))
    assert needed(seen) == MANY[:22], "all, whatever was chosen of more"
    assert seen.set_provisioned("p", None) == credentials(*MANY[:22], "c40")
    assert seen.set_provisioned("p", None) == set()


def test_credentials_that_exist_are_needed_until_the_placement_was_planned() -> None:
    seen = world(check(), decision(*MANY), provided("c50"), provisioning=PROVISIONING)
    assert needed(seen) == ["c50"]
    seen.set_provisioned("p", FIRST)
    assert needed(seen) == MANY[:22]
    assert needed(seen.copy()) == MANY[:22]


def test_a_cluster_gets_credentials_if_any_of_its_placements_calls_for_them() -> None:
    seen = world(
        *(check(), decision(*MANY), check("other", "q"), decision(*MANY, of="q")),
        *(check("small", "r"), decision("c59", of="r"), decision("c58", of="of-no-check")),
        provisioning=PROVISIONING,
    )
    seen.set_provisioned("p", FIRST)
    seen.set_provisioned("q", frozenset({"c00", "c40"}))
    assert needed(seen) == [*MANY[:22], "c40", "c59"]
    owners = {
        cluster: sorted(seen.provisioning_inputs(cluster, NOW).usage.owners.values())
        for cluster in ("c00", "c01", "c40", "c58", "c59")
    }
    assert owners == {
        "c00": ["check", "other"],
        "c01": ["check"],
        "c40": ["other"],
        "c58": [],
        "c59": ["small"],
    }


def test_the_account_is_the_addons_from_when_it_is_handed_over_until_nothing_of_it_is_ours() -> None:
    theirs = grant(ACCOUNT, "a", "multikueue")
    adopt = {"placement-ac.open-cluster-management.io/adopt": "true"}
    for objects, name in (
        ([theirs, secret("multikueue-a")], "placement-ac"),
        ([theirs, secret("multikueue-a", annotations=adopt)], "placement-ac"),
        ([grant(ACCOUNT, "a", "multikueue", annotations=adopt)], "multikueue"),
        ([our_grant(PERMISSION, "a", "multikueue")], "multikueue"),
        ([our_secret("a", "multikueue")], "multikueue"),
        ([provided("b", "multikueue")], "placement-ac"),
    ):
        assert world(*objects, provisioning=PROVISIONING).provisioning_inputs("a", NOW).account_name == name


def test_a_managed_cluster_touches_the_placements_that_prepare_it() -> None:
    label = {"cluster.open-cluster-management.io/clusterset": "spoke"}
    objects = [check(), placement("p", spec={"clusterSets": ["spoke"]}), placement("q", spec={})]
    joined = managed_cluster("new", labels=label)
    assert world(*objects, hub=HubFacts(prepare_sets=True)).put(MANAGED_CLUSTER, joined) == placements("p")
    assert world(*objects).put(MANAGED_CLUSTER, joined) == set()


def test_a_change_that_ends_a_preparation_touches_the_keys_of_shared_clusters() -> None:
    """The key of its own name removes a shared MultiKueueCluster that nobody needs."""
    label = {"cluster.open-cluster-management.io/clusterset": "spoke"}
    hub = replace(SHARED, prepare_sets=True)
    objects = [
        check(),
        placement("p", spec={"clusterSets": ["spoke"]}),
        *(managed_cluster(name, labels=label) for name in ("a", "b")),
        *(our_cluster(name, None) for name in ("a", "b")),
    ]
    own_names = placements("a", "b")
    assert world(*objects, hub=hub).put(ADMISSION_CHECK, check(version=2)) & own_names == set()
    assert world(*objects, hub=hub).put(ADMISSION_CHECK, check(placement="q", version=2)) >= own_names
    assert world(*objects, hub=hub).remove(ADMISSION_CHECK, check()) >= own_names
    assert world(*objects, hub=hub).replace(ADMISSION_CHECK, [], "9") >= own_names
    without = placement("p", spec={"clusterSets": []}, version=2)
    assert world(*objects, hub=hub).put(PLACEMENT, without) >= own_names
    assert world(*objects, hub=hub).remove(PLACEMENT, placement("p")) >= own_names
    left = managed_cluster("a", labels={}, version=2)
    assert world(*objects, hub=hub).put(MANAGED_CLUSTER, left) >= placements("a")
    assert world(*objects, hub=SHARED).remove(ADMISSION_CHECK, check()) & own_names == set()
