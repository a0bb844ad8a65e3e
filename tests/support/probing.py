"""Asking a worker whether it is fit: what is needed, and what a worker without faults answers."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from placement_ac.core.inputs.fitness import Fitness, WorkerRequirements
from placement_ac.core.inputs.rights import JobKind, Right
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.workers.probe import Probe
from tests.support.driver import NS, Driver
from tests.support.exec_plugins import TOKEN
from tests.support.workers import LIMITED, with_connector

Queues = Mapping[str, frozenset[str]]
NOW = datetime(2026, 8, 1, tzinfo=UTC)
REVIEWS = "selfsubjectaccessreviews"
JOBS = JobKind("batch/job", "batch", "jobs", "v1")
PODS = JobKind("pod", "", "secrets", "v1")
"""A kind of the core group: the hub that plays the worker has no Pods."""
WATCH = Right("kueue.x-k8s.io", "workloads", "", "watch")
STATUS = Right("kueue.x-k8s.io", "workloads", "status", "patch")
CREATE = Right("batch", "jobs", "", "create")
NEEDS = WorkerRequirements("v1beta2", (JOBS, PODS), (WATCH, STATUS, CREATE))
NO_RELEASE = "Kueue's version is not known: the worker answered with HTTP 404"
REFUSED = f"the worker does not let the account of Secret {NS}/s"
FIT = Fitness(unknown=(NO_RELEASE,), asked_at=NOW)
QUEUES: Queues = {"team": frozenset({"q", "r"})}
SOURCE = CredentialSource("Secret", "s")


def local_queue(worker: Driver, namespace: str, name: str) -> None:
    worker.namespace(namespace)
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": name}}
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues"
    worker.ask("POST", path, body | {"spec": {"clusterQueue": "cq"}})


def with_probe(
    admin: Driver,
    asking: Callable[[Probe], Awaitable[Any]],
    needs: WorkerRequirements = NEEDS,
    *,
    timeout: float = 10.0,
    parallel: int = 8,
) -> Any:
    """Return what `asking` returns, given a Probe on the admin's hub."""
    return with_connector(
        admin,
        lambda connector: asking(Probe(connector, needs, parallel=parallel, clock=lambda: NOW)),
        timeout=timeout,
    )


def ask(
    admin: Driver, needs: WorkerRequirements = NEEDS, queues: Queues | None = None, **options: Any
) -> Fitness:
    answer: Fitness = with_probe(admin, lambda probe: probe.ask(SOURCE, queues or {}), needs, **options)
    assert TOKEN not in repr(answer)
    assert LIMITED not in repr(answer)
    return answer


def unfit(why: str) -> Fitness:
    return Fitness(problems=(why,), asked_at=NOW)


def requests_to(worker: Driver) -> int:
    return len(worker.hub.journal)
