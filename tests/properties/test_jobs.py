"""
Whatever happens, no job runs twice and none is sent away: the whole controller against MultiKueue.

No worker removes a finished Job here before the hub has seen its end: that one Kueue runs again, and no
controller of a list can help it (docs/limits.md; `test_a_finished_job_that_its_worker_removes_runs_again`).

The real queue, reconciler and actor play on the virtual clock of `tests.support.virtual_kueue`. Run it long
by hand: `JOBS_EXAMPLES=2000 pytest tests/properties/test_jobs.py --timeout 0`.
"""

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from placement_ac.controller import reconcile
from placement_ac.core.api.constants import (
    ANNOTATION_ANTI_AFFINITY,
    ANNOTATION_CLUSTER_NAMES,
    ANNOTATION_CLUSTER_SELECTOR,
    ANNOTATION_GROUP,
    ANNOTATION_PREFERRED_CLUSTERS,
    DRAIN,
    IMMEDIATE,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    PENDING,
    PER_PLACEMENT,
    READY,
    RETRY,
    SHARED,
    WORKLOAD,
    Kind,
    RemovalPolicy,
)
from placement_ac.core.dispatch.profiles import PROFILES
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.state import CheckStateUpdate, PlacementPolicy, Plan, Snapshot
from placement_ac.core.plan import targets
from placement_ac.core.plan.plan import plan
from placement_ac.core.selection.renaming import Renaming
from placement_lab.standins.multikueue import (
    ALL_AT_ONCE,
    INCREMENTAL,
    NEWEST_PACE,
    PACES,
    KueueSettings,
    Pace,
)
from placement_lab.standins.multikueue import objects as of
from tests.support.virtual_controller import Odds, VirtualController, VirtualHub, object_of, play
from tests.support.virtual_kueue import CHECK, OURS, Delays, VirtualKueue

pytestmark = pytest.mark.long

EXAMPLES: Final = int(os.environ.get("JOBS_EXAMPLES", "0"))
LONG: Final = {"max_examples": EXAMPLES} if EXAMPLES else {"max_examples": 30, "derandomize": True}

CLUSTERS: Final = "abcd"
SLOTS: Final = (2, 2, 1, 1)
MOST_JOBS: Final = 6
GATED: Final = (CHECK, OURS)
UNGATED: Final = (CHECK,)
PAUSES: Final = (
    *(0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.1, 2.0, 2.6, 4.0, 20.0, 310.0),
    *(57.5, 59.4, 60.0, 60.3, 61.0, 62.3, 63.1, 130.0),  # round about the grace of what waits
)
LOST: Final = (0.1, 2.0, 12.0, 70.0, 200.0, 600.0)
AWAY: Final = (0.1, 0.5, 3.0, 20.0)
JUST_SECONDS: Final = 0.2
"""From a write that evicts to the eviction."""
WISHES: Final[Sequence[dict[str, Any]]] = (
    {"annotations": {ANNOTATION_CLUSTER_NAMES: "b,p-c"}},
    {"annotations": {ANNOTATION_ANTI_AFFINITY: "app=x"}, "labels": {"app": "x"}},
    {"annotations": {ANNOTATION_ANTI_AFFINITY: "app=x"}, "labels": {"app": "x"}},
    {"annotations": {ANNOTATION_PREFERRED_CLUSTERS: "10:name in (c, d)", ANNOTATION_GROUP: "g"}},
    {"annotations": {ANNOTATION_GROUP: "g"}},
    {"annotations": {ANNOTATION_CLUSTER_SELECTOR: "name notin (a, b)"}},
)
"""The metadata of the Pod templates of the jobs, by number. The label `name` is the cluster's name."""
FORBIDDEN: Final = {"j0": "ad", "j5": "ab"}
"""Job → the clusters that its wishes forbid."""
LISTED_SECONDS: Final = 60.0
"""How long it takes at most until all selected clusters are listed."""
CALM_SECONDS: Final = 1200.0
END_SECONDS: Final = 3000.0


@dataclass(frozen=True)
class Step:
    """Something that happens; `one` and `two` say to whom and how. Then `pause` seconds pass."""

    what: str
    one: int
    two: int
    pause: float


@dataclass(frozen=True)
class Story:
    """A run: the same seed always gives the same story."""

    seed: int
    steps: tuple[Step, ...]
    dispatcher: str = ALL_AT_ONCE
    removal: RemovalPolicy = DRAIN
    nominates_admitted: bool = False
    loss_grace: float = 0.0
    unlist_after: float = 0.0
    settle: float = 0.0
    batch: float = 1.0
    """Seconds that Kueue needs to see what happens on a worker."""
    fails: float = 0.0
    late: float = 0.05
    left_behind: float = 1 / 8
    pace: Pace | None = None
    """How fast MultiKueue asks its workers; None: no limit."""
    checks: tuple[str, ...] = GATED
    profile: str = "ranked"
    """How our dispatcher scores clusters."""
    probe: bool = False
    """Whether clusters are probed before they are listed."""
    wishes: bool = False
    """Whether jobs say where they want to run; only our dispatcher reads that."""

    @property
    def policy(self) -> PlacementPolicy:
        return PlacementPolicy(
            removal=self.removal,
            waiting_grace=60.0,
            settle=self.settle,
            retention=60.0,
            loss_grace=self.loss_grace,
            dispatcher=self.dispatcher == OUR_CONTROLLER,
            unlist_after=self.unlist_after if self.dispatcher == OUR_CONTROLLER else 0.0,
            dispatch_profile=self.profile,
            step_size=1 if self.profile == "spread" else 3,
            probe=self.probe,
        )

    @property
    def odds(self) -> Odds:
        return Odds(random.Random(self.seed), self.fails, self.late)

    @property
    def kueue(self) -> KueueSettings:
        return KueueSettings(
            dispatcher=self.dispatcher,
            nominates_admitted=self.nominates_admitted,
            events_batch_seconds=self.batch,
            pace=self.pace or NEWEST_PACE,
        )


@dataclass
class Stage:
    """Where a story is played, and what is witnessed of it."""

    story: Story
    kueue: VirtualKueue
    hub: VirtualHub
    controller: VirtualController
    jobs: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    """Of each job that was placed and evicted: why."""
    excused: set[str] = field(default_factory=set)
    """Jobs that were evicted while Kueue lost sight of where they run: then it starts them twice itself."""
    unlisted: list[tuple[float, str]] = field(default_factory=list)
    """When which cluster was unlisted."""
    nominated: set[tuple[str, str]] = field(default_factory=set)
    """Each job and the clusters to which it was nominated at some time."""
    list_changes: int = 0
    _listed: tuple[str, ...] = ()
    _before: dict[str, Any] = field(default_factory=dict)
    _sent_back: dict[str, str] = field(default_factory=dict)
    """Of each job that we have just sent back: where it was placed then."""

    def witness(self, what: str, kind: Kind, raw: Any) -> None:
        if kind == MULTIKUEUE_CONFIG:
            listed = tuple(raw["spec"]["clusters"] if what == "put" else ())
            self.list_changes += listed != self._listed
            gone = [name for name in self._listed if name not in listed]
            self.unlisted += [(self.kueue.now, name) for name in gone]
            self._listed = listed
        elif kind == WORKLOAD:
            self._witness_job(raw)

    def _witness_job(self, raw: Any) -> None:
        name = raw["metadata"]["name"].removeprefix("job-")
        before = self._before.get(name, raw)
        if _is_sent_back(raw) and not _is_sent_back(before):
            self._sent_back[name] = of.cluster_of(raw)
        if of.is_condition_true(raw, of.EVICTED) and not of.is_condition_true(before, of.EVICTED):
            # Kueue may yet record the placement of one that was sent back while it waited: that is none.
            where = self._sent_back.pop(name, of.cluster_of(before))
            if where:
                self._excuse(name, where)
                self.evicted.append(f"{name} from {where}: {of.condition_field(raw, of.EVICTED)}")
        names = raw.get("status", {}).get("nominatedClusterNames") or ()
        self.nominated.update((name, one.removeprefix("p-")) for one in names)
        self._before[name] = raw

    def _excuse(self, name: str, worker: str) -> None:
        """Let pass what nobody can know in time: the cluster was lost just before, or is just after."""
        lost = self.kueue.workers[worker].lost_since
        if lost is not None and self.kueue.now - lost < JUST_SECONDS + self.story.late:
            self.excused.add(name)

    def job(self, number: int) -> str | None:
        """Return one of the jobs that are neither finished nor evicted just now."""
        alive = [name for name in self.jobs if not self.finished(name)]
        return alive[number % len(alive)] if alive else None

    def finished(self, name: str) -> bool:
        return self.kueue.holds(name, of.FINISHED)

    def runs_on(self) -> set[str]:
        """Return the clusters on which any job runs, or that the hub names for one that has not finished.

        If two clusters admit in the same second and one of them is lost, Kueue may name the wrong one.
        """
        named = {self.kueue.first_name(self.kueue.placed(n)) for n in self.jobs if not self.finished(n)}
        running = {where for name in self.jobs for where in self.kueue.running(name)}
        return {where.removeprefix("p-") for where in running | named}

    @property
    def all_reachable(self) -> bool:
        return all(worker.reachable for worker in self.kueue.workers.values())

    def is_calm(self, worker: str) -> bool:
        """Whether the hub knows all that goes on there: Kueue itself doubles what it loses sight of."""
        found = self.kueue.workers[worker]
        busy = {*found.jobs, *self.kueue.squatters(worker)}
        return all(self.kueue.first_name(self.kueue.placed(name)) == worker for name in busy)


def _is_sent_back(raw: Any) -> bool:
    return (of.check_of(raw, OURS) or {}).get("state") == RETRY


# -- what may happen


def select(at: Stage, which: int, how: int) -> None:
    clusters = [cluster for bit, cluster in enumerate(CLUSTERS) if which >> bit & 1]
    scored = [(cluster, 10 * (how * 7 + bit) % 50) for bit, cluster in enumerate(clusters)]
    at.hub.select(scored if how & 2 else clusters, edited=bool(how & 1))


def submit(at: Stage, _: int, __: int) -> None:
    if len(at.jobs) < MOST_JOBS:
        number = len(at.jobs)
        at.jobs.append(f"j{number}")
        at.kueue.submit(at.jobs[-1], at.story.checks, WISHES[number] if at.story.wishes else None)


def finish(at: Stage, which: int, _: int) -> None:
    if name := at.job(which):
        at.kueue.finish(name)


def hold(at: Stage, which: int, _: int) -> None:
    at.kueue.hold(*_workers(which))


def release(at: Stage, which: int, _: int) -> None:
    at.kueue.release(*_workers(which))


def evict(at: Stage, which: int, _: int) -> None:
    """Let the hub's Kueue preempt a job; while a cluster is lost, that alone would double it."""
    if at.all_reachable and (name := at.job(which)):
        at.kueue.evict(name)


def preempt(at: Stage, which: int, _: int) -> None:
    name = at.job(which)
    placed = at.kueue.first_name(at.kueue.placed(name)) if name else ""
    if name and at.all_reachable and placed in at.kueue.running(name):
        at.kueue.preempt(name, placed)


def lose(at: Stage, which: int, how: int) -> None:
    """Lose a cluster for less than Kueue's patience; `how`: whether OCM notices, and for how long."""
    worker, cluster = _worker(which), CLUSTERS[which % len(CLUSTERS)]
    if at.all_reachable and at.is_calm(worker):
        at.kueue.lose(worker)
        at.hub.taint(cluster, bool(how & 1))
        at.kueue.later(LOST[how % len(LOST)], lambda: find(at, which, 0))


def find(at: Stage, which: int, _: int) -> None:
    worker, cluster = _worker(which), CLUSTERS[which % len(CLUSTERS)]
    if not at.kueue.workers[worker].reachable:
        at.kueue.find(worker)
        at.kueue.later(1.0, lambda: at.hub.taint(cluster, False))


def crash(at: Stage, when: int, away: int) -> None:
    at.controller.crash(AWAY[away % len(AWAY)], when % 4)


def rename(at: Stage, _: int, away: int) -> None:
    """Restart the controller with the other setting of `cluster_names`."""
    at.hub.facts = replace(at.hub.facts, naming=PER_PLACEMENT if at.hub.facts.shared else SHARED)
    crash(at, 0, away)


def upgrade(at: Stage, which: int, away: int) -> None:
    """Upgrade the hub's Kueue: it needs a right that some workers lack, and the controller begins anew."""
    lacks = Fitness(problems=("grant update workloads/status.kueue.x-k8s.io on the worker",))
    at.hub.fitness = {cluster: lacks for bit, cluster in enumerate(CLUSTERS) if which >> bit & 1}
    crash(at, 0, away)


def score(at: Stage, which: int, value: int) -> None:
    at.hub.score(CLUSTERS[which % len(CLUSTERS)], value * 13)


def _workers(which: int) -> list[str]:
    """Return one of them, or all."""
    return [_worker(which)] if which < 10 else [_worker(each) for each in range(len(CLUSTERS))]


def _worker(which: int) -> str:
    return object_of(CLUSTERS[which % len(CLUSTERS)])


HAPPENINGS: Final[dict[str, Callable[[Stage, int, int], None]]] = {
    one.__name__: one
    for one in (select, submit, finish, hold, release, evict, preempt, lose, find, crash, score)
}
OFTEN: Final = ("select", "select", "select", "submit", "submit", "hold", "release", "release", "crash")
KINDS: Final = (*HAPPENINGS, *OFTEN)
MOVING: Final = ("select", "score", "lose", "find")
"""Happenings by which clusters come and go."""
HAPPENINGS["rename"] = rename
HAPPENINGS["upgrade"] = upgrade


# -- a run


def run(story: Story, then: Callable[[Stage], Any] | None = None) -> Stage:
    """Tell a story; `then` says what is waited for and asserted at its end."""
    random.seed(story.seed)
    slots = {object_of(cluster): number for cluster, number in zip(CLUSTERS, SLOTS, strict=True)}
    delays = Delays(left_behind=story.left_behind)
    kueue = VirtualKueue(story.seed, slots, settings=story.kueue, delays=delays, config="p")
    kueue.throttled = story.pace is not None
    hub = VirtualHub(kueue, CLUSTERS)
    for cluster in CLUSTERS:
        kueue.add_alias(object_of(cluster), cluster)

    async def tell() -> Stage:
        controller = VirtualController(hub, story.policy, story.odds)
        at = Stage(story, kueue, hub, controller)
        hub.listeners.append(at.witness)
        hub.select(["a", "b", "c"])
        await asyncio.sleep(3.0)
        for step in story.steps:
            HAPPENINGS[step.what](at, step.one, step.two)
            await asyncio.sleep(step.pause)
        if then:
            await then(at)
        return at

    return play(kueue, tell())


async def all_ends_well(at: Stage) -> None:
    """Everything answers and has room: what left is gone, every job runs where it should, and ends."""
    calm_down(at)
    await asyncio.sleep(CALM_SECONDS)
    selected = set(at.hub.selected)
    assert set(at.hub.listed()) - selected <= at.runs_on(), "a cluster without a job is still listed"
    assert selected <= set(at.hub.listed()), "a selected cluster is not listed"
    await all_finish(at)
    await asyncio.sleep(200.0 + at.story.unlist_after)
    assert (set(at.hub.listed()), at.hub.joined()) == (selected, selected)
    at.jobs.append("last")
    at.kueue.submit("last", at.story.checks)
    await asyncio.sleep(20.0)
    where = at.kueue.running("last")
    assert where, "the gate is closed"
    assert where <= {object_of(cluster) for cluster in selected}


def calm_down(at: Stage) -> None:
    at.hub.strike_in = 0
    for which in range(len(CLUSTERS)):
        find(at, which, 0)
        release(at, which, 0)
    if at.story.wishes:  # then each job fits somewhere
        at.hub.select(CLUSTERS, edited=True)
    elif not at.hub.selected:
        at.hub.select(["b", "d"], edited=True)


async def all_finish(at: Stage) -> None:
    """Let jobs end until there is none; each must run at some time."""
    for _ in range(round(END_SECONDS / 30)):
        for name in at.jobs:
            at.kueue.finish(name)
        await asyncio.sleep(30.0)
        if all(map(at.finished, at.jobs)):
            return
    raise AssertionError(f"never placed: {[name for name in at.jobs if not at.finished(name)]}")


def ran_twice(at: Stage) -> list[str]:
    return [name for name in at.jobs if at.kueue.max_copies[name] > 1 and name not in at.excused]


def misplaced(at: Stage) -> list[str]:
    """Return the nominations that a job's wishes forbid."""
    return [f"{name} on {where}" for name, where in sorted(at.nominated) if where in FORBIDDEN.get(name, "")]


def by_us(at: Stage) -> list[str]:
    """Return the evictions of placed jobs that neither the test nor a worker brought about."""
    others = ("Preempted to accommodate", "Workload evicted on worker cluster")
    return [why for why in at.evicted if not any(one in why for one in others)]


# -- stories

steps = st.builds(
    Step, st.sampled_from(KINDS), st.integers(0, 15), st.integers(0, 7), st.sampled_from(PAUSES)
)
stories = st.builds(
    Story,
    seed=st.integers(0, 9999),
    steps=st.lists(steps, min_size=4, max_size=30).map(tuple),
    removal=st.sampled_from((DRAIN, IMMEDIATE)),
    nominates_admitted=st.booleans(),
    loss_grace=st.sampled_from((0.0, 30.0)),
    unlist_after=st.sampled_from((0.0, 60.0, 600.0)),
    settle=st.sampled_from((0.0, 30.0)),
    fails=st.sampled_from((0.0, 0.0, 0.05)),
    late=st.sampled_from((0.05, 0.05, 1.0)),
    pace=st.sampled_from((None, *PACES.values())),
)
dispatchers = pytest.mark.parametrize(
    "dispatcher", [ALL_AT_ONCE, INCREMENTAL, OUR_CONTROLLER], ids=["AllAtOnce", "Incremental", "ours"]
)


def with_renames(story: Story, renames: Sequence[int]) -> Story:
    """Return the story with a change of names after some of its steps."""
    steps = list(story.steps)
    for at in renames:
        place = at % (len(steps) + 1)
        steps.insert(place, Step("rename", at % 16, at % 4, PAUSES[at % len(PAUSES)]))
    return replace(story, steps=tuple(steps))


def random_stories(count: int, **how: Any) -> Iterator[Story]:
    """Stories for figures: always the same ones."""
    return (random_story(seed, **how) for seed in range(count))


def random_story(seed: int, **how: Any) -> Story:
    chance = random.Random(seed)
    happens = (
        Step(chance.choice(KINDS), chance.randrange(16), chance.randrange(8), chance.choice(PAUSES))
        for _ in range(25)
    )
    return Story(seed, tuple(happens), **how)


@dispatchers
@settings(suppress_health_check=list(HealthCheck), **LONG)  # type: ignore[arg-type]
@given(story=stories)
def test_no_job_runs_twice_none_is_sent_away_and_all_ends_well(dispatcher: str, story: Story) -> None:
    expected_message = []

    async def ends(at: Stage) -> None:
        expected_message.append(at)
        await all_ends_well(at)

    try:
        at = run(replace(story, dispatcher=dispatcher), ends)
    finally:
        for stage in expected_message:
            note(
                "\n".join(f"{when - stage.kueue.now:.3f} {who} {what}" for when, who, what in stage.kueue.log)
            )
    assert ran_twice(at) == []
    if story.removal == DRAIN:
        assert by_us(at) == []


@pytest.mark.parametrize("profile", PROFILES)
@settings(suppress_health_check=list(HealthCheck), **LONG)  # type: ignore[arg-type]
@given(story=stories)
def test_with_every_profile_and_wish_jobs_are_as_safe(profile: str, story: Story) -> None:
    at = run(replace(story, dispatcher=OUR_CONTROLLER, profile=profile, wishes=True), all_ends_well)
    assert ran_twice(at) == []
    assert misplaced(at) == []
    if story.removal == DRAIN:
        assert by_us(at) == []


@dispatchers
@settings(suppress_health_check=list(HealthCheck), **LONG)  # type: ignore[arg-type]
@given(story=stories, renames=st.lists(st.integers(0, 999), min_size=1, max_size=3))
def test_a_change_of_names_under_running_jobs_harms_none(
    dispatcher: str, story: Story, renames: list[int]
) -> None:
    async def ends(at: Stage) -> None:
        await all_ends_well(at)
        await all_finish(at)
        await asyncio.sleep(200.0)

    at = run(replace(with_renames(story, renames), dispatcher=dispatcher), ends)
    assert ran_twice(at) == []
    if story.removal == DRAIN:
        assert by_us(at) == []
    listed = set(at.hub.objects[MULTIKUEUE_CONFIG, "", "p"]["spec"]["clusters"])
    assert listed == {at.hub.facts.multikueue_cluster_name("p", cluster) for cluster in at.hub.selected}


@dispatchers
@settings(suppress_health_check=list(HealthCheck), **LONG)  # type: ignore[arg-type]
@given(story=stories, when=st.integers(0, 999), lacking=st.integers(1, 15))
def test_an_upgrade_of_kueue_moves_no_cluster_and_harms_no_job(
    dispatcher: str, story: Story, when: int, lacking: int
) -> None:
    async def ends(at: Stage) -> None:
        for which in range(len(CLUSTERS)):
            release(at, which, 0)
        await asyncio.sleep(CALM_SECONDS)
        await all_finish(at)

    steps = [step for step in story.steps if step.what not in MOVING]
    steps.insert(0, Step("submit", 0, 0, LISTED_SECONDS))
    steps.insert(1 + when % len(steps), Step("upgrade", lacking, when % 4, PAUSES[when % len(PAUSES)]))
    at = run(replace(story, dispatcher=dispatcher, steps=tuple(steps), probe=True), ends)
    assert (at.unlisted, set(at.hub.listed())) == ([], set("abc"))
    assert (ran_twice(at), by_us(at)) == ([], [])


@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, OUR_CONTROLLER], ids=["AllAtOnce", "ours"])
def test_two_names_of_one_worker_in_a_list_kill_jobs(
    dispatcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why a list never holds both: the stand-in deletes copies through the other name, as Kueue does."""

    async def ends(at: Stage) -> None:
        for _ in range(4):
            submit(at, 0, 0)
        await asyncio.sleep(20.0)
        rename(at, 0, 0)
        await asyncio.sleep(60.0)

    def killed() -> int:
        stages = [run(Story(seed, (), dispatcher), ends) for seed in range(6)]
        return sum(len(starts) > 1 for at in stages for starts in at.kueue.starts.values())

    assert killed() == 0
    monkeypatch.setattr(targets, "begin_renaming", lambda _, clusters, *__: Renaming(tuple(clusters)))
    assert killed() > 0


# -- decisions that flap


@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, INCREMENTAL], ids=["AllAtOnce", "Incremental"])
def test_while_decisions_flap_jobs_start_all_the_same(dispatcher: str) -> None:
    """A flip every 2 s for two minutes, and Kueue needs 4 s to place a job."""

    async def ends(at: Stage) -> None:
        chance = random.Random(at.story.seed)
        asked: dict[str, float] = {}
        for flip in range(60):
            at.hub.select([chance.choice("abc")])
            if not flip % 5:
                at.jobs.append(f"j{flip}")
                asked[at.jobs[-1]] = at.kueue.now
                at.kueue.submit(at.jobs[-1], at.story.checks)
            await asyncio.sleep(2.0)
            for name in at.jobs[:-1]:
                if chance.random() < 0.3:
                    at.kueue.finish(name)
        last = at.kueue.now
        await asyncio.sleep(60.0)
        begun = {name: at.kueue.starts[name][0][0] for name in asked if at.kueue.starts[name]}
        assert begun.keys() == asked.keys(), "all have started within a minute of the last flip"
        assert max(begun[name] - asked[name] for name in asked) <= 30.0
        assert at.list_changes <= 8, "only clusters that are new to the list, and the last removals"
        await asyncio.sleep(60.0)
        assert set(at.hub.listed()) - set(at.hub.selected) <= at.runs_on(), f"since {last}"

    for seed in range(EXAMPLES or 10):
        at = run(Story(seed, (), dispatcher, settle=30.0, batch=4.0), ends)
        assert (seed, ran_twice(at), by_us(at)) == (seed, [], [])


# -- the stable list


@pytest.mark.parametrize("crashes", [False, True], ids=["", "with crashes"])
def test_a_hundred_flips_among_listed_clusters_change_no_list(crashes: bool) -> None:
    async def ends(at: Stage) -> None:
        chance = random.Random(at.story.seed)
        changes = at.list_changes
        for flip in range(100):
            at.hub.select([chance.choice("abc")])
            if sum(not at.finished(name) for name in at.jobs) < MOST_JOBS:
                at.jobs.append(f"j{flip}")
                at.kueue.submit(at.jobs[-1], at.story.checks)
            if crashes and not flip % 7:
                crash(at, chance.randrange(4), 1)
            await asyncio.sleep(chance.uniform(0.5, 8.0))
            finish(at, chance.randrange(4), 0)
        assert at.list_changes == changes
        at.hub.select(["a", "b", "c"])
        await all_finish(at)

    for seed in range(EXAMPLES or 5):
        pace = PACES[("0.19", "0.20")[seed % 2]]
        stable = Story(seed, (), OUR_CONTROLLER, unlist_after=3600.0, loss_grace=300.0, pace=pace)
        at = run(stable, ends)
        assert (seed, ran_twice(at), by_us(at)) == (seed, [], [])
        assert {len(starts) for starts in at.kueue.starts.values()} == {1}


# -- the last second


def last_second(seed: int, dispatcher: str, **how: Any) -> Stage:
    """Jobs wait everywhere; the cluster that leaves admits them when they are about to be sent back.

    Kueue leaves every second copy behind (shared/kueue/gate.txt: one in eight).
    """
    chance = random.Random(seed)
    story = Story(seed, (), dispatcher, left_behind=0.5, **how)
    grace = 60.0 if story.removal == DRAIN and dispatcher != OUR_CONTROLLER else 0.0

    async def ends(at: Stage) -> None:
        at.kueue.hold(*_workers(15))
        for _ in range(2):
            submit(at, 0, 0)
        await asyncio.sleep(70.0 if chance.random() < 0.5 else 10.0)
        at.kueue.later(1.3, lambda: at.hub.select(["b", "c"], edited=True))
        await asyncio.sleep(1.3 + grace + chance.uniform(-1.3, 1.0))
        at.kueue.release(object_of("a"))
        if chance.random() < 0.3:
            crash(at, chance.randrange(4), 1)
        await asyncio.sleep(chance.choice((0.5, 5.0, 30.0)))
        await all_ends_well(at)

    return run(story, ends)


@pytest.mark.parametrize("removal", [DRAIN, IMMEDIATE])
@dispatchers
def test_a_cluster_that_leaves_may_admit_in_the_last_second(dispatcher: str, removal: RemovalPolicy) -> None:
    count = EXAMPLES or 5
    for nominates in (False, True):
        for seed in range(count):
            at = last_second(seed, dispatcher, removal=removal, nominates_admitted=nominates)
            assert (seed, ran_twice(at), by_us(at) if removal == DRAIN else []) == (seed, [], [])


# -- what these stories can tell


def careless(snapshot: Snapshot) -> Plan:
    """List exactly what is selected, and let every Workload go: what the gate is there to prevent."""
    ready = (
        CheckStateUpdate(workload, OURS, READY, "go")
        for workload in snapshot.workloads
        if workload.has_quota and (answer := workload.check_state(OURS)) and answer.state == PENDING
    )
    return replace(plan(replace(snapshot, workloads=())), check_state_updates=tuple(ready))


@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, INCREMENTAL])
def test_a_careless_controller_doubles_and_evicts(dispatcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ends(at: Stage) -> None:
        calm_down(at)
        await asyncio.sleep(60.0)

    monkeypatch.setattr(reconcile, "plan", careless)
    stages = [run(story, ends) for story in random_stories(12, dispatcher=dispatcher)]
    assert sum(bool(ran_twice(at)) for at in stages) >= 3
    assert sum(bool(by_us(at)) for at in stages) >= 3


@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, OUR_CONTROLLER], ids=["AllAtOnce", "ours"])
def test_who_believes_that_a_worker_holds_no_copy_doubles(
    dispatcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VirtualKueue, "copies", lambda *_: [])
    assert sum(bool(ran_twice(last_second(seed, dispatcher))) for seed in range(20)) >= 2


# -- where our check is not listed, there is no gate

SLOW_HUB: Final = 0.3
"""Seconds that an event takes at most, on a hub that has much to do: without it no job runs twice."""
AIMED: Final = 200


def aimed(seed: int, checks: tuple[str, ...], dispatcher: str) -> Stage:
    """A job comes in the very moment in which the only cluster that has room for it leaves."""
    early = random.Random(seed).uniform(-0.1, SLOW_HUB)
    story = Story(seed, (), checks=checks, dispatcher=dispatcher, late=SLOW_HUB)

    async def ends(at: Stage) -> None:
        at.kueue.hold(object_of("b"), object_of("c"))
        await asyncio.sleep(5.0)
        at.kueue.later(1.0 - early, lambda: submit(at, 0, 0))
        at.kueue.later(1.0, lambda: at.hub.select(["b", "c"]))
        await asyncio.sleep(30.0)
        at.kueue.release(object_of("b"), object_of("c"))
        await asyncio.sleep(30.0)

    return run(story, ends)


@pytest.mark.parametrize(
    ("dispatcher", "most"),
    [pytest.param(ALL_AT_ONCE, 20, id="AllAtOnce"), pytest.param(INCREMENTAL, 4, id="Incremental")],
)
def test_without_our_check_only_a_job_that_starts_in_the_second_of_an_unlisting_is_doubled(
    dispatcher: str, most: int
) -> None:
    stages = [at for seed in range(AIMED) if ran_twice(at := aimed(seed, UNGATED, dispatcher))]
    assert 0 < len(stages) <= most
    for at in stages:
        ((when, where),) = at.unlisted
        assert [abs(start - when) < 1.0 for start, on in at.kueue.starts["j0"] if on == where] == [True]


@pytest.mark.parametrize(
    ("checks", "dispatcher"),
    [
        pytest.param(GATED, ALL_AT_ONCE, id="our check"),
        pytest.param(UNGATED, OUR_CONTROLLER, id="ours alone"),
    ],
)
def test_with_our_check_or_our_dispatcher_that_job_runs_once(
    checks: tuple[str, ...], dispatcher: str
) -> None:
    stages = [aimed(seed, checks, dispatcher) for seed in range(AIMED // 4)]
    assert [at.story.seed for at in stages if ran_twice(at) or by_us(at)] == []
    assert all(at.kueue.running("j0") for at in stages)


def test_without_our_check_a_prompt_hub_doubles_nothing() -> None:
    stages = [run(story) for story in random_stories(15, checks=UNGATED)]
    assert [at.story.seed for at in stages if ran_twice(at) or by_us(at)] == []
