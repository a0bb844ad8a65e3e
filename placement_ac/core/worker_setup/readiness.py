"""
Whether a worker has what the jobs of this hub need there, by what OCM's work agent reports.

Pure. An object that exists and is somebody else's counts: it is there, and stays as it is.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
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
from placement_ac.core.worker_setup.template import TemplateProblem

_NO_KIND: Final = re.compile(r"doesn't have a resource type|no matches for kind")
_QUOTED_MAX: Final = 300
"""Characters of OCM's message that are quoted."""
_NOT_REPORTED: Final = ManifestState()


@dataclass(frozen=True, slots=True)
class SetupState:
    """`problem`: why the cluster is not ready, the fix first; "": it is. `remarks`: what else there is."""

    problem: str = ""
    remarks: tuple[str, ...] = ()


READY: Final = SetupState()


def setup_state(inputs: WorkerSetupInputs) -> SetupState:
    """Return whether the worker is ready for the queues of the hub that send jobs there."""
    if not inputs.policy.enabled or not inputs.queues:
        return READY
    if not inputs.policy.served:
        return SetupState(f"install OCM's work API: this hub serves no {MANIFEST_WORK.plural}.{OCM_WORK}")
    if inputs.managed_cluster is None:
        return SetupState(
            f"wait for OCM's next decision, or let {inputs.cluster} join: it has no ManagedCluster"
        )
    if inputs.error:
        return SetupState(inputs.error)
    try:
        wanted = wanted_setup(inputs) if inputs.policy.wanted_known else ()
    except TemplateProblem as problem:
        return SetupState(str(problem), (str(problem),))
    work = inputs.work
    if work and not work.ours and not work.handed_over:
        return SetupState(f"delete {_where(inputs)}: someone else created it")
    if work is None or work.meta.deleting:
        return SetupState(f"wait: {_where(inputs)} is being created")
    return SetupState(next(_problems(inputs, work), ""), tuple(_remarks(inputs, wanted, work)))


def _where(inputs: WorkerSetupInputs) -> str:
    return f"{MANIFEST_WORK.kind} {inputs.cluster}/{SETUP_NAME}"


def _written(work: ManifestWork) -> dict[ManifestKey, Obj]:
    """Return what a ManifestWork puts onto the worker."""
    return {key_of_manifest(one): one for one in manifests_in(work)}


def _problems(inputs: WorkerSetupInputs, work: ManifestWork) -> Iterator[str]:
    """Yield what keeps the worker from being ready, the first step first."""
    if not work.states:
        yield f"wait, or see that OCM's work agent runs there: it has not reported on {_where(inputs)} yet"
    for key in _written(work):
        state, name = work.states.get(key, _NOT_REPORTED), _label(key)
        if state.applied is None:
            yield f"wait: OCM's work agent has not applied {name} yet"
        elif state.applied is False and not _is_anothers(state):
            message = state.message[:_QUOTED_MAX]
            if _NO_KIND.search(state.message):
                yield f"install Kueue there: it serves no {key[0]}.{KUEUE} ({message})"
            else:
                yield f"let OCM's work agent apply {name} there: {message}"
        elif state.available is not True:
            yield f"wait: {name} is not there yet"
        elif state.values.get(ACTIVE) == "False":
            yield f"see why Kueue there does not use {name}: it is not active"


def _is_anothers(state: ManifestState) -> bool:
    """Whether the object is there, and somebody has set what we want otherwise."""
    return state.available is True and "conflict" in state.message


def _label(key: ManifestKey) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _remarks(inputs: WorkerSetupInputs, wanted: Iterable[Body], work: ManifestWork) -> Iterator[str]:
    present = _written(work)
    states = ((key, work.states.get(key, _NOT_REPORTED)) for key in present)
    if others := [_label(key) for key, state in states if state.applied is False and _is_anothers(state)]:
        yield f"{joined(others)} on the worker stays as somebody else has set it"
    queues = {(LOCAL_QUEUE.kind, *name) for queue in inputs.queues for name in queue.local_queues}
    if kept := [_label(key) for key in present if key[0] == LOCAL_QUEUE.kind and key not in queues]:
        yield f"{joined(kept)} on the worker stays while it has jobs"
    if larger := [
        _label(key_of_manifest(one))
        for one in wanted
        if one["kind"] == CLUSTER_QUEUE.kind and has_more(present.get(key_of_manifest(one)), one)
    ]:
        yield f"the quota of {joined(larger)} on the worker falls when less of it is in use"
