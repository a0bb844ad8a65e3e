"""
What the audience sees: the kinds of the stories, as they are on the hub, when they last changed,
and what the workers themselves have counted of the job.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    KUEUE,
    KUEUE_VERSIONS,
    LABEL_PLACEMENT,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    WORKLOAD,
    Kind,
)
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_ac.lab.demo.credentials import Making
from placement_ac.lab.standins.fleet import JobCounter, JobCounts
from placement_ac.lab.standins.informer import HubInformer
from placement_ac.lab.standins.kueue_jobs import JOB

CLUSTER_QUEUE: Final = Kind(KUEUE, "ClusterQueue", "clusterqueues", False, KUEUE_VERSIONS)
KINDS: Final = (
    PLACEMENT,
    PLACEMENT_DECISION,
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
    CLUSTER_QUEUE,
    WORKLOAD,
    JOB,
)
LOOK_SECONDS: Final = 0.02
"""How often it is looked at what the workers count: that tells nobody of a change."""


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A job, as the hub tells of it (`objects`: the Job and its Workload) and as the workers count it."""

    name: str
    runs_on: tuple[str, ...]
    account: JobCounts
    recorded: str = ""
    """The MultiKueueCluster where it is, by what the hub knows."""
    finished: bool = False
    """Whether it is over, by what the hub knows."""
    objects: tuple[Object, ...] = ()


class Viewer:
    """Watches the hub; `async with` it. `ledger`: what the workers count, where there are any.

    `making`: watches what is made, where credentials are.
    """

    def __init__(
        self, login: Login, client: Client, ledger: JobCounter | None = None, making: Making | None = None
    ) -> None:
        self.making = making
        self._ledger = ledger or JobCounter()
        self._informer = HubInformer(login, client, KINDS, self._changed)
        self._moved = asyncio.Event()
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
        self._moved.set()

    async def until(self, right: Callable[[], bool], seconds: float) -> bool:
        """Wait until `right()`; return whether it came within `seconds`."""
        end = time.monotonic() + seconds
        while not right():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), min(left, LOOK_SECONDS))
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
        """Return what a MultiKueueConfig lists; nothing when it is not there."""
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

    def job(self, name: str) -> JobSeen:
        """Return what is to be seen of a job; it need not be there."""
        jobs = [obj for obj in self.all(JOB) if obj["metadata"]["name"] == name]
        workloads = [obj for obj in self.all(WORKLOAD) if name in _owners(obj)]
        return JobSeen(
            name=name,
            runs_on=tuple(self._ledger.running(name)),
            account=self._ledger.counts_of(name),
            recorded=" ".join((obj.get("status") or {}).get("clusterName", "") for obj in workloads),
            finished=any(_has(obj, "Finished") for obj in workloads),
            objects=(*jobs, *workloads),
        )


def _owners(workload: Object) -> list[str]:
    return [one["name"] for one in workload["metadata"].get("ownerReferences") or ()]


def _has(obj: Object, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"]) == (condition, "True") for one in conditions)
