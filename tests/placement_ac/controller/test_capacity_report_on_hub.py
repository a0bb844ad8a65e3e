"""The capacity of the workers that the controller publishes: as they say, as jobs come and go, seldom."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from placement_ac.core.capacity_report.document import read_report
from placement_ac.core.capacity_report.model import Amounts, CapacityReport, Supply
from placement_lab.hub import RecordedRequest
from tests.placement_ac.observability.test_metrics_on_hub import reads
from tests.support.driver import CORE, NS, Controllers, Driver, free_port
from tests.support.jobs import Stage, dispatched, soon
from tests.support.stage import shorten

GPU = "nvidia.com/gpu"
QUOTAS = {"a": {"f": {GPU: "4", "cpu": "16"}}, "b": {"f": {GPU: "8", "cpu": "32"}}}
CONFIG_MAPS = f"{CORE}/namespaces/{NS}/configmaps"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch, WRITE_SECONDS=0.3, LOOK_SECONDS=0.1, GATHER_SECONDS=0.0)


def texts(admin: Driver) -> list[str]:
    names = ("placement-ac-capacity", "placement-ac-capacity-queues")
    found = [admin.get(f"{CONFIG_MAPS}/{name}") for name in names]
    return [one["data"]["capacity.json"] for one in found if one]


def published(admin: Driver) -> CapacityReport:
    known = texts(admin)
    return read_report(known[1]) if len(known) == 2 else CapacityReport()


def gpus(admin: Driver) -> dict[str, tuple[int, int | None, int]]:
    """Cluster → GPUs used, waited for, and free."""
    quota = {one.name: one.quota.get(Supply("f", GPU), Amounts()) for one in published(admin).clusters}
    return {
        name: (one.used // 1000, None if one.waiting is None else one.waiting // 1000, one.free // 1000)
        for name, one in quota.items()
    }


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def stage(admin: Driver, controllers: Controllers, often: None, port: int) -> Iterator[Stage]:
    served = {"metrics_bind_address": f"127.0.0.1:{port}"}
    with dispatched(admin, controllers, [*QUOTAS], quotas=QUOTAS, controller=served) as opened:
        yield opened


def test_the_numbers_follow_the_jobs_also_while_no_worker_is_asked_and_metrics_have_the_same(
    stage: Stage, port: int
) -> None:
    admin = stage.admin
    stage.submit("one", requests={GPU: "3"})
    stage.until_runs("one", "a")
    soon(lambda: gpus(admin), {"a": (3, 0, 1), "b": (0, 0, 8)})

    def metric(kind: str) -> float:
        return reads(port)().sum("cluster_quota", cluster="a", resource=GPU, kind=kind)

    soon(lambda: [metric(kind) for kind in ("nominal", "used", "waiting", "free")], [4, 3, 0, 1])
    stage.submit("two", requests={GPU: "8"})
    soon(lambda: gpus(admin), {"a": (3, 0, 1), "b": (8, 0, 0)})
    stage.submit("three", requests={GPU: "3"})
    soon(lambda: gpus(admin), {"a": (3, 3, 1), "b": (8, 0, 0)})
    stage.finish("one")
    soon(lambda: gpus(admin), {"a": (3, 0, 1), "b": (8, 0, 0)})
    stage.finish("three")
    stage.finish("two")
    soon(lambda: gpus(admin), {"a": (0, 0, 4), "b": (0, 0, 8)})
    assert published(admin).clusters[0].placements == ("p",)
    assert [queue.name for queue in published(admin).clusters[0].queues] == ["cluster-queue"]
    assert "queues" not in texts(admin)[0], "detail by queue is for admins"


def test_it_is_written_seldom_and_only_after_a_step(
    admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, WRITE_SECONDS=0.5, LOOK_SECONDS=0.1, GATHER_SECONDS=0.0)
    with dispatched(admin, controllers, [*QUOTAS], quotas=QUOTAS) as stage:
        for number in range(5):
            stage.submit(f"small{number}", requests={"cpu": "100m"})
            stage.until_runs(f"small{number}", "a")
            soon(lambda: gpus(admin), {"a": (0, 0, 4), "b": (0, 0, 8)})
            if number == 0:
                before = writes(admin)
        assert writes(admin) == before, "no amount has changed by a step"
        for number in range(4):
            stage.submit(f"one{number}", requests={GPU: "1"})
        soon(lambda: gpus(admin)["a"][0], 4)
        times = [one.at for one in writes(admin)]
        assert len(times) > len(before)
        assert min(later - earlier for earlier, later in pairwise(times)) >= 0.5


def writes(admin: Driver) -> list[RecordedRequest]:
    """The writes of the ConfigMap with the sums."""
    path = f"{CONFIG_MAPS}/placement-ac-capacity"
    return [one for one in list(admin.hub.journal) if one.path == path and one.method != "GET"]


def test_a_config_map_of_somebody_else_is_left_alone(
    admin: Driver, controllers: Controllers, often: None
) -> None:
    body = {"metadata": {"name": "placement-ac-capacity"}, "data": {"capacity.json": "mine"}}
    admin.ask("POST", CONFIG_MAPS, body)
    with dispatched(admin, controllers, ["a"], quotas={"a": QUOTAS["a"]}) as stage:
        stage.submit("one", requests={GPU: "3"})
        stage.until_runs("one", "a")
        soon(lambda: [one.status for one in writes(admin)][1:2], [409])
    assert texts(admin) == ["mine"]
