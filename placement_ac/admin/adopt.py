"""
Hand over the Go kueue-addon's objects to this controller, in place and under their names.

Writes an annotation on each object, which lets the controller take it over, and removes the addon's finalizer
from our checks, which no one else would do. Objects that have been handed over are not written again.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    ADDON_CONTROLLER,
    ADDON_FINALIZER,
    ADMISSION_CHECK,
    ANNOTATION_ADOPT,
    DEPLOYMENT,
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

KINDS: Final = (ACCOUNT, PERMISSION, SECRET, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER, ADMISSION_CHECK)
_Found = tuple[Resource, Object]


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
        deployments = await client.list(DEPLOYMENT.at("v1"))
    except NotFound:
        return
    except Refused as refused:
        raise ControllerRuns(
            f"it is unknown whether {ADDON_CONTROLLER} still runs: {refused.message}"
        ) from None
    for item in deployments.items:
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
    objects = await _credentials(client, served, kueue_namespace, clusters)
    if not clusters:
        objects += await _checks_and_lists(client, served)
    todo = (_hand_over(resource, obj) for resource, obj in objects)
    # Several checks may share a list, and several lists a cluster.
    return list({(step.resource, step.namespace, step.name): step for step in todo if step}.values())


async def carry_out(client: Client, step: AdoptStep) -> None:
    """Write it. Raises ApiError."""
    await client.merge(step.resource, step.name, step.patch, namespace=step.namespace)


async def _credentials(
    client: Client, served: dict[Kind, Resource], kueue_namespace: str, clusters: Collection[str]
) -> list[_Found]:
    """Return the credentials, each account last: with it, the controller takes over all three."""
    objects: list[_Found] = []
    for account in (await client.list(served[ACCOUNT])).items if ACCOUNT in served else ():
        cluster = account["metadata"]["namespace"]
        if account["metadata"]["name"] == ADDON_ACCOUNT and (not clusters or cluster in clusters):
            objects += await _get(client, served.get(SECRET), kueue_namespace, f"{ADDON_ACCOUNT}-{cluster}")
            objects += await _get(client, served.get(PERMISSION), cluster, ADDON_ACCOUNT)
            objects.append((served[ACCOUNT], account))
    return objects


async def _checks_and_lists(client: Client, served: dict[Kind, Resource]) -> list[_Found]:
    """Return our checks, each with the MultiKueueClusters of its list and the list."""
    if not {ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER} <= served.keys():
        return []
    objects: list[_Found] = []
    for check in (await client.list(served[ADMISSION_CHECK])).items:
        spec = check.get("spec") or {}
        if spec.get("controllerName") != OUR_CONTROLLER:
            continue
        objects.append((served[ADMISSION_CHECK], check))
        name = (spec.get("parameters") or {}).get("name", "")
        configs = await _get(client, served[MULTIKUEUE_CONFIG], "", name) if name else []
        for _, config in configs:
            for listed in (config.get("spec") or {}).get("clusters") or ():
                objects += await _get(client, served[MULTIKUEUE_CLUSTER], "", listed)
        objects += configs
    return objects


async def _get(client: Client, resource: Resource | None, namespace: str, name: str) -> list[_Found]:
    """Return the object; [] if there is none or the hub does not serve its kind."""
    try:
        return [(resource, await client.get(resource, name, namespace))] if resource else []
    except NotFound:
        return []


def _hand_over(resource: Resource, obj: Object) -> AdoptStep | None:
    """Return the write of an object; None if it needs none."""
    metadata = obj["metadata"]
    patch: Object = {"uid": metadata["uid"]}
    if resource.of is ADMISSION_CHECK:
        finalizers = metadata.get("finalizers") or []
        if ADDON_FINALIZER not in finalizers:
            return None
        patch["resourceVersion"] = metadata["resourceVersion"]
        patch["finalizers"] = [finalizer for finalizer in finalizers if finalizer != ADDON_FINALIZER]
    else:
        ours = (metadata.get("labels") or {}).get(LABEL_MANAGED_BY) == MANAGED_BY
        if ours or (metadata.get("annotations") or {}).get(ANNOTATION_ADOPT) == "true":
            return None
        patch["annotations"] = {ANNOTATION_ADOPT: "true"}
    return AdoptStep(resource, metadata.get("namespace") or "", metadata["name"], {"metadata": patch})
