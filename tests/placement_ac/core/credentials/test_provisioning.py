"""The writes for the credentials of one cluster: created, renewed and deleted."""

from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    ANNOTATION_ADOPT,
    LABEL_SYNC,
    PERMISSION,
    SECRET,
    SETTLE_SECONDS,
)
from placement_ac.core.credentials.provisioning import (
    MISSING,
    UNNEEDED,
    ProvisioningPlan,
    account_spec,
    go_duration,
    plan_provisioning,
)
from placement_ac.core.plan.diff import Apply
from tests.support.builders import (
    NS,
    PROVISIONING,
    authority,
    check,
    decision,
    foreign_cluster,
    grant,
    jwt,
    kubeconfig_spec,
    managed_cluster,
    multikueue_check,
    our_cluster,
    our_grant,
    our_secret,
    placement,
    profile,
    provided,
    provisioned_cluster,
    provisioning_inputs,
    references,
    secret,
    token,
    world,
    writes,
)
from tests.support.builders import encoded as base64_of

SELECTED = [check(), placement(), decision("a"), managed_cluster("a")]
NOT_SELECTED = [check(), placement(), decision("b"), managed_cluster("a")]
ADOPT = {ANNOTATION_ADOPT: "true"}
ACCOUNT_WRITE = "Apply ManagedServiceAccount placement-ac"
PERMISSION_WRITE = "Apply ClusterPermission placement-ac"
SECRET_WRITE = "Apply Secret placement-ac-a"
ALL_GO = [
    "Delete Secret placement-ac-a",
    "Delete ManagedServiceAccount placement-ac",
    "Delete ClusterPermission placement-ac",
]
BY_PROFILE = replace(PROVISIONING, form="cluster-profile")
SYNCED = secret("a-placement-ac", None)
ON_PROFILE = our_cluster("a", spec={"clusterSource": {"clusterProfileRef": {"name": "a"}}})


def without(kind: Any, objects: list[Any]) -> list[Any]:
    return [raw for raw in objects if raw["kind"] != kind.kind]


def applied(*objects: Any, kind: Any, provisioning: Any = PROVISIONING) -> Any:
    """The body that is applied of that kind."""
    done = plan_provisioning(provisioning_inputs(world(*objects, provisioning=provisioning)))
    (action,) = [a for phase in done.phases for a in phase if isinstance(a, Apply) and a.kind is kind]
    return action.body


# -- created


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], [ACCOUNT_WRITE], id="nothing is there"),
        pytest.param([our_grant(ACCOUNT, "a", done=False)], [], id="the account is not in force"),
        pytest.param([our_grant(ACCOUNT, "a")], [PERMISSION_WRITE], id="in force, its token not seen"),
        pytest.param(
            [our_grant(ACCOUNT, "a"), token("a")],
            [PERMISSION_WRITE, SECRET_WRITE],
            id="the token is reported",
        ),
        pytest.param(provided("a"), [], id="all is there"),
        pytest.param(provided("a")[:3], [SECRET_WRITE], id="the Secret was deleted by hand"),
        pytest.param(without(ACCOUNT, provided("a")), [ACCOUNT_WRITE], id="the account was deleted by hand"),
        pytest.param(without(PERMISSION, provided("a")), [PERMISSION_WRITE], id="the permission was"),
        pytest.param(
            [*provided("a")[:2], our_secret("a")], [], id="the token went: the Secret stays as it is"
        ),
        pytest.param([token("a")], [ACCOUNT_WRITE, SECRET_WRITE], id="a token without its account"),
    ],
)
def test_credentials_are_provisioned_step_by_step(objects: list[Any], expected: list[str]) -> None:
    assert writes(SELECTED, objects) == expected
    assert sorted(writes(SELECTED, objects, provisioned_cluster("a"))) == sorted(expected), (
        "the Secret may come first"
    )


def test_each_is_owned_by_every_check_that_uses_the_cluster_and_labelled() -> None:
    others = [check("other", "q"), decision("a", of="q"), multikueue_check(), check("stranger", "z")]
    theirs = provisioned_cluster("a", owners=["check", "mk"])
    bodies = [
        applied(SELECTED, others, theirs, part, kind=kind)
        for part, kind in (
            (provided("a")[1:], ACCOUNT),
            (without(PERMISSION, provided("a")), PERMISSION),
            (provided("a")[:3], SECRET),
        )
    ]
    for body, namespace in zip(bodies, ("a", "a", NS), strict=True):
        assert body["metadata"]["ownerReferences"] == references("check", "mk", "other")
        assert body["metadata"]["namespace"] == namespace
        assert body["metadata"]["labels"] == {
            "app.kubernetes.io/managed-by": "placement-ac",
            "open-cluster-management.io/cluster-name": "a",
        }


def test_the_specs_of_account_and_permission() -> None:
    account = applied(SELECTED, kind=ACCOUNT, provisioning=replace(PROVISIONING, validity=5400.0))
    assert account["spec"] == {"rotation": {"enabled": True, "validity": "1h30m0s"}}
    permission = applied(SELECTED, our_grant(ACCOUNT, "a"), kind=PERMISSION)
    assert permission["spec"] == our_grant(PERMISSION, "a")["spec"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0h0m0s"), (59.6, "0h1m0s"), (600.0, "0h10m0s"), (86400.0, "24h0m0s"), (90061.0, "25h1m1s")],
)
def test_a_duration_is_written_as_go_writes_it(seconds: float, text: str) -> None:
    assert (go_duration(seconds), account_spec(seconds)["rotation"]["validity"]) == (text, text)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([our_grant(ACCOUNT, "a", spec={})], [ACCOUNT_WRITE], id="the account's spec"),
        pytest.param([our_grant(PERMISSION, "a", spec={})], [PERMISSION_WRITE], id="the permission's spec"),
        pytest.param([our_grant(ACCOUNT, "a", labels={})], [ACCOUNT_WRITE], id="labels"),
        pytest.param([our_grant(PERMISSION, "a", ownerReferences=[])], [PERMISSION_WRITE], id="owners"),
        pytest.param([our_secret("a", owners=())], [SECRET_WRITE], id="the Secret's owners"),
        pytest.param([our_secret("a", owners=("check", "gone"))], [SECRET_WRITE], id="an owner that is gone"),
        pytest.param([our_secret("a", text="other")], [SECRET_WRITE], id="the Secret's content"),
        pytest.param([our_secret("a", data={})], [SECRET_WRITE], id="the Secret's key"),
        pytest.param(
            [token("a", text=jwt("new"))], [SECRET_WRITE], id="a new token is nothing but the Secret's matter"
        ),
        pytest.param(
            [managed_cluster("a", "https://elsewhere:6443")], [SECRET_WRITE], id="the worker's address"
        ),
        pytest.param(
            [managed_cluster("a", bundle=base64_of(authority() * 2))], [SECRET_WRITE], id="the worker's CA"
        ),
    ],
)
def test_only_differences_are_written(objects: list[Any], expected: list[str]) -> None:
    replaced = {(raw["kind"], raw["metadata"]["name"], raw["metadata"].get("namespace")) for raw in objects}
    rest = [
        raw
        for raw in [*SELECTED, *provided("a")]
        if (raw["kind"], raw["metadata"]["name"], raw["metadata"].get("namespace")) not in replaced
    ]
    assert writes(rest, objects) == expected


def test_fields_of_others_are_left_alone() -> None:
    account = our_grant(ACCOUNT, "a")
    account["metadata"]["labels"] |= {"team": "x"}
    account["metadata"]["ownerReferences"] += references("somebody")
    account["spec"]["ttlSecondsAfterCreation"] = 3600
    permission = our_grant(PERMISSION, "a")
    permission["spec"]["roles"] = [{"namespace": "x", "rules": []}]
    made = our_secret("a")
    made["data"]["more"] = base64_of("x")
    assert writes(SELECTED, [account, permission, token("a"), made]) == []


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([check(), placement(), decision("a")], id="there is no ManagedCluster"),
        pytest.param(NOT_SELECTED, id="no check of ours selects it"),
        pytest.param([multikueue_check(), *SELECTED[1:]], id="a Placement that only others use"),
        pytest.param([SELECTED, secret("multikueue-a")], id="others have put a Secret there"),
        pytest.param([SELECTED, profile("a", providers=["x"])], id="others have put a ClusterProfile there"),
    ],
)
def test_when_nothing_is_written(objects: list[Any]) -> None:
    assert writes(*objects) == []


def test_without_provision_nothing_is_written_or_deleted() -> None:
    off = replace(PROVISIONING, provision=False)
    assert writes(SELECTED, provisioning=off) == []
    assert writes(NOT_SELECTED, our_secret("a"), provisioning=off) == []
    assert writes(SELECTED, provisioning=replace(PROVISIONING, served=False)) == []


def test_credentials_are_provisioned_beside_unusable_ones_of_others() -> None:
    assert writes(SELECTED, secret("multikueue-a", b"{")) == [ACCOUNT_WRITE]


# -- objects of others


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param(grant(ACCOUNT, "a"), id="account"),
        pytest.param(grant(PERMISSION, "a"), id="permission"),
        pytest.param(secret("placement-ac-a"), id="Secret"),
        pytest.param(grant(ACCOUNT, "a", annotations={ANNOTATION_ADOPT: "false"}), id="kept by its owner"),
    ],
)
def test_a_foreign_object_of_that_name_is_never_touched(stranger: Any) -> None:
    rest = [raw for raw in provided("a") if (raw["kind"], raw["metadata"]["name"]) != _name_of(stranger)]
    for used in ([], [provisioned_cluster("a")]):
        assert writes(SELECTED, rest, stranger, used) == []
    left = writes(NOT_SELECTED, rest, stranger)
    assert left == [gone for gone in ALL_GO if gone.split()[1:] != list(_name_of(stranger))]


def _name_of(raw: Any) -> tuple[str, str]:
    return raw["kind"], raw["metadata"]["name"]


def test_handed_over_objects_are_taken_over_in_place() -> None:
    objects = [
        grant(ACCOUNT, "a", annotations=ADOPT),
        grant(PERMISSION, "a", annotations=ADOPT),
        token("a"),
        secret("placement-ac-a", annotations=ADOPT),
    ]
    assert writes(SELECTED, objects) == [ACCOUNT_WRITE, PERMISSION_WRITE, SECRET_WRITE]
    body = applied(SELECTED, objects, kind=ACCOUNT)
    assert body["metadata"]["uid"] == "ManagedServiceAccount/a/placement-ac", "that very one"


def test_an_object_with_our_label_alone_is_not_deleted() -> None:
    copied: Any = {"managedFields": []}
    objects = [
        our_grant(ACCOUNT, "a", **copied),
        our_grant(PERMISSION, "a", **copied),
        our_secret("a", **copied),
    ]
    assert writes(NOT_SELECTED, objects) == []


# -- deleted


def test_unneeded_credentials_are_deleted_the_secret_first() -> None:
    done = plan_provisioning(
        provisioning_inputs(world(NOT_SELECTED, provided("a"), provisioning=PROVISIONING))
    )
    assert [[f"Delete {a.kind.kind} {a.name}" for a in phase] for phase in done.phases] == [
        [gone] for gone in ALL_GO
    ]


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(provisioned_cluster("a"), id="ours"),
        pytest.param(provisioned_cluster("a", of="other"), id="of another Placement"),
        pytest.param(
            foreign_cluster("x", spec=kubeconfig_spec("placement-ac-a")), id="somebody else's, by hand"
        ),
        pytest.param(
            provisioned_cluster("a", deletionTimestamp="2026-08-01T12:00:00Z"), id="one that is going"
        ),
        pytest.param(
            foreign_cluster("x", spec={"kubeConfig": {"location": "placement-ac-a"}}), id="of an old Kueue"
        ),
    ],
)
def test_nothing_is_deleted_while_a_multikueuecluster_uses_it(user: Any) -> None:
    for others in (NOT_SELECTED, [*SELECTED, secret("multikueue-a")], SELECTED[:3]):
        assert writes(others, provided("a"), user) == []


def test_the_credentials_of_a_draining_cluster_are_renewed() -> None:
    rotated = [*provided("a")[:2], token("a", text=jwt("new")), our_secret("a")]
    assert writes(NOT_SELECTED, rotated, provisioned_cluster("a")) == [SECRET_WRITE]


def test_a_listed_cluster_gets_its_new_token_first() -> None:
    old = [our_grant(ACCOUNT, "a", spec={}), our_grant(PERMISSION, "a", spec={}), our_secret("a")]
    new = token("a", text=jwt("new"))
    assert writes(SELECTED, old, new, provisioned_cluster("a"))[0] == SECRET_WRITE
    assert writes(SELECTED, old, new)[0] == ACCOUNT_WRITE


@pytest.mark.parametrize("selected", [SELECTED[:3], NOT_SELECTED[:3]], ids=["still selected", "not selected"])
def test_everything_of_a_deleted_managed_cluster_is_deleted(selected: list[Any]) -> None:
    others = [managed_cluster("b")]
    assert writes(selected, others, provided("a"), provisioned_cluster("a")) == []
    assert writes(selected, others, provided("a")) == ALL_GO


def test_objects_that_are_being_deleted_are_neither_deleted_nor_written() -> None:
    going: Any = {"deletionTimestamp": "2026-08-01T12:00:00Z"}
    objects = [
        our_grant(ACCOUNT, "a", **going),
        our_grant(PERMISSION, "a", **going),
        our_secret("a", **going),
    ]
    assert writes(NOT_SELECTED, objects) == []
    assert writes(SELECTED, objects, token("a", text=jwt("new"))) == []


def test_provisioned_credentials_are_deleted_once_external_ones_are_used() -> None:
    found = [SELECTED, secret("multikueue-a"), provided("a")]
    assert writes(*found, provisioned_cluster("a")) == []
    assert writes(*found, our_cluster("a")) == ALL_GO


# -- external credentials that vanish


def test_external_credentials_may_vanish_for_a_moment() -> None:
    seen = world(SELECTED, our_cluster("a"), provisioning=PROVISIONING)
    waits = frozenset({MISSING})
    assert plan_provisioning(provisioning_inputs(seen)) == ProvisioningPlan(
        lasting=waits, requeue_after=SETTLE_SECONDS
    )
    assert plan_provisioning(provisioning_inputs(seen, ages={MISSING: 1.5})) == ProvisioningPlan(
        lasting=waits, requeue_after=0.5
    )
    assert plan_provisioning(
        provisioning_inputs(
            world(SELECTED, our_cluster("a"), secret("multikueue-a"), provisioning=PROVISIONING)
        )
    ).lasting == (frozenset())


def test_credentials_that_stay_away_are_provisioned() -> None:
    ages = {MISSING: SETTLE_SECONDS}
    assert writes(SELECTED, our_cluster("a"), ages=ages) == [ACCOUNT_WRITE]
    going_on = provisioning_inputs(
        world(SELECTED, our_cluster("a"), our_grant(ACCOUNT, "a"), provisioning=PROVISIONING), ages=ages
    )
    assert [a.name for phase in plan_provisioning(going_on).phases for a in phase] == ["placement-ac"]


# -- ClusterProfiles


def test_with_clusterprofiles_ocm_is_asked_to_copy_the_token_and_there_is_no_secret() -> None:
    body = applied(SELECTED, kind=ACCOUNT, provisioning=BY_PROFILE)
    assert body["metadata"]["labels"][LABEL_SYNC] == "true"
    account = our_grant(ACCOUNT, "a")
    account["metadata"]["labels"][LABEL_SYNC] = "true"
    objects = [account, our_grant(PERMISSION, "a"), token("a"), SYNCED, profile("a", providers=["x"])]
    assert writes(SELECTED, objects, provisioning=BY_PROFILE) == []
    assert writes(SELECTED, objects, ON_PROFILE, provisioning=BY_PROFILE) == []
    assert writes(NOT_SELECTED, objects, ON_PROFILE, provisioning=BY_PROFILE) == []
    assert writes(NOT_SELECTED, objects, provisioning=BY_PROFILE) == ALL_GO[1:]


def in_sync(*objects: Any) -> list[Any]:
    """Our account with the label that has its token copied."""
    account = our_grant(ACCOUNT, "a")
    labels = account["metadata"]["labels"] | {LABEL_SYNC: "true"}
    account["metadata"]["managedFields"][1]["fieldsV1"]["f:metadata"]["f:labels"] |= {f"f:{LABEL_SYNC}": {}}
    return [account | {"metadata": account["metadata"] | {"labels": labels}}, *objects]


def test_from_secrets_to_profiles_the_secret_stays_until_it_is_unused() -> None:
    made = in_sync(our_grant(PERMISSION, "a"), token("a"), our_secret("a"))
    for selected in (SELECTED, NOT_SELECTED):
        assert writes(selected, made, provisioned_cluster("a"), provisioning=BY_PROFILE) == []
    moved = [made, SYNCED, profile("a", providers=["x"]), ON_PROFILE]
    assert writes(SELECTED, *moved, provisioning=BY_PROFILE) == ["Delete Secret placement-ac-a"]


def test_from_profiles_to_secrets_the_account_stays_while_it_is_used() -> None:
    made = in_sync(our_grant(PERMISSION, "a"), token("a"), SYNCED, profile("a"))
    assert writes(NOT_SELECTED, made, ON_PROFILE) == [SECRET_WRITE], "it may move, not go"
    assert writes(SELECTED, made, ON_PROFILE) == [SECRET_WRITE], "OCM goes on to copy the token"
    assert writes(SELECTED, made, our_secret("a"), provisioned_cluster("a")) == [ACCOUNT_WRITE], (
        "and then no more"
    )


# -- what the Go kueue-addon made


def addons(**rest: Any) -> list[Any]:
    """As the Go kueue-addon leaves it."""
    return [
        grant(ACCOUNT, "a", ADDON_ACCOUNT, **rest),
        grant(PERMISSION, "a", ADDON_ACCOUNT, **rest),
        token("a", ADDON_ACCOUNT),
        secret("multikueue-a", **rest),
    ]


def test_the_addons_objects_are_used_as_they_are() -> None:
    assert writes(SELECTED, addons()) == []
    assert writes(SELECTED, addons(), our_cluster("a")) == []
    assert writes(NOT_SELECTED, addons()) == []


def test_handed_over_they_are_kept_under_their_names() -> None:
    assert writes(SELECTED, addons(annotations=ADOPT), our_cluster("a")) == [
        "Apply ManagedServiceAccount multikueue",
        "Apply ClusterPermission multikueue",
        "Apply Secret multikueue-a",
    ]
    assert writes(SELECTED, provided("a", ADDON_ACCOUNT), our_cluster("a")) == []
    rotated = [*provided("a", ADDON_ACCOUNT)[:2], token("a", ADDON_ACCOUNT, text=jwt("new"))]
    assert writes(SELECTED, rotated, our_secret("a", ADDON_ACCOUNT)) == ["Apply Secret multikueue-a"]


ADOPTED_GO = [text.replace("placement-ac", ADDON_ACCOUNT) for text in ALL_GO]


@pytest.mark.parametrize("gone", range(4))
def test_adopted_objects_are_deleted_wherever_it_was_interrupted(gone: int) -> None:
    account, permission, _, made = provided("a", ADDON_ACCOUNT)
    objects = [made, account, permission][gone:]
    assert writes(NOT_SELECTED, objects) == ADOPTED_GO[gone:]


def test_objects_from_before_an_adoption_are_deleted_once_unused() -> None:
    both = [provided("a"), provided("a", ADDON_ACCOUNT)]
    assert writes(SELECTED, *both, provisioned_cluster("a")) == []
    assert writes(SELECTED, *both, our_cluster("a")) == ALL_GO


def test_objects_of_a_former_account_name_are_deleted() -> None:
    renamed = replace(PROVISIONING, account="other")
    both = [provided("a"), provided("a", "other")]
    assert writes(SELECTED, *both, provisioned_cluster("a"), provisioning=renamed) == []
    assert writes(SELECTED, *both, provisioned_cluster("a", "other-a"), provisioning=renamed) == ALL_GO


# -- what is never text


def test_no_token_is_in_a_repr() -> None:
    seen = provisioning_inputs(world(SELECTED, provided("a")[:3], provisioning=PROVISIONING))
    assert seen.objects.token is not None
    for text in (repr(seen), repr(plan_provisioning(seen))):
        assert jwt("a") not in text
        assert base64_of(jwt("a"))[:40] not in text


# -- a Placement that selects more clusters than get credentials


@pytest.mark.parametrize(
    ("objects", "ages", "expected"),
    [
        pytest.param([], {}, [], id="none are made"),
        pytest.param(provided("a"), {}, [], id="they stay for the retention"),
        pytest.param(provided("a"), {UNNEEDED: 60.0}, ALL_GO, id="they go after it"),
        pytest.param(
            [*provided("a"), provisioned_cluster("a")], {UNNEEDED: 60.0}, [], id="never while they are used"
        ),
    ],
)
def test_credentials_of_a_cluster_that_others_rank_before(
    objects: list[Any], ages: Any, expected: list[str]
) -> None:
    many = [f"c{at:02}" for at in range(22)]
    late = replace(PROVISIONING, retention=60.0)
    seen = world(
        *(check(), placement(), decision(*many, "a"), managed_cluster("a"), objects), provisioning=late
    )
    seen.set_provisioned("p", frozenset(many))
    done = plan_provisioning(provisioning_inputs(seen, ages=ages))
    assert [f"{type(a).__name__} {a.kind.kind} {a.name}" for phase in done.phases for a in phase] == expected
