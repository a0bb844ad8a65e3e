"""Whatever the clusters and jobs: nominations keep to what is authorised and wanted, and do not flap."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from placement_ac.core.api.constants import (
    ANNOTATION_ANTI_AFFINITY,
    ANNOTATION_CLUSTER_NAMES,
    ANNOTATION_CLUSTER_SELECTOR,
    ANNOTATION_GROUP,
    ANNOTATION_PREFERRED_CLUSTERS,
)
from placement_ac.core.dispatch.profiles import PROFILES, RANKED
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere
from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.plan.fact_questions import FACTS_AFTER_CHANGE_SECONDS, FACTS_AGAIN_SECONDS
from placement_ac.core.plan.plan import plan
from tests.support.builders import inputs, managed_cluster
from tests.support.decided import decided, nominated, ranked
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues, raw_job

CLUSTERS: Final = "abcde"
GPUS: Final = ("t4", "h100")
APART: Final = "app=x"


@dataclass(frozen=True)
class Wanted:
    """A job, and on which clusters it may run as far as its own wishes go."""

    names: str
    gpu: str
    apart: bool
    group: str
    preferred: str
    on: str
    """The cluster that runs it; "": none."""
    waits: str
    """The clusters to which it is nominated."""
    size: int
    """How many GPUs it asks for."""
    came: bool = True
    """Whether it came to its clusters since their workers answered."""

    def raw(self, name: str) -> Any:
        wishes = {
            ANNOTATION_CLUSTER_NAMES: ",".join(self.names),
            ANNOTATION_CLUSTER_SELECTOR: f"gpu={self.gpu}" if self.gpu else "",
            ANNOTATION_ANTI_AFFINITY: APART if self.apart else "",
            ANNOTATION_GROUP: self.group,
            ANNOTATION_PREFERRED_CLUSTERS: f"10:gpu={self.preferred}" if self.preferred else "",
        }
        return raw_job(
            name,
            annotations={key: value for key, value in wishes.items() if value},
            labels={"app": "x"} if self.apart else {},
            pods=gpu_pods(self.size) if self.size else (),
            cluster=f"p-{self.on}" if self.on else "",
            nominated=[f"p-{wait}" for wait in self.waits] if not self.on else [],
            check="Ready",
            mk="Ready" if self.on else "Pending",
        )

    def takes(self, cluster: str, gpus: Sequence[str], quota: Sequence[int | None]) -> bool:
        is_named = not self.names or cluster in self.names
        most = quota[CLUSTERS.index(cluster)]
        has_room = most is None or self.size <= most
        return is_named and has_room and (not self.gpu or gpus[CLUSTERS.index(cluster)] == self.gpu)


some = st.lists(st.sampled_from(CLUSTERS), unique=True).map("".join)
wanted = st.builds(
    Wanted,
    names=st.one_of(st.just(""), some),
    gpu=st.sampled_from(("", *GPUS)),
    apart=st.booleans(),
    group=st.sampled_from(("", "g")),
    preferred=st.sampled_from(("", *GPUS)),
    on=st.sampled_from(("", "", "", *CLUSTERS)),
    waits=st.one_of(st.just(""), some),
    size=st.sampled_from((0, 0, 1, 8, 16)),
)


@dataclass(frozen=True)
class Scene:
    """The clusters in OCM's order, those listed and connected, their GPUs, and the jobs."""

    selected: str
    listed: str
    connected: str
    gpus: tuple[str, ...]
    jobs: tuple[Wanted, ...]
    profile: str
    step_size: int
    quota: tuple[int | None, ...]
    """The GPUs of each cluster's ClusterQueue; None: it is not known."""
    used: tuple[int, ...] = (0,) * len(CLUSTERS)
    """How many of them are used, by the answer of its worker."""
    ages: tuple[float, ...] = (0.0,) * len(CLUSTERS)
    """Those of the answers."""

    def plan(self, waits: dict[str, tuple[str, ...]] | None = None, awaited: float = 0.0) -> Plan:
        """Return the plan; `waits`: the nominations of jobs, if they are not those of the scene.

        `awaited`: how long answers have been awaited.
        """
        managed = [
            managed_cluster(name, labels={"gpu": gpu}) for name, gpu in zip(CLUSTERS, self.gpus, strict=True)
        ]
        off = {*self.listed} - {*self.connected}
        hub = decided(ranked(self.selected), self.listed, credentials=CLUSTERS, fleet=managed, off=off)
        jobs = [job.raw(f"j{n}") for n, job in enumerate(self.jobs)]
        for raw in jobs:
            if waits and raw["metadata"]["name"] in waits:
                raw["status"]["nominatedClusterNames"] = list(waits[raw["metadata"]["name"]])
        policy = PlacementPolicy(
            dispatcher=True,
            dispatch_profile=self.profile,
            step_size=self.step_size,
            loss_grace=0.0,
        )
        ages = {Since(SinceKind.FACTS_AWAITED, f"p-{name}"): awaited for name in CLUSTERS}
        seen = inputs(hub, *jobs, policy=policy, ages=ages if awaited else None)
        facts = {f"p-{name}": self.answer(name) for name in CLUSTERS}
        return plan(replace(seen, fleet=replace(seen.fleet, queue_facts=facts)))

    def answer(self, cluster: str) -> WorkerFacts:
        at = CLUSTERS.index(cluster)
        if (most := self.quota[at]) is None:
            return WorkerFacts(problem="forbidden")
        before = [(f"Workload/j{n}", job) for n, job in enumerate(self.jobs) if not job.came]
        running = frozenset(uid for uid, job in before if job.on == cluster)
        waiting = frozenset(uid for uid, job in before if not job.on and cluster in job.waits)
        found = queues((GPU, "f", most, self.used[at]), pending=len(waiting), reserving=len(running))
        return WorkerFacts(found, age=self.ages[at], then=WorkloadsThere(running, waiting))

    def known_room(self) -> dict[str, int]:
        """Return the GPUs that are free where the worker has answered lately, less what came since."""
        return {
            name: most
            - used
            - sum(job.size for job in self.jobs if job.came and name in (job.on or job.waits))
            for name, most, used, age in zip(CLUSTERS, self.quota, self.used, self.ages, strict=True)
            if most is not None and age <= FACTS_AGAIN_SECONDS
        }

    @property
    def eligible(self) -> set[str]:
        return set(self.selected) & set(self.listed) & set(self.connected)


gpus_of_all = st.tuples(*[st.sampled_from(GPUS)] * len(CLUSTERS))
quotas = st.tuples(*[st.sampled_from((None, 0, 8, 16))] * len(CLUSTERS))
scenes = st.builds(
    Scene,
    selected=some,
    listed=some.filter(bool),
    connected=some,
    gpus=gpus_of_all,
    jobs=st.lists(wanted, max_size=6).map(tuple),
    profile=st.sampled_from(tuple(PROFILES)),
    step_size=st.integers(1, 3),
    quota=quotas,
)
often: Callable[[Any], Any] = settings(max_examples=40, derandomize=True)


def new_of(scene: Scene, name: str, names: Sequence[str]) -> list[str]:
    """Return the clusters that a job is nominated to anew."""
    before = scene.jobs[int(name[1:])].waits
    return [one.removeprefix("p-") for one in names if one.removeprefix("p-") not in before]


@often
@given(scene=scenes)
def test_nothing_is_nominated_that_is_refused_or_not_authorised(scene: Scene) -> None:
    for name, names in nominated(scene.plan()).items():
        job, new = scene.jobs[int(name[1:])], new_of(scene, name, names)
        assert set(new) <= scene.eligible
        assert all(job.takes(cluster, scene.gpus, scene.quota) for cluster in new)
        assert len(new) <= scene.step_size


@often
@given(scene=scenes)
def test_two_that_must_be_apart_are_never_brought_together(scene: Scene) -> None:
    never_together(scene, [number for number, job in enumerate(scene.jobs) if job.apart])


def never_together(scene: Scene, numbers: Sequence[int]) -> None:
    """None of these jobs comes to a cluster where another one of them is."""
    written = nominated(scene.plan())
    places: dict[str, set[str]] = {}
    for number in numbers:
        before = scene.jobs[number].on or scene.jobs[number].waits
        after = [one.removeprefix("p-") for one in written.get(f"j{number}", [f"p-{one}" for one in before])]
        for cluster in after:
            places.setdefault(cluster, set()).add(f"j{number}")
    for cluster, names in places.items():
        came = [n for n in names if n in written and cluster in new_of(scene, n, written[n])]
        assert not came or len(names) == 1, f"{came} to {cluster}, where {names} are"


@often
@given(scene=scenes)
def test_if_a_cluster_fits_one_is_nominated_and_if_none_does_the_job_is_reported(scene: Scene) -> None:
    answer = scene.plan()
    written, unfit = nominated(answer), {workload.meta.name for workload, _ in answer.unfit}
    for number, job in enumerate(scene.jobs):
        name = f"j{number}"
        if job.on or set(job.waits) & set(scene.listed) or job.apart:
            continue
        if any(job.takes(cluster, scene.gpus, scene.quota) for cluster in scene.eligible):
            assert written[name]
            assert name not in unfit
        elif scene.eligible == set(scene.selected) and scene.selected:
            assert name in unfit


@often
@given(scene=scenes, gpus=gpus_of_all, order=st.permutations(CLUSTERS), quota=quotas)
def test_nominations_do_not_flap(
    scene: Scene, gpus: tuple[str, ...], order: Sequence[str], quota: tuple[int | None, ...]
) -> None:
    """New labels, quota and order of OCM take no nomination back: only a cluster that leaves does."""
    before = {
        f"j{n}": tuple(f"p-{wait}" for wait in job.waits) for n, job in enumerate(scene.jobs) if not job.on
    }
    waits = before | nominated(scene.plan())
    selected = "".join(one for one in order if one in scene.selected)
    later = replace(scene, selected=selected, gpus=gpus, quota=quota)
    kept = {
        name: tuple(one for one in names if one.removeprefix("p-") in scene.listed)
        for name, names in waits.items()
    }
    for name, names in nominated(later.plan(waits)).items():
        assert set(names) >= set(kept[name])
        assert not kept[name] or names == kept[name]


mostly_waiting = st.builds(
    Wanted,
    names=st.one_of(st.just(""), st.just(""), some),
    gpu=st.sampled_from(("", "", "t4")),
    apart=st.just(False),
    group=st.just(""),
    preferred=st.just(""),
    on=st.sampled_from(("", "", "", "", "a")),
    waits=st.sampled_from(("", *CLUSTERS)),
    size=st.sampled_from((1, 8, 8, 16)),
    came=st.booleans(),
)
answered = st.builds(
    Scene,
    selected=st.permutations(CLUSTERS).map("".join),
    listed=st.just(CLUSTERS),
    connected=st.sampled_from((CLUSTERS, "abd", "bde", "c")),
    gpus=gpus_of_all,
    jobs=st.lists(mostly_waiting, min_size=1, max_size=8).map(tuple),
    profile=st.just(RANKED),
    step_size=st.just(3),
    quota=quotas,
    used=st.tuples(*[st.sampled_from((0, 0, 8, 16))] * len(CLUSTERS)),
    ages=st.tuples(*[st.sampled_from((0.0, 0.5, 1.0, 15.0, 18.0))] * len(CLUSTERS)),
)


@settings(max_examples=200, derandomize=True)
@given(scene=answered)
def test_no_job_waits_a_second_beside_a_cluster_known_to_have_room(scene: Scene) -> None:
    """It is nominated to one at once, or within a second its worker is asked whether it has got quota."""
    answer = scene.plan(awaited=1.0)
    before, room = scene.known_room(), scene.known_room()
    went: set[str] = set()
    for workload, names in answer.nominations:  # in the order in which the plan decides
        name, size = workload.meta.name, scene.jobs[int(workload.meta.name[1:])].size
        for cluster in new_of(scene, name, names):
            if room.get(cluster, -1) >= size:
                went.add(name)
            room[cluster] = room.get(cluster, 0) - size
    for number, job in enumerate(scene.jobs):
        beside = [one for one in scene.eligible if job.takes(one, scene.gpus, scene.quota)]
        if job.on or not job.size or not any(room.get(one, -1) >= job.size for one in beside):
            continue
        there = set(job.waits) & scene.eligible
        waits_for_answer = job.came and any(
            scene.ages[CLUSTERS.index(one)] < FACTS_AFTER_CHANGE_SECONDS or f"p-{one}" in answer.ask_for_facts
            for one in there
        )
        is_there = any(before.get(one, -1) >= job.size for one in there)
        assert f"j{number}" in went or is_there or waits_for_answer
