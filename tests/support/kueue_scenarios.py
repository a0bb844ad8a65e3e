"""
The behaviour of Kueue as a table of scenarios, for the stand-in always, for a real hub by `make test-real`.

Times in docstrings are those of Kueue main ff69552e on a busy machine.
"""

import base64
import json
from typing import Final

import pytest
import yaml

from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    JOB,
    KUBECONFIG_KEY,
    KUEUE,
    LABEL_ORIGIN,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONTROLLER,
    PREBUILT_WORKLOAD,
    SECRET,
    WORKLOAD,
)
from tests.real.clusters import JOBS, QUEUES
from tests.support.kueue_stage import (
    NAME,
    OTHER,
    PRIORITY,
    QUEUE,
    VERSION,
    Obj,
    Stage,
    active,
    check,
    local_queue,
    queues,
    refusal,
    workloads,
)

INACTIVE: Final = f'Suspended "ClusterQueue {NAME} is inactive"'
GONE: Final = "Admitting remote no longer exists"


def hub_queue_on_hold(at: Stage) -> None:
    """A running job goes on; a new one gets no quota, and starts at the release."""
    at.submit("real-runs")
    before = at.runs("real-runs") if at.placed("real-runs") else {}
    at.stop(at.hub, "Hold")
    stopped = "False Stopped | Can't admit new workloads: is stopped."
    at.until(lambda: at.active(CLUSTER_QUEUE), stopped)
    inactive = "False ClusterQueueIsInactive | Can't submit new workloads to clusterQueue"
    at.until(lambda: at.active(LOCAL_QUEUE, NAME, JOBS), inactive)
    at.submit("real-waits")
    at.waits("real-waits", INACTIVE)
    at.stays(lambda: at.runs("real-runs"), before)
    at.stop(at.hub, "None")
    at.placed("real-waits")


def hub_queue_drained(at: Stage) -> None:
    """Evicted after 0.2 to 0.4 s, its copy gone after 1.2 to 1.5; it runs 0.7 to 0.9 s after the release."""
    at.submit("real-runs")
    before = at.runs("real-runs") if at.placed("real-runs") else {}
    at.stop(at.hub, "HoldAndDrain")
    at.until(lambda: at.says("real-runs", "Evicted"), 'T:ClusterQueueStopped "The ClusterQueue is stopped"')
    at.waits("real-runs", INACTIVE)
    assert at.says("real-runs", "Requeued") == 'F:ClusterQueueStopped "The ClusterQueue is stopped"'
    assert at.runs("real-runs") == {}
    at.stop(at.hub, "None")
    at.placed("real-runs")
    restarted = 'T:ClusterQueueRestarted "The ClusterQueue was restarted after being stopped"'
    assert at.says("real-runs", "Requeued") == restarted
    assert before.items().isdisjoint(at.runs("real-runs").items())


def hub_local_queue_drained(at: Stage) -> None:
    """As a ClusterQueue: evicted after 0.2 s, its copy gone after 0.5 to 1.3."""
    at.submit("real-runs")
    at.placed("real-runs")
    at.stop(at.hub, "HoldAndDrain", LOCAL_QUEUE)
    at.until(lambda: at.says("real-runs", "Evicted"), 'T:LocalQueueStopped "The LocalQueue is stopped"')
    at.waits("real-runs", f'Suspended "LocalQueue {NAME} is inactive"')
    stopped = "False Stopped | LocalQueue is stopped"
    at.until(lambda: at.active(LOCAL_QUEUE, NAME, JOBS), stopped)
    at.stop(at.hub, "None", LOCAL_QUEUE)
    at.placed("real-runs")
    restarted = 'T:LocalQueueRestarted "The LocalQueue was restarted after being stopped"'
    assert at.says("real-runs", "Requeued") == restarted


def hub_queue_on_hold_while_copies_wait(at: Stage) -> None:
    """A job that has quota and no cluster loses it after 0.1 s, and its copies are gone after 0.2."""
    at.hold()
    at.submit("real-waits")
    at.until(lambda: at.copies("real-waits"), list(at.workers))
    at.stop(at.hub, "Hold")
    at.waits("real-waits", INACTIVE)
    at.stop(at.hub, "None")
    at.until(lambda: at.copies("real-waits"), list(at.workers))


def worker_queue_on_hold(at: Stage) -> None:
    """A copy waits there until the release; a job that runs there goes on."""
    first, *_ = at.workers
    at.hold(first)
    at.submit("real-runs")
    assert at.placed("real-runs") == first
    before = at.runs("real-runs")
    at.hold()
    at.submit("real-waits")
    for worker in at.workers:
        at.until(lambda worker=worker: at.says("real-waits", "QuotaReserved", worker), f"F:{INACTIVE}")
    at.stays(lambda: at.runs("real-runs"), before)
    at.stop(at.workers[first], "None")
    assert at.placed("real-waits") == first


def worker_queue_drained(at: Stage) -> None:
    """The worker evicts after 0.1 s, the hub after 1.2 to 1.4; the job runs elsewhere after 3."""
    at.submit("real-runs")
    where = at.placed("real-runs")
    with at.after_batch():
        at.stop(at.workers[where], "HoldAndDrain")
        why = "resetting for re-admission. Previously: "
        at.evicted("real-runs", f'Workload evicted on worker cluster: "{where}", {why}"Ready"')
    assert at.placed("real-runs") != where


def worker_local_queue_missing(at: Stage) -> None:
    """The copy waits, and says why; the hub says nothing."""
    for worker in at.workers.values():
        worker.delete(LOCAL_QUEUE, NAME, namespace=JOBS)
    at.submit("real-waits")
    why = f'F:Misconfigured "LocalQueue {NAME} doesn\'t exist"'
    for worker in at.workers:
        at.until(lambda worker=worker: at.says("real-waits", "QuotaReserved", worker), why)
    assert at.check("real-waits") == 'Pending ""'


def worker_flavor_missing(at: Stage) -> None:
    """The worker's ClusterQueue is inactive: the copy waits."""
    first, *others = at.workers
    at.hold(*others)
    for worker in (at.workers[name] for name in others):
        queue = queues("2")[1]
        queue["spec"]["resourceGroups"][0]["flavors"][0]["name"] = OTHER
        worker.apply(queue)
        missing = f"Can't admit new workloads: references missing ResourceFlavor(s): {OTHER}."
        at.until(
            lambda worker=worker: active(worker.get(CLUSTER_QUEUE, NAME)),
            f"False FlavorNotFound | {missing}",
        )
    at.submit("real-waits")
    for name in others:
        at.until(lambda name=name: at.says("real-waits", "QuotaReserved", name), f"F:{INACTIVE}")
    at.stop(at.workers[first], "None")
    assert at.placed("real-waits") == first


def hub_flavor_missing(at: Stage) -> None:
    """The hub's ClusterQueue is inactive: no quota."""
    queue = queues("30", with_check=True)[1]
    queue["spec"]["resourceGroups"][0]["flavors"][0]["name"] = OTHER
    at.hub.apply(queue)
    missing = f"Can't admit new workloads: references missing ResourceFlavor(s): {OTHER}."
    at.until(lambda: at.active(CLUSTER_QUEUE), f"False FlavorNotFound | {missing}")
    at.submit("real-waits")
    at.waits("real-waits", INACTIVE)


def check_names_another_config(at: Stage) -> None:
    """Evicted after 1.2 s, it runs elsewhere after 5 to 6; the first copy runs on beside it."""
    first, *others = at.workers
    at.hold(first)
    at.submit("real-runs")
    assert at.placed("real-runs") == first
    before = at.runs("real-runs")
    at.hold(*at.workers)
    with at.after_batch():
        at.hub.apply(check(OTHER))
        at.evicted("real-runs", GONE)
    at.until(lambda: len(at.runs("real-runs")) == 2)
    assert before.items() <= at.runs("real-runs").items()
    assert at.workload("real-runs")["status"].get("clusterName") in (None, *others)


def what_marks_a_workers_job(at: Stage) -> None:
    """The annotation names the Workload, the label the hub (from 0.18 on); the Job owns the copy."""
    at.submit("real-runs", labels={"team": "a"})
    where = at.placed("real-runs")
    job = at.workers[where].get(JOB, "real-runs", JOBS)
    metadata, copy = job["metadata"], at.workload("real-runs", where)
    workload = at.workload("real-runs")["metadata"]["name"]
    assert metadata["annotations"][PREBUILT_WORKLOAD] == workload == copy["metadata"]["name"]
    assert PREBUILT_WORKLOAD not in metadata["labels"]
    assert {"team", QUEUE, LABEL_ORIGIN} <= metadata["labels"].keys()
    assert metadata["labels"][LABEL_ORIGIN] == copy["metadata"]["labels"][LABEL_ORIGIN]
    assert "managedBy" not in job["spec"]
    [owner] = copy["metadata"]["ownerReferences"]
    assert owner["uid"] == metadata["uid"]


def managed_by_is_set_for_new_jobs_alone(at: Stage) -> None:
    """Kueue's webhook sets it on a new Job of a queue with MultiKueue; nobody can later."""
    at.submit("real-plain", queue="")
    at.submit("real-runs")
    assert "managedBy" not in at.job("real-plain")["spec"]
    assert at.job("real-runs")["spec"]["managedBy"] == MULTIKUEUE_CONTROLLER
    late = refusal(
        lambda: at.hub.patch(JOB, "real-plain", {"spec": {"managedBy": MULTIKUEUE_CONTROLLER}}, JOBS)
    )
    immutable = f'spec.managedBy: Invalid value: "{MULTIKUEUE_CONTROLLER}": field is immutable'
    assert late == f'422 Job.batch "real-plain" is invalid: {immutable}'
    at.placed("real-runs")


def _is_rejected(at: Stage, name: str, manager: str) -> None:
    """Wait until a Job is deactivated for its `managedBy`; it is not sent when it is activated again."""
    wanted = f'Expecting spec.managedBy to be "{MULTIKUEUE_CONTROLLER}" not "{manager}"'
    why = f'The owner is not managed by Kueue: {wanted}, Previously: "Pending"'
    said = f'AdmissionCheck in Rejected state: "{NAME}" ({why})'
    deactivated = f'T:DeactivatedDueToAdmissionCheck "The workload is deactivated due to {said}"'
    at.until(lambda: at.says(name, "Evicted"), deactivated)
    workload = at.workload(name)
    assert workload["spec"]["active"] is False
    at.until(lambda: at.says(name, "QuotaReserved").startswith("F"))
    at.hub.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": True}}, JOBS)
    at.stays(lambda: at.copies(name), [])
    assert at.says(name, "QuotaReserved").startswith("F")


def a_foreign_managed_by(at: Stage) -> None:
    """The check is Rejected and the Workload deactivated; `active: true` does not help."""
    at.submit("real-foreign", managedBy="example.com/other")
    assert at.job("real-foreign")["spec"]["managedBy"] == "example.com/other"
    _is_rejected(at, "real-foreign", "example.com/other")


def a_job_before_its_queue(at: Stage) -> None:
    """It gets no `managedBy`: Rejected when the LocalQueue is there, for good."""
    at.submit("real-early", queue=OTHER)
    at.until(
        lambda: at.says("real-early", "QuotaReserved"),
        f'F:Misconfigured "LocalQueue {OTHER} doesn\'t exist"',
    )
    at.hub.apply(local_queue(OTHER))
    _is_rejected(at, "real-early", "")


def a_job_of_a_stopped_local_queue(at: Stage) -> None:
    """A stopped LocalQueue is unknown to the webhook: the same, after the release."""
    at.stop(at.hub, "Hold", LOCAL_QUEUE)
    at.until(lambda: at.active(LOCAL_QUEUE, NAME, JOBS).startswith("False Stopped"))
    at.submit("real-early")
    assert "managedBy" not in at.job("real-early")["spec"]
    at.until(lambda: at.says("real-early", "QuotaReserved"), f'F:Suspended "LocalQueue {NAME} is inactive"')
    at.stop(at.hub, "None", LOCAL_QUEUE)
    _is_rejected(at, "real-early", "")


def a_workers_job_is_deleted(at: Stage) -> None:
    """Kubernetes deletes the copy with it: evicted after 0.2 to 1.2 s, and sent anew.

    In 2 of 15 tries the worker's Kueue was faster than the garbage collector, and ended the copy with the
    reason `OwnerNotFound`; so did the hub, and the job was lost. By its changelog, 0.20 sends it anew, too.
    """
    at.submit("real-runs")
    where = at.placed("real-runs")
    before = at.runs("real-runs")
    at.workers[where].delete(JOB, "real-runs", namespace=JOBS)
    at.until(lambda: GONE in at.says("real-runs", "Evicted") or at.says("real-runs", "Finished"))
    if ended := at.says("real-runs", "Finished"):
        assert ended == 'T:OwnerNotFound "The workload\'s owner no longer exists"'
        return
    at.placed("real-runs")
    assert before.items().isdisjoint(at.runs("real-runs").items())


def a_copy_is_deleted(at: Stage) -> None:
    """Evicted within 1.5 s, and sent anew."""
    at.submit("real-runs")
    where = at.placed("real-runs")
    copy = at.workload("real-runs", where)["metadata"]["name"]
    at.workers[where].delete(WORKLOAD, copy, namespace=JOBS)
    at.evicted("real-runs", GONE)
    at.placed("real-runs")


def a_job_runs_too_long(at: Stage) -> None:
    """The worker stops it and, up to 1 s later, the hub deactivates it: it does not start again (7 of 7).

    If the worker's eviction arrives first, the reason is that of the check; it is deactivated all the same.
    """
    at.submit("real-long", labels={f"{KUEUE}/max-exec-time-seconds": "4"})
    at.placed("real-long")
    before = at.runs("real-long")
    assert at.workload("real-long")["spec"]["maximumExecutionTimeSeconds"] == 4
    at.until(lambda: not at.runs("real-long"))
    seen: Obj = {}
    at.until(lambda: seen.update(at.runs("real-long")) or at.workload("real-long")["spec"]["active"] is False)
    at.until(lambda: at.copies("real-long"), [])
    assert seen.items() <= before.items()
    at.stays(lambda: at.runs("real-long"), {})


def a_time_limit_that_is_none(at: Stage) -> None:
    """Kueue's webhook refuses a Job with one, and another one for a job that runs."""
    label = f"{KUEUE}/max-exec-time-seconds"
    refused = {
        value: refusal(lambda value=value: at.submit("real-long", labels={label: value}))
        for value in ("soon", "0")
    }
    assert refused == {
        "soon": f'{DENIED}[{label}]: Invalid value: "soon": strconv.Atoi: parsing "soon": invalid syntax',
        "0": f"{DENIED}[{label}]: Invalid value: 0: should be greater than 0",
    }
    at.submit("real-long", labels={label: "60"})
    at.placed("real-long")
    changed = refusal(lambda: at.hub.patch(JOB, "real-long", {"metadata": {"labels": {label: "600"}}}, JOBS))
    assert changed == f'{DENIED}[{label}]: Invalid value: "600": field is immutable'


def a_finished_job_with_a_ttl(at: Stage) -> None:
    """Kubernetes removes it on the hub, and with it its Workload, 2 s after its end."""
    at.submit("real-ends", ttlSecondsAfterFinished=2)
    at.placed("real-ends")
    at.end("real-ends")
    at.until(lambda: at.job("real-ends"), {})
    at.until(lambda: at.workload("real-ends"), {})
    at.until(lambda: at.copies("real-ends"), [])


DENIED: Final = '403 admission webhook "vjob.kb.io" denied the request: metadata.labels'


def a_running_jobs_queue_is_changed(at: Stage) -> None:
    """Refused by Kueue's webhook; a suspended job's is not."""
    at.hub.apply(local_queue(OTHER))
    at.submit("real-runs")
    at.placed("real-runs")
    immutable = f'[{QUEUE}]: Invalid value: "{OTHER}": field is immutable'
    assert at.change("real-runs", queue=OTHER) == f"{DENIED}{immutable}"
    at.stop(at.hub, "Hold")
    at.until(lambda: at.active(CLUSTER_QUEUE).startswith("False"))
    at.submit("real-waits")
    assert at.change("real-waits", queue=OTHER) == ""


def a_running_jobs_priority_is_changed(at: Stage) -> None:
    """Refused are a class for a job that runs without one, and to take a class away from any."""
    at.submit("real-runs")
    at.placed("real-runs")
    added = "WorkloadPriorityClass cannot be added to a non-suspended workload"
    assert at.change("real-runs", priority="high") == f'{DENIED}[{PRIORITY}]: Invalid value: "high": {added}'
    at.stop(at.hub, "Hold")
    at.until(lambda: at.active(CLUSTER_QUEUE).startswith("False"))
    at.submit("real-waits")
    assert at.change("real-waits", priority="high") == ""
    removed = "WorkloadPriorityClass cannot be removed from a workload"
    assert at.change("real-waits", priority=None) == f'{DENIED}[{PRIORITY}]: Invalid value: "": {removed}'


def a_tie_goes_to_any_worker(at: Stage) -> None:
    """Of workers that give quota in the same second, Kueue takes any: not always the first."""
    seen = set()
    for number in range(12):
        name = f"real-tie-{number}"
        at.submit(name)
        seen.add(at.placed(name))
        if len(seen) > 1:
            return
        at.hub.delete(JOB, name, namespace=JOBS)
        at.until(lambda: workloads(at.hub), [])
    raise AssertionError(f"all jobs went to {seen}")


def _kubeconfig_of(at: Stage, worker: str) -> Obj:
    cluster = at.hub.get(MULTIKUEUE_CLUSTER, worker)
    secret = cluster["spec"]["clusterSource"]["kubeConfig"]["location"]
    data = at.hub.get(SECRET, secret, QUEUES)["data"][KUBECONFIG_KEY]
    return dict(yaml.safe_load(base64.b64decode(data)))


def _connect(at: Stage, kubeconfig: Obj) -> str:
    """Return what Kueue says of a MultiKueueCluster with this kubeconfig."""
    source = {"kubeConfig": {"locationType": "Secret", "location": NAME}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME, "namespace": QUEUES}}
    content = base64.b64encode(json.dumps(kubeconfig).encode()).decode()
    kind = {"apiVersion": VERSION, "kind": "MultiKueueCluster", "metadata": {"name": NAME}}
    at.hub.apply({**secret, "data": {KUBECONFIG_KEY: content}}, {**kind, "spec": {"clusterSource": source}})
    return str(at.until(lambda: active(at.hub.get(MULTIKUEUE_CLUSTER, NAME))))


def a_wrong_ca(at: Stage) -> None:
    """The worker's certificate is signed by another authority."""
    first, second, _ = at.workers
    config, other = (_kubeconfig_of(at, worker) for worker in (first, second))
    [cluster], [wrong] = config["clusters"], other["clusters"]
    server = cluster["cluster"]["server"]
    cluster["cluster"] = wrong["cluster"] | {"server": server}
    said = _connect(at, config)
    why = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    wanted = f'False ClientConnectionFailed | failed to get server groups: Get "{server}/api": {why}'
    assert said.startswith(wanted), said


def no_current_context(at: Stage) -> None:
    """A kubeconfig that names no context to use."""
    config = _kubeconfig_of(at, next(iter(at.workers)))
    del config["current-context"]
    none = "invalid configuration: no configuration has been provided"
    hint = "try setting KUBERNETES_MASTER environment variable"
    wanted = f"False InsecureKubeConfig | load client config failed: {none}, {hint}"
    assert _connect(at, config) == wanted


SCENARIOS: Final = (
    hub_queue_on_hold,
    hub_queue_drained,
    hub_local_queue_drained,
    hub_queue_on_hold_while_copies_wait,
    worker_queue_on_hold,
    worker_queue_drained,
    worker_local_queue_missing,
    worker_flavor_missing,
    hub_flavor_missing,
    check_names_another_config,
    what_marks_a_workers_job,
    managed_by_is_set_for_new_jobs_alone,
    a_foreign_managed_by,
    a_job_before_its_queue,
    a_job_of_a_stopped_local_queue,
    a_workers_job_is_deleted,
    a_copy_is_deleted,
    a_job_runs_too_long,
    a_time_limit_that_is_none,
    a_finished_job_with_a_ttl,
    a_running_jobs_queue_is_changed,
    a_running_jobs_priority_is_changed,
    a_tie_goes_to_any_worker,
    a_wrong_ca,
    no_current_context,
)
each_scenario = pytest.mark.parametrize(
    "play", [pytest.param(play, id=play.__name__.replace("_", " ")) for play in SCENARIOS]
)
