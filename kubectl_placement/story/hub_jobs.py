"""
The jobs of a hub with what is asked about each: its queue, who answers its checks, and names of clusters.

Pure. Answers are remembered, because thousands of jobs ask the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.queues import STOP_POLICIES, silent_clusters_of
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    FIELD_MANAGER,
    LOCAL_QUEUE,
    MULTIKUEUE_CONTROLLER,
    OUR_CONTROLLER,
)
from placement_ac.core.api.fields import get_str, key_of
from placement_ac.core.api.text import did_you_mean

KUEUE: Final = "Kueue"
CHECK_INACTIVE: Final = "AdmissionCheckInactive"
"""Kueue: the reason of a ClusterQueue that is not Active because of its checks alone."""


class QueueOfJob(NamedTuple):
    """The queue of a job. `problem`: why it admits nothing, with the fix; "" if nothing is wrong."""

    cluster_queue: str
    problem: str = ""
    fix: str = ""


@dataclass(frozen=True)
class HubJobs:
    """Answers what is asked about each job of a hub."""

    view: HubView
    _queues: dict[tuple[str, str], QueueOfJob] = field(default_factory=dict, init=False, repr=False)
    _clusters: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def cluster_of(self, name: str) -> str:
        """Return the managed cluster of a MultiKueueCluster; its own name if that is unknown."""
        if not name:
            return ""
        if name not in self._clusters:
            self._clusters[name] = self.view.managed_cluster_of(name)
        return self._clusters[name]

    def local_queue(self, namespace: str, name: str) -> Object | None:
        """Return a LocalQueue; None: it does not exist, or was not read."""
        return self.view.dump.find(LOCAL_QUEUE, name, namespace)

    def queue_of(self, namespace: str, name: str) -> QueueOfJob:
        """Return the ClusterQueue of a LocalQueue, and why it admits nothing."""
        if (namespace, name) not in self._queues:
            self._queues[namespace, name] = self._queue_of(namespace, name)
        return self._queues[namespace, name]

    @cached_property
    def controllers(self) -> Mapping[str, str]:
        """Check → who answers it, as `placement-ac`, `Kueue`, or the name of another controller."""
        names = {OUR_CONTROLLER: FIELD_MANAGER, MULTIKUEUE_CONTROLLER: f"{KUEUE} (MultiKueue)"}
        controllers = (get_str(raw, "spec", "controllerName") for raw in self.view.dump.of(ADMISSION_CHECK))
        checks = (key_of(raw)[1] for raw in self.view.dump.of(ADMISSION_CHECK))
        return {check: names.get(one, one) for check, one in zip(checks, controllers, strict=True)}

    def is_ours(self, check: str) -> bool:
        return self.controllers.get(check) == FIELD_MANAGER

    def is_multikueue(self, check: str) -> bool:
        return self.controllers.get(check, "").startswith(KUEUE)

    def silent_clusters(self, checks: Iterable[str]) -> tuple[str, ...]:
        """Return the clusters that hang, and that these checks list: Kueue may start none of their jobs."""
        ours = {check.meta.name: check for check in self.view.our_checks}
        return tuple(cluster for name in checks if name in ours for cluster in silent_clusters_of(ours[name]))

    def config_by_hand(self, checks: Iterable[str]) -> str:
        """Return the MultiKueueConfig of these checks that our dispatcher leaves alone; "": there is none."""
        if not self.view.settings.dispatcher:
            return ""
        ours = {check.placement for check in self.view.our_checks}
        by_hand = {check.meta.name: check.config for check in self.view.checks if check.config not in ours}
        return next((by_hand[name] for name in checks if by_hand.get(name)), "")

    def _queue_of(self, namespace: str, name: str) -> QueueOfJob:
        dump = self.view.dump
        local = self.local_queue(namespace, name)
        if local is None:
            if not dump.knows(LOCAL_QUEUE):
                return QueueOfJob("")
            names = [other for space, other in dump.by_key(LOCAL_QUEUE) if space == namespace]
            label = f"LocalQueue {namespace}/{name}"
            fix = f"create {label}, or name another one in the job{did_you_mean(name, names)}"
            return QueueOfJob("", f"{label}, which does not exist", fix)
        queue = get_str(local, "spec", "clusterQueue")
        if problem := _stopped(local, f"LocalQueue {namespace}/{name}"):
            return QueueOfJob(queue, *problem)
        cluster_queue = dump.find(CLUSTER_QUEUE, queue)
        if cluster_queue is None:
            if not dump.knows(CLUSTER_QUEUE):
                return QueueOfJob(queue, *_inactive(local, f"LocalQueue {namespace}/{name}"))
            why = f"ClusterQueue {queue}, which does not exist"
            return QueueOfJob(queue, why, f"ask an admin to create ClusterQueue {queue}")
        label = f"ClusterQueue {queue}"
        return QueueOfJob(queue, *(_stopped(cluster_queue, label) or _inactive(cluster_queue, label)))


def _stopped(queue: Object, label: str) -> tuple[str, str] | None:
    policy = get_str(queue, "spec", "stopPolicy")
    if policy not in STOP_POLICIES:
        return None
    return (
        f"{label}, which is stopped (stopPolicy {policy})",
        f"ask an admin to set stopPolicy None in {label}",
    )


def _inactive(queue: Object, label: str) -> tuple[str, str]:
    active = condition_of(queue, "Active")
    if active.get("status") != "False":
        return "", ""
    fix = f"ask an admin to correct {label}"
    if active.get("reason") == CHECK_INACTIVE:
        fix = "ask an admin to make the checks Active: `kubectl placement status` says why they are not"
    return f"{label}, which is not active: {active.get('message')}", fix
