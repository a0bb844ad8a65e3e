"""
Name the keys that a change of one object touches.

Pure: a change is an object as it was and as it is; each of them is routed by
itself, so that what it no longer names is looked at as well.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    LABEL_CLUSTER,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.objects import (
    AccountToken,
    Check,
    ClusterProfile,
    Decision,
    KueueObject,
    ManagedCluster,
    Placement,
    ProvisionedObject,
    Scores,
    Secret,
    Workload,
)
from placement_ac.core.credentials.discovery import clusters_of_secret
from placement_ac.core.inputs.state import Key

Thing = (
    Check
    | Placement
    | Decision
    | ClusterProfile
    | Secret
    | Scores
    | KueueObject
    | Workload
    | ManagedCluster
    | ProvisionedObject
    | AccountToken
)


class Lookup(Protocol):
    """What routing must know of the rest of the world."""

    def placements_of_cluster(self, cluster: str) -> Iterable[str]:
        """Placements that select or list the cluster."""

    def clusters_of_secret_ref(self, name: str) -> Iterable[str]:
        """Clusters whose ClusterProfile names that Secret of Kueue's namespace."""

    def placements_owned_by(self, uid: str) -> Iterable[str]:
        """Placements whose objects that AdmissionCheck owns, whatever its parameters say now."""

    def placements_sharing(self, cluster_objects: Iterable[str]) -> Iterable[str]:
        """Placements that list or select any of these MultiKueueClusters; not shared: those they are of."""

    def checks_named(self, names: Iterable[str]) -> Iterable[Check]:
        """AdmissionChecks of these names."""

    def placements_of_shared(self) -> Iterable[str]:
        """Placements to ask about a MultiKueueCluster that serves all of them."""

    def clusters_of_made(self, secret: str) -> Iterable[str]:
        """Clusters for which a Secret of that name may be ours, or be OCM's copy of a token."""

    def decisions_in_question(self, placement: str) -> Iterable[Decision]:
        """Decisions that may count or not as Placements of that name come and go, in several namespaces."""

    def clusters_selected(self, placement: str) -> Iterable[str]:
        """Clusters that the Placement's decisions hold."""

    def clusters_to_provide(self, clusters: Iterable[str]) -> Iterable[str]:
        """These clusters, if credentials are made at all; else nothing."""


def keys_for(kind: Kind, things: Iterable[Thing | None], lookup: Lookup) -> set[Key]:
    """Return the keys that any of `things` (one object, before and after) touches."""
    rule: Callable[[Any, Lookup], Iterator[Key]] = _of_token if kind.only else _ROUTES[kind]
    return {key for thing in things if thing is not None for key in rule(thing, lookup)}


def possible_pairs(name: str) -> Iterator[tuple[str, str]]:
    """Yield every (placement, cluster) that `<placement>-<cluster>` may have been made of."""
    at = name.find("-", 1)
    while 0 < at < len(name) - 1:
        yield name[:at], name[at + 1 :]
        at = name.find("-", at + 1)


def _placement(name: str) -> Key:
    return Key("placement", name)


def _of_ours(check: Check) -> Key:
    return _placement(check.placement) if check.placement else Key("check", check.meta.name)


def _credentials(clusters: Iterable[str], lookup: Lookup) -> Iterator[Key]:
    return (Key("cluster", name) for name in lookup.clusters_to_provide(clusters))


def _of_check(check: Check, lookup: Lookup) -> Iterator[Key]:
    if check.ours:
        yield _of_ours(check)
        yield from _credentials(lookup.clusters_selected(check.placement), lookup)
        yield from map(_placement, lookup.placements_owned_by(check.meta.uid))
    if check.config:
        yield _placement(check.config)


def _of_placement(placement: Placement, lookup: Lookup) -> Iterator[Key]:
    yield _placement(placement.meta.name)
    for decision in lookup.decisions_in_question(placement.meta.name):
        yield from _of_decision(decision, lookup)


def _of_decision(decision: Decision, lookup: Lookup) -> Iterator[Key]:
    if decision.placement:
        yield _placement(decision.placement)
    yield from map(_placement, lookup.placements_sharing(decision.clusters))
    yield from _credentials(decision.clusters, lookup)


def _of_cluster(cluster: str, lookup: Lookup) -> Iterator[Key]:
    yield from map(_placement, lookup.placements_of_cluster(cluster))
    yield from _credentials((cluster,), lookup)


def _of_profile(profile: ClusterProfile, lookup: Lookup) -> Iterator[Key]:
    return _of_cluster(profile.cluster, lookup)


def _of_secret(secret: Secret, lookup: Lookup) -> Iterator[Key]:
    name, mine = secret.meta.name, secret.meta.labels.get(LABEL_CLUSTER, "")
    ours = (mine,) if mine and secret.ours else ()
    others = (*lookup.clusters_of_secret_ref(name), *lookup.clusters_of_made(name))
    for cluster in {*clusters_of_secret(name), *others, *ours}:
        yield from _of_cluster(cluster, lookup)


def _of_grant(grant: ProvisionedObject, lookup: Lookup) -> Iterator[Key]:
    return _of_cluster(grant.meta.namespace, lookup)


def _of_token(token: AccountToken, lookup: Lookup) -> Iterator[Key]:
    return _of_cluster(token.meta.namespace, lookup)


def _of_scores(scores: Scores, lookup: Lookup) -> Iterator[Key]:
    return _of_cluster(scores.meta.namespace, lookup)


def _of_config(config: KueueObject, lookup: Lookup) -> Iterator[Key]:
    yield _placement(config.meta.name)
    if config.placement:
        yield _placement(config.placement)
    yield from map(_placement, lookup.placements_sharing(config.listed))


def _of_multikueue_cluster(obj: KueueObject, lookup: Lookup) -> Iterator[Key]:
    if obj.placement:
        yield _placement(obj.placement)
    elif obj.ours:
        yield _placement(obj.meta.name)  # nobody's name, so that it is looked at when there is nobody
        yield from map(_placement, lookup.placements_of_shared())
    yield from (_placement(placement) for placement, _ in possible_pairs(obj.meta.name))
    yield from _of_cluster(obj.meta.name, lookup)
    kind, source = obj.source  # somebody else's may stand on what we made
    on_made = (source,) if kind == "ClusterProfile" else lookup.clusters_of_made(source)
    yield from _credentials({obj.cluster, *on_made}, lookup)


def _of_workload(workload: Workload, lookup: Lookup) -> Iterator[Key]:
    for check in lookup.checks_named(answer.check for answer in workload.check_states):
        if check.ours:
            yield _of_ours(check)
        elif check.config:
            yield _placement(check.config)


def _of_managed_cluster(cluster: ManagedCluster, lookup: Lookup) -> Iterator[Key]:
    return _of_cluster(cluster.meta.name, lookup)


_ROUTES: Final[Mapping[Kind, Callable[[Any, Lookup], Iterator[Key]]]] = {
    ADMISSION_CHECK: _of_check,
    PLACEMENT: _of_placement,
    PLACEMENT_DECISION: _of_decision,
    CLUSTER_PROFILE: _of_profile,
    SECRET: _of_secret,
    PLACEMENT_SCORE: _of_scores,
    MULTIKUEUE_CONFIG: _of_config,
    MULTIKUEUE_CLUSTER: _of_multikueue_cluster,
    WORKLOAD: _of_workload,
    MANAGED_CLUSTER: _of_managed_cluster,
    ACCOUNT: _of_grant,
    PERMISSION: _of_grant,
}
