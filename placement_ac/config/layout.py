"""
The settings file: its sections, their keys, and the setting behind each. No I/O.

Sections and keys are named as in the configuration files of Kueue and of Kubernetes' components.
"""

from collections.abc import Mapping
from typing import Any, Final

LAYOUT: Final[Mapping[str, str | Mapping[str, str]]] = {
    "kubeconfig": "kubeconfig",
    "context": "context",
    "placements": {"namespaces": "placement_namespace"},
    "clusterNames": "cluster_names",
    "kueue": {
        "namespace": "kueue_namespace",
        "version": "kueue_version",
        "featureGates": "kueue_feature_gates",
        "frameworks": "frameworks",
        "externalFrameworks": "external_frameworks",
    },
    "credentials": {
        "methods": "credentials",
        "accessProviders": "access_providers",
        "provision": "credentials_provision",
        "account": "credentials_account",
        "form": "credentials_form",
        "validity": "credentials_validity",
        "probe": "credentials_probe",
    },
    "clusterProxy": {"url": "cluster_proxy", "ca": "cluster_proxy_ca"},
    "workerSetup": {
        "method": "worker_setup",
        "template": "worker_setup_template",
        "quotaReserve": "quota_reserve",
    },
    "removal": {
        "policy": "removal_policy",
        "drainDeadline": "drain_deadline",
        "waitingGrace": "waiting_grace",
        "settle": "settle",
        "unlistAfter": "unlist_after",
        "massLossGrace": "mass_loss_grace",
    },
    "retryWaitingAfter": "retry_waiting_after",
    "dispatch": {
        "enabled": "dispatcher",
        "profile": "dispatch_profile",
        "stepSize": "step_size",
        "lookFor": "look_for",
        "nodeLabels": "node_labels",
        "jobTaints": "job_taints",
        "costLabels": "cost_labels",
        "avoidAfterFailure": "avoid_after_failure",
    },
    "scores": {"enabled": "report_scores", "gpus": "score_gpus", "nodes": "score_nodes"},
    "metrics": {"bindAddress": "metrics_bind_address"},
    "health": {"healthProbeBindAddress": "health_probe_bind_address"},
    "leaderElection": {
        "leaderElect": "leader_elect",
        "leaseDuration": "leader_elect_lease_duration",
        "resourceName": "leader_elect_resource_name",
        "resourceNamespace": "leader_elect_resource_namespace",
    },
    "logging": {"format": "log_format", "level": "log_level"},
}
"""Key → the name of a setting's field, or a section: its keys → theirs."""
BY_PATH: Final[Mapping[str, str]] = {
    path: name
    for key, entry in LAYOUT.items()
    for path, name in (
        ((key, entry),) if isinstance(entry, str) else ((f"{key}.{below}", entry[below]) for below in entry)
    )
}
"""The path of a setting in the file, like `dispatch.profile` → the name of its field."""
PATHS: Final[Mapping[str, str]] = {name: path for path, name in BY_PATH.items()}


def as_file(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a settings file with these values, by the names of their fields."""
    content: dict[str, Any] = {}
    for name, value in values.items():
        *section, key = PATHS[name].split(".")
        there = content.setdefault(section[0], {}) if section else content
        there[key] = value
    return content
