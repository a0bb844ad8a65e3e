"""
`jobs` says of each job where it runs, or that it waits, as the workers and Kueue have it.

It is compared once a virtual minute; a difference is reported when it has lasted for LASTS_SECONDS.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubectl_placement.story.model import JobLine, JobState
from tests.day.rules import LOST_SECONDS, Rules

ASK_SECONDS: Final = 60.0
LASTS_SECONDS: Final = LOST_SECONDS + 2 * ASK_SECONDS
"""A job may start on a cluster, or end there, so long before the hub knows."""


@dataclass
class JobAgreement:
    """Reports to `rules` which jobs are missing from the list, or in it where they are not."""

    rules: Rules
    _since: dict[str, float] = field(default_factory=dict)
    """Problem → since when."""
    asked: float = 0.0

    def compare(self, lines: Mapping[str, JobLine]) -> None:
        """Compare the list with the workers; `lines`: by job."""
        now = self.rules.world.now
        self.asked = now
        self._since = {problem: self._since.get(problem, now) for problem in self._problems(lines)}
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
                reported = {line.cluster} if line.state == JobState.RUNNING else set()
                if where and reported != where:
                    yield f"{name} runs on {sorted(where)}, and jobs says {line.state} {line.cluster}"
                elif reported and not where and not any(one and world.sites[one].down for one in reported):
                    yield f"{name} runs nowhere, and jobs says that it runs on {line.cluster}"
                if line.state == JobState.WAITING and not line.waits_for:
                    yield f"{name} waits, and jobs does not say for what"
