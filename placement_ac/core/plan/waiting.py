"""
Who waits for the gate, and who has been placed since its Ready.

Pure. The message of our entry in a Workload names the clusters for which it is held, so that the controller
and a reader of the hub count the same Workloads.
"""

import re
from collections.abc import Collection, Container, Iterable
from datetime import datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import PENDING, READY
from placement_ac.core.api.objects import AdmissionCheckState, Workload

GATE_CLOSED: Final = "waits: {}"
"""The message of a Workload for which the gate is closed; takes the message of the gate."""
COPY_AWAITED: Final = "waits until cluster {} holds no copy of it"
"""The message of a Workload that was sent back from a cluster that may still run it."""
_HELD: Final = re.compile(r"waits(?:: (?P<gate>.+?) is leaving\b| until cluster (?P<copy>\S+) holds)")
_MORE: Final = re.compile(r" and \d+ more$")


class HeldWorkloads(NamedTuple):
    """Workloads with quota that no cluster gets for now, because the same clusters leave."""

    check: str
    """Our check, whose entry is Pending."""
    clusters: tuple[str, ...]
    """The clusters that leave, by name; at most 10."""
    number: int
    """Of Workloads."""
    since: datetime | None
    """When the first of them had both quota and a Pending entry; None: no time can be read."""


def held_workloads(workloads: Iterable[Workload], checks: Container[str]) -> tuple[HeldWorkloads, ...]:
    """Return the Workloads that the gate holds, by check of `checks` and by the clusters that leave."""
    found: dict[tuple[str, tuple[str, ...]], list[datetime | None]] = {}
    for workload in workloads:
        if workload.cluster or not workload.has_quota:
            continue
        for entry in workload.check_states:
            if entry.state == PENDING and entry.check in checks and (clusters := held_for(entry.message)):
                found.setdefault((entry.check, clusters), []).append(_held_since(workload, entry))
    return tuple(
        HeldWorkloads(*group, len(times), min(filter(None, times), default=None))
        for group, times in sorted(found.items())
    )


def held_for(message: str) -> tuple[str, ...]:
    """Return the clusters that a Workload waits for by the message of our entry; (): it is not held."""
    found = _HELD.match(message)
    return tuple(_MORE.sub("", found["gate"] or found["copy"]).split(", ")) if found else ()


def _held_since(workload: Workload, entry: AdmissionCheckState) -> datetime | None:
    times = [when for when in (workload.quota_since, entry.since) if when]
    return max(times, default=None)


class Placed(NamedTuple):
    """Uids of Workloads that became Ready by a write of ours: those placed since, and those that wait."""

    placed: tuple[str, ...]
    waiting: tuple[str, ...]


def placed_since_ready(
    ready: Collection[str], workloads: Iterable[Workload], ours: Container[str], kueues: Container[str]
) -> Placed:
    """Return which of the `ready` uids a worker has admitted by now; `ours`, `kueues`: names of checks.

    One that was sent back, deleted or finished meanwhile is in neither.
    """
    placed, waiting = [], []
    for workload in workloads if ready else ():
        if workload.meta.uid not in ready:
            continue
        if workload.cluster or _is_ready(workload, kueues):
            placed.append(workload.meta.uid)
        elif _is_ready(workload, ours):
            waiting.append(workload.meta.uid)
    return Placed(tuple(placed), tuple(waiting))


def _is_ready(workload: Workload, checks: Container[str]) -> bool:
    return any(entry.state == READY and entry.check in checks for entry in workload.check_states)
