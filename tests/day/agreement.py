"""
A cluster has the same state everywhere: in `status`, `explain`, metrics, events, the condition.

They are compared with each other and with the world when a cluster has drained or been lost for
REPORTED_SECONDS, when that is over, and every CHECK_AGAIN_SECONDS. All are the controller's and the commands'
own functions, on the objects of the hub.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.choice import choices
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import CheckStatus
from kubectl_placement.story.lines import job_lines
from placement_ac.controller.event_writer import REPEAT_SECONDS
from placement_ac.core.api import constants
from placement_ac.core.api.constants import CLUSTER_DRAINING
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.state import Key
from placement_lab.standins.multikueue import objects as of
from tests.day.capacity_agreement import CapacityAgreement
from tests.day.job_agreement import ASK_SECONDS, JobAgreement
from tests.day.rules import Rules
from tests.day.story_agreement import StoryAgreement
from tests.day.trace import CANDIDATES, CLUSTERS, PLACEMENTS
from tests.day.world import World
from tests.support.virtual.clock import START
from tests.support.virtual.hub import checks_of

REPORTED_SECONDS: Final = 60.0
"""How long something must last until all must say it: requests, a settling OCM, events that are paced."""
CHECK_AGAIN_SECONDS: Final = 600.0
DOUBT_SECONDS: Final = 15.0
"""A count may have changed in this second: the metrics follow with the next reconcile."""
DRAIN_START: Final = "placement_ac_oldest_drain_start_timestamp_seconds"


@dataclass
class Agreement:
    """Reports to `rules` what is not said, or said differently."""

    rules: Rules
    since: dict[tuple[str, str, str], float] = field(default_factory=dict)
    """The state of a cluster for a Placement (`draining`, `disconnected`) → since when."""
    _looks: int = 0
    _last: Any = None
    _asked: float = 0.0
    _doubts: set[tuple[str, str]] = field(default_factory=set)
    """Rules and problems that are reported if they are still there after DOUBT_SECONDS."""

    def __post_init__(self) -> None:
        self.world, self.jobs = self.rules.world, JobAgreement(self.rules)
        self.stories, self.capacity = StoryAgreement(self.rules), CapacityAgreement(self.rules)
        self.world.kueue.later(1.0, self._second)

    def _second(self) -> None:
        self.world.kueue.later(1.0, self._second)
        self.capacity.note()
        if self._age(self.jobs.asked) >= ASK_SECONDS:
            view = view_of(self.world)
            lines = {line.workload.removeprefix("job-"): line for line in job_lines(view)}
            self.jobs.compare(lines)
            self.stories.compare(view, lines)
            self.capacity.compare()
        if self.rules.looks != self._looks:
            self._looks = self.rules.looks
            self._note("draining", self._draining())
            self._note("disconnected", self._disconnected())
        if (
            self.world.controller.metrics is None
            or self._age(self.world.controller_began) < 2 * REPORTED_SECONDS
        ):
            return
        due = {key for key, when in self.since.items() if self._age(when) > REPORTED_SECONDS}
        if not due and self._age(self._asked) < CHECK_AGAIN_SECONDS:
            return
        self._count_drains(due)
        if due == self._last and self._age(self._asked) < CHECK_AGAIN_SECONDS:
            return
        self._last, self._asked = due, self.world.now
        self._compare(due)

    def _count_drains(self, due: set[tuple[str, str, str]]) -> None:
        """Compare the number of drains with the metrics; this costs little."""
        draining = Counter(placement for what, placement, _ in due if what == "draining")
        metrics = self.world.controller.metrics
        for placement, number in draining.items():
            stats = metrics.stats.get(Key("placement", placement)) if metrics else None
            if stats and len(stats.draining) < number:
                message = (
                    f"{placement}: {number} leave with jobs, and the metric counts {len(stats.draining)}"
                )
                self.rules.found("drains", message)

    def _age(self, when: float) -> float:
        return self.world.now - when

    def _note(self, what: str, pairs: set[tuple[str, str]]) -> None:
        for kind, placement, cluster in list(self.since):
            if kind == what and (placement, cluster) not in pairs:
                del self.since[kind, placement, cluster]
        for pair in pairs:
            self.since.setdefault((what, *pair), self.world.now)

    # -- what is so

    def _draining(self) -> set[tuple[str, str]]:
        """Clusters that leave, are listed, and run jobs of the Placement."""
        now, running = self.world.now, self.rules.running
        return {
            key
            for key, when in self.rules.left.items()
            if when <= now and key in running and self.world.is_listed(*key) and not self._holds(key[0])
        }

    def _holds(self, placement: str) -> bool:
        """Whether a mass loss is held: it also counts losses before those that `rules` knows of."""
        check = self.world.hub.objects.get((constants.ADMISSION_CHECK, "", checks_of(placement)[1]), {})
        conditions = check.get("status", {}).get("conditions", ())
        return any("would go at once" in condition["message"] for condition in conditions)

    def _disconnected(self) -> set[tuple[str, str]]:
        """Clusters that are selected and listed, have credentials, and do not answer."""
        sites, world = self.world.sites, self.world
        down = [cluster for cluster in CLUSTERS if sites[cluster].down and not sites[cluster].expired]
        return {
            (placement, one)
            for one in down
            for placement in PLACEMENTS
            if one in CANDIDATES[placement]
            and one in world.authorised(placement)
            and world.is_listed(placement, one)
        }

    # -- what is said

    def _compare(self, due: set[tuple[str, str, str]]) -> None:
        view = view_of(self.world)
        statuses = {check_status.name: check_status for check_status in check_statuses(view)}
        samples = self._samples()
        doubts: set[tuple[str, str]] = set()
        for placement in PLACEMENTS:
            check = checks_of(placement)[1]
            status = statuses[check]
            draining = {cluster for what, of_, cluster in due if (what, of_) == ("draining", placement)}
            lost = {cluster for what, of_, cluster in due if (what, of_) == ("disconnected", placement)}
            for problem in self._drain_problems(check, status, samples, draining):
                self.rules.found("drains", f"{placement}: {problem}")
            for problem in self._lost_problems(placement, check, status, samples, lost):
                self.rules.found("lost-clusters", f"{placement}: {problem}")
            doubts |= {("counts", f"{placement}: {one}") for one in self._counts(check, status, samples)}
            doubts |= {
                ("explained", f"{placement}: {one}") for one in self._explained(view, placement, status)
            }
        for rule, problem in sorted(doubts & self._doubts):
            self.rules.found(rule, problem)
        self._doubts = doubts
        if doubts:
            self._asked = self.world.now - CHECK_AGAIN_SECONDS + DOUBT_SECONDS

    def _drain_problems(
        self, check: str, status: CheckStatus, samples: Mapping[Any, float], draining: set[str]
    ) -> Iterator[str]:
        if not draining:
            return
        rows = {row.name for row in status.clusters if row.state == "draining"}
        names = ", ".join(sorted(draining))
        if not draining <= rows:
            yield f"{names} leave with jobs, and status says draining of {sorted(rows)}"
        drains = "; draining: " in status.message or status.message.startswith("draining: ")
        if not drains or not all(one in status.message for one in draining):
            yield f"{names} leave with jobs, and the condition says {status.message}"
        number = samples.get(("placement_ac_clusters", check, "draining"), 0)
        if number < len(draining):
            yield f"{names} leave with jobs, and the metric counts {number:g} draining"
        if (DRAIN_START, check) not in samples:
            yield f"{names} leave with jobs, and there is no {DRAIN_START}"
        yield from self._drain_begins(check, status, draining)

    def _drain_begins(self, check: str, status: CheckStatus, draining: set[str]) -> Iterator[str]:
        """Yield the clusters of which nothing says since when they drain."""
        since = {row.name: row.draining_since for row in status.clusters}
        for cluster in sorted(draining):
            began, recorded = self.rules.left[self._placement(check), cluster], since.get(cluster)
            if recorded is None:
                yield f"{cluster} leaves with jobs, and status does not say since when"
            else:  # it may have drained before, for another reason
                began = min(began, recorded.timestamp() - START)
            if not self._has_event(check, cluster, began, CLUSTER_DRAINING):
                yield f"{cluster} leaves with jobs, and no event {CLUSTER_DRAINING} says so"

    def _lost_problems(
        self, placement: str, check: str, status: CheckStatus, samples: Mapping[Any, float], lost: set[str]
    ) -> Iterator[str]:
        rows = {row.name: row for row in status.clusters}
        for cluster in sorted(lost):
            where = f"{cluster} is listed and has not been connected for {REPORTED_SECONDS:g} s, and"
            since = self.since["disconnected", placement, cluster]
            if rows[cluster].connected == "True":
                yield f"{where} status says that it is"
            if cluster not in status.message:
                yield f"{where} the condition says {status.message}"
            if not self._has_event(check, cluster, since - REPEAT_SECONDS):  # the same one is not repeated
                yield f"{where} no event says so"
            if not any(cluster in labels for labels in samples):
                yield f"{where} no metric names it"

    def _counts(self, check: str, status: CheckStatus, samples: Mapping[Any, float]) -> Iterator[str]:
        """Compare the numbers, where nothing has changed just now."""
        if (
            any(self._age(when) < REPORTED_SECONDS for (_, _, _), when in self.since.items())
            or self._is_busy()
        ):
            return
        for state in ("draining", "standby"):
            rows = [row.name for row in status.clusters if row.state == state]
            number = samples.get(("placement_ac_clusters", check, state), 0)
            if number != len(rows):
                yield f"status says {state} of {rows}, and the metric counts {number:g}"
            word = {"draining": "draining: ", "standby": "standing by: "}[state]
            for row in rows:
                if word not in status.message or row not in status.message.split(word)[-1]:
                    yield f"status says {state} of {row}, and the condition says {status.message}"

    def _is_busy(self) -> bool:
        """Whether a cluster has left or come back lately."""
        lately = [when for when in self.rules.left.values() if self._age(when) < REPORTED_SECONDS]
        return bool(lately) or any(
            site.down or self._age(site.down_until) < REPORTED_SECONDS
            for site in self.world.sites.values()
            if site.down_until
        )

    def _explained(self, view: HubView, placement: str, status: CheckStatus) -> Iterator[str]:
        """Compare what is explained of the first job that waits with the rows of the status."""
        waiting = [
            seen.raw
            for name, seen in self.rules.jobs.items()
            if self.world.jobs[name].placement == placement and of.nominated_of(seen.raw)
        ]
        if not waiting:
            return
        job = workload_with_job(waiting[0])
        (choice,) = choices(view, job)
        rows = {row.cluster_object: row for row in status.clusters}
        for cluster in choice.clusters:
            row = rows.get(cluster.cluster_object)
            expected = row is not None and row.state == "listed" and row.connected == "True"
            if (cluster.state == "eligible") != expected:
                state = f"{row.state}, connected {row.connected}" if row else "not there"
                yield f"explain says {cluster.state} of {cluster.cluster}, and status {state}"
            if cluster.nominated != (cluster.cluster_object in job.nominated):
                yield f"explain does not say that {job.meta.name} is nominated to {cluster.cluster}"

    # -- reading

    def _placement(self, check: str) -> str:
        return next(placement for placement in PLACEMENTS if checks_of(placement)[1] == check)

    def _has_event(self, check: str, cluster: str, since: float, reason: str = "") -> bool:
        """Whether an event names the cluster, or the controller has begun since: it repeats none."""
        since -= REPORTED_SECONDS
        return self.world.controller_began > since or any(
            event["involvedObject"]["name"] == check
            and cluster in event["message"]
            and reason in ("", event["reason"])
            and when - START >= since
            for when, event in reversed(self.world.hub.events)
        )

    def _samples(self) -> dict[tuple[str, ...], float]:
        """Return the gauges: (name, values of the labels …) → value."""
        metrics = self.world.controller.metrics
        assert metrics is not None
        return {
            (sample.name, *sample.labels.values()): sample.value
            for metric in metrics.collect()
            for sample in metric.samples
        }


def view_of(world: World) -> HubView:
    """Return the hub as the commands read it."""
    objects: dict[Any, list[Any]] = {kind: [] for kind in WATCHED_KINDS}
    for (kind, _, _), raw in world.hub.objects.items():
        objects.setdefault(kind, []).append(raw)
    objects[constants.WORKLOAD] = world.kueue.workloads()
    objects[constants.EVENT] = list(world.hub.kept_events.values())
    served = {kind: kind.at(kind.versions[0]) for kind in WATCHED_KINDS}
    dump = Dump({kind: tuple(found) for kind, found in objects.items()}, served, live=True)
    return HubView(dump, world.settings, datetime.fromtimestamp(world.kueue.now, UTC))
