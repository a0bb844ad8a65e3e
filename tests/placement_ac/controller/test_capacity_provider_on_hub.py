"""CapacityProviders of Kueue's Dynamic Quota Orchestration: their status follows the listed clusters."""

from collections.abc import Iterator

import pytest

from tests.support.bare_workers import FLAVOR, GPU, bare_stage
from tests.support.capacity_providers import PROVIDERS, amounts, create, reported, serve, status
from tests.support.driver import KUEUE, Controllers, Driver
from tests.support.jobs import Stage, open_stage, soon
from tests.support.stage import shorten


@pytest.fixture(autouse=True)
def _served(admin: Driver) -> None:
    serve(admin)


def written(stage: Stage, name: str = "hub") -> list[str]:
    """Return the message of each of the controller's writes."""
    bodies = [request.body for request in stage.writes(f"{PROVIDERS}/{name}/status")]
    return [body["status"]["conditions"][0]["message"] for body in bodies]


def questions(stage: Stage) -> int:
    """How often workers were asked for their ClusterQueues."""
    return sum(
        request.path.endswith("/clusterqueues") and request.user_agent.startswith("placement-ac")
        for hub in stage.fleet.hubs.values()
        for request in list(hub.journal)
    )


# -- workers that we set up


def test_a_flip_is_followed_by_one_write(admin: Driver, controllers: Controllers) -> None:
    with bare_stage(admin, controllers, "c1", "c2", "c3", start=False) as bare:
        bare.allocatable("c2", **{"cpu": "50", GPU: "4"})
        bare.stage.select("c1", "c2", "c3")
        create(admin)
        create(admin, "theirs", controller="example.com/another")
        controllers.start(worker_setup="manifestwork")
        soon(lambda: amounts(admin), {"cpu": "225", GPU: "20"})
        assert reported(admin) == ("Synchronized", "the sum of c1, c2 and c3")
        before = len(written(bare.stage))
        bare.stage.select("c2", "c3")
        soon(lambda: amounts(admin), {"cpu": "135", GPU: "12"})
        bare.stage.select("c2")
        soon(lambda: amounts(admin), {"cpu": "45", GPU: "4"})
        bare.stage.select("c1", "c2")
        soon(lambda: amounts(admin), {"cpu": "135", GPU: "12"})
        bare.stage.select()
        soon(lambda: amounts(admin), {"cpu": "0", GPU: "0"})
        assert written(bare.stage)[before:] == [
            "the sum of c2 and c3",
            "the sum of c2",
            "the sum of c1 and c2",
            "no cluster is listed",
        ]
        assert (questions(bare.stage), status(admin, "theirs")) == (3, {}), "once each, for their identity"


def test_the_first_capacity_provider_needs_no_restart(
    admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, REDISCOVERY_SECONDS=0.3)
    with bare_stage(admin, controllers, "c1") as bare:
        bare.stage.until_listed("c1")
        create(admin)
        soon(lambda: amounts(admin), {"cpu": "90", GPU: "8"})


# -- workers with queues of their own

QUOTAS = {name: {FLAVOR: {GPU: size}} for name, size in {"a": "2", "b": "8", "c": "16"}.items()}


@pytest.fixture
def stage(admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Three workers whose queues are by hand; nothing is started."""
    shorten(monkeypatch, QUOTA_AGAIN_SECONDS=0.5, QUOTA_RETRY_SECONDS=0.5)
    with open_stage(admin, controllers, [*QUOTAS], quotas=QUOTAS) as opened:
        yield opened


def test_queues_on_workers_are_read(stage: Stage) -> None:
    admin = stage.admin
    create(admin)
    stage.select("a", "b")
    stage.controllers.start()
    soon(lambda: amounts(admin), {GPU: "10"})
    quota = [
        {"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": "4"}
    ]
    worker = Driver(stage.fleet.hubs["b"])
    worker.ask("PATCH", f"{KUEUE}/v1beta2/clusterqueues/cluster-queue", quota, "json")
    soon(lambda: amounts(admin), {GPU: "6"})
    stage.select("b", "c")
    soon(lambda: amounts(admin), {GPU: "20"})
    assert [text for text in written(stage) if "unknown" in text] == []


def test_after_a_restart_the_sum_stays_until_it_is_sure(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = stage.admin
    create(admin)
    stage.select("a", "b")
    with stage.controllers():
        soon(lambda: amounts(admin), {GPU: "10"})
    stage.fleet.hubs["b"].faults.add("GET", "/clusterqueues$", status=503, times=1_000_000)
    before, asked = len(written(stage)), questions(stage)
    with stage.controllers():
        soon(lambda: questions(stage) > asked + 4)
        assert (amounts(admin), len(written(stage))) == ({GPU: "10"}, before)
    shorten(monkeypatch, QUOTA_UNKNOWN_SECONDS=0.5)
    stage.controllers.start()
    soon(lambda: amounts(admin), {GPU: "2"})
    reason, message = reported(admin)
    assert reason == "Synchronized"
    assert message.startswith("the sum of a; left out: b (quota unknown: MultiKueueCluster p-b: ")


def test_a_write_that_is_refused_concerns_no_check(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch, ASIDE_AGAIN_SECONDS=0.5)
    admin = stage.admin
    create(admin)
    admin.hub.faults.add("PATCH", "/capacityproviders/hub/status$", status=403, times=3)
    stage.select("a")
    stage.controllers.start()
    stage.until_listed("a")
    soon(lambda: admin.reason("p"), "Active")
    soon(lambda: amounts(admin), {GPU: "2"})
    answers = [
        request.body["status"]["conditions"][0] for request in stage.writes("/admissionchecks/p/status")
    ]
    assert "ApplyFailed" not in {answer["reason"] for answer in answers}


def test_without_the_right_to_list_them_all_else_goes_on(stage: Stage) -> None:
    create(stage.admin)
    stage.admin.hub.faults.add("GET", "/capacityproviders$", status=403, times=1_000)
    stage.select("a")
    stage.controllers.start()
    stage.until_listed("a")
    soon(lambda: stage.admin.reason("p"), "Active")
    assert status(stage.admin) == {}
