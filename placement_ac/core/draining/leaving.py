"""
The facts about one cluster that is listed and no longer wanted, by which its state is decided.

Pure. They are the API objects and the ages, so a restarted controller continues from there.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Final

from placement_ac.core.api.constants import COPIES_FRESH_SECONDS, IMMEDIATE, QUIET_SECONDS
from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.state import ConfigWorkloads, DrainState
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot, WorkerCopies
from placement_ac.core.selection.selection import is_forced_out

NO_REPORT: Final = WorkerCopies(age=inf)


@dataclass(frozen=True)
class LeavingCluster:
    """A cluster that is listed and no longer wanted."""

    snapshot: Snapshot
    workloads: ConfigWorkloads
    """Those of its config."""
    cluster: str
    name: str
    """Its MultiKueueCluster."""
    settles_in: float = 0.0
    """Seconds for which its removal waits because decisions flap, whatever runs there."""
    reopened: bool = False
    """Whether the gate has been closed for too long, for any clusters, and is open for a while."""
    is_replaced: bool = False
    """Whether it does not stand by: another cluster needs its slot, or it gets another name."""
    other_name: str = ""
    """The name that is listed with the next list at the latest, and by which Kueue is connected to the same
    worker: Kueue sees by it whatever copies are there."""

    @property
    def running(self) -> list[Workload]:
        return self.workloads.running.get(self.name, [])

    @property
    def waiting(self) -> list[Workload]:
        """The Workloads that are nominated there."""
        return self.workloads.waiting.get(self.name, [])

    @property
    def deadline_left(self) -> float | None:
        """Seconds until running Workloads are sent back; None: they are never sent back."""
        policy, config = self.snapshot.policy, self.snapshot.objects.config
        if policy.removal == IMMEDIATE or self.is_forced:
            return 0.0
        if policy.drain_deadline is None:
            return None
        since = config.draining.get(self.name) if config else None
        drained_for = (self.snapshot.now - since).total_seconds() if since else 0.0
        return max(0.0, policy.drain_deadline - drained_for)

    @property
    def is_forced(self) -> bool:
        return is_forced_out(self.snapshot, self.cluster)

    @property
    def sends_back(self) -> bool:
        """Whether Workloads that run there are to be sent back."""
        return bool(self.running) and self.deadline_left == 0

    @property
    def needs_gate(self) -> bool:
        """Whether it can be left only through the gate, for what runs or else for what waits there."""
        if self.running:
            return self.sends_back
        return bool(self.snapshot.workloads) and not self.snapshot.policy.dispatcher

    @property
    def is_gated(self) -> bool:
        """Whether the Workloads that run there, or else those that wait there, carry our check."""
        return all(map(self.workloads.gated, self.running or self.waiting))

    @property
    def is_lost(self) -> bool:
        """Whether its ManagedCluster is deleted, and its name is ours."""
        has_our_name = self.name == self.snapshot.hub.multikueue_cluster_name(
            self.snapshot.name, self.cluster
        )
        return has_our_name and self.cluster in self.snapshot.fleet.deleted_clusters

    @property
    def is_just_idle(self) -> bool:
        """Whether jobs have just ended: Kueue cleans up while the cluster is listed."""
        is_stable = self.snapshot.policy.unlist_after > 0
        drained = self.was_draining and not self.snapshot.workloads
        return drained and not is_stable and self.age(SinceKind.QUIET) < QUIET_SECONDS

    @property
    def was_draining(self) -> bool:
        """Whether the MultiKueueConfig marks it as draining, by our last write."""
        config = self.snapshot.objects.config
        return config is not None and self.name in config.draining

    def since(self, kind: SinceKind) -> Since:
        return Since(kind, self.cluster)

    def age(self, kind: SinceKind) -> float:
        return self.snapshot.age(self.since(kind))

    @property
    def passes_gate(self) -> bool:
        """Whether the gate has been closed for it."""
        return self.needs_gate and self.since(SinceKind.GATE_CLOSED_FOR) in self.snapshot.all_ages

    @property
    def nears_gate(self) -> bool:
        """Whether the gate is to be closed for it, and is not yet."""
        return self.needs_gate and not self.passes_gate

    @cached_property
    def to_take_back(self) -> list[Workload]:
        """The Workloads that are Ready though the gate is closed; with our dispatcher, nominated there."""
        if self.snapshot.policy.dispatcher:
            return self.waiting
        return [w for w in self.workloads.undecided if self.passes_gate and self.workloads.is_ready(w)]

    @property
    def is_taken_back(self) -> bool:
        """Whether Kueue has set every Workload that was sent back to Pending."""
        return all(map(self.workloads.is_pending, filter(self.workloads.gated, self.workloads.undecided)))

    @property
    def is_disconnected(self) -> bool:
        if self.other_name:
            return False
        observed = self.snapshot.objects.clusters.get(self.name)
        return observed is not None and observed.active is False

    @property
    def is_unreachable(self) -> bool:
        """Whether OCM cannot reach it, by any name."""
        return not self.other_name and self.cluster in self.snapshot.fleet.unreachable

    @property
    def report(self) -> WorkerCopies:
        """The copies that the cluster reported last and that Kueue sees by no other name."""
        if self.other_name:
            return WorkerCopies()
        return self.snapshot.fleet.worker_copies.get(self.name, NO_REPORT)

    @property
    def obstacle(self) -> str:
        """Why it stays listed for now, whatever is there: not connected, or not answering; "" if neither."""
        if self.is_disconnected:
            return DrainState.DISCONNECTED.message
        return self.report.problem and DrainState.NOT_ANSWERING.message.format(self.report.problem)

    def has_report(self, max_age: float = COPIES_FRESH_SECONDS) -> bool:
        return self.report.age <= max_age

    @property
    def is_confirmed_quiet(self) -> bool:
        """Whether the cluster has reported its copies after nothing had been there for a while."""
        return not self.snapshot.workloads or self.has_report(self.age(SinceKind.QUIET) - QUIET_SECONDS)

    @cached_property
    def copies(self) -> list[Workload]:
        """The unfinished Workloads of this config of which it holds copies, by a report that counts."""
        counts = self.report.copies and (self.nears_gate or self.is_confirmed_quiet)
        return [w for w in self.snapshot.workloads if w.meta.id in self.report.copies] if counts else []

    @property
    def copies_placed_elsewhere(self) -> list[Workload]:
        return [workload for workload in self.copies if workload.cluster not in ("", self.name)]

    @property
    def copies_without_our_check(self) -> list[Workload]:
        copies = () if self.snapshot.policy.dispatcher else self.copies
        return [w for w in copies if not w.cluster and not self.workloads.gated(w)]

    @property
    def must_be_asked(self) -> bool:
        """Whether it must report its copies before the gate closes: else that would be in vain."""
        return not self.has_report() or self.is_held_by_copies

    @property
    def is_held_by_copies(self) -> bool:
        """Whether it holds copies that Kueue alone can remove."""
        return bool(self.copies_placed_elsewhere or self.copies_without_our_check)

    @property
    def standby_left(self) -> float:
        """Seconds for which it may still stand by; 0 if it must leave."""
        config = self.snapshot.objects.config
        is_asked_to = config is not None and not {self.cluster, self.name}.isdisjoint(config.unlist)
        if is_asked_to or self.is_replaced or not self.snapshot.credentials.usable(self.cluster):
            return 0.0
        return max(self.snapshot.policy.unlist_after - self.age(SinceKind.STANDING_BY), 0.0)

    @property
    def stands_by(self) -> bool:
        """Whether it stays listed; it leaves after a fresh report: someone else may have nominated it."""
        snapshot, has_report = self.snapshot, self.is_confirmed_quiet
        if snapshot.workloads and snapshot.credentials.usable(self.cluster):
            has_report = has_report and self.has_report()
        return snapshot.policy.unlist_after > 0 and (self.standby_left > 0 or not has_report)
