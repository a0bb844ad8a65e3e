"""The credentials of a cluster, one key at a time on a real hub: made, renewed, refused and taken away."""

import io
import itertools
from asyncio import Runner
from contextlib import redirect_stderr
from dataclasses import replace
from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.controller.writer import Writer
from placement_ac.core.api.constants import ACCOUNT, MANAGED_CLUSTER, PERMISSION
from placement_ac.core.api.errors import ApiError
from placement_ac.core.credentials.provisioning import plan_provisioning
from placement_ac.core.inputs.state import Key
from placement_ac.kube.client import Client
from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.support.builders import AT_ONCE, PROVISIONING, SERVER, authority, encoded, jwt
from tests.support.driver import CORE, NS, Driver, eventually
from tests.support.hub_client import CRDS
from tests.support.installation import contains
from tests.support.reconciling import FORBIDDEN, WHEN, P, Rig, condition_of

A = Key("cluster", "a")
RULE = {"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": ["get", "list"]}


class Ocm:
    """OCM by hand on cluster a."""

    def __init__(self, admin: Driver) -> None:
        self.admin = admin
        self.account = ACCOUNT.at("v1beta1").path("a", "placement-ac")
        self.permission = PERMISSION.at("v1alpha1").path("a", "placement-ac")
        self.secret = f"{CORE}/namespaces/{NS}/secrets/placement-ac-a"
        admin.namespace("a")
        resource = MANAGED_CLUSTER.at("v1")
        body = {"apiVersion": resource.api_version, "kind": "ManagedCluster", "metadata": {"name": "a"}}
        configs = [{"url": SERVER, "caBundle": encoded(authority())}]
        admin.ask("POST", resource.path(), body | {"spec": {"managedClusterClientConfigs": configs}})

    def reports(self, text: str) -> None:
        path = f"{CORE}/namespaces/a/secrets"
        data = {"token": encoded(text), "ca.crt": encoded(authority())}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "placement-ac"}, "data": data}
        self.admin.try_("DELETE", f"{path}/placement-ac")
        self.admin.ask("POST", path, body)

    def grants(self, path: str, condition: str) -> None:
        active = {"type": condition, "status": "True", "reason": condition, "message": ""}
        active["lastTransitionTime"] = "2026-08-01T12:00:00Z"
        self.admin.ask("PATCH", f"{path}/status", {"status": {"conditions": [active]}}, "merge")

    def provides(self, text: str) -> None:
        self.grants(self.account, "TokenReported")
        self.reports(text)


@pytest.fixture
def ocm(admin: Driver) -> Ocm:
    """A check on cluster a, for which nobody has put credentials there."""
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a")
    return Ocm(admin)


@pytest.fixture
def rig(client: Client, runner: Runner, ocm: Ocm) -> Rig:
    """A reconciler that provides credentials."""
    provisioning = replace(PROVISIONING, rules=(RULE,))
    resources = runner.run(client.discover(kinds_for(provisioning)))
    return Rig(client, resources, world=Cache(policy=AT_ONCE, provisioning=provisioning))


async def made(rig: Rig, ocm: Ocm) -> None:
    """Let the rig and OCM make all that cluster a needs."""
    await rig.list()
    assert await rig.look(A) is None
    ocm.provides(jwt("first"))
    await rig.list()
    assert await rig.look(A) is None
    ocm.grants(ocm.permission, "AppliedRBACManifestWork")
    await rig.list()


async def test_credentials_are_made_and_a_second_look_writes_nothing(hub: Hub, ocm: Ocm, rig: Rig) -> None:
    await made(rig, ocm)
    paths = [ocm.account, ocm.permission, ocm.secret]
    assert ocm.admin.writes() == [("PATCH", path) for path in paths]
    assert [ocm.admin.ask("GET", path)["spec"] for path in paths[:2]] == [
        {"rotation": {"enabled": True, "validity": "24h0m0s"}},
        {
            "clusterRole": {"rules": [RULE]},
            "clusterRoleBinding": {
                "subject": {
                    "apiGroup": "authentication.open-cluster-management.io",
                    "kind": "ManagedServiceAccount",
                    "name": "placement-ac",
                }
            },
        },
    ]
    since = len(hub.journal)
    for _ in range(2):
        assert await rig.look(A) is None
        await rig.list()
    assert ocm.admin.writes(since) == []
    assert await rig.look() is None
    assert (condition_of(ocm.admin)[:2], ocm.admin.listed("p")) == (("True", "Active"), ["p-a"])
    await rig.list()
    since = len(hub.journal)
    assert await rig.look(A) is None
    assert ocm.admin.writes(since) == [], "a user of theirs changes nothing"


async def test_a_new_token_writes_the_secret_alone_and_what_others_change_is_put_back(
    hub: Hub, ocm: Ocm, rig: Rig
) -> None:
    await made(rig, ocm)
    ocm.reports(jwt("second"))
    await rig.list()
    since = len(hub.journal)
    assert await rig.look(A) is None
    assert ocm.admin.writes(since) == [("PATCH", ocm.secret)]
    changes: list[tuple[str, dict[str, Any]]] = [
        (ocm.account, {"spec": {"rotation": {"validity": "1h"}}}),
        (ocm.permission, {"spec": {"clusterRole": {"rules": []}}}),
        (ocm.secret, {"data": {"kubeconfig": encoded("x")}}),
    ]
    for path, patch in changes:
        before = ocm.admin.ask("GET", path)
        ocm.admin.ask("PATCH", path, patch, "merge")
        await rig.list()
        assert await rig.look(A) is None
        after = ocm.admin.ask("GET", path)
        assert [after.get(part) for part in ("spec", "data")] == [
            before.get(part) for part in ("spec", "data")
        ]


async def test_a_field_of_somebody_else_stays_on_each_kind_while_ours_is_put_back(
    hub: Hub, ocm: Ocm, rig: Rig
) -> None:
    admin = ocm.admin
    cluster, config = admin.kueue("multikueueclusters", "p-a"), admin.kueue("multikueueconfigs", "p")
    add_field_of_a_newer_kueue(admin)
    await made(rig, ocm)
    await settle(rig)
    role = {"namespace": "x", "rules": [RULE]}
    theirs: dict[str, dict[str, Any]] = {
        ocm.account: {"spec": {"ttlSecondsAfterCreation": 9}},
        ocm.permission: {"spec": {"roles": [role]}},
        ocm.secret: {"data": {"more": encoded("x")}},
        cluster: {"spec": {NEWER: ["batch/job"]}},
        config: {"spec": {"quotaManagement": "Automated"}},
    }
    for path, patch in theirs.items():
        eventually(lambda path=path, patch=patch: contains(edit(admin, path, patch), patch))
    before = {path: admin.ask("GET", path) for path in theirs}
    since = len(hub.journal)
    await settle(rig)
    assert admin.writes(since) == []
    ours: dict[str, dict[str, Any]] = {
        ocm.account: {"spec": {"rotation": {"validity": "1h"}}},
        ocm.permission: {"spec": {"clusterRole": {"rules": []}}},
        ocm.secret: {"data": {"kubeconfig": encoded("x")}},
        cluster: {"spec": {"clusterSource": {"kubeConfig": None, "clusterProfileRef": {"name": "x"}}}},
        config: {"spec": {"clusters": ["x"]}},
    }
    for path, patch in ours.items():
        edit(admin, path, patch)
    await settle(rig)
    for path, there in before.items():
        found = admin.ask("GET", path)
        assert [found.get(part) for part in ("spec", "data")] == [
            there.get(part) for part in ("spec", "data")
        ]


NEWER = "supportedFrameworks"


def add_field_of_a_newer_kueue(admin: Driver) -> None:
    """Let MultiKueueClusters have one more field."""
    path = f"{CRDS}/multikueueclusters.kueue.x-k8s.io"
    definition = admin.ask("GET", path)
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"][NEWER] = {"type": "array", "items": {"type": "string"}}
    admin.ask("PUT", path, definition)


def edit(admin: Driver, path: str, patch: dict[str, Any]) -> dict[str, Any]:
    return admin.ask("PATCH", path, patch, "merge", fieldManager="kubectl-edit")


async def settle(rig: Rig) -> None:
    """Let the rig see everything, and act on the cluster's credentials and on the Placement."""
    await rig.list()
    assert await rig.look(A) is None
    await rig.list()
    assert await rig.look() is None
    await rig.list()


async def test_credentials_that_nobody_needs_are_deleted_the_secret_first(
    hub: Hub, ocm: Ocm, rig: Rig
) -> None:
    await made(rig, ocm)
    ocm.admin.decide("p")
    await rig.list()
    since = len(hub.journal)
    assert await rig.look(A) is None
    assert ocm.admin.writes(since) == [("DELETE", path) for path in (ocm.secret, ocm.account, ocm.permission)]
    assert await rig.look(A) is None
    assert len(ocm.admin.writes(since)) == 3


@pytest.mark.parametrize("status", [403, 503])
async def test_a_refused_secret_is_reported_and_its_token_is_not(
    hub: Hub, ocm: Ocm, status: int, rig: Rig
) -> None:
    """An admission webhook may quote what it refuses."""
    token = jwt("first")
    quoted = f"denied: token {token} in {encoded(token)}"
    body = {"kind": "Status", "message": quoted, "reason": f"Denied {token}", "code": status}
    hub.faults.add("PATCH", "secrets", status=status, body=body, times=3)
    log = io.StringIO()
    with redirect_stderr(log):
        logs.configure("text", "debug")
        await rig.list()
        await rig.look(A)
        ocm.provides(token)
        await rig.list()
        assert await rig.look(A) is not None
        ocm.grants(ocm.permission, "AppliedRBACManifestWork")
        await rig.list()
        await rig.look()
        provided = plan_provisioning(rig.world.provisioning_inputs("a", WHEN, {}))
        actor = Writer(rig.client, rig.resources, lambda *_: None)
        with pytest.raises(ApiError) as caught:
            await actor.execute(provided.phases)
    logs.configure("text", "error")
    message = condition_of(ocm.admin)[2]
    if status in (400, 403, 422):
        assert f"Secret kueue-system/placement-ac-a: refused with HTTP {status}: may we" in message
    messages = (
        log.getvalue(),
        message,
        str(caught.value),
        repr(caught.value),
        repr(provided),
        repr(rig.world),
    )
    parts = [token, token.split(".")[1], encoded(token)[:40]]
    assert [part for part, text in itertools.product(parts, messages) if part in text] == []
    assert log.getvalue()


async def test_a_refused_account_is_reported_on_the_checks_until_it_may_be_made(
    hub: Hub, ocm: Ocm, rig: Rig
) -> None:
    await rig.list()
    hub.faults.add("PATCH", "managedserviceaccounts", status=403, body=FORBIDDEN)
    assert await rig.look(A) is not None
    assert rig.later == [(P, 0.0)]
    await rig.look()
    assert condition_of(ocm.admin)[2] == "you shall not; no selected cluster is usable: a"
    assert await rig.look(A) is None
    assert [key for key, seconds in rig.later if seconds == 0.0] == [P, P]
    await rig.look()
    assert "is not in force yet" in condition_of(ocm.admin)[2]


async def test_a_token_is_renewed_though_all_else_is_refused(hub: Hub, ocm: Ocm, rig: Rig) -> None:
    await made(rig, ocm)
    for key in (A, P):
        await rig.look(key)
    ocm.admin.ask("PATCH", ocm.account, {"spec": {"rotation": {"validity": "1h"}}}, "merge")
    ocm.reports(jwt("second"))
    await rig.list()
    hub.faults.add("PATCH", "managedserviceaccounts", status=403, body=FORBIDDEN)
    before = ocm.admin.ask("GET", ocm.secret)["data"]
    assert await rig.look(A) is not None
    assert ocm.admin.ask("GET", ocm.secret)["data"] != before


async def test_a_stranger_that_was_quicker_keeps_his_secret(ocm: Ocm, rig: Rig) -> None:
    await rig.list()
    await rig.look(A)
    ocm.provides(jwt("first"))
    await rig.list()
    ocm.admin.secret("placement-ac-a", value=encoded("theirs"))
    before = ocm.admin.ask("GET", ocm.secret)
    assert await rig.look(A) is not None
    await rig.list()
    assert await rig.look(A) is None
    assert ocm.admin.ask("GET", ocm.secret) == before
    await rig.look()
    assert "delete Secret kueue-system/placement-ac-a, or hand it over" in condition_of(ocm.admin)[2]


async def test_credentials_that_vanished_are_waited_for_and_then_made(ocm: Ocm, rig: Rig) -> None:
    ocm.admin.secrets_for("a")
    await rig.list()
    for key in (P, A):
        assert await rig.look(key) is None
    ocm.admin.ask("DELETE", f"{CORE}/namespaces/{NS}/secrets/multikueue-a")
    await rig.list()
    await rig.look(A)
    rig.ticks = 1.5
    await rig.look(A)
    assert (ocm.admin.get(ocm.account), rig.later) == (None, [(A, 2.0), (A, 0.5)])
    rig.ticks = 2.0
    await rig.look(A)
    assert ocm.admin.get(ocm.account)
