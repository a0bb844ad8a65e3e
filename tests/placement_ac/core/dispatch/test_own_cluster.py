"""The cluster that runs a job, compared with others: what counts only before a start does not count there."""

from dataclasses import replace

import pytest

from placement_ac.core.api.objects import ClusterTaint
from placement_ac.core.dispatch.cycle import DispatchCycle
from placement_ac.core.dispatch.profiles import parse_profile
from placement_ac.core.inputs.job_facts import JobFacts
from tests.support.jobs_to_dispatch import DOMAIN, cluster, job

RANKED = parse_profile("ranked")
TAINT = ClusterTaint("gpu", "", "NoSelect")
TAKEN = JobFacts(taken={"Job.v1.batch": frozenset({("default", "train")})})


@pytest.mark.parametrize(
    "own",
    [
        pytest.param({"taints": (TAINT,)}, id="a taint"),
        pytest.param({"jobs": TAKEN}, id="a job of its name"),
        pytest.param({"taints": (TAINT,), "jobs": TAKEN}, id="both"),
    ],
)
def test_a_running_job_is_not_better_elsewhere_because_of(own: dict[str, object]) -> None:
    runs = replace(job(owner=("batch/v1", "Job", "train"), cluster="p-a"), job_name="train")
    fit = DispatchCycle([cluster("a", 0, 2, **own), cluster("b", 1, 2)])
    assert "p-a" in fit.refusals(runs)
    assert fit.compare(runs, RANKED, "p-a").points > 0


def test_another_filter_still_counts() -> None:
    runs = job(cluster="p-a", annotations={f"{DOMAIN}/anti-affinity": "app=trainer"}, labels={"app": "x"})
    other = job("other", labels={"app": "trainer"}, cluster="p-a")
    fit = DispatchCycle([cluster("a", 0, 2, running=[other], taints=(TAINT,)), cluster("b", 1, 2)])
    assert fit.compare(runs, RANKED, "p-a").points == 0
