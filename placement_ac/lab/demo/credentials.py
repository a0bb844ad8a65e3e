"""
What the audience sees of credentials that are made: on the hub, on the workers, and whether they are current.

Tokens are compared by digest. Nothing that is handed out here holds one.
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
from placement_ac.core.kubeconfig.access import ClusterAccess, read_kubeconfig
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_ac.lab.standins.cluster_agent import SERVICE_ACCOUNT
from placement_ac.lab.standins.cluster_permissions import RBAC_KINDS
from placement_ac.lab.standins.informer import HubInformer
from placement_ac.lab.standins.kueue import NAMESPACE
from placement_ac.lab.standins.managed_service_accounts import AGENT_NAMESPACE, LABEL_IS_ACCOUNT
from placement_ac.lab.standins.manifests import FIELD_MANAGER

NAME: Final = "placement-ac"
"""The setting `credentials_account`: how all is called that is made, but for our Secrets."""
ON_HUB: Final = (ACCOUNT, PERMISSION, SECRET)
ON_WORKERS: Final = (SERVICE_ACCOUNT, RBAC_KINDS["ClusterRole"], RBAC_KINDS["ClusterRoleBinding"])
_LABELS: Final = ((LABEL_MANAGED_BY, MANAGED_BY), (LABEL_IS_ACCOUNT, "true"))
"""One of them is on everything that is made on the hub; the second is OCM's."""

Thing = tuple[str, str, str, str]
"""The worker ("": the hub), kind, namespace and name of an object."""


@dataclass(frozen=True, slots=True)
class MadeSeen:
    """What is there of credentials that are made. Clusters are told by name, in order."""

    objects: tuple[Object, ...]
    """What is there on the hub, Secrets without what is in them."""
    things: frozenset[Thing]
    """The same by name, and what is there on the workers."""
    current: tuple[str, ...]
    """Where the kubeconfig has the token that OCM has reported last."""
    renewed: tuple[str, ...]
    """Where the kubeconfig has another token than when the step began."""

    @property
    def on_workers(self) -> list[str]:
        """The workers that hold anything that was made."""
        return sorted({worker for worker, *_ in self.things if worker})

    def is_for(self, clusters: Iterable[str]) -> bool:
        """Whether all is there for these clusters, with current tokens, and nothing for any other."""
        wanted = sorted(clusters)
        return self.things == things_of(wanted) and list(self.current) == wanted


def things_of(clusters: Iterable[str]) -> frozenset[Thing]:
    """Return what has to be there if credentials are made for these clusters, and for no other."""
    return frozenset(
        thing
        for cluster in clusters
        for thing in (
            ("", ACCOUNT.kind, cluster, NAME),
            ("", PERMISSION.kind, cluster, NAME),
            ("", SECRET.kind, cluster, NAME),
            ("", SECRET.kind, NAMESPACE, f"{NAME}-{cluster}"),
            (cluster, SERVICE_ACCOUNT.kind, AGENT_NAMESPACE, NAME),
            (cluster, "ClusterRole", "", NAME),
            (cluster, "ClusterRoleBinding", "", NAME),
        )
    )


class Making:
    """Watches a hub and its workers (an admin's way into each, by name); `async with` it."""

    def __init__(self, hub: Login, workers: Mapping[str, Login]) -> None:
        self._logins = {"": hub, **workers}
        self._informers: dict[str, HubInformer] = {}
        self._before: dict[str, str] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for where, login in self._logins.items():
            client = await self._stack.enter_async_context(Client(login, field_manager=FIELD_MANAGER))
            informer = HubInformer(login, client, ON_WORKERS if where else ON_HUB, _nobody_is_told)
            self._stack.push_async_callback(_ended, asyncio.create_task(informer.run()))
            self._informers[where] = informer
        for informer in self._informers.values():
            await informer.synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def mark(self) -> None:
        """Begin a step: from now on a token that changes is one that was renewed."""
        self._before = self._tokens_in_kubeconfigs()

    def seen(self) -> MadeSeen:
        objects = [(kind, obj) for kind in ON_HUB for obj in self._made("", kind)]
        on_hub = {("", kind.kind, *_where(obj)) for kind, obj in objects}
        reported, used = self._tokens_reported(), self._tokens_in_kubeconfigs()
        return MadeSeen(
            objects=tuple(_bare(obj) for _, obj in objects),
            things=frozenset(on_hub.union(self._things_on_workers())),
            current=tuple(cluster for cluster in sorted(used) if used[cluster] == reported.get(cluster)),
            renewed=tuple(
                cluster
                for cluster in sorted(used)
                if used[cluster] != self._before.get(cluster, used[cluster])
            ),
        )

    def _made(self, where: str, kind: Kind) -> list[Object]:
        """Return the objects on the hub, or of that name on a worker, by namespace and name."""
        there = sorted(self._informers[where].objects[kind].items())
        return [obj for (_, name), obj in there if (name == NAME if where else _is_labelled(obj))]

    def _things_on_workers(self) -> Iterable[Thing]:
        for where in self._informers.keys() - {""}:
            for kind in ON_WORKERS:
                yield from ((where, kind.kind, *_where(obj)) for obj in self._made(where, kind))

    def _tokens_reported(self) -> dict[str, str]:
        """Return the digest of the token that OCM has reported, by cluster."""
        secrets = self._informers[""].objects[SECRET].items()
        there = ((where, _content(obj, TOKEN_KEY)) for (where, name), obj in secrets if name == NAME)
        return {cluster: digest_of(token) for cluster, token in there}

    def _tokens_in_kubeconfigs(self) -> dict[str, str]:
        """Return the digest of the token in the kubeconfig, by cluster."""
        found = {}
        for (namespace, name), obj in self._informers[""].objects[SECRET].items():
            if namespace == NAMESPACE and name.startswith(f"{NAME}-"):
                access = read_kubeconfig(_content(obj, KUBECONFIG_KEY))
                if isinstance(access, ClusterAccess):
                    found[name.removeprefix(f"{NAME}-")] = digest_of(access.token.encode())
        return found


def labelled(objects: Sequence[Object]) -> list[Object]:
    """Return those that the controller has made itself, and not OCM for it."""
    return [
        obj for obj in objects if (obj["metadata"].get("labels") or {}).get(LABEL_MANAGED_BY) == MANAGED_BY
    ]


def _is_labelled(obj: Object) -> bool:
    labels = obj["metadata"].get("labels") or {}
    return any(labels.get(key) == value for key, value in _LABELS)


def _where(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _content(secret: Object, key: str) -> bytes:
    return base64.b64decode((secret.get("data") or {}).get(key, ""))


def _bare(obj: Object) -> Object:
    """Leave out what is in a Secret."""
    return {key: value for key, value in obj.items() if key not in ("data", "stringData")}


def _nobody_is_told(_: Kind, __: str, ___: str) -> None:
    """Who looks on looks often."""


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
