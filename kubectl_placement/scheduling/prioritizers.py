"""
The scores of the clusters: OCM's prioritizers and their weights.

Pure. Each prioritizer gives integers in [-100, 100], cut off towards zero; a
cluster it gives nothing counts 0. The score of a cluster is the sum of weight
times score. Defaults of mode Additive: Balance 1, Steady 1; mode Exact has none.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import trunc

from kubectl_placement.scheduling.conditions import MisconfiguredError
from kubectl_placement.scheduling.fleet import Fleet, decided_names, own_decisions
from placement_ac.core.api import fields
from placement_ac.core.api.fields import Obj
from placement_ac.core.api.quantities import exact

HIGHEST = 100
DEFAULT_WEIGHTS = {"Balance": 1, "Steady": 1}


@dataclass(frozen=True, slots=True)
class PrioritizerInput:
    """The inputs of a prioritizer; `clusters` are those that passed the filters, by name."""

    placement: Obj
    clusters: Mapping[str, Obj]
    fleet: Fleet
    now: datetime


@dataclass(frozen=True, slots=True)
class Prioritizer:
    """A built-in prioritizer (`addon` None), or the score (resource name, score name) of an add-on."""

    name: str
    weight: int
    addon: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of one prioritizer, without its weight; `expired`: clusters whose score has expired.

    `missing`: whether no cluster has the score of the add-on.
    """

    name: str
    weight: int
    scores: Mapping[str, int]
    expired: tuple[str, ...] = ()
    missing: bool = False


def prioritizers_for(placement: Obj) -> list[Prioritizer]:
    """Return the prioritizers of non-zero weight; raise MisconfiguredError.

    A built-in one given again replaces the former weight, an add-on's adds to
    it, as OCM's map of pointers does.
    """
    policy = fields.get_dict(placement, "spec", "prioritizerPolicy")
    mode = fields.get_str(policy, "mode")
    if mode not in ("", "Additive", "Exact"):
        raise MisconfiguredError("", f"incorrect prioritizer policy mode: {mode}")
    weights = {} if mode == "Exact" else dict(DEFAULT_WEIGHTS)
    addons = []
    for config in fields.get_list(policy, "configurations"):
        if fields.get_value(config, "scoreCoordinate") is None:
            raise MisconfiguredError("", "scoreCoordinate field is required")
        weight = fields.get_int(config, "weight")
        weight = 1 if weight is None else weight
        if fields.get_str(config, "scoreCoordinate", "type") in ("", "BuiltIn"):
            weights[fields.get_str(config, "scoreCoordinate", "builtIn")] = weight
        elif weight:
            addons.append(_addon(fields.get_dict(config, "scoreCoordinate"), weight))
    return [_built_in(name, weight) for name, weight in weights.items() if weight] + addons


def _built_in(name: str, weight: int) -> Prioritizer:
    if name not in BUILT_IN:
        raise MisconfiguredError("", f"incorrect builtin prioritizer: {name}")
    return Prioritizer(name, weight)


def _addon(coordinate: Obj, weight: int) -> Prioritizer:
    if fields.get_value(coordinate, "addOn") is None:
        raise MisconfiguredError("", "addOn should not be empty")
    addon = (
        fields.get_str(coordinate, "addOn", "resourceName"),
        fields.get_str(coordinate, "addOn", "scoreName"),
    )
    return Prioritizer(f"AddOn/{'/'.join(addon)}", weight, addon)


def run_prioritizer(prioritizer: Prioritizer, view: PrioritizerInput) -> Scored:
    """Return its scores."""
    name, addon = prioritizer.name, prioritizer.addon
    if addon is None:
        return Scored(name, prioritizer.weight, BUILT_IN[name](view))
    found, expired = addon_scores(addon, view)
    scores = {cluster: found.get(cluster, 0) for cluster in view.clusters}
    return Scored(name, prioritizer.weight, scores, expired, missing=not found and not expired)


def balance(view: PrioritizerInput) -> dict[str, int]:
    """Return low scores for clusters in many decisions of other Placements, 100 for clusters in none."""
    decisions = view.fleet.decisions.values()
    on_hub = view.fleet.cached("decisions per cluster", lambda: Counter(decided_names(decisions)))
    count = on_hub.copy()
    count.subtract(_own_clusters(view))
    most = max(count.values(), default=0)
    # The factor 2 is outside of the truncation, so that scores are even: OCM's formula, in floats.
    return {
        name: 2 * int(HIGHEST * (0.5 - count[name] / most)) if count[name] else HIGHEST
        for name in view.clusters
    }


def steady(view: PrioritizerInput) -> dict[str, int]:
    """Return 100 for the clusters that are already selected, 0 for the others."""
    decided = frozenset(_own_clusters(view))
    return {name: HIGHEST if name in decided else 0 for name in view.clusters}


def _own_clusters(view: PrioritizerInput) -> list[str]:
    return decided_names(own_decisions(view.placement, view.fleet))


def allocatable(resource: str, view: PrioritizerInput) -> dict[str, int]:
    """Score from -100 for the least to 100 for the most allocatable."""
    all_amounts = {name: _amount(cluster, resource) for name, cluster in view.clusters.items()}
    amounts = {name: amount for name, amount in all_amounts.items() if amount is not None}
    least, most = min(amounts.values(), default=0), max(amounts.values(), default=0)
    if least == most:
        return dict.fromkeys(amounts, HIGHEST)
    return {
        name: trunc(((amount - least) / (most - least) - 0.5) * 2.0 * 100.0)
        for name, amount in amounts.items()
    }


def _amount(cluster: Obj, resource: str) -> float | None:
    """Return the allocatable amount; OCM also requires the capacity."""
    if exact(fields.get_value(cluster, "status", "capacity", resource)) is None:
        return None
    amount = exact(fields.get_value(cluster, "status", "allocatable", resource))
    return None if amount is None else float(amount)


def addon_scores(addon: tuple[str, str], view: PrioritizerInput) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the scores that an add-on gives, and the clusters whose `validUntil` has passed."""
    resource, wanted = addon
    scores: dict[str, int] = {}
    expired = []
    for name in view.clusters:
        obj = view.fleet.scores.get((name, resource), {})
        valid_until = fields.get_time(obj, "status", "validUntil")
        if valid_until is not None and view.now > valid_until:
            expired.append(name)
            continue
        for item in fields.get_list(obj, "status", "scores"):
            if fields.get_str(item, "name") == wanted:
                scores[name] = fields.get_int(item, "value") or 0
    return scores, tuple(expired)


BUILT_IN: dict[str, Callable[[PrioritizerInput], dict[str, int]]] = {
    "Balance": balance,
    "Steady": steady,
    "ResourceAllocatableCPU": partial(allocatable, "cpu"),
    "ResourceAllocatableMemory": partial(allocatable, "memory"),
}
