"""
The resources that no quota can be given of, as the hub's ClusterQueue does not name them. Pure.

Source: Kueue `pkg/scheduler/flavorassigner`: the job waits for ever, unless Kueue's configuration excludes
the resource (`resources.excludeResourcePrefixes`, `quotaCheckStrategy: IgnoreUndeclared`).
"""

import re
from typing import Final

from placement_ac.core.api.fields import Obj, get_str, get_strs
from placement_ac.core.api.text import joined

_UNNAMED: Final = re.compile(r"resource (\S{1,317}) unavailable in ClusterQueue")
_IGNORES: Final = "IgnoreUndeclared"


def unnamed_resources(message: str) -> tuple[str, ...]:
    """Return the resources of which Kueue says, in a Workload's condition, that the ClusterQueue has none."""
    return tuple(dict.fromkeys(_UNNAMED.findall(message)))


def never_here(message: str, cluster_queue: str) -> tuple[str, str]:
    """Return why the hub never gives a job quota, and what to do; "": Kueue's message does not say so."""
    if not (unnamed := unnamed_resources(message)):
        return "", ""
    where = f"ClusterQueue {cluster_queue}" if cluster_queue else "its ClusterQueue"
    why = f"{joined(unnamed)}, of which {where} on the hub has no quota, so the job never runs"
    fix = (
        f"do not ask for it, or ask an admin to name it in {where}, or to exclude it in Kueue's configuration"
    )
    return why, fix


def is_excluded(resource: str, resources: Obj | None) -> bool | None:
    """Return whether a Kueue lets jobs ask for a resource that no queue names; None: it is not known.

    `resources`: that part of its configuration; None: it was not read.
    """
    if resources is None:
        return None
    prefixes = get_strs(resources, "excludeResourcePrefixes")
    ignores = get_str(resources, "quotaCheckStrategy") == _IGNORES
    return ignores or resource.startswith(tuple(prefixes))
