"""The kinds that inspection reads beside those that the controller watches, and their names in kubectl."""

from typing import Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON,
    CLUSTER_QUEUE,
    CLUSTER_SET,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    KUEUE,
    LEASE,
    LIMIT_RANGE,
    LOCAL_QUEUE,
    MANIFEST_WORK,
    NAMESPACE,
    PERMISSION,
    RESOURCE_FLAVOR,
    RUNTIME_CLASS,
    SET_BINDING,
    Kind,
)
from placement_ac.core.inputs.kinds import WATCHED_KINDS

CRD: Final = Kind(
    "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", False, ("v1",)
)
CLUSTER_ROLE: Final = Kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", False, ("v1",))
CLUSTER_ROLE_BINDING: Final = Kind(
    "rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", False, ("v1",)
)

DECISION_KINDS: Final = (*WATCHED_KINDS, CLUSTER_SET, SET_BINDING)
"""The kinds that decide which clusters a check has: the controller's, and those OCM's scheduler reads."""
QUEUE_KINDS: Final = (CLUSTER_QUEUE, LOCAL_QUEUE)
PROVISIONED_KINDS: Final = (ACCOUNT, PERMISSION)
"""The kinds with which OCM provisions credentials."""
SETTINGS_KINDS: Final = (DEPLOYMENT, CONFIG_MAP)
"""The kinds that hold the controller's settings."""
CONTROLLER_KINDS: Final = (*SETTINGS_KINDS, LEASE)
"""Those, and that of the controller's Lease."""

ALL_KINDS: Final = (
    *DECISION_KINDS,
    *QUEUE_KINDS,
    *PROVISIONED_KINDS,
    MANIFEST_WORK,
    *CONTROLLER_KINDS,
    RESOURCE_FLAVOR,
    ADDON,
    CRD,
    NAMESPACE,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    EVENT,
)
"""Every kind that a dump may contain; other kinds are ignored. No dump has Jobs: Pods may contain secrets."""

JOB_DEFAULT_KINDS: Final = (LIMIT_RANGE, RUNTIME_CLASS)
"""Kueue adds to the requests of a job by them; a file may hold them, `dump` does not read them."""

KUEUE_CRDS: Final = tuple(
    f"{plural}.{KUEUE}"
    for plural in (
        *("admissionchecks", "clusterqueues", "cohorts", "localqueues", "multikueueclusters"),
        *("multikueueconfigs", "provisioningrequestconfigs", "resourceflavors", "topologies"),
        *("workloadpriorityclasses", "workloads"),
    )
)
"""Kueue's CRDs that had v1beta1 (hack/migrate-to-v1beta2.sh)."""
CRDS_READ: Final = tuple(
    dict.fromkeys(
        (
            *KUEUE_CRDS,
            *(str(kind) for kind in ALL_KINDS if "." in kind.group and not kind.group.endswith(".k8s.io")),
        )
    )
)
"""The only CRDs that are read of a hub: there may be hundreds, of a megabyte each."""
