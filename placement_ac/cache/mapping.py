"""
Map a change of one object to the keys that it touches.

Pure. The object before the change and the one after it are mapped separately, so that what it no longer names
is reconciled as well.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from placement_ac.cache.score_reports import candidates, uses_scores
from placement_ac.cache.tables import Tables, cluster_queue_of
from placement_ac.core.api import objects
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CAPACITY_PROVIDER,
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    LABEL_CLUSTER,
    LOCAL_QUEUE,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_SCORE,
    RESOURCE_FLAVOR,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.credentials.named_secret import clusters_of_secret
from placement_ac.core.decisions.source import Decision
from placement_ac.core.inputs.state import Key


def keys_for(kind: Kind, states: Iterable[Any], tables: Tables) -> set[Key]:
    """Return the keys that an object of `kind` touches in any of `states`: before and after (None: gone)."""
    rule = _from_namespace if kind.only else _RULES.get(kind, _from_decision)
    return {key for obj in states if obj is not None for key in rule(obj, tables)}


def score_keys(states: Iterable[Any], tables: Tables) -> set[Key]:
    """Return the keys of the scores that an object touches in any of `states`.

    A Secret touches none: while a worker cannot be read, its key looks again by itself.
    """
    clusters: set[str] = set()
    for obj in states:
        if isinstance(obj, objects.ManagedCluster):
            clusters.add(obj.meta.name)
        elif isinstance(obj, objects.Scores) and obj.written:
            clusters.add(obj.meta.namespace)
        elif isinstance(obj, objects.Placement) and uses_scores(obj):
            clusters.update(candidates(obj, tables))
        elif isinstance(obj, objects.Check) and obj.ours:
            named = tables.placements.get((tables.home_of(obj.placement), obj.placement))
            clusters.update(candidates(named, tables) if named and uses_scores(named) else ())
    return {Key("score", cluster) for cluster in clusters}


def all_keys(tables: Tables) -> set[Key]:
    """Return every key: all must be reconciled once everything has been listed."""
    keys = {
        key
        for kind in (ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER, CAPACITY_PROVIDER)
        for key in keys_for(kind, tables.by_kind[kind].objects.values(), tables)
        if key.kind in ("check", "provider") or (key.kind == "placement" and _is_ours(key.name, tables))
    }
    return keys.union(_clusters(_clusters_with_keys(tables), tables))


def possible_pairs(name: str) -> Iterator[tuple[str, str]]:
    """Yield every (placement, cluster) for which `<placement>-<cluster>` is that name."""
    at = name.find("-", 1)
    while 0 < at < len(name) - 1:
        yield name[:at], name[at + 1 :]
        at = name.find("-", at + 1)


def _placements(names: Iterable[str]) -> Iterator[Key]:
    return (Key("placement", name) for name in names if name)


def _clusters(clusters: Iterable[str], tables: Tables) -> Iterator[Key]:
    """Yield the keys of clusters, if credentials are provisioned or workers set up at all."""
    wanted = tables.provisioning.provision or tables.setup.enabled
    return (Key("cluster", name) for name in clusters if name and wanted)


def _is_ours(placement: str, tables: Tables) -> bool:
    config = tables.configs.get(("", placement))
    return (
        placement in tables.checks.index("placement")
        or placement in tables.capacity_providers.index("placement")
        or placement in tables.multikueue_clusters.index("placement")
        or ("", placement) in tables.multikueue_clusters.index("shared").ids("shared")
        or (config is not None and config.ours)
    )


def _clusters_with_keys(tables: Tables) -> Iterator[str]:
    """Yield the clusters that may need credentials or queues, or have some that are no longer needed."""
    for placement in tables.checks.index("placement"):
        yield from tables.selected_by(placement)
    made = (tables.secrets, tables.accounts, tables.permissions, tables.works)
    for table in (tables.multikueue_clusters, *made):
        yield from table.index("cluster")


def _from_our_check(check: objects.Check) -> Key:
    return Key("placement", check.placement) if check.placement else Key("check", check.meta.name)


def _from_check(check: objects.Check, tables: Tables) -> Iterator[Key]:
    if check.ours:
        yield _from_our_check(check)
        yield from _waiting_for_names(check.placement, tables.selected_by(check.placement), tables)
        yield from _clusters(tables.clusters_of(check.placement), tables)
        # Whatever its parameters say now, it owns objects.
        uid = check.meta.uid
        yield from _placements(config.meta.name for config in tables.configs.by("owner", uid))
        yield from _placements(obj.placement for obj in tables.multikueue_clusters.by("owner", uid))
    yield from _placements([check.config])


def _from_placement(placement: objects.Placement, tables: Tables) -> Iterator[Key]:
    yield Key("placement", placement.meta.name)
    yield from _clusters(tables.selected_by(placement.meta.name), tables)  # its status names decisions
    if len(tables.hub.namespaces) > 1:  # which decisions count depends on where there is a Placement
        for decision in tables.decisions.by("placement", placement.meta.name):
            yield from _from_decision(decision, tables)


def _from_decision(decision: Decision, tables: Tables) -> Iterator[Key]:
    if decision.placement:
        yield Key("placement", decision.placement)
        yield from _waiting_for_names(decision.placement, decision.clusters, tables)
    yield from _shared_without_user(decision.clusters, tables)
    yield from _clusters(decision.clusters, tables)


def _shared_without_user(names: Iterable[str], tables: Tables, config: str = "") -> Iterator[Key]:
    """Yield the keys of the shared MultiKueueClusters among `names` that only `config` lists, or nobody.

    The key of its own name removes such a MultiKueueCluster when no Placement needs it any more.
    """
    all_shared = tables.multikueue_clusters.index("shared").ids("shared")
    shared = [name for name in names if ("", name) in all_shared]
    used = tables.configs.index("listed").used_by_others(shared, ("", config))
    yield from _placements(name for name in shared if name not in used)


def _waiting_for_names(placement: str, clusters: Iterable[str], tables: Tables) -> Iterator[Key]:
    """Yield the Placements that may wait for a name of this one, such as a-b for the name of (a, b-c).

    See `_name_conflicts` in `snapshot`.
    """
    if tables.hub.shared:
        return
    for cluster in clusters:
        longer = (f"{placement}-{cluster[:at]}" for at, sign in enumerate(cluster) if sign == "-")
        yield from _placements(name for name in longer if name in tables.checks.index("placement"))


def _from_cluster(cluster: str, tables: Tables) -> Iterator[Key]:
    for placement in tables.placements_of(cluster):
        yield Key("placement", placement)
        yield from _waiting_for_names(placement, (cluster,), tables)
    yield from _clusters((cluster,), tables)


def _from_managed_cluster(cluster: objects.ManagedCluster, tables: Tables) -> Iterator[Key]:
    yield from _from_cluster(cluster.meta.name, tables)


def _from_secret(secret: objects.Secret, tables: Tables) -> Iterator[Key]:
    name, label = secret.meta.name, secret.meta.labels.get(LABEL_CLUSTER, "")
    by_profile = {profile.cluster for profile in tables.profiles.by("secret", name)}
    by_name = {*clusters_of_secret(name), *tables.clusters_of_provisioned_secret(name)}
    by_label = {label} if label and secret.ours else set[str]()
    for cluster in by_profile | by_name | by_label:
        yield from _from_cluster(cluster, tables)


def _from_namespace(
    obj: objects.ProvisionedObject | objects.AccountToken | objects.ManifestWork | objects.Scores,
    tables: Tables,
) -> Iterator[Key]:
    """OCM: the namespace of a cluster has the cluster's name."""
    return _from_cluster(obj.meta.namespace, tables)


def _from_config(config: objects.KueueObject, tables: Tables) -> Iterator[Key]:
    yield from _placements([config.meta.name, config.placement])
    listed = (tables.multikueue_clusters.get(("", name)) for name in config.listed)
    yield from _placements(obj.placement for obj in listed if obj and obj.ours)
    yield from _shared_without_user(config.listed, tables, config.meta.name)


def _from_multikueue_cluster(obj: objects.KueueObject, tables: Tables) -> Iterator[Key]:
    name = obj.meta.name
    if obj.placement:
        yield Key("placement", obj.placement)
    elif obj.ours:
        yield Key("placement", name)  # its own name: that key removes a shared one
    yield from _placements(placement for placement, _ in possible_pairs(name))
    yield from _from_cluster(name, tables)
    kind, source = obj.source  # one that is not ours may use what we provisioned
    users = {source} if kind == "ClusterProfile" else tables.clusters_of_provisioned_secret(source)
    yield from _clusters({obj.cluster, *users}, tables)


def _from_workload(workload: objects.Workload, tables: Tables) -> Iterator[Key]:
    for state in workload.check_states:
        check = tables.checks.get(("", state.check))
        if check and check.ours:
            yield _from_our_check(check)
        elif check and check.config:
            yield Key("placement", check.config)
        if check:  # what it named before its parameters were changed stays as long as jobs are there
            yield from _placements(config.meta.name for config in tables.configs.by("owner", check.meta.uid))


def _from_cluster_queue(queue: objects.HubQueue, tables: Tables) -> Iterator[Key]:
    """Yield the clusters to which the ClusterQueue sends jobs, and Placements whose quota is published."""
    for name in queue.checks:
        check = tables.checks.get(("", name))
        placement = check.placement or check.config if check else ""
        if placement in tables.capacity_providers.index("placement"):
            yield Key("placement", placement)
        if placement:
            yield from _clusters(tables.clusters_of(placement), tables)


def _from_local_queue(queue: objects.HubQueue, tables: Tables) -> Iterator[Key]:
    used = tables.cluster_queues.get(("", cluster_queue_of(queue)))
    return _from_cluster_queue(used, tables) if used else iter(())


def _from_capacity_provider(provider: objects.CapacityProvider, _: Tables) -> Iterator[Key]:
    if provider.ours:
        placement = provider.placement
        yield Key("placement", placement) if placement else Key("provider", provider.meta.name)


def _from_template(_: object, tables: Tables) -> Iterator[Key]:
    return _clusters(_clusters_with_keys(tables), tables)


_RULES: Final[Mapping[Kind, Callable[[Any, Tables], Iterator[Key]]]] = {
    ADMISSION_CHECK: _from_check,
    PLACEMENT: _from_placement,
    CLUSTER_PROFILE: lambda profile, tables: _from_cluster(profile.cluster, tables),
    SECRET: _from_secret,
    PLACEMENT_SCORE: _from_namespace,
    MULTIKUEUE_CONFIG: _from_config,
    MULTIKUEUE_CLUSTER: _from_multikueue_cluster,
    WORKLOAD: _from_workload,
    MANAGED_CLUSTER: _from_managed_cluster,
    ACCOUNT: _from_namespace,
    PERMISSION: _from_namespace,
    CLUSTER_QUEUE: _from_cluster_queue,
    LOCAL_QUEUE: _from_local_queue,
    RESOURCE_FLAVOR: _from_template,
    CONFIG_MAP: _from_template,
    CAPACITY_PROVIDER: _from_capacity_provider,
}
