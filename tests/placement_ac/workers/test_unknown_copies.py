"""Counting the copies on a worker that have our origin and no Workload on this hub."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime

import pytest

from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.inputs.unknown_copies import UnknownCopies
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.unknown_copies import Id, UnknownCopyReader
from tests.support.driver import CORE, NS, Driver
from tests.support.worker_copies import WORKLOADS, copy_of
from tests.support.workers import ECHO, put_secret, with_connector

NOW = datetime(2026, 11, 28, tzinfo=UTC)
SOURCE = CredentialSource("Secret", "s", version="v1")
RUNS = ("QuotaReserved", "Admitted")
CONFIG_MAP = f"{CORE}/namespaces/{NS}/configmaps"
ASSUMED = f"ConfigMap {NS}/kueue-manager-config"


@pytest.fixture
def shared(admin: Driver, worker: Driver) -> Driver:
    """A worker that this hub shares with another one of the default origin, with a job of each."""
    put_secret(admin, worker)
    copy_of(worker, "ours", *RUNS)
    copy_of(worker, "theirs", *RUNS)
    copy_of(worker, "waits")
    copy_of(worker, "done", *RUNS, "Finished")
    copy_of(worker, "of-the-worker", *RUNS, mine="yes")
    copy_of(worker, "of-hub-b", *RUNS, **{"kueue.x-k8s.io/multikueue-origin": "hub-b"})
    copy_of(admin, "ours", mine="yes")
    return worker


def configure(admin: Driver, text: str) -> None:
    data = {"controller_manager_config.yaml": text}
    admin.ask("POST", CONFIG_MAP, {"metadata": {"name": "kueue-manager-config"}, "data": data})


def count(admin: Driver, known: Collection[Id] = ()) -> UnknownCopies:
    async def read(connector: WorkerConnector) -> UnknownCopies:
        reader = UnknownCopyReader(connector, WORKLOAD.at("v1beta2"), known.__contains__)
        return await reader.read(SOURCE, NOW)

    answer: UnknownCopies = with_connector(admin, read)
    return answer


def found(number: int, origin: str = "multikueue", assumed: str = "", problem: str = "") -> UnknownCopies:
    return UnknownCopies("v1", NOW, number, origin, assumed, problem)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param("kind: Configuration", found(1), id="Kueue's default origin"),
        pytest.param("multiKueue: {origin: hub-b}", found(1, "hub-b"), id="an origin of its own"),
        pytest.param("multiKueue: {origin: hub-c}", found(0, "hub-c"), id="one that nobody else has"),
        pytest.param("", found(1, assumed=ASSUMED), id="no configuration"),
    ],
)
def test_running_copies_of_our_origin_that_this_hub_does_not_have(
    admin: Driver, shared: Driver, config: str, expected: UnknownCopies
) -> None:
    if config:
        configure(admin, config)
    assert count(admin) == expected


def asked_for(admin: Driver) -> list[str]:
    """The Workloads for which the hub was asked."""
    path = WORKLOADS.format("v1beta2", "ns") + "/"
    found = [request for request in list(admin.hub.journal) if request.method == "GET"]
    return [request.path.removeprefix(path) for request in found if request.path.startswith(path)]


def test_the_hub_is_asked_only_for_workloads_that_are_not_cached(admin: Driver, shared: Driver) -> None:
    assert count(admin, known={("ns", "ours")}) == found(1, assumed=ASSUMED)
    assert asked_for(admin) == ["theirs"]


def test_of_very_many_some_are_counted(
    admin: Driver, worker: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.workers.unknown_copies.COUNTED_MAX", 3)
    put_secret(admin, worker)
    for number in range(12):
        copy_of(worker, f"theirs-{number:02}", *RUNS)
    assert count(admin).number == 3
    assert len(asked_for(admin)) == 8, "those of one turn"


@pytest.mark.parametrize(
    ("breaks", "expected"),
    [
        pytest.param(lambda admin, worker: None, 4, id="never"),
        pytest.param(
            lambda admin, worker: worker.hub.faults.add("GET", "v1beta2/workloads", status=403, body=ECHO),
            2,
            id="after the first page",
        ),
    ],
)
def test_what_was_counted_counts_if_the_list_breaks_off(
    admin: Driver,
    worker: Driver,
    monkeypatch: pytest.MonkeyPatch,
    breaks: Callable[[Driver, Driver], None],
    expected: int,
) -> None:
    monkeypatch.setattr("placement_ac.workers.reader.PAGE_SIZE", 2)
    put_secret(admin, worker)
    for number in range(4):
        copy_of(worker, f"theirs-{number}", *RUNS)
    worker.hub.faults.add("GET", "v1beta2/workloads", delay=0)
    breaks(admin, worker)
    assert count(admin) == found(expected, assumed=ASSUMED)


def test_a_worker_or_a_hub_that_does_not_answer_is_a_problem_and_no_number(
    admin: Driver, shared: Driver
) -> None:
    admin.hub.faults.add("GET", "workloads/theirs", status=403, body=ECHO)
    answer = count(admin)
    assert answer.problem.startswith("whether this hub has the Workloads of its copies is unknown: ")
    shared.hub.faults.add("GET", "v1beta2/workloads", status=403, body=ECHO)
    answer = count(admin)
    assert answer == found(0, assumed=ASSUMED, problem=answer.problem)
    assert answer.problem.startswith("the worker does not let the account of Secret")
