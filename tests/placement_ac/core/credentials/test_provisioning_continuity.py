"""Provisioning keeps listed clusters connected, and deletes everything that is no longer needed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    ANNOTATION_ADOPT,
    LABEL_SYNC,
    PERMISSION,
    SECRET,
)
from placement_ac.core.credentials.provisioning import UNNEEDED, ProvisioningPlan, plan_provisioning
from placement_ac.core.inputs.state import Key
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from tests.support.builders import (
    NOW,
    PROVISIONING,
    check,
    decision,
    grant,
    jwt,
    kubeconfig,
    kubeconfig_spec,
    managed_cluster,
    multikueue_check,
    our_cluster,
    our_config,
    our_grant,
    our_secret,
    placement,
    profile,
    provided,
    provisioned_cluster,
    provisioning_inputs,
    running,
    secret,
    snapshot,
    token,
    undecided,
    world,
    writes,
)

SELECTED = [check(), placement(), decision("a"), managed_cluster("a")]
NOT_SELECTED = [check(), placement(), decision("b"), managed_cluster("a")]
ADOPT = {"annotations": {ANNOTATION_ADOPT: "true"}}
ON_PROFILE = our_cluster("a", spec={"clusterSource": {"clusterProfileRef": {"name": "a"}}})
RENEWED = token("a", text=jwt("renewed"))
PATIENT = replace(PROVISIONING, retention=60.0)


def source_of(cache: Cache) -> CredentialSource | Unusable:
    return snapshot(cache).credentials.selected["a"]


@pytest.mark.parametrize("permission", [[], [our_grant(PERMISSION, "a", done=False)]], ids=["none", "slow"])
def test_a_cluster_keeps_its_secret_until_our_permission_is_in_force(permission: list[Any]) -> None:
    here = our_cluster("a", spec=kubeconfig_spec("multikueue-a"))
    busy = [multikueue_check(), our_config("p-a"), here, running("w", "p-a"), secret("multikueue-a")]
    mine = [our_grant(ACCOUNT, "a"), token("a"), our_secret("a")]
    only_profiles = {"provisioning": PROVISIONING, "methods": ("profile-secret",)}
    found = source_of(world(SELECTED, busy, mine, permission, **only_profiles))
    assert isinstance(found, Unusable)
    assert "ClusterPermission" in found.why
    moved = source_of(world(SELECTED, busy, mine, our_grant(PERMISSION, "a"), **only_profiles))
    assert moved == CredentialSource("Secret", "placement-ac-a")


def test_a_token_renewed_after_its_expiry_touches_the_placement() -> None:
    ended = our_secret("a", text=jwt("old", NOW - timedelta(hours=25)))
    seen = world(SELECTED, provided("a")[:3], ended, provisioning=PROVISIONING)
    assert isinstance(source_of(seen), Unusable)
    assert Key("placement", "p") in seen.put(SECRET, our_secret("a", text=jwt("new"), version=5))


@pytest.mark.parametrize(
    ("permission", "provisioning"),
    [
        pytest.param([grant(PERMISSION, "a")], PROVISIONING, id="the permission is somebody else's"),
        pytest.param([], replace(PROVISIONING, served=False), id="permissions are not served any more"),
    ],
)
def test_a_listed_cluster_gets_its_new_token_despite_name_conflicts(
    permission: list[Any], provisioning: Any
) -> None:
    there = [our_grant(ACCOUNT, "a"), permission, RENEWED, our_secret("a"), provisioned_cluster("a")]
    assert writes(SELECTED, *there, provisioning=provisioning) == ["Apply Secret placement-ac-a"]


def test_the_secret_of_a_listed_cluster_is_restored_first() -> None:
    short = our_grant(ACCOUNT, "a", spec={"rotation": {"enabled": True, "validity": "1h0m0s"}})
    there = [short, our_grant(PERMISSION, "a"), token("a"), provisioned_cluster("a")]
    assert writes(SELECTED, *there) == [
        "Apply Secret placement-ac-a",
        "Apply ManagedServiceAccount placement-ac",
    ]


def test_handed_over_objects_are_deleted_though_their_account_is_gone() -> None:
    rest = [grant(PERMISSION, "a", ADDON_ACCOUNT, **ADOPT)]
    assert writes(NOT_SELECTED, rest) == ["Delete ClusterPermission multikueue"]


def test_a_flickering_decision_deletes_no_account() -> None:
    mine = our_grant(ACCOUNT, "a")
    waiting = world([check(), placement(), undecided(), managed_cluster("a")], mine, provisioning=PATIENT)
    assert plan_provisioning(provisioning_inputs(waiting)) == ProvisioningPlan(
        lasting=frozenset({UNNEEDED}), requeue_after=60.0
    )
    assert plan_provisioning(provisioning_inputs(waiting, ages={UNNEEDED: 20.0})).requeue_after == 40.0
    late = plan_provisioning(provisioning_inputs(waiting, ages={UNNEEDED: 60.0}))
    assert [[action.name for action in phase] for phase in late.phases] == [["placement-ac"]]
    assert late.lasting == {UNNEEDED}, "a delete that fails does not wait anew"


def test_deletion_does_not_wait_for_a_deleted_cluster_or_with_external_credentials() -> None:
    mine = our_grant(ACCOUNT, "a")
    go = ["Delete ManagedServiceAccount placement-ac"]
    assert writes([check(), placement(), decision("a")], mine, provisioning=PATIENT) == go
    assert writes(SELECTED, mine, secret("multikueue-a"), provisioning=PATIENT) == go


def test_a_used_cluster_profile_counts_again_though_an_account_was_created() -> None:
    theirs = [SELECTED, profile("a", providers=["x"]), ON_PROFILE, our_config("p-a")]
    assert source_of(
        world(*theirs, our_grant(ACCOUNT, "a", done=False), provisioning=PROVISIONING)
    ) == CredentialSource("ClusterProfile", "a")
    ours = our_grant(ACCOUNT, "a", done=False)
    ours["metadata"]["labels"] |= {LABEL_SYNC: "true"}
    assert isinstance(source_of(world(*theirs, ours, provisioning=PROVISIONING)), Unusable), "it is ours"


def test_a_recheck_is_due_when_external_credentials_expire() -> None:
    ends = secret("multikueue-a", kubeconfig(token=jwt("x", NOW, hours=1.0)))
    seen = world(SELECTED, ends, provisioning=PROVISIONING)
    assert plan_provisioning(seen.provisioning_inputs("a", NOW, {})).requeue_after == 3600.0
    assert plan_provisioning(seen.provisioning_inputs("a", NOW + timedelta(hours=2), {})).phases
