"""
The steps of an explanation, and the Placement that they are about.

Pure. The steps are those of OCM's scheduler, then the controller's, then Kueue's, in order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import OCM_DECIDES, SCHEDULING_KINDS, HubView
from kubectl_placement.scheduling import SchedulingResult
from kubectl_placement.scheduling.predicates import Predicate, predicates_of
from kubectl_placement.scheduling.sets import Pool, pool_for
from kubectl_placement.scheduling.tolerations import TaintContext, taint_context
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import CheckStatus, ClusterRow
from placement_ac.core.api.constants import CLUSTER_SET, MANAGED_CLUSTER, Kind
from placement_ac.core.api.decode import placement as decode_placement
from placement_ac.core.api.fields import Obj, key_of
from placement_ac.core.api.objects import Check
from placement_ac.core.decisions import SOURCE
from placement_ac.core.inputs.state import Plan, Snapshot
from placement_ac.core.plan.targets import TargetClusters


class StepResult(StrEnum):
    """The result of a step."""

    PASSED = "passed"
    FAILED = "failed"
    NOTE = "note"
    """For information: it decides nothing."""
    UNKNOWN = "unknown"
    """The objects that it depends on are unknown."""


class StepName(StrEnum):
    """The steps, in the order in which they decide."""

    PARAMETERS = "Parameters"
    PLACEMENT = "Placement"
    CLUSTER = "ManagedCluster"
    CLUSTER_SET = "ClusterSet"
    PREDICATE = "Predicate"
    TAINT = "TaintToleration"
    MISCONFIGURED = "Misconfigured"
    SCORE = "Score"
    NUMBER = "NumberOfClusters"
    GROUP = "DecisionGroup"
    DECISION = "Decision"
    CHECKS = "AdmissionChecks"
    ORDER = "Order"
    NAME = "Name"
    MAINTENANCE = "Maintenance"
    CREDENTIAL = "Credential"
    IDENTITY = "Identity"
    FITNESS = "Fitness"
    SLOT = "Slot"
    GUARD = "Guard"
    DRAINING = "Draining"
    LIST = "List"
    CONNECTED = "Connected"
    CONDITION = "Condition"
    QUEUE = "Queue"

    def passed(self, sentence: str, source: str = "") -> "ExplainStep":
        return ExplainStep(self, StepResult.PASSED, sentence, source)

    def failed(self, sentence: str, source: str = "") -> "ExplainStep":
        return ExplainStep(self, StepResult.FAILED, sentence, source)

    def note(self, sentence: str, source: str = "") -> "ExplainStep":
        return ExplainStep(self, StepResult.NOTE, sentence, source)

    def unknown(self, sentence: str, source: str = "") -> "ExplainStep":
        return ExplainStep(self, StepResult.UNKNOWN, sentence, source)


@dataclass(frozen=True, slots=True)
class ExplainStep:
    """One step. `source`: the object or setting that decides it, "" if there is none."""

    step: StepName
    outcome: StepResult
    sentence: str
    source: str = ""


@dataclass(frozen=True)
class PlacementView:
    """A Placement on a hub, and what OCM and the controller decide for it."""

    view: HubView
    placement: Object

    @cached_property
    def namespace(self) -> str:
        return key_of(self.placement)[0]

    @cached_property
    def name(self) -> str:
        return key_of(self.placement)[1]

    @property
    def label(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    # -- OCM

    @cached_property
    def unknown_kinds(self) -> tuple[Kind, ...]:
        """The unknown kinds that OCM's scheduler needs."""
        # Only these two exist on every OCM hub: a dump without them is incomplete.
        needed = SCHEDULING_KINDS if self.view.dump.live else (MANAGED_CLUSTER, CLUSTER_SET)
        return tuple(kind for kind in needed if not self.view.dump.knows(kind))

    @cached_property
    def scheduling(self) -> SchedulingResult:
        return self.view.schedule(self.placement)

    @cached_property
    def pool(self) -> Pool:
        """The clusters that the Placement may select; only if `scheduling` has no hold."""
        return pool_for(self.placement, self.view.fleet)

    @cached_property
    def predicates(self) -> list[Predicate]:
        """Only if they are not misconfigured."""
        return predicates_of(self.placement)

    @cached_property
    def taint_context(self) -> TaintContext:
        return taint_context(self.placement, self.view.fleet, self.view.now)

    @cached_property
    def decisions(self) -> Mapping[str, tuple[str, int]] | None:
        """Cluster → the object that selects it, and its score there; None: nothing is decided yet."""
        there = self.view.decisions.get((self.namespace, self.name), ())
        selections: dict[str, tuple[str, int]] = {}
        for decision in there:
            label = f"{SOURCE.kind.kind} {'/'.join(decision.meta.id)}"
            for entry in decision.decided or ():
                selections.setdefault(entry.cluster_name, (label, entry.score))
        written = any(decision.decided is not None or decision.problem for decision in there)
        # OCM gives a new decision without clusters no status: the Placement's says that none is selected.
        none_is_selected = not selections and decode_placement(self.placement).selected == 0
        return selections if written or none_is_selected else None

    def predicts_selection(self, cluster: str) -> bool | None:
        """Whether OCM would select the cluster; None: unknown, or another source decides."""
        if not OCM_DECIDES or self.unknown_kinds or self.scheduling.hold or self.scheduling.unsupported:
            return None
        verdict = self.scheduling.clusters.get(cluster)
        return verdict is not None and verdict.dropped is None and verdict.group is not None

    # -- the controller

    @cached_property
    def is_used(self) -> bool:
        """Whether the controller uses this Placement: no Placement of the same name takes precedence."""
        placement = self.view.placement(self.name)
        return placement is not None and key_of(placement) == key_of(self.placement)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The checks of ours that name it."""
        return tuple(check for check in self.view.our_checks if self.is_used and check.placement == self.name)

    @cached_property
    def snapshot(self) -> Snapshot:
        return self.view.snapshot(self.name)

    @cached_property
    def targets(self) -> TargetClusters:
        return self.view.targets(self.name)

    @cached_property
    def held_clusters(self) -> Mapping[str, str]:
        """The clusters that are kept because a mass loss is held → why."""
        return self.view.held_clusters(self.name)

    @cached_property
    def plan(self) -> Plan:
        return self.view.plan(self.name)

    @cached_property
    def status(self) -> CheckStatus | None:
        """The status of its first check; all its checks have the same clusters and the same list."""
        statuses = check_statuses(self.view, (self.checks[0].meta.name,)) if self.checks else ()
        return statuses[0] if statuses else None

    @cached_property
    def rows(self) -> Mapping[str, ClusterRow]:
        """The selected clusters, best first; then those that are listed but not selected."""
        return {row.name: row for row in self.status.clusters} if self.status else {}


def reason_and_message(condition: Obj) -> str:
    """Return reason and message of a condition."""
    return f"{condition.get('reason') or ''}: {condition.get('message') or ''}".strip(": ")
