"""Provisioned credentials in the cache, and the keys that their changes touch."""

from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    PERMISSION,
    PLACEMENT_DECISION,
    SECRET,
    token_kind,
)
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.state import Key
from tests.support.builders import (
    NOW,
    PROVISIONING,
    SERVER,
    Raw,
    check,
    decision,
    foreign_cluster,
    grant,
    kubeconfig_spec,
    managed_cluster,
    multikueue_check,
    our_grant,
    our_secret,
    placement_keys,
    profile,
    provided,
    provisioned_cluster,
    secret,
    token,
    world,
)

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
    wanted = placement_keys("p") | credentials("a")
    seen = world(*objects, provisioning=PROVISIONING)
    assert seen.put(kind, news) >= wanted
    assert seen.remove(kind, news) >= wanted
    assert not world(*objects, news, provisioning=PROVISIONING).remove(kind, news) & (
        placement_keys("q") | credentials("b")
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
    assert seen.keys() == placement_keys("p")
    assert seen.remove(SECRET, our_secret("a")) == placement_keys("p")


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
    assert seen.set_provisioning_error("a", "no") == placement_keys("p")
    assert seen.set_provisioning_error("a", "no") == set()
    assert (seen.provisioning_inputs("a", NOW).error, seen.provisioning_inputs("b", NOW).error) == ("no", "")
    assert seen.set_provisioning_error("a", "") == placement_keys("p")


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
