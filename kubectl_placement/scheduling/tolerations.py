"""
Taints of the clusters and `spec.tolerations`, with their seconds.

Pure. `PreferNoSelect` never drops a cluster, `NoSelectIfNew` spares those that
are decided already. A toleration with `tolerationSeconds` holds from the
taint's `timeAdded` on; OCM counts a taint without it as long past.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from kubectl_placement.scheduling.conditions import MisconfiguredError
from kubectl_placement.scheduling.fleet import Fleet, decided_names, own_decisions
from kubectl_placement.scheduling.outcome import FilterStep
from kubectl_placement.scheduling.sets import Pool
from placement_ac.core.api import fields
from placement_ac.core.api.fields import Obj

_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TaintTolerance:
    """A tolerated taint; `until`: when the toleration ends, None: never.

    `by`: the toleration; empty: the taint's effect does not drop the cluster.
    """

    until: datetime | None = None
    by: Obj = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaintContext:
    """The inputs for judging taints: tolerations, the clusters already selected, and the time."""

    tolerations: tuple[Obj, ...]
    decided: frozenset[str]
    now: datetime


def taint_objections(
    placement: Obj, pool: Pool, clusters: Mapping[str, Obj], fleet: Fleet, now: datetime
) -> dict[str, str]:
    """Return the taint that drops each of `clusters` that is dropped; raise MisconfiguredError."""
    if not clusters:
        return {}
    context = taint_context(placement, fleet, now)
    for toleration in context.tolerations:
        _check(toleration)
    objections: dict[str, str] = {}
    for name in pool.tainted:
        for taint, tolerance in taint_tolerances(name, clusters.get(name, {}), context):
            if tolerance is None:
                objections.setdefault(name, _objection(taint, context))
    return objections


def tolerated_until(placement: Obj, fleet: Fleet, now: datetime) -> datetime | None:
    """Return when the first toleration of a decided cluster ends, None if none does."""
    context = taint_context(placement, fleet, now)
    ends: list[datetime] = []
    for name in context.decided:
        cluster = fleet.clusters.get(("", name), {})
        tolerances = [tolerance for _, tolerance in taint_tolerances(name, cluster, context)]
        if None not in tolerances:
            ends += (tolerance.until for tolerance in tolerances if tolerance and tolerance.until)
    return min(ends, default=None)


def taint_context(placement: Obj, fleet: Fleet, now: datetime) -> TaintContext:
    decided = frozenset(decided_names(own_decisions(placement, fleet)))
    return TaintContext(tuple(fields.get_list(placement, "spec", "tolerations")), decided, now)


def taint_tolerances(
    name: str, cluster: Obj, context: TaintContext
) -> list[tuple[Obj, TaintTolerance | None]]:
    """Return each taint of the cluster `name` with its tolerance, None if it is not tolerated."""
    return [
        (taint, _taint_tolerance(name, taint, context))
        for taint in fields.get_list(cluster, "spec", "taints")
    ]


def _check(toleration: Obj) -> None:
    operator = fields.get_str(toleration, "operator")
    if not fields.get_str(toleration, "key") and operator != "Exists":
        raise MisconfiguredError(FilterStep.TAINT, "If the key is empty, operator must be Exists.")
    if operator == "Exists" and fields.get_str(toleration, "value"):
        raise MisconfiguredError(FilterStep.TAINT, "If the operator is Exists, the value should be empty.")


def _taint_tolerance(cluster: str, taint: Obj, context: TaintContext) -> TaintTolerance | None:
    effect = fields.get_str(taint, "effect")
    if effect == "PreferNoSelect" or (effect == "NoSelectIfNew" and cluster in context.decided):
        return TaintTolerance()
    tolerances = (_tolerance(taint, toleration, context.now) for toleration in context.tolerations)
    return next(filter(None, tolerances), None)


def _tolerance(taint: Obj, toleration: Obj, now: datetime) -> TaintTolerance | None:
    if not _matches(toleration, taint):
        return None
    seconds = fields.get_int(toleration, "tolerationSeconds")
    if seconds is None:
        return TaintTolerance(by=toleration)
    until = _end(taint, seconds)
    if until is None or until <= now:
        return None
    return TaintTolerance(None if until == _NEVER else until, toleration)


def _end(taint: Obj, seconds: int) -> datetime | None:
    """Return when a toleration of `seconds` ends; `_NEVER` if Python has no such date."""
    added = fields.get_time(taint, "timeAdded")
    try:
        return None if added is None else added + timedelta(seconds=seconds)
    except OverflowError:
        return _NEVER if seconds > 0 else datetime.min.replace(tzinfo=UTC)


def _matches(toleration: Obj, taint: Obj) -> bool:
    for part in ("effect", "key"):
        if fields.get_str(toleration, part) not in ("", fields.get_str(taint, part)):
            return False
    operator = fields.get_str(toleration, "operator")
    if operator in ("", "Equal"):
        return fields.get_str(toleration, "value") == fields.get_str(taint, "value")
    return operator == "Exists"


def _objection(taint: Obj, context: TaintContext) -> str:
    """Return that the taint is not tolerated, or that its toleration has expired."""
    ended = [toleration for toleration in context.tolerations if _matches(toleration, taint)]
    if not ended:
        return f"taint {taint_text(taint)} is not tolerated"
    seconds = max(fields.get_int(toleration, "tolerationSeconds") or 0 for toleration in ended)
    until = _end(taint, seconds)
    since = f"since {until.isoformat()}" if until else "because it has no timeAdded"
    return f"taint {taint_text(taint)} is no longer tolerated, {since} (tolerationSeconds {seconds})"


def taint_text(taint: Obj) -> str:
    """Return a taint as `key=value:effect`."""
    value = f"={fields.get_str(taint, 'value')}" if fields.get_str(taint, "value") else ""
    return f"{fields.get_str(taint, 'key')}{value}:{fields.get_str(taint, 'effect')}"
