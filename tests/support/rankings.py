"""
Another source of decisions, as one module: Rankings. `python -m tests.support.rankings …` is `placement-ac`
with it in use.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from placement_ac import __main__ as program
from placement_ac.core import decisions
from placement_ac.core.api.constants import Kind
from placement_ac.core.api.decode import meta_of
from placement_ac.core.api.objects import Placement
from placement_ac.core.decisions.source import (
    DecidedCluster,
    Decision,
    Decisions,
    DecisionSource,
    Doubt,
    DoubtAge,
    RankedCluster,
    ScoreTable,
)

RANKING: Final = Kind("example.com", "Ranking", "rankings", True, ("v1",))
"""Names a Placement by its own name and by its owner, and lists clusters, the best first."""
OLD_SECONDS: Final = 60.0
CRD: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rankings.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Ranking", "plural": "rankings", "singular": "ranking", "listKind": "RankingList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"clusters": {"type": "array", "items": {"type": "string"}}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


def read(raw: Any) -> Decision:
    """Read a Ranking."""
    meta = meta_of(raw)
    decided = tuple(map(DecidedCluster, raw["spec"]["clusters"]))
    names = tuple(entry.cluster_name for entry in decided)
    return Decision(meta, meta.name, 0, decided, names, "", raw["metadata"]["ownerReferences"][0]["uid"])


def decide(
    of: Placement | None, rankings: Sequence[Decision], scores: ScoreTable, now: datetime, age: DoubtAge
) -> Decisions:
    """Return the clusters of the Rankings in their order; they are doubted, and after a minute are old."""
    names = [name for ranking in rankings for name in ranking.clusters]
    return Decisions(
        placement=of.meta if of else None,
        by=RANKINGS.name,
        clusters=tuple(RankedCluster(name, -index, 0) for index, name in enumerate(names)),
        is_decided=bool(rankings),
        doubts=(
            Doubt("p", "the Ranking is old" if age("p") >= OLD_SECONDS else "nobody signed the Ranking"),
        ),
        says="the Ranking is late",
    )


RANKINGS: Final = DecisionSource("Rankings", RANKING, read, lambda _, rankings: rankings, decide)


if __name__ == "__main__":
    decisions.SOURCE = RANKINGS  # before anything else is imported, as if __init__.py there named it
    program.main()
