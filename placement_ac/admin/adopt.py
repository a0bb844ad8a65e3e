"""
Hand over the Go kueue-addon's objects to this controller, in place and under their names.

Writes an annotation on each object, which lets the controller take it over, and removes the addon's finalizer
from our checks, which no one else would do. Objects that have been handed over are not written again.
"""

from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    ADDON_CONTROLLER,
    ADDON_FINALIZER,
    ADMISSION_CHECK,
    ANNOTATION_ADOPT,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    PERMISSION,
    SECRET,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import NotFound, PlacementAcError, Refused
from placement_ac.kube.client import Client, Object

DEPLOYMENT: Final = Kind("apps", "Deployment", "deployments", True, ("v1",))
KINDS: Final = (ACCOUNT, PERMISSION, SECRET, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER, ADMISSION_CHECK)


class ControllerRuns(PlacementAcError):
    """The Go kueue-addon runs, or it is unknown whether it runs."""


@dataclass(frozen=True, slots=True)
class AdoptStep:
    """One write: an object, and the merge patch for it."""

    resource: Resource
    namespace: str
    name: str
    patch: Object

    @property
    def summary(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        what = "finalizer removed" if "finalizers" in self.patch["metadata"] else "handed over"
        return f"{self.resource.of.kind} {where}{self.name} {what}"


async def check_that_it_is_stopped(client: Client) -> None:
    """Raise ControllerRuns unless the addon is removed or scaled to 0. Raises ApiError."""
    try:
        found = await client.list(DEPLOYMENT.at("v1"))
    except NotFound:
        return
    except Refused as refused:
        raise ControllerRuns(
            f"it is unknown whether {ADDON_CONTROLLER} still runs: {refused.message}"
        ) from None
    for item in found.items:
        metadata = item["metadata"]
        wanted, pods = ((item.get(part) or {}).get("replicas") for part in ("spec", "status"))
        if metadata["name"] == ADDON_CONTROLLER and (wanted != 0 or pods):
            stop = f"kubectl scale deployment -n {metadata['namespace']} {ADDON_CONTROLLER} --replicas=0"
            raise ControllerRuns(
                f"run `{stop}` first: {ADDON_CONTROLLER} still runs and would undo the handover"
            )


async def steps(client: Client, kueue_namespace: str, clusters: Collection[str] = ()) -> list[AdoptStep]:
    """Return the writes for these clusters, or for all. Raises ApiError."""
    served = await client.discover(KINDS)
    found = [step async for step in _of_accounts(client, served, kueue_namespace, clusters)]
    if not clusters:
        found += [step async for step in _of_checks(client, served)]
    # Several checks may share a list, and several lists a cluster.
    return list({(step.resource, step.namespace, step.name): step for step in found}.values())


async def carry_out(client: Client, step: AdoptStep) -> None:
    """Write it. Raises ApiError."""
    await client.merge(step.resource, step.name, step.patch, namespace=step.namespace)


async def _of_accounts(
    client: Client, served: dict[Kind, Resource], kueue_namespace: str, clusters: Collection[str]
) -> AsyncIterator[AdoptStep]:
    """Yield the credentials, the account last: with it, the controller takes over all three."""
    if ACCOUNT not in served:
        return
    for account in (await client.list(served[ACCOUNT])).items:
        cluster = account["metadata"]["namespace"]
        if account["metadata"]["name"] != ADDON_ACCOUNT or (clusters and cluster not in clusters):
            continue
        others = (
            (SECRET, kueue_namespace, f"{ADDON_ACCOUNT}-{cluster}"),
            (PERMISSION, cluster, ADDON_ACCOUNT),
        )
        for kind, namespace, name in others:
            obj = await _get(client, served.get(kind), namespace, name)
            for step in _hand_over(served.get(kind), obj):
                yield step
        for step in _hand_over(served[ACCOUNT], account):
            yield step


async def _of_checks(client: Client, served: dict[Kind, Resource]) -> AsyncIterator[AdoptStep]:
    """Yield the lists of our checks, their MultiKueueClusters, and the addon's finalizer on the checks."""
    if not {ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER} <= served.keys():
        return
    for check in (await client.list(served[ADMISSION_CHECK])).items:
        spec = check.get("spec") or {}
        if spec.get("controllerName") != OUR_CONTROLLER:
            continue
        for step in _without_finalizer(served[ADMISSION_CHECK], check):
            yield step
        name = (spec.get("parameters") or {}).get("name", "")
        config = await _get(client, served[MULTIKUEUE_CONFIG], "", name) if name else None
        for listed in ((config or {}).get("spec") or {}).get("clusters") or ():
            obj = await _get(client, served[MULTIKUEUE_CLUSTER], "", listed)
            for step in _hand_over(served[MULTIKUEUE_CLUSTER], obj):
                yield step
        for step in _hand_over(served[MULTIKUEUE_CONFIG], config):
            yield step


async def _get(client: Client, resource: Resource | None, namespace: str, name: str) -> Object | None:
    try:
        return await client.get(resource, name, namespace) if resource else None
    except NotFound:
        return None


def _hand_over(resource: Resource | None, obj: Object | None) -> Iterable[AdoptStep]:
    metadata: Any = (obj or {}).get("metadata") or {}
    ours = (metadata.get("labels") or {}).get(LABEL_MANAGED_BY) == MANAGED_BY
    message = (metadata.get("annotations") or {}).get(ANNOTATION_ADOPT) == "true"
    if resource and obj and not ours and not message:
        patch = {"metadata": {"uid": metadata["uid"], "annotations": {ANNOTATION_ADOPT: "true"}}}
        yield AdoptStep(resource, metadata.get("namespace") or "", metadata["name"], patch)


def _without_finalizer(resource: Resource, check: Object) -> Iterable[AdoptStep]:
    metadata = check["metadata"]
    finalizers = metadata.get("finalizers") or []
    if ADDON_FINALIZER in finalizers:
        left = [one for one in finalizers if one != ADDON_FINALIZER]
        identity = {key: metadata[key] for key in ("uid", "resourceVersion")}
        yield AdoptStep(resource, "", metadata["name"], {"metadata": identity | {"finalizers": left}})
