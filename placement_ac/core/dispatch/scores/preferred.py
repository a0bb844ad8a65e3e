"""
Preferred: the clusters that the annotation `…/preferred-clusters` prefers: `80:gpu=h100;20:claim:region=eu`.

Reads the annotation, the labels of the ManagedCluster and its ClusterClaims.
"""

from itertools import chain
from typing import Final

from placement_ac.core.api.constants import ANNOTATION_PREFERRED_CLUSTERS
from placement_ac.core.api.label_selector import Requirement, SelectorError, first_unmet, remembered
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import shortened
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.selectors import limit_terms, parse_selector

WEIGHT_MAX: Final = 100
"""As for the preferences of Pods."""


def preferred(job: Workload, cluster: Cluster) -> float | None:
    """Return the share of the weights whose selectors the cluster matches, as 0 to 100.

    None without the annotation, or if it cannot be read.
    """
    try:
        preferences = parse_preferences(job.job.annotation(ANNOTATION_PREFERRED_CLUSTERS))
    except SelectorError:
        return None
    if not preferences:
        return None
    met = sum(weight for weight, wanted in preferences if not first_unmet(wanted, cluster.labels))
    return 100.0 * met / sum(weight for weight, _ in preferences)


Preferences = tuple[tuple[int, tuple[Requirement, ...]], ...]
"""Weights with their requirements."""


@remembered
def parse_preferences(text: str) -> Preferences:
    """Return the preferences of an annotation. Raises SelectorError."""
    preferences = tuple([_preference(part.strip()) for part in text.split(";") if part.strip()])
    limit_terms(chain.from_iterable(wanted for _, wanted in preferences))
    return preferences


def _preference(text: str) -> tuple[int, tuple[Requirement, ...]]:
    weight, _, selector = text.partition(":")
    number = int(weight) if weight.isascii() and weight.isdigit() and len(weight) < 4 else 0
    if not 1 <= number <= WEIGHT_MAX:
        raise SelectorError(
            f"{shortened(text)!r} does not begin with a weight of 1 to {WEIGHT_MAX} and a colon"
        )
    return number, parse_selector(selector)
