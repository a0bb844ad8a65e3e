"""
A worker or a job that Kueue cannot use, in plain words: the fix first, then the reason that Kueue reports.

Pure. Source: Kueue's pkg/controller/admissionchecks/multikueue.
"""

import re
from collections.abc import Callable
from typing import Final

from kubectl_placement.hub.dump import Object, condition_of
from placement_ac.core.api.constants import RETRY
from placement_ac.core.api.fields import get_list, get_str
from placement_ac.core.inputs.rights import ExternalFramework, parse_external

_NO_MATCH: Final = re.compile(r'no matches for kind "([^"]{1,63})" in version "([^"/]{1,253})/([^"/]{1,63})"')
_OUT_OF_SYNC: Final = re.compile(r'Remote workload on worker cluster "([^"]{1,253})" is out of sync')


def missing_kind(message: str) -> ExternalFramework | None:
    """Return the job kind that a worker lacks, by its MultiKueueCluster's message; None: another problem."""
    match = _NO_MATCH.search(message)
    kind = parse_external(f"{match[1]}.{match[3]}.{match[2]}") if match else ""
    return None if isinstance(kind, str) else kind


def missing_kind_fix(message: str) -> str:
    """Return what to do about a job kind that a worker lacks; "" if that is not the problem."""
    kind = missing_kind(message)
    if kind is None:
        return ""
    return (
        f"install the CRD {kind.plural}.{kind.group} there, or disable {kind.kind} in the hub's Kueue: it"
        " connects only to workers that serve every job kind which it has enabled, so no job goes there"
    )


def sync_failure(workload: Object, cluster_of: Callable[[str], str]) -> str:
    """Return why Kueue sends the job again whose copy ended without running it; "" if it does not.

    `cluster_of` gives the managed cluster of a MultiKueueCluster. An eviction by a check lists its message.
    """
    entries = get_list(workload, "status", "admissionChecks")
    messages = [get_str(entry, "message") for entry in entries if entry.get("state") == RETRY]
    messages.append(get_str(condition_of(workload, "Evicted"), "message"))
    match = next(filter(None, map(_OUT_OF_SYNC.search, messages)), None)
    if match is None or get_str(workload, "status", "clusterName"):
        return ""
    cluster = cluster_of(match[1])
    return (
        f"compare the Job on {cluster} with the hub's: its copy there ended out of sync with it, because"
        " something on that worker changes or deletes Jobs, such as a webhook; Kueue sends it again"
    )
