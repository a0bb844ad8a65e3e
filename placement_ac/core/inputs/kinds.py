"""The kinds of objects that the controller reads on a hub; that of decisions is the source's. Pure data."""

from typing import Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CAPACITY_PROVIDER,
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    CONFIG_MAP,
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
)
from placement_ac.core.decisions import SOURCE

REQUIRED_KINDS: Final = (
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
    PLACEMENT,
    SOURCE.kind,
    SECRET,
    WORKLOAD,
)
OPTIONAL_KINDS: Final = (CLUSTER_PROFILE, PLACEMENT_SCORE, MANAGED_CLUSTER)
"""Kinds that a hub need not serve: it has no such objects then."""
WATCHED_KINDS: Final = REQUIRED_KINDS + OPTIONAL_KINDS
SETUP_KINDS: Final = (CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR, CONFIG_MAP, MANIFEST_WORK)
"""Kinds that are read where workers are set up; a hub need not serve the last one."""
REPORT_KINDS: Final = (CLUSTER_QUEUE, LOCAL_QUEUE)
"""Kinds that are read where scores are reported."""
CAPACITY_KINDS: Final = (CAPACITY_PROVIDER, CLUSTER_QUEUE, LOCAL_QUEUE)
"""Kinds that are read while a CapacityProvider is ours; a hub need not serve the first one."""
KOPF_KINDS: Final = (ADMISSION_CHECK, PLACEMENT, ACCOUNT, PERMISSION)
"""Kinds that kopf follows; an informer follows the others.

Of those there may be very many, or they change with every decision (an event takes three times the CPU in
kopf), or (ClusterProfile) they hold anything: kopf ends at an object that is nested 1,000 levels deep.
"""
