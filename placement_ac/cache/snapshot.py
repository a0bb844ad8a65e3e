"""
Collect the inputs of one decision: all that a Placement, or a check that names none, depends on.

No I/O, no clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from placement_ac.cache.capacity import capacity_inputs, misconfigured_provider
from placement_ac.cache.credentials import CredentialLookup
from placement_ac.cache.failures import with_failures
from placement_ac.cache.listing import Listings
from placement_ac.cache.mapping import possible_pairs
from placement_ac.cache.moved_checks import left_copies, left_workloads, moved_checks
from placement_ac.cache.tables import Tables
from placement_ac.cache.worker_setup import WorkerSetups
from placement_ac.core.api import objects
from placement_ac.core.api.constants import MANAGED_CLUSTER
from placement_ac.core.inputs import state
from placement_ac.core.inputs.capacity import CapacityInputs
from placement_ac.core.inputs.identity import Identities
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.unknown_copies import UnknownCopiesByCredentials
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from placement_ac.core.maintenance.window import MaintenanceWindow, parse_window
from placement_ac.core.selection.mass_loss import clusters_before


class SnapshotBuilder:
    """Reads the tables and the credentials, and returns Snapshots."""

    def __init__(
        self,
        tables: Tables,
        listings: Listings,
        credentials: CredentialLookup,
        setups: WorkerSetups,
        policy: state.PlacementPolicy,
    ) -> None:
        self._tables = tables
        self._listings = listings
        self._credentials = credentials
        self._setups = setups
        self._policy = policy

    def build(
        self,
        key: state.Key,
        now: datetime,
        ages: state.Ages,
        worker_copies: Mapping[str, state.WorkerCopies],
        probe_results: Mapping[str, state.ProbeResult],
        queue_facts: Mapping[str, WorkerFacts],
        identities: Identities,
        unknown_copies: UnknownCopiesByCredentials,
    ) -> state.Snapshot:
        """Return all that `key` depends on; all after `now` is what the caller remembers."""
        if key.kind == "check":
            return self._of_check(key.name, now, ages)
        if key.kind == "provider":
            provider = self._tables.capacity_providers.get(("", key.name))
            return state.Snapshot(name="", now=now, capacity=misconfigured_provider(provider), all_ages=ages)
        name, tables = key.name, self._tables
        home = tables.home_of(name)
        placement = tables.placements.get((home, name))
        named = tables.named_homes(name)
        if placement and len(tables.hub.namespaces) > 1:
            tables.in_use[name] = tables.placement_id(home, name)
        else:
            tables.in_use.pop(name, None)
        decisions = tables.source.decide(
            placement,
            tables.decisions_beside(name),
            tables.scores.objects,
            now,
            lambda about: ages.get(state.Since(state.SinceKind.DECISIONS_DOUBTED, about), 0.0),
        )
        config = tables.configs.get(("", name))
        credentials = self._credentials.sources((ranked.cluster for ranked in decisions.clusters), now)
        setup_remarks = self._add_setups(name, credentials, config)
        checks, users = tables.checks.by("placement", name), tables.checks.by("config", name)
        workloads = self._workloads_of(checks, users)
        listed = _names_listed(config, workloads)
        before = clusters_before(ages)  # what has left the list since may come back to it
        clusters = self._multikueue_clusters(name, [*credentials, *before], listed)
        listed_clusters = [tables.hub.cluster_of(name, entry, clusters.get(entry)) for entry in listed]
        unselected = [cluster for cluster in listed_clusters if cluster not in credentials]
        deleted, unreachable = self._lost([*listed_clusters, *before])
        windows = self._maintenance([*credentials, *listed_clusters, *before])
        former = self._former_checks(config, clusters.values(), name)
        moved = () if checks or users or former else moved_checks(tables, config, name)
        if config and moved:
            theirs = self._workloads_of(moved)
            workloads = tuple(left_workloads(tables, config, theirs))
            worker_copies = left_copies(tables, config, theirs, worker_copies)
        listed_objects = {
            cluster: clusters[entry]
            for entry, cluster in zip(listed, listed_clusters, strict=True)
            if entry in clusters
        }
        fleet = state.FleetState(
            deleted,
            unreachable,
            labels=self._labels([*credentials, *listed_clusters]),
            taints=self._taints([*credentials, *listed_clusters]),
            last_by_group=self._last_by_group(name, workloads),
            worker_copies=worker_copies,
            queue_facts=queue_facts,
            probe_results=probe_results,
            identities=identities,
            unknown_copies=unknown_copies,
            managed=self._managed([*credentials, *listed_clusters, *before]),
            setup_remarks=setup_remarks,
            maintenance={name: one for name, one in windows.items() if not isinstance(one, str)},
            maintenance_problems={name: one for name, one in windows.items() if isinstance(one, str)},
        )
        if tables.failures is not None:
            fleet = with_failures(
                fleet, tables.failures, listed_objects, workloads, now, self._policy.avoid_after_failure
            )
        capacity = CapacityInputs()
        if tables.capacity_providers.objects:
            counting = [*credentials, *listed_clusters]
            capacity = capacity_inputs(tables, name, (*checks, *users), counting)
        return state.Snapshot(
            name=name,
            now=now,
            hub=tables.hub,
            policy=self._policy,
            checks=state.Checks(tuple(checks), tuple(users), former, moved),
            decisions=decisions,
            choice=state.PlacementChoice(
                namesakes=() if named else tuple(space for space in tables.homes_of(name) if space != home),
                is_recorded=tables.is_recorded(name),
                contradicting=tuple(check for space in named if space != home for check in named[space]),
                named_home=home if named else "",
            ),
            credentials=state.ClusterCredentials(
                credentials,
                self._credentials.sources(unselected, now),
                provisioned=tables.provisioning.provision or tables.setup.enabled,
            ),
            objects=state.KueueObjects(
                config,
                clusters,
                name_conflicts=self._name_conflicts(name, credentials, now),
                unneeded=self._unneeded(name),
                listed_elsewhere=frozenset(
                    tables.configs.index("listed").used_by_others(clusters, ("", name))
                ),
            ),
            fleet=fleet,
            workloads=workloads,
            capacity=capacity,
            all_ages=ages,
        )

    def _add_setups(
        self,
        name: str,
        credentials: dict[str, CredentialSource | Unusable],
        config: objects.KueueObject | None,
    ) -> dict[str, tuple[str, ...]]:
        """Take the credentials from clusters that are not listed and whose workers are not ready.

        Return what is to be said of the others: one that is listed stays so.
        """
        if not self._tables.setup.enabled:
            return {}
        hub, listed = self._tables.hub, config.listed if config and config.ours else ()
        found = {cluster: self._setups.state(cluster) for cluster in credentials}
        for cluster, setup in found.items():
            if setup.problem and hub.multikueue_cluster_name(name, cluster) not in listed:
                credentials[cluster] = Unusable(setup.problem)
        return {cluster: setup.remarks for cluster, setup in found.items() if setup.remarks}

    def _of_check(self, name: str, now: datetime, ages: state.Ages) -> state.Snapshot:
        """Return the inputs of a check of ours that names no Placement."""
        check = self._tables.checks.get(("", name))
        checks = (check,) if check and check.ours and not check.placement else ()
        workloads = self._workloads_of(checks)
        return state.Snapshot(
            name="",
            now=now,
            hub=self._tables.hub,
            checks=state.Checks(ours=checks),
            workloads=workloads,
            all_ages=ages,
        )

    def _workloads_of(self, *checks: Iterable[objects.Check]) -> tuple[objects.Workload, ...]:
        """Return the Workloads that carry any of these checks."""
        workloads = self._tables.workloads
        names = {check.meta.name for part in checks for check in part}
        ids = {id_ for name in names for id_ in workloads.index("check").ids(name)}
        return tuple(workloads.objects[id_] for id_ in sorted(ids))

    def _lost(self, clusters: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return those that have gone from a hub with ManagedClusters, and those that OCM cannot reach."""
        known, served = self._tables.managed_clusters, self._listings.is_served(MANAGED_CLUSTER)
        deleted = frozenset(cluster for cluster in clusters if served and ("", cluster) not in known.objects)
        unreachable = known.index("unreachable").ids("unreachable")
        return deleted, frozenset(cluster for cluster in clusters if ("", cluster) in unreachable)

    def _managed(self, clusters: Iterable[str]) -> dict[str, objects.ManagedCluster]:
        known = self._tables.managed_clusters.objects
        return {cluster: known["", cluster] for cluster in clusters if ("", cluster) in known}

    def _labels(self, clusters: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """Return the labels and claims of clusters, by which our dispatcher chooses."""
        known = self._tables.managed_clusters
        by_name = (
            {cluster: known.get(("", cluster)) for cluster in clusters} if self._policy.dispatcher else {}
        )
        return {cluster: managed.labels for cluster, managed in by_name.items() if managed}

    def _taints(self, clusters: Iterable[str]) -> dict[str, tuple[objects.ClusterTaint, ...]]:
        """Return the taints of clusters, if jobs must tolerate any."""
        known = self._tables.managed_clusters
        by_name = (
            {cluster: known.get(("", cluster)) for cluster in clusters} if self._policy.job_taints else {}
        )
        return {cluster: managed.taints for cluster, managed in by_name.items() if managed and managed.taints}

    def _maintenance(self, clusters: Iterable[str]) -> dict[str, MaintenanceWindow | str]:
        """Return the announced maintenance of clusters, or what is wrong with the announcement."""
        known = self._tables.managed_clusters
        texts = (
            (cluster, managed.maintenance) for cluster in clusters if (managed := known.get(("", cluster)))
        )
        return {cluster: parse_window(text) for cluster, text in texts if text}

    def _last_by_group(
        self, name: str, workloads: Iterable[objects.Workload]
    ) -> Mapping[tuple[str, str], str]:
        """Return where the groups of the Workloads that no cluster runs were last, for our dispatcher."""
        if not self._policy.dispatcher:
            return {}
        hub, known = self._tables.hub, self._tables.multikueue_clusters
        undecided = (workload for workload in workloads if not workload.cluster)
        return self._tables.groups.of(
            undecided, lambda full_name: hub.cluster_of(name, full_name, known.get(("", full_name)))
        )

    def _multikueue_clusters(
        self, name: str, selected: Iterable[str], listed: Iterable[str]
    ) -> dict[str, objects.KueueObject]:
        """Return the MultiKueueClusters that may be wanted, and those that are this Placement's."""
        clusters, hub = self._tables.multikueue_clusters, self._tables.hub
        existing = {obj.meta.name: obj for obj in clusters.by("placement", name)}
        # Those without the Placement's label are shared, not ours, or have lost it.
        wanted = [hub.multikueue_cluster_name(name, cluster) for cluster in selected]
        for full_name in {*wanted, *listed, *self._unneeded(name)} - existing.keys():
            if obj := clusters.get(("", full_name)):
                existing[full_name] = obj
        return dict(sorted(existing.items()))

    def _unneeded(self, name: str) -> frozenset[str]:
        """Return the shared MultiKueueCluster of that name if no Placement needs it."""
        tables = self._tables
        obj = tables.multikueue_clusters.get(("", name))
        if obj is None or not obj.ours or obj.placement:
            return frozenset()
        used = tables.hub.shared and tables.users_of(name)
        needed = tables.placements_listing(name) or used
        return frozenset() if needed else frozenset({name})

    def _former_checks(
        self, config: objects.KueueObject | None, clusters: Iterable[objects.KueueObject], name: str
    ) -> tuple[objects.Check, ...]:
        """Return the checks of ours that own objects here while their parameters are unusable."""
        checks = self._tables.checks
        if "unusable" not in checks.index("unusable"):
            return ()
        owned = [obj for obj in clusters if obj.placement == name]
        owned += [config] if config and config.placement in ("", name) else []
        uids = set[str]().union(*[obj.owners for obj in owned if obj.ours])
        owners = (check for uid in sorted(uids) for check in checks.by("uid", uid))
        return tuple(check for check in owners if check.ours and not check.placement)

    def _name_conflicts(
        self, name: str, selected: Iterable[str], now: datetime
    ) -> dict[str, state.PlacementCluster]:
        """Return the other pairs that have the name of one of ours; of new ones the first one gets it."""
        tables = self._tables
        if tables.hub.shared:
            return {}
        # Of all pairs for `<name>-<cluster>`, those whose Placement's name is part of ours sort first.
        pairs = [pair for pair in possible_pairs(name) if pair[0] in tables.checks.index("placement")]
        conflicts = {}
        for cluster in selected if pairs else ():
            for placement, rest in pairs:
                other = f"{rest}-{cluster}"
                if placement in tables.users_of(other) and self._credentials.is_usable(other, now):
                    wanted = tables.hub.multikueue_cluster_name(name, cluster)
                    full_name = f"{tables.home_of(placement)}/{placement}"
                    conflicts[wanted] = state.PlacementCluster(full_name, other)
        return conflicts


def _names_listed(config: objects.KueueObject | None, workloads: Iterable[objects.Workload]) -> Sequence[str]:
    """Return the names in the config; if it was deleted, those that Workloads are on."""
    if config is not None:
        return config.listed if config.ours else ()
    return sorted({name for w in workloads for name in (w.cluster, *w.nominated) if name})
