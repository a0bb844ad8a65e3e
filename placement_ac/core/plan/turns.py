"""
Which Workloads are judged in this plan, if they are too many for one (our dispatcher).

Pure. The event loop waits for a plan, so it takes a limited number of steps, and the next plan goes on: with
those that were not judged yet, and then with those that were judged the longest time ago.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot

JUDGED_AGAIN_SECONDS: Final = 2.0
"""When the next ones are judged again, once all have been judged; a write brings the next plan at once."""

Cost = Callable[[Workload, int], int]
"""The steps to judge a Workload after so many others."""


class Turn(NamedTuple):
    """The Workloads that are left for later plans."""

    deferred: frozenset[str] = frozenset()
    """Their uids."""
    lasting: frozenset[Since] = frozenset()
    """They say when a Workload was judged last, and the how-manieth time that was."""
    requeue_after: float | None = None


def turn(snapshot: Snapshot, workloads: Sequence[Workload], cost: Cost) -> Turn:
    """Return which of the Workloads that are to be judged are left for later plans."""
    most = snapshot.policy.dispatch_steps
    if most is None or sum(cost(one, at) for at, one in enumerate(workloads)) <= most:
        return Turn()
    last = _last_judged(snapshot)
    waits_longest = sorted(workloads, key=lambda one: -last.get(one.meta.uid, (math.inf, 0))[0])
    chosen: list[str] = []
    for one in waits_longest:
        most -= cost(one, len(chosen))
        if most < 0 and chosen:
            break
        chosen.append(one.meta.uid)
    times = {uid: number for uid, (_, number) in last.items()} | {
        uid: last[uid][1] + 1 if uid in last else 1 for uid in chosen
    }
    deferred = [one.meta.uid for one in waits_longest[len(chosen) :]]
    return Turn(
        frozenset(deferred),
        frozenset(
            Since(SinceKind.JUDGED, workload.meta.uid, times[workload.meta.uid])
            for workload in workloads
            if workload.meta.uid in times
        ),
        0.0 if any(uid not in last for uid in deferred) else JUDGED_AGAIN_SECONDS,
    )


def _last_judged(snapshot: Snapshot) -> dict[str, tuple[float, int]]:
    """Return uid → how long ago it was judged, and how often it has been."""
    ages = snapshot.all_ages.items()
    return {since.subject: (age, since.number) for since, age in ages if since.kind is SinceKind.JUDGED}
