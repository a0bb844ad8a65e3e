"""
Data: where the data sets are that the annotation `…/data` names: `imagenet,laion`.

Reads the annotation, and of the ManagedCluster the labels or ClusterClaims
`data.placement-ac.open-cluster-management.io/NAME`.
"""

import re
from typing import Final

from placement_ac.core.api.constants import ANNOTATION_DATA, DATA_PREFIX
from placement_ac.core.api.label_selector import CLAIM, SelectorError, remembered
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import shortened
from placement_ac.core.dispatch.facts import Cluster

POINTS: Final = {"local": 100.0, "cached": 50.0}
"""Value of the label → points; any other value, or none: 0."""
SETS_MAX: Final = 64
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def data(job: Workload, cluster: Cluster) -> float | None:
    """Return the mean over the data sets; None without the annotation, or if it cannot be read."""
    try:
        names = data_sets(job.job.annotation(ANNOTATION_DATA))
    except SelectorError:
        return None
    if not names:
        return None
    return sum(_points(cluster, f"{DATA_PREFIX}{name}") for name in names) / len(names)


@remembered
def data_sets(text: str) -> tuple[str, ...]:
    """Return the names in an annotation, each once. Raises SelectorError."""
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    if len(names) > SETS_MAX:
        raise SelectorError(f"use fewer names: at most {SETS_MAX} are read, it has {len(names):,}")
    for name in names:
        if not _NAME.fullmatch(name):
            raise SelectorError(f"{shortened(name)!r} cannot be the end of a label's key")
    return names


def _points(cluster: Cluster, key: str) -> float:
    """Return the points of a data set; a label counts before a claim."""
    found = cluster.labels.get(key, cluster.labels.get(f"{CLAIM}{key}", ""))
    return POINTS.get(found, 0.0)
