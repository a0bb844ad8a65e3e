"""
Jobs that a worker may remove before the hub's Kueue has seen their end: it then sends them again.

Pure. Kueue copies `ttlSecondsAfterFinished` to the worker, unless a gate is on (kubernetes-sigs/kueue 14734,
15126). It cannot see the end of a job while it does not run, or is not connected to the worker.
"""

from typing import Final

from kubectl_placement.hub.dump import Object
from placement_ac.core.api.fields import get_int
from placement_ac.core.inputs.rights import VersionRange

TTL_GATE: Final = "MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster"
"""Kueue's gate that leaves the field out on workers (alpha, off)."""
TTL_GATE_SINCE: Final = VersionRange("0.18.7, 0.19.3")
"""The releases that have it (kubernetes-sigs/kueue 14827, 14828)."""
SHORT_SECONDS: Final = 900
"""Kueue's default `workerLostTimeout`: a job whose worker is away for longer is sent again anyway."""


def short_ttl(job: Object) -> int | None:
    """Return the Job's `ttlSecondsAfterFinished` if it is short."""
    ttl = get_int(job, "spec", "ttlSecondsAfterFinished")
    return ttl if ttl is not None and ttl < SHORT_SECONDS else None


def warning_text(jobs: str, *, sent: bool) -> str:
    """Return what to do about these Jobs, and why; `sent`: whether one has a copy on a worker."""
    too_late = "; a copy that is on a worker already keeps its time, so patch it there, too" if sent else ""
    return (
        f"set ttlSecondsAfterFinished of {jobs} to {SHORT_SECONDS} or more, or turn on Kueue's gate"
        f" {TTL_GATE} (from {TTL_GATE_SINCE} on): a worker may remove a finished Job before the hub's Kueue"
        f" has seen its end, and Kueue then runs it again{too_late}"
    )
