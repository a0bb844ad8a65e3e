"""
A cluster, as filters and scores know it.

No I/O, no clock.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from placement_ac.core.api.constants import ANNOTATION_GROUP
from placement_ac.core.api.objects import ClusterTaint, Workload
from placement_ac.core.api.pod_requests import PODS
from placement_ac.core.api.text import joined
from placement_ac.core.dispatch.free_quota import FreeQuota
from placement_ac.core.inputs.job_facts import NO_JOB_FACTS, JobFacts
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts

_PRICE: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
Group = tuple[str, str]
"""A namespace, and the name of a group of Workloads in it."""


def queue_of(workload: Workload) -> Queue:
    return workload.meta.namespace, workload.job.queue


def unnamed_resources(job: Workload, facts: QueueFacts) -> tuple[str, ...]:
    """Return the resources that a job asks for and a ClusterQueue does not name; sorted, without the Pods."""
    asked = {resource for podset in job.job.requests for resource, _ in podset} - {PODS}
    return tuple(sorted(asked.difference(facts.quotas)))


def group_of(workload: Workload) -> Group | None:
    """Return the group that a Workload names; None: it names none."""
    name = workload.job.annotation(ANNOTATION_GROUP)
    return (workload.meta.namespace, name) if name else None


class Price(NamedTuple):
    """A price of a cluster, and the lowest one of the Placement's clusters; None: it is not known."""

    own: float | None
    lowest: float | None


def price_of(text: str) -> float | None:
    """Return the price that a label or claim has; None: it is no number of 0 or more."""
    if not _PRICE.fullmatch(text):
        return None
    return float(text)


class Prices(NamedTuple):
    """The prices of a cluster."""

    whole: Price
    per_gpu: Price | None = None
    """The price for jobs that ask for one of `gpus`; None: the same."""
    gpus: frozenset[str] = frozenset()


@dataclass(slots=True)
class Cluster:
    """A cluster that the Placement authorises, with the Workloads that are there."""

    name: str
    """The MultiKueueCluster."""
    cluster: str
    """The managed cluster."""
    rank: int = 0
    """Its place in the Placement's order, from 0."""
    number: int = 1
    """How many clusters there are."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of its ManagedCluster and, with the prefix `claim:`, its ClusterClaims."""
    node_labels: Mapping[str, str | None] = field(default_factory=dict)
    """Label key of nodes → its value there; None: the cluster does not say. Others are not judged."""
    running: list[Workload] = field(default_factory=list)
    waiting: list[Workload] = field(default_factory=list)
    """Those that are nominated there, and that no cluster runs."""
    last_by_group: Mapping[Group, str] = field(default_factory=dict)
    """Group → the managed cluster on which the last Workload of it was placed."""
    queue_facts: Mapping[Queue, QueueFacts] | None = None
    """LocalQueue of the worker → the ClusterQueue behind it; None: they are not known."""
    jobs: JobFacts = NO_JOB_FACTS
    """All else that is known of the worker."""
    came: list[Workload] = field(default_factory=list)
    """Those of `running` whose quota `queue_facts` do not count yet."""
    is_recent: bool = False
    """Whether `queue_facts` are so new that they say whether there is room now."""
    newcomers: list[Workload] = field(default_factory=list)
    """Those of `waiting` that came since the worker was asked, or whose copies were not there yet."""
    have_quota: frozenset[str] = frozenset()
    """The uids of those of `waiting` whose quota `queue_facts` count: the hub does not know it yet."""
    maintenance_in: float | None = None
    """Seconds until its maintenance begins; None: none is announced."""
    silent: bool = False
    """Whether its worker does not answer, and Kueue may not know yet."""
    connected: bool = True
    """Whether Kueue is connected to it."""
    quarantine: str = ""
    """Why it gets no new job; "": it does."""
    quarantined_for: tuple[str, ...] = ()
    """The namespaces that this concerns; empty: all."""
    tried_by: str | None = None
    """The uid of the job that tries it, if it is quarantined; "": the next one with room; None: none may."""
    taints: tuple[ClusterTaint, ...] = ()
    """Those of its ManagedCluster that jobs must tolerate."""
    prices: Prices | None = None
    """None: it has none."""
    _by_queue: dict[Queue, list[Workload]] | None = None
    _free_quota: FreeQuota | None = None
    _now_free: FreeQuota | None = None

    @property
    def free_quota(self) -> FreeQuota:
        """The quota of the worker's queues that is free, less what those that wait there ask for."""
        if self._free_quota is None:
            waiting = [one for one in self.waiting if one.meta.uid not in self.have_quota]
            self._free_quota = FreeQuota(self.queue_facts or {}, [*waiting, *self.came])
        return self._free_quota

    @property
    def now_free(self) -> FreeQuota:
        """The quota of the worker's queues that is free now.

        Less what those ask for that came since its answer; the others who wait there did not fit into it.
        """
        if self._now_free is None:
            self._now_free = FreeQuota(self.queue_facts or {}, [*self.newcomers, *self.came])
        return self._now_free

    def doubt(self, job: Workload) -> str:
        """Return why the worker may never give the job quota, though none is too small; "": no reason.

        Kueue counts `pods` only where a ClusterQueue names them. It admits no job that asks for another
        resource which the ClusterQueue does not name, unless it is configured to ignore it.
        """
        facts = (self.queue_facts or {}).get(queue_of(job))
        if facts is None or not job.job.requests:
            return ""
        if facts.selects_no_namespace:
            return f"ClusterQueue {facts.cluster_queue} has no namespaceSelector, so it selects no namespace"
        if not facts.active:
            return f"ClusterQueue {facts.cluster_queue} or its LocalQueue is on hold, or not ready"
        unnamed = joined(unnamed_resources(job, facts))
        return f"ClusterQueue {facts.cluster_queue} has no quota of {unnamed}" if unnamed else ""

    def of_queue(self, queue: Queue) -> list[Workload]:
        """Return the Workloads of a queue that run or wait there."""
        if self._by_queue is None:
            self._by_queue = {}
            for workload in (*self.running, *self.waiting):
                self._by_queue.setdefault(queue_of(workload), []).append(workload)
        return self._by_queue.get(queue, [])

    def add_waiting(self, workloads: Iterable[Workload]) -> None:
        """Take in that these are nominated there from now on."""
        for workload in workloads:
            self.tried_by = workload.meta.uid if self.tried_by == "" else self.tried_by
            self.waiting.append(workload)
            self.newcomers.append(workload)
            if self._free_quota is not None:
                self._free_quota.add(workload)
            if self._now_free is not None:
                self._now_free.add(workload)
            if self._by_queue is not None:
                self._by_queue.setdefault(queue_of(workload), []).append(workload)
