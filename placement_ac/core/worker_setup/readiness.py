"""
Whether a worker has what the jobs of this hub need there, by what OCM's work agent reports.

Pure. An object that exists and is somebody else's counts: it is there, and stays as it is.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    CONFIG_MAP,
    KUEUE,
    LOCAL_QUEUE,
    MANIFEST_WORK,
    OCM_WORK,
    SETUP_NAME,
)
from placement_ac.core.api.fields import Obj
from placement_ac.core.api.objects import ManifestKey, ManifestState, ManifestWork
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.state import Body
from placement_ac.core.inputs.worker_setup import WorkerSetupInputs
from placement_ac.core.worker_setup.manifests import (
    ACTIVE,
    has_more,
    key_of_manifest,
    wanted_setup,
)
from placement_ac.core.worker_setup.queues_there import manifests_in
from placement_ac.core.worker_setup.shares import queue_shares
from placement_ac.core.worker_setup.template import TemplateProblem

_NO_KIND: Final = re.compile(r"doesn't have a resource type|no matches for kind")
_QUOTED_MAX: Final = 300
"""Characters of OCM's message that are quoted."""
_NOT_REPORTED: Final = ManifestState()


class NotReady(Enum):
    """Why a worker is not ready, by the fix that it needs."""

    NO_WORK_API = auto()
    NO_MANAGED_CLUSTER = auto()
    NOT_WRITTEN = auto()
    """The API server of the hub has refused the ManifestWork."""
    TEMPLATE = auto()
    TAKEN = auto()
    """Somebody else's ManifestWork has the name."""
    NOT_CREATED = auto()
    NO_REPORT = auto()
    """OCM's work agent has reported nothing."""
    NO_KUEUE = auto()
    NOT_APPLIED = auto()
    NOT_ACTIVE = auto()


@dataclass(frozen=True, slots=True)
class SetupState:
    """`problem`: why the cluster is not ready, the fix first; "": it is. `remarks`: what else there is."""

    problem: str = ""
    remarks: tuple[str, ...] = ()
    why: NotReady | None = None
    about: ManifestKey | None = None
    """The object on the worker, or the template, that the problem is about."""
    others: tuple[ManifestKey, ...] = ()
    """The objects on the worker that stay as somebody else has set them."""


READY: Final = SetupState()


def setup_state(inputs: WorkerSetupInputs) -> SetupState:
    """Return whether the worker is ready for the queues of the hub that send jobs there."""
    if not inputs.policy.enabled or not inputs.queues:
        return READY
    if not inputs.policy.served:
        text = f"install OCM's work API: this hub serves no {MANIFEST_WORK.plural}.{OCM_WORK}"
        return SetupState(text, why=NotReady.NO_WORK_API)
    if inputs.managed_cluster is None:
        text = f"wait for OCM's next decision, or let {inputs.cluster} join: it has no ManagedCluster"
        return SetupState(text, why=NotReady.NO_MANAGED_CLUSTER)
    if inputs.error:
        return SetupState(inputs.error, why=NotReady.NOT_WRITTEN)
    try:
        wanted = wanted_setup(inputs) if inputs.policy.wanted_known else ()
    except TemplateProblem as problem:
        template = (CONFIG_MAP.kind, inputs.kueue_namespace, problem.template) if problem.template else None
        return SetupState(str(problem), (str(problem),), NotReady.TEMPLATE, template)
    work = inputs.work
    if work and not work.ours and not work.handed_over:
        return SetupState(f"delete {_where(inputs)}: someone else created it", why=NotReady.TAKEN)
    if work is None or work.meta.deleting:
        return SetupState(f"wait: {_where(inputs)} is being created", why=NotReady.NOT_CREATED)
    others = tuple(key for key in _written(work) if _is_anothers(work.states.get(key, _NOT_REPORTED)))
    remarks = tuple(_remarks(inputs, wanted, work, others))
    return replace(next(_problems(inputs, work), READY), remarks=remarks, others=others)


def _where(inputs: WorkerSetupInputs) -> str:
    return f"{MANIFEST_WORK.kind} {inputs.cluster}/{SETUP_NAME}"


def _written(work: ManifestWork) -> dict[ManifestKey, Obj]:
    """Return what a ManifestWork puts onto the worker."""
    return {key_of_manifest(one): one for one in manifests_in(work)}


def _problems(inputs: WorkerSetupInputs, work: ManifestWork) -> Iterator[SetupState]:
    """Yield what keeps the worker from being ready, the first step first."""
    if not work.states:
        yield SetupState(
            f"wait, or see that OCM's work agent runs there: it has not reported on {_where(inputs)} yet",
            why=NotReady.NO_REPORT,
        )
    for key in _written(work):
        state = work.states.get(key, _NOT_REPORTED)
        if found := _problem(key, state):
            yield SetupState(found[1], why=found[0], about=key)


def _problem(key: ManifestKey, state: ManifestState) -> tuple[NotReady, str] | None:
    """Return why an object is not ready on the worker; None: it is."""
    name = _label(key)
    if state.applied is None:
        return NotReady.NO_REPORT, f"wait: OCM's work agent has not applied {name} yet"
    if state.applied is False and not _is_anothers(state):
        message = state.message[:_QUOTED_MAX]
        if _NO_KIND.search(state.message):
            return NotReady.NO_KUEUE, f"install Kueue there: it serves no {key[0]}.{KUEUE} ({message})"
        return NotReady.NOT_APPLIED, f"let OCM's work agent apply {name} there: {message}"
    if state.available is not True:
        return NotReady.NO_REPORT, f"wait: {name} is not there yet"
    if state.values.get(ACTIVE) == "False":
        return NotReady.NOT_ACTIVE, f"see why Kueue there does not use {name}: it is not active"
    return None


def _is_anothers(state: ManifestState) -> bool:
    """Whether the object is there, and somebody has set what we want otherwise."""
    return state.applied is False and state.available is True and "conflict" in state.message


def _label(key: ManifestKey) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _remarks(
    inputs: WorkerSetupInputs, wanted: Iterable[Body], work: ManifestWork, others: Iterable[ManifestKey]
) -> Iterator[str]:
    present = _written(work)
    for namespace, surplus in queue_shares(inputs).surplus.items() if inputs.policy.wanted_known else ():
        yield (
            f"delete LocalQueues of namespace {namespace}: it has the most, and the worker does not get"
            f" {len(surplus):,} of them ({joined([name for _, name in surplus])}), as a {MANIFEST_WORK.kind}"
            " holds no more"
        )
    if labels := [_label(key) for key in others]:
        yield f"{joined(labels)} on the worker stays as somebody else has set it"
    queues = {(LOCAL_QUEUE.kind, *name) for queue in inputs.queues for name in queue.local_queues}
    if kept := [_label(key) for key in present if key[0] == LOCAL_QUEUE.kind and key not in queues]:
        yield f"{joined(kept)} on the worker stays while it has jobs"
    if larger := [
        _label(key_of_manifest(one))
        for one in wanted
        if one["kind"] == CLUSTER_QUEUE.kind and has_more(present.get(key_of_manifest(one)), one)
    ]:
        yield f"the quota of {joined(larger)} on the worker falls when less of it is in use"
