"""
What has been seen of the hub, kind by kind: the tables, their indexes, and the simplest lookups.

Filled and asked by `World` alone. No I/O, no clock.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Self

from cachetools import LRUCache

from placement_ac.cache.index import Table
from placement_ac.core.api import objects
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    CREDENTIAL_METHODS,
    LABEL_CLUSTER,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SECRET,
    WATCHED_KINDS,
    WORKLOAD,
    CredentialMethod,
    Kind,
    token_kind,
)
from placement_ac.core.credentials.discovery import ALWAYS
from placement_ac.core.inputs.state import HubFacts, PlacementPolicy, ProvisioningPolicy


def one(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def _shared(obj: objects.KueueObject) -> tuple[str, ...]:
    return ("shared",) if obj.ours and not obj.placement else ()


def _cluster_of_grant(grant: objects.ProvisionedObject) -> tuple[str, ...]:
    return (grant.meta.namespace,) if grant.ours or grant.handed_over else ()


def kinds_for(terms: ProvisioningPolicy) -> tuple[Kind, ...]:
    """Return the kinds that are watched: more of them where credentials are made."""
    if not terms.provision:
        return WATCHED_KINDS
    return (
        *WATCHED_KINDS,
        ACCOUNT,
        PERMISSION,
        *(token_kind(n) for n in sorted({terms.account, ADDON_ACCOUNT})),
    )


Scope = tuple[Kind, str]
"""What is listed at once: a kind, in one namespace or EVERYWHERE."""
EVERYWHERE: Final = ""
GONE_REMEMBERED: Final = 10_000
"""Objects of which it is remembered that they have gone: a list that is under way may still hold them."""


def newer(stamp: objects.ObjectVersion, known: objects.Meta) -> bool:
    """Whether `stamp` is not what is known already, nor older (late and repeated events are)."""
    if stamp.resource_version == known.resource_version:
        return stamp.uid != known.uid
    return not later(known.resource_version, stamp.resource_version)


def later(one: str, other: str) -> bool:
    """Whether a resourceVersion comes after another (Kubernetes 1.35: comparable as integers)."""
    return one.isdecimal() and other.isdecimal() and int(one) > int(other)


_clusters_of: Final = attrgetter("clusters")


def decided_in(decisions: Iterable[objects.Decision]) -> list[str]:
    """Return the clusters that decisions hold, each once."""
    names = dict.fromkeys(chain.from_iterable(map(_clusters_of, decisions)))
    names.pop("", None)
    return list(names)


class Tables:
    """The objects of each kind that matters."""

    def __init__(
        self,
        hub: HubFacts | None = None,
        *,
        kueue_namespace: str = "kueue-system",
        ways: Sequence[CredentialMethod] = CREDENTIAL_METHODS,
        policy: PlacementPolicy | None = None,
        terms: ProvisioningPolicy | None = None,
        providers: Collection[str] | None = None,
    ) -> None:
        self.hub = hub or HubFacts()
        self._policy = policy or PlacementPolicy()
        self._terms = terms or ProvisioningPolicy()
        self._providers = providers
        self._trouble: dict[str, str] = {}
        self._expiries: tuple[object, dict[str, Any]] | None = None
        """What was looked up last, cluster → datetime, and at which of all changes."""
        self._ways_known: dict[str, Any] = {}
        self._ways_at = (0, 0)
        """The Source that was found last of each cluster, and at which of all changes."""
        self._judged_at = ALWAYS
        """The time of the last snapshot."""
        self._kueue_namespace = kueue_namespace
        self._ways = tuple(ways)
        self._namespaces: Mapping[Kind, tuple[str, ...]] = {
            PLACEMENT: self.hub.namespaces,
            PLACEMENT_DECISION: self.hub.namespaces,
            SECRET: (kueue_namespace,),
            CLUSTER_PROFILE: (kueue_namespace,),
        }
        self._listed: dict[Scope, str] = {}
        self._gone: LRUCache[str, bool] = LRUCache(GONE_REMEMBERED)
        self._checks: Table[objects.Check] = Table(
            placement=lambda c: one(c.placement),
            config=lambda c: one(c.config),
            uid=lambda c: one(c.meta.uid),
            unusable=lambda c: ("unusable",) if c.ours and not c.placement else (),
        )
        self._placements: Table[objects.Placement] = Table()
        self._decisions: Table[objects.Decision] = Table(
            placement=lambda d: (d.placement,) if d.placement else (),
            cluster=_clusters_of,
        )
        self._profiles: Table[objects.ClusterProfile] = Table(
            cluster=lambda p: one(p.cluster),
            secret=lambda p: {ref.name for ref in p.secrets},
        )
        self._secrets: Table[objects.Secret] = Table(cluster=self._clusters_of_ours)
        self._scores: Table[objects.Scores] = Table()
        self._configs: Table[objects.KueueObject] = Table(
            owner=lambda o: o.owners if o.ours else (),
            listed=lambda o: o.listed if o.ours else (),
        )
        self._clusters: Table[objects.KueueObject] = Table(
            placement=lambda o: one(o.placement) if o.ours else (),
            cluster=lambda o: one(o.cluster) if o.ours else (),
            owner=lambda o: o.owners if o.ours else (),
            shared=_shared,
            source=lambda o: ("/".join(o.source),),
        )
        self._workloads: Table[objects.Workload] = Table(check=lambda w: {a.check for a in w.check_states})
        self._managed: Table[objects.ManagedCluster] = Table(
            unreachable=lambda m: ("unreachable",) if m.unreachable else ()
        )
        self._accounts: Table[objects.ProvisionedObject] = Table(cluster=_cluster_of_grant)
        self._permissions: Table[objects.ProvisionedObject] = Table(cluster=_cluster_of_grant)
        self._tokens: dict[str, Table[objects.AccountToken]] = {
            name: Table() for name in (self._terms.account, ADDON_ACCOUNT)
        }
        self._carrying: dict[frozenset[str], tuple[objects.Workload, ...]] = {}
        self._carrying_at = 0
        self._labelled_known: dict[str, dict[str, objects.KueueObject]] = {}
        self._labelled_at = 0
        self._tables: Mapping[Kind, Table[Any]] = {
            ADMISSION_CHECK: self._checks,
            PLACEMENT: self._placements,
            PLACEMENT_DECISION: self._decisions,
            CLUSTER_PROFILE: self._profiles,
            SECRET: self._secrets,
            PLACEMENT_SCORE: self._scores,
            MULTIKUEUE_CONFIG: self._configs,
            MULTIKUEUE_CLUSTER: self._clusters,
            WORKLOAD: self._workloads,
            MANAGED_CLUSTER: self._managed,
            ACCOUNT: self._accounts,
            PERMISSION: self._permissions,
            **{token_kind(name): table for name, table in self._tokens.items()},
        }
        self._scopes = dict.fromkeys(
            (kind, namespace) for kind in kinds_for(self._terms) for namespace in self.namespaces(kind)
        )
        self._missing = set(self._scopes)
        """Those that have not been listed."""

    @property
    def terms(self) -> ProvisioningPolicy:
        return self._terms

    def copy(self) -> Self:
        """Return a world that knows the same, and goes its own way from now on."""
        other = copy(self)
        tables = {id(table): table.copy() for table in self._tables.values()}
        mine = {name: tables[id(value)] for name, value in vars(self).items() if id(value) in tables}
        vars(other).update(
            mine,
            _tables={kind: tables[id(table)] for kind, table in self._tables.items()},
            _tokens={name: tables[id(table)] for name, table in self._tokens.items()},
            _trouble=dict(self._trouble),
            _listed=dict(self._listed),
            _missing=set(self._missing),
            _gone=copy(self._gone),
            _carrying={},
            _labelled_known={},
            _ways_known=dict(self._ways_known),
        )
        return other

    def namespaces(self, kind: Kind) -> tuple[str, ...]:
        """Return where a kind is watched: its namespaces, or EVERYWHERE."""
        return self._namespaces.get(kind, (EVERYWHERE,))

    def _clusters_of_ours(self, secret: objects.Secret) -> tuple[str, ...]:
        """Return the cluster for which a Secret is ours, though its labels were taken off."""
        told = secret.meta.labels.get(LABEL_CLUSTER, "")
        if not secret.ours or told:
            return one(told) if secret.ours else ()
        prefixes = (f"{account}-" for account in self._tokens)
        return tuple(
            secret.meta.name.removeprefix(prefix)
            for prefix in prefixes
            if secret.meta.name.startswith(prefix)
        )

    def _home_of(self, placement: str) -> str:
        """Return the namespace whose Placement of that name counts: the first that has one.

        Where none has, it is the first with decisions for it: they go a moment after their Placement.
        """
        first, *more = self.hub.namespaces
        if not more:
            return first
        decided = {decision.meta.namespace for decision in self._decisions.by("placement", placement)}
        having = (
            *(space for space in self.hub.namespaces if (space, placement) in self._placements.things),
            *(space for space in self.hub.namespaces if space in decided),
        )
        return next(iter(having), first)

    def _decisions_of(self, placement: str) -> list[objects.Decision]:
        """Return the decisions that count: those beside the Placement that does."""
        home = self._home_of(placement)
        return [d for d in self._decisions.by("placement", placement) if d.meta.namespace == home]

    def _selected(self, placement: str) -> list[str]:
        return decided_in(self._decisions_of(placement))

    def _listers(self, cluster_object: str) -> set[str]:
        """Placements whose MultiKueueConfig lists that MultiKueueCluster."""
        return {config.meta.name for config in self._configs.by("listed", cluster_object)}

    def _users_of(self, cluster: str) -> set[str]:
        """Placements that a check of ours names and whose decisions hold the cluster."""
        return {
            decision.placement
            for decision in self._decisions.by("cluster", cluster)
            if decision.placement in self._checks.keys("placement")
            and decision.meta.namespace == self._home_of(decision.placement)
        }

    def placements_of_cluster(self, cluster: str) -> set[str]:
        selected = {decision.placement for decision in self._decisions.by("cluster", cluster)}
        listed = {obj.placement for obj in self._clusters.by("cluster", cluster)}
        if self.hub.shared:
            listed |= self._listers(cluster)
        return (selected | listed) - {""}
