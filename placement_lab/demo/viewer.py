"""
Watch the objects of the stories on the hub, and read the job's counts from the workers.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    LABEL_PLACEMENT,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SCORES_NAME,
    WORKLOAD,
    Kind,
)
from placement_ac.kube.client import Client, Object
from placement_lab.demo.credentials import CredentialViewer
from placement_lab.standins.fleet import JobCounter, JobCounts
from placement_lab.standins.informer import HubInformer

KINDS: Final = (
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
    CLUSTER_QUEUE,
    WORKLOAD,
    JOB,
)
POLL_SECONDS: Final = 0.02
"""How often the counts of the workers are read: they send no notification."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job as the hub reports it (`objects`: the Job and its Workload) and as the workers count it."""

    name: str
    runs_on: tuple[str, ...]
    counts: JobCounts
    recorded: str = ""
    """The MultiKueueCluster where it runs or ran, according to the hub."""
    finished: bool = False
    """Whether it has finished, according to the hub."""
    objects: tuple[Object, ...] = ()

    @property
    def workload(self) -> Object | None:
        """Its Workload on the hub, if there is one."""
        return next((obj for obj in self.objects if obj["kind"] == WORKLOAD.kind), None)

    def message_of(self, check: str) -> str:
        """Return the message of a check in its Workload."""
        entries = ((self.workload or {}).get("status") or {}).get("admissionChecks") or ()
        return next((str(entry.get("message", "")) for entry in entries if entry["name"] == check), "")


class Viewer:
    """Watches the hub, as an async context manager. `counter`: the counts of the workers, if there are any.

    `credentials`: watches the provisioned credentials, if there are any.
    """

    def __init__(
        self,
        client: Client,
        counter: JobCounter | None = None,
        credentials: CredentialViewer | None = None,
    ) -> None:
        self.client, self.credentials = client, credentials
        self._counter = counter or JobCounter()
        self._informer = HubInformer(client, KINDS, self._changed)
        self._updated = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._decided_at: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._informer.run())
        await self._informer.synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _changed(self, kind: Kind, namespace: str, name: str) -> None:
        if kind is PLACEMENT_DECISION:
            decision = self._informer.objects[kind].get((namespace, name)) or {}
            labels = (decision.get("metadata") or {}).get("labels") or {}
            self._decided_at[labels.get(LABEL_PLACEMENT, "")] = time.monotonic()
        self._updated.set()

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until `done()` is true; return whether that happened within `seconds`."""
        end = time.monotonic() + seconds
        while not done():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._updated.clear()
            try:
                await asyncio.wait_for(self._updated.wait(), min(left, POLL_SECONDS))
            except TimeoutError:
                continue
        return True

    def decided_at(self, placement: str) -> float | None:
        """Return when the Placement's decision last changed (time.monotonic), None for never."""
        return self._decided_at.get(placement)

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        return self._informer.objects[kind].get((namespace, name))

    def all(self, kind: Kind) -> list[Object]:
        """Return the objects of a kind, by name."""
        return [obj for _, obj in sorted(self._informer.objects[kind].items())]

    def listed(self, config: str) -> list[str]:
        """Return the clusters that a MultiKueueConfig lists; empty if it does not exist."""
        obj = self.get(MULTIKUEUE_CONFIG, config)
        return list(obj["spec"]["clusters"]) if obj else []

    def decided(self, placement: str) -> list[str]:
        """Return the clusters in a Placement's decisions."""
        return [
            entry["clusterName"]
            for obj in self.all(PLACEMENT_DECISION)
            if (obj["metadata"].get("labels") or {}).get(LABEL_PLACEMENT) == placement
            for entry in (obj.get("status") or {}).get("decisions") or ()
        ]

    def condition(self, kind: Kind, name: str) -> Mapping[str, Any]:
        """Return the condition `Active` of an object; empty when it has none."""
        obj = self.get(kind, name) or {}
        conditions = (obj.get("status") or {}).get("conditions") or ()
        return next((condition for condition in conditions if condition["type"] == "Active"), {})

    def scores(self) -> dict[str, int]:
        """Return cluster → the free GPUs in percent, as the controller reports them."""
        return {
            obj["metadata"]["namespace"]: score["value"]
            for obj in self.all(PLACEMENT_SCORE)
            if obj["metadata"]["name"] == SCORES_NAME
            for score in (obj.get("status") or {}).get("scores") or ()
            if score["name"] == "gpuFree"
        }

    def job(self, name: str) -> JobStatus:
        """Return the state of a job, which need not exist."""
        jobs = [obj for obj in self.all(JOB) if obj["metadata"]["name"] == name]
        workloads = [obj for obj in self.all(WORKLOAD) if name in _owners(obj)]
        return JobStatus(
            name=name,
            runs_on=tuple(self._counter.running(name)),
            counts=self._counter.counts_of(name),
            recorded=" ".join((obj.get("status") or {}).get("clusterName", "") for obj in workloads),
            finished=any(_has(obj, "Finished") for obj in workloads),
            objects=(*jobs, *workloads),
        )


def _owners(workload: Object) -> list[str]:
    return [owner_reference["name"] for owner_reference in workload["metadata"].get("ownerReferences") or ()]


def _has(obj: Object, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any((entry["type"], entry["status"]) == (condition, "True") for entry in conditions)
