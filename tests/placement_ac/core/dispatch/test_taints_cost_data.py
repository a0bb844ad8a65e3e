"""Taints of clusters, their prices, and where data is."""

from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.api.objects import ClusterTaint
from placement_ac.core.dispatch.facts import Price, Prices
from placement_ac.core.dispatch.filters import FILTERS
from placement_ac.core.dispatch.ignored import ignored
from placement_ac.core.dispatch.scores import SCORES
from placement_ac.core.inputs.state import PlacementPolicy, Plan
from placement_ac.core.plan.plan import plan
from tests.support.builders import managed_cluster
from tests.support.decided import decided_inputs, nominated, ranked
from tests.support.jobs_to_dispatch import DOMAIN, GPU, cluster, gpu_pods, job, raw_job

DATA = f"{DOMAIN}/data"
DATA_LABEL = f"data.{DOMAIN}"
TEAM = ClusterTaint("team", "a", "NoSelect")
READY = {"check": "Ready", "mk": "Pending"}


def tolerating(*tolerations: dict[str, str], podsets: int = 1) -> tuple[Any, ...]:
    """Pod templates; the first tolerates that, the others tolerate nothing."""
    return ({"spec": {"tolerations": list(tolerations)}}, *({"spec": {}},) * (podsets - 1))


@pytest.mark.parametrize(
    ("pods", "effect", "fits"),
    [
        pytest.param((), "NoSelect", False, id="no podSet"),
        pytest.param(tolerating(), "NoSelect", False, id="nothing tolerated"),
        pytest.param(tolerating({"key": "team", "value": "a"}), "NoSelect", True, id="the same value"),
        pytest.param(tolerating({"key": "team", "value": "b"}), "NoSelect", False, id="another value"),
        pytest.param(tolerating({"key": "team", "operator": "Exists"}), "NoSelectIfNew", True, id="the key"),
        pytest.param(tolerating({"operator": "Exists"}), "NoSelect", True, id="all taints"),
        pytest.param(tolerating({"key": "x", "operator": "Exists"}), "NoSelect", False, id="another key"),
        pytest.param(
            tolerating({"key": "team", "operator": "Exists", "effect": "NoSchedule"}),
            "NoSelect",
            True,
            id="NoSchedule is NoSelect",
        ),
        pytest.param(
            tolerating({"key": "team", "operator": "Exists", "effect": "NoExecute"}),
            "NoSelect",
            False,
            id="another effect",
        ),
        pytest.param(
            tolerating({"operator": "Exists"}, podsets=2), "NoSelect", False, id="one of two podSets"
        ),
        pytest.param((), "PreferNoSelect", True, id="PreferNoSelect refuses nobody"),
    ],
)
def test_taints(pods: tuple[Any, ...], effect: str, fits: bool) -> None:
    taint = TEAM._replace(effect=effect)
    answer = FILTERS["Taints"](job(pods=pods), cluster(taints=(taint,)))
    reason = f"had the taint team=a:{effect}: tolerate it in each Pod template to go there"
    assert answer == (None if fits else reason)


TOO_MANY = tolerating(*({"key": f"k{n}", "operator": "Exists"} for n in range(257)))
TOO_LONG = tolerating({"key": "k" * 318, "operator": "Exists"})


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param(
            TOO_MANY, "use fewer tolerations in a podSet: at most 256 are read, it has 257", id="too many"
        ),
        pytest.param(
            TOO_LONG,
            "shorten the names of tolerations: at most 317 characters are read, one has 318",
            id="too long",
        ),
    ],
)
def test_tolerations_that_are_not_read_hold_up_no_job(pods: tuple[Any, ...], reason: str) -> None:
    one = job(pods=pods, annotations={DATA: "imagenet"})
    assert (one.job.problem, one.job.annotation(DATA)) == ("", "imagenet")
    tainted = cluster(taints=(TEAM, TEAM._replace(effect="PreferNoSelect")))
    assert [FILTERS[name](one, tainted) for name in ("Taints", "Limits")] == [None, None]
    why = f"{reason}; meanwhile no taint keeps the job from a cluster"
    assert [*ignored(one.job, taints=True)] == [why]
    assert [*ignored(one.job)] == []
    assert nominated(dispatched("team", pods=pods)) == {"job": ("p-a",)}


def dispatched(*keys: str, effect: str = "NoSelect", key: str = "team", pods: tuple[Any, ...] = ()) -> Plan:
    """Two clusters of which OCM's best one is tainted; `keys`: the setting."""
    spec = {"taints": [{"key": key, "value": "a", "effect": effect}]}
    fleet = [managed_cluster("a") | {"spec": spec}, managed_cluster("b")]
    policy = PlacementPolicy(loss_grace=0.0, dispatcher=True, step_size=1, job_taints=keys)
    return plan(decided_inputs(ranked("ab"), raw_job(pods=pods, **READY), fleet=fleet, policy=policy))


@pytest.mark.parametrize(
    ("plan_of", "chosen"),
    [
        pytest.param({"keys": ()}, "p-a", id="without the setting, OCM's selection is all"),
        pytest.param({"keys": ("team",)}, "p-b", id="the key"),
        pytest.param({"keys": ("te*",)}, "p-b", id="the beginning of the key"),
        pytest.param({"keys": ("gpu", "teams*")}, "p-a", id="other keys"),
        pytest.param(
            {"keys": ("team",), "pods": tolerating({"operator": "Exists"})}, "p-a", id="it is tolerated"
        ),
        pytest.param(
            {"keys": ("team",), "effect": "PreferNoSelect"}, "p-b", id="PreferNoSelect: it comes last"
        ),
    ],
)
def test_the_taints_that_count_are_in_the_settings(plan_of: dict[str, Any], chosen: str) -> None:
    keys = plan_of.pop("keys")
    assert nominated(dispatched(*keys, **plan_of)) == {"job": (chosen,)}


@pytest.mark.parametrize(
    ("labels", "points"),
    [
        pytest.param({}, 0.0, id="nowhere"),
        pytest.param({f"{DATA_LABEL}/imagenet": "local", f"{DATA_LABEL}/laion": "local"}, 100.0, id="both"),
        pytest.param({f"{DATA_LABEL}/imagenet": "local", f"{DATA_LABEL}/laion": "cached"}, 75.0, id="mean"),
        pytest.param({f"claim:{DATA_LABEL}/laion": "cached"}, 25.0, id="a claim"),
        pytest.param({f"{DATA_LABEL}/laion": "yes"}, 0.0, id="another value"),
    ],
)
def test_data(labels: dict[str, str], points: float) -> None:
    one = job(annotations={DATA: "imagenet, laion,"})
    assert SCORES["Data"](one, cluster(labels=labels)) == points


@pytest.mark.parametrize("text", ["", " , ", "imagenet;laion", ",".join(f"d{n}" for n in range(65))])
def test_without_data_sets_data_abstains(text: str) -> None:
    assert SCORES["Data"](job(annotations={DATA: text}), cluster()) is None


def test_data_sets_that_cannot_be_read_are_reported() -> None:
    one = job(annotations={DATA: "imagenet;laion"}).job
    why = "it is ignored: 'imagenet;laion' cannot be the end of a label's key"
    assert [*ignored(one)] == [f"correct the annotation {DATA}, {why}"]


PRICES = Prices(Price(6.0, 3.0), Price(2.0, 2.0), frozenset({GPU}))


@pytest.mark.parametrize(
    ("prices", "gpus", "points"),
    [
        pytest.param(None, 0, None, id="no setting"),
        pytest.param(PRICES, 0, 50.0, id="twice the lowest"),
        pytest.param(PRICES, 4, 100.0, id="per GPU"),
        pytest.param(PRICES._replace(per_gpu=None), 4, 50.0, id="no price per GPU in the settings"),
        pytest.param(PRICES._replace(per_gpu=Price(None, 2.0)), 4, None, id="the cluster has none"),
        pytest.param(PRICES._replace(whole=Price(0.0, 0.0)), 0, 100.0, id="for nothing"),
        pytest.param(PRICES._replace(whole=Price(5.0, 0.0)), 0, 0.0, id="another is for nothing"),
    ],
)
def test_cost(prices: Prices | None, gpus: int, points: float | None) -> None:
    one = job(pods=gpu_pods(gpus) if gpus else ())
    assert SCORES["Cost"](one, replace(cluster(), prices=prices)) == points


@pytest.mark.parametrize(
    ("labels", "chosen"),
    [
        pytest.param({"a": "3.5", "b": "2", "c": "7"}, "p-b", id="the lowest"),
        pytest.param({"a": "cheap", "b": "-1", "c": "7"}, "p-c", id="no number is no price"),
    ],
)
def test_the_cheapest_cluster_is_nominated(labels: dict[str, str], chosen: str) -> None:
    fleet = [managed_cluster(name, labels={"price": price}) for name, price in labels.items()]
    policy = PlacementPolicy(
        loss_grace=0.0, dispatcher=True, step_size=1, cost_labels=("price",), dispatch_profile="Cost=1"
    )
    answer = plan(decided_inputs(ranked("abc"), raw_job(**READY), fleet=fleet, policy=policy))
    assert nominated(answer) == {"job": (chosen,)}
