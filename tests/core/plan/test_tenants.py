"""Jobs of tenants that are made to be slow: what they cost is bounded, and the reason names the limit."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.plan.plan import plan
from tests.core.plan import test_job_fit
from tests.core.plan.test_nomination import nominated
from tests.support.jobs_to_dispatch import DOMAIN, raw_job

READY = test_job_fit.READY
SELECTOR, PREFERRED, ANTI = (
    f"{DOMAIN}/{name}" for name in ("cluster-selector", "preferred-clusters", "anti-affinity")
)
POLICY = replace(test_job_fit.POLICY, node_labels={"zone": "gpu"})


def with_terms(number: int) -> Any:
    """A Pod template with 8,000 terms of node affinity, different for each number."""
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"z{number}-{n}"]}]}
        for n in range(8000)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"spec": {"affinity": {"nodeAffinity": required}}}


@pytest.mark.parametrize(
    ("number", "wishes", "limit"),
    [
        pytest.param(
            1, lambda _: {"annotations": {SELECTOR: "," * 200_000}}, "at most 8,192 characters", id="commas"
        ),
        pytest.param(
            40,
            lambda n: {"pods": (with_terms(n),)},
            "at most 256 are read, it has 16,000",
            id="affinity terms",
        ),
        pytest.param(
            60,
            lambda n: {"annotations": {PREFERRED: "1:a;" * 50_000 + f"1:b{n}"}},
            "at most 8,192 characters",
            id="preferences",
        ),
        pytest.param(
            150,
            lambda n: {
                "annotations": {ANTI: f"app=x{n}"},
                "labels": {f"l{label}": f"v{n}" for label in range(2000)},
            },
            "at most 256 are read, it has 2,000",
            id="anti-affinity",
        ),
    ],
)
def test_a_job_that_is_made_to_be_slow(number: int, wishes: Callable[[int], Any], limit: str) -> None:
    """Without the limits, a plan took 1 to 90 s."""
    jobs = [raw_job(f"slow-{n}", **wishes(n), **READY) for n in range(number)]
    seen = test_job_fit.inputs(*jobs, raw_job("other", **READY), policy=POLICY)
    began = time.process_time()
    answer = plan(seen)
    assert time.process_time() - began < 0.2
    assert nominated(answer) == {"other": ("p-a",)}
    assert len(answer.unfit) == number
    assert {limit in why for _, why in answer.unfit} == {True}
