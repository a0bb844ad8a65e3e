"""
What the API server and Kueue's webhook make of a write to a Workload's status.

Pure. The embedded hub knows the two rules of the CRD, but not the webhook, and nobody but a stand-in
needs `keep_what_others_own`: server-side apply of a whole status does it by itself.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from placement_ac.lab.standins.multikueue.objects import Obj, cluster_of, nominated_of

KUEUE_MANAGER: Final = "kueue-admission"
"""The field manager of nearly all that Kueue writes into a Workload's status."""
NOT_NOMINATED: Final = "when setting clusterName it must be one of the nominatedClusterNames"
IMMUTABLE: Final = "clusterName is immutable once set"
EXCLUSIVE: Final = "clusterName and nominatedClusterNames are mutually exclusive"


def refusal(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return why an update of a Workload is refused (HTTP 422, or the webhook's 403), None if it is not."""
    was, becomes = cluster_of(before), cluster_of(after)
    if was and becomes and was != becomes:
        return IMMUTABLE
    if becomes and nominated_of(after):
        return EXCLUSIVE
    if becomes and not was and becomes not in nominated_of(before):
        return NOT_NOMINATED
    return None


def keep_what_others_own(before: Mapping[str, Any], status: Obj, owners: Collection[str]) -> Obj:
    """Return what an apply of `status` by Kueue comes to when `owners` own `nominatedClusterNames`.

    Kueue may write the field (force), but it cannot clear what another manager owns as well
    (external-dispatcher.txt: "clusterName set: never"). A merge patch under Kueue's own name is another
    owner, too (operation Update).
    """
    if set(owners) <= {KUEUE_MANAGER} or "nominatedClusterNames" in status:
        return status
    kept = nominated_of(before)
    return status | {"nominatedClusterNames": kept} if kept else status
