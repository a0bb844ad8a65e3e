"""
`spec.predicates`: labels, claims and CEL expressions of a cluster.

Pure. A cluster passes if one predicate has no objection; without predicates
every cluster passes. With no cluster to judge nothing is compiled, so that a
wrong expression goes unnoticed then, as in OCM.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placement_ac.sim.scheduling.cel import CelError, Expression, compile_expression, is_true
from placement_ac.sim.scheduling.objects import (
    EMPTY,
    Fleet,
    Obj,
    claims_of,
    labels_of,
    listed,
    section,
    words,
)
from placement_ac.sim.scheduling.selectors import Selector, SelectorError, parse_selector
from placement_ac.sim.scheduling.status import MisconfiguredError

PLUGIN = "Predicate"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A `ClusterSelector`: all three parts must agree."""

    labels: Selector
    claims: Selector
    expressions: tuple[Expression, ...] = ()

    def objection(self, cluster: Obj, fleet: Fleet) -> str | None:
        """Say what `cluster` lacks, None if nothing."""
        if unmet := self.labels.first_unmet(labels_of(cluster)):
            return f"label: {unmet}"
        if unmet := self.claims.first_unmet(claims_of(cluster)):
            return f"claim: {unmet}"
        untrue = next((one for one in self.expressions if not is_true(one, cluster, fleet)), None)
        return None if untrue is None else f"CEL: {untrue}"


def parse_predicate(selector: Obj) -> Predicate:
    """Read a ClusterSelector; raise SelectorError or CelError. Claims have no `matchLabels`."""
    claims = {**section(selector, "claimSelector"), "matchLabels": EMPTY}
    return Predicate(
        parse_selector(section(selector, "labelSelector")),
        parse_selector(claims),
        tuple(compile_expression(one) for one in words(selector, "celSelector", "celExpressions")),
    )


def predicate_objections(placement: Obj, clusters: Mapping[str, Obj], fleet: Fleet) -> dict[str, str]:
    """Return why each cluster that does not pass does not; raise MisconfiguredError."""
    if not clusters:
        return {}
    wanted = listed(placement, "spec", "predicates")
    try:
        predicates = [parse_predicate(section(one, "requiredClusterSelector")) for one in wanted]
    except (SelectorError, CelError) as error:
        raise MisconfiguredError(PLUGIN, str(error)) from error
    found = {name: _objection(predicates, cluster, fleet) for name, cluster in clusters.items()}
    return {name: objection for name, objection in found.items() if objection is not None}


def _objection(predicates: Iterable[Predicate], cluster: Obj, fleet: Fleet) -> str | None:
    objections = []
    for predicate in predicates:
        objection = predicate.objection(cluster, fleet)
        if objection is None:
            return None
        objections.append(objection)
    return ", nor ".join(objections) or None
