"""
Plan the write of one cluster's ManifestWork.

Pure. It exists while a check of ours selects the cluster or a MultiKueueCluster exists for it, and goes after
the retention. A template that is wrong changes nothing. OCM itself removes it with its ManagedCluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from placement_ac.core.api.constants import (
    ANNOTATION_ALLOCATABLE,
    ANNOTATION_SINCE,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MANIFEST_WORK,
    SETUP_NAME,
)
from placement_ac.core.api.fields import format_time
from placement_ac.core.api.objects import ManagedCluster, ManifestKey, ManifestWork
from placement_ac.core.inputs.state import Body, Since, SinceKind
from placement_ac.core.inputs.worker_setup import WorkerSetupInputs
from placement_ac.core.plan.diff import Apply, Delete, Phase, body_of, is_same
from placement_ac.core.selection.selection import soonest
from placement_ac.core.worker_setup.manifests import since_of, wanted_setup, with_kept, work_spec
from placement_ac.core.worker_setup.queues_there import manifests_in
from placement_ac.core.worker_setup.template import TemplateProblem

UNNEEDED: Final = Since(SinceKind.SETUP_UNNEEDED)
QUOTA_FOLLOWS_SECONDS: Final = 300.0
"""For how long a cluster must be able to allocate another amount before its quota changes: nodes restart."""
WRITES_APART_SECONDS: Final = 3.0
"""A changed ManifestWork stays for so long: it holds the queues of all, and anybody may change theirs."""


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """The write for one cluster."""

    phases: tuple[Phase, ...] = ()
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None
    """Seconds after which the plan may change although nothing happens; None: it will not."""


def plan_worker_setup(inputs: WorkerSetupInputs) -> SetupPlan:
    """Return the write that brings the ManifestWork of a cluster in order."""
    usage = inputs.usage
    if not (inputs.policy.enabled and inputs.policy.served) or inputs.managed_cluster is None:
        return SetupPlan()
    if not (usage.selected or usage.listed):
        return _plan_removal(inputs)
    if _is_taken(inputs.work) or not inputs.queues or not usage.owners:
        return SetupPlan()
    settled, lasting, requeue_after = _settled(inputs, inputs.managed_cluster)
    try:
        wanted = wanted_setup(replace(inputs, managed_cluster=settled))
    except TemplateProblem:
        return SetupPlan(lasting=lasting, requeue_after=requeue_after)
    manifests = with_kept(wanted, inputs.work)
    spec = work_spec(manifests, inputs.work, inputs.kueue_namespace)
    added = since_of(manifests, inputs.work, inputs.now)
    annotations = {ANNOTATION_ALLOCATABLE: _written(settled.allocatable)} | _as_annotation(added)
    phases = _apply(inputs, spec, annotations)
    if inputs.work is None:
        return SetupPlan(phases, lasting, requeue_after)
    written = Since(SinceKind.SETUP_WRITTEN, str(inputs.work.meta.generation))
    left = WRITES_APART_SECONDS - inputs.ages.get(written, 0.0)
    if phases and left > 0:
        return SetupPlan((), lasting | {written}, soonest((requeue_after, left)))
    return SetupPlan(phases, lasting | {written}, requeue_after)


def _is_taken(work: ManifestWork | None) -> bool:
    return work is not None and not work.ours and not work.handed_over


def _plan_removal(inputs: WorkerSetupInputs) -> SetupPlan:
    """Delete it after the retention; before, see that no LocalQueue goes that holds somebody's jobs."""
    work, lasting = inputs.work, frozenset({UNNEEDED} & inputs.ages.keys())
    if work is None or _is_taken(work) or work.meta.deleting or not work.applied_fields.applied:
        return SetupPlan()
    left = inputs.policy.retention - inputs.ages.get(UNNEEDED, 0.0)
    if left > 0:
        return SetupPlan(lasting=frozenset({UNNEEDED}), requeue_after=left)
    written = [dict(manifest) for manifest in manifests_in(work)]
    spec = work_spec(written, work, inputs.kueue_namespace, leaving=True)
    before = {ANNOTATION_ALLOCATABLE: work.meta.annotations.get(ANNOTATION_ALLOCATABLE, "")}
    annotations = before | _as_annotation(work.added)
    if change := _apply(inputs, spec, annotations):
        return SetupPlan(change, lasting)
    if work.applied_generation < work.meta.generation:
        return SetupPlan(lasting=lasting)  # only a rule that the agent has seen keeps an object
    meta = work.meta
    return SetupPlan(((Delete(MANIFEST_WORK, meta.name, meta.uid, meta.namespace),),), lasting)


def _apply(inputs: WorkerSetupInputs, spec: Body, annotations: Mapping[str, str]) -> tuple[Phase, ...]:
    work, owners = inputs.work, inputs.usage.owners
    labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_CLUSTER: inputs.cluster}
    annotated = work is not None and annotations.items() <= work.meta.annotations.items()
    if work and (work.meta.deleting or (annotated and is_same(work, labels, owners, spec))):
        return ()
    body = body_of(SETUP_NAME, labels, owners, work, inputs.hub, namespace=inputs.cluster)
    body["metadata"]["annotations"] = dict(annotations)
    return ((Apply(MANIFEST_WORK, body | {"spec": spec}, work),),)


def _as_annotation(added: Mapping[ManifestKey, datetime]) -> dict[str, str]:
    entries = (
        f"{namespace}/{name}={format_time(since)}" for (_, namespace, name), since in sorted(added.items())
    )
    return {ANNOTATION_SINCE: ",".join(entries)} if added else {}


# -- what the cluster can allocate


def _settled(
    inputs: WorkerSetupInputs, cluster: ManagedCluster
) -> tuple[ManagedCluster, frozenset[Since], float | None]:
    """Return the cluster with the amounts that its quota follows: another one counts once it has lasted."""
    work = inputs.work
    before = work.meta.annotations.get(ANNOTATION_ALLOCATABLE, "") if work and work.ours else ""
    now = _written(cluster.allocatable)
    if not before or now == before:
        return cluster, frozenset(), None
    since = Since(SinceKind.ALLOCATABLE_CHANGED, now)
    left = QUOTA_FOLLOWS_SECONDS - inputs.ages.get(since, 0.0)
    if left <= 0:
        return cluster, frozenset(), None
    return replace(cluster, allocatable=_read(before)), frozenset({since}), left


def _written(allocatable: Mapping[str, int]) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted(allocatable.items()))


def _read(text: str) -> dict[str, int]:
    pairs = (entry.partition("=") for entry in text.split(","))
    return {name: int(amount) for name, _, amount in pairs if amount.isdecimal()}
