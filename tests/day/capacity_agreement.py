"""
`capacity` says of each worker's ClusterQueues what its Kueue counts, as far as the controller can know it.

Compared once a virtual minute, in the ConfigMaps that the command reads. The quota, and the part that others
hold, are of when the worker was asked (`AGE`); this hub's jobs are counted since, and a change is written
within LATE_SECONDS.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from kubectl_placement.capacity.views import rows_of, total_rows
from placement_ac.controller.capacity_reporter import AGE_SECONDS
from placement_ac.core.api.constants import (
    CAPACITY_KEY,
    CAPACITY_NAME,
    CAPACITY_QUEUES_NAME,
    CONFIG_MAP,
    WORKLOAD,
    Kind,
)
from placement_ac.core.capacity_report.document import read_report
from placement_ac.core.capacity_report.model import Amounts, CapacityReport, ClusterCapacity, QueueCapacity
from placement_lab.standins import multikueue as mk
from placement_lab.standins.multikueue import objects as of
from tests.day.rules import Rules
from tests.day.trace import CLUSTERS, EXTRA_QUEUES
from tests.support.jobs_to_dispatch import GPU
from tests.support.virtual.clock import START
from tests.support.virtual.workers import QUEUE

LATE_SECONDS: Final = 150.0
"""The hub hears of a job; the controller waits for a minute after it has written, and looks once a minute."""
ASKED_SECONDS: Final = 10.0
"""A worker counts a job so long before or after the hub does, and an answer is on its way."""
MINUTES: Final = 4
"""Within so many comparisons an answer is written."""


class Use(NamedTuple):
    """A ClusterQueue of a worker, in GPUs."""

    nominal: int
    active: bool
    ours: int
    """Held by jobs that the hub has placed there."""
    others: int
    """Held by all others: the worker's own, and copies of jobs that go elsewhere."""
    extra: int = 0
    """Of `ours`: held by jobs of LocalQueues that come and go, which the controller may not know there."""


T = TypeVar("T")
Queues = Mapping[str, Use]
"""ClusterQueue that a LocalQueue leads to → its use."""


@dataclass
class CapacityAgreement:
    """Reports to `rules` what is published and is not so."""

    rules: Rules
    _used: dict[str, list[tuple[float, Queues]]] = field(default_factory=lambda: defaultdict(list))
    """Cluster → when its use changed, and to what."""
    _waiting: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    """Cluster → when another number of GPUs was waited for there, and how many."""
    _changed: set[str] = field(default_factory=lambda: set(CLUSTERS))
    _held: set[str] = field(default_factory=set)
    """Clusters whose queues are on hold."""
    _wrong_sums: set[str] = field(default_factory=set)
    """Of the last comparison: one ConfigMap is written before the other."""
    _wrong_waits: set[tuple[str, int]] = field(default_factory=set)
    """Of the last comparison, cluster and GPUs: a job that waited there for a moment may be shown."""
    _answers: deque[Mapping[str, float]] = field(default_factory=lambda: deque(maxlen=MINUTES))
    """The last answers of the workers, as they were at the last comparisons."""

    def __post_init__(self) -> None:
        self.world, self._looks = self.rules.world, 0
        self.world.kueue.on_use.append(self._note_use)
        self.world.hub.listeners.append(self._witness)

    def _note_use(self, worker: str) -> None:
        """Note a use at once, too: a worker may be asked while a copy holds quota for a part of a second."""
        cluster = self.world.cluster_of(worker)
        self._used[cluster].append((self.world.now, self._queues(cluster)))
        self._changed.add(cluster)

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        if kind == WORKLOAD and (where := of.cluster_of(raw)):
            self._changed.add(self.world.cluster_of(where))

    def note(self) -> None:
        """Note how the workers are used now; called once a second."""
        held = {cluster for cluster in CLUSTERS if self.world.kueue.workers[cluster].held}
        changed, self._held = self._changed | (held ^ self._held), held
        for cluster in changed:
            self._used[cluster].append((self.world.now, self._queues(cluster)))
        self._changed.clear()
        if self.rules.looks != self._looks:
            self._looks = self.rules.looks
            self._note_waiting()

    def _note_waiting(self) -> None:
        waiting = dict.fromkeys(CLUSTERS, 0)
        for (_, cluster), names in self.rules.nominated.items():
            there = (name for name in names if name in self.rules.jobs)
            waits = (name for name in there if not of.cluster_of(self.rules.jobs[name].raw))
            waiting[cluster] += sum(self.world.jobs[name].gpus for name in waits)
        for cluster, gpus in waiting.items():
            known = self._waiting[cluster]
            if not known or known[-1][1] != gpus:
                known.append((self.world.now, gpus))

    def compare(self) -> None:
        """Compare what is published with the workers."""
        before = self._answers[0] if len(self._answers) == MINUTES else {}
        self._answers.append(dict(self.world.answered))
        report = self._published()
        if report is None or self.world.controller.metrics is None:
            return
        wrong_sums = set(_wrong_sums(report))
        wrong_waits, self._wrong_waits = self._wrong_waits, set()
        lasting, self._wrong_sums = wrong_sums & self._wrong_sums, wrong_sums
        for problem in (
            *self._problems(report, wrong_waits),
            *self._missing(report, before),
            *sorted(lasting),
        ):
            self.rules.found("capacity", problem)

    def _published(self) -> CapacityReport | None:
        objects = self.world.hub.objects
        texts = {
            name: raw["data"][CAPACITY_KEY]
            for (kind, _, name), raw in objects.items()
            if kind == CONFIG_MAP and name in (CAPACITY_NAME, CAPACITY_QUEUES_NAME)
        }
        return read_report(texts[CAPACITY_QUEUES_NAME]) if len(texts) == 2 else None

    # -- what is so

    def _queues(self, cluster: str) -> Queues:
        worker, bare = self.world.kueue.workers[cluster], self.world.kueue.workers[cluster].bare
        use = self.world.kueue.use(cluster)
        ours: dict[str, list[int]] = {}
        for name, copy in worker.copies.items():
            seen = self.rules.jobs.get(name)
            if seen is None or self.world.cluster_of(of.cluster_of(seen.raw)) != cluster:
                continue
            if mk.has_quota(copy):
                job, queue = self.world.jobs[name], copy["status"]["admission"]["clusterQueue"]
                held = ours.setdefault(queue, [0, 0])
                held[0] += job.gpus
                held[1] += job.gpus if job.queue in EXTRA_QUEUES else 0
        names = bare.cluster_queues() if bare else (QUEUE,)
        found: dict[str, Use] = {}
        for name in names:
            mine, extra = ours.get(name, (0, 0))
            nominal = bare.quota(name) if bare else worker.slots
            active = not (bare.held if bare else worker.held)
            found[name] = Use(nominal, active, mine, use.gpus.get(name, 0) - mine, extra)
        return found

    # -- what is published

    def _problems(self, report: CapacityReport, wrong_waits: set[tuple[str, int]]) -> Iterator[str]:
        """Yield what is wrong of the workers that answer, and were asked since the controller began."""
        doubtful = self._doubtful()
        for cluster in report.clusters:
            is_fresh = cluster.name in doubtful or self.rules.is_fresh(cluster.name, LATE_SECONDS)
            if cluster.read_at is None or is_fresh:
                continue
            asked = cluster.read_at.timestamp() - START
            if asked > self.world.controller_began + ASKED_SECONDS:
                used = self._used[cluster.name]
                then = _between(used, asked - ASKED_SECONDS, asked + ASKED_SECONDS)
                yield from self._of_cluster(cluster, asked, then)
                yield from self._of_waiting(cluster, wrong_waits)

    def _doubtful(self) -> set[str]:
        """Return where jobs are whose cluster was away: Kueue runs them elsewhere than the hub says."""
        doubtful: set[str] = set()
        for name, seen in self.rules.jobs.items():
            if seen.hidden or name in self.rules.kueue_lost:
                doubtful |= {self.world.cluster_of(of.cluster_of(seen.raw)), *seen.hidden}
        return doubtful

    def _of_cluster(self, cluster: ClusterCapacity, asked: float, then: list[Queues]) -> Iterator[str]:
        where, names = f"{cluster.name}, asked at {asked:.0f}", [queue.name for queue in cluster.queues]
        if not any(sorted(queues) == sorted(names) for queues in then):
            yield f"{where}, has the queues {sorted(then[-1])}, and capacity shows {names}"
        lately = _between(self._used[cluster.name], self.world.now - LATE_SECONDS, self.world.now)
        for queue in cluster.queues:
            at_once = {queues[queue.name] for queues in then if queue.name in queues}
            now = {queues[queue.name] for queues in lately if queue.name in queues}
            shown = _gpus_of(queue)
            if at_once and now and not any(_is_so(shown, one, other) for one in at_once for other in now):
                is_so = f"{queue.name} has {_text(now)} now, had {_text(at_once)}"
                yield f"{where}: {is_so}, and capacity shows {shown}"

    def _of_waiting(self, cluster: ClusterCapacity, before: set[tuple[str, int]]) -> Iterator[str]:
        """Yield how many GPUs are waited for, if capacity shows another number, as it did `before`.

        On a worker that began bare, a LocalQueue may not be known: its jobs wait for nothing there.
        """
        lately = _between(self._waiting[cluster.name], self.world.now - LATE_SECONDS, self.world.now)
        shown = sum(_gpus_of(queue).waiting for queue in cluster.queues)
        if shown not in lately and not self.world.bare:
            self._wrong_waits.add((cluster.name, shown))
        if self._wrong_waits & before & {(cluster.name, shown)}:
            yield f"{cluster.name}: jobs wait for {sorted(lately)} GPUs, and capacity shows {shown}"

    def _missing(self, report: CapacityReport, before: Mapping[str, float]) -> Iterator[str]:
        """Yield the workers with jobs whose answers of some minutes ago are not there."""
        known = {cluster.name: cluster.read_at for cluster in report.clusters if cluster.known}
        running = {cluster for _, cluster in self.rules.running}
        for cluster, asked in before.items():
            if cluster not in running or self.rules.is_fresh(cluster, MINUTES * 60.0 + LATE_SECONDS):
                continue
            if asked < self.world.controller_began or not self._ran_throughout(cluster):
                continue
            read_at = known.get(cluster)
            if read_at is None:
                yield f"{cluster} was asked at {asked:.0f}, and capacity does not know it"
            elif read_at.timestamp() - START < asked - AGE_SECONDS - ASKED_SECONDS:
                yield f"{cluster} was asked at {asked:.0f}, and capacity is of {read_at}"

    def _ran_throughout(self, cluster: str) -> bool:
        """Whether jobs of the hub have been there all the time, so that it has been listed."""
        since = self.world.now - MINUTES * 60.0 - LATE_SECONDS
        lately = _between(self._used[cluster], since, self.world.now)
        return all(sum(use.ours for use in queues.values()) for queues in lately)


def _between(history: list[tuple[float, T]], since: float, until: float) -> list[T]:
    """Return what was so from then until then."""
    first = max(bisect_right(history, since, key=lambda entry: entry[0]) - 1, 0)
    last = bisect_right(history, until, key=lambda entry: entry[0])
    return [state for _, state in history[first : max(last, first + 1)]]


class _Published(NamedTuple):
    """The published GPUs of a ClusterQueue."""

    nominal: int
    used: int
    free: int
    waiting: int

    def __str__(self) -> str:
        return f"{self.used} of {self.nominal} used, {self.free} free"


def _gpus_of(queue: QueueCapacity) -> _Published:
    amounts = [one for supply, one in queue.quota.items() if supply.resource == GPU]
    return _Published(
        *(sum(getattr(one, name) or 0 for one in amounts) // 1000 for name in _Published._fields)
    )


def _is_so(shown: _Published, then: Use, now: Use) -> bool:
    """Whether that is published of a queue that was so when it was asked, and has these jobs now."""
    free = max(shown.nominal - shown.used, 0) if then.active else 0
    most = then.others + now.ours
    unknown = max(then.extra, now.extra)
    is_used = most - unknown <= shown.used <= most + unknown
    return shown.nominal == then.nominal and is_used and shown.free == free


def _text(uses: set[Use]) -> str:
    return " or ".join(
        f"{one.ours}+{one.others} of {one.nominal}" + ("" if one.active else " on hold")
        for one in sorted(uses)
    )


def _wrong_sums(report: CapacityReport) -> Iterator[str]:
    """Yield the rows of the command that are not the sum of their queues."""
    rows = {row.name: row for row in rows_of(report, "cluster") if row.resource == GPU}
    known = [cluster for cluster in report.clusters if cluster.known]
    for cluster in known:
        sums = _sum(list(cluster.queues))
        row = rows.get(cluster.name)
        shown = (row.nominal or 0, row.used or 0) if row else (0, 0)
        if shown != sums:
            yield f"the queues of {cluster.name} have {sums}, and capacity shows {shown}"
    totals = [(row.nominal, row.used) for row in total_rows(report) if row.resource == GPU]
    sums = _sum([queue for cluster in known for queue in cluster.queues])
    if totals and totals != [sums]:
        yield f"the queues of all clusters have {sums}, and capacity shows {totals}"


def _sum(queues: list[QueueCapacity]) -> tuple[int, int]:
    """Return the nominal and the used GPUs, in thousandths."""
    every: list[Amounts] = [
        one for queue in queues for supply, one in queue.quota.items() if supply.resource == GPU
    ]
    return sum(one.nominal for one in every), sum(one.used for one in every)
