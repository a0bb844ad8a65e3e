"""A job with ResourceClaims, for which Kueue on the hub has or has not counted a resource."""

from dataclasses import replace
from typing import Any

import pytest

from tests.placement_ac.core.plan.test_fact_questions import POLICY, answer_to, facts
from tests.support.decided import nominated
from tests.support.jobs_to_dispatch import GPU, gpu_pods, raw_job

CLAIM = {"name": "gpu", "resourceClaimTemplateName": "eight"}


def claiming(gpus: int, **usage: str) -> dict[str, Any]:
    """A job whose Pod asks for GPUs, and has a claim for which Kueue has counted `usage`."""
    [template] = gpu_pods(gpus)
    pod = template["spec"] | {"resourceClaims": [CLAIM]}
    raw = raw_job(pods=({"spec": pod},), check="Ready", mk="Pending")
    admission = {"podSetAssignments": [{"name": "p0", "resourceUsage": {GPU: str(gpus)} | usage}]}
    raw["status"]["admission"] = admission
    return raw


@pytest.mark.parametrize(
    ("job", "known", "names"),
    [
        pytest.param(claiming(4), {"p-a": facts(8), "p-b": facts(8)}, ("p-a", "p-b"), id="unknown room"),
        pytest.param(
            claiming(4), {"p-a": facts(8, reserved=8), "p-b": facts(8)}, ("p-b",), id="full without them"
        ),
        pytest.param(
            claiming(1, devices="8"), {"p-a": facts(8), "p-b": facts(8)}, ("p-a",), id="a resource not there"
        ),
    ],
)
def test_room_is_known_only_of_what_was_counted(job: Any, known: Any, names: tuple[str, ...]) -> None:
    answer = answer_to(job, facts=known, policy=replace(POLICY, step_size=2))
    assert nominated(answer) == {"job": names}
