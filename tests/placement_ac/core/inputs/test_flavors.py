"""
Which ResourceFlavors the Pods of a podSet may use.

Each row's answer is that of Kueue's `checkFlavorForPodSets` (main of 2026-08-23), which was given the rows.
"""

from typing import Any

import pytest

from placement_ac.core.inputs.flavors import Flavor, flavor_of
from tests.support.jobs_to_dispatch import GPU, gpu_pods, job

H100 = {"nodeLabels": {"accelerator": "h100"}}
NO_LABELS: dict[str, Any] = {}
SPOT = {"nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}]}
AGED = {"nodeTaints": [{"key": "age", "value": "5", "effect": "NoExecute"}]}
TWO_KEYS = {"nodeLabels": {"accelerator": "h100", "zone": "a"}}


def selects(**labels: str) -> dict[str, Any]:
    return {"nodeSelector": labels}


def requires(*terms: Any) -> dict[str, Any]:
    """Required node affinity: a term for each list of (key, operator, values)."""
    found = [
        {"matchExpressions": [{"key": k, "operator": o, "values": list(v)} for k, o, v in term]}
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}
    return {"affinity": {"nodeAffinity": required}}


def tolerates(**toleration: str) -> dict[str, Any]:
    return {"tolerations": [toleration]}


def in_(key: str, *values: str) -> tuple[str, str, tuple[str, ...]]:
    return key, "In", values


ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "no wish": (H100, {}, True),
    "nodeSelector": (H100, selects(accelerator="h100"), True),
    "another value": (H100, selects(accelerator="a100"), False),
    "a flavor without labels": (NO_LABELS, selects(accelerator="h100"), True),
    "a key that the flavor has not": (H100, selects(zone="a"), True),
    "one of two keys": (H100, selects(accelerator="h100", zone="b"), True),
    "two keys": (TWO_KEYS, selects(accelerator="h100", zone="b"), False),
    "In": (H100, requires([in_("accelerator", "a100", "h100")]), True),
    "In others": (H100, requires([in_("accelerator", "a100", "v100")]), False),
    "NotIn": (H100, requires([("accelerator", "NotIn", ("a100",))]), True),
    "NotIn itself": (H100, requires([("accelerator", "NotIn", ("h100",))]), False),
    "Exists": (H100, requires([("accelerator", "Exists", ())]), True),
    "Exists, of another key": (H100, requires([("zone", "Exists", ())]), True),
    "DoesNotExist": (H100, requires([("accelerator", "DoesNotExist", ())]), False),
    "DoesNotExist, of another key": (H100, requires([("zone", "DoesNotExist", ())]), True),
    "Gt": ({"nodeLabels": {"memory": "80"}}, requires([("memory", "Gt", ("40",))]), True),
    "Lt": ({"nodeLabels": {"memory": "80"}}, requires([("memory", "Lt", ("40",))]), False),
    "the second term": (H100, requires([in_("accelerator", "a100")], [in_("accelerator", "h100")]), True),
    "no term": (H100, requires([in_("accelerator", "a100")], [in_("accelerator", "v100")]), False),
    "a term of another key alone": (H100, requires([in_("accelerator", "a100")], [in_("zone", "a")]), True),
    "all of a term": (TWO_KEYS, requires([in_("accelerator", "h100"), in_("zone", "b")]), False),
    "nodeSelector beside affinity": (
        TWO_KEYS,
        selects(zone="b") | requires([in_("accelerator", "h100")]),
        False,
    ),
    "preferred affinity": (
        H100,
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "preference": {
                                "matchExpressions": [
                                    {"key": "accelerator", "operator": "In", "values": ["a100"]}
                                ]
                            },
                        }
                    ]
                }
            }
        },
        True,
    ),
    "a taint": (SPOT, {}, False),
    "Equal": (SPOT, tolerates(key="spot", operator="Equal", value="true", effect="NoSchedule"), True),
    "Equal by default": (SPOT, tolerates(key="spot", value="true"), True),
    "Equal to another value": (SPOT, tolerates(key="spot", value="false"), False),
    "a toleration that Exists": (SPOT, tolerates(key="spot", operator="Exists"), True),
    "one of all taints": (SPOT, tolerates(operator="Exists"), True),
    "one of another key": (SPOT, tolerates(key="gpu", operator="Exists"), False),
    "one of another effect": (SPOT, tolerates(key="spot", operator="Exists", effect="NoExecute"), False),
    "NoExecute": (AGED, {}, False),
    "a toleration Lt": (AGED, tolerates(key="age", operator="Lt", value="9"), True),
    "a toleration Gt": (AGED, tolerates(key="age", operator="Gt", value="9"), False),
    "PreferNoSchedule": (
        {"nodeTaints": [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]},
        {},
        True,
    ),
    "the flavor's own toleration": (SPOT | tolerates(key="spot", operator="Exists"), {}, True),
}
"""Spec of a flavor, spec of Pods, and whether they may use it."""


@pytest.mark.parametrize(("flavor", "pod", "may"), ROWS.values(), ids=ROWS)
def test_the_flavors_that_pods_may_use(flavor: Any, pod: Any, may: bool) -> None:
    [template] = gpu_pods(1)
    asks = job(pods=({"spec": template["spec"] | pod},)).job.asks
    found = flavor_of({"metadata": {"name": "f"}, "spec": flavor})
    assert found is not None
    assert [(dict(amounts)[GPU], found.admits(pods)) for amounts, pods in asks] == [(1000, may)]


def test_each_podset_has_its_own_nodes() -> None:
    [template] = gpu_pods(1)
    idle = {"spec": {"nodeSelector": {"accelerator": "a100"}}}
    there = {"spec": template["spec"] | selects(accelerator="h100")}
    flavor = Flavor({"accelerator": "h100"})
    pods = [pods for _, pods in job(pods=(idle, template, there, idle)).job.asks]
    assert [flavor.admits(one) for one in pods] == [True, True]
    assert [bool(one.terms) for one in pods] == [False, True]


def test_tolerations_that_are_too_many_count_as_all() -> None:
    [template] = gpu_pods(1)
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(1000)]
    [(_, pods)] = job(pods=({"spec": template["spec"] | {"tolerations": many}},)).job.asks
    assert Flavor({}, (("spot", "true", "NoSchedule"),)).admits(pods)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeLabels": {f"k{number}": "v" for number in range(9)}}, id="too many labels"),
        pytest.param({"nodeLabels": {"k": 5}}, id="a label that is no text"),
        pytest.param({"nodeTaints": [{"key": "k" * 5000, "effect": "NoExecute"}]}, id="a long key"),
    ],
)
def test_a_flavor_that_kueue_does_not_let_be_is_not_known(spec: Any) -> None:
    assert flavor_of({"spec": spec}) is None
