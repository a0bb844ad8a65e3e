"""
Rules for Kueue's connections to the workers and the expiry of their credentials.

Pure.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT_DECISION,
    SECRET,
)
from placement_ac.core.api.decode import active_of, kueue_object
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.plan.event_intents import expiry_warnings
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.kueue_config import CLUSTER_PROFILE_GATE, enable_gate, kueue_config
from placement_ac.inspection.doctor.setup import HubSetup, hub_rule
from placement_ac.inspection.doctor.worker_fixes import put_secret
from placement_ac.inspection.status.queues import inactive_reason


@hub_rule(
    "connections",
    "Kueue is connected to each listed cluster; the fix depends on Kueue's reason",
    "kubectl describe multikueuecluster NAME",
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
)
def connections(setup: HubSetup) -> Iterator[RuleResult]:
    placements = {one.placement for one in setup.view.our_checks if one.placement}
    configs = (kueue_object(raw) for raw in setup.dump.of(MULTIKUEUE_CONFIG))
    listed = {name for config in configs if config.meta.name in placements for name in config.listed}
    connected = 0
    for name in sorted(listed):
        raw = setup.dump.find(MULTIKUEUE_CLUSTER, name)
        active = active_of(raw) if raw else None
        if raw is None:
            logs = "kubectl get multikueueclusters"
            yield fail(f"MultiKueueCluster {name} is listed, but does not exist", logs)
        elif active is None:
            message = f"MultiKueueCluster {name} has no condition yet"
            yield warn(message, f"kubectl describe multikueuecluster {name}")
        elif active.status != "True":
            found = kueue_object(raw)
            fix = FIXES.get(active.reason, _describe)(setup, found)
            yield fail(f"Kueue is not connected to MultiKueueCluster {name}: {inactive_reason(active)}", fix)
        else:
            connected += 1
    yield ok(f"Kueue is connected to {connected} of {len(listed)} listed clusters")


@hub_rule(
    "credentials",
    "each selected cluster has credentials that Kueue can use",
    "kubectl create secret generic -n KUEUE multikueue-CLUSTER --from-file=kubeconfig=FILE",
    ADMISSION_CHECK,
)
def credentials(setup: HubSetup) -> Iterator[RuleResult]:
    if unknown := _unknown(setup):
        yield from unknown
        return
    usable: set[str] = set()
    for placement in _placements(setup):
        selection = setup.view.targets(placement).selection
        usable |= {entry.cluster for entry in selection.listable}
        for cluster, why in selection.problems.items():
            yield (warn if selection.listable else fail)(
                f"cluster {cluster} of Placement {placement} is left out: {why}",
                _provide_credentials(setup, cluster),
            )
    yield ok(f"{len(usable)} selected clusters have usable credentials")


@hub_rule(
    "credential-expiry",
    "no credentials expire within `--credentials-warning`",
    "kubectl create secret generic -n KUEUE SECRET --from-file=kubeconfig=FILE",
    ADMISSION_CHECK,
)
def credential_expiry(setup: HubSetup) -> Iterator[RuleResult]:
    if unknown := _unknown(setup):
        yield from unknown
        return
    message: dict[str, RuleResult] = {}
    for placement in _placements(setup):
        seen = setup.view.snapshot(placement)
        for cluster in setup.view.plan(placement).clusters:
            for notice in expiry_warnings(seen, [cluster]).events:
                source = cluster.source.name if cluster.source else ""
                message[source] = warn(
                    notice.message, put_secret(setup.kueue_namespace, source, cluster.cluster)
                )
    yield from message.values()
    yield ok("no credentials expire soon")


def _unknown(setup: HubSetup) -> tuple[RuleResult, ...]:
    """Return a warning if it is unknown which clusters are selected or have credentials."""
    decisions = setup.unknown_results(PLACEMENT_DECISION, namespaces=setup.placement_namespaces)
    if decisions or setup.view.credentials_known:
        return decisions
    return setup.unknown_results(SECRET, CLUSTER_PROFILE, namespaces=[setup.kueue_namespace])


def _placements(setup: HubSetup) -> list[str]:
    return sorted({one.placement for one in setup.view.our_checks if one.placement})


def _cluster(one: KueueObject) -> str:
    return one.cluster or one.meta.name


def _provide_credentials(setup: HubSetup, cluster: str) -> str:
    """Return the command that creates credentials for a cluster, or shows those that OCM provisions."""
    if setup.settings.credentials_provision == "none":
        return put_secret(setup.kueue_namespace, f"multikueue-{cluster}", cluster)
    return f"kubectl describe {ACCOUNT},{PERMISSION} -n {shlex.quote(cluster)}"


def _renew_secret(setup: HubSetup, one: KueueObject) -> str:
    return put_secret(setup.kueue_namespace, one.source[1], _cluster(one))


def _try_kubeconfig(setup: HubSetup, one: KueueObject) -> str:
    """Return the command that tests the kubeconfig like Kueue: may it watch Workloads?"""
    kind, name = one.source
    if kind != SECRET.kind:
        return _show_profile(setup, one)
    file = shlex.quote(f"{_cluster(one)}.kubeconfig")
    secret = f"secret -n {setup.kueue_namespace} {shlex.quote(name)}"
    read = f"kubectl get {secret} -o jsonpath='{{.data.kubeconfig}}'"
    ask = f"kubectl --kubeconfig {file} auth can-i watch workloads.kueue.x-k8s.io -A"
    return f"(umask 077; {read} | base64 -d > {file}) && {ask}"


def _enable_profiles(setup: HubSetup, _: KueueObject) -> str:
    return enable_gate(setup, kueue_config(setup), CLUSTER_PROFILE_GATE)


def _show_profile(setup: HubSetup, one: KueueObject) -> str:
    return f"kubectl get clusterprofile -n {setup.kueue_namespace} {shlex.quote(one.source[1])} -o yaml"


def _describe(_: HubSetup, one: KueueObject) -> str:
    return f"kubectl describe multikueuecluster {one.meta.name}"


FIXES: Final[Mapping[str, Callable[[HubSetup, KueueObject], str]]] = {
    "BadKubeConfig": _renew_secret,
    "InsecureKubeConfig": _renew_secret,
    "ClientConnectionFailed": _try_kubeconfig,
    "MultiKueueClusterProfileFeatureDisabled": _enable_profiles,
    "BadClusterProfile": _show_profile,
}
"""By the reason of a MultiKueueCluster's condition, as seen on real Kueue."""

RULES: Final = (credentials, credential_expiry, connections)
