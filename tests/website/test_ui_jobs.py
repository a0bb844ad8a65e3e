"""The jobs on the page of `placement-ac ui` in a browser: the list, a story, and that both follow the hub."""

from typing import Any

import pytest

from tests.support.driver import KUEUE, Driver
from tests.website.test_ui_page import Open, look  # noqa: F401  # a fixture

pytestmark = pytest.mark.long
POD_SET = {"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
WORKLOADS = f"{KUEUE}/v1beta2/namespaces/default/workloads"


@pytest.fixture
def waits(admin: Driver) -> None:
    """A job that waits for quota in a queue that does not exist."""
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "job-train", "namespace": "default"},
        "spec": {"queueName": "gpus", "podSets": [POD_SET]},
    }
    admin.ask("POST", WORKLOADS, body)


def write(admin: Driver, **status: Any) -> None:
    admin.ask("PATCH", f"{WORKLOADS}/job-train/status", {"status": status}, "merge")


def test_a_job_is_listed_and_its_story_follows_the_hub(waits: None, look: Open, admin: Driver) -> None:  # noqa: F811
    seen = look()
    seen.page.locator("#jobs-section summary").click()
    seen.page.locator("#jobs").get_by_text(
        "waits for LocalQueue default/gpus, which does not exist"
    ).wait_for()
    seen.page.get_by_role("button", name="default/job-train").first.click()
    seen.page.locator("#explain .step").get_by_text("Queued").wait_for()
    assert seen.text("#explain-title") == "Workload default/job-train"
    assert "create LocalQueue default/gpus" in seen.text("#explain-text")
    when = "2026-08-01T12:00:00Z"
    ready = [{"name": "p", "state": "Ready", "message": "", "lastTransitionTime": when}]
    quota = {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "x",
        "message": "",
        "lastTransitionTime": when,
    }
    write(admin, conditions=[quota], admissionChecks=ready, clusterName="p-b")
    seen.page.locator("#explain .step").get_by_text("Placed by Kueue").wait_for()
    seen.page.locator("#jobs .state", has_text="running").wait_for()
    assert seen.page.locator("#jobs td[data-label=Cluster]").all_inner_texts() == ["b"]
    seen.page.keyboard.press("Escape")
    assert not seen.page.locator("#explain").is_visible()
    seen.page.locator("#workloads").get_by_role("button", name="default/job-train").click()
    seen.page.locator("#explain .step").get_by_text("Placed by Kueue").wait_for()
    assert seen.trouble == []
