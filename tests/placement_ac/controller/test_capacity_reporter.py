"""Tests of the capacity reporter: it counts the same whoever has asked the workers, and its loop goes on."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import pytest

from placement_ac.controller import capacity_reporter
from placement_ac.controller.capacity_reporter import CapacityReporter
from placement_ac.core.api import constants
from placement_ac.core.capacity_report.model import Supply
from placement_ac.core.capacity_report.policy import CapacityPolicy
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, WorkerFacts
from placement_ac.core.inputs.state import PlacementPolicy
from tests.support.builders import NOW, Raw, managed_clusters, our_cluster, our_config, world
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues, raw_job
from tests.support.stage import shorten

LOCAL: Queue = ("default", "user-queue")
CLUSTER = "c1"


class Hub:
    """Keeps what is applied; `problem`: raised instead, once."""

    def __init__(self) -> None:
        self.applied: list[str] = []
        self.problem: Exception | None = None
        self.hold: asyncio.Event | None = None

    async def apply(self, resource: object, body: Raw, **rest: object) -> None:
        if self.hold:
            await self.hold.wait()
        if problem := self.problem:
            self.problem = None
            raise problem
        self.applied.append(body["metadata"]["name"])


class Stage:
    """Two Placements whose MultiKueueConfigs list the same MultiKueueCluster."""

    def __init__(self, *jobs: Raw) -> None:
        policy = PlacementPolicy(dispatcher=True)
        configs = [our_config(CLUSTER, of=name) for name in ("p1", "p2")]
        self.jobs = {job["metadata"]["name"]: job for job in jobs}
        clusters = managed_clusters(CLUSTER)
        self.cache = world(configs, our_cluster(CLUSTER, None), clusters, list(jobs), policy=policy)
        self.hub, self.seconds, self.version = Hub(), 0.0, 1
        capacity = CapacityPolicy(enabled=True, gpus=(GPU,), reads_jobs=True)
        self.reporter = CapacityReporter(
            self.cache,
            cast("Any", self.hub),
            capacity,
            clock=lambda: NOW + timedelta(seconds=self.seconds),
            monotonic=lambda: self.seconds,
        )

    def put(self, raw: Raw, kind: constants.Kind = constants.WORKLOAD) -> None:
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        self.cache.put(kind, raw)

    def asked(self) -> Callable[[WorkerFacts], None]:
        return self.reporter.ask_worker(CLUSTER, self.seconds)

    def read(self) -> Callable[[WorkerFacts], None]:
        return self.reporter.ask_cluster(CLUSTER, self.seconds)

    def used(self) -> int | None:
        report = self.reporter.report
        known = [one.quota for one in report.clusters if one.known] if report else []
        return known[0][Supply("gpu", GPU)].used // 1000 if known else None

    @contextmanager
    def reports(self) -> Iterator["asyncio.Task[None]"]:
        task = asyncio.create_task(self.reporter.run(lambda: True))
        try:
            yield task
        finally:
            task.cancel()


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch, WRITE_SECONDS=0.02, LOOK_SECONDS=0.01, GATHER_SECONDS=0.0)


async def until(state: Callable[[], Any], wanted: Any) -> None:
    async with asyncio.timeout(3):
        while state() != wanted:  # noqa: ASYNC110  # no event of the reporter says so
            await asyncio.sleep(0.005)


async def stays(state: Callable[[], Any], wanted: Any) -> None:
    await until(state, wanted)
    await asyncio.sleep(0.1)
    assert state() == wanted


def job(name: str, gpus: int, *, ago: float = 0.0, **rest: Any) -> Raw:
    """A Workload; it was placed so many seconds before NOW."""
    given = {"since": NOW - timedelta(seconds=ago), "check": "Ready", "mk": "Ready"} | rest
    return raw_job(name, pods=gpu_pods(gpus), **given)


def ran(name: str, gpus: int) -> Raw:
    return job(name, gpus, cluster=CLUSTER, ago=600)


def says(used: int, reserving: int) -> WorkerFacts:
    found: dict[Queue, QueueFacts] = queues((GPU, "gpu", 8, used), queue=LOCAL, reserving=reserving)
    return WorkerFacts(found)


@pytest.mark.parametrize("ask", [Stage.asked, Stage.read], ids=["for one Placement", "for scores"])
async def test_jobs_of_all_placements_are_those_that_the_answer_counts(ask: Any) -> None:
    at = Stage(ran("of-p1", 2), ran("of-p2", 3))
    ask(at)(says(5, 2))
    with at.reports():
        await stays(at.used, 5)
        at.put(job("of-p2", 3, cluster=CLUSTER, ago=600, finished=True))
        await stays(at.used, 2)


async def test_an_answer_is_the_clusters_though_the_name_that_was_asked_is_gone() -> None:
    at = Stage(job("w", 2, cluster="p2-c1", ago=600))
    for of in ("p1", "p2"):
        at.put(our_cluster(CLUSTER, of), constants.MULTIKUEUE_CLUSTER)
        at.put(our_config(f"{of}-c1", of=of), constants.MULTIKUEUE_CONFIG)
    at.seconds = 1.0
    late = at.reporter.ask_worker("p1-c1", 0.0)
    at.reporter.ask_worker("p1-c1", at.seconds)(says(2, 1))
    late(says(7, 1))  # it was asked before, and answers after
    at.cache.remove(constants.MULTIKUEUE_CLUSTER, our_cluster(CLUSTER, "p1"))
    at.put(our_config(of="p1"), constants.MULTIKUEUE_CONFIG)
    with at.reports():
        await stays(at.used, 2)


@pytest.mark.parametrize("ask", [Stage.asked, Stage.read], ids=["for one Placement", "for scores"])
async def test_a_job_that_the_worker_had_admitted_before_the_hub_knew_counts_once(ask: Any) -> None:
    at = Stage(job("w", 2, nominated=[CLUSTER], check="Ready", mk="Pending"))
    take = ask(at)
    at.put(job("w", 2, cluster=CLUSTER, ago=-1))
    take(says(2, 1))
    with at.reports():
        await stays(at.used, 2)
        at.put(job("w", 2, cluster=CLUSTER, ago=-1, finished=True))
        await stays(at.used, 0)


@pytest.mark.parametrize("ask", [Stage.asked, Stage.read], ids=["for one Placement", "for scores"])
async def test_a_job_that_came_since_the_question_is_added(ask: Any) -> None:
    at = Stage(ran("a", 2))
    ask(at)(says(2, 1))
    at.seconds = 60
    at.put(job("b", 3, cluster=CLUSTER, ago=-50))
    with at.reports():
        await stays(at.used, 5)


async def test_an_error_that_nobody_expects_is_no_reason_to_stop() -> None:
    at = Stage(ran("a", 2))
    at.asked()(says(2, 1))
    at.hub.problem = ZeroDivisionError()
    with at.reports() as task:
        await until(lambda: len(at.hub.applied), 2)
        assert not task.done()


async def test_it_is_written_again_though_nothing_has_changed() -> None:
    at = Stage(ran("a", 2))
    at.asked()(says(2, 1))
    with at.reports():
        await stays(lambda: len(at.hub.applied), 2)
        at.seconds = 601
        await stays(lambda: len(at.hub.applied), 4)


async def test_what_was_begun_before_a_reset_does_not_count() -> None:
    at = Stage(ran("a", 2))
    late = at.asked()
    at.asked()(says(2, 1))
    at.hub.hold = asyncio.Event()
    with at.reports():
        await until(at.used, 2)
        at.reporter.reset()
        at.hub.hold.set()
        await until(lambda: len(at.hub.applied), 2)
        late(says(4, 1))
        await stays(at.used, None)
        at.asked()(says(2, 1))
        await until(lambda: len(at.hub.applied), 4)


async def test_a_reading_of_a_cluster_whose_score_nobody_wants_is_left_out() -> None:
    at = Stage()
    at.reporter.ask_cluster("elsewhere", 0.0)(says(2, 1))
    at.asked()(says(2, 1))
    with at.reports():
        await until(at.used, 2)
        report = at.reporter.report
        assert report
        assert [one.name for one in report.clusters] == [CLUSTER]


async def test_sums_and_documents_are_made_outside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    for name in ("capacity_report", "documents"):
        work = getattr(capacity_reporter, name)

        def noted(*given: Any, work: Any = work) -> Any:
            threads.add(threading.get_ident())
            return work(*given)

        monkeypatch.setattr(capacity_reporter, name, noted)
    at = Stage(ran("a", 2))
    at.asked()(says(2, 1))
    with at.reports():
        await until(lambda: len(at.hub.applied), 2)
        await stays(at.used, 2)
    assert threads
    assert threading.get_ident() not in threads
