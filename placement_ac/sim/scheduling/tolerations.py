"""
Taints of the clusters and `spec.tolerations`, with their seconds.

Pure. `PreferNoSelect` never drops a cluster, `NoSelectIfNew` spares those that
are decided already. A toleration with `tolerationSeconds` holds from the
taint's `timeAdded` on; OCM counts a taint without it as long past.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from placement_ac.sim.scheduling.objects import (
    Fleet,
    Obj,
    decided_names,
    instant,
    integer,
    listed,
    own_decisions,
    text,
)
from placement_ac.sim.scheduling.status import MisconfiguredError

PLUGIN = "TaintToleration"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A taint or a whole cluster is tolerated, for good or `until` a time."""

    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Bearing:
    """What the taints of a cluster are held against."""

    tolerations: tuple[Obj, ...]
    decided: frozenset[str]
    now: datetime


def taint_objections(
    placement: Obj, clusters: Mapping[str, Obj], fleet: Fleet, now: datetime
) -> dict[str, str]:
    """Return the taint that drops each cluster that is dropped; raise MisconfiguredError."""
    if not clusters:
        return {}
    bearing = _bearing(placement, fleet, now)
    for toleration in bearing.tolerations:
        _check(toleration)
    found = {name: _untolerated(name, cluster, bearing) for name, cluster in clusters.items()}
    return {name: _shown(taint) for name, taint in found.items() if taint is not None}


def tolerated_until(placement: Obj, fleet: Fleet, now: datetime) -> datetime | None:
    """Return when the first toleration of a decided cluster ends, None if none does."""
    bearing = _bearing(placement, fleet, now)
    ends = []
    for name in bearing.decided:
        cluster = fleet.clusters.get(("", name), {})
        borne = [_borne(name, taint, bearing) for taint in listed(cluster, "spec", "taints")]
        if all(borne):
            ends += [one.until for one in borne if one is not None and one.until is not None]
    return min(ends, default=None)


def _bearing(placement: Obj, fleet: Fleet, now: datetime) -> Bearing:
    decided = frozenset(decided_names(own_decisions(placement, fleet)))
    return Bearing(tuple(listed(placement, "spec", "tolerations")), decided, now)


def _check(toleration: Obj) -> None:
    operator = text(toleration, "operator")
    if not text(toleration, "key") and operator != "Exists":
        raise MisconfiguredError(PLUGIN, "If the key is empty, operator must be Exists.")
    if operator == "Exists" and text(toleration, "value"):
        raise MisconfiguredError(PLUGIN, "If the operator is Exists, the value should be empty.")


def _untolerated(name: str, cluster: Obj, bearing: Bearing) -> Obj | None:
    taints = listed(cluster, "spec", "taints")
    return next((taint for taint in taints if _borne(name, taint, bearing) is None), None)


def _borne(cluster: str, taint: Obj, bearing: Bearing) -> Tolerance | None:
    effect = text(taint, "effect")
    if effect == "PreferNoSelect" or (effect == "NoSelectIfNew" and cluster in bearing.decided):
        return Tolerance()
    borne = (_tolerance(taint, toleration, bearing.now) for toleration in bearing.tolerations)
    return next((one for one in borne if one is not None), None)


def _tolerance(taint: Obj, toleration: Obj, now: datetime) -> Tolerance | None:
    if not _concerns(toleration, taint):
        return None
    seconds = integer(toleration, "tolerationSeconds")
    if seconds is None:
        return Tolerance()
    added = instant(taint, "timeAdded")
    until = None if added is None else added + timedelta(seconds=seconds)
    return Tolerance(until) if until is not None and now < until else None


def _concerns(toleration: Obj, taint: Obj) -> bool:
    if text(toleration, "effect") not in ("", text(taint, "effect")):
        return False
    if text(toleration, "key") not in ("", text(taint, "key")):
        return False
    match text(toleration, "operator"):
        case "" | "Equal":
            return text(toleration, "value") == text(taint, "value")
        case operator:
            return operator == "Exists"


def _shown(taint: Obj) -> str:
    value = f"={text(taint, 'value')}" if text(taint, "value") else ""
    return f"taint {text(taint, 'key')}{value}:{text(taint, 'effect')}"
