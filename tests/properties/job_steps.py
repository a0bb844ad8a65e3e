"""The steps of a story of jobs: all that may happen in it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from placement_ac.core.api.constants import (
    ANNOTATION_ANTI_AFFINITY,
    ANNOTATION_CLUSTER_NAMES,
    ANNOTATION_CLUSTER_SELECTOR,
    ANNOTATION_GROUP,
    ANNOTATION_PREFERRED_CLUSTERS,
    PER_PLACEMENT,
    SHARED,
)
from placement_ac.core.inputs.fitness import Fitness
from tests.properties.job_stage import CLUSTERS, MOST_JOBS, Stage
from tests.support.virtual.hub import object_of

PAUSES: Final = (
    *(0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.1, 2.0, 2.6, 4.0, 20.0, 310.0),
    *(57.5, 59.4, 60.0, 60.3, 61.0, 62.3, 63.1, 130.0),  # round about the grace of what waits
)
LOST: Final = (0.1, 2.0, 12.0, 70.0, 200.0, 600.0)
AWAY: Final = (0.1, 0.5, 3.0, 20.0)
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
HAPPENINGS["rename"] = rename
HAPPENINGS["upgrade"] = upgrade
