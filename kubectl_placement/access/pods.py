"""Read the Pods of a job on its cluster: by labels, else by their owners."""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from kubectl_placement.access.open import PODS, OpenCluster
from kubectl_placement.access.pod_selectors import copy_problem, is_of_another, selectors
from kubectl_placement.access.unread import ObjectReader, Unread
from kubectl_placement.hub.dump import Object
from kubectl_placement.jobs.lookup import JobId
from kubectl_placement.jobs.place import JobPlace
from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.copy_owner import pod_group
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.core.api.fields import get_list, get_str, key_of
from placement_ac.core.inputs.rights import parse_external
from placement_ac.kube.client import Client

MOST_OWNERS: Final = 5
"""How far up the owners of a Pod are followed."""
_NO_SINGLE_POD: Final = "if it is in no group, it is not found"
_NO_RAY_CLUSTER: Final = "the Pods of its RayCluster are not found"
_NO_UID: Final = "Pods of another job of that name may be among them"
_NO_OWNER: Final = "Pods below such an object are not found"


class NotOurs(PlacementAcError):
    """The job of that name on the cluster is not the hub's."""


class JobThere(NamedTuple):
    """A job on its cluster. `copy`: the job itself; None: it is not there, or cannot be read."""

    copy: Object | None
    pods: list[Object]
    """By name."""
    unread: tuple[Unread, ...]
    """The objects that the caller may not read."""


async def read_job(cluster: OpenCluster, place: JobPlace) -> JobThere:
    """Return a job on its cluster. Raises ApiError, NotOurs."""
    job, workload = place.job, place.workload
    reader = ObjectReader(cluster, job.namespace)
    is_pod = (job.group, job.kind) == ("", "Pod")
    resource, lack = (PODS, _NO_SINGLE_POD) if is_pod else (resource_of(job), _lack_of(job))
    copy = await reader.get(resource, job.name, lack) if resource else None
    if copy and (problem := copy_problem(job, workload, place.uid, copy)):
        raise NotOurs(f"on cluster {cluster.name}: {problem}")
    if is_pod and copy and not pod_group(copy):
        return JobThere(copy, [copy], ())
    by_label = selectors(job, copy)
    if by_label is None:
        pods = await _by_owner(cluster.client, reader, job, get_str(copy, "metadata", "uid"))
    else:
        labelled = await _by_label(cluster.client, job.namespace, by_label)
        pods = [pod for pod in labelled if not is_of_another(job, workload, copy, pod)]
    return JobThere(copy, sorted(pods, key=key_of), tuple(reader.unread.values()))


def _lack_of(job: JobId) -> str:
    """Return what it means that the job itself cannot be read."""
    return _NO_RAY_CLUSTER if job.group == "ray.io" and job.kind != "RayCluster" else _NO_UID


def resource_of(job: JobId) -> Resource | None:
    """Return the resource of a job's kind; None for a kind without a group, or that cannot be named."""
    version = job.api_version.rpartition("/")[2]
    kind = parse_external(f"{job.kind}.{version}.{job.group}")
    if isinstance(kind, str):
        return None
    return Kind(kind.group, kind.kind, kind.plural, True, (kind.version,)).at(kind.version)


async def _by_label(client: Client, namespace: str, by: Iterable[str]) -> Iterable[Object]:
    """Return the Pods with one of these labels, each once."""
    lists = await asyncio.gather(*(client.list(PODS, namespace, label_selector=selector) for selector in by))
    return {key_of(pod): pod for listing in lists for pod in listing.items}.values()


async def _by_owner(client: Client, reader: ObjectReader, job: JobId, uid: str) -> list[Object]:
    """Return the Pods whose chain of owners leads to the job."""
    known: dict[str, bool] = {uid: True} if uid else {}

    async def leads(obj: Object, left: int) -> bool:
        for owner in get_list(obj, "metadata", "ownerReferences"):
            there = JobId(job.namespace, *(get_str(owner, name) for name in ("apiVersion", "kind", "name")))
            mark = get_str(owner, "uid")
            if mark not in known:
                known[mark] = not uid and there == job
                above = resource_of(there) if left and not known[mark] else None
                found = await reader.get(above, there.name, _NO_OWNER) if above else None
                known[mark] = known[mark] or bool(found and await leads(found, left - 1))
            if known[mark]:
                return True
        return False

    return [pod for pod in (await client.list(PODS, job.namespace)).items if await leads(pod, MOST_OWNERS)]
