"""
The content of a cluster's ManifestWork: namespaces, queues, flavors, and how OCM's agent treats each.

Pure. OCM applies each object by server-side apply without force, so what somebody else has set there stays.
When the ManifestWork goes, only LocalQueues go with it, and of these none that was there before or has jobs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from datetime import datetime
from typing import Final

from placement_ac.core.api.constants import (
    ANNOTATION_TEMPLATE,
    CLUSTER_QUEUE,
    COHORT,
    CONFIG_MAP,
    DEPLOYMENT,
    KUEUE_MANAGER,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    TEMPLATE_KEY,
    TOPOLOGY,
    Kind,
)
from placement_ac.core.api.fields import Obj, get_list, name_of, namespace_of, parse_time
from placement_ac.core.api.objects import ManifestKey, ManifestState, ManifestWork
from placement_ac.core.api.quantities import milli
from placement_ac.core.inputs.queue_facts import Queue
from placement_ac.core.inputs.state import Body
from placement_ac.core.inputs.worker_setup import HubClusterQueue, WorkerSetupInputs
from placement_ac.core.worker_setup.hub_template import hub_manifests, quotas_of
from placement_ac.core.worker_setup.shares import queue_shares
from placement_ac.core.worker_setup.template import TemplateProblem, rendered

FIELD_MANAGER: Final = "work-agent-placement-ac"
"""On workers; OCM allows names that begin with its agent's."""
CREATED: Final = "created"
ACTIVE: Final = "active"
PENDING: Final = "pending"
RESERVING: Final = "reserving"
IMAGE: Final = "image"
"""Names of the feedback values."""
_ACTIVE_PATH: Final = '.status.conditions[?(@.type=="Active")].status'
_LOCAL_QUEUE_PATHS: Final = {
    CREATED: ".metadata.creationTimestamp",
    ACTIVE: _ACTIVE_PATH,
    PENDING: ".status.pendingWorkloads",
    RESERVING: ".status.reservingWorkloads",
}
_KINDS: Final = {
    kind.kind: kind
    for kind in (NAMESPACE, RESOURCE_FLAVOR, COHORT, TOPOLOGY, CLUSTER_QUEUE, LOCAL_QUEUE, DEPLOYMENT)
}


def wanted_setup(inputs: WorkerSetupInputs) -> tuple[Body, ...]:
    """Return what the cluster is to have, in the order in which it is made. Raises TemplateProblem."""
    manifests: dict[ManifestKey, Body] = {}
    templates: dict[str, list[Body]] = {}
    within = queue_shares(inputs).within
    for queue in inputs.queues:
        if queue.template and queue.template not in templates:
            templates[queue.template] = _from_template(inputs, queue.template)
        made = templates[queue.template] if queue.template else list(hub_manifests(inputs, queue))
        for manifest in (*made, *_local_queues(inputs, queue, made, within)):
            key = key_of_manifest(manifest)
            if manifests.setdefault(key, manifest) != manifest:
                raise TemplateProblem(f"make {key[0]} {key[2]} once: two templates make it in different ways")
    return tuple(sorted(manifests.values(), key=_order))


def _from_template(inputs: WorkerSetupInputs, name: str) -> list[Body]:
    where, text = f"{CONFIG_MAP.kind} {inputs.kueue_namespace}/{name}", inputs.templates.get(name)
    if text is None or inputs.managed_cluster is None:
        raise TemplateProblem(
            f"create {where} with the key {TEMPLATE_KEY}, or correct the annotation {ANNOTATION_TEMPLATE} or"
            " --worker-setup-template: it does not exist",
            name,
        )
    try:
        return rendered(text, inputs.managed_cluster)
    except TemplateProblem as problem:
        raise TemplateProblem(f"in {TEMPLATE_KEY} of {where}, {problem}", name) from None


def _local_queues(
    inputs: WorkerSetupInputs, queue: HubClusterQueue, made: Iterable[Body], within: Collection[Queue]
) -> Iterator[Body]:
    """Yield the LocalQueues of one ClusterQueue of the hub, and their namespaces."""
    names = [name_of(manifest) for manifest in made if manifest["kind"] == CLUSTER_QUEUE.kind]
    if not queue.local_queues:
        return
    if queue.name not in names and len(names) != 1:
        raise TemplateProblem(
            f"in {CONFIG_MAP.kind} {inputs.kueue_namespace}/{queue.template}, make ClusterQueue {queue.name},"
            f" or one ClusterQueue alone: it makes {len(names)}",
            queue.template,
        )
    target = queue.name if queue.name in names else names[0]
    for namespace, name in (one for one in queue.local_queues if one in within):
        yield {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": namespace}}
        yield {
            "apiVersion": inputs.hub.check_version,
            "kind": LOCAL_QUEUE.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterQueue": target},
        }


def _order(manifest: Body) -> tuple[int, ManifestKey]:
    return list(_KINDS).index(manifest["kind"]), key_of_manifest(manifest)


def key_of_manifest(manifest: Obj) -> ManifestKey:
    return str(manifest.get("kind")), namespace_of(manifest), name_of(manifest)


# -- what stays although it is not wanted


def with_kept(wanted: tuple[Body, ...], work: ManifestWork | None) -> tuple[Body, ...]:
    """Return the manifests to write: no quota falls below its use, and no LocalQueue with jobs goes."""
    if work is None:
        return wanted
    present = {key_of_manifest(one): one for one in get_list(work.spec, "workload", "manifests")}
    keys = set(map(key_of_manifest, wanted))
    unwanted = {key: dict(manifest) for key, manifest in present.items() if key not in keys}
    queues = [key for key in unwanted if key[0] == LOCAL_QUEUE.kind and _holds_jobs(work.states.get(key))]
    namespaces = {(NAMESPACE.kind, "", namespace) for _, namespace, _ in queues}
    kept = [unwanted[key] for key in (*queues, *(namespaces & unwanted.keys()))]
    return tuple(sorted([*(_with_used_quota(one, present, work) for one in wanted), *kept], key=_order))


def _holds_jobs(state: ManifestState | None) -> bool:
    """Whether a LocalQueue has jobs; also if OCM has not reported how many."""
    if state is None:
        return True
    return state.available is not False and any(
        state.values.get(name, 1) != 0 for name in (PENDING, RESERVING)
    )


def since_of(
    manifests: Iterable[Body], work: ManifestWork | None, now: datetime
) -> dict[ManifestKey, datetime]:
    """Return the LocalQueues that were, or are now, added to a ManifestWork that existed, and when."""
    if work is None:
        return {}
    present = {key_of_manifest(one) for one in get_list(work.spec, "workload", "manifests")}
    wanted = [key for one in manifests if (key := key_of_manifest(one))[0] == LOCAL_QUEUE.kind]
    return {key: work.added.get(key, now) for key in wanted if key in work.added or key not in present}


def has_more(present: Obj | None, wanted: Obj) -> bool:
    """Whether a ClusterQueue has more quota than is wanted."""
    before = {at: _amount(quota.get("nominalQuota")) for at, quota in quotas_of(present or {})}
    return any(before.get(at, 0) > _amount(quota.get("nominalQuota")) for at, quota in quotas_of(wanted))


def _with_used_quota(manifest: Body, present: Mapping[ManifestKey, Obj], work: ManifestWork) -> Body:
    """Return a ClusterQueue whose quota stays as it is where it is to fall below what is in use."""
    key = key_of_manifest(manifest)
    state, before = work.states.get(key), present.get(key)
    if manifest["kind"] != CLUSTER_QUEUE.kind or state is None or before is None:
        return manifest
    old = {at: quota.get("nominalQuota") for at, quota in quotas_of(before)}
    stays = {
        at
        for at, quota in quotas_of(manifest)
        if at in old and _amount(quota.get("nominalQuota")) < min(_amount(old[at]), used(state, *at))
    }
    return _with_quotas(manifest, {at: old[at] for at in stays}) if stays else manifest


def used(state: ManifestState, flavor: str, resource: str) -> int:
    """Return how much of a quota is reserved on the worker, in thousandths, by its feedback."""
    return _amount(state.values.get(f"{flavor}/{resource}"))


def _amount(value: object) -> int:
    return milli(value) or 0


def _with_quotas(manifest: Body, nominal: Mapping[tuple[str, str], object]) -> Body:
    changed = deepcopy(manifest)
    for at, quota in quotas_of(changed):
        if at in nominal:
            quota["nominalQuota"] = nominal[at]
    return changed


# -- the spec


def work_spec(
    manifests: Iterable[Body], work: ManifestWork | None, kueue_namespace: str, *, leaving: bool = False
) -> Body:
    """Return the `spec` of the ManifestWork; `leaving`: it is to be deleted, but no LocalQueue with jobs."""
    manager: Body = {
        "apiVersion": "apps/v1",
        "kind": DEPLOYMENT.kind,
        "metadata": {"name": KUEUE_MANAGER, "namespace": kueue_namespace},
    }
    written = [*manifests, manager]
    stays = [one for one in written if _stays(one, work, leaving=leaving)]
    return {
        "workload": {"manifests": written},
        "manifestConfigs": [_config(manifest) for manifest in written],
        "deleteOption": {
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": {"orphaningRules": [_identifier(manifest) for manifest in stays]},
        },
    }


def _stays(manifest: Body, work: ManifestWork | None, *, leaving: bool) -> bool:
    """Whether an object stays on the worker when its ManifestWork goes.

    A LocalQueue stays if it was there before, if somebody else has changed it, or with its jobs.
    """
    if manifest["kind"] != LOCAL_QUEUE.kind:
        return True
    state = work.states.get(key_of_manifest(manifest)) if work else None
    if work is None or state is None:
        return False
    if leaving and _holds_jobs(state):
        return True
    created = parse_time(str(state.values.get(CREATED)))
    wanted_since = work.added.get(key_of_manifest(manifest), work.created)
    is_older = created is not None and wanted_since is not None and created < wanted_since
    return is_older or (state.available is True and state.applied is False)


def _config(manifest: Body) -> Body:
    identifier = _identifier(manifest)
    kind = manifest["kind"]
    if kind == DEPLOYMENT.kind:
        strategy: Body = {"type": "ReadOnly"}
    else:
        apply = {"force": False, "fieldManager": FIELD_MANAGER}
        strategy = {"type": "ServerSideApply", "serverSideApply": apply}
    config: Body = {"resourceIdentifier": identifier, "updateStrategy": strategy}
    rule = [{"name": name, "path": path} for name, path in _paths(manifest).items()]
    return config | ({"feedbackRules": [{"type": "JSONPaths", "jsonPaths": rule}]} if rule else {})


def _paths(manifest: Body) -> Mapping[str, str]:
    if manifest["kind"] == DEPLOYMENT.kind:
        return {IMAGE: ".spec.template.spec.containers[0].image"}
    if manifest["kind"] == LOCAL_QUEUE.kind:
        return _LOCAL_QUEUE_PATHS
    if manifest["kind"] != CLUSTER_QUEUE.kind:
        return {}
    reserved = {
        f"{flavor}/{resource}": f'.status.flavorsReservation[?(@.name=="{flavor}")]'
        f'.resources[?(@.name=="{resource}")].total'
        for (flavor, resource), _ in quotas_of(manifest)
    }
    return {ACTIVE: _ACTIVE_PATH} | reserved


def _identifier(manifest: Body) -> Body:
    kind: Kind = _KINDS[manifest["kind"]]
    group = {"group": kind.group} if kind.group else {}
    namespace = {"namespace": namespace_of(manifest)} if kind.namespaced else {}
    return group | {"resource": kind.plural} | namespace | {"name": name_of(manifest)}
