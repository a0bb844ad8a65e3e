"""
Kueue's webhook and CRD rules for writes to a Workload's status.

Pure. The embedded hub enforces the two rules of the CRD, but has no webhook. `keep_what_others_own` simulates
server-side apply where no API server is involved.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from placement_ac.core.api.constants import KUEUE_ADMISSION
from placement_lab.standins.multikueue.objects import Obj, cluster_of, nominated_of

NOT_NOMINATED: Final = "when setting clusterName it must be one of the nominatedClusterNames"
IMMUTABLE: Final = "clusterName is immutable once set"
EXCLUSIVE: Final = "clusterName and nominatedClusterNames are mutually exclusive"


def refusal(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return why an update of a Workload is rejected (HTTP 422, or 403 by the webhook), else None."""
    was, becomes = cluster_of(before), cluster_of(after)
    if was and becomes and was != becomes:
        return IMMUTABLE
    if becomes and nominated_of(after):
        return EXCLUSIVE
    if becomes and not was and becomes not in nominated_of(before):
        return NOT_NOMINATED
    return None


def keep_what_others_own(before: Mapping[str, Any], status: Obj, owners: Collection[str]) -> Obj:
    """Return the result of Kueue's apply of `status` if `owners` own `nominatedClusterNames`.

    Kueue can write the field (force), but cannot clear it while another manager owns it
    (external-dispatcher.txt: "clusterName set: never"). A merge patch under Kueue's name also
    counts as another owner (operation Update).
    """
    if set(owners) <= {KUEUE_ADMISSION} or "nominatedClusterNames" in status:
        return status
    kept = nominated_of(before)
    return status | {"nominatedClusterNames": kept} if kept else status
