"""
Build the status of each AdmissionCheck from a hub.

Pure. The state of a cluster follows from the controller's own rules and from Kueue's current list. If a right
is missing, the status says that the value is unknown.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.model import (
    LISTED_STATES,
    CheckStatus,
    ClusterRow,
    ClusterState,
    Credential,
    HeldRow,
    UnfitRow,
    WorkloadRow,
)
from kubectl_placement.status.queues import QueueIndex, condition_status, inactive_reason, workload_rows
from kubectl_placement.status.waiting import ListEvents, ages_with_gate, held_rows
from placement_ac.core.api.constants import (
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    WORKLOAD,
)
from placement_ac.core.api.decode import active_of, kueue_object
from placement_ac.core.api.objects import Check, KueueObject
from placement_ac.core.api.text import did_you_mean, joined
from placement_ac.core.decisions import SOURCE
from placement_ac.core.decisions.source import RankedCluster
from placement_ac.core.draining.state import DrainState
from placement_ac.core.inputs.state import Plan, Snapshot
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import judge
from placement_ac.core.plan.plan import keeps_objects, plan
from placement_ac.core.plan.targets import TargetClusters, select_targets

NEEDED: Final = (PLACEMENT, SOURCE.kind)
"""Without these kinds it is unknown which clusters are selected."""
NOT_SELECTED: Final = f"{SOURCE.name} no longer selects it"


def check_statuses(view: HubView, names: Collection[str] = ()) -> tuple[CheckStatus, ...]:
    """Return the status of each check of ours by name; only of `names`, if any are given."""
    queues, events = QueueIndex(view.dump), ListEvents(view.dump, view.now)
    return tuple(
        _CheckReader(view, queues, events, check).status()
        for check in view.our_checks
        if not names or check.meta.name in names
    )


def selection_unknown(dump: Dump) -> str:
    """Return why it is unknown which clusters are selected; "" if it is known."""
    return next(filter(None, map(dump.why_unknown, NEEDED)), "")


@dataclass(frozen=True)
class _CheckReader:
    """Reads the status of one check."""

    view: HubView
    queues: QueueIndex
    events: ListEvents
    check: Check

    @cached_property
    def snapshot(self) -> Snapshot:
        return self.view.check_snapshot(self.check)

    @cached_property
    def timed_snapshot(self) -> Snapshot:
        """With the ages that the objects show."""
        ages = ages_with_gate(self.snapshot)
        return replace(self.snapshot, all_ages=ages) if ages else self.snapshot

    @cached_property
    def targets(self) -> TargetClusters | None:
        """None: the check names no Placement, or the selection is unknown."""
        if not self.check.placement or self.unknown:
            return None
        snapshot = self.timed_snapshot
        is_same = snapshot is self.snapshot
        return self.view.targets(self.check.placement) if is_same else select_targets(snapshot)

    @cached_property
    def plan(self) -> Plan | None:
        """The controller's plan; None: the check names no Placement, or the selection is unknown."""
        return plan(self.timed_snapshot, self.targets) if self.targets else None

    @cached_property
    def unknown(self) -> str:
        """Why it is unknown which clusters are selected."""
        return selection_unknown(self.view.dump)

    @cached_property
    def unchanged_reason(self) -> str:
        """Why the controller leaves the list unchanged; "" if it does not."""
        verdict = judge(self.snapshot, self.targets) if self.targets else None
        return f"the list stays as it is: {verdict.reason}" if verdict and keeps_objects(verdict) else ""

    @cached_property
    def held(self) -> Mapping[str, str]:
        """The clusters that are kept because a mass loss is held → why."""
        return self.view.held_clusters(self.check.placement) if self.targets else {}

    @cached_property
    def listed(self) -> dict[str, str]:
        """MultiKueueCluster on Kueue's current list → its managed cluster."""
        config = self.snapshot.objects.config
        return {name: self.cluster_of(name) for name in config.listed} if config else {}

    def kueue_object(self, name: str) -> KueueObject | None:
        if name in self.snapshot.objects.clusters:
            return self.snapshot.objects.clusters[name]
        raw = self.view.dump.find(MULTIKUEUE_CLUSTER, name)
        return kueue_object(raw) if raw else None

    def cluster_of(self, name: str) -> str:
        """Return the managed cluster of a MultiKueueCluster."""
        return self.snapshot.hub.cluster_of(self.snapshot.name, name, self.kueue_object(name))

    def status(self) -> CheckStatus:
        check, snapshot = self.check, self.snapshot
        active, placement = check.active, snapshot.decisions.placement
        observed = active.observed_generation if active else None
        users = tuple(sorted(user.meta.name for user in snapshot.checks.multikueue))
        return CheckStatus(
            name=check.meta.name,
            active=condition_status(active),
            reason=active.reason if active else "",
            message=active.message if active else "",
            stale=observed is not None and observed < check.meta.generation,
            placement="/".join(placement.id) if placement else check.placement,
            placement_exists=placement is not None,
            placement_says=self._placement_says(),
            config=self._config,
            clusters=tuple(self._rows()),
            queues=self.queues.of((check.meta.name, *users)),
            users=users,
            jobs=self.jobs,
            held=self._held,
            unfit=tuple(self._unfit()),
            list_writes=self.events.writes(check.meta.name, snapshot),
        )

    @property
    def _held(self) -> tuple[HeldRow, ...]:
        if self.targets is None or self.plan is None:
            return ()
        held = self.plan.held
        reasons = {step.cluster: step.message for step in self.targets.drain.staying}
        return held_rows(held, self.check.meta.name, reasons)

    def _unfit(self) -> Iterator[UnfitRow]:
        """Yield the Workloads of this check that no cluster fits, by reason."""
        checks = {self.check.meta.name, *(user.meta.name for user in self.snapshot.checks.multikueue)}
        unfit = self.plan.unfit if self.plan else ()
        counts = Counter(
            why for job, why in unfit if any(entry.check in checks for entry in job.check_states)
        )
        yield from (UnfitRow(why, number) for why, number in counts.most_common())

    @property
    def _config(self) -> str | None:
        if self.snapshot.objects.config:
            return self.snapshot.objects.config.meta.name
        return None if self.view.dump.why_unknown(MULTIKUEUE_CONFIG) else ""

    @cached_property
    def jobs(self) -> tuple[WorkloadRow, ...]:
        ours = {check.meta.name for check in self.snapshot.checks.ours}
        return workload_rows(self.view, self.snapshot.workloads, self.cluster_of, ours)

    def _placement_says(self) -> str:
        if not self.check.placement:
            return ""
        decisions = self.snapshot.decisions
        return self.unknown or (decisions.says if decisions.placement else self._no_placement())

    def _no_placement(self) -> str:
        spaces, dump = self.view.settings.placement_namespace, self.view.dump
        names = (name for namespace, name in dump.by_key(PLACEMENT) if namespace in spaces)
        meant = did_you_mean(self.check.placement, names)
        return f"it does not exist in namespace {joined(spaces, ' or ')}{meant}"

    # -- clusters

    @cached_property
    def _counted(self) -> Counter[tuple[str, str]]:
        """(cluster, state) → number of Workloads."""
        return Counter(
            (cluster, job.state)
            for job in self.jobs
            for cluster in ((job.cluster,) if job.cluster else job.nominated)
        )

    def _rows(self) -> Iterator[ClusterRow]:
        """Yield the selected clusters, best first; then those that are listed but not selected."""
        snapshot, others = self.snapshot, dict(self.listed)
        if self.targets:
            others |= {step.name: step.cluster for step in self.targets.drain.steps}
            for rank, entry in enumerate(snapshot.decisions.clusters, 1):
                name = snapshot.hub.multikueue_cluster_name(snapshot.name, entry.cluster)
                others.pop(name, None)
                yield self._row(entry.cluster, name, rank, entry)
        for name, cluster in others.items():
            yield self._row(cluster, name)

    def _row(
        self, cluster: str, name: str, rank: int | None = None, ranked: RankedCluster | None = None
    ) -> ClusterRow:
        """Return the row of `cluster`, whose MultiKueueCluster is `name`."""
        view, config = self.view, self.snapshot.objects.config
        state, why = self._state(cluster, name, rank)
        raw = view.dump.find(MULTIKUEUE_CLUSTER, name)
        condition = active_of(raw) if raw else None
        absent = not raw and state in LISTED_STATES and view.dump.knows(MULTIKUEUE_CLUSTER)
        known = view.dump.knows(WORKLOAD)
        return ClusterRow(
            name=cluster,
            state=state,
            why=why,
            rank=rank,
            score=ranked.score if ranked and cluster in self.snapshot.decisions.scored else None,
            group=ranked.group if ranked else None,
            cluster_object=name,
            credential=self._credential(cluster, name),
            connected=condition_status(condition) if condition else "",
            connected_why=f"there is no MultiKueueCluster {name}" if absent else inactive_reason(condition),
            draining_since=config.draining.get(name) if config and state == "draining" else None,
            running=self._counted[cluster, "running"] if known else None,
            waiting=self._counted[cluster, "waiting"] if known else None,
        )

    def _state(self, cluster: str, name: str, rank: int | None) -> tuple[ClusterState, str]:
        targets = self.targets
        if targets is None:
            return "listed", self.unknown
        is_listed = name in self.listed
        if self.unchanged_reason and is_listed:
            return "listed", self.unchanged_reason
        if any(entry.name == name for entry in targets.to_list):
            if is_listed:
                fleet = self.snapshot.fleet
                window, why = fleet.maintenance.get(cluster), fleet.quarantined.get(cluster)
                remarks = (window.announcement if window else "", f"quarantined: {why}" if why else "")
                return "listed", "; ".join(filter(None, remarks))
            unknown = self.view.dump.why_unknown(MULTIKUEUE_CONFIG)
            return "selected", unknown or self.unchanged_reason or "it is not on Kueue's list yet"
        if cluster in targets.waiting_for_slot:
            return "waiting", "it waits for the slot of a cluster that is draining"
        left_out = targets.selection.left_out.get(cluster, "")
        state: ClusterState = "unusable" if left_out else "beyond"
        why = left_out or f"beyond the {self.snapshot.hub.clusters_max} clusters that Kueue takes"
        if rank is None:
            is_gone = cluster in self.snapshot.fleet.deleted_clusters
            why = "the ManagedCluster no longer exists" if is_gone else NOT_SELECTED
        if not is_listed and rank is not None:
            return state, why
        held = self.held.get(cluster, "")
        step = next((step for step in targets.drain.steps if step.name == name), None)
        unknown = self.view.dump.why_unknown(WORKLOAD)
        message = unknown or (step.message if step else "")
        stands_by = step is not None and step.state is DrainState.STANDING_BY and not unknown
        config = self.snapshot.objects.config
        if stands_by and config and name in config.draining:  # what only the controller and the worker know
            stands_by, message = False, "the controller still asks it for copies"
        return "standby" if stands_by else "draining", "; ".join(filter(None, (why, held, message)))

    def _credential(self, cluster: str, name: str) -> Credential:
        credentials, view = self.snapshot.credentials, self.view
        if not view.credentials_known:
            obj = self.kueue_object(name)
            kind, source = obj.source if obj else ("", "")
            return Credential(_kind(kind), source, None, view.credentials_unknown, known=False)
        credential = credentials.selected.get(cluster) or credentials.unselected.get(cluster)
        if isinstance(credential, CredentialSource):
            return Credential(credential.kind, credential.name, credential.expires)
        return Credential(problem=credential.why if credential else "")


def _kind(kind: str) -> Literal["Secret", "ClusterProfile", ""]:
    return "Secret" if kind == "Secret" else "ClusterProfile" if kind == "ClusterProfile" else ""
