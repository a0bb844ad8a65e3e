"""
The kinds that a command needs, and the texts for those that a hub lacks or the caller may not read.

Pure.
"""

from collections.abc import Collection, Iterable
from typing import Final

from kubectl_placement.hub.dump import Dump, MissingRight
from kubectl_placement.hub.kinds import ALL_KINDS
from placement_ac.core.api.constants import (
    ADDON,
    CLUSTER_SET,
    KUEUE,
    MANAGED_BY,
    MANAGED_CLUSTER,
    NAMESPACE,
    OCM_CLUSTER,
    SECRET,
    SET_BINDING,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.text import joined
from placement_ac.core.decisions import SOURCE
from placement_ac.core.inputs.kinds import REQUIRED_KINDS

SERVED_KINDS: Final = tuple(kind for kind in REQUIRED_KINDS if kind != SECRET)
"""Kueue's and OCM's kinds that the controller needs: without one of them, a hub shows nothing."""
READ_KINDS: Final = tuple(kind for kind in SERVED_KINDS if kind != WORKLOAD)
"""Those that must be readable as well: without Workloads, only the jobs are unknown."""
SCHEDULING_KINDS: Final = (MANAGED_CLUSTER, CLUSTER_SET, SET_BINDING)
"""Those that OCM's scheduler needs as well: `explain` and `plan` compute its decisions."""

FIND_VIEWER_ROLES: Final = f"kubectl get clusterroles,roles -A -l app.kubernetes.io/name={MANAGED_BY}"
"""The roles of config/rbac/viewer.yaml end in -viewer; before that is the name of a Helm release."""
VIEWER_KINDS: Final = frozenset(ALL_KINDS) - {SECRET, NAMESPACE, ADDON}
"""The kinds that they let a user read: those that the commands read, except Secrets."""
_OWNERS: Final = {KUEUE: "Kueue", OCM_CLUSTER: "OCM", SOURCE.kind.group: SOURCE.name}


def not_served_text(dump: Dump, kinds: Iterable[Kind]) -> str:
    """Return the fix for a hub that lacks some of the `kinds` that were read; "" if it serves all."""
    lacking = [kind for kind in kinds if dump.live and kind in dump.objects and kind not in dump.served]
    if not lacking:
        return ""
    of_owner = (
        (owner, joined(kind.plural for kind in lacking if kind.group == group))
        for group, owner in _OWNERS.items()
    )
    names = " and ".join(f"{owner}'s {plurals}" for owner, plurals in of_owner if plurals)
    server = dump.server or "the server"
    return (
        f"check the context, or install what is missing: {server} does not serve {names} "
        "in a version that placement-ac supports"
    )


def unreadable(dump: Dump, kinds: Collection[Kind]) -> bool:
    """Whether the caller may not read one of the `kinds`."""
    return any(right.kind in kinds for right in dump.missing)


def missing_rights_text(missing: Collection[MissingRight]) -> str:
    """Return the fix for missing rights, and which; "" if none is missing."""
    if not missing:
        return ""
    in_role = [right for right in missing if right.kind in VIEWER_KINDS]
    others = [right for right in missing if right not in in_role]
    rest = joined(map(str, others))
    if not in_role:
        commands = joined((right.check_command for right in others), "; ")
        return f"ask an admin for the right to {rest} (check: {commands})"
    lacking = (
        f"ask an admin to bind placement-ac's viewer roles to you ({FIND_VIEWER_ROLES}): "
        f"you may not list {resources_text(in_role)}"
    )
    return f"{lacking}; the roles do not give the right to {rest}" if rest else lacking


def resources_text(missing: Iterable[MissingRight]) -> str:
    """Return the resources of missing rights, each kind once, with its namespaces."""
    spaces: dict[Kind, list[str]] = {}
    for right in missing:
        spaces.setdefault(right.kind, []).append(right.namespace)
    texts = (
        kind.plural if "" in names else f"{kind.plural} in namespace {joined(dict.fromkeys(names), ' and ')}"
        for kind, names in spaces.items()
    )
    return joined(texts)
