"""
The stand-in for OCM's ClusterPermissions: the rights of a reported token.

The modules `account_rules` and `permission_rules` name the sources of the expected behaviour. All requests
are HTTP: to the hub as an admin, to the worker with the reported token.
"""

import pytest

from placement_ac.kube.client import Object
from placement_lab.standins.cluster_permissions import WORK_FINALIZER
from tests.placement_lab.standins.addons.environment import (
    BINDING,
    JOBS,
    NAME,
    PERMISSIONS,
    READ,
    REPORTED,
    ROLE,
    SECRETS,
    SUBJECT,
    WORKLOADS,
    WORKS,
    AddonEnvironment,
    Staged,
    W,
    account,
    complete,
    permission,
)
from tests.support.kueue_objects import namespace


def test_a_token_has_only_the_granted_permissions(stage: AddonEnvironment) -> None:
    stage.create_account()
    assert stage.worker_says(stage.token()) == 403
    stage.apply(permission(READ))
    stage.until(stage.permission_says, complete(stage))
    token, item = stage.token(), {"metadata": {"name": "one", "namespace": "default"}}
    assert [stage.worker_says(token, kind) for kind in (WORKLOADS, JOBS, SECRETS)] == [200, 403, 403]
    assert stage.worker_says(token, WORKLOADS, item) == 403


def test_objects_removed_from_a_permission_are_deleted(stage: AddonEnvironment) -> None:
    stage.apply(account(), permission(READ))
    stage.until(lambda: bool(stage.worker.get(BINDING, NAME)), True)
    stage.apply(permission(READ, clusterRoleBinding={"subject": SUBJECT, "name": "another"}))
    stage.until(lambda: bool(stage.worker.get(BINDING, "another")), True)
    stage.until(lambda: stage.worker.get(BINDING, NAME), None)


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_deleting_a_permission_deletes_its_rbac_objects(stage: AddonEnvironment) -> None:
    stage.apply(account(), permission(READ))
    stage.until(lambda: stage.worker_says(stage.token()) if stage.token() else 0, 200)
    assert stage.list(WORKS)[0]["metadata"]["finalizers"] == [WORK_FINALIZER]
    stage.delete(PERMISSIONS, NAME, W)
    stage.until(lambda: stage.worker_says(stage.token()), 403)
    stage.until(lambda: len(stage.list(WORKS)), 0)
    assert [stage.worker.get(kind, NAME) for kind in (ROLE, BINDING)] == [None, None]


def test_a_permission_created_too_early_is_not_retried(stage: AddonEnvironment) -> None:
    """Its controller does not watch accounts: only another change of the permission triggers a retry."""
    stage.apply(permission(READ))
    failure = (
        "False FailedBuildManifestWork"
        f' ManagedServiceAccount.authentication.open-cluster-management.io "{NAME}" not found'
    )
    stage.until(stage.permission_says, {"AppliedRBACManifestWork": failure})
    stage.create_account()
    stage.pause(0.2)
    assert stage.permission_says() == {"AppliedRBACManifestWork": failure}
    assert stage.worker_says(stage.token()) == 403
    stage.merge(PERMISSIONS, NAME, {"metadata": {"annotations": {"look": "again"}}}, namespace=W)
    stage.until(stage.permission_says, complete(stage))
    assert stage.worker_says(stage.token()) == 200


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        pytest.param(
            permission(name="none"),
            {"Validation": "False FailedValidationNoBindingsDefined no bindings defined"},
            id="no bindings",
        ),
        pytest.param(
            permission(READ, roles=[{"rules": [READ]}]),
            {
                "AppliedRBACManifestWork": "False FailedBuildManifestWork"
                " both Role Namespace and NamespaceSelector cannot be nil and empty"
            },
            id="a role without namespace",
        ),
    ],
)
def test_a_permission_that_cannot_be_applied_reports_it(
    stage: AddonEnvironment, asked: Object, reported: dict[str, str]
) -> None:
    stage.apply(account(), asked)
    stage.until(lambda: stage.permission_says(asked["metadata"]["name"]), reported)


def test_without_a_managed_cluster_nothing_happens(staged: Staged) -> None:
    with staged() as stage:
        stage.apply(namespace(W))
        stage.apply(account(), permission(READ))
        why = "False FailedValidationNotInManagedClusterNamespace namespace value is not a managed cluster"
        stage.until(stage.permission_says, {"Validation": why})
        assert (stage.secret(), stage.account_says()) == (None, {})
        stage.join()
        stage.until(stage.account_says, REPORTED)
        stage.until(stage.permission_says, {"Validation": why} | complete(stage))
