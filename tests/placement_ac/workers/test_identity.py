"""Asking workers for their identity: the uids of objects there, as far as the account may see them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from placement_ac.core.inputs.identity import WorkerIdentity
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.workers import identity
from placement_ac.workers.identity import IdentityReader
from placement_lab.standins.worker_quota import queue_manifests
from tests.support.driver import CORE, KUEUE, NS, Driver
from tests.support.exec_plugins import TOKEN
from tests.support.worker_copies import copy_of
from tests.support.workers import ECHO, put_secret, serving, with_connector

NOW = datetime(2026, 8, 1, tzinfo=UTC)
SOURCE = CredentialSource("Secret", "s", version="digest")
QUEUES = f"{KUEUE}/v1beta2/clusterqueues"
COPIES = f"{KUEUE}/v1beta2/workloads"


@pytest.fixture
def worker(admin: Driver) -> Iterator[Driver]:
    """A worker with a ClusterQueue and a copy; the hub has its credentials."""
    with serving() as driver:
        queue, *_ = (
            item for item in queue_manifests({"x": {"cpu": "8"}}, []) if item["kind"] == "ClusterQueue"
        )
        driver.ask("POST", QUEUES, queue)
        copy_of(driver, "copy")
        copy_of(driver, "its-own", own="yes")
        put_secret(admin, driver)
        yield driver


def ask(admin: Driver, **options: Any) -> WorkerIdentity:
    found: WorkerIdentity = with_connector(
        admin, lambda one: IdentityReader(one).read(SOURCE, NOW), **options
    )
    assert TOKEN not in repr(found)
    return found


def uids(worker: Driver, path: str, *names: str) -> frozenset[str]:
    items = worker.ask("GET", path)["items"]
    return frozenset(item["metadata"]["uid"] for item in items if item["metadata"]["name"] in names)


def test_everything_that_an_account_may_see(admin: Driver, worker: Driver) -> None:
    [system] = uids(worker, f"{CORE}/namespaces", "kube-system")
    queues, copies = uids(worker, QUEUES, "cluster-queue"), uids(worker, COPIES, "copy")
    assert ask(admin) == WorkerIdentity("digest", NOW, system, queues, copies)
    journal = [(request.method, request.path) for request in worker.hub.journal]
    assert journal[-3:] == [("GET", f"{CORE}/namespaces/kube-system"), ("GET", QUEUES), ("GET", COPIES)]


@pytest.mark.parametrize("status", [403, 404])
def test_whatever_it_may_not_see_is_left_out(admin: Driver, worker: Driver, status: int) -> None:
    copies = uids(worker, COPIES, "copy")
    for path in ("namespaces/kube-system$", "clusterqueues$"):
        worker.hub.faults.add("GET", path, status=status, body=ECHO, times=9)
    assert ask(admin) == WorkerIdentity("digest", NOW, copies=copies)


def test_a_worker_that_does_not_answer(admin: Driver, worker: Driver) -> None:
    worker.hub.faults.add("GET", "clusterqueues$", body=ECHO, times=9, status=500)
    assert ask(admin) == WorkerIdentity("digest", NOW, problem="the worker answered with HTTP 500")


def test_a_worker_with_many_copies(admin: Driver, worker: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "UIDS_MAX", 2)
    copy_of(worker, "copy-2")
    copy_of(worker, "copy-3")
    assert ask(admin).copies == uids(worker, COPIES, "copy", "copy-2"), "the first ones, for every account"


def test_the_hub_as_a_worker_of_itself_has_no_identity(admin: Driver) -> None:
    put_secret(admin, admin, user={"token": admin.hub.token})
    assert ask(admin) == WorkerIdentity("digest", NOW, problem=f"Secret {NS}/s leads to this hub")
