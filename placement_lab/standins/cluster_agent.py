"""
OCM's agents on one worker: for ManagedServiceAccounts, and for the ManifestWorks of ClusterPermissions.

They use the hub through the `OcmAddons` stand-in that owns them, in its event loop, and it enqueues their
keys. The decisions are pure functions in `managed_service_accounts` and `cluster_permissions`.
"""

import contextlib
import ssl
import time
from collections.abc import Iterable
from typing import Final

from placement_ac.core.api.constants import ACCOUNT, MANAGED_CLUSTER, NAMESPACE, SECRET, Kind
from placement_ac.core.api.errors import Conflict, NotFound, Refused
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.cluster_permissions import (
    RBAC_KINDS,
    WORK,
    WORK_FINALIZER,
    applied_resources,
    identity_of,
    owner_of,
    resource_meta,
    work_status,
)
from placement_lab.standins.informer import Key, StandIn
from placement_lab.standins.managed_service_accounts import (
    AGENT_NAMESPACE,
    LABEL_IS_ACCOUNT,
    MalformedToken,
    failed_status,
    needs_token,
    refresh_at,
    reported_status,
    secret_of,
    token_in,
    validity,
)
from placement_lab.standins.multikueue.objects import format_time, is_deleted

SERVICE_ACCOUNT: Final = Kind("", "ServiceAccount", "serviceaccounts", True, ("v1",))
REFRESH_DELAY_SECONDS: Final = 5.0
"""The agent refreshes a token this much later than planned (token.go, checkTokenRefreshAfter)."""


class ClusterAgent(StandIn):
    """The agents of one managed cluster. `hub`: the stand-in that owns them; `login`: the worker's.

    `slack`: the delay of a token refresh in seconds. Not thread-safe.
    """

    name = "open-cluster-management-agent"
    kinds = (SERVICE_ACCOUNT,)

    def __init__(
        self, login: Login, cluster: str, hub: StandIn, *, slack: float = REFRESH_DELAY_SECONDS
    ) -> None:
        super().__init__(login)
        self._cluster = cluster
        self._hub = hub
        self._refresh_delay = slack
        self._authority = "".join(
            ssl.DER_cert_to_PEM_cert(cert) for cert in login.ssl.get_ca_certs(binary_form=True)
        )
        self._paused = False
        self._forced: set[str] = set()
        self._requeue_times: dict[str, float] = {}

    # -- simulated events

    async def pause(self) -> None:
        """Stop acting, like agents that are disconnected from the hub."""
        self._paused = True

    async def resume(self) -> None:
        self._paused = False
        self.reconcile_all()

    async def refresh(self) -> None:
        """Report a new token for each account, even if the old ones are still valid."""
        self._forced |= {name for cluster, name in self._hub.objects(ACCOUNT) if cluster == self._cluster}
        self.reconcile_all()

    async def revoke(self) -> None:
        """Delete the ServiceAccounts, which invalidates their tokens; the agent then creates them again."""
        for name in self._service_accounts():
            with contextlib.suppress(NotFound):
                await self.client.delete(SERVICE_ACCOUNT.at("v1"), name, AGENT_NAMESPACE)

    def reconcile_all(self) -> None:
        """Enqueue all accounts and ManifestWorks of these agents."""
        accounts = {name for cluster, name in self._hub.objects(ACCOUNT) if cluster == self._cluster}
        for name in accounts.union(self._service_accounts()):
            self.enqueue(("account", name))
        for cluster, name in self._hub.objects(WORK):
            if cluster == self._cluster:
                self.enqueue(("work", name))

    def _service_accounts(self) -> list[str]:
        there = self.objects(SERVICE_ACCOUNT).items()
        return [name for (where, name), item in there if where == AGENT_NAMESPACE and _is_ours(item)]

    # -- the stand-in

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        """Return the key of the ManagedServiceAccount with the name of a changed ServiceAccount."""
        return [("account", name)] if kind == SERVICE_ACCOUNT and namespace == AGENT_NAMESPACE else []

    async def reconcile(self, key: Key) -> None:
        what, name = key
        if self._paused:
            return
        if what == "account":
            await self._reconcile_account(name)
        else:
            await self._reconcile_work(name)

    # -- ManagedServiceAccounts

    async def _reconcile_account(self, name: str) -> None:
        account = self._hub.objects(ACCOUNT).get((self._cluster, name))
        if account is None or ("", self._cluster) not in self._hub.objects(MANAGED_CLUSTER):
            await self._delete_service_account(name)
            return
        await self._ensure_service_account(name)
        try:
            if await self._needs_token(account):
                account = await self._report_token(account)
        except MalformedToken as error:
            await self._write_status(
                account,
                failed_status(account, f"failed to make a decision on token creation: {error}", time.time()),
            )
            return
        except Refused as error:
            why = f"failed to request token for service-account: {error.message}"
            await self._write_status(account, failed_status(account, why, time.time()))
            raise
        status = account["status"]
        self._requeue_at(name, refresh_at(status) + self._refresh_delay)
        refreshed = status["tokenSecretRef"]["lastRefreshTimestamp"]
        whole = reported_status(
            account, expires=status["expirationTimestamp"], refreshed=refreshed, now=time.time()
        )
        await self._write_status(account, whole)

    async def _delete_service_account(self, name: str) -> None:
        """Delete the ServiceAccount if the agent created it. The hub deletes the Secret with its owner."""
        self._forced.discard(name)
        self._requeue_times.pop(name, None)
        account = self.objects(SERVICE_ACCOUNT).get((AGENT_NAMESPACE, name))
        if account and _is_ours(account):
            with contextlib.suppress(NotFound):
                await self.client.delete(SERVICE_ACCOUNT.at("v1"), name, AGENT_NAMESPACE)
            self.informer.forget(SERVICE_ACCOUNT, (AGENT_NAMESPACE, name))

    async def _ensure_service_account(self, name: str) -> None:
        if (AGENT_NAMESPACE, name) not in self.objects(SERVICE_ACCOUNT):
            await self._create(NAMESPACE, {"metadata": {"name": AGENT_NAMESPACE}})
            labels = {LABEL_IS_ACCOUNT: "true"}
            metadata = {"name": name, "namespace": AGENT_NAMESPACE, "labels": labels}
            await self._create(SERVICE_ACCOUNT, {"metadata": metadata})

    async def _create(self, kind: Kind, body: Object) -> None:
        resource = kind.at("v1")
        with contextlib.suppress(Conflict):
            await self.client.create(resource, {"apiVersion": "v1", "kind": kind.kind} | body)

    async def _needs_token(self, account: Object) -> bool:
        secret = self._secret_of(account)
        if account["metadata"]["name"] in self._forced or needs_token(account, secret, time.time()):
            return True
        return not await self._is_accepted(token_in(secret or {}))

    def _secret_of(self, account: Object) -> Object | None:
        return self._hub.objects(SECRET).get((self._cluster, account["metadata"]["name"]))

    async def _is_accepted(self, token: str) -> bool:
        """Return whether the worker accepts the token."""
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        review = await self.client.request("POST", path, kind | {"spec": {"token": token}})
        return bool(review["status"].get("authenticated"))

    async def _report_token(self, account: Object) -> Object:
        """Write a new token into the Secret, then the status; return the account with that status."""
        name = account["metadata"]["name"]
        asked = {"spec": {"expirationSeconds": int(validity(account))}}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"} | asked
        path = SERVICE_ACCOUNT.at("v1").path(AGENT_NAMESPACE, name, "token")
        given = (await self.client.request("POST", path, request))["status"]
        await self._put_secret(account, given["token"])
        self._forced.discard(name)
        now = time.time()
        status = reported_status(
            account, expires=given["expirationTimestamp"], refreshed=format_time(now), now=now
        )
        return await self._write_status(account, status)

    async def _put_secret(self, account: Object, token: str) -> None:
        hub, version = self._hub, self._hub.informer.resources[ACCOUNT].api_version
        wanted, secret = secret_of(account, version, token, self._authority), self._secret_of(account)
        if secret is None:
            hub.informer.remember(SECRET, await hub.client.create(SECRET.at("v1"), wanted))
            return
        gone: Object = dict.fromkeys((secret.get("data") or {}).keys() - wanted["data"].keys())
        metadata = {key: wanted["metadata"][key] for key in ("labels", "ownerReferences")}
        await hub.patch(SECRET, secret, {"metadata": metadata, "data": wanted["data"] | gone})

    async def _write_status(self, account: Object, status: Object) -> Object:
        if status == account.get("status"):
            return account
        return await self._hub.replace_status(ACCOUNT, account, status)

    def _requeue_at(self, name: str, at: float) -> None:
        if self._requeue_times.get(name) != at:
            self._requeue_times[name] = at
            self.enqueue(("account", name), after=at - time.time())

    # -- ManifestWorks

    async def _reconcile_work(self, name: str) -> None:
        work = self._hub.objects(WORK).get((self._cluster, name))
        if work is None or not owner_of(work):
            return
        held = list(work["metadata"].get("finalizers") or ())
        if is_deleted(work):
            await self._delete_applied(applied_resources(work))
            if WORK_FINALIZER in held:
                kept = [name for name in held if name != WORK_FINALIZER]
                await self._hub.patch(WORK, work, {"metadata": {"finalizers": kept}})
            return
        if WORK_FINALIZER not in held:
            work = await self._hub.patch(WORK, work, {"metadata": {"finalizers": [*held, WORK_FINALIZER]}})
        manifests = work["spec"]["workload"]["manifests"]
        wanted = {identity_of(resource_meta(index, manifest)) for index, manifest in enumerate(manifests)}
        await self._delete_applied(
            [meta for meta in applied_resources(work) if identity_of(meta) not in wanted]
        )
        status = work_status(work, await self._apply(manifests), time.time())
        if status != work.get("status"):
            await self._hub.replace_status(WORK, work, status)

    async def _apply(self, manifests: list[Object]) -> dict[int, str]:
        """Apply all manifests; return the error messages by index."""
        failures: dict[int, str] = {}
        for index, manifest in enumerate(manifests):
            try:
                await self.client.apply(RBAC_KINDS[manifest["kind"]].at("v1"), manifest, force=True)
            except (Refused, NotFound) as error:
                failures[index] = error.message
        return failures

    async def _delete_applied(self, metas: list[Object]) -> None:
        for kind, namespace, name in map(identity_of, metas):
            with contextlib.suppress(NotFound):
                await self.client.delete(RBAC_KINDS[kind].at("v1"), name, namespace or None)


def _is_ours(item: Object) -> bool:
    return bool((item["metadata"].get("labels") or {}).get(LABEL_IS_ACCOUNT) == "true")
