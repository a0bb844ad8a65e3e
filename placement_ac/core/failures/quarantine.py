"""
Which clusters get no new jobs, because jobs keep failing there or because an admin says so.

Pure. For nobody more than half of the clusters: what fails on most of them is not the clusters' fault.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import ANNOTATION_QUARANTINE, MULTIKUEUE_CLUSTER
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import joined, shortened
from placement_ac.core.failures.memory import Failing

QUARANTINED_MOST: Final = 0.5
"""The share of the connected clusters that may be quarantined for their failures."""
BY_ADMIN: Final = "an admin has quarantined it"


class Quarantine(NamedTuple):
    """Why a cluster gets no new job."""

    why: str
    retry_at: datetime | None = None
    """When one job may try it, and shows whether it has recovered; None: an admin takes it back."""
    namespaces: tuple[str, ...] = ()
    """Whose jobs it gets no more; empty: nobody's."""


def quarantines(
    workers: Mapping[str, KueueObject], failing: Mapping[str, Failing], recovered: Collection[str] = ()
) -> dict[str, Quarantine]:
    """Return the quarantined ones of the connected `workers`: cluster → its MultiKueueCluster.

    `recovered`: those of `failing` where a job that came later is well.
    """
    words = {cluster: _word(worker) for cluster, worker in workers.items()}
    own = [name for name in workers if name in failing and name not in recovered and words[name] != "false"]
    most = QUARANTINED_MOST * len(workers)
    for_all = [name for name in own if not failing[name].namespaces]
    for_all = for_all if len(for_all) <= most else []
    of_namespaces = Counter(one for name in own for one in failing[name].namespaces)
    found = {}
    for name in own:
        it = failing[name]
        some = tuple(one for one in it.namespaces if of_namespaces[one] + len(for_all) <= most)
        if some or name in for_all:
            found[name] = Quarantine(_why(it, some), it.retry_at, some)
    return found | {cluster: Quarantine(BY_ADMIN) for cluster, word in words.items() if word == "true"}


def _why(it: Failing, namespaces: Sequence[str]) -> str:
    of = of_namespaces(namespaces)
    others = "; jobs of others are sent there" if of else ""
    when = f"one job may try it from {it.retry_at:%Y-%m-%dT%H:%M:%SZ}"
    return f"{it.bad} of {it.total} jobs{of} failed there; {when}{others}"


def of_namespaces(namespaces: Sequence[str]) -> str:
    """Return ` of namespace a`, or "" for all namespaces."""
    return f" of namespace {joined(namespaces)}" if namespaces else ""


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
