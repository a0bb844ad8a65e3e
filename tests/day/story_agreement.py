"""
`job` shows of a job where it is, or where it waits and for what, as the workers have it.

Once a virtual minute, of the job that has waited longest and the one that has run longest. A difference is
reported when it has lasted for LASTS_SECONDS.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.story.model import JobLine, JobState, JobStory, StoryStep
from kubectl_placement.story.tell import tell_story
from placement_ac.core.api.constants import KUEUE_ADMISSION, WORKLOAD, Kind
from placement_lab.standins.multikueue import objects as of
from tests.day.job_agreement import LASTS_SECONDS
from tests.day.rules import LOST_SECONDS, Rules, Seen
from tests.day.trace import CLUSTERS
from tests.support.virtual.clock import START

_CLUSTER: Final = re.compile("|".join(CLUSTERS))
PLACED: Final = "Placed"
NOMINATED: Final = "Nominated"


@dataclass
class StoryAgreement:
    """Reports to `rules` which stories tell what is not so."""

    rules: Rules
    _since: dict[str, float] = field(default_factory=dict)
    """Problem → since when."""
    _nominated: dict[str, float] = field(default_factory=dict)
    """Job → when its nominations changed last."""

    def __post_init__(self) -> None:
        self.world = self.rules.world
        self._before: dict[str, Any] = {}
        self.world.hub.listeners.append(self._witness)

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        """Note who is nominated."""
        if kind != WORKLOAD:
            return
        name = raw["metadata"]["name"].removeprefix("job-")
        if what == "remove" or of.is_condition_true(raw, of.FINISHED):
            self._before.pop(name, None)
            self._nominated.pop(name, None)
            return
        before = self._before.get(name, {})
        self._before[name] = raw
        if of.nominated_of(raw) != of.nominated_of(before):
            self._nominated[name] = self.world.kueue.now

    def compare(self, view: HubView, lines: Mapping[str, JobLine]) -> None:
        """Compare the story of each of these jobs with its line in the list, and with the workers."""
        now, problems = self.world.now, list[str]()
        for name in filter(lines.__contains__, self._chosen()):
            line = lines[name]
            raw = view.dump.find(WORKLOAD, line.workload, line.namespace)
            assert raw is not None
            story = tell_story(view, self._with_time(name, raw))
            if story.job != line:
                problems.append(f"job and jobs differ about {name}")
            problems += self._problems(name, self.rules.jobs[name], story)
        self._since = {problem: self._since.get(problem, now) for problem in problems}
        for problem, since in self._since.items():
            if now - since >= LASTS_SECONDS:
                self.rules.found("job", problem)

    def _with_time(self, name: str, raw: Any) -> Any:
        """Return a Workload with the time of its nomination, as an API server writes it."""
        when = self._nominated.get(name)
        fields = {"f:status": {"f:nominatedClusterNames": {}}}
        entry = {
            "manager": KUEUE_ADMISSION,
            "operation": "Apply",
            "subresource": "status",
            "fieldsV1": fields,
        }
        entries = [entry | {"time": of.format_time(when)}] if when else []
        return raw | {"metadata": raw["metadata"] | {"managedFields": entries}}

    def _chosen(self) -> list[str]:
        jobs = self.rules.jobs
        waits = next((name for name, seen in jobs.items() if not of.cluster_of(seen.raw)), None)
        runs = next((name for name, seen in jobs.items() if of.cluster_of(seen.raw)), None)
        return [name for name in (waits, runs) if name]

    def _problems(self, name: str, seen: Seen, story: JobStory) -> Iterator[str]:
        if name in self.rules.kueue_lost or seen.hidden:
            return  # its cluster was away: Kueue runs it elsewhere, too
        if of.cluster_of(seen.raw):
            yield from self._of_running(name, story)
        else:
            yield from self._of_waiting(name, seen, story)

    # -- where it runs

    def _of_running(self, name: str, story: JobStory) -> Iterator[str]:
        runs = self.world.kueue.starts.get(name, ())
        where = {one for one in self.world.kueue.running(name) if not self.world.sites[one].down}
        if not runs or not where:
            return
        listed = {story.job.cluster} if story.job.state == JobState.RUNNING else set()
        if listed != where:
            yield f"{name} runs on {sorted(where)}, and job says {story.job.state} {story.job.cluster}"
        placed = [step for step in story.steps if step.what == PLACED]
        if [step.detail for step in placed] != [f"on {one}" for one in sorted(where)]:
            yield f"{name} runs on {sorted(where)}, and job shows {[step.detail for step in placed]}"
        began, cluster = runs[-1][0], self.world.cluster_of(runs[-1][1])
        is_late = began < START + self.world.sites[cluster].down_until  # the hub heard of it when it was back
        if is_late or self.rules.is_fresh(cluster, LASTS_SECONDS):
            return
        if not any(step.time and abs(step.time.timestamp() - began) <= LOST_SECONDS for step in placed):
            yield f"{name} began at {began - START:.0f}, and job says {[step.time for step in placed]}"

    # -- where it waits, and for what

    def _of_waiting(self, name: str, seen: Seen, story: JobStory) -> Iterator[str]:
        if story.job.state != JobState.WAITING:
            yield f"{name} waits, and job says {story.job.state}"
        if any(step.what == PLACED for step in story.steps):
            yield f"{name} waits, and job shows that it is placed"
        is_evicted = of.is_condition_true(seen.raw, of.EVICTED)
        if is_evicted or not of.is_condition_true(seen.raw, of.QUOTA_RESERVED):
            return
        nominated = {self.world.cluster_of(worker) for worker in of.nominated_of(seen.raw)}
        detail = next((step.detail for step in story.steps if _is_nominated_now(step)), "")
        shown = set(_CLUSTER.findall(detail))
        if not shown <= nominated or (shown != nominated and not detail.endswith(" more")):
            yield f"{name} is nominated to {sorted(nominated)}, and job shows {sorted(shown)}"
        up = {one for one in nominated if not self.rules.is_fresh(one, LASTS_SECONDS)}
        copies = {one for one in self.world.kueue.has_copy(name) if not self.world.sites[one].down}
        if self.world.settings.dispatcher and not up <= copies:
            yield f"{name} has copies on {sorted(copies)}, and is nominated to {sorted(nominated)}"
        if not story.job.waits_for:
            yield f"{name} waits, and job does not say for what"
        named = set(_CLUSTER.findall(story.job.waits_for))
        says_where = story.job.waits_for.startswith("quota on ") and nominated == up
        if says_where and not named <= nominated:
            yield f"{name} is nominated to {sorted(nominated)}, and job says: {story.job.waits_for}"
        if story.position is None or not 0 < story.position.place <= story.position.jobs:
            yield f"{name} waits, and job says that it is at {story.position} of its queue"
        elif story.position.jobs != (waiting := self._waiting(name)):
            yield f"{waiting} jobs wait in the queue of {name}, and job says {story.position.jobs}"

    def _waiting(self, name: str) -> int:
        """Return how many jobs wait in the LocalQueue of a job."""
        queue, jobs = self.world.jobs[name].queue, self.world.jobs
        return sum(
            jobs[other].queue == queue and not of.cluster_of(seen.raw)
            for other, seen in self.rules.jobs.items()
        )


def _is_nominated_now(step: StoryStep) -> bool:
    """Whether a step has the nominations of now; events tell of earlier ones."""
    return step.what == NOMINATED and step.detail.startswith("to ")
