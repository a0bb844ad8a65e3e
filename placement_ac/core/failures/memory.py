"""
Where jobs failed: the last ends on each cluster, how reliable it is, and which jobs avoid it.

Pure. A function of the ends alone, so a restart that reads them from the hub's Workloads comes to the same
result, as far as Workloads still exist.

Whoever may create jobs can make them fail. So no namespace weighs more than a few ends, a cluster fails for
all only if it fails for two namespaces, and jobs that name one cluster alone say nothing about it.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from cachetools import LRUCache

from placement_ac.core.failures.ends import Cause, End

WINDOW: Final = timedelta(hours=1)
"""How long an end counts for the reliability; its weight falls from 1 to 0."""
ENDS_LEAST: Final = 5
"""So few ends say nothing about a cluster."""
NAMESPACE_WEIGHT_MAX: Final = float(ENDS_LEAST)
"""The ends of one namespace weigh together at most as much as so many new ones."""
THRESHOLD: Final = 0.5
"""Below it, a job that is sent there is more likely to fail because of the cluster than not."""
AVOIDED_MAX: Final = timedelta(hours=2)
"""A job avoids a cluster, and a quarantined cluster gets no job, for so long at most after a failure."""
ENDS_KEPT: Final = 100
"""Of each cluster: the oldest of the namespace with the most goes first. The last ones weigh most, so more of
them change little."""
KEPT_FOR: Final = 2 * AVOIDED_MAX
"""A cluster without an end for so long is forgotten."""
JOBS_KEPT: Final = 10_000
"""So many jobs that failed somewhere are remembered; one takes about 300 bytes."""


class Failing(NamedTuple):
    """A cluster whose jobs keep failing."""

    since: datetime
    bad: int
    """The ends because of the cluster, of `total`: those until then, and of jobs that have tried it since."""
    total: int
    retry_at: datetime
    """When one job may try it."""
    last: datetime
    """When the last job failed there. A job that was placed later and is well shows that it has recovered."""
    namespaces: tuple[str, ...] = ()
    """Those whose jobs keep failing there, if it is not known to be so for all; sorted."""


class _Known(NamedTuple):
    """The conclusions from the ends on one cluster."""

    failing: Failing | None
    weighed: list["_Weighed"]
    """The ends that count."""


_Weighed = tuple[float, bool, str]
"""When an end was, whether it is good, and the namespace of its job."""


class _Job(NamedTuple):
    """How one job has ended, by MultiKueueCluster."""

    failed: dict[str, tuple[int, datetime]]
    """Cluster → how often it failed or was evicted there, and when last."""
    bad: set[str]
    """Where it failed because of the cluster, unless it fails everywhere."""
    good: list[bool]
    """Not empty: it has ended well somewhere."""

    @property
    def fails_everywhere(self) -> bool:
        return len(self.bad) > 1 and not self.good


class FailureMemory:
    """The ends of jobs on clusters, by the names of MultiKueueClusters.

    `avoid_for`: how long a job avoids a cluster after its first failure there.
    """

    def __init__(self, avoid_for: float) -> None:
        self._avoid_for = timedelta(seconds=avoid_for)
        self._ends: dict[str, list[End]] = {}
        self.counts: Counter[tuple[str, Cause]] = Counter()
        """Cluster and cause → how many ends were taken in."""
        self._jobs: LRUCache[str, _Job] = LRUCache(JOBS_KEPT)
        self._judged: dict[str, _Known] = {}
        """Cluster → what its ends say, until there is another one."""

    def copy(self) -> "FailureMemory":
        """Return a memory of the same ends; later changes of either stay its own."""
        other = FailureMemory(self._avoid_for.total_seconds())
        for end in chain.from_iterable(self._ends.values()):
            other.take(end)
        return other

    def take(self, end: End) -> bool:
        """Take in an end; return whether it was new."""
        cluster = end.worker
        ends = self._ends.get(cluster, [])
        if any(_is_same(known, end) for known in ends):
            return False
        kept = _newest(sorted((*ends, end)))
        if end not in kept:
            return False
        self.counts[cluster, end.cause] += 1
        self._ends[cluster] = kept
        job = self._jobs.setdefault(end.job, _Job({}, set(), []))
        before = job.fails_everywhere
        if end.is_good:
            job.good[:] = [True]
        else:
            times, last = job.failed.get(cluster, (0, end.at))
            job.failed[cluster] = times + 1, max(last, end.at)
            job.bad.update({cluster} if end.is_bad else ())
        for changed in {cluster, *job.bad} if job.fails_everywhere is not before else {cluster}:
            self._judged.pop(changed, None)
        return True

    def reliability(self, now: datetime, clusters: Iterable[str] | None = None) -> dict[str, float]:
        """Return cluster → the share of its ends that were not due to it, where there are enough.

        `clusters`: only of these.
        """
        known = [name for name in (self._ends if clusters is None else clusters) if name in self._ends]
        shares = {cluster: _shares(self._known(cluster).weighed, now.timestamp()) for cluster in known}
        return {cluster: found.good for cluster, found in shares.items() if found}

    def failing(self, now: datetime) -> dict[str, Failing]:
        """Return the clusters whose jobs keep failing; forget those without a recent end."""
        for cluster in [name for name, ends in self._ends.items() if ends[-1].at < now - KEPT_FOR]:
            del self._ends[cluster]
            self._judged.pop(cluster, None)
        return {cluster: found for cluster in sorted(self._ends) if (found := self._known(cluster).failing)}

    def _known(self, cluster: str) -> "_Known":
        if cluster not in self._judged:
            ends = self._counted(cluster)
            self._judged[cluster] = _Known(_judged(ends, self._avoid_for), [_weighed(end) for end in ends])
        return self._judged[cluster]

    def avoided(self, job: str, now: datetime) -> dict[str, datetime]:
        """Return the clusters that a job avoids, and until when."""
        known = self._jobs.get(job)
        untils = {
            cluster: last + min(self._avoid_for * 2 ** min(times - 1, 20), AVOIDED_MAX)
            for cluster, (times, last) in (known.failed if known else {}).items()
        }
        return {cluster: until for cluster, until in untils.items() if until > now}

    def _counted(self, cluster: str) -> list[End]:
        """Return the ends that say something about the cluster: a job that fails everywhere does not."""
        return [
            end
            for end in self._ends[cluster]
            if not end.is_pinned
            and (
                end.is_good
                or (end.is_bad and not ((job := self._jobs.get(end.job)) and job.fails_everywhere))
            )
        ]


def _is_same(known: End, end: End) -> bool:
    """Whether it is known; of an eviction that is over, the hub shows a later time."""
    return known.uid == end.uid and (known.at == end.at or (end.is_over and known.at < end.at))


def _newest(ends: list[End]) -> list[End]:
    """Return at most ENDS_KEPT of sorted ends: the oldest of the namespace with the most is dropped."""
    if len(ends) <= ENDS_KEPT:
        return ends
    [(most, _)] = Counter(end.namespace for end in ends).most_common(1)
    dropped = next(end for end in ends if end.namespace == most)
    return [end for end in ends if end is not dropped]


def _weighed(end: End) -> _Weighed:
    return end.at.timestamp(), end.is_good, end.namespace


class _Shares(NamedTuple):
    good: float
    """The share of the good ends, by weight."""
    failing: int
    """The number of namespaces of which most ends are bad."""


def _shares(ends: Iterable[_Weighed], now: float) -> _Shares | None:
    """Return how the recent ends were; None: they are too few."""
    window, number = WINDOW.total_seconds(), 0
    weights: dict[str, list[float]] = {}  # namespace → the weight of its bad ends, and of its good ones
    for at, is_good, namespace in ends:
        if now - at < window:
            weights.setdefault(namespace, [0.0, 0.0])[is_good] += 1 - (now - at) / window
            number += 1
    if number < ENDS_LEAST:
        return None
    good = whole = 0.0
    for bad, well in weights.values():
        scale = min(1.0, NAMESPACE_WEIGHT_MAX / (bad + well))
        good, whole = good + well * scale, whole + (bad + well) * scale
    failing = sum(well < THRESHOLD * (bad + well) for bad, well in weights.values())
    return _Shares(good / whole, failing)


def _judged(ends: list[End], avoid_for: timedelta) -> Failing | None:
    """Return whether the cluster keeps failing for all, or else for some namespaces."""
    suspects = sorted({end.namespace for end in ends if end.is_bad})
    for_all = _failing(ends, avoid_for, namespaces=2) if len(suspects) > 1 else None
    if for_all is not None:
        return for_all
    of_each = [(name, [end for end in ends if end.namespace == name]) for name in suspects]
    found = {name: it for name, own in of_each if (it := _failing(own, avoid_for, namespaces=1))}
    if not found:
        return None
    several = found.values()
    return Failing(
        min(it.since for it in several),
        sum(it.bad for it in several),
        sum(it.total for it in several),
        max(it.retry_at for it in several),
        max(it.last for it in several),
        tuple(found),
    )


def _failing(ends: Iterable[End], avoid_for: timedelta, namespaces: int) -> Failing | None:
    """Return whether the cluster keeps failing, and since when: until a job that came later ends well.

    `namespaces`: of so many at least, more than half of the ends must be bad.
    """
    found: Failing | None = None
    recent: list[End] = []
    wait = avoid_for
    for end in ends:
        recent.append(end)
        if found is None:
            shares = _shares(map(_weighed, recent), end.at.timestamp()) if end.is_bad else None
            if shares and shares.good < THRESHOLD and shares.failing >= namespaces:
                bad = [one for one in recent if one.is_bad and end.at - one.at < WINDOW]
                wait = avoid_for
                found = Failing(end.at, len(bad), len(recent), end.at + wait, end.at)
        elif end.is_good and end.started > found.last:
            found, recent = None, [end]
        elif end.is_bad and end.started >= found.retry_at:  # it has tried the cluster
            wait = min(2 * wait, AVOIDED_MAX)
            found = Failing(found.since, found.bad + 1, found.total + 1, end.at + wait, end.at)
        elif end.is_bad:
            found = found._replace(last=end.at)
    return found
