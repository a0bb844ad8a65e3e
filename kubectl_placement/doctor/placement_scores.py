"""The rule for scores of add-ons by which Placements choose: they are there, and count. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.commands import HUB
from kubectl_placement.doctor.finding import Finding, ok, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.dump import Object
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_SET,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_SCORE,
    SCORES_NAME,
    SET_BINDING,
)
from placement_ac.core.api.decode import placement as decode_placement
from placement_ac.core.api.fields import key_of
from placement_ac.core.api.text import joined

NEEDED: Final = (MANAGED_CLUSTER, CLUSTER_SET, SET_BINDING, PLACEMENT_SCORE)


@hub_rule(
    "placement-scores",
    "the scores of add-ons by which Placements choose are there, and have not expired",
    "kubectl get addonplacementscores -A",
    ADMISSION_CHECK,
    unknown=lambda setup: setup.unknown(PLACEMENT, namespaces=setup.placement_namespaces),
)
def placement_scores(setup: HubSetup) -> Iterator[Finding]:
    found = (setup.view.placement(name) for name in setup.checks_by_placement)
    choosing = [raw for raw in found if raw and _chooses(raw)]
    if choosing and (unknown := setup.unknown(*NEEDED)):
        yield from unknown
        return
    for raw in choosing:
        yield from _without_scores(setup, raw)
    names = joined("/".join(key_of(raw)) for raw in choosing)
    yield ok(f"clusters have the scores by which {names} chooses" if names else "none chooses by such scores")


def _chooses(raw: Object) -> bool:
    """Whether a Placement chooses by scores of others: `scores` is about those of the controller."""
    return any(one.resource_name != SCORES_NAME for one in decode_placement(raw).prioritizers)


def _without_scores(setup: HubSetup, raw: Object) -> Iterator[Finding]:
    outcome, show = setup.view.schedule(raw), HUB.run("get", str(PLACEMENT_SCORE), "-A", "-o", "yaml")
    for scored in outcome.prioritizers if outcome.ranked else ():
        if scored.name.startswith(f"AddOn/{SCORES_NAME}/"):
            continue
        label = f"Placement {'/'.join(key_of(raw))} chooses by {scored.name}"
        if scored.missing:
            yield warn(f"{label}, and no cluster has that score: it counts 0 for all", show)
        elif scored.expired:
            names = joined(sorted(scored.expired))
            yield warn(f"{label}, and the score of {names} has expired: it counts 0", show)


RULES: Final = (placement_scores,)
