"""A stage for jobs: a hub with Kueue's stand-in, workers with a ledger, and methods that play OCM.

The Placement is called p, our check too, Kueue's own check mk; the queue `gated` lists both checks,
`open` only Kueue's. A worker has the name of its managed cluster. Kueue's times pass 10 times as fast.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from placement_ac.core.api.constants import (
    ANNOTATION_MAINTENANCE,
    FIELD_MANAGER,
    KUEUE_ADMISSION,
    LABEL_MAX_SECONDS,
    MULTIKUEUE_CONFIG,
    NOMINATED_TO,
    OUR_CONTROLLER,
)
from placement_ac.core.api.managed_fields import owned_by
from placement_ac.kube.login import Login
from placement_lab.hub import Hub, RecordedRequest
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.multikueue import KueueSettings, hub_job
from placement_lab.standins.runner import StandIns
from placement_lab.standins.worker_quota import Quota
from tests.support.driver import CORE, KUEUE, OCM, Controllers, Driver, Object, eventually
from tests.support.envtest import write_plain_kubeconfig

SPEED = 10.0
LIMIT = 20.0
"""The deadline in seconds, long enough for a busy machine."""
JOBS = "/apis/batch/v1/namespaces/default/jobs"
MANAGED = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
WORKLOADS = f"{KUEUE}/v1beta2/namespaces/default/workloads"
UNREACHABLE = {"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect"}
GENERATED = "MultiKueueConfig and MultiKueueCluster generated"


def workloads_in(namespace: str) -> str:
    return WORKLOADS.replace("/default/", f"/{namespace}/")


def soon(ask: Callable[[], Any], wanted: Any = True) -> Any:
    return eventually(ask, wanted, seconds=LIMIT)


class Stage:
    """Reads and changes the hub and its workers."""

    def __init__(self, admin: Driver, controllers: Controllers, fleet: WorkerFleet) -> None:
        self.admin = admin
        self.controllers = controllers
        self.fleet = fleet
        self.kueue: Kueue
        self.kueue_kubeconfig = controllers.kubeconfig.with_name("kueue.kubeconfig")
        self.jobs: list[str] = []
        self._workers = {name: _Worker(hub) for name, hub in fleet.hubs.items()}

    # -- OCM

    def taint(self, name: str, *taints: Object) -> None:
        stamped = [taint | {"timeAdded": "2026-01-01T00:00:00Z"} for taint in taints]
        self.admin.ask("PATCH", f"{MANAGED}/{name}", {"spec": {"taints": stamped}}, "merge")

    def delete_managed(self, name: str) -> None:
        self.admin.ask("DELETE", f"{MANAGED}/{name}")

    def select(self, *clusters: Any, placement: str = "p") -> None:
        """Write a decision and the Placement's status, so that OCM counts as settled."""
        if self.admin.get(f"{OCM}/placements/{placement}") is None:
            self.admin.placement(placement)
        self.admin.decide(placement, *clusters)
        self.admin.placement_says(placement, len(clusters))

    def add_placement(self, name: str) -> None:
        """Create another check with its Placement, Kueue's check mk-<name> and a queue gated-<name>."""
        self.admin.check(name)
        self.admin.multikueue_check(f"mk-{name}", name)
        self.queue(f"gated-{name}", f"mk-{name}", name)

    # -- admins

    def announce(self, cluster: str, value: str | None) -> None:
        """Set the annotation that announces maintenance, or remove it."""
        annotations = {"annotations": {ANNOTATION_MAINTENANCE: value}}
        self.admin.ask("PATCH", f"{MANAGED}/{cluster}", {"metadata": annotations}, "merge")

    # -- users

    def queue(self, name: str, *checks: str) -> None:
        """Create a ClusterQueue and its LocalQueue with the same name."""
        strategy = {"admissionChecks": [{"name": check} for check in checks]}
        spec = {"namespaceSelector": {}, "admissionChecksStrategy": strategy}
        version = {"apiVersion": f"kueue.x-k8s.io/{self.admin.v}", "metadata": {"name": name}}
        self.admin.ask(
            "POST", self.admin.kueue("clusterqueues"), version | {"kind": "ClusterQueue", "spec": spec}
        )
        local = version | {"kind": "LocalQueue", "spec": {"clusterQueue": name}}
        self.admin.ask("POST", f"{KUEUE}/{self.admin.v}/namespaces/default/localqueues", local)

    def submit(
        self,
        name: str,
        queue: str = "gated",
        requests: dict[str, str] | None = None,
        max_seconds: int | None = None,
        **template: Any,
    ) -> None:
        """Create a Job; `requests`: what its Pod asks for; `max_seconds`: how long it says that it may run;
        `template`: the metadata of its Pod template.
        """
        self.jobs.append(name)
        job = hub_job(name, "default", queue, requests)
        if max_seconds:
            job["metadata"]["labels"][LABEL_MAX_SECONDS] = str(max_seconds)
        job["spec"]["template"] |= {"metadata": template} if template else {}
        self.admin.ask("POST", JOBS, job)

    def another_check(self, name: str) -> None:
        """Create a check of another controller, and a queue of that name with it, our check and Kueue's."""
        admin = self.admin
        version = {"apiVersion": f"kueue.x-k8s.io/{admin.v}", "kind": "AdmissionCheck"}
        spec = {"controllerName": "example.com/another"}
        admin.ask(
            "POST", admin.kueue("admissionchecks"), version | {"metadata": {"name": name}, "spec": spec}
        )
        status = {"status": {"conditions": [_true("Active")]}}
        admin.ask("PATCH", admin.kueue("admissionchecks", name, "status"), status, "merge")
        self.queue(name, "mk", "p", name)

    def another_says(self, check: str, job: str, state: str) -> None:
        """Answer the Workload for that check."""
        entry = {"name": check, "state": state, "message": "", **_since()}
        name = self.workload(job)["metadata"]["name"]
        write_status(self.admin, name, "another", {"admissionChecks": [entry]})

    def finish(self, name: str) -> None:
        """Complete a job that runs; its worker may learn later than the counter that it does."""
        soon(lambda: self.fleet.finish(name))

    def kueue_looks_late(self, seconds: float) -> None:
        """Delay Kueue's reaction to changes on workers; changes on the hub are handled as usual."""
        self.kueue.settings = replace(self.kueue.settings, events_batch_seconds=seconds)

    def delay_next_write(self, job: str, seconds: float) -> None:
        """Delay the next write of the Workload's status by any client."""
        name = self.workload(job)["metadata"]["name"]
        self.admin.hub.faults.add("PATCH", f"/{name}/status$", delay=seconds)

    def answers_late(self, worker: str, seconds: float) -> None:
        """Delay the worker's next list of its copies."""
        self.fleet.hubs[worker].faults.add("GET", "/workloads$", delay=seconds)

    def write_is_delayed(self) -> bool:
        return self.admin.hub.faults.all_met

    # -- reading

    def workload(self, job: str) -> Object:
        """The Workload of a job; {} when there is none (yet)."""
        items = self.admin.ask("GET", WORKLOADS)["items"]
        return next((item for item in items if _is_of(item, job)), {})

    def status(self, job: str) -> Object:
        return self.workload(job).get("status") or {}

    def check_state(self, job: str, check: str = "p") -> tuple[str, str]:
        """State and message of a check's entry."""
        entries = self.status(job).get("admissionChecks") or ()
        return next(((e["state"], e["message"]) for e in entries if e["name"] == check), ("", ""))

    def placed(self, job: str) -> str:
        return str(self.status(job).get("clusterName", ""))

    def nominated(self, job: str) -> list[str]:
        return list(self.status(job).get("nominatedClusterNames") or ())

    def copies(self, job: str) -> list[str]:
        """The workers that hold a copy of the job's Workload."""
        return [name for name, worker in self._workers.items() if worker.copy_of(job)]

    def has_quota_on(self, job: str, worker: str) -> bool:
        conditions = (self._workers[worker].copy_of(job).get("status") or {}).get("conditions") or ()
        return any((c["type"], c["status"]) == ("QuotaReserved", "True") for c in conditions)

    def account(self, job: str) -> tuple[int, int, bool]:
        """Copies at once (maximum), starts, finished: from the ledger of the workers."""
        counts = self.fleet.counter.counts_of(job)
        return counts["maxCopies"], counts["starts"], counts["finished"]

    def listed(self, config: str = "p") -> list[str]:
        """The clusters in a config, without the prefix of the Placement's name."""
        return [name.removeprefix(f"{config}-") for name in self.admin.listed(config) or ()]

    def remark(self, check: str = "p") -> str:
        """The part of the condition's message beyond the usual one."""
        return str(self.admin.active(check).get("message", "")).removeprefix(GENERATED).removeprefix("; ")

    def is_out_of_reach(self, cluster: str) -> bool:
        """Whether the condition says that the cluster stays because it does not answer, or Kueue lacks it."""
        reasons = ("it cannot be asked for copies: ", "Kueue is not connected to it)")
        return any(f"draining: {cluster} ({reason}" in self.remark() for reason in reasons)

    def warnings(self, kind: str = "AdmissionCheck") -> list[tuple[str, str]]:
        """Reason and message of each warning on checks, or on Workloads."""
        found = [event for event in self.admin.events(kind) if event["type"] == "Warning"]
        return [(event["reason"], event["message"]) for event in found]

    def connected(self) -> int:
        """The number of MultiKueueClusters that Kueue reports as connected."""
        items = self.admin.ask("GET", self.admin.kueue("multikueueclusters"))["items"]
        reported = [
            condition for item in items for condition in (item.get("status") or {}).get("conditions") or ()
        ]
        return sum((one["type"], one["status"]) == ("Active", "True") for one in reported)

    def owned(self, job: str, manager: str) -> set[str]:
        """The fields of a Workload's status that a manager has applied."""
        entries = self.workload(job)["metadata"]["managedFields"]
        found = [e for e in entries if (e["manager"], e["operation"]) == (manager, "Apply")]
        return {field for entry in found for field in entry["fieldsV1"].get("f:status", {})}

    # -- reading the journal

    def writes(self, path: str, user_agent: str = FIELD_MANAGER) -> list[RecordedRequest]:
        """The accepted writes to paths with this end."""
        return [
            request
            for request in list(self.admin.hub.journal)
            if request.path.endswith(path)
            and request.method in ("POST", "PUT", "PATCH", "DELETE")
            and request.user_agent == user_agent
            and 200 <= request.status < 300
        ]

    def refused(self, path: str) -> bool:
        """Whether a request to a path with this end was answered with 503."""
        journal = list(self.admin.hub.journal)
        return any(request.path.endswith(path) and request.status == 503 for request in journal)

    def conflicts(self, job: str) -> int:
        """The number of our writes to the Workload that failed with a conflict."""
        end = f"/{self.workload(job)['metadata']['name']}/status"
        asked = [r for r in list(self.admin.hub.journal) if r.path.endswith(end)]
        return sum((request.user_agent, request.status) == (FIELD_MANAGER, 409) for request in asked)

    def answers(self, job: str) -> list[tuple[str, str]]:
        """State and message of each of our writes to a job's Workload, but for those that say where it was
        nominated: whether there is time for one depends on how fast Kueue is."""
        entries = [entry for body in self._bodies(job) for entry in body.get("admissionChecks", ())]
        answers = [(entry["state"], entry["message"]) for entry in entries]
        return [answer for answer in answers if NOMINATED_TO not in answer[1]]

    def nominations(self, job: str) -> list[list[str]]:
        """The nominations that the controller wrote."""
        asked = [request for request in self._on(job) if request.query["fieldManager"] == KUEUE_ADMISSION]
        return [request.body["status"].get("nominatedClusterNames") or [] for request in asked]

    def nominated_with(self, job: str) -> list[set[str]]:
        """The status fields that the controller wrote with each nomination."""
        asked = [request for request in self._on(job) if request.query["fieldManager"] == KUEUE_ADMISSION]
        return [set(request.body["status"]) for request in asked]

    def _on(self, job: str) -> list[RecordedRequest]:
        name = self.workload(job)["metadata"]["name"]
        return self.writes(f"/workloads/{name}/status")

    def _bodies(self, job: str) -> list[Object]:
        return [r.body["status"] for r in self._on(job) if r.query["fieldManager"] == FIELD_MANAGER]

    def config_writes(self, config: str = "p") -> list[RecordedRequest]:
        return self.writes(f"/{MULTIKUEUE_CONFIG.plural}/{config}")

    # -- waiting

    def until_listed(self, *clusters: str, config: str = "p") -> None:
        soon(lambda: self.listed(config), list(clusters))

    def until_runs(self, job: str, *workers: str) -> None:
        """Wait until the job runs there and Kueue has recorded it."""
        soon(lambda: self.fleet.counter.running(job), list(workers))
        for worker in workers:
            soon(lambda worker=worker: self.placed(job).endswith(worker))

    def until_waits(self, job: str, *workers: str) -> None:
        """Wait until the job has a copy without quota on each of these workers."""
        soon(lambda: self.copies(job), list(workers))
        assert not any(self.has_quota_on(job, worker) for worker in workers)

    def until_finished(self, job: str) -> None:
        soon(lambda: self.account(job)[2])
        soon(lambda: [c["type"] for c in self.status(job)["conditions"] if c["type"] == "Finished"])
        soon(lambda: self.copies(job), [])


class _Worker:
    """Requests to a worker as its admin."""

    def __init__(self, hub: Hub) -> None:
        self._driver = Driver(hub)

    def copy_of(self, job: str) -> Object:
        items = self._driver.ask("GET", WORKLOADS)["items"]
        return next((item for item in items if _is_of(item, job)), {})


def _is_of(workload: Object, job: str) -> bool:
    return str(workload["metadata"]["name"]).rpartition("-")[0] == f"job-{job}"


Play = Callable[..., Stage]


@contextmanager
def open_stage(
    admin: Driver,
    controllers: Controllers,
    workers: Sequence[str],
    *,
    held: Sequence[str] = (),
    quotas: Mapping[str, Quota] | None = None,
    bare: bool = False,
    **kueue: Any,
) -> Iterator[Stage]:
    """Set up the stage without Placement and controller; fail at the end if a job ran twice at once.

    `quotas`: worker → quota by flavor, of workers with a ClusterQueue. `bare`: the others have none.
    `kueue`: options of the stand-in for Kueue.
    """
    with ExitStack() as opened:
        fleet = opened.enter_context(
            WorkerFleet(workers, held=held, quotas=quotas or {}, queues=("gated", "open"), bare=bare)
        )
        stage = Stage(admin, controllers, fleet)

        def make(login: Login) -> Kueue:
            stage.kueue = Kueue(login, speed=SPEED, **kueue)
            return stage.kueue

        write_plain_kubeconfig(admin.hub, stage.kueue_kubeconfig)
        opened.enter_context(StandIns(lambda: Login(stage.kueue_kubeconfig), [make]))
        for name in workers:
            admin.secret(f"multikueue-{name}", value=base64.b64encode(fleet.kubeconfig(name)).decode())
        managed(admin, *workers)
        admin.check("p")
        admin.multikueue_check("mk", "p")
        stage.queue("gated", "mk", "p")
        stage.queue("open", "mk")
        yield stage
        assert {job: stage.account(job)[0] for job in stage.jobs if stage.account(job)[0] > 1} == {}


def secrets_of(stage: Stage) -> list[str]:
    """All texts that must never be printed: tokens, and the other long values of kubeconfigs."""
    found = [stage.admin.hub.token]
    for name in stage.fleet.names:
        text = stage.fleet.kubeconfig(name).decode()
        found += [text, base64.b64encode(text.encode()).decode(), *_long_ones(json.loads(text))]
    return found


def _long_ones(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [found for one in value.values() for found in _long_ones(one)]
    if isinstance(value, list):
        return [found for one in value for found in _long_ones(one)]
    is_secret = isinstance(value, str) and len(value) >= 20 and not value.startswith("https://")
    return [value] if is_secret else []


def said_in_public(admin: Driver) -> str:
    """All objects that the controller writes for others to read, as JSON."""
    paths = [f"{CORE}/namespaces/default/events", WORKLOADS]
    kinds = ("admissionchecks", "multikueueconfigs", "multikueueclusters")
    return "\n".join(
        json.dumps(admin.ask("GET", path)) for path in (*paths, *(admin.kueue(kind) for kind in kinds))
    )


def managed(admin: Driver, *names: str) -> None:
    """Create ManagedClusters."""
    for name in names:
        kind = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
        admin.ask("POST", MANAGED, kind | {"metadata": {"name": name}, "spec": {"hubAcceptsClient": True}})


def has_quota(
    admin: Driver,
    name: str,
    *checks: str,
    namespace: str = "default",
    requests: Mapping[str, str] = MappingProxyType({}),
) -> Object:
    """Create a Workload with quota, written as Kueue does: by apply, as two field managers.

    `requests`: what its Pod asks for.
    """
    admin.ask("POST", workloads_in(namespace), _bare(name, requests))
    pending = [{"name": check, "state": "Pending", "message": "", **_since()} for check in checks]
    flavors = [{"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}]
    admission = {"clusterQueue": "gated", "podSetAssignments": flavors}
    by_admission = {
        "admission": admission,
        "conditions": [_true("QuotaReserved")],
        "admissionChecks": pending,
    }
    write_status(admin, name, KUEUE_ADMISSION, by_admission, namespace)
    by_kueue = {"conditions": [_true("PodsReady")], "admissionChecks": pending}
    return write_status(admin, name, "kueue", by_kueue, namespace)


def is_admitted_on(admin: Driver, name: str, cluster: str) -> Object:
    """Record the admission by a worker as Kueue does, with all fields that Kueue owns."""
    stage = admin.ask("GET", f"{WORKLOADS}/{name}")
    status = owned_by(stage, KUEUE_ADMISSION)["status"]
    status["conditions"] = [*status["conditions"], _true("Admitted")]
    ready = {
        "name": "mk",
        "state": "Ready",
        "message": f'The workload was admitted on "{cluster}"',
        **_since(),
    }
    others = [check for check in status["admissionChecks"] if check["name"] != "mk"]
    checks = {"admissionChecks": [*others, ready], "clusterName": cluster}
    return write_status(admin, name, KUEUE_ADMISSION, status | checks)


def write_status(
    admin: Driver, name: str, manager: str, status: Object, namespace: str = "default"
) -> Object:
    identity = {"apiVersion": f"kueue.x-k8s.io/{admin.v}", "kind": "Workload"}
    body = identity | {"metadata": {"name": name}, "status": status}
    path = f"{workloads_in(namespace)}/{name}/status"
    return admin.ask("PATCH", path, body, "apply", fieldManager=manager, force="true")


def _bare(name: str, requests: Mapping[str, str]) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": dict(requests)}}
    pods = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name},
        "spec": {"queueName": "gated", "podSets": [{"name": "main", "count": 1, "template": pods}]},
    }


def _true(kind: str) -> Object:
    return {"type": kind, "status": "True", "reason": "Reported", "message": "", **_since()}


def _since() -> Object:
    return {"lastTransitionTime": "2026-01-01T00:00:00Z"}


@contextmanager
def dispatched(
    admin: Driver,
    controllers: Controllers,
    clusters: Sequence[str],
    *,
    labels: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    controller: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> Iterator[Stage]:
    """Open a stage on which OCM selects all clusters, and our dispatcher nominates the best one alone.

    `labels`: cluster → labels of its ManagedCluster; `controller`: more settings; `options`: of `open_stage`.
    """
    settings = KueueSettings(dispatcher=OUR_CONTROLLER)
    with open_stage(admin, controllers, clusters, settings=settings, **options) as opened:
        for name, added in labels.items():
            label(admin, name, **added)
        opened.select(*clusters)
        controllers.start(dispatcher=True, step_size=1, **controller)
        soon(opened.connected, len(clusters))
        soon(lambda: admin.reason("p"), "Active")
        yield opened


def label(admin: Driver, cluster: str, **labels: str) -> None:
    """Set labels of a ManagedCluster."""
    admin.ask("PATCH", f"{MANAGED}/{cluster}", {"metadata": {"labels": labels}}, "merge")
