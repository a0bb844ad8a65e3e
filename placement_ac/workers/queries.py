"""
What is asked of one worker to know whether it is fit: only reads, and SelfSubjectAccessReviews. And what of
the hub, to know which Kueue runs there.

An answer that is an error is `Unknown`, in words that quote nothing of the worker's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from typing import Final, TypeVar

from placement_ac.core.api.constants import (
    KUEUE,
    KUEUE_MANAGER,
    KUEUE_VERSIONS,
    LABEL_RELEASE,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import ApiError, NotFound, Refused
from placement_ac.core.inputs.fitness import (
    API_VERSION,
    ServedKind,
    Unknown,
    WorkerFindings,
    WorkerQueues,
    WorkerRequirements,
    release_of,
)
from placement_ac.core.inputs.rights import KueueRelease, Right, parse_release
from placement_ac.kube.client import Client, Object
from placement_ac.workers.connector import WorkerError, worker_error_text

K = TypeVar("K")
T = TypeVar("T")

MAX_REQUESTS: Final = 8
"""Requests to one worker at the same time."""
DEPLOYMENT: Final = Kind("apps", "Deployment", "deployments", True, ("v1",)).at("v1")
NAMESPACE: Final = Kind("", "Namespace", "namespaces", False, ("v1",)).at("v1")
LOCAL_QUEUE: Final = Kind(KUEUE, "LocalQueue", "localqueues", True, KUEUE_VERSIONS)
ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False, ("v1",)
).at("v1")
SELF_SUBJECT_REVIEW: Final = Kind(
    "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", False, ("v1",)
).at("v1")


async def kueue_release(client: Client, namespace: str) -> str:
    """Return the release that Kueue's Deployment tells; "" when it tells none. Raises ApiError."""
    deployment = await client.get(DEPLOYMENT, KUEUE_MANAGER, namespace)
    containers = deployment["spec"]["template"]["spec"]["containers"]
    image = next((one.get("image") for one in containers if one.get("name") == "manager"), "")
    label = (deployment["metadata"].get("labels") or {}).get(LABEL_RELEASE)
    return release_of(image, label)


async def running_kueue(client: Client, namespace: str) -> KueueRelease | None:
    """Return the release that Kueue's Deployment tells; None when it tells none or cannot be read.

    Raises ApiError when there is no answer.
    """
    try:
        return parse_release(await kueue_release(client, namespace))
    except (NotFound, Refused):
        return None


class WorkerQueries:
    """Questions to one worker, entered by `account`, a Secret or ClusterProfile.

    Raise ApiError when the worker cannot be reached any more, or lets nobody in.
    """

    def __init__(self, client: Client, account: str) -> None:
        self._client = client
        self._account = account
        self._slots = asyncio.Semaphore(MAX_REQUESTS)

    async def findings(self, requirements: WorkerRequirements, kueue_namespace: str) -> WorkerFindings:
        """Ask for all but namespaces and LocalQueues. Raises WorkerError when Kueue's kinds are not told."""
        kueue = await self._served_kinds(KUEUE)
        if isinstance(kueue, Unknown):
            raise WorkerError(kueue.why)
        groups, rights, release = await asyncio.gather(
            _for_each(requirements.groups, self._served_kinds),
            _for_each(requirements.rights, self._is_allowed),
            self._kueue_release(kueue_namespace),
        )
        answered = (answer for answer in groups.values() if not isinstance(answer, Unknown))
        return WorkerFindings(
            account=self._account,
            served=kueue.union(*answered),
            unknown_groups={group: answer for group, answer in groups.items() if isinstance(answer, Unknown)},
            rights=rights,
            kueue_version=release,
        )

    async def queues(self) -> WorkerQueues:
        """Ask for all namespaces and LocalQueues."""
        found = (await self._client.discover([LOCAL_QUEUE])).get(LOCAL_QUEUE)
        namespaces = await self._names(NAMESPACE)
        return WorkerQueues(
            namespaces if isinstance(namespaces, Unknown) else frozenset(name for _, name in namespaces),
            await self._names(found) if found else frozenset(),
        )

    async def objects(self, kinds: Collection[Kind]) -> dict[Kind, tuple[Object, ...] | Unknown]:
        """Return all objects of each kind; none of one that the worker does not serve."""
        served = await self._client.discover(kinds)
        found = await _for_each(served, lambda kind: self._list(served[kind]))
        return {kind: found.get(kind, ()) for kind in kinds}

    async def user(self) -> str:
        """Return who one is on the worker, in the worker's own words; "" when it does not tell."""
        body = {
            "apiVersion": SELF_SUBJECT_REVIEW.api_version,
            "kind": SELF_SUBJECT_REVIEW.of.kind,
            "metadata": {},
        }
        answer = await self._request(
            "ask who it is", partial(self._client.request, "POST", SELF_SUBJECT_REVIEW.path(), body)
        )
        return "" if isinstance(answer, Unknown) else str(answer["status"]["userInfo"]["username"])

    async def _served_kinds(self, group: str) -> frozenset[ServedKind] | Unknown:
        """Return what is served of an API group, in all its versions."""
        if not group:
            return await self._served_kinds_in("", "v1")
        path = f"/apis/{group}"
        answer = await self._request(f"read {path}", partial(self._client.request, "GET", path))
        if isinstance(answer, Unknown):
            return frozenset() if answer.status == 404 else answer
        versions = {str(entry["version"]) for entry in answer["versions"]}
        found = await _for_each(
            filter(API_VERSION.fullmatch, versions), partial(self._served_kinds_in, group)
        )
        if silent := [one for one in found.values() if isinstance(one, Unknown)]:
            return silent[0]
        return frozenset[ServedKind]().union(*(one for one in found.values() if not isinstance(one, Unknown)))

    async def _served_kinds_in(self, group: str, version: str) -> frozenset[ServedKind] | Unknown:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        answer = await self._request(f"read {path}", partial(self._client.request, "GET", path))
        if isinstance(answer, Unknown):
            return frozenset() if answer.status == 404 else answer
        return frozenset(ServedKind(group, version, str(entry["name"])) for entry in answer["resources"])

    async def _is_allowed(self, right: Right) -> bool | Unknown:
        wish = {
            "group": right.group,
            "resource": right.resource,
            "subresource": right.subresource,
            "verb": right.verb,
        }
        body = {
            "apiVersion": ACCESS_REVIEW.api_version,
            "kind": ACCESS_REVIEW.of.kind,
            "metadata": {},
            "spec": {"resourceAttributes": wish},
        }
        ask = partial(self._client.request, "POST", ACCESS_REVIEW.path(), body)
        answer = await self._request("ask for its own rights", ask)
        return answer if isinstance(answer, Unknown) else answer["status"]["allowed"] is True

    async def _kueue_release(self, namespace: str) -> str | Unknown:
        answer = await self._request(
            f"get the Deployment {namespace}/{KUEUE_MANAGER}",
            partial(kueue_release, self._client, namespace),
        )
        return answer or Unknown("neither its image nor its label tells a release")

    async def _names(self, resource: Resource) -> frozenset[tuple[str, str]] | Unknown:
        """Return namespace and name of all objects."""
        answer = await self._list(resource)
        if isinstance(answer, Unknown):
            return answer
        found = (item["metadata"] for item in answer)
        return frozenset((str(one.get("namespace", "")), str(one["name"])) for one in found)

    async def _list(self, resource: Resource) -> tuple[Object, ...] | Unknown:
        permission = (
            f"list {resource.of} in all namespaces" if resource.of.namespaced else f"list {resource.of}"
        )
        answer = await self._request(permission, partial(self._client.list, resource))
        return answer if isinstance(answer, Unknown) else answer.items

    async def _request(self, permission: str, ask: Callable[[], Awaitable[T]]) -> T | Unknown:
        async with self._slots:
            try:
                return await ask()
            except ApiError as error:
                if error.status in (0, 401):
                    raise
                return Unknown(worker_error_text(error, self._account, permission), error.status)


async def _for_each(keys: Iterable[K], ask: Callable[[K], Awaitable[T]]) -> dict[K, T]:
    """Ask for each key, all at once, and raise the first error when all have ended."""
    keys = tuple(keys)
    answers = await asyncio.gather(*map(ask, keys), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return dict(zip(keys, answers, strict=True))  # type: ignore[arg-type]  # none is an error
