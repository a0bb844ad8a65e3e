"""Copies of Workloads on workers, and the reader that asks for them."""

from collections.abc import Awaitable, Callable
from typing import Any

from placement_ac.core.api.objects import KueueObject
from placement_ac.workers.copies import CopyReader, WorkerCopies
from tests.support.driver import NS, Driver
from tests.support.exec_plugins import TOKEN
from tests.support.workers import by_secret, with_connector

POD_SET = {"name": "main", "count": 1, "template": {"spec": {"containers": []}}}
ORIGIN = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
WORKLOADS = "/apis/kueue.x-k8s.io/{}/namespaces/{}/workloads"


def copy_of(
    worker: Driver, name: str, *types: str, namespace: str = "ns", version: str = "v1beta2", **labels: str
) -> None:
    """A Workload on a worker, with conditions: a copy unless it has labels of its own."""
    path = WORKLOADS.format(version, namespace)
    worker.namespace(namespace)
    body = {"metadata": {"name": name, "labels": labels or ORIGIN}, "spec": {"podSets": [POD_SET]}}
    worker.ask("POST", path, {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": "Workload"} | body)
    rest = {"status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [{"type": kind} | rest for kind in types]
    worker.ask("PATCH", f"{path}/{name}/status", {"status": {"conditions": conditions}}, "merge")


def with_reader(
    admin: Driver, asking: Callable[[CopyReader], Awaitable[Any]], parallel: int = 8, **options: Any
) -> Any:
    """Return what `asking` returns, given a reader on the admin's hub. `options`: of its connector."""
    return with_connector(
        admin, lambda connector: asking(CopyReader(connector, parallel=parallel)), **options
    )


def ask(admin: Driver, cluster: KueueObject | None = None, **options: Any) -> WorkerCopies:
    """Return the copies on a worker (by default the one of Secret s)."""
    answer: WorkerCopies = with_reader(admin, lambda reader: reader.read(cluster or by_secret()), **options)
    assert TOKEN not in repr(answer)
    return answer


def problem(why: str) -> WorkerCopies:
    return WorkerCopies(problem=f"MultiKueueCluster p-w: {why}")


def beyond(sent: str) -> WorkerCopies:
    """The problem of a worker whose answer is beyond its budget."""
    return problem(f"the worker of Secret {NS}/s sends {sent}: it is asked again after 5 min")
