"""Another source of decisions is one module: the cache and the plan need nothing but a `DecisionSource`."""

from typing import Any

from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.state import Key, Since, SinceKind
from placement_ac.core.plan.plan import plan
from tests.support.builders import AT_ONCE, Raw, an, check, placement, secrets, snapshot
from tests.support.rankings import OLD_SECONDS, RANKING, RANKINGS


def world(*objects: Raw) -> Cache:
    cache = Cache(policy=AT_ONCE, source=RANKINGS)
    for kind in kinds_for(ProvisioningPolicy(), RANKINGS):
        cache.replace(kind, [raw for raw in objects if raw["kind"] == kind.kind], "1")
    return cache


def ranking(*clusters: str, version: int = 1) -> Raw:
    owners = [{"uid": placement()["metadata"]["uid"]}]
    spec = {"clusters": list(clusters)}
    return an(RANKING, "p", version=version, spec=spec, ownerReferences=owners)


def test_the_list_follows_another_source() -> None:
    cache = world(check(), placement(), ranking("b", "a"), *secrets("a", "b", "c"))
    assert cache.has_synced
    wanted = plan(snapshot(cache))
    assert wanted.config
    assert wanted.config.clusters == ("p-b", "p-a")
    assert wanted.verdicts["check"].status == "True"

    assert cache.put(RANKING, ranking("c", "a", version=2)) == {Key("placement", "p")}
    assert plan(snapshot(cache)).selected == ("c", "a")


def test_the_condition_has_the_words_of_another_source() -> None:
    late = plan(snapshot(world(check(), placement())))
    assert late.verdicts["check"].message == (
        "Rankings has not decided yet for Placement kueue-system/p (the Ranking is late)"
    )
    ages: dict[Any, float] = {Since(SinceKind.DECISIONS_DOUBTED, "p"): OLD_SECONDS}
    doubted = plan(snapshot(world(check(), placement(), ranking("a"), *secrets("a")), ages=ages))
    assert doubted.verdicts["check"].message.endswith("the Ranking is old")
    assert ages.keys() <= doubted.lasting
