"""The findings of doctor in the cases of people who run fleets."""

import re

import pytest

from tests.published.cases.scripts import run_case, section

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_the_hub_is_no_worker_of_itself() -> None:
    text = section(run_case("05"), "doctor: what it says of local-cluster")
    assert "selects local-cluster, which is this hub" in text
    assert "Kueue does not support the manager cluster as its own worker" in text
    assert '{"key": "local-cluster", "operator": "NotIn", "values": ["true"]}' in text, "what leaves it out"


def test_checks_that_kueue_does_not_combine() -> None:
    output = run_case("11")
    queues = section(output, "ClusterQueues")
    assert "per-flavor            False    MultiKueueAdmissionCheckAppliedPerFlavor" in queues
    text = section(output, "doctor")
    for queue in ("per-flavor", "two-placements", "with-provisioning"):
        assert f"so: cluster-queues: ClusterQueue {queue} admits nothing" in text, "one cause, one finding"
    gate = "ClusterQueue gate-for-one-flavor lists our check us with onFlavors, without spot"
    assert re.search(rf"^WARN +queue-checks +{gate}: a job with that flavor has no gate", text, re.MULTILINE)
    assert "3 problems, 1 warning" in text
