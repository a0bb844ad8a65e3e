"""
Preview what the controller would put onto workers, and what the sums of their quota become.

Pure. The controller's own plan of each cluster's ManifestWork decides, with every wait over. A worker that
has none yet counts as ready with it, as if OCM's work agent had applied it.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.hub_view import PASSED, Changes, HubView
from kubectl_placement.plan.placement_side import PlacementSide, placement_key
from kubectl_placement.plan.plan_report import (
    ObjectVerb,
    QuotaSum,
    SetupChange,
    SetupObject,
    SetupQuota,
    SetupVerb,
)
from kubectl_placement.status.hub_quota import (
    ListedClusters,
    SharedQueues,
    WorkerQueues,
    keeps_quota,
    local_queues_of,
    shared_queues,
    warnings_of,
    written_queues,
)
from kubectl_placement.status.queues import QueueIndex
from placement_ac.core.api.constants import CLUSTER_QUEUE, DEPLOYMENT, LOCAL_QUEUE, MANIFEST_WORK, SETUP_NAME
from placement_ac.core.api.decode import manifest_work
from placement_ac.core.api.fields import Obj, get_list
from placement_ac.core.api.objects import ManifestKey
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.worker_setup import WorkerSetupInputs
from placement_ac.core.plan.diff import Apply
from placement_ac.core.worker_setup.hub_template import quotas_of
from placement_ac.core.worker_setup.manifests import key_of_manifest, wanted_setup
from placement_ac.core.worker_setup.planning import plan_worker_setup
from placement_ac.core.worker_setup.queues_there import manifests_in, queues_there
from placement_ac.core.worker_setup.template import TemplateProblem


@dataclass(frozen=True, slots=True)
class SetupReport:
    """The changes on workers; `warnings`: why they are unknown, or nothing changes on some."""

    changes: tuple[SetupChange, ...] = ()
    quota: tuple[QuotaSum, ...] = ()
    warnings: tuple[str, ...] = ()


def as_reported(view: HubView, clusters: Collection[str]) -> Changes:
    """Return the ManifestWorks that the controller creates, as if OCM's work agents had applied them."""
    return SetupPreview(view, clusters).created() if _known(view) else {}


def setup_report(
    dump: Dump, before: HubView, after: HubView, clusters: Collection[str], removed: Collection[str]
) -> SetupReport:
    """Return what is put onto these clusters, compared with the present ManifestWorks in `dump`.

    `before`, `after`: the hub without and with the change, with ManifestWorks as reported. `removed`: the
    clusters that leave Kueue's list.
    """
    if not after.sets_up:
        return SetupReport()
    if not _known(after):
        return SetupReport(warnings=(f"what is put onto workers is {after.setup_unknown}",))
    preview = SetupPreview(after, clusters, removed)
    was = shared_queues(before.dump, _listed(before), written_queues(dump))
    sums = quota_sums(after.dump, was, shared_queues(after.dump, _listed(after), preview.queues()))
    return SetupReport(tuple(preview.changes(dump)), tuple(sums), tuple(preview.problems()))


def _known(view: HubView) -> bool:
    return view.sets_up and not view.setup_unknown


@dataclass(frozen=True)
class SetupPreview:
    """The ManifestWorks of these clusters on a hub. `removed`: the clusters that leave every list."""

    view: HubView
    clusters: Collection[str]
    removed: Collection[str] = ()

    @cached_property
    def _inputs(self) -> dict[str, WorkerSetupInputs]:
        return {cluster: self._inputs_of(cluster) for cluster in sorted(self.clusters)}

    def _inputs_of(self, cluster: str) -> WorkerSetupInputs:
        inputs = self.view.cache.setup_inputs(cluster, self.view.now, PASSED)
        leaves = cluster in self.removed and not inputs.usage.selected
        return replace(inputs, usage=replace(inputs.usage, listed=False)) if leaves else inputs

    @cached_property
    def _bodies(self) -> dict[str, Object]:
        """The ManifestWork that each cluster gets, if it changes."""
        plans = ((cluster, plan_worker_setup(inputs)) for cluster, inputs in self._inputs.items())
        return {
            cluster: dict(action.body)
            for cluster, planned in plans
            for phase in planned.phases
            for action in phase
            if isinstance(action, Apply) and self._stays(cluster)
        }

    def _stays(self, cluster: str) -> bool:
        usage = self._inputs[cluster].usage
        return usage.selected or usage.listed

    def created(self) -> Changes:
        """Return the new ManifestWorks as OCM's work agent would report them: applied and available."""
        new = {cluster: body for cluster, body in self._bodies.items() if self._inputs[cluster].work is None}
        return {MANIFEST_WORK: {(cluster, SETUP_NAME): _as_reported(body) for cluster, body in new.items()}}

    def manifests(self, cluster: str) -> tuple[Obj, ...]:
        """Return what a worker has of the controller in the end."""
        if cluster in self._bodies:
            written = get_list(self._bodies[cluster], "spec", "workload", "manifests")
            return tuple(one for one in written if one.get("kind") != DEPLOYMENT.kind)
        return manifests_in(self._inputs[cluster].work) if self._stays(cluster) else ()

    def changes(self, present: Dump) -> Iterator[SetupChange]:
        """Yield the ManifestWorks that differ from the present ones, by cluster."""
        for cluster in self._inputs:
            raw = present.find(MANIFEST_WORK, SETUP_NAME, cluster)
            work = manifest_work(raw) if raw else None
            objects = tuple(_changed(manifests_in(work), self.manifests(cluster)))
            if objects and (work is None or work.ours or work.handed_over):
                verb: SetupVerb = "create" if work is None else "change" if self._stays(cluster) else "delete"
                yield SetupChange(cluster, verb, objects)

    def problems(self) -> Iterator[str]:
        """Yield why nothing changes on some clusters, each reason once."""
        found: dict[str, list[str]] = {}
        for cluster, inputs in self._inputs.items():
            if not (self._stays(cluster) and inputs.managed_cluster):
                continue
            try:
                wanted_setup(inputs)
            except TemplateProblem as problem:
                found.setdefault(str(problem), []).append(cluster)
        yield from (f"{joined(clusters)}: nothing changes there: {why}" for why, clusters in found.items())

    def queues(self) -> WorkerQueues:
        """Return the queues of each worker in the end."""
        there = dict(written_queues(self.view.dump))
        for cluster, inputs in self._inputs.items():
            states = inputs.work.states if inputs.work else {}
            there[cluster] = queues_there(self.manifests(cluster), states)
        return there


def _listed(view: HubView) -> Iterator[ListedClusters]:
    """Yield those of each check, as Kueue has the list in the end."""
    queues = QueueIndex(view.dump)
    for check in view.our_checks:
        if check.placement and not keeps_quota(view.dump, check.placement):
            users = (one.meta.name for one in view.checks if one.config == check.placement)
            side = PlacementSide(view, placement_key(view, check.placement))
            yield local_queues_of(queues.of((check.meta.name, *users))), side.order


def quota_sums(
    dump: Dump, before: Iterable[SharedQueues], after: Iterable[SharedQueues]
) -> Iterator[QuotaSum]:
    """Yield the sums of quota that differ on the workers or on the hub. `dump`: the hub afterwards."""
    known = {
        (*group.on_hub, resource): group.sums(resource)
        for group in before
        for resource in group.resources
        if group.on_workers
    }
    for group in after:
        warnings = {one.resource: one for one in warnings_of(dump, group)}
        for resource in group.resources:
            was, sums = known.get((*group.on_hub, resource)), group.sums(resource)
            if was == sums:
                continue
            warning = warnings.get(resource)
            yield QuotaSum(
                queues=tuple(group.on_hub),
                resource=resource,
                on_hub=format_milli(sums[0]),
                before=format_milli(was[1]) if was else None,
                after=format_milli(sums[1]),
                workers=len(group.clusters),
                unknown=tuple(sorted(group.unknown)),
                problem=warning.message if warning else "",
                fix=warning.fix if warning else "",
            )


def _as_reported(body: Object) -> Object:
    good = [{"type": kind, "status": "True"} for kind in ("Applied", "Available")]
    metas = (key_of_manifest(one) for one in get_list(body, "spec", "workload", "manifests"))
    reports = [
        {"resourceMeta": {"kind": kind, "namespace": namespace, "name": name}, "conditions": good}
        for kind, namespace, name in metas
    ]
    status = {"conditions": good, "resourceStatus": {"manifests": reports}}
    named = {"uid": f"uid of the new ManifestWork {body['metadata']['namespace']}", "generation": 1}
    return body | {"metadata": named | body["metadata"], "status": status}


def _changed(before: Iterable[Obj], after: Iterable[Obj]) -> Iterator[SetupObject]:
    """Yield the objects that differ, in the order in which they are made."""
    old, new = ({key_of_manifest(one): one for one in side} for side in (before, after))
    for key in dict.fromkeys((*new, *old)):
        if old.get(key) == new.get(key) or (key not in new and key[0] != LOCAL_QUEUE.kind):
            continue  # all but LocalQueues stays on the worker
        verb: ObjectVerb = "add" if key not in old else "change" if key in new else "remove"
        yield SetupObject(verb, *key, quota=tuple(_quotas(key, old.get(key), new.get(key))))


def _quotas(key: ManifestKey, before: Obj | None, after: Obj | None) -> Iterator[SetupQuota]:
    """Yield the quota of a ClusterQueue, in each flavor and resource."""
    if key[0] != CLUSTER_QUEUE.kind:
        return
    old, new = (
        {at: str(quota.get("nominalQuota")) for at, quota in quotas_of(side or {})}
        for side in (before, after)
    )
    yield from (SetupQuota(*at, old.get(at), new.get(at)) for at in dict.fromkeys((*new, *old)))
