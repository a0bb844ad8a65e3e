"""
The conditions that Kueue sets on MultiKueueClusters, checks and queues: status, reason and message.

Pure. Source: shared/kueue/broken-configuration.txt and cluster-profile.txt
(Kueue v0.20.0-devel), and Kueue's code where nothing is recorded.
"""

import base64
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import (
    CONDITION_ACTIVE,
    KUBECONFIG_KEY,
    KUEUE,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CONTROLLER,
    PROVISIONING_CONTROLLER,
)
from placement_ac.kube.client import Object
from placement_lab.standins import kubeconfig
from placement_lab.standins.multikueue.inputs import NO_STOP

PATH_PREFIX: Final = "/etc/multikueue/kubeconfigs"
"""Kueue: the folder of kubeconfigs with `locationType: Path`."""


@dataclass(frozen=True, slots=True)
class ActiveCondition:
    """The content of a condition `Active`."""

    active: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class KueueCache:
    """The objects that Kueue looks up, by name."""

    configs: Mapping[str, Object]
    clusters: Mapping[str, Object]
    checks: Mapping[str, Object]
    flavors: Collection[str]
    queues: Mapping[str, Object]


@dataclass(frozen=True, slots=True)
class WorkerCredentials:
    """The credentials for workers in Kueue's namespace, and Kueue's configuration of them."""

    secrets: Mapping[str, Object]
    profiles: Mapping[str, Object]
    cluster_profiles: bool
    """The feature gate MultiKueueClusterProfile."""
    access_providers: frozenset[str]
    """The access providers in Kueue's configuration, by name."""


def is_active(item: Object | None) -> bool:
    """Return whether condition `Active` of the object is True."""
    return (condition_of(item or {}) or {}).get("status") == "True"


def condition_of(item: Object) -> Object | None:
    """Return the object's condition `Active`, if it has one."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return next((dict(condition) for condition in conditions if condition["type"] == CONDITION_ACTIVE), None)


# MultiKueueCluster


def source_of(cluster: Object) -> Object:
    """Return `kubeConfig` or `clusterProfileRef` of a MultiKueueCluster, whatever its version."""
    spec = cluster.get("spec") or {}
    return dict(spec.get("clusterSource") or spec)


def judge_cluster(cluster: Object, credentials: WorkerCredentials) -> ActiveCondition:
    """Return the condition of a MultiKueueCluster, assuming that the worker is reachable."""
    source = source_of(cluster)
    profile, reference = source.get("clusterProfileRef"), source.get("kubeConfig") or {}
    if profile:
        failure = _profile_failure(profile["name"], credentials)
    elif reference.get("locationType") == "Path":
        failure = "BadKubeConfig", _path_failure(reference["location"])
    else:
        failure = _secret_failure(reference.get("location", ""), credentials.secrets)
    if failure is None:
        return ActiveCondition(True, "Active", "Connected")
    reason, message = failure
    return ActiveCondition(False, reason, f"load client config failed: {message}")


def _profile_failure(name: str, credentials: WorkerCredentials) -> tuple[str, str] | None:
    if not credentials.cluster_profiles:
        disabled = "MultiKueueClusterProfile feature gate is disabled"
        return "MultiKueueClusterProfileFeatureDisabled", disabled
    if name not in credentials.profiles:
        return "BadClusterProfile", f'ClusterProfile.multicluster.x-k8s.io "{name}" not found'
    if not credentials.access_providers:
        return "BadClusterProfile", "no access provider configured"
    status = credentials.profiles[name].get("status") or {}
    offered = (*(status.get("accessProviders") or ()), *(status.get("credentialProviders") or ()))
    provider = next((offer for offer in offered if offer["name"] in credentials.access_providers), None)
    if provider is None:
        return "BadClusterProfile", f'no matching cluster accessor found for cluster profile "{name}"'
    if not kubeconfig.is_host((provider.get("cluster") or {}).get("server", "")):
        return "BadRestConfig", "untrusted server endpoint"  # by Kueue's code: `validateRestConfig`
    return None


def _path_failure(path: str) -> str:
    return f'kubeconfig path is not under the allowed prefix: "{path}" is not under "{PATH_PREFIX}"'


def _secret_failure(name: str, secrets: Mapping[str, Object]) -> tuple[str, str] | None:
    if name not in secrets:
        return "BadKubeConfig", f'Secret "{name}" not found'
    data = secrets[name].get("data") or {}
    if KUBECONFIG_KEY not in data:
        return "BadKubeConfig", f'key "{KUBECONFIG_KEY}" not found in secret "{name}"'
    refused = kubeconfig.refusal(base64.b64decode(data[KUBECONFIG_KEY]))
    return ("InsecureKubeConfig", refused) if refused else None


# AdmissionCheck of MultiKueue


def is_multikueue(check: Object) -> bool:
    return bool(check["spec"].get("controllerName") == MULTIKUEUE_CONTROLLER)


def judge_check(check: Object, cached: KueueCache) -> ActiveCondition:
    """Return the condition of an AdmissionCheck of MultiKueue."""
    parameters = check["spec"].get("parameters")
    wrong = _bad_parameters(parameters)
    if wrong or parameters is None:
        return _bad_config(wrong or "")
    config = cached.configs.get(parameters["name"])
    if config is None:
        return _bad_config(f'{MULTIKUEUE_CONFIG.kind}.{KUEUE} "{parameters["name"]}" not found')
    listed = config["spec"].get("clusters") or ()
    missing = [name for name in listed if name not in cached.clusters]
    inactive = [name for name in listed if name in cached.clusters and not is_active(cached.clusters[name])]
    if not missing and not inactive:
        return ActiveCondition(True, "Active", "The admission check is active")
    parts = (("Missing clusters", missing), ("Inactive clusters", inactive))
    message = ", ".join(f"{what}: [{' '.join(names)}]" for what, names in parts if names)
    if len(missing) + len(inactive) < len(listed):
        return ActiveCondition(True, "SomeActiveClusters", message)
    return ActiveCondition(False, "NoUsableClusters", message)


def _bad_parameters(parameters: Object | None) -> str | None:
    if parameters is None:
        return "missing parameters reference"
    for field, expected, word in (("apiGroup", KUEUE, "group"), ("kind", MULTIKUEUE_CONFIG.kind, "kind")):
        if parameters.get(field) != expected:
            return f'wrong {word} "{parameters.get(field)}", expecting "{expected}": bad parameters reference'
    return None


def _bad_config(why: str) -> ActiveCondition:
    return ActiveCondition(False, "BadConfig", f"Cannot load the AdmissionChecks parameters: {why}")


# ClusterQueue and LocalQueue


def checks_of(queue: Object) -> list[str]:
    """Return the names of the checks that a ClusterQueue lists, sorted."""
    strategy = queue["spec"].get("admissionChecksStrategy")
    if strategy is None:
        return sorted(queue["spec"].get("admissionChecks") or ())
    return sorted(rule["name"] for rule in strategy.get("admissionChecks") or ())


def flavors_of(queue: Object) -> list[str]:
    """Return the names of the ResourceFlavors that a ClusterQueue uses, in its order."""
    groups = queue["spec"].get("resourceGroups") or ()
    return [flavor["name"] for group in groups for flavor in group.get("flavors") or ()]


def quota_groups(queue: Object) -> list[Object]:
    """Return the resource groups of a ClusterQueue; none if its quota is not known, as a cohort has more."""
    spec = queue["spec"]
    return [] if spec.get("cohortName") or spec.get("cohort") else list(spec.get("resourceGroups") or ())


Finding = tuple[str, str]
"""(reason, part of the message)"""


def stop_policy(queue: Object) -> str:
    """Return the `stopPolicy` of a ClusterQueue or LocalQueue: None, Hold or HoldAndDrain."""
    return str(queue["spec"].get("stopPolicy", NO_STOP))


def is_stopped(queue: Object) -> bool:
    return stop_policy(queue) != NO_STOP


def _stopped(queue: Object, _: KueueCache) -> Finding | None:
    return ("Stopped", "is stopped") if is_stopped(queue) else None


def _flavor_missing(queue: Object, cached: KueueCache) -> Finding | None:
    missing = [name for name in flavors_of(queue) if name not in cached.flavors]
    return _names("FlavorNotFound", "references missing ResourceFlavor(s): ", missing)


def _check_missing(queue: Object, cached: KueueCache) -> Finding | None:
    missing = [name for name in checks_of(queue) if name not in cached.checks]
    return _names("AdmissionCheckNotFound", "references missing AdmissionCheck(s): ", missing)


def _check_inactive(queue: Object, cached: KueueCache) -> Finding | None:
    known = (name for name in checks_of(queue) if name in cached.checks)
    inactive = [name for name in known if not is_active(cached.checks[name])]
    return _names("AdmissionCheckInactive", "references inactive AdmissionCheck(s): ", inactive)


def _several_multikueue_checks(queue: Object, cached: KueueCache) -> Finding | None:
    known = (name for name in checks_of(queue) if name in cached.checks)
    ours = [name for name in known if is_multikueue(cached.checks[name])]
    message = "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: "
    return _names("MultipleMultiKueueAdmissionChecks", message, ours if len(ours) > 1 else [])


def _multikueue_per_flavor(queue: Object, cached: KueueCache) -> Finding | None:
    strategy = queue["spec"].get("admissionChecksStrategy") or {}
    limited = sorted(rule["name"] for rule in strategy.get("admissionChecks") or () if rule.get("onFlavors"))
    names = [name for name in limited if name in cached.checks and is_multikueue(cached.checks[name])]
    message = "Cannot specify MultiKueue AdmissionCheck per flavor, found: "
    return _names("MultiKueueAdmissionCheckAppliedPerFlavor", message, names)


def _multikueue_with_provisioning(queue: Object, cached: KueueCache) -> Finding | None:
    known = {name: cached.checks[name] for name in checks_of(queue) if name in cached.checks}
    senders = [name for name, check in known.items() if is_multikueue(check)]
    others = [
        name
        for name, check in known.items()
        if check["spec"].get("controllerName") == PROVISIONING_CONTROLLER
    ]
    message = "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: "
    both = f"{','.join(senders)}, {','.join(others)}"
    return ("MultiKueueWithProvisioningRequest", message + both) if senders and others else None


def _names(reason: str, message: str, names: Iterable[str]) -> Finding | None:
    joined = ",".join(names)
    return (reason, message + joined) if joined else None


# The order is Kueue's: the first finding gives the reason, and the message lists all.
QUEUE_RULES: tuple[Callable[[Object, KueueCache], Finding | None], ...] = (
    _stopped,
    _flavor_missing,
    _check_missing,
    _check_inactive,
    _several_multikueue_checks,
    _multikueue_per_flavor,
    _multikueue_with_provisioning,
)


def judge_queue(queue: Object, cached: KueueCache) -> ActiveCondition:
    """Return the condition of a ClusterQueue."""
    findings = [finding for rule in QUEUE_RULES if (finding := rule(queue, cached))]
    if not findings:
        return ActiveCondition(True, "Ready", "Can admit new workloads")
    messages = ", ".join(message for _, message in findings)
    return ActiveCondition(False, findings[0][0], f"Can't admit new workloads: {messages}.")


def judge_local_queue(queue: Object, cached: KueueCache) -> ActiveCondition:
    """Return the condition of a LocalQueue."""
    if is_stopped(queue):
        return ActiveCondition(False, "Stopped", "LocalQueue is stopped")
    target = cached.queues.get(queue["spec"].get("clusterQueue", ""))
    if is_active(target):
        return ActiveCondition(True, "Ready", "Can submit new workloads to localQueue")
    reason = "ClusterQueueIsInactive" if target else "ClusterQueueDoesNotExist"
    return ActiveCondition(False, reason, "Can't submit new workloads to clusterQueue")
