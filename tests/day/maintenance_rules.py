"""
Rules about maintenance windows: no job that is too long, nothing left after a forced hour, a true `--status`.

They look at the jobs on the workers, not at how the controller decides.
"""

from typing import Final

from kubectl_placement.status.reboot import cluster_objects_of, reboot_answer
from placement_ac.core.api import decode
from placement_ac.core.inputs.state import WorkerCopies
from tests.day.agreement import view_of
from tests.day.rules import LEAVES_SECONDS, Rules
from tests.day.trace import CLUSTERS, NOTICE_SECONDS

LOOK_SECONDS: Final = 30.0
FORCED_SECONDS: Final = 300.0
"""From a forced hour to the end of the last job there: with the gate, it opens for a minute between tries."""


class MaintenanceRules:
    """Watches the clusters whose maintenance is announced; reports to `rules`."""

    def __init__(self, rules: Rules) -> None:
        self._rules, self._world = rules, rules.world
        self._promised: set[str] = set()
        """The clusters that can be rebooted, as `--status` has said."""
        self._world.kueue.on_start.append(self._started)
        self._world.kueue.later(LOOK_SECONDS, self._look)

    def _started(self, name: str, worker: str) -> None:
        world, cluster = self._world, self._world.cluster_of(worker)
        if cluster in self._promised and world.is_in_maintenance(cluster):  # else it has just ended
            self._rules.found("reboot", f"{name} starts on {cluster}, though it could be rebooted")
        window, job = world.sites[cluster].window, world.jobs[name]
        if window is None or not world.settings.dispatcher or self._rules.is_fresh(cluster, LEAVES_SECONDS):
            return
        announced = world.now - (window[0] - NOTICE_SECONDS)
        if announced > LEAVES_SECONDS and job.limit and world.is_too_long(job, cluster, LEAVES_SECONDS):
            left = (window[0] - world.now) / 60
            message = f"{name} may run for {job.limit / 60:.1f} min, and starts on {cluster}"
            self._rules.found("too-long", f"{message} {left:.1f} min before its maintenance")

    def _look(self) -> None:
        world = self._world
        world.kueue.later(LOOK_SECONDS, self._look)
        for cluster in CLUSTERS:
            if not world.is_in_maintenance(cluster):
                self._promised.discard(cluster)
                continue
            self._judge_force(cluster)
            self._ask(cluster)

    def _judge_force(self, cluster: str) -> None:
        window = self._world.sites[cluster].window
        if not (window and window[1]) or self._world.now - window[0] < FORCED_SECONDS:
            return
        if (jobs := self._there(cluster)) and not self._rules.is_fresh(cluster, FORCED_SECONDS):
            minutes = (self._world.now - window[0]) / 60
            self._rules.found(
                "forced", f"{', '.join(jobs)} run on {cluster}, {minutes:.1f} min after the hour"
            )

    def _there(self, cluster: str) -> list[str]:
        """Return the jobs that run on a cluster."""
        kueue = self._world.kueue
        return sorted(name for name in kueue.workers[cluster].jobs if cluster in kueue.running(name))

    def _ask(self, cluster: str) -> None:
        """Compare what `--status` says with what is there."""
        view, kueue = view_of(self._world), self._world.kueue
        reports = [self._copies(name) for name in cluster_objects_of(view, cluster)]
        answer, jobs = reboot_answer(view, cluster, reports), self._there(cluster)
        (self._promised.add if answer.reboot else self._promised.discard)(cluster)
        if answer.reboot and jobs:
            self._rules.found("reboot", f"{', '.join(jobs)} run on {cluster}, and --status says yes")
        seen = {job.name.removeprefix("job-") for job in answer.jobs}
        if kueue.workers[cluster].reachable and not seen.issuperset(jobs):
            self._rules.found(
                "reboot", f"{', '.join(jobs)} run on {cluster}, and --status has {sorted(seen)}"
            )

    def _copies(self, name: str) -> WorkerCopies:
        """Ask the worker of a MultiKueueCluster at once."""
        if not self._world.kueue.workers[name].reachable:
            return WorkerCopies(problem="it does not answer")
        copies = map(decode.workload, self._world.kueue.copies(name))
        return WorkerCopies({one.meta.id: one.has_quota and not one.finished for one in copies})
