"""
An embedded hub in its own process, with any number of Workloads from the start.

`python -m bench.hub KUBECONFIG WORKLOADS OURS` serves until its standard input ends. The Workloads
are written to the store directly: over HTTP, 100,000 of them would take many minutes.
"""

import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from placement_lab.hub import Hub
from placement_lab.hub.store import Store

Object = dict[str, Any]

CHECK = "p"
"""The AdmissionCheck that our Workloads wait for."""
TEAMS = 20
WHEN = "2026-08-01T12:00:00Z"
READY = "ready\n"


def workload(number: int, ours: bool) -> Object:
    """Return a Workload as Kueue creates it for a Job, 3 to 4 KB as JSON: unfinished if `ours`."""
    name = f"job-train-{number:06}-{number * 2654435761 % 0xFFFFF:05x}"
    job = str(uuid.UUID(int=number + 2**120))
    metadata = {
        "name": name,
        "namespace": f"team-{number % TEAMS}",
        "uid": str(uuid.UUID(int=number + 2**121)),
        "creationTimestamp": WHEN,
        "generation": 1,
        "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        "labels": {"kueue.x-k8s.io/job-uid": job},
        "managedFields": _MANAGED,
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "blockOwnerDeletion": True,
                "controller": True,
                "kind": "Job",
                "name": name,
                "uid": job,
            }
        ],
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata,
        "spec": _SPEC,
        "status": _WAITING if ours else _FINISHED if number % 10 else _OF_OTHERS,
    }


def condition(kind: str, reason: str, message: str, status: str = "True") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": WHEN,
    }


def _answer(check: str, state: str = "Pending") -> Object:
    return {"name": check, "state": state, "message": "", "lastTransitionTime": WHEN}


def _container(name: str) -> Object:
    return {
        "name": name,
        "image": f"registry.example.com/machine-learning/{name}:2026.08.1",
        "command": ["python", "-m", "train", "--epochs", "30", "--data", "s3://bucket/data"],
        "env": [{"name": f"OPTION_{n}", "value": f"value-of-option-{n}"} for n in range(6)],
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"},
            "requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"},
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": "/scratch", "name": "scratch"}],
    }


def _manager(name: str, subresource: str, *fields: str) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {f"f:{field}": {".": {}, "f:x": {}} for field in fields}},
        "manager": name,
        "operation": "Apply",
        "subresource": subresource,
        "time": WHEN,
    }


_MANAGED = [
    _manager("kueue-admission", "status", "admission", "admissionChecks", "conditions"),
    _manager("kueue-job-controller", "status", "conditions", "reclaimablePods"),
]
_SPEC = {
    "active": True,
    "podSets": [
        {
            "count": 1,
            "name": "main",
            "template": {
                "metadata": {"labels": {"app": "train", "team": "research"}},
                "spec": {
                    "containers": [_container("trainer"), _container("logger")],
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 30,
                    "volumes": [{"name": "scratch", "emptyDir": {}}],
                },
            },
        }
    ],
    "priority": 0,
    "queueName": "user-queue",
}
_RESERVED = condition("QuotaReserved", "QuotaReserved", "Quota reserved in ClusterQueue research")
_ADMISSION = {
    "clusterQueue": "research",
    "podSetAssignments": [
        {
            "count": 1,
            "flavors": {"cpu": "default", "memory": "default", "nvidia.com/gpu": "a100"},
            "name": "main",
            "resourceUsage": {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": "2"},
        }
    ],
}
_WAITING = {
    "admission": _ADMISSION,
    "admissionChecks": [_answer(CHECK), _answer("mk")],
    "conditions": [_RESERVED],
}
_FINISHED = {
    "admission": _ADMISSION,
    "admissionChecks": [_answer(CHECK, "Ready"), _answer("mk", "Ready")],
    "conditions": [
        _RESERVED,
        condition("Admitted", "Admitted", "The workload is admitted"),
        condition("Finished", "Succeeded", "Job finished successfully"),
    ],
}
_OF_OTHERS = {
    "conditions": [condition("QuotaReserved", "Pending", "couldn't assign flavors to pod set main", "False")]
}


def workloads(count: int, ours: int) -> Iterator[Object]:
    """Yield `count` Workloads, `ours` of them spread evenly over the list."""
    every = count // ours if ours else 0
    for number in range(count):
        yield workload(number, ours=bool(ours) and number % every == 0 and number // every < ours)


def serve(kubeconfig: Path, objects: Iterable[Object]) -> None:
    """Serve a hub that has these objects from the start, until standard input ends."""
    hub = Hub()
    _fill(hub._store, objects)  # noqa: SLF001  # it does not serve yet
    with hub:
        hub.write_kubeconfig(kubeconfig)
        sys.stdout.write(READY)
        sys.stdout.flush()
        sys.stdin.read()


def _fill(store: Store, objects: Iterable[Object]) -> None:
    known = {(resource.group, resource.kind): resource for resource in store.by_resource}
    for obj in objects:
        metadata = obj["metadata"]
        resource = known[obj["apiVersion"].rpartition("/")[0], obj["kind"]]
        store.put(resource, (metadata.get("namespace", ""), metadata["name"]), obj)


@contextmanager
def running(module: str, kubeconfig: Path, *sizes: int) -> Iterator[None]:
    """Run a module that serves a hub, in its own process, once it is ready."""
    command = [sys.executable, "-m", module, str(kubeconfig), *map(str, sizes)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]  # noqa: S603  # ours
        if process.stdout.readline() != READY:
            raise click.ClickException("the hub did not start")
        try:
            yield
        finally:
            process.stdin.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), workloads(int(sys.argv[2]), int(sys.argv[3])))
