"""
The behaviour of Kueue as a table of scenarios, for the stand-in always, for a real hub by `make test-real`.

Times in docstrings are those of Kueue main ff69552e on a busy machine. `Stage.until` waits longer, as a
machine may be busier; where Kueue gathers events first, `Stage.after_batch` checks that it does.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import yaml
from kubernetes.dynamic.exceptions import DynamicApiError

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    KUBECONFIG_KEY,
    KUEUE,
    LABEL_ORIGIN,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CONTROLLER,
    PREBUILT_WORKLOAD,
    RESOURCE_FLAVOR,
    SECRET,
    WORKLOAD,
)
from tests.real.clusters import JOBS, QUEUES, Cluster

NAME: Final = "placement-ac-real-kueue"
"""Of all objects of the scenarios but the Jobs (real-…)."""
OTHER: Final = f"{NAME}-other"
"""A second LocalQueue, MultiKueueConfig or WorkloadPriorityClass."""
BATCH: Final = 1.0
"""How many seconds Kueue gathers events of workers and configurations."""
SECONDS: Final = 20.0
"""The most that a step may take, on a machine that is busy."""
_VERSION: Final = f"{KUEUE}/v1beta2"
_QUEUE: Final = f"{KUEUE}/queue-name"
_PRIORITY: Final = f"{KUEUE}/priority-class"
_ONE_CPU: Final = {"requests": {"cpu": "1"}}
Obj = dict[str, Any]


@dataclass(slots=True)
class Stage:
    """A hub with Kueue and three workers, which are connected; `speed`: of Kueue's times there."""

    hub: Cluster
    workers: Mapping[str, Cluster]
    """By the names of their MultiKueueClusters."""
    speed: float = 1.0
    jobs: list[str] = field(default_factory=list)

    # -- what an admin does

    def set_up(self) -> None:
        """Make the queues on all clusters, with 2 CPUs on each worker, and the check on the hub."""
        self.hub.apply(*_configs(self.workers), _check(NAME), *_queues("30", with_check=True))
        for worker in self.workers.values():
            worker.apply(*_queues("2"))
        self.until(lambda: self.active(ADMISSION_CHECK), "True Active | The admission check is active")
        for cluster in (self.hub, *self.workers.values()):
            self.until(
                lambda cluster=cluster: active(cluster.get(CLUSTER_QUEUE, NAME)),
                "True Ready | Can admit new workloads",
            )

    def clear(self) -> None:
        """Remove what a scenario has made."""
        for cluster in (self.hub, *self.workers.values()):
            names = [job["metadata"]["name"] for job in cluster.list(JOB, JOBS)]
            cluster.delete(JOB, *(name for name in names if name.startswith("real-")), namespace=JOBS)
        for cluster in (self.hub, *self.workers.values()):
            self.until(lambda cluster=cluster: _workloads(cluster), [])
            cluster.delete(LOCAL_QUEUE, NAME, OTHER, namespace=JOBS)
            cluster.delete(CLUSTER_QUEUE, NAME)
            self.until(lambda cluster=cluster: cluster.get(CLUSTER_QUEUE, NAME), {})
            cluster.delete(RESOURCE_FLAVOR, NAME)
            self.until(lambda cluster=cluster: cluster.get(RESOURCE_FLAVOR, NAME), {})
        self.hub.delete(ADMISSION_CHECK, NAME)
        self.hub.delete(MULTIKUEUE_CONFIG, NAME, OTHER)
        self.hub.delete(MULTIKUEUE_CLUSTER, NAME)
        self.hub.delete(SECRET, NAME, namespace=QUEUES)
        self.until(lambda: self.hub.get(ADMISSION_CHECK, NAME), {})

    def stop(self, cluster: Cluster, policy: str, kind: Any = CLUSTER_QUEUE) -> None:
        """Set `stopPolicy` of the ClusterQueue or the LocalQueue."""
        cluster.patch(kind, NAME, {"spec": {"stopPolicy": policy}}, JOBS if kind == LOCAL_QUEUE else None)

    def hold(self, *but: str) -> None:
        """Let only these workers give quota."""
        for name, worker in self.workers.items():
            self.stop(worker, "None" if name in but else "Hold")

    def submit(
        self, name: str, *, queue: str = NAME, labels: Mapping[str, str] | None = None, **spec: Any
    ) -> None:
        container = {"name": "waits", "image": "registry.k8s.io/pause:3.10", "resources": _ONE_CPU}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        self.hub.apply(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": name,
                    "namespace": JOBS,
                    "labels": ({_QUEUE: queue} if queue else {}) | dict(labels or {}),
                },
                "spec": {"suspend": True, "backoffLimit": 0, "template": template, **spec},
            }
        )

    def change(self, name: str, **labels: str | None) -> str:
        """Change labels of a Job on the hub (`queue`, `priority`); return the refusal, "" if none."""
        keys = {"queue": _QUEUE, "priority": _PRIORITY}
        changed = {keys[label]: value for label, value in labels.items()}
        return refusal(lambda: self.hub.patch(JOB, name, {"metadata": {"labels": changed}}, JOBS))

    def end(self, name: str) -> None:
        """Let a Job succeed where it runs, as a Job controller does."""
        [where] = self.runs(name)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [
            {"type": kind, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": at}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        ended = {"completionTime": at, "succeeded": 1, "active": 0, "ready": 0, "conditions": conditions}
        self.workers[where].patch(JOB, name, {"status": ended}, JOBS)

    # -- what is there

    def job(self, name: str) -> Obj:
        return self.hub.get(JOB, name, JOBS)

    def workload(self, name: str, on: str = "") -> Obj:
        """Return the Workload of a Job on the hub, or its copy on a worker; {} if there is none."""
        items = _workloads(self.workers[on] if on else self.hub)
        return next((item for item in items if item["metadata"]["name"].startswith(f"job-{name}-")), {})

    def says(self, name: str, kind: str, on: str = "") -> str:
        """Return a condition of a Workload as `T:Reason "message"`, "" if it has none."""
        return says(self.workload(name, on), kind)

    def check(self, name: str) -> str:
        """Return the state of the check of a Workload, with its message."""
        entries = self.workload(name).get("status", {}).get("admissionChecks") or ()
        return next((f'{entry["state"]} "{entry.get("message", "")}"' for entry in entries), "")

    def active(self, kind: Any, name: str = NAME, namespace: str | None = None) -> str:
        return active(self.hub.get(kind, name, namespace))

    def copies(self, name: str) -> list[str]:
        return [worker for worker in self.workers if self.workload(name, worker)]

    def runs(self, name: str) -> dict[str, str]:
        """Return worker → uid of the Jobs that are neither suspended nor finished there."""
        found = ((worker, cluster.get(JOB, name, JOBS)) for worker, cluster in self.workers.items())
        return {
            worker: job["metadata"]["uid"]
            for worker, job in found
            if job and not job["spec"].get("suspend") and not says(job, "Complete").startswith("T")
        }

    # -- waiting

    def until(self, read: Callable[[], Any], wanted: Any = None, within: float = SECONDS) -> Any:
        """Wait until `read` gives `wanted` (by default: anything true), and return it."""
        end = time.monotonic() + within
        while not ((found := read()) if wanted is None else (found := read()) == wanted):
            assert time.monotonic() < end, f"{found!r} is not {wanted!r}: {self.state()}"
            time.sleep(0.05)
        return found

    def state(self) -> str:
        """Return what a failed step shows."""
        items = {"hub": _workloads(self.hub)} | {w: _workloads(c) for w, c in self.workers.items()}
        return json.dumps({on: [it.get("status") for it in found] for on, found in items.items()}, indent=1)

    def evicted(self, name: str, why: str) -> None:
        """Wait until a Job was evicted for this reason; it may have quota again by then."""
        self.until(lambda: why in self.says(name, "Evicted"))

    def placed(self, name: str) -> str:
        """Wait until a Job runs on one worker and the hub has recorded it; return the worker."""
        where = str(self.until(lambda: self.workload(name).get("status", {}).get("clusterName")))
        self.until(lambda: self.says(name, "Admitted"), ADMITTED)
        self.until(lambda: list(self.runs(name)), [where])
        self.until(lambda: self.copies(name), [where])
        self.until(lambda: not self.job(name)["spec"]["suspend"])
        return where

    def waits(self, name: str, why: str) -> None:
        """Wait until a Job has no quota on the hub for this reason, and no copy."""
        self.until(lambda: self.says(name, "QuotaReserved"), f"F:{why}")
        self.until(lambda: self.copies(name), [])

    @contextmanager
    def after_batch(self) -> Iterator[None]:
        """Check that the steps take as long as Kueue gathers events, at least (a time of whole seconds)."""
        begun = time.monotonic()
        yield
        assert (time.monotonic() - begun) * self.speed > BATCH * 0.9

    def stays(self, read: Callable[[], Any], wanted: Any) -> None:
        """Check that nothing changes in three batches of events."""
        end = time.monotonic() + 3 * BATCH / self.speed
        while time.monotonic() < end:
            assert read() == wanted
            time.sleep(0.1)


def says(item: Obj, kind: str) -> str:
    conditions = item.get("status", {}).get("conditions") or ()
    found = (
        f'{it["status"][0]}:{it.get("reason", "")} "{it.get("message", "")}"'
        for it in conditions
        if it["type"] == kind
    )
    return next(found, "")


def active(item: Obj) -> str:
    conditions = item.get("status", {}).get("conditions") or ()
    found = (
        f"{it['status']} {it['reason']} | {it['message']}" for it in conditions if it["type"] == "Active"
    )
    return next(found, "")


def refusal(write: Callable[[], object]) -> str:
    """Return the HTTP status and the message of a refused write, "" if it is accepted."""
    try:
        write()
    except DynamicApiError as error:
        return f"{error.status} {json.loads(error.body)['message']}"
    return ""


def _workloads(cluster: Cluster) -> list[Obj]:
    items = cluster.list(WORKLOAD, JOBS)
    return [item for item in items if item["spec"].get("queueName") in (NAME, OTHER)]


def _configs(clusters: Mapping[str, Cluster]) -> list[Obj]:
    """The config of the check with all clusters, and another one with all but the first."""
    kind = {"apiVersion": _VERSION, "kind": "MultiKueueConfig"}
    lists = {NAME: [*clusters], OTHER: [*clusters][1:]}
    return [{**kind, "metadata": {"name": name}, "spec": {"clusters": it}} for name, it in lists.items()]


def _check(config: str) -> Obj:
    parameters = {"apiGroup": KUEUE, "kind": "MultiKueueConfig", "name": config}
    return {
        "apiVersion": _VERSION,
        "kind": "AdmissionCheck",
        "metadata": {"name": NAME},
        "spec": {"controllerName": MULTIKUEUE_CONTROLLER, "parameters": parameters},
    }


def _queues(cpus: str, *, with_check: bool = False) -> list[Obj]:
    flavor = {"name": NAME, "resources": [{"name": "cpu", "nominalQuota": cpus}]}
    spec: Obj = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
    }
    if with_check:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": NAME}]}
    queue = {"apiVersion": _VERSION, "kind": "ClusterQueue", "metadata": {"name": NAME}, "spec": spec}
    flavors = {"apiVersion": _VERSION, "kind": "ResourceFlavor", "metadata": {"name": NAME}, "spec": {}}
    return [flavors, queue, local_queue(NAME)]


def local_queue(name: str) -> Obj:
    return {
        "apiVersion": _VERSION,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": JOBS},
        "spec": {"clusterQueue": NAME},
    }


# -- the table

ADMITTED: Final = 'T:Admitted "The workload is admitted"'
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
        queue = _queues("2")[1]
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
    queue = _queues("30", with_check=True)[1]
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
        at.hub.apply(_check(OTHER))
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
    assert {"team", _QUEUE, LABEL_ORIGIN} <= metadata["labels"].keys()
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
    immutable = f'[{_QUEUE}]: Invalid value: "{OTHER}": field is immutable'
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
    assert at.change("real-runs", priority="high") == f'{DENIED}[{_PRIORITY}]: Invalid value: "high": {added}'
    at.stop(at.hub, "Hold")
    at.until(lambda: at.active(CLUSTER_QUEUE).startswith("False"))
    at.submit("real-waits")
    assert at.change("real-waits", priority="high") == ""
    removed = "WorkloadPriorityClass cannot be removed from a workload"
    assert at.change("real-waits", priority=None) == f'{DENIED}[{_PRIORITY}]: Invalid value: "": {removed}'


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
        at.until(lambda: _workloads(at.hub), [])
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
    kind = {"apiVersion": _VERSION, "kind": "MultiKueueCluster", "metadata": {"name": NAME}}
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
