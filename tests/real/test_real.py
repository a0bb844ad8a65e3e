"""
The three stories, a drain, a flip and the rights of the credentials, on a real hub (`make test-real`).

Also for whoever installs placement-ac, to check an installation before production: every object that is made
is named `placement-ac-real` (the Jobs: `real-…`), and all of them are removed again. A binding of the cluster
set `global` is made, and removed, if there is none.
"""

import base64
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    ANNOTATION_CLUSTER_SELECTOR,
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    KUEUE_MANAGER,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    RESOURCE_FLAVOR,
    SECRET,
)
from placement_ac.core.inputs.fitness import release_of
from placement_ac.core.inputs.rights import parse_release, required_rights
from tests.real.clusters import (
    GPU,
    JOBS,
    LATE,
    NAME,
    QUEUES,
    SCORE,
    SECOND,
    T4,
    Cluster,
    Fleet,
    Timeout,
    job,
    local_queue,
    until,
)

pytestmark = pytest.mark.timeout(1800)

GENERATED = "MultiKueueConfig and MultiKueueCluster generated"
ACTIVE = ("True", "Active", GENERATED)


def by_score(score: str, resource: str) -> dict[str, Any]:
    """The spec of a Placement that selects the one cluster with the best score."""
    coordinate = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}}
    configurations = [{"scoreCoordinate": coordinate, "weight": 1}]
    return {
        "numberOfClusters": 1,
        "prioritizerPolicy": {"mode": "Exact", "configurations": configurations},
    }


BY_SCORE = by_score(SCORE, NAME)


def check_of(fleet: Fleet) -> tuple[Any, ...]:
    condition = fleet.condition(ADMISSION_CHECK)
    return tuple(condition.get(field) for field in ("status", "reason", "message"))


def test_story_1_all_clusters_are_listed_and_nothing_is_written_by_hand(prepared: Fleet) -> None:
    prepared.select({}, {})
    prepared.wait_for_list(*prepared.names)
    assert check_of(prepared) == ACTIVE
    prepared.submit("real-all")
    prepared.wait_for_start("real-all")
    prepared.end("real-all")


def test_story_2_clusters_come_and_go_by_label(prepared: Fleet) -> None:
    first, second, third = sorted(prepared.names)
    for name in (second, third):
        prepared.label(name, **{GPU: T4})
    prepared.select({}, {GPU: T4})
    prepared.wait_for_list(second, third)
    assert check_of(prepared) == ACTIVE
    prepared.label(first, **{GPU: T4})
    prepared.wait_for_list(first, second, third)
    prepared.label(first, **{GPU: None})
    prepared.wait_for_list(second, third)


def test_story_3_the_best_cluster_changes_while_a_job_runs_on(prepared: Fleet) -> None:
    _, second, third = sorted(prepared.names)
    for name in (second, third):
        prepared.label(name, **{GPU: T4})
    prepared.score(**{second: 30, third: 70})
    prepared.select(BY_SCORE, {GPU: T4})
    prepared.wait_for_list(third)
    prepared.submit("real-before")
    place = prepared.wait_for_start("real-before")
    assert place[0] == third
    prepared.score(**{second: 90})
    prepared.wait_for_list(second, draining=third)
    assert prepared.runs() == {"real-before": dict([place])}, "the job runs on, where it was"
    status, reason, message = check_of(prepared)
    assert (status, reason) == ("True", "Active")
    assert message.startswith(f"{GENERATED}; draining: {third} (")
    prepared.end("real-before")
    prepared.wait_for_list(second)
    until(lambda: check_of(prepared) == ACTIVE, prepared.seconds, prepared.state)
    prepared.submit("real-after")
    assert prepared.wait_for_start("real-after")[0] == second
    prepared.end("real-after")


def test_story_5_jobs_fill_one_cluster_after_the_other_by_the_scores_of_the_controller(
    prepared: Fleet,
) -> None:
    """The queues have CPU alone: 2 in each of the two on a worker, and one may borrow from the other."""
    first, second, _ = sorted(prepared.names)
    prepared.select(by_score("cpuFree", "placement-ac"), {})
    until(lambda: prepared.condition(ADMISSION_CHECK), prepared.seconds, prepared.state)
    if not prepared.runs_with("report-scores"):
        pytest.skip("needs a controller with --report-scores true, or none: then one is started")
    until(lambda: prepared.reported("cpuFree") == dict.fromkeys(prepared.names, 100), prepared.seconds)
    prepared.wait_for_list(first)
    burst = [f"real-fills-{number}" for number in range(2)]
    for name in burst:
        prepared.submit(name, cpu=2)
    places = {name: prepared.wait_for_start(name) for name in burst}
    assert {cluster for cluster, _ in places.values()} == {first}
    until(lambda: prepared.reported("cpuFree")[first] == 0, prepared.seconds, prepared.state)
    prepared.wait_for_list(second, draining=first)
    prepared.submit("real-next", cpu=2)
    assert prepared.wait_for_start("real-next")[0] == second
    assert {name: prepared.runs()[name] for name in burst} == {
        name: dict([place]) for name, place in places.items()
    }
    for name in (*burst, "real-next"):
        prepared.end(name)
    # A cluster that is as free as the selected one is reported with a point less.
    until(lambda: min(prepared.reported("cpuFree").values()) >= 99, prepared.seconds, prepared.state)
    prepared.wait_for_list(*decided(prepared))


def decided(fleet: Fleet) -> list[str]:
    """Return the clusters that OCM has selected."""
    return [
        entry["clusterName"]
        for status in fleet.state()["decided"]
        for entry in (status or {}).get("decisions", ())
    ]


def test_a_cluster_is_drained_by_a_taint_when_its_last_job_has_ended(prepared: Fleet) -> None:
    names = sorted(prepared.names)
    prepared.select({}, {})
    prepared.wait_for_list(*names)
    prepared.submit("real-drained")
    place = prepared.wait_for_start("real-drained")
    leaving = place[0]
    prepared.taint(leaving, tainted=True)
    stays = [name for name in names if name != leaving]
    prepared.wait_for_list(*stays, draining=leaving)
    until(lambda: f"draining: {leaving} (" in check_of(prepared)[2], prepared.seconds, prepared.state)
    assert prepared.runs() == {"real-drained": dict([place])}
    prepared.end("real-drained")
    prepared.wait_for_list(*stays)
    until(lambda: check_of(prepared) == ACTIVE, prepared.seconds, prepared.state)


def test_with_the_dispatcher_no_job_goes_to_a_cluster_that_leaves(prepared: Fleet) -> None:
    if not prepared.dispatcher:
        pytest.skip("needs Kueue with dispatcherName open-cluster-management.io/placement: --dispatcher")
    first, second, third = sorted(prepared.names)
    prepared.score(**{first: -50, second: 30, third: 70})
    prepared.select(BY_SCORE, {})
    prepared.wait_for_list(third)
    prepared.submit("real-first")
    place = prepared.wait_for_start("real-first")
    prepared.score(**{second: 90})
    prepared.wait_for_list(second, draining=third)
    later = [f"real-later-{number}" for number in range(3)]
    for name in later:
        prepared.submit(name)
    assert {prepared.wait_for_start(name)[0] for name in later} == {second}
    assert prepared.runs()["real-first"] == dict([place]), "the job runs on, where it was"
    for name in ("real-first", *later):
        prepared.end(name)
    prepared.wait_for_list(second)


def needs_option(fleet: Fleet, option: str) -> None:
    """Skip the test if the controller that leads runs without an option, or without the dispatcher."""
    if not fleet.dispatcher:
        pytest.skip("needs Kueue with dispatcherName open-cluster-management.io/placement: --dispatcher")
    until(lambda: fleet.condition(ADMISSION_CHECK), fleet.seconds, fleet.state)
    if not fleet.runs_with(option):
        pytest.skip(f"needs a controller with --{option}, or none: then one is started")


def test_a_cluster_in_maintenance_is_emptied_and_may_be_rebooted_when_its_last_job_has_ended(
    prepared: Fleet,
) -> None:
    prepared.select({}, {})
    prepared.wait_for_list(*prepared.names)
    prepared.submit("real-before")
    cluster, _ = place = prepared.wait_for_start("real-before")
    assert prepared.drain(cluster, "--in=0s") == 0
    prepared.wait_for_list(*(name for name in prepared.names if name != cluster), draining=cluster)
    assert prepared.drain(cluster, "--status") == 1
    assert prepared.runs() == {"real-before": dict([place])}, "the job runs on"
    if prepared.dispatcher:  # Kueue's own may send it there as long as the cluster is listed
        prepared.submit("real-meanwhile")
        assert prepared.wait_for_start("real-meanwhile")[0] != cluster
    for name in prepared.runs():
        prepared.end(name)
    until(lambda: prepared.drain(cluster, "--status") == 0, prepared.seconds, prepared.state)
    assert prepared.drain(cluster, "--cancel") == 0
    prepared.wait_for_list(*prepared.names)


def test_the_story_of_a_job_is_shown(prepared: Fleet) -> None:
    prepared.select({}, {})
    prepared.wait_for_list(*prepared.names)
    prepared.submit("real-waits", cpu=20)  # more than the hub's quota
    prepared.submit("real-runs")
    cluster, _ = prepared.wait_for_start("real-runs")
    story = until(lambda: _story(prepared, "real-runs", state="running"), prepared.seconds)
    assert story["job"]["cluster"] == cluster
    assert {"QuotaReserved", "Placed"} <= {step["what"] for step in story["steps"]}
    assert _story(prepared, "real-waits", state="waiting")["job"]["waitsFor"]
    jobs = {job["name"]: job["state"] for job in prepared.document("jobs", f"--namespace={JOBS}")["jobs"]}
    assert {jobs["real-runs"], jobs["real-waits"]} == {"running", "waiting"}
    prepared.end("real-runs")
    assert _story(prepared, "real-runs", state="succeeded")


@pytest.mark.parametrize(
    ("queue", "managed_by", "why"),
    [
        pytest.param(LATE, "", "older than", id="made before its LocalQueue"),
        pytest.param(NAME, "example.com/other", "without spec.managedBy", id="a foreign managedBy"),
    ],
)
def test_a_job_that_kueue_never_starts_runs_after_the_command_that_is_printed(
    prepared: Fleet, queue: str, managed_by: str, why: str
) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl on PATH")
    prepared.select({}, {})
    prepared.wait_for_list(*prepared.names)
    prepared.submit("real-never", queue=queue, managed_by=managed_by)
    for cluster in (prepared.hub, *prepared.workers.values()) if queue == LATE else ():
        cluster.apply(local_queue(LATE))

    def printed_fix() -> str:
        job = prepared.document("job", "real-never", f"--namespace={JOBS}")["job"]
        return str(job["fix"]) if "create it again" in job["fix"] else ""

    fix = until(
        printed_fix, prepared.seconds, lambda: prepared.document("job", "real-never", f"--namespace={JOBS}")
    )
    assert why in fix
    command, _, _ = fix.partition(", then create it again")
    kubeconfig = os.environ | {"KUBECONFIG": str(prepared.hub.kubeconfig)}
    subprocess.run(shlex.split(command), env=kubeconfig, check=True, capture_output=True)
    until(lambda: not prepared.workload_of("real-never"), prepared.seconds)
    prepared.submit("real-never", queue=queue)
    prepared.wait_for_start("real-never")
    prepared.end("real-never")


@pytest.mark.parametrize(
    ("completions", "starts_again"),
    [pytest.param(1, False, id="not more Pods at a time"), pytest.param(2, True, id="more Pods at a time")],
)
def test_a_changed_parallelism_starts_a_running_job_again(
    prepared: Fleet, completions: int, starts_again: bool
) -> None:
    """Kueue compares how many Pods it has at a time: min(parallelism, completions)."""
    prepared.select({}, {})
    prepared.wait_for_list(*prepared.names)
    changed = job("real-changed")
    changed["spec"]["completions"] = completions
    prepared.hub.apply(changed)
    prepared.wait_for_start("real-changed")
    before = until(lambda: _story(prepared, "real-changed", state="running"), prepared.seconds)
    assert before
    workload = prepared.workload_of("real-changed")["metadata"]["uid"]
    prepared.hub.patch(JOB, "real-changed", {"spec": {"parallelism": 2}}, JOBS)
    if starts_again:
        until(
            lambda: prepared.workload_of("real-changed").get("metadata", {}).get("uid", workload) != workload,
            60,
        )
        prepared.wait_for_start("real-changed")
    else:
        time.sleep(5)  # nothing happens: there is no event to wait for
        assert prepared.workload_of("real-changed")["metadata"]["uid"] == workload


def test_with_the_dispatcher_a_worker_without_the_queue_gets_no_job_and_is_named(prepared: Fleet) -> None:
    prepared.select({}, {})
    needs_option(prepared, "dispatcher")
    first, *others = sorted(prepared.names)
    prepared.wait_for_list(*prepared.names)
    prepared.workers[first].delete(LOCAL_QUEUE, NAME, namespace=JOBS)
    for name in ("real-beside-1", "real-beside-2"):
        prepared.submit(name)
        assert prepared.wait_for_start(name)[0] in others
    remark = f"{first}: no quota there for jobs of LocalQueue {JOBS}/{NAME} (there is no such LocalQueue)"
    until(lambda: remark in check_of(prepared)[2], prepared.seconds, prepared.state)
    assert remark in prepared.placement("status", NAME).stdout
    for name in ("real-beside-1", "real-beside-2"):
        prepared.end(name)


def test_with_the_dispatcher_no_job_goes_where_its_pods_may_use_no_flavor(prepared: Fleet) -> None:
    prepared.select({}, {})
    needs_option(prepared, "dispatcher")
    first, *others = sorted(prepared.names)
    prepared.wait_for_list(*prepared.names)
    prepared.submit("real-first")
    assert prepared.wait_for_start("real-first")[0] == first, "it is the best while it has room"
    prepared.end("real-first")
    prepared.workers[first].patch(RESOURCE_FLAVOR, NAME, {"spec": {"nodeLabels": {GPU: "h100"}}})
    prepared.submit("real-elsewhere", nodes={GPU: T4})
    assert prepared.wait_for_start("real-elsewhere")[0] in others


def _story(fleet: Fleet, job: str, state: str) -> dict[str, Any]:
    """Return the story of a job, {} if it is in another state."""
    story = fleet.document("job", job, f"--namespace={JOBS}")
    return story if story["job"]["state"] == state else {}


@pytest.mark.parametrize("asked", [(), ("--workers",)], ids=["as the controller says", "as the workers say"])
def test_the_capacity_is_what_the_queues_of_the_workers_have_left(
    prepared: Fleet, asked: tuple[str, ...]
) -> None:
    # Without the dispatcher, workers are asked again and again as long as a Placement uses the scores.
    prepared.select(by_score("cpuFree", "placement-ac") | {"numberOfClusters": len(prepared.names)}, {})
    prepared.wait_for_list(*prepared.names)
    prepared.submit("real-uses", cpu=2)
    cluster, _ = prepared.wait_for_start("real-uses")
    until(lambda: prepared.free(cluster)["cpu"] == 2, prepared.seconds)

    def is_shown() -> bool:
        rows = prepared.document("capacity", *asked)["rows"] if asked or _published(prepared) else []
        shown = {(row["cluster"], row["resource"]): row["free"] for row in rows if row["flavor"] == NAME}
        left = {name: prepared.free(name) for name in prepared.names}
        return shown == {(name, resource): free for name in left for resource, free in left[name].items()}

    # The controller's answers are written once a minute.
    until(is_shown, prepared.seconds, lambda: prepared.document("capacity", *asked))
    prepared.end("real-uses")


def _published(fleet: Fleet) -> bool:
    return bool(fleet.hub.get(CONFIG_MAP, "placement-ac-capacity", QUEUES))


def test_each_credential_has_the_rights_that_kueue_needs_and_none_to_secrets(
    prepared: Fleet, tmp_path: Path
) -> None:
    prepared.select({}, {})
    prepared.wait_for_list(*prepared.names)
    checked = [name for name in prepared.names if _check_rights(prepared, name, tmp_path)]
    if not checked:
        pytest.skip(
            "no MultiKueueCluster of these names a Secret: their rights cannot be asked for from here"
        )


def _check_rights(fleet: Fleet, cluster: str, folder: Path) -> bool:
    """Ask the worker with Kueue's own credentials; False: they are not in a Secret."""
    source = fleet.hub.get(MULTIKUEUE_CLUSTER, f"{NAME}-{cluster}")["spec"]["clusterSource"]
    if "kubeConfig" not in source:
        return False
    secret = fleet.hub.get(SECRET, source["kubeConfig"]["location"], QUEUES)
    path = folder / cluster
    path.touch(mode=0o600)
    path.write_bytes(base64.b64decode(secret["data"]["kubeconfig"]))
    worker = Cluster(path)
    deployment = fleet.hub.get(DEPLOYMENT, KUEUE_MANAGER, QUEUES)
    needed = required_rights({"batch/job"}, kueue=parse_release(release_of(deployment)))
    for right in needed:
        resource = {"group": right.group, "resource": right.resource, "subresource": right.subresource}
        assert worker.may(right.verb, resource), f"{cluster}: Kueue may not {right.verb} {resource}"
    assert not worker.may("get", {"resource": "secrets"}), f"{cluster}: Kueue may read every Secret"
    return True


def test_a_job_takes_its_queues_quota_back_on_a_full_worker(prepared: Fleet) -> None:
    """With Kueue 0.20, the hub opens the preemption gate of one copy: that needs `update` on its status.

    Without the gate each worker makes room, so it is not shown here whose job had to go.
    """
    prepared.select({}, {})
    prepared.wait_for_list(*prepared.names)
    borrowing = [f"real-borrows-{number}" for number in range(len(prepared.names))]
    for name in borrowing:
        prepared.submit(name, cpu=4)
    before = {prepared.wait_for_start(name)[0]: name for name in borrowing}
    assert len(before) == len(borrowing), "each worker is full"
    prepared.submit("real-reclaims", cpu=2, queue=SECOND)
    prepared.wait_for_start("real-reclaims")
    until(lambda: len(prepared.runs()) == len(borrowing), prepared.seconds, prepared.state)
    assert "real-reclaims" in prepared.runs(), "one of the others has made room"
    prepared.end("real-reclaims")
    for name in borrowing:
        prepared.wait_for_start(name)
        prepared.end(name)


def test_a_cluster_where_jobs_fail_is_quarantined_and_gets_no_new_job(prepared: Fleet) -> None:
    """It comes last: the controller remembers it, as it remembers the jobs that have ended well before."""
    bad, *_ = sorted(prepared.names)
    prepared.label(bad, **{GPU: T4})
    prepared.select({}, {})
    needs_option(prepared, "avoid-after-failure")
    prepared.wait_for_list(*prepared.names)
    failed = 0
    while not _is_quarantined(prepared, failed):
        assert failed < MOST_FAILED, prepared.state()
        name = f"real-fails-{failed}"
        prepared.submit(name, annotations={ANNOTATION_CLUSTER_SELECTOR: f"{GPU}={T4}"})
        assert prepared.wait_for_start(name)[0] == bad
        prepared.end(name, fails=True)
        failed += 1
    later = [f"real-avoids-{number}" for number in range(3)]
    for name in later:
        prepared.submit(name)
    assert bad not in {prepared.wait_for_start(name)[0] for name in later}
    for name in later:
        prepared.end(name)


MOST_FAILED = 30


def _is_quarantined(fleet: Fleet, failed: int) -> bool:
    """Whether the event is there; soon after the last of enough failures, if it comes."""
    try:
        return bool(until(lambda: fleet.events("ClusterQuarantined"), 5.0 if failed >= 5 else 0.0))
    except Timeout:
        return False
