"""
A hub as the controller sees it: its cache, filled from a dump, and the plan that results from its rules.

Pure, except that the cache is filled once. All waits count as over: the result is the final state, not the
steps to it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from kubectl_placement.hub.dump import Dump, MissingRight, Object, condition_of
from kubectl_placement.hub.kinds import PROVISIONED_KINDS
from kubectl_placement.hub.setup_knowledge import (
    sets_up,
    setup_policy,
    setup_unknown,
    template_names,
)
from kubectl_placement.scheduling import Fleet, SchedulingResult, schedule
from placement_ac.cache.store import Cache
from placement_ac.config.policy import (
    hub_facts,
    placement_policy,
    provisioning_policy,
    worker_policy_rules,
)
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    ANNOTATION_DRAINING,
    ANNOTATION_SECOND_NAMES,
    CLUSTER_SET,
    KUEUE_VERSIONS,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    LABEL_PLACEMENT,
    MANAGED_BY,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SECRET,
    SET_BINDING,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.decode import check, kueue_object
from placement_ac.core.api.fields import Key, Obj, get_list, get_str, get_value, key_of
from placement_ac.core.api.objects import AppliedFields, Check, KueueObject
from placement_ac.core.credentials.discovery import SOURCES
from placement_ac.core.decisions import SOURCE
from placement_ac.core.decisions.source import Decision
from placement_ac.core.inputs import state
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.rights import UNKNOWN_KUEUE
from placement_ac.core.kubeconfig.source import CredentialsByCluster, CredentialSource
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import TargetClusters, select_targets
from placement_ac.core.selection.mass_loss import hold_mass_loss
from placement_ac.core.selection.selection import listed_clusters

SCHEDULING_KINDS: Final = (MANAGED_CLUSTER, CLUSTER_SET, SET_BINDING, PLACEMENT_SCORE, PLACEMENT_DECISION)
"""The kinds that OCM's scheduler reads, in the order of `Fleet`."""
OCM_DECIDES: Final = SOURCE.kind == PLACEMENT_DECISION
"""Whether `schedule` computes decisions: those of another source are only read."""
_LONG: Final = 1e6
"""Seconds; longer than any wait."""


@dataclass(frozen=True)
class _Elapsed(Mapping[state.Since, float]):
    """Ages in which all of these kinds are old, and no other has begun."""

    kinds: Collection[state.SinceKind]

    def __getitem__(self, since: state.Since) -> float:
        if since.kind in self.kinds:
            return _LONG
        raise KeyError(since)

    def __iter__(self) -> Iterator[state.Since]:
        return iter(())

    def __len__(self) -> int:
        return 0


SETTLED: Final[state.Ages] = _Elapsed(
    (
        state.SinceKind.REMOVAL_UNSETTLED,
        state.SinceKind.DECISIONS_DOUBTED,
        state.SinceKind.MASS_LOSS,
        state.SinceKind.LIST_ORDER,
        state.SinceKind.CREDENTIALS_MISSING,
        state.SinceKind.CREDENTIALS_UNNEEDED,
        state.SinceKind.SETUP_UNNEEDED,
        state.SinceKind.FACTS_AWAITED,
        state.SinceKind.SECOND_NAME,
    )
)
"""Waits for which only time is needed are over, and no drain has begun."""
PASSED: Final[state.Ages] = _Elapsed(frozenset(state.SinceKind))
"""Every wait is over, those of draining too."""


def all_elapsed_but(*kinds: state.SinceKind) -> state.Ages:
    """Return ages in which all are old but those of these kinds."""
    return _Elapsed(frozenset(state.SinceKind) - set(kinds))


Changes = Mapping[Kind, Mapping[Key, Object | None]]
"""Objects that replace the existing ones; None deletes one."""


@dataclass(frozen=True)
class HubView:
    """One hub at one time. `now`: aware, UTC."""

    dump: Dump
    settings: Settings
    now: datetime
    queue_facts: Mapping[str, WorkerFacts] | None = None
    """MultiKueueCluster → the queues of its worker; None: no worker was asked."""
    unmanaged: Mapping[str, str] = field(default_factory=dict)
    """Namespace → what to do, as the hub's Kueue leaves its jobs alone; only those that were looked at."""
    settings_known: bool = True
    """Whether the settings are those of a controller: else they are the defaults."""
    kueue_resources: Obj | None = None
    """The part `resources` of the configuration of the hub's Kueue; None: it was not read."""
    templates_read: bool = False
    """Whether the ConfigMaps in `template_names` were read, as far as the caller may."""
    _snapshots: dict[str, state.Snapshot] = field(default_factory=dict, init=False, repr=False, compare=False)
    _targets: dict[str, TargetClusters] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def facts(self) -> state.HubFacts:
        """The hub's limits, versions and name format."""
        served = {kind: kind.at(KUEUE_VERSIONS[0]) for kind in (ADMISSION_CHECK, MULTIKUEUE_CLUSTER)}
        schemas = self.dump.schemas.items()
        schema = next((schema for resource, schema in schemas if resource.of == MULTIKUEUE_CONFIG), None)
        return hub_facts(self.settings, served | dict(self.dump.served), schema, UNKNOWN_KUEUE)

    @cached_property
    def cache(self) -> Cache:
        """The controller's cache; a kind that is unknown counts as empty."""
        provisioning = replace(
            provisioning_policy(self.settings),
            served={ACCOUNT, PERMISSION} <= self.dump.served.keys(),
            rules=worker_policy_rules(self.settings, UNKNOWN_KUEUE),
        )
        cache = Cache(
            self.facts,
            kueue_namespace=self.settings.kueue_namespace,
            methods=self.settings.credentials,
            policy=placement_policy(self.settings),
            provisioning=provisioning,
            setup=setup_policy(self.dump, self.settings, self.setup_unknown),
        )
        for kind in cache.kinds:
            # Only of a kind that is served and completely known can an object be reported as missing.
            known = self.dump.knows(kind) and kind in self.dump.served
            cache.load(kind, self.dump.of(kind), "0" if known else "")
        return cache

    @property
    def sets_up(self) -> bool:
        """Whether the controller sets workers up, and its ManifestWorks are known."""
        return sets_up(self.dump, self.settings)

    @property
    def template_names(self) -> tuple[str, ...]:
        """The ConfigMaps in Kueue's namespace from which the queues on workers are made, by name."""
        return template_names(self.our_checks, self.settings)

    @property
    def setup_unknown(self) -> str:
        """Why it is unknown what the controller puts onto workers; "" if it is known."""
        return setup_unknown(self.dump, self.settings, self.template_names, read=self.templates_read)

    @cached_property
    def fleet(self) -> Fleet:
        """The objects that OCM's scheduler reads."""
        clusters, sets, bindings, scores, decisions = (self.dump.by_key(kind) for kind in SCHEDULING_KINDS)
        return Fleet(clusters, sets, bindings, scores, decisions)

    # -- what there is

    @property
    def missing_rights(self) -> tuple[MissingRight, ...]:
        """The missing rights; those to what the controller makes for clusters only if it makes any."""
        provisions, sets = (
            self.settings.credentials_provision != "none",
            self.settings.worker_setup != "none",
        )
        ignored = (*(() if provisions else PROVISIONED_KINDS), *(() if sets else (MANIFEST_WORK,)))
        return tuple(right for right in self.dump.missing if right.kind not in ignored)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Every AdmissionCheck, whichever controller answers it, by name."""
        checks = (check(obj) for obj in self.dump.of(ADMISSION_CHECK))
        return tuple(sorted(checks, key=lambda check: check.meta.name))

    @cached_property
    def our_checks(self) -> tuple[Check, ...]:
        """The AdmissionChecks that this controller answers, by name."""
        return tuple(check for check in self.checks if check.ours)

    @cached_property
    def cluster_objects(self) -> Mapping[str, KueueObject]:
        """Every MultiKueueCluster by name."""
        return {(obj := kueue_object(raw)).meta.name: obj for raw in self.dump.of(MULTIKUEUE_CLUSTER)}

    @property
    def credentials_known(self) -> bool:
        """Whether it is known which clusters have credentials."""
        return not self.credentials_unknown

    @cached_property
    def credentials_unknown(self) -> str:
        """Why it is unknown which clusters have credentials; "" if it is known.

        A file may have no ClusterProfiles because the hub has none; Secrets are only missing if left out.
        """
        needed = [kind for method in self.settings.credentials for kind in SOURCES[method].reads]
        if not self.dump.live and SECRET in needed:
            return self.dump.why_unknown(SECRET)
        return next(filter(None, map(self.dump.why_unknown, needed)), "")

    def placement(self, name: str) -> Object | None:
        """Return the Placement of that name that the controller uses."""
        used = self.snapshot(name).decisions.placement
        return self.dump.find(PLACEMENT, name, used.namespace) if used else None

    # -- what the controller decides

    def snapshot(self, name: str) -> state.Snapshot:
        """Return the inputs of the controller's decision for a Placement.

        If credentials are unknown, every selected cluster counts as having some.
        """
        if name not in self._snapshots:
            key, facts = state.Key("placement", name), self.queue_facts
            snapshot = self.cache.snapshot(key, self.now, SETTLED, queue_facts=facts)
            self._snapshots[name] = self._with_assumptions(snapshot)
        return self._snapshots[name]

    def check_snapshot(self, check: Check) -> state.Snapshot:
        """Return the inputs of the decision for a check, even if it names no Placement."""
        if check.placement:
            return self.snapshot(check.placement)
        return self.cache.snapshot(state.Key("check", check.meta.name), self.now, SETTLED)

    def _with_assumptions(self, snapshot: state.Snapshot) -> state.Snapshot:
        if not self.dump.live:
            clusters = {name: _as_applied(obj) for name, obj in snapshot.objects.clusters.items()}
            config = _as_applied(snapshot.objects.config) if snapshot.objects.config else None
            snapshot = replace(snapshot, objects=replace(snapshot.objects, config=config, clusters=clusters))
        if self.credentials_known:
            return snapshot
        known = snapshot.credentials
        usable = state.ClusterCredentials(_assume_usable(known.selected), _assume_usable(known.unselected))
        return replace(snapshot, credentials=usable)

    def targets(self, name: str) -> TargetClusters:
        """Return the clusters of a Placement that the controller lists, drains or leaves out."""
        if name not in self._targets:
            self._targets[name] = select_targets(self.snapshot(name))
        return self._targets[name]

    def held_clusters(self, name: str) -> Mapping[str, str]:
        """Return the clusters of a Placement that are kept because a mass loss is held → why.

        Only the controller knows for how long: listed clusters that are not draining count as held.
        """
        snapshot = self.snapshot(name)
        long_ago = snapshot.now + timedelta(seconds=snapshot.policy.loss_grace)  # since when others drain
        snapshot = replace(snapshot, all_ages={}, now=long_ago)
        guarded = hold_mass_loss(snapshot, self.targets(name).selection, listed_clusters(snapshot))
        return dict.fromkeys((cluster.cluster for cluster in guarded.held), guarded.why)

    def plan(self, name: str) -> state.Plan:
        """Return the controller's plan for a Placement."""
        return plan(self.snapshot(name))

    @cached_property
    def decisions(self) -> Mapping[Key, tuple[Decision, ...]]:
        """Namespace and name of a Placement → the decisions that name it there, whoever made them."""
        by_placement: dict[Key, list[Decision]] = {}
        for decision in map(SOURCE.read, self.dump.of(SOURCE.kind)):
            by_placement.setdefault((decision.meta.namespace, decision.placement), []).append(decision)
        return {key: tuple(decisions) for key, decisions in by_placement.items()}

    @cached_property
    def writes_scores(self) -> bool:
        """Whether this hub's OCM writes scores into decisions (proposed upstream)."""
        return any(
            "score" in entry
            for decision in self.dump.of(PLACEMENT_DECISION)
            for entry in get_list(decision, "status", "decisions")
        )

    def schedule(self, placement: Object, fleet: Fleet | None = None) -> SchedulingResult:
        """Return what OCM's scheduler decides for a Placement here, or in another `fleet`."""
        return schedule(placement, fleet or self.fleet, self.now, write_scores=self.writes_scores)

    # -- jobs

    @cached_property
    def _running(self) -> Mapping[str, tuple[Key, ...]]:
        """Cluster → the unfinished Workloads that are placed there, whatever their checks."""
        workloads: dict[str, list[Key]] = {}
        for workload in self.dump.of(WORKLOAD):
            name = get_str(workload, "status", "clusterName")
            if name and condition_of(workload, "Finished").get("status") != "True":
                workloads.setdefault(self.managed_cluster_of(name), []).append(key_of(workload))
        return {cluster: tuple(keys) for cluster, keys in workloads.items()}

    def managed_cluster_of(self, name: str) -> str:
        """Return the cluster of a MultiKueueCluster, whichever Placement it is of."""
        placements = (check.placement for check in self.our_checks if check.placement)
        of = next((placement for placement in placements if self.facts.is_for(placement, name)), "")
        return self.facts.cluster_of(of, name, self.cluster_objects.get(name))

    def running_for_others(self, placement: str, cluster: str) -> tuple[Key, ...]:
        """Return the Workloads that run on a cluster and have none of the Placement's checks."""
        mine = {workload.meta.id for workload in self.snapshot(placement).workloads}
        return tuple(key for key in self._running.get(cluster, ()) if key not in mine)

    # -- the effect of changes

    def with_changes(self, changes: Changes) -> tuple["HubView", set[state.Key]]:
        """Return the hub with these changes, and the controller's keys that they affect.

        Unchanged data is shared, so the cost depends on the size of the change.
        """
        if not any(changes.values()):
            return self, set()
        tables = {kind: _table_with(self.dump.by_key(kind), objects) for kind, objects in changes.items()}
        dump = self.dump.with_objects({kind: tuple(table.values()) for kind, table in tables.items()})
        changed, cache = replace(self, dump=dump), self.cache.copy()
        watched = cache.kinds
        touched: set[state.Key] = set()
        for kind, objects in changes.items():
            for key in objects if kind in watched else ():
                if obj := tables[kind].get(key):
                    touched |= cache.put(kind, obj)
                elif there := self.dump.by_key(kind).get(key):
                    touched |= cache.remove(kind, there)
        fleet = {
            field: tables.get(kind, getattr(self.fleet, field))
            for field, kind in zip(Fleet.__dataclass_fields__, SCHEDULING_KINDS, strict=False)
        }
        after = Fleet(**fleet, memo=self.fleet.memo)
        return _prepared(changed, cache, after, self.facts), touched

    def with_queue_facts(self, facts: Mapping[str, WorkerFacts]) -> "HubView":
        """Return the hub with the queues of these workers."""
        return _prepared(replace(self, queue_facts=facts), self.cache, self.fleet, self.facts)


def _prepared(view: HubView, cache: Cache, fleet: Fleet, facts: state.HubFacts) -> HubView:
    """Return the view with these, which cached_property need not compute then."""
    vars(view).update({"cache": cache, "fleet": fleet, "facts": facts})
    return view


def _assume_usable(credentials: CredentialsByCluster) -> CredentialsByCluster:
    return {
        cluster: credential
        if isinstance(credential, CredentialSource)
        else CredentialSource("Secret", f"multikueue-{cluster}")
        for cluster, credential in credentials.items()
    }


def _as_applied(obj: KueueObject) -> KueueObject:
    """Treat our labels as our apply: `kubectl get -o yaml` omits managedFields."""
    labels, annotations = obj.meta.labels, obj.meta.annotations
    if obj.applied_fields.applied or labels.get(LABEL_MANAGED_BY) != MANAGED_BY:
        return obj
    mine = frozenset(labels) & {LABEL_MANAGED_BY, LABEL_PLACEMENT, LABEL_CLUSTER}
    owned = AppliedFields(
        True,
        mine,
        frozenset(obj.owners),
        ANNOTATION_DRAINING in annotations,
        clusters=True,
        second_names=ANNOTATION_SECOND_NAMES in annotations,
    )
    return replace(obj, applied_fields=owned)


def _table_with(table: Mapping[Key, Object], changes: Mapping[Key, Object | None]) -> dict[Key, Object]:
    """Return the table with the changes; a changed object gets a newer resourceVersion."""
    copy = dict(table)
    for key, obj in changes.items():
        there = copy.pop(key, None)
        if obj is not None:
            version = str(get_value(there, "metadata", "resourceVersion") or "")
            later = str(int(version) + 1) if version.isdecimal() else f"{version}+"
            copy[key] = obj | {"metadata": obj["metadata"] | {"resourceVersion": later}}
    return copy
