"""
Queries of a worker (is it fit?) and of the hub (which release of Kueue runs there, which LocalQueues it has).

They only read and create SelfSubjectAccessReviews and SelfSubjectReviews. A worker's error becomes `Unknown`,
which quotes nothing of the worker's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import structlog
from cachetools import TTLCache

from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    CONFIG_MAP,
    DEPLOYMENT,
    KUEUE,
    KUEUE_MANAGER,
    LOCAL_QUEUE,
    NAMESPACE,
    Kind,
    Resource,
)
from placement_ac.core.api.decode import checks_listed
from placement_ac.core.api.errors import ApiError, NotFound, Refused, TooLarge
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP, gates_of_config_map, gates_of_deployment
from placement_ac.core.inputs import fitness
from placement_ac.core.inputs.fitness import ServedKind, Unknown
from placement_ac.core.inputs.rights import Right, RunningKueue, parse_release
from placement_ac.kube.client import PAGE_SIZE, Client, Object, gather_all
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.workers.connector import WorkerError, worker_error_text

K = TypeVar("K")
T = TypeVar("T")
log = structlog.get_logger(__name__)

MAX_REQUESTS: Final = 8
"""Requests to one worker at the same time."""
MAX_VERSIONS: Final = 20
"""Of an API group; each is a request."""
MAX_RESOURCES: Final = 500
"""Of an API version; subresources count."""
CACHE_SECONDS: Final = 60.0
"""How long the hub's queues are cached."""
ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False, ("v1",)
).at("v1")
SELF_SUBJECT_REVIEW: Final = Kind(
    "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", False, ("v1",)
).at("v1")


async def kueue_release(client: Client, namespace: str) -> str:
    """Return the release that Kueue's Deployment names; "" when it names none. Raises ApiError."""
    return fitness.release_of(await client.get(DEPLOYMENT.at("v1"), KUEUE_MANAGER, namespace))


async def running_kueue(client: Client, namespace: str) -> tuple[RunningKueue, str]:
    """Return what Kueue's Deployment and ConfigMap say, and why its gates are not known.

    Raises ApiError when there is no answer.
    """
    release, problem = "", ""
    flags: dict[str, bool] | None = None
    gates: dict[str, bool] = {}
    with suppress(NotFound, Refused):
        deployment = await client.get(DEPLOYMENT.at("v1"), KUEUE_MANAGER, namespace)
        release, flags = fitness.release_of(deployment), gates_of_deployment(deployment)
    try:
        in_file = gates_of_config_map(await client.get(CONFIG_MAP.at("v1"), KUEUE_CONFIG_MAP, namespace))
        gates, problem = ({}, in_file) if isinstance(in_file, str) else (in_file, "")
    except NotFound:
        pass
    except Refused as refused:
        problem = refused.message
    is_known = flags if problem else flags is not None or gates
    known = tuple(sorted((gates | (flags or {})).items())) if is_known else None
    return RunningKueue(parse_release(release), known), problem


class HubLocalQueues:
    """The LocalQueues of the hub that send jobs through a check: its workers should have them as well."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cached: TTLCache[str, list[tuple[Object, ...]]] = TTLCache(1, CACHE_SECONDS)
        self._reading = asyncio.Lock()
        self._logged = LogDeduplicator()

    async def for_checks(self, checks: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Return namespace → LocalQueues behind ClusterQueues that list one of `checks`.

        Empty if the queues cannot be read: then no queue is required of a worker.
        """
        try:
            cluster_queues, local_queues = await self._read()
        except ApiError as error:
            level = self._logged.level(self, error.message)
            log.log(level, "cannot read the hub's queues", error=error.message)
            return {}
        if self._logged.ended(self):
            log.info("the hub's queues can be read again")
        using = {
            item["metadata"]["name"] for item in cluster_queues if not checks_listed(item).isdisjoint(checks)
        }
        queues: dict[str, set[str]] = {}
        for item in local_queues:
            if (item.get("spec") or {}).get("clusterQueue") in using:
                queues.setdefault(item["metadata"]["namespace"], set()).add(item["metadata"]["name"])
        return {namespace: frozenset(names) for namespace, names in queues.items()}

    async def _read(self) -> list[tuple[Object, ...]]:
        async with self._reading:  # calls at the same time share one answer
            known = self._cached.get("")
            if known is None:
                served = await self._client.discover((CLUSTER_QUEUE, LOCAL_QUEUE))
                known = self._cached[""] = [
                    (await self._client.list(served[kind])).items if kind in served else ()
                    for kind in (CLUSTER_QUEUE, LOCAL_QUEUE)
                ]
        return known


class WorkerQueries:
    """Queries of one worker with the credentials of `account`, a Secret or ClusterProfile.

    They raise ApiError when the worker cannot be reached or does not accept the credentials.
    """

    def __init__(self, client: Client, account: str) -> None:
        self._client = client
        self._account = account
        self._slots = asyncio.Semaphore(MAX_REQUESTS)

    async def findings(
        self, requirements: fitness.WorkerRequirements, kueue_namespace: str
    ) -> fitness.WorkerFindings:
        """Query all but namespaces and LocalQueues. Raises WorkerError when Kueue's kinds cannot be read."""
        kueue = await self._served_kinds(KUEUE)
        if isinstance(kueue, Unknown):
            raise WorkerError(kueue.why)
        groups, rights, release = await asyncio.gather(
            _for_each(requirements.groups, self._served_kinds),
            _for_each(requirements.rights, self._is_allowed),
            self._kueue_release(kueue_namespace),
        )
        answered = (answer for answer in groups.values() if not isinstance(answer, Unknown))
        return fitness.WorkerFindings(
            account=self._account,
            served=kueue.union(*answered),
            unknown_groups={group: answer for group, answer in groups.items() if isinstance(answer, Unknown)},
            rights=rights,
            kueue_version=release,
        )

    async def queues(self) -> fitness.WorkerQueues:
        """List all namespaces and LocalQueues."""
        resource = (await self._client.discover([LOCAL_QUEUE])).get(LOCAL_QUEUE)
        namespaces = await self._names(NAMESPACE.at("v1"))
        return fitness.WorkerQueues(
            namespaces if isinstance(namespaces, Unknown) else frozenset(name for _, name in namespaces),
            await self._names(resource) if resource else frozenset(),
        )

    async def objects(self, kinds: Collection[Kind]) -> dict[Kind, tuple[Object, ...] | Unknown]:
        """Return all objects of each kind; none of one that the worker does not serve."""
        served = await self._client.discover(kinds)
        answers = await _for_each(served, lambda kind: self._list(served[kind]))
        return {kind: answers.get(kind, ()) for kind in kinds}

    async def user(self) -> str:
        """Return the name of the account's user on the worker; "" if the worker refuses the review."""
        status = await self._review("ask who it is", SELF_SUBJECT_REVIEW)
        return "" if isinstance(status, Unknown) else str(status["userInfo"]["username"])

    async def kueue_config(self, namespace: str) -> Object | Unknown:
        """Return the ConfigMap with Kueue's configuration."""
        get = partial(self._client.get, CONFIG_MAP.at("v1"), KUEUE_CONFIG_MAP, namespace)
        return await self.request(f"get the ConfigMap {namespace}/{KUEUE_CONFIG_MAP}", get)

    async def _served_kinds(self, group: str) -> frozenset[ServedKind] | Unknown:
        """Return what is served of an API group, in all its versions."""
        if not group:
            return await self._served_kinds_in("", "v1")
        path = f"/apis/{group}"
        answer = await self.request(f"read {path}", partial(self._client.request, "GET", path))
        if isinstance(answer, Unknown):
            return frozenset() if answer.status == 404 else answer
        versions = {str(entry["version"]) for entry in answer["versions"]}
        valid = list(filter(fitness.API_VERSION.fullmatch, versions))
        if len(valid) > MAX_VERSIONS:
            raise TooLarge(f"more than {MAX_VERSIONS} versions of an API group")
        parts = await gather_all(self._served_kinds_in(group, version) for version in valid)
        if unknown := [part for part in parts if isinstance(part, Unknown)]:
            return unknown[0]
        return frozenset[ServedKind]().union(*(part for part in parts if not isinstance(part, Unknown)))

    async def _served_kinds_in(self, group: str, version: str) -> frozenset[ServedKind] | Unknown:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        answer = await self.request(f"read {path}", partial(self._client.request, "GET", path))
        if isinstance(answer, Unknown):
            return frozenset() if answer.status == 404 else answer
        resources = answer["resources"]
        if len(resources) > MAX_RESOURCES:
            raise TooLarge(f"more than {MAX_RESOURCES} kinds in an API version")
        return frozenset(ServedKind(group, version, str(entry["name"])) for entry in resources)

    async def _is_allowed(self, right: Right) -> bool | Unknown:
        spec = {"resourceAttributes": right._asdict()}
        status = await self._review("ask for its own rights", ACCESS_REVIEW, spec=spec)
        return status if isinstance(status, Unknown) else status["allowed"] is True

    async def _review(self, permission: str, resource: Resource, **spec: Object) -> Object | Unknown:
        """Create a review of the account, and return its status."""
        body = {"apiVersion": resource.api_version, "kind": resource.of.kind, "metadata": {}} | spec
        answer = await self.request(permission, partial(self._client.request, "POST", resource.path(), body))
        return answer if isinstance(answer, Unknown) else dict(answer["status"])

    async def _kueue_release(self, namespace: str) -> str | Unknown:
        answer = await self.request(
            f"get the Deployment {namespace}/{KUEUE_MANAGER}", partial(kueue_release, self._client, namespace)
        )
        return answer or Unknown("neither its image nor its label names a release")

    async def _names(self, resource: Resource) -> frozenset[tuple[str, str]] | Unknown:
        """Return namespace and name of all objects."""
        return await self.request(_permission_to_list(resource), partial(self._read_names, resource))

    async def _read_names(self, resource: Resource) -> frozenset[tuple[str, str]]:
        names: set[tuple[str, str]] = set()
        async for page in self._client.pages(resource, limit=PAGE_SIZE):
            if page.first:
                names.clear()
            metas = (item["metadata"] for item in page.items)
            names |= {(str(metadata.get("namespace", "")), str(metadata["name"])) for metadata in metas}
            del page, metas  # two pages at a time would take twice the memory
        return frozenset(names)

    async def _list(self, resource: Resource) -> tuple[Object, ...] | Unknown:
        answer = await self.request(_permission_to_list(resource), partial(self._client.list, resource))
        return answer if isinstance(answer, Unknown) else answer.items

    async def request(self, permission: str, send: Callable[[], Awaitable[T]]) -> T | Unknown:
        """Return what `send` returns, or why the worker refuses; `permission`: the right that it needs."""
        async with self._slots:
            try:
                return await send()
            except ApiError as error:
                if error.status in (0, 401):
                    raise
                return Unknown(worker_error_text(error, self._account, permission), error.status)


def _permission_to_list(resource: Resource) -> str:
    return f"list {resource.of}" + (" in all namespaces" if resource.of.namespaced else "")


async def _for_each(keys: Iterable[K], query: Callable[[K], Coroutine[Any, Any, T]]) -> dict[K, T]:
    """Query each key, all at once, and raise the first error when all have ended."""
    keys = tuple(keys)
    return dict(zip(keys, await gather_all(map(query, keys)), strict=True))
