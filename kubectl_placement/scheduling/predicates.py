"""
`spec.predicates`: labels, claims and CEL expressions of a cluster.

Pure. A cluster passes if one predicate has no objection; without predicates
every cluster passes. With no cluster to judge nothing is compiled, so that a
wrong expression goes unnoticed then, as in OCM.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubectl_placement.scheduling.conditions import MisconfiguredError
from kubectl_placement.scheduling.fleet import Fleet, claims_of
from kubectl_placement.scheduling.outcome import FilterStep
from kubectl_placement.scheduling.selectors import lack, require_affordable, requirement_text
from kubectl_placement.scheduling.sets import Pool
from placement_ac.core.api import fields
from placement_ac.core.api.fields import EMPTY, Obj
from placement_ac.core.api.label_selector import Selector, SelectorError, first_unmet, read_label_selector

if TYPE_CHECKING:
    from kubectl_placement.scheduling.cel import Expression


@dataclass(frozen=True, slots=True)
class Predicate:
    """A `ClusterSelector`: all three parts must agree."""

    labels: Selector
    claims: Selector
    expressions: tuple["Expression", ...] = ()

    def matches(self, cluster: Obj, fleet: Fleet) -> bool:
        """Whether the cluster matches."""
        if first_unmet(self.labels, fields.labels_of(cluster)):
            return False
        if self.claims and first_unmet(self.claims, claims_of(cluster)):
            return False
        return all(expression.is_true(cluster, fleet) for expression in self.expressions)

    def objection(self, cluster: Obj, fleet: Fleet) -> str | None:
        """Return what `cluster` lacks; None if it matches."""
        labels, claims = fields.labels_of(cluster), claims_of(cluster)
        if unmet := first_unmet(self.labels, labels):
            return f"label {lack(unmet, labels, 'the predicate')}"
        if unmet := first_unmet(self.claims, claims):
            return f"claim {lack(unmet, claims, 'the predicate')}"
        objections = ((expression.text, expression.lack(cluster, fleet)) for expression in self.expressions)
        return next((f"the CEL expression {text} {why}" for text, why in objections if why), None)

    def __str__(self) -> str:
        parts = (
            *(f"label {requirement_text(label)}" for label in self.labels),
            *(f"claim {requirement_text(claim)}" for claim in self.claims),
            *(f"CEL {expression.text}" for expression in self.expressions),
        )
        return ", ".join(parts) or "nothing in particular"


def parse_predicate(selector: Obj) -> Predicate:
    """Read a ClusterSelector; raise SelectorError, UnsupportedError. Claims have no `matchLabels`."""
    labels = read_label_selector(fields.get_dict(selector, "labelSelector"))
    claims = read_label_selector({**fields.get_dict(selector, "claimSelector"), "matchLabels": EMPTY})
    texts = fields.get_strs(selector, "celSelector", "celExpressions")
    if not texts:
        return Predicate(labels, claims)
    from kubectl_placement.scheduling.cel import compile_expression  # noqa: PLC0415  # 70 ms to load, and few need it

    return Predicate(labels, claims, tuple(map(compile_expression, texts)))


def predicates_of(placement: Obj) -> list[Predicate]:
    """Read all predicates of `placement`; raise MisconfiguredError, UnsupportedError."""
    wanted = fields.get_list(placement, "spec", "predicates")
    try:
        return [parse_predicate(fields.get_dict(item, "requiredClusterSelector")) for item in wanted]
    except SelectorError as error:
        raise MisconfiguredError(FilterStep.PREDICATE, str(error)) from error


def passing(placement: Obj, pool: Pool, fleet: Fleet) -> dict[str, Obj]:
    """Return the members of `pool` that pass, by name; raise MisconfiguredError, UnsupportedError."""
    if not pool.members:
        return {}
    predicates = predicates_of(placement)
    require_affordable(
        (part for predicate in predicates for part in (predicate.labels, predicate.claims)), len(pool.members)
    )

    def matching() -> dict[str, Obj]:
        return {
            name: cluster
            for name, cluster in pool.members.items()
            if not predicates or any(predicate.matches(cluster, fleet) for predicate in predicates)
        }

    key = (pool.bound, pool.eligible, repr(fields.get_value(placement, "spec", "predicates")))
    return dict(fleet.cached(key, matching))


def predicate_objections(placement: Obj, clusters: Mapping[str, Obj], fleet: Fleet) -> dict[str, str]:
    """Return the reason for each cluster that does not pass; raise MisconfiguredError."""
    predicates = predicates_of(placement) if clusters else []
    reasons: dict[str, str] = {}
    for name, cluster in clusters.items():
        objections = [predicate.objection(cluster, fleet) for predicate in predicates]
        if len(objections) > 1 and None not in objections:
            reasons[name] = "; ".join(f"predicate {n}: {why}" for n, why in enumerate(objections, start=1))
        elif len(objections) == 1 and objections[0] is not None:
            reasons[name] = objections[0]
    return reasons
