"""
The cache: what has been seen of the hub.

Watches and lists fill it, reconcilers read it. No I/O, no clock.
`put`, `remove` and `replace` return the keys that the change touches.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from cachetools import LRUCache

from placement_ac.cache.capacity_report import CapacityReports
from placement_ac.cache.credentials import CredentialLookup
from placement_ac.cache.failures import ends_by_cluster
from placement_ac.cache.index import Id
from placement_ac.cache.listing import EVERYWHERE, Listings, Scope, is_later, is_newer
from placement_ac.cache.mapping import all_keys, keys_for, score_keys
from placement_ac.cache.score_reports import ScoreReports
from placement_ac.cache.snapshot import SnapshotBuilder
from placement_ac.cache.tables import NO_SETUP, Tables, empty_tables, kinds_for, namespaces_for
from placement_ac.cache.worker_setup import WorkerSetups
from placement_ac.cache.workloads import gave_up
from placement_ac.core.api import decode, objects
from placement_ac.core.api.constants import (
    ANNOTATION_CLUSTER_NAMES,
    CREDENTIAL_METHODS,
    MANIFEST_WORK,
    PLACEMENT_SCORE,
    SECRET,
    WORKLOAD,
    CredentialMethod,
    Kind,
)
from placement_ac.core.api.fields import Obj
from placement_ac.core.credentials.source import ALWAYS
from placement_ac.core.decisions import SOURCE
from placement_ac.core.decisions.source import DecisionSource
from placement_ac.core.failures.ends import end_of
from placement_ac.core.failures.memory import FailureMemory
from placement_ac.core.inputs.identity import Identities
from placement_ac.core.inputs.kinds import SETUP_KINDS
from placement_ac.core.inputs.provisioning import ProvisioningInputs, ProvisioningPolicy
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.score_reports import ScorePolicy
from placement_ac.core.inputs.state import (
    Ages,
    HubFacts,
    Key,
    PlacementPolicy,
    ProbeResult,
    Snapshot,
    WorkerCopies,
)
from placement_ac.core.inputs.unknown_copies import UnknownCopiesByCredentials
from placement_ac.core.inputs.worker_setup import WorkerSetupInputs, WorkerSetupPolicy
from placement_ac.core.kubeconfig.servers import AllowedServers
from placement_ac.core.worker_setup.readiness import SetupState

DELETED_REMEMBERED: Final = 10_000
"""How many deleted objects are remembered: a list that is under way may still hold them."""


@dataclass(slots=True)
class _State:
    """All that changes in a cache."""

    tables: Tables
    listings: Listings
    errors: dict[str, str]
    """Cluster → why its credentials could not be written."""
    setup_errors: dict[str, str]
    """Cluster → why its ManifestWork could not be written."""
    setups: dict[str, SetupState]
    """Cluster → whether its worker is ready, until a change touches its key."""
    deleted: LRUCache[str, bool]
    """The uids of objects that are deleted, and of finished Workloads."""
    to_provision: dict[str, frozenset[str]]
    """Placement → the clusters that get credentials, if not all that it selects do."""
    last_snapshot_at: datetime = ALWAYS
    """The time of the last snapshot of any key."""

    def copy(self) -> "_State":
        deleted: LRUCache[str, bool] = LRUCache(DELETED_REMEMBERED)
        deleted.update(dict.fromkeys(self.deleted, True))
        return _State(
            self.tables.copy(),
            self.listings.copy(),
            dict(self.errors),
            dict(self.setup_errors),
            {},
            deleted,
            dict(self.to_provision),
            self.last_snapshot_at,
        )


class Cache:
    """The hub as seen so far. Not thread-safe: one event loop owns it."""

    def __init__(
        self,
        hub: HubFacts | None = None,
        *,
        kueue_namespace: str = "kueue-system",
        methods: Sequence[CredentialMethod] = CREDENTIAL_METHODS,
        policy: PlacementPolicy | None = None,
        provisioning: ProvisioningPolicy | None = None,
        setup: WorkerSetupPolicy = NO_SETUP,
        providers: AllowedServers | None = None,
        source: DecisionSource = SOURCE,
        capacity: bool = False,
        reports: ScorePolicy | None = None,
    ) -> None:
        """`providers`: those that Kueue supports; None: unknown. `capacity`: whether any are watched."""
        self._reports = reports or ScorePolicy()
        hub, provisioning = hub or HubFacts(), provisioning or ProvisioningPolicy()
        self._policy, self._methods, self._providers = policy or PlacementPolicy(), methods, providers
        avoid_for = self._policy.avoid_after_failure
        by_kind = empty_tables(
            source,
            provisioning,
            dispatches=self._policy.dispatcher,
            sets_up=setup.enabled,
            remembers=avoid_for > 0,
            reports=self._reports.enabled,
            capacity=capacity,
        )
        failures = FailureMemory(avoid_for) if avoid_for > 0 else None
        self.kinds = kinds_for(provisioning, source, setup, capacity=capacity, reports=self._reports.enabled)
        """The kinds that are watched."""
        self._use(
            _State(
                Tables(
                    hub,
                    source,
                    provisioning,
                    setup,
                    kueue_namespace,
                    by_kind,
                    failures=failures,
                ),
                Listings(self.kinds, namespaces_for(hub.namespaces, kueue_namespace, source)),
                {},
                {},
                {},
                LRUCache(DELETED_REMEMBERED),
                {},
            )
        )

    def _use(self, state: _State) -> None:
        self._state, self._tables, self._listings = state, state.tables, state.listings
        self.credentials = CredentialLookup(
            state.tables, self._methods, self._providers, state.errors, state.to_provision
        )
        self.setups = WorkerSetups(state.tables, self.credentials, state.setup_errors, state.setups)
        self.capacity = CapacityReports(state.tables)
        self.scores = ScoreReports(state.tables, self.credentials, self._reports)
        self._snapshots = SnapshotBuilder(
            state.tables, state.listings, self.credentials, self.setups, self._policy
        )

    def copy(self) -> "Cache":
        """Return a cache that holds the same; later changes of either stay its own."""
        other: Cache = copy(self)
        other._use(self._state.copy())
        return other

    # -- what is known

    @property
    def has_synced(self) -> bool:
        """Whether every kind has been listed wherever it is watched: before that, nothing may be decided."""
        return self._listings.complete

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Everything that must be listed: each kind, in one namespace or EVERYWHERE."""
        return self._listings.scopes

    def unsynced(self) -> list[str]:
        """Return what has not been listed yet, in words."""
        return self._listings.unsynced()

    def namespaces(self, kind: Kind) -> tuple[str, ...]:
        """Return where a kind is watched: its namespaces, or EVERYWHERE."""
        return self._listings.namespaces(kind)

    def holds(self, kind: Kind, id_: Id) -> bool:
        return id_ in self._tables.by_kind[kind].objects

    def keys_of(self, kind: Kind, id_: Id) -> set[Key]:
        """Return the keys that a known object touches, whatever may change in it; none if it is unknown."""
        return self._keys_for(kind, self._tables.by_kind[kind].get(id_))

    def keys(self) -> set[Key]:
        """Return every key: all must be reconciled once everything has been listed."""
        keys = all_keys(self._tables)
        if self._reports.enabled:
            keys |= score_keys(self._tables.placements.objects.values(), self._tables)
        return keys

    def snapshot(
        self,
        key: Key,
        now: datetime,
        ages: Ages,
        worker_copies: Mapping[str, WorkerCopies] | None = None,
        probe_results: Mapping[str, ProbeResult] | None = None,
        queue_facts: Mapping[str, WorkerFacts] | None = None,
        identities: Identities | None = None,
        unknown_copies: UnknownCopiesByCredentials | None = None,
    ) -> Snapshot:
        """Return all that `key` depends on; all after `now` is what the caller remembers."""
        self._state.last_snapshot_at = now
        return self._snapshots.build(
            key,
            now,
            ages,
            worker_copies or {},
            probe_results or {},
            queue_facts or {},
            identities or {},
            unknown_copies or {},
        )

    def has_workload(self, id_: Id) -> bool:
        """Whether the hub has a Workload; False for some: without a check, or finished, it is not kept."""
        return id_ in self._tables.workloads.objects

    def provisioning_inputs(
        self, cluster: str, now: datetime, ages: Ages | None = None
    ) -> ProvisioningInputs:
        """Return all that the provisioned credentials of a cluster depend on."""
        return self.credentials.provisioning_inputs(cluster, now, {} if ages is None else ages)

    def setup_inputs(self, cluster: str, now: datetime, ages: Ages | None = None) -> WorkerSetupInputs:
        """Return all that the ManifestWork of a cluster depends on."""
        return self.setups.inputs(cluster, now, {} if ages is None else ages)

    def set_provisioning_error(self, cluster: str, error: str) -> set[Key]:
        """Take in why the credentials of a cluster could not be written; "": they were."""
        return self._set_error(self._state.errors, cluster, error)

    def set_setup_error(self, cluster: str, error: str) -> set[Key]:
        """Take in why the ManifestWork of a cluster could not be written; "": it was."""
        self._state.setups.pop(cluster, None)
        return self._set_error(self._state.setup_errors, cluster, error)

    def _set_error(self, errors: dict[str, str], cluster: str, error: str) -> set[Key]:
        """Return the Placements that are to report the change."""
        if errors.get(cluster, "") == error:
            return set()
        errors[cluster] = error
        if not error:
            del errors[cluster]
        return {Key("placement", name) for name in self._tables.placements_of(cluster)}

    def set_provisioned(self, placement: str, clusters: frozenset[str] | None) -> set[Key]:
        """Take in which clusters of a Placement get credentials; None: all that it selects."""
        chosen = self._state.to_provision
        before = chosen.pop(placement, None)
        if clusters is not None:
            chosen[placement] = clusters
        if before == clusters:
            return set()
        if before is None or clusters is None:
            changed = (before or frozenset()).union(clusters or (), self._tables.selected_by(placement))
        else:
            changed = before ^ clusters
        return {Key("cluster", name) for name in changed}

    # -- one change

    def put(self, kind: Kind, raw: Obj) -> set[Key]:
        """Take in an object as it is now; an older version than the one known changes nothing."""
        version, table = decode.version_of(raw), self._tables.by_kind[kind]
        id_ = version.namespace, version.name
        before = table.get(id_)
        known = before is not None and before.meta.uid == version.uid
        watched = self._listings.watches(kind, version.namespace, version.name)
        if not known and (version.uid in self._state.deleted or not watched):
            return set()
        if before and not is_newer(version, before.meta) and not self._is_read_again(kind, version, before):
            return set()  # it is known already, mostly as a write of ours
        now: Any = table.read(raw)
        if kind is WORKLOAD:
            return self._take_end(raw, now, before if known else None) | self._put_workload(now, before)
        if kind in SETUP_KINDS and known and before and replace(before, meta=now.meta) == now:
            table.put(id_, now)
            return set()  # most events of a ClusterQueue say how many jobs wait
        setup = self._state.setups.get(version.namespace) if kind is MANIFEST_WORK else None
        touched = self._keys_for(kind, before)
        table.put(id_, now)
        touched |= self._keys_for(kind, now)
        if known and (self._is_renewal(kind, before, now) or self._is_feedback(setup, before, now)):
            return {key for key in touched if key.kind in ("cluster", "score")}
        return touched

    def _put_workload(self, now: objects.Workload, before: objects.Workload | None) -> set[Key]:
        """Keep a Workload from its first check until it is finished; most events change nothing here."""
        self._tables.groups.take(now)
        if before is None and (now.finished or not now.check_states):
            return set()
        if now.finished:
            self._state.deleted[now.meta.uid] = True  # an older event must not bring it back
            self._tables.workloads.remove(now.meta.id)
            return self._keys_for(WORKLOAD, before)
        self._tables.workloads.put(now.meta.id, now)
        given_up = self._keys_for(WORKLOAD, *self._tables.workloads.give_up_surplus())
        if before and replace(before, meta=now.meta) == now and before.meta.uid == now.meta.uid:
            return given_up
        return given_up | self._keys_for(WORKLOAD, before, now)

    def _is_read_again(self, kind: Kind, version: objects.ObjectVersion, before: Any) -> bool:
        """Whether it is a Workload whose wishes were given up: there may be room for them by now."""
        same = version.resource_version == before.meta.resource_version
        return kind is WORKLOAD and same and gave_up(before)

    def _take_end(self, raw: Obj, now: objects.Workload, before: objects.Workload | None) -> set[Key]:
        """Take in how a Workload has ended on a cluster; return the Placements that this may concern."""
        memory = self._tables.failures
        names = now.job.annotation(ANNOTATION_CLUSTER_NAMES)
        is_pinned = bool(names) and "," not in names
        at = before.cluster if before else None
        end = end_of(raw, at, now.same_job, is_pinned=is_pinned) if memory else None
        if memory is None or end is None or not memory.take(end) or end.is_good:
            return set()
        return {Key("placement", name) for name in self._tables.placements_listing(end.worker)}

    def job_ends(self) -> Mapping[tuple[str, str], int]:
        """Return managed cluster and cause → how many jobs ended so, where failures are remembered."""
        return ends_by_cluster(self._tables.failures, self._tables.multikueue_clusters)

    def remove(self, kind: Kind, raw: Obj) -> set[Key]:
        """Take in that an object is gone; a newer one of that name stays."""
        meta = decode.meta_of(raw)
        table = self._tables.by_kind[kind]
        before = table.get(meta.id)
        if meta.uid and (before or kind is not WORKLOAD):  # Workloads never known would push out all others
            self._state.deleted[meta.uid] = True
        if before is None or before.meta.uid != meta.uid:
            return set()
        return self._remove(kind, meta.id, before)

    def _remove(self, kind: Kind, id_: Id, before: Any) -> set[Key]:
        touched = self._keys_for(kind, before)
        self._tables.by_kind[kind].remove(id_)
        return touched

    # -- a list

    def replace(self, kind: Kind, items: Iterable[Obj], resource_version: str) -> set[Key]:
        """Take in a complete list of a kind: what is not in it has gone, unless it is newer than the list."""
        touched = self.begin_replace(kind, resource_version)
        present: set[Id] = set()
        for raw in items:
            touched |= self.put(kind, raw)
            present.add(decode.meta_of(raw).id)
        return touched | self.end_replace(kind, present, resource_version)

    def begin_replace(self, kind: Kind, resource_version: str, namespace: str | None = None) -> set[Key]:
        """Take in that a list of a kind begins; `namespace` None: in all namespaces where it is watched.

        A list older than the one before means that the hub was restored, and versions begin again: the known
        objects cannot be compared, so they are dropped, and nothing is complete until `end_replace`.
        """
        touched: set[Key] = set()
        for scope in self._listings.scopes_of(kind, namespace):
            if self._listings.begins_again(scope, resource_version):
                self._listings.forget(scope)
                self._state.deleted.clear()  # a restore brings back what had gone
                known = self._objects_in(scope)
                touched |= self._keys_for(kind, *(obj for _, obj in known))
                for id_, _ in known:
                    self._tables.by_kind[kind].remove(id_)
        return touched

    def end_replace(
        self, kind: Kind, present: Container[Id], resource_version: str, namespace: str | None = None
    ) -> set[Key]:
        """Take in that a list is complete: what is not `present` has gone, unless it is newer."""
        touched: set[Key] = set()
        for scope in self._listings.scopes_of(kind, namespace):
            for id_, obj in self._objects_in(scope):
                if id_ not in present and not is_later(obj.meta.resource_version, resource_version):
                    touched |= self._remove(kind, id_, obj)
            self._listings.set_synced(scope, resource_version)
        return touched

    def load(self, kind: Kind, items: Iterable[Obj], resource_version: str) -> None:
        """Take in the complete list of a kind that is not known yet, without its keys."""
        table = self._tables.by_kind[kind]
        for raw in items:
            obj: Any = table.read(raw)
            if kind is WORKLOAD:
                self._tables.groups.take(obj)
                self._take_end(raw, obj, None)
            wanted = kind is not WORKLOAD or (obj.check_states and not obj.finished)
            if wanted and self._listings.watches(kind, obj.meta.namespace, obj.meta.name):
                table.put(obj.meta.id, obj)
        for _ in self._tables.workloads.give_up_surplus():
            pass
        for scope in self._listings.scopes_of(kind, None):
            self._listings.set_synced(scope, resource_version)

    # --

    def _keys_for(self, kind: Kind, *states: Any) -> set[Key]:
        touched = keys_for(kind, states, self._tables)
        if self._reports.enabled:
            touched |= score_keys(states, self._tables)
        for key in touched if self._state.setups else ():
            if key.kind == "cluster":
                self._state.setups.pop(key.name, None)
        return touched

    def _objects_in(self, scope: Scope) -> list[tuple[Id, Any]]:
        kind, namespace = scope
        known = self._tables.by_kind[kind].objects.items()
        return [(id_, obj) for id_, obj in known if namespace in (EVERYWHERE, id_[0])]

    def _is_feedback(self, setup: SetupState | None, before: Any, now: Any) -> bool:
        """Whether OCM has merely reported how much quota is in use there: no Placement has to know."""
        return (
            setup is not None and before.spec == now.spec and self.setups.state(now.meta.namespace) == setup
        )

    def _is_renewal(self, kind: Kind, before: Any, now: Any) -> bool:
        """Whether a token or score of ours merely lasts longer than before: no Placement has to know."""
        is_token = kind.plural == SECRET.plural and bool(kind.only)
        if kind is PLACEMENT_SCORE and now.written:
            counts = before.valid_until is not None and before.valid_until > self._state.last_snapshot_at
            return bool(counts and now.written.ours and now.values == before.values)
        if (kind is not SECRET and not is_token) or before.problem or now.problem:
            return False
        if is_token:
            return True
        if before.expires is not None and before.expires <= self._state.last_snapshot_at:
            return False  # it was found unusable
        longer = now.expires is None or (before.expires is not None and before.expires <= now.expires)
        same = before.meta._replace(resource_version=now.meta.resource_version) == now.meta
        return longer and same and now.ours and not self._policy.probe
