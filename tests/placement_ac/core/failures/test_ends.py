"""Each end of a job, as Kueue writes it into the hub's Workload (main of August 2026)."""

from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.decode import workload_with_identity
from placement_ac.core.api.fields import format_time, parse_time
from placement_ac.core.failures.ends import Cause, end_of

START = parse_time("2026-08-22T10:00:00Z")
assert START is not None
ADMITTED = ("Admitted", True, "Admitted", "The workload is admitted", 0)
NOT_READY = ("PodsReady", False, "WaitForStart", "Not all pods are ready or succeeded", -5)
READY = ("PodsReady", True, "Started", "All pods reached readiness and the workload is running", 20)
QUOTE = 'Evicted due to AdmissionCheck in Retry state: "multikueue" ({}. Previously: "Ready")'
THERE = QUOTE.format('Workload evicted on worker cluster: "w2", resetting for re-admission')
OUT_OF_SYNC = QUOTE.format(
    'Remote workload on worker cluster "w2" is out of sync with its user job, resetting'
)


def evicted(message: str, at: int = 400, *, reason: str = "AdmissionCheck", status: bool = True) -> Any:
    return ("Evicted", status, reason, message, at)


def finished(reason: str, at: int) -> Any:
    return ("Finished", True, reason, "Job has reached the specified backoff limit", at)


def raw(*conditions: Any, cluster: str = "") -> dict[str, Any]:
    listed = [
        {
            "type": kind,
            "status": str(status),
            "reason": reason,
            "message": message,
            "lastTransitionTime": format_time(START + timedelta(seconds=at)),
        }
        for kind, status, reason, message, at in conditions
    ]
    return {
        "metadata": {"name": "j", "namespace": "default", "uid": "u1"},
        "status": {"conditions": listed, "clusterName": cluster},
    }


CASES: dict[str, tuple[dict[str, Any], str | None, tuple[str, Cause, int, int] | None]] = {
    "it succeeds": (
        raw(ADMITTED, finished("Succeeded", 30), cluster="w2"),
        "w2",
        ("w2", Cause.FINISHED, 0, 30),
    ),
    "it fails within a minute": (
        raw(ADMITTED, finished("Failed", 60), cluster="w2"),
        "w2",
        ("w2", Cause.FAILED_EARLY, 0, 60),
    ),
    "it fails later": (
        raw(ADMITTED, finished("Failed", 61), cluster="w2"),
        "w2",
        ("w2", Cause.FINISHED, 0, 61),
    ),
    "it fails within a minute after its image was pulled": (
        raw(ADMITTED, READY, finished("Failed", 70), cluster="w2"),
        "w2",
        ("w2", Cause.FAILED_EARLY, 20, 70),
    ),
    "it ran nowhere": (raw(ADMITTED, finished("Failed", 5)), None, None),
    "it is out of sync for good": (raw(ADMITTED, finished("OutOfSync", 5), cluster="w2"), "w2", None),
    "PodsReady timeout on the worker": (
        raw(ADMITTED, NOT_READY, evicted(THERE)),
        "w2",
        ("w2", Cause.NOT_READY, 0, 400),
    ),
    "a node fails there": (
        raw(
            ADMITTED,
            ("PodsReady", False, "WaitForRecovery", "At least one pod has failed", 350),
            evicted(THERE),
        ),
        "w2",
        ("w2", Cause.NOT_READY, 0, 400),
    ),
    "preempted there": (raw(ADMITTED, READY, evicted(THERE)), "w2", None),
    "preempted there, and its Pods have stopped": (
        raw(
            ADMITTED,
            ("PodsReady", False, "WaitForRecovery", "At least one pod has failed", 403),
            evicted(THERE),
        ),
        "w2",
        None,
    ),
    "its Pods stopped in the same second": (
        raw(ADMITTED, ("PodsReady", False, "WaitForRecovery", "", 400), evicted(THERE)),
        "w2",
        ("w2", Cause.EVICTED, 0, 400),
    ),
    "it became ready elsewhere since": (
        raw(ADMITTED, ("PodsReady", True, "Started", "", 401), evicted(THERE)),
        "w2",
        ("w2", Cause.EVICTED, 400, 400),
    ),
    "evicted there, and the hub does not wait for Pods": (
        raw(ADMITTED, evicted(THERE)),
        "w2",
        ("w2", Cause.EVICTED, 0, 400),
    ),
    "out of sync there": (raw(ADMITTED, evicted(OUT_OF_SYNC)), "w2", ("w2", Cause.OUT_OF_SYNC, 0, 400)),
    "PodsReady timeout on the hub": (
        raw(ADMITTED, NOT_READY, evicted("Exceeded the PodsReady timeout", reason="PodsReadyTimeout")),
        "w2",
        ("w2", Cause.PODS_READY_TIMEOUT, 0, 400),
    ),
    "PodsReady timeout on the hub, after a restart": (
        raw(ADMITTED, NOT_READY, evicted("Exceeded the PodsReady timeout", reason="PodsReadyTimeout")),
        None,
        None,
    ),
    "the worker is lost": (
        raw(ADMITTED, NOT_READY, evicted(QUOTE.format("Admitting remote lost"))),
        "w2",
        None,
    ),
    "its copy is deleted": (
        raw(ADMITTED, NOT_READY, evicted(QUOTE.format("Admitting remote no longer exists"))),
        "w2",
        None,
    ),
    "we sent it back": (
        raw(ADMITTED, NOT_READY, evicted(QUOTE.format("cluster w2 is leaving the Placement"))),
        "w2",
        None,
    ),
    "preempted on the hub": (
        raw(ADMITTED, NOT_READY, evicted("Preempted to accommodate a workload", reason="Preempted")),
        "w2",
        None,
    ),
    "it has quota again": (raw(NOT_READY, evicted(f"Previously: {THERE}", status=False)), "", None),
    "it has quota again, after a restart": (
        raw(NOT_READY, evicted(f"Previously: {THERE}", status=False)),
        None,
        ("w2", Cause.EVICTED, 400, 400),
    ),
    "it runs": (raw(ADMITTED, READY, cluster="w2"), "w2", None),
    "rubbish": (
        {"metadata": {}, "status": {"conditions": [1, {"type": "Evicted", "status": "True"}]}},
        "w2",
        None,
    ),
}


@pytest.mark.parametrize(("workload", "before", "wanted"), CASES.values(), ids=CASES)
def test_an_end(workload: dict[str, Any], before: str | None, wanted: Any) -> None:
    end = end_of(workload, before, "job")
    if end is None or wanted is None:
        assert end is wanted
        return
    seconds = [int((when - START).total_seconds()) for when in (end.started, end.at)]
    assert (end.worker, end.cause, *seconds) == wanted


def test_a_job_that_is_submitted_again_is_the_same_one() -> None:
    def submitted(name: str, image: str, namespace: str = "default") -> str:
        template = {
            "metadata": {"labels": {"batch.kubernetes.io/job-name": name}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }
        metadata = {"name": f"job-{name}", "namespace": namespace}
        spec = {"podSets": [{"name": "main", "count": 1, "template": template}]}
        return workload_with_identity({"metadata": metadata, "spec": spec}).same_job

    assert submitted("a-1", "train:1") == submitted("a-2", "train:1")
    assert submitted("a-1", "train:1") != submitted("a-1", "train:2")
    assert submitted("a-1", "train:1") != submitted("a-1", "train:1", "other")
