"""
Watch the credentials that the controller provisions: objects on the hub and the workers, and tokens.

Tokens are compared by digest; no result contains a token.
"""

import asyncio
import base64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, Self

from placement_ac.core.api.constants import (
    ACCOUNT,
    KUBECONFIG_KEY,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    PERMISSION,
    SECRET,
    TOKEN_KEY,
    Kind,
)
from placement_ac.core.api.decode import digest_of
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.standins.cluster_agent import SERVICE_ACCOUNT
from placement_lab.standins.cluster_permissions import RBAC_KINDS
from placement_lab.standins.informer import HubInformer
from placement_lab.standins.kueue import NAMESPACE
from placement_lab.standins.managed_service_accounts import AGENT_NAMESPACE, LABEL_IS_ACCOUNT
from placement_lab.standins.manifests import FIELD_MANAGER

NAME: Final = "placement-ac"
"""The default of setting `credentials_account`: the name of all provisioned objects but our Secrets."""
ON_HUB: Final = (ACCOUNT, PERMISSION, SECRET)
ON_WORKERS: Final = (SERVICE_ACCOUNT, RBAC_KINDS["ClusterRole"], RBAC_KINDS["ClusterRoleBinding"])
_LABELS: Final = ((LABEL_MANAGED_BY, MANAGED_BY), (LABEL_IS_ACCOUNT, "true"))
"""Every provisioned object on the hub has one of these labels; OCM sets the second."""

ObjectIdentity = tuple[str, str, str, str]
"""Worker ("" for the hub), kind, namespace and name of an object."""


@dataclass(frozen=True, slots=True)
class ProvisionedCredentials:
    """The provisioned credentials at one moment. Cluster names are sorted."""

    objects: tuple[Object, ...]
    """The objects on the hub; Secrets without their data."""
    identities: frozenset[ObjectIdentity]
    """The identities of the objects on the hub and on the workers."""
    current: tuple[str, ...]
    """The clusters whose kubeconfig holds the latest token that OCM reported."""
    renewed: tuple[str, ...]
    """The clusters whose kubeconfig holds a different token than at the start of the step."""

    @property
    def workers(self) -> list[str]:
        """The workers that hold provisioned objects."""
        return sorted({worker for worker, *_ in self.identities if worker})

    def is_exactly_for(self, clusters: Iterable[str]) -> bool:
        """Return whether exactly these clusters have all objects and current tokens."""
        wanted = sorted(clusters)
        return self.identities == expected_identities(wanted) and list(self.current) == wanted


def expected_identities(clusters: Iterable[str]) -> frozenset[ObjectIdentity]:
    """Return all objects that exist when exactly these clusters have provisioned credentials."""
    return frozenset(
        identity
        for cluster in clusters
        for identity in (
            ("", ACCOUNT.kind, cluster, NAME),
            ("", PERMISSION.kind, cluster, NAME),
            ("", SECRET.kind, cluster, NAME),
            ("", SECRET.kind, NAMESPACE, f"{NAME}-{cluster}"),
            (cluster, SERVICE_ACCOUNT.kind, AGENT_NAMESPACE, NAME),
            (cluster, "ClusterRole", "", NAME),
            (cluster, "ClusterRoleBinding", "", NAME),
        )
    )


class CredentialViewer:
    """Watches a hub and its workers, as an async context manager. `workers`: admin logins by name."""

    def __init__(self, hub: Login, workers: Mapping[str, Login]) -> None:
        self._logins = {"": hub, **workers}
        self._informers: dict[str, HubInformer] = {}
        self._before: dict[str, str] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for where, login in self._logins.items():
            client = await self._stack.enter_async_context(Client(login, field_manager=FIELD_MANAGER))
            informer = HubInformer(client, ON_WORKERS if where else ON_HUB, _ignore_change)
            self._stack.push_async_callback(_cancel, asyncio.create_task(informer.run()))
            self._informers[where] = informer
        for informer in self._informers.values():
            await informer.synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def begin_step(self) -> None:
        """Start a step: tokens that change from now on count as renewed."""
        self._before = self._tokens_in_kubeconfigs()

    def current(self) -> ProvisionedCredentials:
        objects = [(kind, obj) for kind in ON_HUB for obj in self._provisioned("", kind)]
        on_hub = {("", kind.kind, *_name_of(obj)) for kind, obj in objects}
        reported, used = self._tokens_reported(), self._tokens_in_kubeconfigs()
        return ProvisionedCredentials(
            objects=tuple(_without_data(obj) for _, obj in objects),
            identities=frozenset(on_hub.union(self._identities_on_workers())),
            current=tuple(cluster for cluster in sorted(used) if used[cluster] == reported.get(cluster)),
            renewed=tuple(
                cluster
                for cluster in sorted(used)
                if used[cluster] != self._before.get(cluster, used[cluster])
            ),
        )

    def _provisioned(self, where: str, kind: Kind) -> list[Object]:
        """Return the provisioned objects on the hub ("") or a worker, sorted by namespace and name."""
        there = sorted(self._informers[where].objects[kind].items())
        return [obj for (_, name), obj in there if (name == NAME if where else _is_labelled(obj))]

    def _identities_on_workers(self) -> Iterable[ObjectIdentity]:
        for where in self._informers.keys() - {""}:
            for kind in ON_WORKERS:
                yield from ((where, kind.kind, *_name_of(obj)) for obj in self._provisioned(where, kind))

    def _tokens_reported(self) -> dict[str, str]:
        """Return the digest of the token that OCM reported, by cluster."""
        secrets = self._informers[""].objects[SECRET].items()
        there = ((where, _secret_value(obj, TOKEN_KEY)) for (where, name), obj in secrets if name == NAME)
        return {cluster: digest_of(token) for cluster, token in there}

    def _tokens_in_kubeconfigs(self) -> dict[str, str]:
        """Return the digest of the token in the kubeconfig, by cluster."""
        found = {}
        for (namespace, name), obj in self._informers[""].objects[SECRET].items():
            if namespace == NAMESPACE and name.startswith(f"{NAME}-"):
                access = read_kubeconfig(_secret_value(obj, KUBECONFIG_KEY))
                if isinstance(access, ClusterAccess):
                    found[name.removeprefix(f"{NAME}-")] = digest_of(access.token.encode())
        return found


def created_by_controller(objects: Sequence[Object]) -> list[Object]:
    """Return the objects that the controller created itself (OCM creates the others)."""
    return [
        obj for obj in objects if (obj["metadata"].get("labels") or {}).get(LABEL_MANAGED_BY) == MANAGED_BY
    ]


def _is_labelled(obj: Object) -> bool:
    labels = obj["metadata"].get("labels") or {}
    return any(labels.get(key) == value for key, value in _LABELS)


def _name_of(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _secret_value(secret: Object, key: str) -> bytes:
    return base64.b64decode((secret.get("data") or {}).get(key, ""))


def _without_data(obj: Object) -> Object:
    """Return the object without the data of a Secret."""
    return {key: value for key, value in obj.items() if key not in ("data", "stringData")}


def _ignore_change(_: Kind, __: str, ___: str) -> None:
    """Do nothing: callers poll `current`."""


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
