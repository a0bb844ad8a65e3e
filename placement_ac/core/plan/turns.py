"""
Which Workloads are judged in this plan, if they are too many for one (our dispatcher).

Pure. The event loop waits for a plan, so it judges a limited number, and the next plan goes on: with those
that were not judged yet, then with those whose turn has passed while a worker was asked for its queues, and
then with those that were judged the longest time ago.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Final, NamedTuple

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.filters.anti_affinity import keeps_apart
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot

JUDGED_AGAIN_SECONDS: Final = 2.0
"""When the next ones are judged again, once all have been judged; a write brings the next plan at once."""
AWAITED_ANSWER: Final = 0
"""In place of how often a Workload was judged: it waited for a worker's answer in its turn."""
LARGE_SIZE: Final = 50
"""A job of more (`JobSpec.size`) is judged in the time of LARGE_WEIGHT others."""
LARGE_WEIGHT: Final = 10


class Turn(NamedTuple):
    """The Workloads that are left for later plans."""

    deferred: frozenset[str] = frozenset()
    """Their uids."""
    judged: Mapping[str, int] = MappingProxyType({})
    """Uid → the how-manieth time it was judged last, AWAITED_ANSWER: it waited for a worker's answer."""
    chosen: frozenset[str] = frozenset()
    """The uids of those that are judged now."""
    requeue_after: float | None = None

    def lasting(self, awaiting: Collection[str]) -> frozenset[Since]:
        """Return when each was judged last; of those chosen, `awaiting` wait for a worker's answer."""
        waits = self.chosen.intersection(awaiting)
        return frozenset(
            Since(SinceKind.JUDGED, uid, AWAITED_ANSWER if uid in waits else number)
            for uid, number in self.judged.items()
        )


def turn(snapshot: Snapshot, workloads: Sequence[Workload], *, awaits_answers: bool) -> Turn:
    """Return which of the Workloads that are to be judged are left for later plans.

    `awaits_answers`: whether a worker's answer about its queues is awaited.
    """
    most = snapshot.policy.judged_at_once
    if most is None or sum(map(weight, workloads)) <= most:
        return Turn()
    last = _last_judged(snapshot)
    order = sorted(workloads, key=lambda workload: _precedence(last.get(workload.meta.uid)))
    weights = accumulate(map(weight, order))
    number = max(sum(total <= most for total in weights), 1)
    uids = [workload.meta.uid for workload in order]
    chosen, deferred = uids[:number], uids[number:]
    due = any(uid not in last or (last[uid][1] == AWAITED_ANSWER and not awaits_answers) for uid in deferred)
    judged = {uid: last[uid][1] for uid in uids if uid in last}
    judged |= {uid: judged.get(uid, AWAITED_ANSWER) + 1 for uid in chosen}
    again = 0.0 if due else JUDGED_AGAIN_SECONDS
    return Turn(frozenset(deferred), judged, frozenset(chosen), again)


def weight(workload: Workload) -> int:
    """Return as how many jobs one counts: large ones, and those that are compared with all of their queue."""
    is_large = workload.job.size > LARGE_SIZE or keeps_apart(workload)
    return LARGE_WEIGHT if is_large else 1


def _precedence(last: tuple[float, int] | None) -> tuple[int, float]:
    """Return the rank of a Workload: never judged, judged without an answer, judged the longest time ago."""
    if last is None:
        return 0, 0.0
    age, number = last
    return (1 if number == AWAITED_ANSWER else 2), -age


def _last_judged(snapshot: Snapshot) -> dict[str, tuple[float, int]]:
    """Return uid → how long ago it was judged, and how often it has been."""
    ages = snapshot.all_ages.items()
    return {since.subject: (age, since.number) for since, age in ages if since.kind is SinceKind.JUDGED}
