"""
A stand-in for OCM's controllers of ManagedServiceAccounts and ClusterPermissions, on a hub and its workers.

Simulates the managed-serviceaccount add-on (agents and credential syncer), the cluster-permission
controller with the work agents, and the part of OCM's registration that creates and removes a
ManagedCluster's namespace and add-on. Intermediate states are visible, as in OCM. The decisions are pure
functions in `managed_service_accounts` and `cluster_permissions`.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON,
    CLUSTER_PROFILE,
    LABEL_CLUSTER,
    MANAGED_CLUSTER,
    NAMESPACE,
    PERMISSION,
    SECRET,
    Kind,
)
from placement_ac.core.api.errors import Conflict, NotFound
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.cluster_agent import REFRESH_DELAY_SECONDS, ClusterAgent
from placement_lab.standins.cluster_permissions import (
    ADDON_NAME,
    APPLIED,
    WORK,
    BuildError,
    names_accounts,
    owner_of,
    status_from_work,
    validation_failure,
    work_name,
    work_of,
)
from placement_lab.standins.informer import Key, Name, StandIn
from placement_lab.standins.managed_service_accounts import (
    AGENT_NAMESPACE,
    LABEL_IS_ACCOUNT,
    LABEL_SYNCED_FROM,
    is_orphan,
    is_synced,
    is_synced_profile,
    synced_name,
    synced_secret,
    with_condition,
)
from placement_lab.standins.multikueue.objects import is_deleted

TIMEOUT_SECONDS: Final = 10.0
Logins = Mapping[str, Callable[[], Login]]
"""By managed cluster: a function that returns an admin's login for its worker."""


class OcmAddons(StandIn):
    """Simulates OCM's add-ons for `clusters` that have a ManagedCluster; ignores all others.

    `keep_namespace`: keep the namespace of a deleted ManagedCluster with everything that OCM did not create,
    as OCM does; False: delete it. `sync_profiles`: the add-on's feature gate ClusterProfile.
    `slack`: the delay of a token refresh in seconds. `refresh`, `revoke`, `pause` and `resume` may be called
    from any thread except the stand-in's own.
    """

    name = "ocm-accounts"
    kinds = (NAMESPACE, MANAGED_CLUSTER, ADDON, ACCOUNT, PERMISSION, WORK, SECRET)
    optional = (CLUSTER_PROFILE,)

    def __init__(
        self,
        login: Login,
        clusters: Logins,
        *,
        keep_namespace: bool = True,
        sync_profiles: bool = True,
        slack: float = REFRESH_DELAY_SECONDS,
    ) -> None:
        super().__init__(login)
        self._agents = {
            name: ClusterAgent(make(), name, self, slack=slack) for name, make in clusters.items()
        }
        self._keep_namespace = keep_namespace
        self._sync_profiles = sync_profiles
        self._addon_namespaces: dict[str, tuple[object, object]] = {}
        self._keys_of_kind: dict[Kind, Callable[[Name], Iterable[Key]]] = {
            NAMESPACE: lambda key: [("cluster", *key)],
            MANAGED_CLUSTER: self._keys_of_cluster,
            ADDON: self._keys_of_addon,
            ACCOUNT: self._keys_of_account,
            PERMISSION: lambda key: [("permission", *key)],
            WORK: self._keys_of_work,
            SECRET: self._keys_of_secret,
        }
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(super().run())
            await self.informer.synced()  # otherwise agents would delete what is not listed yet
            for agent in self._agents.values():
                tasks.create_task(agent.run())

    # -- from other threads

    def refresh(self, cluster: str) -> None:
        """Report a new token for each account of the cluster; the old ones stay valid."""
        self._call(self._agents[cluster].refresh())

    def revoke(self, cluster: str) -> None:
        """Invalidate all tokens on the worker; returns when it rejects them. Raises ApiError."""
        self._call(self._agents[cluster].revoke())

    def pause(self, cluster: str) -> None:
        """Pause the cluster's agents: they write no Secrets and change no permissions."""
        self._call(self._agents[cluster].pause())

    def resume(self, cluster: str) -> None:
        self._call(self._agents[cluster].resume())

    def _call(self, work: Coroutine[object, object, None]) -> None:
        if self._loop is None:
            work.close()
            raise RuntimeError("the stand-in does not run")
        asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_SECONDS)

    # -- from changes to keys

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        cluster = name if kind in (NAMESPACE, MANAGED_CLUSTER) else namespace
        if kind == CLUSTER_PROFILE:
            return [("profile", namespace, name)]
        if cluster not in self._agents:
            return []
        return self._keys_of_kind[kind]((namespace, name))

    def _keys_of_cluster(self, key: Name) -> list[Key]:
        self._agents[key[1]].reconcile_all()
        return [("cluster", *key)]

    def _keys_of_addon(self, key: Name) -> list[Key]:
        """Return the cluster's key and, if the agent's namespace changed, those of its ClusterPermissions."""
        cluster, name = key
        if name != ADDON_NAME:
            return []
        touched: list[Key] = [("cluster", "", cluster)]
        addon, before = self.objects(ADDON).get(key), self._addon_namespaces.pop(cluster, None)
        if addon is None:
            return touched
        spec, status = addon.get("spec") or {}, addon.get("status") or {}
        self._addon_namespaces[cluster] = spec.get("installNamespace"), status.get("namespace")
        if before not in (None, self._addon_namespaces[cluster]):
            permissions = self.objects(PERMISSION).items()
            touched += [
                ("permission", *at) for at, item in permissions if at[0] == cluster and names_accounts(item)
            ]
        return touched

    def _keys_of_account(self, key: Name) -> list[Key]:
        """Return the keys of an account. The controller of ClusterPermissions does not watch accounts."""
        self._agents[key[0]].enqueue(("account", key[1]))
        return self._profiles_of(key[0])

    def _keys_of_work(self, key: Name) -> list[Key]:
        self._agents[key[0]].enqueue(("work", key[1]))
        return [("report", *key)]

    def _keys_of_secret(self, key: Name) -> list[Key]:
        secret = self.objects(SECRET).get(key)
        labels = (secret["metadata"].get("labels") or {}) if secret else {LABEL_IS_ACCOUNT: "true"}
        if labels.get(LABEL_IS_ACCOUNT) != "true":
            return []
        self._agents[key[0]].enqueue(("account", key[1]))
        return self._profiles_of(key[0])

    def _profiles_of(self, cluster: str) -> list[Key]:
        return [("profile", *key) for key in self.objects(CLUSTER_PROFILE) if key[1] == cluster]

    async def reconcile(self, key: Key) -> None:
        what, namespace, name = key
        if what == "cluster":
            await self._reconcile_cluster(name)
        elif what == "permission":
            await self._reconcile_permission((namespace, name))
        elif what == "report":
            await self._report_work((namespace, name))
        elif self._sync_profiles:
            await self._sync_profile((namespace, name))

    # -- ManagedClusters

    async def _reconcile_cluster(self, name: str) -> None:
        cluster, namespace = (
            self.objects(MANAGED_CLUSTER).get(("", name)),
            self.objects(NAMESPACE).get(("", name)),
        )
        if cluster is None or is_deleted(cluster):
            await self._clean_up_cluster(name, namespace)
            return
        if namespace is None:
            labels = {LABEL_CLUSTER: name}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            await self._create(NAMESPACE, body)
        elif (namespace["metadata"].get("labels") or {}).get(LABEL_CLUSTER) != name:
            await self.patch(NAMESPACE, namespace, {"metadata": {"labels": {LABEL_CLUSTER: name}}})
        await self._install_addon(name)

    async def _install_addon(self, cluster: str) -> None:
        """Install the add-on on a cluster, then report its agent's namespace in the status."""
        addon = self.objects(ADDON).get((cluster, ADDON_NAME))
        if addon is None:
            metadata = {"name": ADDON_NAME, "namespace": cluster}
            version = {"apiVersion": self.informer.resources[ADDON].api_version, "kind": ADDON.kind}
            spec = {"installNamespace": AGENT_NAMESPACE}
            addon = await self._create(ADDON, version | {"metadata": metadata, "spec": spec})
        if addon and not addon.get("status"):
            conditions = with_condition(
                (),
                "Available",
                True,
                "ManagedClusterAddOnLeaseUpdated",
                f"{ADDON_NAME} add-on is available.",
                time.time(),
            )
            await self.patch(
                ADDON, addon, {"status": {"namespace": AGENT_NAMESPACE, "conditions": conditions}}, "status"
            )

    async def _clean_up_cluster(self, cluster: str, namespace: Object | None) -> None:
        """Delete OCM's objects of a deleted ManagedCluster."""
        if namespace is None or (namespace["metadata"].get("labels") or {}).get(LABEL_CLUSTER) != cluster:
            return
        for kind in (ADDON, WORK):
            for where, name in [key for key in self.objects(kind) if key[0] == cluster]:
                await self._delete(kind, name, where)
        if not self._keep_namespace and not is_deleted(namespace):
            await self._delete(NAMESPACE, cluster, None)

    async def _create(self, kind: Kind, body: Object) -> Object | None:
        """Create the object and return it; None if it already exists (its event follows)."""
        try:
            made = await self.client.create(self.informer.resources[kind], body)
        except Conflict:
            return None
        self.informer.remember(kind, made)
        return made

    async def _delete(self, kind: Kind, name: str, namespace: str | None) -> None:
        with contextlib.suppress(NotFound):
            await self.client.delete(self.informer.resources[kind], name, namespace)

    # -- ClusterPermissions

    async def _reconcile_permission(self, key: Name) -> None:
        """Create or update the ManifestWork of a ClusterPermission; report a failure as a condition."""
        permission = self.objects(PERMISSION).get(key)
        if permission is None or is_deleted(permission):
            return
        wrong = validation_failure(permission, is_cluster=("", key[0]) in self.objects(MANAGED_CLUSTER))
        if wrong:
            await self._set_condition(permission, "Validation", *wrong)
            return
        accounts = {name for cluster, name in self.objects(ACCOUNT) if cluster == key[0]}
        try:
            work = work_of(permission, accounts, self.objects(ADDON).get((key[0], ADDON_NAME)))
        except BuildError as error:
            await self._set_condition(permission, APPLIED, "FailedBuildManifestWork", str(error))
            return
        present = self.objects(WORK).get((key[0], work_name(permission)))
        if present is None:
            await self._create(WORK, work)
        elif present["spec"] != work["spec"]:
            await self.patch(WORK, present, {"spec": work["spec"]})

    async def _set_condition(self, permission: Object, kind: str, reason: str, message: str) -> None:
        status = permission.get("status") or {}
        conditions = with_condition(status.get("conditions") or (), kind, False, reason, message, time.time())
        if conditions != status.get("conditions"):
            await self.patch(PERMISSION, permission, {"status": {"conditions": conditions}}, "status")

    async def _report_work(self, work_key: Name) -> None:
        """Copy the work agent's result into the status of the ClusterPermission."""
        work = self.objects(WORK).get(work_key)
        permission = self.objects(PERMISSION).get((work_key[0], owner_of(work))) if work else None
        if work is None or permission is None or is_deleted(permission):
            return
        status = status_from_work(permission, work, time.time())
        if status != permission.get("status"):
            await self.replace_status(PERMISSION, permission, status)

    # -- the credential syncer

    async def _sync_profile(self, key: Name) -> None:
        """Copy the Secrets of labelled accounts into the ClusterProfile's namespace, and delete orphans."""
        profile = self.objects(CLUSTER_PROFILE).get(key)
        if profile is None or not is_synced_profile(profile):
            return
        marked = [it for at, it in self.objects(ACCOUNT).items() if at[0] == key[1] and is_synced(it)]
        for account in marked:
            await self._sync_secret(account, profile)
        names = {synced_name(account) for account in marked}
        beside = [(at, secret) for at, secret in self.objects(SECRET).items() if at[0] == key[0]]
        for (namespace, name), secret in beside:
            if is_orphan(secret, profile, names):
                await self._delete(SECRET, name, namespace)

    async def _sync_secret(self, account: Object, profile: Object) -> None:
        reference = (account.get("status") or {}).get("tokenSecretRef") or {}
        cluster = account["metadata"]["namespace"]
        source = self.objects(SECRET).get((cluster, reference.get("name", "")))
        if source is None:
            return
        wanted = synced_secret(account, profile, source)
        secret = self.objects(SECRET).get((profile["metadata"]["namespace"], synced_name(account)))
        if secret is None:
            await self._create(SECRET, wanted)
        elif secret.get("data") != wanted["data"] or _synced_from(secret) != _synced_from(wanted):
            metadata = {key: wanted["metadata"][key] for key in ("labels", "ownerReferences")}
            gone: Object = dict.fromkeys((secret.get("data") or {}).keys() - wanted["data"].keys())
            await self.patch(SECRET, secret, {"metadata": metadata, "data": wanted["data"] | gone})


def _synced_from(secret: Object) -> object:
    return (secret["metadata"].get("labels") or {}).get(LABEL_SYNCED_FROM)
