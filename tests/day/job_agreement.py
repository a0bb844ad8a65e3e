"""
`jobs` and `job` say of each job where it runs, or that it waits, as the workers and Kueue have it.

They are compared once a virtual minute; a difference is reported when it has lasted for LASTS_SECONDS.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.story.lines import job_lines
from kubectl_placement.story.model import JobLine, JobState
from kubectl_placement.story.tell import tell_story
from placement_ac.core.api.constants import WORKLOAD
from placement_lab.standins.multikueue import objects as of
from tests.day.rules import LOST_SECONDS, Rules

ASK_SECONDS: Final = 60.0
LASTS_SECONDS: Final = LOST_SECONDS + 2 * ASK_SECONDS
"""A job may start on a cluster, or end there, so long before the hub knows."""


@dataclass
class JobAgreement:
    """Reports to `rules` which jobs are missing from the list, or are said to be where they are not."""

    rules: Rules
    _since: dict[str, float] = field(default_factory=dict)
    """Problem → since when."""
    asked: float = 0.0

    def compare(self, view: HubView) -> None:
        """Compare the list, and the story of one job that runs and of one that waits."""
        now = self.rules.world.now
        self.asked = now
        lines = {line.workload.removeprefix("job-"): line for line in job_lines(view)}
        problems = [*self._problems(lines), *_stories(view, lines)]
        self._since = {problem: self._since.get(problem, now) for problem in problems}
        for problem, since in self._since.items():
            if now - since >= LASTS_SECONDS:
                self.rules.found("jobs", problem)

    def _problems(self, lines: Mapping[str, JobLine]) -> Iterator[str]:
        world = self.rules.world
        for name, seen in self.rules.jobs.items():
            line = lines.get(name)
            if line is None:
                yield f"{name} is not in the list of jobs"
            elif name in self.rules.kueue_lost or seen.hidden:
                continue  # its cluster was away: Kueue runs it elsewhere, too
            else:
                where = {one for one in world.kueue.running(name) if not world.sites[one].down}
                said = {line.cluster} if line.state == JobState.RUNNING else set()
                if where and said != where:
                    yield f"{name} runs on {sorted(where)}, and jobs says {line.state} {line.cluster}"
                elif said and not where and not any(one and world.sites[one].down for one in said):
                    yield f"{name} runs nowhere, and jobs says that it runs on {line.cluster}"
                if line.state == JobState.WAITING and not line.waits_for:
                    yield f"{name} waits, and jobs does not say for what"


def _stories(view: HubView, lines: Mapping[str, JobLine]) -> Iterator[str]:
    """Yield how the story of the first job in each state differs from its line, or has no steps."""
    first = {line.state: line for line in reversed(lines.values())}
    for line in first.values():
        raw = view.dump.find(WORKLOAD, line.workload, line.namespace)
        assert raw is not None
        story = tell_story(view, raw)
        if story.job != line:
            yield f"job says {story.job.state} of {line.workload}, and jobs {line.state}"
        placed = any(step.what == "Placed" for step in story.steps)
        if placed != bool(of.cluster_of(raw)):
            yield f"the story of {line.workload} {'has' if placed else 'lacks'} the step Placed"
