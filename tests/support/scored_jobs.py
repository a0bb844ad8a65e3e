"""
Jobs on a hub with the stand-ins for OCM and Kueue and with workers; a ledger follows them.

One Placement takes the best clusters by an AddOn score; `Scene.prefer` makes another cluster the best. The
ledger reads the workers' own Jobs: a start is a Job that a worker unsuspends.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, Final

import yaml

from placement_ac.core.api import constants as api
from placement_ac.core.api.constants import JOB
from placement_ac.kube.login import Login
from placement_lab.hub import Hub, RecordedRequest
from placement_lab.standins.fleet import JobCounter, WorkerFleet
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.multikueue import KueueSettings, hub_job
from placement_lab.standins.runner import StandIns
from placement_lab.standins.worker_quota import Quota
from tests.support.admin import Admin, login_to
from tests.support.kueue_objects import admission_check, namespace, queues

Object = dict[str, Any]

Quotas = Mapping[str, Quota]
"""Worker → the quota of its ClusterQueue; otherwise a worker has slots."""

NS: Final = "kueue-system"
WORKERS: Final = ("worker1", "worker2", "worker3")
PLACEMENT: Final = "flips"
QUEUE: Final = "flips"
LOWEST_SCORE: Final = -100
MOST_FLIPS: Final = 190
"""Each flip gives the new best cluster one more than the last; OCM's scores end at 100."""
SLOTS: Final = 8
"""Quota on each worker for the jobs that come and go; the hub has twice as much."""
UNLIMITED: Final = 10_000
"""Slots of workers with a quota, and of the hub then: jobs wait on the workers alone."""
LONG_SHARE: Final = 0.1
LONG_FACTOR: Final = 6


class Scene:
    """Changes and reads the hub and its workers; the methods block."""

    def __init__(self, admin: Admin, hub: Hub, fleet: WorkerFleet) -> None:
        self.admin = admin
        self.hub = hub
        self.fleet = fleet
        self.counter: JobCounter = fleet.counter
        self._score = LOWEST_SCORE
        self.kueue: Kueue

    def prefer(self, cluster: str) -> None:
        """Make a cluster the best one."""
        self._score += 1
        self.admin.apply(_score(cluster, self._score))

    def select(self, count: int) -> None:
        """Let the Placement take that many clusters."""
        self.admin.apply(_placement(count))

    def submit(self, name: str, requests: Mapping[str, str] | None = None) -> None:
        """Create a job; `requests`: what its Pod asks for."""
        self.admin.create(JOB.at("v1"), hub_job(name, "default", QUEUE, requests))

    def only(self, *workers: str) -> None:
        """Let only these workers reserve quota."""
        self.fleet.hold(*WORKERS)
        self.fleet.release(*workers)

    def placed(self) -> int:
        """Return how many Workloads of the hub are recorded as placed on a worker."""
        workloads = self.admin.list(api.WORKLOAD.at("v1beta2"))
        return sum(bool((item.get("status") or {}).get("clusterName")) for item in workloads)

    def selected(self) -> list[str]:
        """Return the clusters that OCM has decided for."""
        found = (item.get("status", {}) for item in self.admin.list(api.PLACEMENT_DECISION.at("v1beta1")))
        return [decision["clusterName"] for status in found for decision in status.get("decisions", ())]

    def config(self) -> Object | None:
        return self.admin.get(api.MULTIKUEUE_CONFIG.at("v1beta2"), PLACEMENT)

    def listed(self) -> list[str]:
        """Return the clusters in the MultiKueueConfig, without the prefix of the Placement's name."""
        found = self.config()
        return [name.removeprefix(f"{PLACEMENT}-") for name in found["spec"]["clusters"]] if found else []

    def list_writes(self) -> int:
        """Return how often the MultiKueueConfig was written, also its metadata alone."""
        path = f"/{api.MULTIKUEUE_CONFIG.plural}/{PLACEMENT}"
        wrote = [
            r for r in self.hub.journal[:] if r.method in ("PATCH", "PUT", "POST") and r.path.endswith(path)
        ]
        return sum(200 <= r.status < 300 for r in wrote)

    def requests(self) -> dict[str, int]:
        """Return how often the list changed, the controller wrote, and Kueue read a copy, since the start."""
        ours = [r for r in self.hub.journal[:] if (r.user_agent, r.method) == (api.FIELD_MANAGER, "PATCH")]
        found = self.config()
        return {
            "listChanges": int(found["metadata"]["generation"]) if found else 0,
            "listWrites": self.list_writes(),
            "workloadWrites": sum("/workloads/" in r.path and r.status == 200 for r in ours),
            "copiesRead": sum(r.method == "GET" and "/workloads/" in r.path for r in self.to_workers()),
        }

    def to_workers(self) -> list[RecordedRequest]:
        """Return all requests to workers, from their journals."""
        return [request for hub in self.fleet.hubs.values() for request in hub.journal[:]]


@contextmanager
def stage(kueue: KueueSettings, running: int = 0, quotas: Quotas = MappingProxyType({})) -> Iterator[Scene]:
    """Set up the scene without a controller."""
    each = UNLIMITED if quotas else SLOTS + -(-running // len(WORKERS))
    in_all = UNLIMITED if quotas else 2 * SLOTS + running
    with ExitStack() as opened:
        workers = WorkerFleet(quotas or WORKERS, slots=each, quotas=quotas, queues=[QUEUE])
        fleet = opened.enter_context(workers)
        hub = opened.enter_context(Hub())
        admin = opened.enter_context(Admin(login_to(hub)))
        there = Scene(admin, hub, fleet)

        def make(login: Login) -> Kueue:
            there.kueue = Kueue(login, settings=kueue, slots=in_all)
            return there.kueue

        spaces = [namespace(name) for name in (NS, *fleet.names)]
        scores = [_score(name, LOWEST_SCORE) for name in fleet.names]
        of_ocm = [
            *yaml.safe_load_all(_SETS),
            *fleet.managed_clusters(),
            *scores,
            _placement(len(fleet.names)),
        ]
        checks = [yaml.safe_load(_CHECK), admission_check("multikueue", PLACEMENT)]
        of_kueue = [*fleet.secrets(NS), *checks, *queues(QUEUE, "multikueue", "placement")]
        admin.apply(*spaces, *of_ocm, *of_kueue)
        opened.enter_context(StandIns(lambda: login_to(hub), ("ocm", make)))
        yield there


_CHECK: Final = f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {{name: placement}}
spec:
  controllerName: {api.OUR_CONTROLLER}
  parameters: {{apiGroup: cluster.open-cluster-management.io, kind: Placement, name: {PLACEMENT}}}
"""
_SETS: Final = f"""
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {{name: global}}
spec: {{clusterSelector: {{selectorType: LabelSelector, labelSelector: {{}}}}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {{name: global, namespace: {NS}}}
spec: {{clusterSet: global}}
"""


def _score(cluster: str, value: int) -> Object:
    status = {"scores": [{"name": "free", "value": value}]}
    metadata = {"name": "usage", "namespace": cluster}
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
    return kind | {"metadata": metadata, "status": status}


def _placement(count: int) -> Object:
    found: Object = yaml.safe_load(f"""
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {{name: {PLACEMENT}, namespace: {NS}}}
spec:
  clusterSets: [global]
  numberOfClusters: {count}
  prioritizerPolicy:
    mode: Exact
    configurations:
    - {{scoreCoordinate: {{type: AddOn, addOn: {{resourceName: usage, scoreName: free}}}}, weight: 1}}
""")
    return found


# -- jobs


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job: when it is created (seconds from the start of the clock), how long it runs, and its GPUs."""

    name: str
    at: float
    lasts: float
    gpus: int = 0


def arrivals(seconds: float, rate: float, seed: int) -> list[Arrival]:
    """Return so many seconds of jobs, the same for a seed: 0.5 to 4 s long, one in ten 6 times as long."""
    dice = random.Random(seed)  # no secret depends on it
    found, at = list[Arrival](), dice.expovariate(rate)
    while at < seconds:
        lasts = dice.uniform(0.5, 4.0) * (LONG_FACTOR if dice.random() < LONG_SHARE else 1)
        found.append(Arrival(f"job-{len(found)}", at, lasts))
        at += dice.expovariate(rate)
    return found


@dataclass
class Ledger:
    """The history of the jobs; times are POSIX seconds."""

    counter: JobCounter
    running: Sequence[str] = ()
    """The jobs that run all the time."""
    created: dict[str, float] = field(default_factory=dict)
    lasts: dict[str, float] = field(default_factory=dict)
    with_quota: dict[str, float] = field(default_factory=dict)
    """The seconds that each job waited while the selected cluster had quota."""

    def create(self, job: Arrival) -> None:
        """Record that a job is created now."""
        self.created[job.name], self.lasts[job.name] = time.time(), job.lasts

    def to_start(self) -> list[float]:
        """Return the seconds from the creation on the hub to the start on a worker, sorted."""
        return sorted(self._start(name) - at for name, at in self.created.items() if self._start(name) < inf)

    def waiting(self) -> list[str]:
        return [name for name in self.created if self._start(name) == inf]

    def unfinished(self) -> list[str]:
        return [name for name in self.created if not self.counter.counts_of(name)["finished"]]

    def ran_twice(self) -> list[str]:
        """Return the jobs that ran on two workers at one time."""
        every = (*self.running, *self.created)
        return [one for one in every if self.counter.counts_of(one)["maxCopies"] > 1]

    def started_again(self) -> list[str]:
        every = (*self.running, *self.created)
        return [one for one in every if self.counter.counts_of(one)["starts"] > 1]

    def interrupted(self) -> list[str]:
        """Return the jobs that should run all the time, and do not run now."""
        return [name for name in self.running if not self.counter.running(name)]

    def due(self) -> list[str]:
        """Return the jobs that have run for long enough."""
        now, jobs = time.time(), [name for name in self.unfinished() if self.counter.running(name)]
        return [name for name in jobs if now - self._start(name) > self.lasts[name]]

    def _start(self, name: str) -> float:
        return self.counter.first_start_of(name) or inf

    def last_start(self) -> float | None:
        """Return when the last job started, None if one has not."""
        last = max(map(self._start, self.created), default=inf)
        return None if last == inf else last

    def wait(self, best: str, seconds: float) -> None:
        """Count `seconds` for each waiting job if the best cluster has quota."""
        if sum(best in self.counter.running(name) for name in self.unfinished()) < SLOTS:
            for name in self.waiting():
                self.with_quota[name] = self.with_quota.get(name, 0.0) + seconds

    def figures(self) -> Object:
        """Return the figures that every play has; times are seconds."""
        return {
            "jobs": len(self.created),
            "unfinished": len(self.unfinished()),
            "ranTwice": len(self.ran_twice()),
            "startedAgain": len(self.started_again()),
            "toStart": percentiles(self.to_start()),
        }


def percentiles(seconds: Sequence[float]) -> Object | None:
    """Return p50, p90 and max of sorted seconds."""
    if not seconds:
        return None
    at = {"p50": seconds[len(seconds) // 2], "p90": seconds[int(len(seconds) * 0.9)], "max": seconds[-1]}
    return {name: round(value, 2) for name, value in at.items()}
