"""A hub with the stand-in for Kueue, its workers and two queues, for tests of Workloads."""

from collections.abc import Callable
from typing import Any, Self

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    JOB,
    MULTIKUEUE_CLUSTER,
    OUR_CONTROLLER,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.errors import Conflict
from placement_ac.core.api.managed_fields import nomination_body
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.multikueue import hub_job
from placement_lab.standins.multikueue.objects import (
    condition,
)
from tests.support.admin import Admin
from tests.support.kueue_objects import admission_check, multikueue_config, namespace, queues

V = "v1beta2"
WORKLOADS, JOBS = WORKLOAD.at(V), JOB.at("v1")
TRAINJOB = Kind("trainer.kubeflow.org", "TrainJob", "trainjobs", True, ("v1alpha1",))
SPEED = 20.0
EXTERNAL = "open-cluster-management.io/placement"
KUEUE_ADMISSION = "kueue-admission"


def config(*clusters: str) -> Object:
    return multikueue_config("mkconfig", *clusters)


def our_check(status: str = "True") -> Object:
    active = {"type": "Active", "status": status, "reason": "Active", "message": "ok"}
    conditions = [active | {"lastTransitionTime": "2026-11-21T10:30:55Z"}]
    return admission_check("placement", "mkconfig", OUR_CONTROLLER, status={"conditions": conditions})


class WorkloadEnvironment(Admin):
    """A hub with Kueue, its workers, two queues ("cluster-queue" and, with our check, "cq-two")."""

    def __init__(self, login: Login, fleet: WorkerFleet, kueue: Callable[[], Kueue]) -> None:
        super().__init__(login)
        self.fleet = fleet
        self.kueue = kueue
        self._workers = {name: Admin(fleet.login(name)) for name in fleet.names}

    def __enter__(self) -> Self:
        for worker in self._workers.values():
            worker.__enter__()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for worker in self._workers.values():
            worker.__exit__()

    def on(self, worker: str) -> Admin:
        return self._workers[worker]

    def set_up(self, *, ready: bool = True) -> None:
        self.apply(namespace("kueue-system"))
        self.apply(*self.fleet.secrets(), *self.fleet.multikueue_clusters(), config(*self.fleet.names))
        self.apply(admission_check("multikueue", "mkconfig"), our_check())
        queue, gated = queues("cluster-queue", "multikueue"), queues("cq-two", "multikueue", "placement")
        self.apply(*queue, *gated)
        if ready:
            self.until(lambda: self.says("multikueue"), "True Active | The admission check is active")

    # -- writing

    def submit(self, name: str, queue: str = "cluster-queue") -> None:
        self.apply(hub_job(name, "default", queue))

    def answer(self, name: str, state: str, message: str = "", **more: Any) -> None:
        """Give our check's entry a state, as placement-ac does."""
        entry = {"name": "placement", "state": state, "message": message}
        entry |= {"lastTransitionTime": "2026-11-21T10:31:00Z"} | more
        body = {"metadata": self.identity(name), "status": {"admissionChecks": [entry]}}
        self.apply_status(WORKLOADS, body, manager="placement-ac", force=True)

    def identity(self, name: str) -> Object:
        metadata = self.workload(name)["metadata"]
        return {"name": metadata["name"], "namespace": metadata["namespace"]}

    def nominate(self, name: str, *clusters: str) -> None:
        """Nominate as a dispatcher should: with the version that was read, and again after a conflict."""
        for last in (False,) * 9 + (True,):
            body = nomination_body(self.workload(name), clusters)
            try:
                self.apply_status(WORKLOADS, body, manager=KUEUE_ADMISSION, force=True)
            except Conflict:
                if last:
                    raise
            else:
                return

    # -- reading

    def workload(self, name: str) -> Object:
        """The Workload of a Job; {} when there is none."""
        found = (w for w in self.list(WORKLOADS) if w["metadata"]["name"].startswith(f"job-{name}-"))
        return next(found, {})

    def job(self, name: str) -> Object | None:
        return self.get(JOBS, name, "default")

    def condition_line(self, name: str, kind: str) -> str | None:
        """A condition of the Workload, in the recordings' form."""
        found = condition(self.workload(name), kind)
        return f'{found["status"][0]}:{found["reason"]} "{found["message"]}"' if found else None

    def checks(self, name: str) -> dict[str, str]:
        entries = (self.workload(name).get("status") or {}).get("admissionChecks") or ()
        return {entry["name"]: f'{entry["state"]} "{entry["message"]}"' for entry in entries}

    def placed(self, name: str) -> tuple[str | None, list[str]]:
        """clusterName and nominatedClusterNames."""
        status = self.workload(name).get("status") or {}
        return status.get("clusterName"), status.get("nominatedClusterNames") or []

    def copies(self, name: str) -> list[str]:
        """The workers that hold a copy of the Job's Workload."""
        return [worker for worker in self.fleet.names if self.copy(name, worker)]

    def copy(self, name: str, worker: str) -> Object | None:
        found = self._workers[worker].list(WORKLOADS)
        return next((w for w in found if w["metadata"]["name"].startswith(f"job-{name}-")), None)

    def says(self, name: str) -> str | None:
        """Condition Active of a MultiKueueCluster or AdmissionCheck."""
        item = self.get(MULTIKUEUE_CLUSTER.at(V), name) or self.get(ADMISSION_CHECK.at(V), name)
        found = condition(item or {}, "Active")
        return f"{found['status']} {found['reason']} | {found['message']}" if found else None

    # -- waiting

    def wait(self, holds: Callable[[], object]) -> None:
        self.until(lambda: bool(holds()), True)

    def until_waiting(self, name: str, *workers: str) -> None:
        """Wait until each of these workers has a copy without quota."""
        for worker in workers:
            self.wait(lambda worker=worker: condition(self.copy(name, worker) or {}, "QuotaReserved"))

    def until_runs(self, name: str, *workers: str) -> None:
        self.until(lambda: self.fleet.counter.running(name), list(workers))

    def until_placed(self, name: str, worker: str) -> None:
        self.until(lambda: self.placed(name), (worker, []))
        self.until_runs(name, worker)

    def until_another_is_placed(self) -> None:
        """Wait until a later Job is placed: by then Kueue has finished its work on the others."""
        self.submit("another")
        self.wait(lambda: self.placed("another")[0])


Staged = Callable[..., WorkloadEnvironment]
