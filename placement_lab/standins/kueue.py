"""
A stand-in for Kueue's MultiKueue: conditions of clusters, checks and queues, and Kueue's finalizer.

Evaluates `kueue_rules` and writes as Kueue does: the status by server-side apply with field manager
"kueue", only if it differs. It does not connect to workers.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import ClassVar, Final

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    CONDITION_ACTIVE,
    FINALIZER_IN_USE,
    KUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    SECRET,
    Kind,
)
from placement_ac.core.api.fields import format_time
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.informer import Key, Name, StandIn
from placement_lab.standins.kueue_rules import (
    ActiveCondition,
    KueueCache,
    WorkerCredentials,
    checks_of,
    condition_of,
    flavors_of,
    is_multikueue,
    judge_check,
    judge_cluster,
    judge_local_queue,
    judge_queue,
    source_of,
)

_VERSIONS: Final = ("v1beta2", "v1beta1")
CLUSTER_QUEUE: Final = Kind(KUEUE, "ClusterQueue", "clusterqueues", False, _VERSIONS)
LOCAL_QUEUE: Final = Kind(KUEUE, "LocalQueue", "localqueues", True, _VERSIONS)
RESOURCE_FLAVOR: Final = Kind(KUEUE, "ResourceFlavor", "resourceflavors", False, _VERSIONS)

NAMESPACE: Final = "kueue-system"
"""The namespace of Kueue's manager, Secrets and ClusterProfiles."""


class MultiKueue(StandIn):
    """Simulates Kueue's manager on a hub.

    `cluster_profiles` is Kueue's feature gate MultiKueueClusterProfile (off by default),
    `access_providers` the names of the access providers in Kueue's configuration.
    """

    name = "kueue"
    kinds: ClassVar[tuple[Kind, ...]] = (
        SECRET,
        MULTIKUEUE_CLUSTER,
        MULTIKUEUE_CONFIG,
        ADMISSION_CHECK,
        RESOURCE_FLAVOR,
        CLUSTER_QUEUE,
        LOCAL_QUEUE,
    )
    optional = (CLUSTER_PROFILE,)

    def __init__(
        self,
        login: Login,
        *,
        namespace: str = NAMESPACE,
        cluster_profiles: bool = False,
        access_providers: Iterable[str] = (),
    ) -> None:
        super().__init__(login)
        self._namespace = namespace
        self._cluster_profiles = cluster_profiles
        self._access_providers = frozenset(access_providers)
        self._judges: dict[Kind, Callable[[Object], ActiveCondition | None]] = {
            MULTIKUEUE_CLUSTER: lambda item: judge_cluster(item, self._credentials()),
            ADMISSION_CHECK: lambda item: judge_check(item, self._cache()) if is_multikueue(item) else None,
            CLUSTER_QUEUE: lambda item: judge_queue(item, self._cache()),
            LOCAL_QUEUE: lambda item: judge_local_queue(item, self._cache()),
            RESOURCE_FLAVOR: lambda _: None,
        }
        self._kinds = {kind.kind: kind for kind in self._judges}

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        """Return the keys of the object and of those whose condition depends on it."""
        if kind in self._judges:
            yield kind.kind, namespace, name
        for other, key in self._dependents(kind, namespace, name):
            yield other.kind, *key

    def _dependents(self, kind: Kind, namespace: str, name: str) -> list[tuple[Kind, Name]]:
        if kind in (SECRET, CLUSTER_PROFILE):
            return self._clusters_by(name) if namespace == self._namespace else []
        # A deleted ClusterQueue does not say which checks it listed, so all of them are reconciled;
        # that sends no request if nothing changes.
        touched = {
            MULTIKUEUE_CLUSTER: (ADMISSION_CHECK,),
            MULTIKUEUE_CONFIG: (ADMISSION_CHECK,),
            ADMISSION_CHECK: (CLUSTER_QUEUE,),
            RESOURCE_FLAVOR: (CLUSTER_QUEUE,),
            CLUSTER_QUEUE: (LOCAL_QUEUE, ADMISSION_CHECK, RESOURCE_FLAVOR),
        }
        return [(other, key) for other in touched.get(kind, ()) for key in self.objects(other)]

    def _clusters_by(self, source: str) -> list[tuple[Kind, Name]]:
        """Return the MultiKueueClusters that name this Secret or ClusterProfile."""
        clusters = self.objects(MULTIKUEUE_CLUSTER).items()
        return [(MULTIKUEUE_CLUSTER, key) for key, item in clusters if source in _sources(item)]

    async def reconcile(self, key: Key) -> None:
        """Set an object's finalizer and condition, or remove the finalizer if it is deleted and unused."""
        kind, where = self._kinds[key[0]], (key[1], key[2])
        item = self.objects(kind).get(where)
        if item is None:
            return
        if kind in (ADMISSION_CHECK, RESOURCE_FLAVOR):
            await self._reconcile_finalizer(kind, item)
        wanted = self._judges[kind](item)
        if wanted and "deletionTimestamp" not in item["metadata"]:
            await self._write_condition(kind, item, wanted)

    async def _reconcile_finalizer(self, kind: Kind, item: Object) -> None:
        metadata = item["metadata"]
        held = list(metadata.get("finalizers") or ())
        going = "deletionTimestamp" in metadata
        if going and FINALIZER_IN_USE in held and not self._in_use(kind, metadata["name"]):
            await self._set_finalizers(kind, metadata, [name for name in held if name != FINALIZER_IN_USE])
        elif not going and FINALIZER_IN_USE not in held:
            await self._set_finalizers(kind, metadata, [*held, FINALIZER_IN_USE])

    async def _set_finalizers(self, kind: Kind, metadata: Object, finalizers: list[str]) -> None:
        # The resourceVersion prevents the loss of a finalizer that another client adds meanwhile.
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": finalizers}}
        await self.client.merge(self.informer.resources[kind], metadata["name"], patch)

    def _in_use(self, kind: Kind, name: str) -> bool:
        names_of = checks_of if kind == ADMISSION_CHECK else flavors_of
        return any(name in names_of(queue) for queue in self.objects(CLUSTER_QUEUE).values())

    async def _write_condition(self, kind: Kind, item: Object, wanted: ActiveCondition) -> None:
        before = condition_of(item) or {}
        metadata = item["metadata"]
        now = {
            "status": str(wanted.active),
            "reason": wanted.reason,
            "message": wanted.message,
            # Before 0.20, it was not refreshed if nothing else had changed (15962, 14838).
            "observedGeneration": metadata.get("generation", 0),
        }
        if all(before.get(field) == value for field, value in now.items()):
            return
        same = before.get("status") == now["status"]
        condition = now | {
            "type": CONDITION_ACTIVE,
            "lastTransitionTime": before["lastTransitionTime"] if same else format_time(datetime.now(UTC)),
        }
        identity = {field: metadata[field] for field in ("name", "namespace") if field in metadata}
        body = {"metadata": identity, "status": {"conditions": [condition]}}
        await self.client.apply(self.informer.resources[kind], body, subresource="status", force=True)

    def _cache(self) -> KueueCache:
        return KueueCache(
            configs=self._by_name(MULTIKUEUE_CONFIG),
            clusters=self._by_name(MULTIKUEUE_CLUSTER),
            checks=self._by_name(ADMISSION_CHECK),
            flavors=self._by_name(RESOURCE_FLAVOR).keys(),
            queues=self._by_name(CLUSTER_QUEUE),
        )

    def _credentials(self) -> WorkerCredentials:
        return WorkerCredentials(
            secrets=self._by_name(SECRET, self._namespace),
            profiles=self._by_name(CLUSTER_PROFILE, self._namespace),
            cluster_profiles=self._cluster_profiles,
            access_providers=self._access_providers,
        )

    def _by_name(self, kind: Kind, namespace: str = "") -> dict[str, Object]:
        return {name: item for (where, name), item in self.objects(kind).items() if where == namespace}


def _sources(cluster: Object) -> set[str]:
    source = source_of(cluster)
    profile, reference = source.get("clusterProfileRef") or {}, source.get("kubeConfig") or {}
    return {profile.get("name", ""), reference.get("location", "")}
