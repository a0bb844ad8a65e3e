"""
One Placement on a hub before or after a change: its decisions, and Kueue's final list.

Pure. The controller's own rules decide, with every wait over.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import PASSED, HubView
from kubectl_placement.plan import plan_report
from placement_ac.core.api.constants import PLACEMENT, PLACEMENT_SCORE
from placement_ac.core.api.decode import placement, scores
from placement_ac.core.api.fields import Key, get_str
from placement_ac.core.api.schemas import Condition
from placement_ac.core.decisions import SOURCE
from placement_ac.core.decisions.source import Decision, RankedCluster
from placement_ac.core.inputs.state import Plan, Snapshot, Verdict, WorkerCopies
from placement_ac.core.plan.conditions import is_taken
from placement_ac.core.plan.plan import keeps_objects, plan
from placement_ac.core.plan.targets import TargetClusters, select_targets
from placement_ac.core.selection.selection import listed_clusters


def placement_key(view: HubView, name: str) -> Key:
    """Return the key of the Placement of that name that the controller uses, or would use."""
    there = view.placement(name)
    return (get_str(there, "metadata", "namespace") if there else view.settings.placement_namespace[0]), name


@dataclass(frozen=True)
class PlacementSide:
    """One Placement on the hub before or after the change."""

    view: HubView
    key: Key

    @cached_property
    def placement(self) -> Object:
        return self.view.dump.find(PLACEMENT, self.key[1], self.key[0]) or {}

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        found = self.view.decisions.get(self.key, ()) if self.placement else ()
        return tuple(sorted(found, key=lambda one: (one.group, _number(one))))

    @cached_property
    def decided_clusters(self) -> tuple[str, ...]:
        entries = (entry for decision in self.decisions for entry in decision.decided or ())
        return tuple(dict.fromkeys(entry.cluster_name for entry in entries))

    @cached_property
    def ranked(self) -> tuple[RankedCluster, ...]:
        """The selected clusters, in the controller's order."""
        if not self.placement:
            return ()
        read = placement(self.placement)
        ids = [
            (cluster, prioritizer.resource_name)
            for cluster in self.decided_clusters
            for prioritizer in read.prioritizers
        ]
        found = {id_: self.view.dump.find(PLACEMENT_SCORE, id_[1], id_[0]) for id_ in ids}
        table = {id_: scores(raw) for id_, raw in found.items() if raw}
        return SOURCE.decide(read, self.decisions, table, self.view.now, lambda _: 0.0).clusters

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The controller's inputs; None: no check of ours names this Placement."""
        if placement_key(self.view, self.key[1]) != self.key:
            return None
        seen = self.view.snapshot(self.key[1])
        if not seen.checks.ours and (seen.objects.config is None or self.foreign_list):
            return None
        no_copies = dict.fromkeys(seen.objects.clusters, WorkerCopies())  # that the hub does not know of
        return replace(seen, all_ages=PASSED, fleet=replace(seen.fleet, worker_copies=no_copies))

    @cached_property
    def foreign_list(self) -> tuple[str, ...]:
        """Kueue's list, if the MultiKueueConfig of this name is owned by someone else; () if not."""
        seen = self.view.snapshot(self.key[1])
        if seen.objects.config is None or not is_taken(seen.objects.config, seen.name, ""):
            return ()
        objects = self.view.cluster_objects
        return tuple(
            seen.hub.cluster_of(seen.name, name, objects.get(name)) for name in seen.objects.config.listed
        )

    @cached_property
    def targets(self) -> TargetClusters | None:
        return select_targets(self.snapshot) if self.snapshot and self.snapshot.checks.ours else None

    @cached_property
    def plan(self) -> Plan:
        return plan(self.snapshot, self.targets) if self.snapshot else Plan()

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Kueue's final list; without a check of ours, the selected clusters, best first."""
        if self.snapshot is None:
            return tuple(one.cluster for one in self.ranked)
        if self.foreign_list:
            return self.foreign_list
        if self.snapshot.checks.moved:  # it goes when the jobs there have ended
            return ()
        names = self.plan.config.clusters if self.plan.config else ()
        as_written = tuple(self.listed.get(name, name) for name in names)
        verdict = next(iter(self.plan.verdicts.values()), None)
        if self.targets is None or (verdict and keeps_objects(verdict)):
            return as_written
        stay = {entry.cluster for entry in self.targets.to_list} | set(self.targets.waiting_for_slot)
        if stay == set(self.listed.values()) and self.plan.config:
            return as_written
        return tuple(one for one in self.targets.selection.ranked if one in stay)

    @cached_property
    def listed(self) -> dict[str, str]:
        """MultiKueueCluster on Kueue's list → its cluster."""
        found = listed_clusters(self.snapshot) if self.snapshot else {}
        return {name: cluster for cluster, name in found.items()}

    def comparable(self) -> tuple[object, ...]:
        """Return everything whose change is reported."""
        leaving = self.targets.drain.staying if self.targets else ()
        return (
            self.order,
            {name: condition_in_report(one) for name, one in self.plan.verdicts.items()},
            self.plan.config,
            self.plan.clusters,
            [one.cluster for one in leaving],
        )


def _number(decision: Decision) -> int:
    number = decision.meta.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def condition_in_report(one: Condition | Verdict) -> plan_report.CheckCondition:
    return plan_report.CheckCondition(one.status, one.reason, one.message)
