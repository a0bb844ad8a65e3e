"""
Which clusters get no new jobs, because jobs keep failing there or because an admin says so.

Pure. Never more than half of the clusters: what fails on most of them is not the clusters' fault.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import ANNOTATION_QUARANTINE, MULTIKUEUE_CLUSTER
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import shortened
from placement_ac.core.failures.memory import Failing

QUARANTINED_MOST: Final = 0.5
"""The share of the connected clusters that may be quarantined for their failures."""
BY_ADMIN: Final = "an admin has quarantined it"


class Quarantine(NamedTuple):
    """Why a cluster gets no new job."""

    why: str
    retry_at: datetime | None = None
    """When one job may try it, and shows whether it has recovered; None: an admin takes it back."""


def quarantines(
    workers: Mapping[str, KueueObject], failing: Mapping[str, Failing], recovered: Collection[str] = ()
) -> dict[str, Quarantine]:
    """Return the quarantined ones of the connected `workers`: cluster → its MultiKueueCluster.

    `recovered`: those of `failing` where a job that came later is well.
    """
    words = {cluster: _word(worker) for cluster, worker in workers.items()}
    own = [name for name in workers if name in failing and name not in recovered and words[name] != "false"]
    own = own if len(own) <= QUARANTINED_MOST * len(workers) else []
    found = {cluster: Quarantine(_why(failing[cluster]), failing[cluster].retry_at) for cluster in own}
    return found | {cluster: Quarantine(BY_ADMIN) for cluster, word in words.items() if word == "true"}


def _why(it: Failing) -> str:
    return (
        f"{it.bad} of {it.total} jobs failed there; one job may try it from {it.retry_at:%Y-%m-%dT%H:%M:%SZ}"
    )


def _word(worker: KueueObject) -> str:
    return worker.meta.annotations.get(ANNOTATION_QUARANTINE, "").strip().lower()


def wrong_annotations(workers: Collection[KueueObject]) -> Iterator[str]:
    """Yield what to correct in annotations that are ignored."""
    for worker in workers:
        if _word(worker) not in ("", "true", "false"):
            yield (
                f"set the annotation {ANNOTATION_QUARANTINE} of {MULTIKUEUE_CLUSTER.kind} {worker.meta.name}"
                f' to "true" or "false": {shortened(_word(worker))!r} is ignored'
            )
