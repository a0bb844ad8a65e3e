"""
The objects that were seen on the hub, kind by kind: tables, their indexes, and the simplest lookups.

No I/O, no clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from placement_ac.cache.groups import GroupPlaces
from placement_ac.cache.index import Table
from placement_ac.cache.workloads import WorkloadTable
from placement_ac.core.api import decode, objects
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    ADMISSION_CHECK,
    CAPACITY_PROVIDER,
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    LABEL_CLUSTER,
    LOCAL_QUEUE,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_SCORE,
    RESOURCE_FLAVOR,
    SECRET,
    WORKLOAD,
    Kind,
    token_kind,
)
from placement_ac.core.api.fields import get_str
from placement_ac.core.decisions import SOURCE
from placement_ac.core.decisions.source import Decision, DecisionSource
from placement_ac.core.failures.memory import FailureMemory
from placement_ac.core.inputs.kinds import CAPACITY_KINDS, REPORT_KINDS, SETUP_KINDS, WATCHED_KINDS
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.state import HubFacts
from placement_ac.core.inputs.worker_setup import WorkerSetupPolicy

NO_SETUP: Final = WorkerSetupPolicy()


def kinds_for(
    policy: ProvisioningPolicy,
    source: DecisionSource = SOURCE,
    setup: WorkerSetupPolicy = NO_SETUP,
    *,
    capacity: bool = False,
    reports: bool = False,
) -> tuple[Kind, ...]:
    """Return the kinds that are watched.

    They are more where credentials are provisioned, workers are set up, `capacity` is provided, or scores are
    reported (`reports`).
    """
    watched = tuple(source.kind if kind is SOURCE.kind else kind for kind in WATCHED_KINDS)
    if policy.provision:
        tokens = (token_kind(name) for name in sorted({policy.account, ADDON_ACCOUNT}))
        watched = (*watched, ACCOUNT, PERMISSION, *tokens)
    watched = (*watched, *SETUP_KINDS) if setup.enabled else watched
    watched = (*watched, *REPORT_KINDS) if reports else watched
    return tuple(dict.fromkeys((*watched, *CAPACITY_KINDS) if capacity else watched))


def namespaces_for(
    placements: Sequence[str], kueue: str, source: DecisionSource = SOURCE
) -> Mapping[Kind, tuple[str, ...]]:
    """Return where those kinds are watched that are not watched everywhere."""
    beside_placements = dict.fromkeys((PLACEMENT, source.kind), tuple(placements))
    return beside_placements | dict.fromkeys((SECRET, CLUSTER_PROFILE, CONFIG_MAP), (kueue,))


def _if_set(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def _flag(name: str, value: bool) -> tuple[str, ...]:
    return (name,) if value else ()


def _cluster_of(obj: objects.ProvisionedObject | objects.ManifestWork) -> tuple[str, ...]:
    return (obj.meta.namespace,) if obj.ours or obj.handed_over else ()


def clusters_of_our_secret(secret: objects.Secret, accounts: Iterable[str]) -> tuple[str, ...]:
    """Return the cluster for which a Secret is ours, though its labels were taken off."""
    if not secret.ours:
        return ()
    return _if_set(secret.meta.labels.get(LABEL_CLUSTER, "")) or _after_account(secret.meta.name, accounts)


def _after_account(secret: str, accounts: Iterable[str]) -> tuple[str, ...]:
    """Return the rest of a name that is made of an account's and a cluster's."""
    return tuple(
        secret.removeprefix(f"{account}-") for account in accounts if secret.startswith(f"{account}-")
    )


def cluster_queue_of(local_queue: objects.HubQueue) -> str:
    """Return the ClusterQueue that a LocalQueue of the hub uses."""
    return get_str(local_queue.spec, "clusterQueue")


def empty_tables(
    source: DecisionSource,
    policy: ProvisioningPolicy,
    *,
    dispatches: bool,
    sets_up: bool,
    remembers: bool = False,
    reports: bool = False,
    capacity: bool = False,
) -> dict[Kind, Table[Any]]:
    """Return the tables of a hub of which nothing is known yet; `remembers`: where jobs failed.

    Of Workloads and ManagedClusters only our dispatcher needs all, and the CA of a cluster is most of it.
    Where they run is looked up only for scores that are reported (`reports`).
    """
    accounts = (policy.account, ADDON_ACCOUNT)
    with_job = decode.workload_with_identity if remembers else decode.workload_with_job
    reads_jobs = dispatches or remembers
    workload = with_job if reads_jobs else decode.workload
    managed_cluster = partial(
        decode.managed_cluster,
        with_server=policy.provision,
        with_labels=dispatches or sets_up,
        with_allocatable=sets_up or capacity,
    )
    return {
        ADMISSION_CHECK: Table(
            decode.check,
            placement=lambda c: _if_set(c.placement),
            config=lambda c: _if_set(c.config),
            uid=lambda c: _if_set(c.meta.uid),
            unusable=lambda c: _flag("unusable", c.ours and not c.placement),
        ),
        PLACEMENT: Table(
            decode.placement,
            scores=lambda p: {prioritizer.resource_name for prioritizer in p.prioritizers},
        ),
        source.kind: Table(
            source.read, placement=lambda d: _if_set(d.placement), cluster=lambda d: d.clusters
        ),
        CLUSTER_PROFILE: Table(
            decode.cluster_profile,
            cluster=lambda p: _if_set(p.cluster),
            secret=lambda p: {ref.name for ref in p.secrets},
        ),
        SECRET: Table(decode.secret, cluster=lambda s: clusters_of_our_secret(s, accounts)),
        PLACEMENT_SCORE: Table(decode.scores),
        MULTIKUEUE_CONFIG: Table(
            decode.kueue_object,
            owner=lambda o: o.owners if o.ours else (),
            listed=lambda o: o.listed if o.ours else (),
        ),
        MULTIKUEUE_CLUSTER: Table(
            decode.kueue_object,
            placement=lambda o: _if_set(o.placement) if o.ours else (),
            cluster=lambda o: _if_set(o.cluster) if o.ours else (),
            owner=lambda o: o.owners if o.ours else (),
            shared=lambda o: _flag("shared", o.ours and not o.placement),
            source=lambda o: ("/".join(o.source),),
        ),
        WORKLOAD: WorkloadTable(
            workload,
            check=lambda w: {state.check for state in w.check_states},
            cluster=lambda w: _if_set(w.cluster) if reports else (),
        ),
        MANAGED_CLUSTER: Table(
            managed_cluster,
            unreachable=lambda m: _flag("unreachable", m.unreachable),
            cluster_set=lambda m: _if_set(m.cluster_set),
        ),
        ACCOUNT: Table(decode.provisioned_object, cluster=_cluster_of),
        PERMISSION: Table(decode.provisioned_object, cluster=_cluster_of),
        CLUSTER_QUEUE: Table(decode.hub_queue, check=lambda q: q.checks),
        LOCAL_QUEUE: Table(decode.hub_queue, cluster_queue=lambda q: _if_set(cluster_queue_of(q))),
        RESOURCE_FLAVOR: Table(decode.hub_queue),
        CAPACITY_PROVIDER: Table(decode.capacity_provider, placement=lambda p: _if_set(p.placement)),
        CONFIG_MAP: Table(decode.template_text),
        MANIFEST_WORK: Table(decode.manifest_work, cluster=_cluster_of),
        **{token_kind(account): Table(decode.account_token) for account in accounts},
    }


class Tables:
    """The objects of each kind that matters."""

    def __init__(
        self,
        hub: HubFacts,
        source: DecisionSource,
        provisioning: ProvisioningPolicy,
        setup: WorkerSetupPolicy,
        kueue_namespace: str,
        by_kind: Mapping[Kind, Table[Any]],
        groups: GroupPlaces | None = None,
        in_use: Mapping[str, str] | None = None,
        failures: FailureMemory | None = None,
    ) -> None:
        self.hub = hub
        self.source = source
        self.provisioning = provisioning
        self.setup = setup
        self.kueue_namespace = kueue_namespace
        self.groups = groups or GroupPlaces()
        self.failures = failures
        """Where jobs failed; None: it is not remembered."""
        self.in_use = dict(in_use or {})
        """Name → NAMESPACE/UID of the Placement of that name in use."""
        self._accounts = (provisioning.account, ADDON_ACCOUNT)
        self.by_kind = by_kind
        self.checks: Table[objects.Check] = self.by_kind[ADMISSION_CHECK]
        self.placements: Table[objects.Placement] = self.by_kind[PLACEMENT]
        self.decisions: Table[Decision] = self.by_kind[source.kind]
        self.profiles: Table[objects.ClusterProfile] = self.by_kind[CLUSTER_PROFILE]
        self.secrets: Table[objects.Secret] = self.by_kind[SECRET]
        self.scores: Table[objects.Scores] = self.by_kind[PLACEMENT_SCORE]
        self.configs: Table[objects.KueueObject] = self.by_kind[MULTIKUEUE_CONFIG]
        self.multikueue_clusters: Table[objects.KueueObject] = self.by_kind[MULTIKUEUE_CLUSTER]
        self.workloads = cast("WorkloadTable", self.by_kind[WORKLOAD])
        self.managed_clusters: Table[objects.ManagedCluster] = self.by_kind[MANAGED_CLUSTER]
        self.accounts: Table[objects.ProvisionedObject] = self.by_kind[ACCOUNT]
        self.permissions: Table[objects.ProvisionedObject] = self.by_kind[PERMISSION]
        self.cluster_queues: Table[objects.HubQueue] = self.by_kind[CLUSTER_QUEUE]
        self.local_queues: Table[objects.HubQueue] = self.by_kind[LOCAL_QUEUE]
        self.flavors: Table[objects.HubQueue] = self.by_kind[RESOURCE_FLAVOR]
        self.templates: Table[objects.TemplateText] = self.by_kind[CONFIG_MAP]
        self.capacity_providers: Table[objects.CapacityProvider] = self.by_kind[CAPACITY_PROVIDER]
        self.works: Table[objects.ManifestWork] = self.by_kind[MANIFEST_WORK]
        self.tokens: Mapping[str, Table[objects.AccountToken]] = {
            account: self.by_kind[token_kind(account)] for account in self._accounts
        }

    def copy(self) -> "Tables":
        """Return tables that hold the same; later changes of either stay their own."""
        by_kind = {kind: table.copy() for kind, table in self.by_kind.items()}
        return Tables(
            self.hub,
            self.source,
            self.provisioning,
            self.setup,
            self.kueue_namespace,
            by_kind,
            self.groups.copy(),
            self.in_use,
            self.failures.copy() if self.failures else None,
        )

    # -- Placements and clusters

    def home_of(self, placement: str) -> str:
        """Return the namespace whose Placement of that name counts: the one in use, else the first.

        An annotation of a check comes before both. Where no namespace has one, it is the first with decisions
        for it: they go a moment after their Placement.
        """
        first, *more = self.hub.namespaces
        named = list(self.named_homes(placement))
        if not more or len(named) == 1:
            return next(iter(named), first)
        having = named or self.homes_of(placement)
        for in_use in (self._recorded(placement), self.in_use.get(placement, "")):
            for space in having:
                if in_use == self.placement_id(space, placement):
                    return space
        decided = {decision.meta.namespace for decision in self.decisions.by("placement", placement)}
        others = (space for space in self.hub.namespaces if space in decided)
        return next(iter((*having, *others)), first)

    def homes_of(self, placement: str) -> list[str]:
        """Return the namespaces that have a Placement of that name, in the order of the setting."""
        return [space for space in self.hub.namespaces if (space, placement) in self.placements.objects]

    def named_homes(self, placement: str) -> dict[str, list[str]]:
        """Return the namespaces that annotations of its checks name → these checks."""
        homes: dict[str, list[str]] = {}
        for check in self.checks.by("placement", placement):
            if check.placement_namespace:
                homes.setdefault(check.placement_namespace, []).append(check.meta.name)
        return homes

    def placement_id(self, namespace: str, name: str) -> str:
        """Return NAMESPACE/UID of a Placement; "" if there is none."""
        known = self.placements.get((namespace, name))
        return f"{namespace}/{known.meta.uid}" if known else ""

    def is_recorded(self, placement: str) -> bool:
        """Whether a restart chooses the Placement that is in use again."""
        home, homes = self.home_of(placement), self.homes_of(placement)
        if self.named_homes(placement) or home not in homes:
            return True
        recorded = self._recorded(placement)
        if any(recorded == self.placement_id(space, placement) for space in homes):
            return recorded == self.placement_id(home, placement)
        return home == homes[0]

    def _recorded(self, placement: str) -> str:
        config = self.configs.get(("", placement))
        return config.placement_in_use if config else ""

    def decisions_beside(self, placement: str) -> list[Decision]:
        """Return the decisions that name the Placement, in the namespace of the one that counts."""
        home = self.home_of(placement)
        named = self.decisions.by("placement", placement)
        return [decision for decision in named if decision.meta.namespace == home]

    def decisions_of(self, placement: str) -> list[Decision]:
        """Return the decisions that count: those beside the Placement that does, and its own."""
        return [decision for decision in self.decisions.by("placement", placement) if self._counts(decision)]

    def _counts(self, decision: Decision) -> bool:
        """Whether it is its Placement's own; of one that is gone, those that it left count for a moment."""
        namespace, name = decision.meta.namespace, decision.placement
        if namespace != self.home_of(name):
            return False
        placement = self.placements.get((namespace, name))
        return placement is None or decision.belongs_to(placement)

    def selected_by(self, placement: str) -> list[str]:
        """Return the clusters that a Placement selects, each once."""
        clusters = (cluster for decision in self.decisions_of(placement) for cluster in decision.clusters)
        return list(dict.fromkeys(filter(None, clusters)))

    def is_confirmed(self, placement: str, cluster: str) -> bool:
        """Whether a decision that nobody can have forged selects the cluster for a Placement."""
        there = self.placements.get((self.home_of(placement), placement))
        sure = self.source.confirmed(there, self.decisions_of(placement))
        return any(cluster in decision.clusters for decision in sure)

    def users_of(self, cluster: str) -> set[str]:
        """Return the Placements that a check of ours names and that select the cluster."""
        return {
            decision.placement
            for decision in self.decisions.by("cluster", cluster)
            if decision.placement in self.checks.index("placement") and self._counts(decision)
        }

    def placements_listing(self, multikueue_cluster: str) -> set[str]:
        """Return the Placements whose MultiKueueConfig lists that MultiKueueCluster."""
        return {config.meta.name for config in self.configs.by("listed", multikueue_cluster)}

    def placements_of(self, cluster: str) -> set[str]:
        """Return the Placements that select the managed cluster, or list a MultiKueueCluster for it."""
        selected = {decision.placement for decision in self.decisions.by("cluster", cluster)}
        return (selected | self.placements_with(cluster)) - {""}

    def placements_with(self, cluster: str) -> set[str]:
        """Return the Placements that have, or list, a MultiKueueCluster for the managed cluster."""
        listed = {obj.placement for obj in self.multikueue_clusters.by("cluster", cluster)}
        if self.hub.shared:
            listed |= self.placements_listing(cluster)
        return listed - {""}

    def clusters_of(self, placement: str) -> set[str]:
        """Return the managed clusters that a Placement selects, or has or lists a MultiKueueCluster for."""
        config = self.configs.get(("", placement)) if self.hub.shared else None
        shared = (self.multikueue_clusters.get(("", name)) for name in (config.listed if config else ()))
        objs = (*self.multikueue_clusters.by("placement", placement), *filter(None, shared))
        return {*self.selected_by(placement), *(obj.cluster for obj in objs)} - {""}

    # -- credentials

    def secret(self, name: str) -> objects.Secret | None:
        """Return the Secret of that name in Kueue's namespace."""
        return self.secrets.get((self.kueue_namespace, name))

    def clusters_of_provisioned_secret(self, name: str) -> set[str]:
        """Return the clusters for which a Secret of that name may be ours, or be OCM's copy of a token."""
        known = self.secret(name)
        ours = clusters_of_our_secret(known, self._accounts) if known else ()
        copies = (
            name.removesuffix(f"-{account}") for account in self._accounts if name.endswith(f"-{account}")
        )
        return {*ours, *_after_account(name, self._accounts), *copies} - {""}
