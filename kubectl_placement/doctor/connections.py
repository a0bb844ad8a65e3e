"""
Rules for Kueue's connections to the workers: their credentials, and the expiry of these.

Pure. No text quotes a kubeconfig.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_placement.doctor.commands import copy_crds, put_secret
from kubectl_placement.doctor.finding import Cause, Finding, fail, of_cluster, ok, warn
from kubectl_placement.doctor.kueue import CLUSTER_PROFILE_GATE
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.status.kueue_failures import missing_kind
from kubectl_placement.status.queues import inactive_reason
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    SECRET,
)
from placement_ac.core.api.decode import active_of, kueue_object
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.schemas import Condition
from placement_ac.core.decisions import SOURCE
from placement_ac.core.plan.event_intents import expiry_warnings
from placement_ac.core.selection.selection import maintenance_of

_CAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    "MultiKueueClusterProfileFeatureDisabled": ("cluster-profile-gate",),
    "BadClusterProfile": ("access-providers", "cluster-profile-gate"),
}
"""Kueue's reason → the checks that find its cause."""
_ON_WORKER: Final = ("worker-access", "worker-kueue", "worker-jobs", "worker-rights")
"""The checks of a worker that find why Kueue cannot connect to it."""


@hub_rule(
    "connections",
    "Kueue is connected to each listed cluster; the fix depends on Kueue's reason",
    "kubectl describe multikueuecluster NAME",
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
)
def connections(setup: HubSetup) -> Iterator[Finding]:
    configs = (kueue_object(raw) for raw in setup.dump.of(MULTIKUEUE_CONFIG))
    used = (config for config in configs if config.meta.name in setup.checks_by_placement)
    listed = {name for config in used for name in config.listed}
    connected = 0
    for name in sorted(listed):
        raw = setup.dump.find(MULTIKUEUE_CLUSTER, name)
        active = active_of(raw) if raw else None
        if raw is None:
            message = f"MultiKueueCluster {name} is listed, but does not exist"
            yield fail(message, "kubectl get multikueueclusters", cluster=name)
        elif active is None:
            message = f"MultiKueueCluster {name} has no condition yet"
            yield warn(message, f"kubectl describe multikueuecluster {name}", cluster=name)
        elif active.status != "True":
            fix = _reconnect(setup, kueue_object(raw), active)
            message = f"Kueue is not connected to MultiKueueCluster {name}: {inactive_reason(active)}"
            cluster = kueue_object(raw).cluster or name
            causes = (*map(Cause, _CAUSES.get(active.reason, ())), *_found_there(cluster))
            yield fail(message, fix, f"MultiKueueCluster {name}", causes, cluster)
        else:
            connected += 1
    yield ok(f"Kueue is connected to {connected} of {len(listed)} listed clusters")


def _unknown(setup: HubSetup) -> tuple[Finding, ...]:
    """Return a warning if it is unknown which clusters are selected or have credentials."""
    decisions = setup.unknown(SOURCE.kind, namespaces=setup.placement_namespaces)
    if decisions or setup.view.credentials_known:
        return decisions
    return setup.unknown(SECRET, CLUSTER_PROFILE, namespaces=[setup.kueue_namespace])


@hub_rule(
    "credentials",
    "each selected cluster has credentials that Kueue can use",
    "kubectl create secret generic -n KUEUE multikueue-CLUSTER --from-file=kubeconfig=FILE",
    ADMISSION_CHECK,
    unknown=_unknown,
)
def credentials(setup: HubSetup) -> Iterator[Finding]:
    usable: set[str] = set()
    for placement in setup.checks_by_placement:
        selection = setup.view.targets(placement).selection
        usable |= {entry.cluster for entry in selection.listable}
        for decision, why in selection.unreadable.items():
            yield warn(f"{decision} of Placement {placement} cannot be read: {why}")
        for remark in selection.remarks:
            yield warn(f"Placement {placement}: {remark}")
        for cluster, why in selection.left_out.items():
            if maintenance_of(setup.view.snapshot(placement), cluster):
                continue  # an admin has said so
            if cluster in selection.second_names:
                continue  # `duplicate-clusters` has it
            if why == setup.view.cache.setups.state(cluster).problem:
                continue  # `worker-setup` has it
            yield (warn if selection.listable else fail)(
                f"cluster {cluster} of Placement {placement} is left out: {why}",
                _provide_credentials(setup, cluster),
                f"Placement {placement}",
                _found_there(cluster),
                cluster,
            )
    yield ok(f"{len(usable)} selected clusters have usable credentials")


@hub_rule(
    "credential-expiry",
    "no credentials expire within seven days",
    "kubectl create secret generic -n KUEUE SECRET --from-file=kubeconfig=FILE",
    ADMISSION_CHECK,
    unknown=_unknown,
)
def credential_expiry(setup: HubSetup) -> Iterator[Finding]:
    warnings: dict[str, Finding] = {}
    for placement in setup.checks_by_placement:
        snapshot = setup.view.snapshot(placement)
        for cluster in setup.view.plan(placement).clusters:
            for event in expiry_warnings(snapshot, [cluster]).events:
                source = cluster.source.name if cluster.source else ""
                fix = put_secret(setup.kueue_namespace, source, cluster.cluster)
                warnings[source] = warn(event.message, fix, cluster=cluster.cluster)
    yield from warnings.values()
    yield ok("no credentials expire soon")


def _found_there(cluster: str) -> Iterator[Cause]:
    """Yield what an inspection of the worker may have found: why Kueue cannot connect to it."""
    return (Cause(check, of_cluster(cluster)) for check in _ON_WORKER)


def _provide_credentials(setup: HubSetup, cluster: str) -> str:
    """Return the command that creates credentials for a cluster, or shows those that OCM provisions."""
    if setup.settings.credentials_provision == "none":
        return put_secret(setup.kueue_namespace, f"multikueue-{cluster}", cluster)
    return f"kubectl describe {ACCOUNT},{PERMISSION} -n {shlex.quote(cluster)}"


def _reconnect(setup: HubSetup, obj: KueueObject, active: Condition) -> str:
    """Return the command for a reason of a MultiKueueCluster's condition, as seen on real Kueue."""
    namespace, (kind, name), cluster = setup.kueue_namespace, obj.source, obj.cluster or obj.meta.name
    if lacking := missing_kind(active.message):
        return copy_crds(cluster, f"{lacking.plural}.{lacking.group}")
    match active.reason:
        case "BadKubeConfig" | "InsecureKubeConfig":
            return put_secret(namespace, name, cluster)
        case "ClientConnectionFailed" if kind == SECRET.kind:
            # Test it like Kueue: may it watch Workloads?
            file, secret = shlex.quote(f"{cluster}.kubeconfig"), shlex.quote(name)
            read = f"kubectl get secret -n {namespace} {secret} -o jsonpath='{{.data.kubeconfig}}'"
            ask = f"kubectl --kubeconfig {file} auth can-i watch workloads.kueue.x-k8s.io -A"
            return f"(umask 077; {read} | base64 -d > {file}) && {ask}"
        case "ClientConnectionFailed" | "BadClusterProfile" | "BadRestConfig":
            return f"kubectl get clusterprofile -n {namespace} {shlex.quote(name)} -o yaml"
        case "MultiKueueClusterProfileFeatureDisabled":
            return setup.kueue.enable_gate(CLUSTER_PROFILE_GATE)
        case _:
            return f"kubectl describe multikueuecluster {obj.meta.name}"


RULES: Final = (credentials, credential_expiry, connections)
