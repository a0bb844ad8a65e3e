"""Read the Pods of a job on its cluster: by labels, else by their owners."""

import asyncio
from collections.abc import Iterable
from typing import Final

from kubectl_placement.access.open import PODS, OpenCluster
from kubectl_placement.access.pod_selectors import POD_GROUP, copy_problem, is_of_another, selectors
from kubectl_placement.hub.dump import Object
from kubectl_placement.jobs.lookup import JobId
from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import NotFound, PlacementAcError, Refused
from placement_ac.core.api.fields import get_list, get_str, key_of, labels_of
from placement_ac.core.inputs.rights import parse_external
from placement_ac.kube.client import Client

MOST_OWNERS: Final = 5
"""How far up the owners of a Pod are followed."""


class NotOurs(PlacementAcError):
    """The job of that name on the cluster is not the hub's."""


async def read_pods(cluster: OpenCluster, job: JobId, workload: str) -> list[Object]:
    """Return the Pods of a job, by name; `workload`: the name of its Workload. Raises ApiError, NotOurs."""
    client, namespace = cluster.client, job.namespace
    if (job.group, job.kind) == ("", "Pod"):
        single = await _get(client, PODS, namespace, job.name)
        if single and POD_GROUP not in labels_of(single):
            return [single]
    resource = resource_of(job)
    copy = await _get(client, resource, namespace, job.name) if resource else None
    if copy and (problem := copy_problem(job, workload, copy)):
        raise NotOurs(f"on cluster {cluster.name}: {problem}")
    by_label = selectors(job, workload, copy)
    if by_label is None:
        return await _by_owner(client, job, get_str(copy, "metadata", "uid"))
    lists = await asyncio.gather(
        *(client.list(PODS, namespace, label_selector=selector) for selector in by_label)
    )
    found = {key_of(pod): pod for listing in lists for pod in listing.items}
    return _sorted(pod for pod in found.values() if not is_of_another(job, copy, pod))


def resource_of(job: JobId) -> Resource | None:
    """Return the resource of a job's kind; None for a kind without a group, or that cannot be named."""
    version = job.api_version.rpartition("/")[2]
    kind = parse_external(f"{job.kind}.{version}.{job.group}")
    if isinstance(kind, str):
        return None
    return Kind(kind.group, kind.kind, kind.plural, True, (kind.version,)).at(kind.version)


def _sorted(pods: Iterable[Object]) -> list[Object]:
    return sorted(pods, key=key_of)


async def _get(client: Client, resource: Resource, namespace: str, name: str) -> Object | None:
    """Return an object; None if there is none, or the caller may not read it."""
    try:
        return await client.get(resource, name, namespace)
    except (NotFound, Refused):
        return None


async def _by_owner(client: Client, job: JobId, uid: str) -> list[Object]:
    """Return the Pods whose chain of owners leads to the job."""
    known: dict[str, bool] = {uid: True} if uid else {}

    async def leads(obj: Object, left: int) -> bool:
        for owner in get_list(obj, "metadata", "ownerReferences"):
            there = JobId(job.namespace, *(get_str(owner, name) for name in ("apiVersion", "kind", "name")))
            mark = get_str(owner, "uid")
            if mark not in known:
                known[mark] = not uid and there == job
                above = resource_of(there) if left and not known[mark] else None
                found = await _get(client, above, job.namespace, there.name) if above else None
                known[mark] = known[mark] or bool(found and await leads(found, left - 1))
            if known[mark]:
                return True
        return False

    pods = (await client.list(PODS, job.namespace)).items
    return _sorted([pod for pod in pods if await leads(pod, MOST_OWNERS)])
