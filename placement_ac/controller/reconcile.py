"""
One key at a time: snapshot → plan → diff → act; errors become retries or the condition `ApplyFailed`.

The outline of a plan is written before the rest of the plan is made: what Kueue waits for, first.

Nothing is decided before every watched kind has been listed once. What a plan marks is
remembered with its age, and what it wants to know of a cluster is asked beside the work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

import structlog

from placement_ac.cache.store import World
from placement_ac.controller.recorder import Events
from placement_ac.controller.workqueue import Retry
from placement_ac.controller.writer import Actor
from placement_ac.core.api.constants import APPLY_FAILED, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, RETRY
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, NotLeading, Refused, WorkloadTrouble
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.credentials.provisioning import provide
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.state import Asked, Fit, Key, Mark, Plan, Question, Snapshot
from placement_ac.core.kubeconfig.source import Source
from placement_ac.core.plan.conditions import refuse
from placement_ac.core.plan.diff import (
    Action,
    Phase,
    SetAnswer,
    conditions,
    first_phases,
    last_phases,
    repairs,
)
from placement_ac.core.plan.event_intents import due
from placement_ac.core.plan.plan import Outline, complete, outline
from placement_ac.core.plan.stats import standing
from placement_ac.core.plan.swap import is_at_rest, swap
from placement_ac.kube.timeouts import Pause
from placement_ac.observability.logs import Told
from placement_ac.observability.metrics import Metrics, Run

log = structlog.get_logger(__name__)

Ask = Callable[[KueueObject], Awaitable[Asked]]
"""Asks the cluster behind a MultiKueueCluster for its copies; raises nothing."""
Examine = Callable[[Source, Collection[str]], Awaitable[Fitness]]
"""Asks the cluster behind a Source whether it is fit for what goes through these checks; raises nothing."""


@dataclass(slots=True)
class Memory:
    """What is remembered of one key; all of it may be lost at any time."""

    since: dict[Mark, float] = field(default_factory=dict)
    asked: dict[str, tuple[float, Asked]] = field(default_factory=dict)
    """MultiKueueCluster → when it was asked, and what it said."""
    fits: dict[str, tuple[float, Fit]] = field(default_factory=dict)
    """Cluster → when it was asked whether it is fit, and what it said."""

    def ages(self, now: float) -> dict[Mark, float]:
        return {mark: now - since for mark, since in self.since.items()}

    def heard(self, now: float) -> dict[str, Asked]:
        return {name: replace(said, age=now - when) for name, (when, said) in self.asked.items()}

    def answered(self, now: float) -> dict[str, Fit]:
        return {cluster: replace(fit, age=now - when) for cluster, (when, fit) in self.fits.items()}

    def keep(self, marks: Collection[Mark], now: float) -> None:
        self.since = {mark: self.since.get(mark, now) for mark in marks}

    def keep_words(self, listed: Collection[str], selected: Collection[str]) -> None:
        """Forget what is of no use any more: of clusters that are not listed, or not selected."""
        self.asked = {name: said for name, said in self.asked.items() if name in listed}
        self.fits = {cluster: said for cluster, said in self.fits.items() if cluster in selected}


@dataclass(slots=True)
class Done:
    """What has been written of a plan, without the bodies: many plans may be half done at a time."""

    anything: bool = False
    listed: bool = False
    """Whether the MultiKueueConfig was."""
    made: bool = False
    """Whether any MultiKueueCluster was: what is being made for the first time had better be finished."""
    answered: set[str] = field(default_factory=set)
    """The uids of Workloads that were told to try again."""

    def add(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.anything = True
            self.listed |= action.kind is MULTIKUEUE_CONFIG
            self.made |= action.kind is MULTIKUEUE_CLUSTER
            if isinstance(action, SetAnswer) and any(entry["state"] == RETRY for entry in action.entries):
                self.answered.add(action.workload.meta.uid)


class Look(NamedTuple):
    """What was seen and outlined, and what kept it from being written."""

    seen: Snapshot
    drawn: Outline
    trouble: ApiError | None


class Reconciler:
    """Makes the hub what the world calls for, key by key.

    `clock` gives the time of day (UTC) for conditions, `ticks` seconds that only go forward.
    `later(key, seconds)` is asked to bring a key back; `ask` asks a cluster for its copies, `examine`
    whether it is fit (None: nobody is asked that). `give_way(key)` returns what to wait for after a
    list was written, `pause(key)` before the answer to that is read (None: nothing).
    """

    def __init__(
        self,
        world: World,
        actor: Actor,
        events: Events,
        *,
        ask: Ask,
        examine: Examine | None = None,
        clock: Callable[[], datetime],
        ticks: Callable[[], float],
        later: Callable[[Key, float], None],
        give_way: Callable[[Key], Awaitable[None] | None] = lambda _: None,
        pause: Callable[[Key], Awaitable[None] | None] = lambda _: None,
        metrics: Metrics | None = None,
    ) -> None:
        self._world = world
        self._actor = actor
        self._events = events
        self._ask = ask
        self._examine = examine
        self._clock = clock
        self._ticks = ticks
        self._later = later
        self._give_way = give_way
        self._pause = pause
        self._metrics = metrics or Metrics()
        self._memory: dict[Key, Memory] = {}
        self._told = Told()
        self._asking: dict[tuple[Key, object], asyncio.Task[None]] = {}

    async def reconcile(self, key: Key) -> None:
        """Bring one key in order. Raises Retry when it has to be tried again."""
        if not self._world.complete:
            return
        with Run(self._metrics, key, key.kind) as run:
            if key.kind == "cluster":
                await self._provide(key, run)
            else:
                await self._decide(key, run)

    async def _provide(self, key: Key, run: Run) -> None:
        """Make, renew or take away the credentials of a cluster."""
        memory, now = self._memory.get(key, Memory()), self._ticks()
        wanted = provide(self._world.provision(key.name, self._clock(), memory.ages(now)))
        self._keep(key, wanted.marks)
        try:
            await self._actor.act(wanted.phases)
        except ApiError as error:
            self._tell_trouble(key, error)
            raise Retry(error.retry_after) from error
        self._tell_all(self._world.told_trouble(key.name, ""))
        try:
            await self._actor.act(wanted.leftovers)
        except ApiError as error:
            self._say(key, error)
            raise Retry(error.retry_after) from error
        self._say_that_it_is_over(key)
        if wanted.phases or wanted.leftovers:
            run.applied()
        if wanted.recheck_after is not None:
            self._later(key, wanted.recheck_after)

    def _tell_trouble(self, key: Key, error: ApiError) -> None:
        """Say in the log, and in the condition of who waits for it, why credentials cannot be written."""
        self._say(key, error)
        if not isinstance(error, Conflict | NotLeading):
            self._tell_all(self._world.told_trouble(key.name, error.message))

    def _tell_all(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._later(key, 0.0)

    async def _decide(self, key: Key, run: Run) -> None:
        """Write what Kueue waits for as soon as it is known; the rest of the plan follows meanwhile."""
        done = Done()
        look = await self._swap(key, run, done) or await self._look(key, run, done)
        seen, drawn, trouble = look
        wanted = complete(seen, drawn)
        self._remember(key, seen, wanted)
        self._ask_for(key, seen, wanted)
        then = repairs(seen, wanted) if trouble else last_phases(seen, wanted)
        late = await self._act(then, done)
        trouble = trouble or late
        self._metrics.stands(key, standing(seen, wanted))
        self._post(seen, wanted, done, calm=trouble is None or isinstance(trouble, WorkloadTrouble))
        if trouble:
            await self._troubled(key, seen, wanted, trouble)
            raise Retry(trouble.retry_after) from trouble  # no sooner: it may be about hundreds of Workloads
        self._say_that_it_is_over(key)
        if done.anything:
            run.applied()
        if wanted.recheck_after is not None:
            self._later(key, wanted.recheck_after)

    async def _swap(self, key: Key, run: Run, done: Done) -> Look | None:
        """Write the list by the decision alone; None: that takes a look at everything."""
        seen = self._world.at_rest(key.name, self._clock()) if key.kind == "placement" else None
        write = swap(seen) if seen else None
        if seen is None or write is None:
            return None
        trouble = await self._write(write, done, partial(self._pause, key))
        del write  # many may wait
        if done.listed and (turn := self._give_way(key)):
            await run.wait(turn)
        if memory := self._memory.get(key):
            seen = seen._replace(ages=memory.ages(self._ticks()))
        return Look(seen, outline(seen), trouble)

    async def _look(self, key: Key, run: Run, done: Done) -> Look:
        """Look at everything, and write the list by that."""
        seen = self._snapshot(key)
        drawn = outline(seen)
        phases = first_phases(seen, drawn)
        if key.kind == "placement" and not phases and is_at_rest(seen, drawn):
            self._world.rest(seen)
        trouble = await self._act(phases, done)
        if done.listed and not done.made and _can_wait(seen) and (turn := self._give_way(key)):
            del drawn  # it comes of the snapshot at any time, and many may wait
            await run.wait(turn)
            drawn = outline(seen)
        return Look(seen, drawn, trouble)

    async def _write(self, action: Action, done: Done, pause: Pause) -> ApiError | None:
        """Return what kept it from being done."""
        try:
            await self._actor.write(action, pause)
        except ApiError as error:
            return error
        done.add((action,))
        return None

    async def _act(self, phases: Iterable[Phase], done: Done) -> ApiError | None:
        """Return what kept it from being done, all of it."""
        actions: list[Action] = []
        try:
            await self._actor.act(phases, actions)
        except ApiError as error:
            return error
        finally:
            done.add(actions)
        return None

    def _post(self, seen: Snapshot, wanted: Plan, done: Done, *, calm: bool) -> None:
        notices = (*wanted.notices, *(wanted.changes() if done.listed else ()))
        self._events.post(due(notices, listed=done.listed, answered=done.answered, calm=calm), seen.checks)

    async def _troubled(self, key: Key, seen: Snapshot, wanted: Plan, error: ApiError) -> None:
        if isinstance(error, Refused):
            await self._tell(key, seen, wanted, error)
        elif isinstance(error, WorkloadTrouble):
            log.debug("a Workload could not be written; trying again", key=key.name, error=error.message)
        else:
            self._say(key, error)

    def forget(self) -> None:
        """Remember nothing, as after a restart, and ask nobody any more."""
        for task in self._asking.values():
            task.cancel()
        self._asking.clear()
        self._memory.clear()

    async def close(self) -> None:
        """Ask nobody any more, and tell nobody."""
        await self._events.close()
        tasks = list(self._asking.values())
        self.forget()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _snapshot(self, key: Key) -> Snapshot:
        memory, now = self._memory.get(key), self._ticks()
        if memory is None:
            return self._world.snapshot(key, self._clock(), {})
        return self._world.snapshot(
            key, self._clock(), memory.ages(now), memory.heard(now), memory.answered(now)
        )

    def _remember(self, key: Key, seen: Snapshot, wanted: Plan) -> None:
        if memory := self._memory.get(key):
            memory.keep_words(seen.config.listed if seen.config else (), seen.credentials)
        self._keep(key, wanted.marks)

    def _keep(self, key: Key, marks: Collection[Mark]) -> None:
        memory = self._memory.setdefault(key, Memory())
        memory.keep(marks, self._ticks())
        if not memory.since and not memory.asked and not memory.fits:
            del self._memory[key]

    def _ask_for(self, key: Key, seen: Snapshot, wanted: Plan) -> None:
        for name in wanted.ask:
            self._beside((key, name), self._asked(key, name, seen.clusters.get(name)))
        checks = [check.meta.name for check in (*seen.checks, *seen.users)]
        for question in wanted.questions:
            if self._examine:
                self._beside((key, question), self._examined(key, question, checks, self._examine))

    def _beside(self, what: tuple[Key, object], work: Coroutine[object, object, None]) -> None:
        """Ask beside the work, and the same thing once at a time."""
        if what in self._asking:
            work.close()
        else:
            task = self._asking[what] = asyncio.get_running_loop().create_task(work)
            task.add_done_callback(partial(self._has_asked, what))

    def _has_asked(self, what: tuple[Key, object], task: asyncio.Task[None]) -> None:
        """Let it be asked again, however that ended; unless all was forgotten, and it is asked already."""
        if self._asking.get(what) is task:
            del self._asking[what]

    async def _examined(
        self, key: Key, question: Question, checks: Collection[str], examine: Examine
    ) -> None:
        began = self._ticks()
        fit = Fit(await examine(question.source, checks), question.source, question.source.version)
        self._memory.setdefault(key, Memory()).fits[question.cluster] = began, fit
        self._later(key, 0.0)

    async def _asked(self, key: Key, name: str, cluster: KueueObject | None) -> None:
        began = self._ticks()
        said = await self._ask(cluster) if cluster else Asked({}, "its MultiKueueCluster is not there")
        if said.problem:
            level = self._told.level(name, said.problem)
            log.log(level, "a cluster cannot be asked for its copies", cluster=name, error=said.problem)
        elif self._told.over(name):
            log.info("a cluster can be asked for its copies again", cluster=name)
        self._memory.setdefault(key, Memory()).asked[name] = began, said
        self._later(key, 0.0)

    async def _tell(self, key: Key, seen: Snapshot, wanted: Plan, refused: Refused) -> None:
        """Say on the checks that the API server refused a write; if it refuses that too, in the log."""
        self._say(key, refused)
        verdict = refuse(APPLY_FAILED, refused.message)
        verdicts = dict.fromkeys(wanted.verdicts, verdict)
        try:
            await self._actor.act((conditions(seen, verdicts),))
        except ApiError as error:
            level = self._told.level((key, "condition"), error.message)
            log.log(level, "the condition could not be set", key=key.name, error=error.message)

    def _say(self, key: Key, error: ApiError) -> None:
        if isinstance(error, NotLeading):
            log.debug("not written, as another one leads", key=key.name)
        elif isinstance(error, Conflict | NotFound):
            log.debug("the hub has moved on; looking again", key=key.name, error=error.message)
        elif isinstance(error, Refused):
            level = self._told.level(key, error.message)
            log.log(level, "the API server refused a write", key=key.name, error=error.message)
        elif error.status:
            level = self._told.level(key, error.message)
            log.log(level, "the API server cannot write now; trying again", key=key.name, error=error.message)
        else:  # the watches tell of that, once for all keys
            log.debug("the API server does not answer; trying again", key=key.name, error=error.message)

    def _say_that_it_is_over(self, key: Key) -> None:
        self._told.over((key, "condition"))
        if self._told.over(key):
            log.info("written at last", key=key.name)


def _can_wait(seen: Snapshot) -> bool:
    """Whether what follows the list can: no Workload is to be told, and nobody else lists what goes."""
    return not seen.workloads and not seen.hub.shared
