"""
The fleet of a day on the virtual clock: OCM, Kueue, the workers, the controller, and what befalls them.

The controller is the real one, in the settings as they are shipped; `tests.support` has its hub and Kueue.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from placement_ac.config.policy import (
    capacity_policy,
    hub_facts,
    placement_policy,
    score_policy,
    worker_setup_policy,
)
from placement_ac.config.settings import Settings
from placement_ac.core.api import constants
from placement_ac.core.api.constants import (
    ANNOTATION_CLUSTER_SELECTOR,
    OUR_CONTROLLER,
    SHARED,
    TAINT_UNREACHABLE,
)
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.job_facts import JobNeeds
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts, WorkerFacts
from placement_ac.core.maintenance.window import MaintenanceWindow
from placement_lab.standins.multikueue import ALL_AT_ONCE, KueueSettings
from placement_lab.standins.multikueue import objects as of
from tests.day.bare import BareFleet
from tests.day.scores import FAILS_SECONDS, ScoredFleet
from tests.day.trace import (
    CANDIDATES,
    CLUSTERS,
    GPUS,
    NOTICE_SECONDS,
    PLACEMENTS,
    POOLS,
    QUEUES,
    SCORES_TROUBLES,
    SELECTED,
    SETUP_TROUBLES,
    Item,
    Job,
    Trouble,
)
from tests.day.trace import Kind as Frequency
from tests.support.builders import Raw, an, jwt, kubeconfig, scores, secret
from tests.support.jobs_to_dispatch import GPU
from tests.support.virtual.client import Odds
from tests.support.virtual.clock import START
from tests.support.virtual.controller import ASK_SECONDS, TIMEOUT_SECONDS, VirtualController
from tests.support.virtual.hub import VirtualHub, checks_of
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.workers import QUEUE
from tests.support.virtual.workloads import NAMESPACE

MODES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "gate": {},
        "dispatcher": {"dispatcher": True},
        "shared": {"dispatcher": True, "cluster_names": SHARED},
        "bare": {"dispatcher": True, "cluster_names": SHARED, "worker_setup": "manifestwork"},
        "scores": {
            "dispatcher": True,
            "cluster_names": SHARED,
            "avoid_after_failure": 600.0,
            "report_scores": True,
        },
    }
)
"""The settings of each mode; everything else has its default. The documentation recommends `shared`."""
BARE: Final = "bare"
"""The mode whose workers begin bare."""
SCORES: Final = "scores"
"""The mode with clusters that keep failing, and scores that the controller reports."""
MORE_TROUBLES: Final[Mapping[str, Mapping[str, Frequency]]] = {BARE: SETUP_TROUBLES, SCORES: SCORES_TROUBLES}
"""The troubles that a mode has besides."""
NIGHT_HOURS: Final[Mapping[str, float]] = {SCORES: 5.0}
"""How long `make day` plays on when nothing happens any more: a quarantine may take four hours to end."""
NOTICED_SECONDS: Final = 300.0
"""OCM: a cluster gets the taint `unreachable` so long after its last lease."""
KEPT_SECONDS: Final = 120.0
"""How long a finished Job stays (ttlSecondsAfterFinished)."""
EXPIRES_SECONDS: Final = 60.0
"""How long before its end the token is known that will not be renewed in time."""
LONG: Final = timedelta(days=30)


@dataclass
class Site:
    """The state of a cluster, for OCM and for Kueue. The sets say why."""

    score: int = 50
    pool: str = POOLS[0]
    tainted: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    on_hold: set[str] = field(default_factory=set)
    expired: bool = False
    down_until: float = 0.0
    """When it last came back."""
    window: tuple[float, bool] | None = None
    """When its announced maintenance begins, in seconds of the day, and whether jobs are sent back then."""


class World:
    """A hub with the Placements, the fleet, and a controller that runs while `live` does.

    `now`: virtual seconds since the start. `happened` is called with each item when its time has come.
    """

    def __init__(self, mode: str, seed: int) -> None:
        self.settings = Settings(**MODES[mode])
        self.mode = mode
        self.jobs: dict[str, Job] = {}
        self.sites = {name: Site(pool=POOLS[at % 2], score=50 - at) for at, name in enumerate(CLUSTERS)}
        self.fewer: dict[str, int] = dict.fromkeys(PLACEMENTS, 0)
        self.on_decision: list[Callable[[str, bool], None]] = []
        """Called with a Placement that selects other clusters, and whether it was edited."""
        self._chance = random.Random(seed)
        self.odds = Odds(random.Random(seed))
        policy = placement_policy(self.settings)
        served = {kind: kind.at(kind.versions[0]) for kind in WATCHED_KINDS}
        facts = hub_facts(self.settings, served, None, None)
        dispatcher = OUR_CONTROLLER if self.settings.dispatcher else ALL_AT_ONCE
        self.kueue = VirtualKueue(
            seed,
            GPUS,
            settings=KueueSettings(dispatcher=dispatcher),
            configs={checks_of(name)[0]: name for name in PLACEMENTS},
        )
        self.kueue.logs = False
        for name in PLACEMENTS if not facts.shared else ():
            for cluster in CLUSTERS:
                self.kueue.add_alias(cluster, facts.multikueue_cluster_name(name, cluster))
        self.hub = VirtualHub(self.kueue, CLUSTERS, PLACEMENTS, facts)
        self.kueue.on_start.append(self._started)
        self.kueue.listeners.append(self._witness)
        self._finished: set[str] = set()
        self.answered: dict[str, float] = {}
        """Cluster whose worker has answered the dispatcher → when it was asked then."""
        setup = worker_setup_policy(self.settings)
        self.bare = BareFleet(self) if setup.enabled else None
        self.scored = ScoredFleet(self) if self.settings.report_scores else None
        for cluster in CLUSTERS:
            self._write_credentials(cluster, LONG)
            self.write_cluster(cluster)
            self.hub.score(cluster, self.sites[cluster].score)
        self._begin = partial(
            VirtualController,
            self.hub,
            policy,
            self.odds,
            setup=setup,
            reports=score_policy(self.settings),
            read_worker=self.scored.read_worker if self.scored else None,
            capacity=capacity_policy(self.settings),
        )
        self.controller: VirtualController

    @property
    def now(self) -> float:
        return self.kueue.now - START

    @property
    def controller_began(self) -> float:
        """When the controller that runs, or ran last, began."""
        return self.controller.began - START

    def start(self) -> None:
        """Start the controller, in the running loop."""
        read_queues = self._read_queues if self.settings.dispatcher else None
        self.controller = self._begin(read_queues=read_queues)
        self.decide_every()

    def name_of(self, placement: str, cluster: str) -> str:
        """Return the name of a cluster's MultiKueueCluster."""
        return self.hub.facts.multikueue_cluster_name(placement, cluster)

    def cluster_of(self, name: str) -> str:
        """Return the cluster of a worker of the virtual Kueue."""
        return self.kueue.first_name(name)

    def is_usable(self, placement: str, cluster: str) -> bool:
        """Whether the Placement selects the cluster, and it has credentials and answers."""
        site = self.sites[cluster]
        return cluster in self.authorised(placement) and not site.expired and not site.down

    def authorised(self, placement: str) -> list[str]:
        """Return the clusters that the Placement selects and that are not in maintenance."""
        selected = self.hub.selected_by(placement)
        return [cluster for cluster in selected if not self.is_in_maintenance(cluster)]

    def is_in_maintenance(self, cluster: str) -> bool:
        window = self.sites[cluster].window
        return window is not None and window[0] <= self.now

    def is_too_long(self, job: Job, cluster: str, slack: float = 0.0) -> bool:
        """Whether a job says that it runs longer than is left before the maintenance of a cluster."""
        window = self.sites[cluster].window
        return window is not None and self.now + (job.limit or 0) > window[0] + slack

    def is_listed(self, placement: str, cluster: str) -> bool:
        config = self.hub.objects.get((constants.MULTIKUEUE_CONFIG, "", placement))
        return bool(config) and self.name_of(placement, cluster) in config["spec"]["clusters"]

    def room(self, cluster: str) -> int:
        """Return the GPUs that should be free for the hub's jobs on a cluster."""
        return self.bare.room(cluster) if self.bare else self.kueue.slots_left(cluster)

    def serves(self, cluster: str, job: Job) -> bool:
        """Whether a cluster is to have the LocalQueue of a job."""
        return self.bare is None or self.bare.serves(cluster, job)

    # -- what happens

    def happen(self, item: Item) -> None:
        if isinstance(item, Job):
            self._submit(item)
        elif item.what in SETUP_TROUBLES:
            if self.bare:
                self.bare.happen(item)
        elif item.what in SCORES_TROUBLES:
            if self.scored:
                self.scored.happen(item)
        else:
            getattr(self, f"_{item.what}")(item)

    def _submit(self, job: Job) -> None:
        self.jobs[job.name] = job
        annotations = {ANNOTATION_CLUSTER_SELECTOR: f"pool={job.pool}"} if job.pool else {}
        self.kueue.submit(
            job.name,
            checks_of(job.placement),
            {"annotations": annotations} if annotations else None,
            queue=job.queue,
            requests=self.scored.requests(job) if self.scored else {GPU: str(job.gpus)},
            slots=job.gpus,
            max_seconds=job.limit,
        )

    def _started(self, name: str, worker: str) -> None:
        when, job, cluster = self.kueue.now, self.jobs[name], self.cluster_of(worker)
        if self.scored and self.scored.fails(job, cluster):
            self.kueue.later(FAILS_SECONDS, partial(self.scored.fail, job, cluster, (when, worker)))
        else:
            self.kueue.later(job.seconds, partial(self._ends, name, worker, when))

    def _ends(self, name: str, worker: str, started: float) -> None:
        """Let a job end, unless this run of it has ended before."""
        runs = self.kueue.starts.get(name, ())
        where = self.cluster_of(worker)
        if runs and runs[-1] == (started, worker):
            self.kueue.finish(name, where)

    def _witness(self, what: str, kind: constants.Kind, raw: Raw) -> None:
        if kind == constants.WORKLOAD and what == "put":
            name = raw["metadata"]["name"].removeprefix("job-")
            if name not in self._finished and of.is_condition_true(raw, of.FINISHED):
                self._finished.add(name)
                self.kueue.later(KEPT_SECONDS, partial(self.kueue.delete, name))

    def _flip(self, item: Trouble) -> None:
        self.sites[item.whom].score = item.value
        self.hub.put(scores(item.whom, gpu=item.value))
        self.decide_all(item.whom)

    def _taint(self, item: Trouble) -> None:
        self._change(item, self.sites[item.whom].tainted, self.decide_all)

    def _maintenance(self, item: Trouble) -> None:
        self._change(item, self.sites[item.whom].tainted, self.decide_all)
        self._change(item, self.sites[item.whom].on_hold, self._hold_or_release)

    def _window(self, item: Trouble) -> None:
        site = self.sites[item.whom]
        if site.window is None:
            self._announce(item.whom, (float(int(self.now + NOTICE_SECONDS)), bool(item.value)))
            self.kueue.later(site.window[0] - self.now, partial(self._authorises_others, item.whom))
            self.kueue.later(item.seconds, partial(self._announce, item.whom, None))

    def _announce(self, cluster: str, window: tuple[float, bool] | None) -> None:
        self.sites[cluster].window = window
        self.write_cluster(cluster)
        self._authorises_others(cluster)

    def _authorises_others(self, cluster: str) -> None:
        """An admin, not OCM, has changed which clusters may be used."""
        for placement in PLACEMENTS:
            if cluster in CANDIDATES[placement]:
                for listener in self.on_decision:
                    listener(placement, True)

    def _away(self, item: Trouble) -> None:
        self._change(item, self.sites[item.whom].down, self._lose_or_find)
        if item.seconds > NOTICED_SECONDS:
            self.kueue.later(NOTICED_SECONDS, partial(self._notice, item))

    def _notice(self, item: Trouble) -> None:
        """OCM has not heard of the cluster for long."""
        site = self.sites[item.whom]
        if site.down:
            site.tainted.add(TAINT_UNREACHABLE)
            self.write_cluster(item.whom)
            self.decide_all(item.whom)

    def _expired(self, item: Trouble) -> None:
        site = self.sites[item.whom]
        if site.expired:
            return
        self._write_credentials(item.whom, timedelta(seconds=EXPIRES_SECONDS))
        self.kueue.later(EXPIRES_SECONDS, partial(self._expire, item))

    def _expire(self, item: Trouble) -> None:
        site = self.sites[item.whom]
        site.expired = True
        site.down.add("expired")
        self._lose_or_find(item.whom)
        self.kueue.later(item.seconds, partial(self._renew, item))

    def _renew(self, item: Trouble) -> None:
        site = self.sites[item.whom]
        site.expired = False
        site.down.discard("expired")
        self._write_credentials(item.whom, LONG)
        self._lose_or_find(item.whom)

    def _crash(self, item: Trouble) -> None:
        self.controller.crash(item.seconds, item.value % 4)

    def _rename(self, item: Trouble) -> None:
        self._relabel(item.whom, "renamed")
        self.kueue.later(
            item.seconds, partial(self._relabel, item.whom, POOLS[CLUSTERS.index(item.whom) % 2])
        )

    def _relabel(self, cluster: str, pool: str) -> None:
        self.sites[cluster].pool = pool
        self.write_cluster(cluster)

    def _edit(self, item: Trouble) -> None:
        self.fewer[item.whom] += 1
        self._decide(item.whom, edited=True)
        self.kueue.later(item.seconds, partial(self._edit_back, item.whom))

    def _edit_back(self, placement: str) -> None:
        self.fewer[placement] -= 1
        self._decide(placement, edited=True)

    def _change(self, item: Trouble, reasons: set[str], effect: Callable[[str], None]) -> None:
        """Add a reason for some seconds, each time with its effect."""
        reason = f"{item.what} {item.at}"

        def over() -> None:
            reasons.discard(reason)
            effect(item.whom)

        reasons.add(reason)
        effect(item.whom)
        self.kueue.later(item.seconds, over)

    # -- what follows from it

    def decide_all(self, cluster: str) -> None:
        for placement in PLACEMENTS:
            if cluster in CANDIDATES[placement]:
                self._decide(placement)

    def decide_every(self) -> None:
        for placement in PLACEMENTS:
            self._decide(placement)

    def _decide(self, placement: str, *, edited: bool = False) -> None:
        """Let OCM decide: the best that have no taint, by name and without scores, as OCM writes them."""
        able = [name for name in CANDIDATES[placement] if not self.sites[name].tainted]
        best = sorted(able, key=lambda name: (-self._score(name), name))
        chosen = sorted(best[: SELECTED - self.fewer[placement]])
        if edited or chosen != list(self.hub.selected_by(placement)):
            self.hub.select(chosen, edited=edited, of=placement)
            for listener in self.on_decision:
                listener(placement, edited)

    def _score(self, cluster: str) -> int:
        return self.scored.score(cluster) if self.scored else self.sites[cluster].score

    def _hold_or_release(self, cluster: str) -> None:
        (self.kueue.hold if self.sites[cluster].on_hold else self.kueue.release)(cluster)

    def _lose_or_find(self, cluster: str) -> None:
        site, worker = self.sites[cluster], self.kueue.workers[cluster]
        is_frozen = any(one != "expired" for one in site.down)
        if self.bare:
            self.bare.api_server(cluster, down=is_frozen)
        if site.down:
            self.kueue.lose(cluster, frozen=is_frozen)
        elif not worker.reachable:
            site.down_until = self.now
            self.kueue.find(cluster)
            if TAINT_UNREACHABLE in site.tainted:
                self.kueue.later(5.0, partial(self._forgive, cluster))

    def _forgive(self, cluster: str) -> None:
        site = self.sites[cluster]
        if not site.down:
            site.tainted.discard(TAINT_UNREACHABLE)
            self.write_cluster(cluster)
            self.decide_all(cluster)

    def write_cluster(self, cluster: str) -> None:
        site = self.sites[cluster]
        if self.bare and cluster in self.bare.detached:
            return
        taint = {"key": TAINT_UNREACHABLE, "effect": "NoSelect"}
        spec = {"taints": [taint]} if TAINT_UNREACHABLE in site.tainted else {}
        labels = {"name": cluster, "pool": site.pool}
        rest = self.bare.managed_cluster(cluster) if self.bare else {}
        if site.window:
            window = MaintenanceWindow(datetime.fromtimestamp(START + site.window[0], UTC), site.window[1])
            rest = rest | {"annotations": {constants.ANNOTATION_MAINTENANCE: str(window)}}
        self.hub.put(an(constants.MANAGED_CLUSTER, cluster, labels=labels, spec=spec, **rest))

    def _write_credentials(self, cluster: str, valid: timedelta) -> None:
        issued = datetime.fromtimestamp(self.kueue.now, UTC)
        token = jwt(cluster, issued, valid.total_seconds() / 3600)
        self.hub.put(secret(f"multikueue-{cluster}", kubeconfig(token)))

    async def _read_queues(self, cluster: KueueObject, _: JobNeeds) -> WorkerFacts:
        """Read a worker's queues, as `workers.queues` does."""
        asked = self.now
        await asyncio.sleep(self.odds.draw(ASK_SECONDS))
        worker = self.kueue.workers[cluster.meta.name]
        if not worker.reachable:
            await asyncio.sleep(TIMEOUT_SECONDS if self.odds.chance.random() < 0.5 else 0.0)
            return WorkerFacts(problem="it does not answer")
        self.answered[self.cluster_of(cluster.meta.name)] = asked
        if self.bare:
            await asyncio.sleep(self.odds.draw(ASK_SECONDS))
            return WorkerFacts(self.bare.facts(cluster.meta.name))
        if self.scored:
            await asyncio.sleep(self.odds.draw(ASK_SECONDS))
            return self.scored.queue_facts(cluster.meta.name)
        use = self.kueue.use(cluster.meta.name)
        quota = FlavorQuota("default", worker.slots * 1000, use.gpus.get(QUEUE, 0) * 1000)
        facts = QueueFacts(
            QUEUE,
            {GPU: (quota,)},
            pending=sum(use.pending.values()),
            reserving=use.admitted.get(QUEUE, 0),
            active=not worker.held,
        )
        await asyncio.sleep(self.odds.draw(ASK_SECONDS))
        return WorkerFacts({(NAMESPACE, queue): facts for queue in QUEUES})
