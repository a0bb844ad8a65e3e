"""Another source of decisions is one module: the cache and the plan need nothing but a `DecisionSource`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.core.api.constants import Kind
from placement_ac.core.api.decode import meta_of
from placement_ac.core.api.objects import Placement
from placement_ac.core.decisions.source import (
    DecidedCluster,
    Decision,
    Decisions,
    DecisionSource,
    Doubt,
    RankedCluster,
    ScoreTable,
)
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.state import Key, Since, SinceKind
from placement_ac.core.plan.plan import plan
from tests.support.builders import AT_ONCE, Raw, an, check, placement, secrets, snapshot

RANKING = Kind("example.com", "Ranking", "rankings", True, ("v1",))
"""Names a Placement by its own name, and lists clusters, the best first."""


def read(raw: Any) -> Decision:
    meta = meta_of(raw)
    decided = tuple(map(DecidedCluster, raw["spec"]["clusters"]))
    names = tuple(entry.cluster_name for entry in decided)
    return Decision(meta, meta.name, 0, decided, names, "", owner=f"Placement/{meta.name}")


def decide(
    of: Placement | None,
    rankings: Sequence[Decision],
    scores: ScoreTable,
    now: datetime,
    age: Callable[[str], float],
) -> Decisions:
    names = [name for ranking in rankings for name in ranking.clusters]
    return Decisions(
        placement=of.meta if of else None,
        by="Rankings",
        clusters=tuple(RankedCluster(name, -index, 0) for index, name in enumerate(names)),
        is_decided=bool(rankings),
        doubts=(Doubt("p", f"the Ranking has been in doubt for {age('p'):g} s"),),
        says="the Ranking is late",
    )


SOURCE = DecisionSource(RANKING, read, lambda _, rankings: rankings, decide)


def world(*objects: Raw) -> Cache:
    cache = Cache(policy=AT_ONCE, source=SOURCE)
    for kind in kinds_for(ProvisioningPolicy(), SOURCE):
        cache.replace(kind, [raw for raw in objects if raw["kind"] == kind.kind], "1")
    return cache


def ranking(*clusters: str, version: int = 1) -> Raw:
    return an(RANKING, "p", namespace="kueue-system", version=version, spec={"clusters": list(clusters)})


def test_the_list_follows_another_source() -> None:
    cache = world(check(), placement(), ranking("b", "a"), *secrets("a", "b", "c"))
    assert cache.has_synced
    wanted = plan(snapshot(cache))
    assert wanted.config
    assert wanted.config.clusters == ("p-b", "p-a")
    assert wanted.verdicts["check"].status == "True"

    assert cache.put(RANKING, ranking("c", "a", version=2)) == {Key("placement", "p")}
    assert plan(snapshot(cache)).selected == ("c", "a")


def test_what_another_source_says_is_in_the_condition() -> None:
    late = plan(snapshot(world(check(), placement())))
    assert late.verdicts["check"].message == (
        "Rankings has not decided yet for Placement kueue-system/p (the Ranking is late)"
    )
    ages: dict[Any, float] = {Since(SinceKind.DECISIONS_DOUBTED, "p"): 3.0}
    doubted = plan(snapshot(world(check(), placement(), ranking("a"), *secrets("a")), ages=ages))
    assert doubted.verdicts["check"].message.endswith("the Ranking has been in doubt for 3 s")
    assert ages.keys() <= doubted.lasting
