"""
The faults of `bench.chaos`, and the scene that they spoil.

A fault begins and ends; which worker or replica it hits is decided by a number between 0 and 1.
"""

import base64
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

import requests

from bench.flips_scene import WORKERS, Scene
from placement_ac.core.api.constants import ADMISSION_CHECK, KUBECONFIG_KEY, MANAGED_CLUSTER, SECRET
from placement_ac.core.api.errors import ApiError, Unavailable
from tests.support.replicas import Replica

Object = dict[str, Any]

OURS: Final = ("placement-ac", "kopf/")
"""How the User-Agents of the controller begin."""
FOR_EVER: Final = 10**9
NS: Final = "kueue-system"
CHECK: Final = "placement"
CHECKS: Final = ADMISSION_CHECK.at("v1beta2")
SECRETS: Final = SECRET.at("v1")
CLUSTERS: Final = MANAGED_CLUSTER.at("v1")
OUT: Final = "chaos.example.com/out"
"""A ManagedCluster with this label is in no set."""
SETS: Final[Object] = {
    "apiVersion": "cluster.open-cluster-management.io/v1beta2",
    "kind": "ManagedClusterSet",
    "metadata": {"name": "global"},
    "spec": {
        "clusterSelector": {
            "selectorType": "LabelSelector",
            "labelSelector": {"matchExpressions": [{"key": OUT, "operator": "DoesNotExist"}]},
        }
    },
}
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCORES_CRD: Final = "addonplacementscores.cluster.open-cluster-management.io"
REMOVED_CRDS: Final = (
    SCORES_CRD,
    "clusterprofiles.multicluster.x-k8s.io",
    "managedserviceaccounts.authentication.open-cluster-management.io",
)
"""Without these the controller goes on; with the others, the objects of the jobs would be deleted."""
CLOCK_SECONDS: Final = (-86400, -3600, -30, 30, 3600, 86400)
"""By how much a clock is set."""
FAKETIME: Final = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
ANSWER_SECONDS: Final = 5.0
RECONNECT_SECONDS: Final = 30.0
"""How long Kueue may take to connect again, at most."""


@dataclass
class Target:
    """The scene with two replicas, by name; `ports`: where each serves its health."""

    scene: Scene
    folder: Path
    settings: dict[str, str]
    ports: dict[str, int]
    replicas: dict[str, Replica] = field(default_factory=dict)
    files: dict[str, IO[bytes]] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    hub_is_up: bool = True
    crds: dict[str, Object] = field(default_factory=dict)
    """The CRDs that are removed."""
    rival: bool = False
    away: set[str] = field(default_factory=set)
    """Workers whose API server is away."""
    workers_lost: list[float | None] = field(default_factory=list)
    """When Kueue had each lost worker again (POSIX seconds); None: not yet."""
    secrets: set[str] = field(default_factory=set)
    """Every token of the play."""
    session: requests.Session = field(default_factory=requests.Session)

    @property
    def can_write_scores(self) -> bool:
        return self.hub_is_up and SCORES_CRD not in self.crds

    @property
    def logs(self) -> list[Path]:
        return [Path(file.name) for file in self.files.values()]

    def start(self) -> None:
        self.scene.admin.apply(SETS)
        for name in self.ports:
            self.files[name] = (self.folder / f"{name}.log").open("ab")
            self.start_replica(name, self.files[name])
        self.secrets |= {token_of(json.loads(self.scene.fleet.kubeconfig(name))) for name in WORKERS}

    def start_replica(self, name: str, log: IO[bytes]) -> None:
        address = f"127.0.0.1:{self.ports[name]}"
        options = self.settings | {"health_probe_bind_address": address}
        environment = faketime(self.clock_file(name))
        self.replicas[name] = Replica(
            self.scene.hub, self.folder, name, log=log, environment=environment, **options
        )
        self.secrets.add(token_of(json.loads((self.folder / name).read_text())))
        self.replicas[name].start()

    def clock_file(self, name: str) -> Path:
        """Return the file that says how far the clock of a replica is off. Unit: seconds."""
        return self.folder / f"{name}.clock"

    def set_clock(self, name: str, seconds: int) -> None:
        self.clock_file(name).write_text(f"{seconds:+d}\n")

    def close(self) -> None:
        for replica in self.replicas.values():
            replica.kill()
        for file in self.files.values():
            file.close()

    def running(self) -> list[Replica]:
        return [one for name, one in self.replicas.items() if name not in self.stopped and one.runs]

    def seconds_to_answer(self, name: str, page: str = "livez") -> float | None:
        """Return how long a replica took to answer; None if it does not serve yet."""
        began = time.monotonic()
        try:
            self.session.get(f"http://127.0.0.1:{self.ports[name]}/{page}", timeout=ANSWER_SECONDS)
        except requests.ConnectionError:
            return None
        except requests.Timeout:
            return ANSWER_SECONDS
        return time.monotonic() - began

    def is_ready(self, name: str) -> bool:
        with contextlib.suppress(requests.RequestException):
            return self.session.get(f"http://127.0.0.1:{self.ports[name]}/readyz", timeout=5).ok
        return False

    def until_ready(self) -> None:
        end = time.monotonic() + 60.0
        while not all(map(self.is_ready, self.ports)) or sorted(self.scene.listed()) != list(WORKERS):
            if time.monotonic() > end:
                raise TimeoutError("the replicas did not become ready")
            time.sleep(0.1)  # other processes start

    def may_restart(self, created: float) -> bool:
        """Whether Kueue itself may have started a job again that was created then (POSIX seconds).

        With Kueue's dispatcher a job waits on several clusters. If Kueue loses one of them it does not see
        that the job gets quota there; when it is back, the cluster that had quota first keeps the job,
        although another one runs it by then (Kueue, multikueue/workload.go: FirstReserving).
        """
        lost = (ended for ended in self.workers_lost if ended is None or ended > created)
        return "dispatcher" not in self.settings and any(True for _ in lost)

    def worker_lost(self) -> None:
        self.workers_lost.append(None)

    def worker_found(self) -> None:
        self.workers_lost[self.workers_lost.index(None)] = time.time() + RECONNECT_SECONDS

    def note(self, what: str) -> None:
        """Write a line with the time into the file `faults`."""
        with (self.folder / "faults").open("a") as file:
            file.write(f"{time.time():.3f} {what}\n")

    def write_requests(self, job: str) -> None:
        """Write the requests that changed a job, its Workload or a copy into a file with the job's name."""
        hubs = {"hub": self.scene.hub} | self.scene.fleet.hubs
        lines = [
            f"{one.at:.3f} {name} {one.method} {one.path} {one.status} {one.user_agent} {one.raw.decode()}\n"
            for name, hub in hubs.items()
            for one in list(hub.journal)
            if one.method != "GET" and (f"{job}-" in one.path or job.encode() in one.raw)
        ]
        (self.folder / job).write_text("".join(sorted(lines)))

    def step(self) -> None:
        """Do what a lasting fault does all the time."""
        if self.rival and self.hub_is_up:
            theirs = {"type": "Active", "status": "False", "reason": "Rival", "message": "chaos"}
            condition = theirs | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
            body = {"metadata": {"name": CHECK}, "status": {"conditions": [condition]}}
            with contextlib.suppress(Unavailable):
                self.scene.admin.apply_status(CHECKS, body, manager="rival", force=True)

    def finish(self, job: str) -> None:
        """Complete a job; where its worker is away it goes on."""
        if not self.away.intersection(self.scene.counter.running(job)):
            with contextlib.suppress(ApiError):
                self.scene.finish(job)

    # -- how it is

    def state(self) -> Object:
        check = self.scene.admin.get(CHECKS, CHECK) or {}
        conditions = (check.get("status") or {}).get("conditions") or []
        return {
            "selected": self.scene.selected(),
            "listed": self.scene.listed(),
            "conditions": conditions,
            "ready": [name for name in self.ports if self.is_ready(name)],
        }

    def is_right(self) -> bool:
        state = self.state()
        active = [one["status"] for one in state["conditions"] if one["type"] == "Active"]
        known = set(state["selected"]) <= set(state["listed"]) and bool(state["selected"])
        return known and active == ["True"] and len(state["ready"]) == len(self.ports)

    def seconds_until_right(self, most: float) -> float | None:
        """Return the seconds until the list and the condition are right; None if they are not in time."""
        began = time.monotonic()
        while not self.is_right():
            if time.monotonic() - began > most:
                return None
            time.sleep(0.2)  # other processes act
        return round(time.monotonic() - began, 1)


def token_of(kubeconfig: Object) -> str:
    return str(kubeconfig["users"][0]["user"]["token"])


def faketime(clock: Path) -> dict[str, str]:
    """Return the environment of a process whose wall clock is off as that file says; {} without faketime."""
    if FAKETIME is None:
        return {}
    clock.write_text("+0\n")
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _nothing(_: Target, __: float) -> None:
    """End nothing."""


@dataclass(frozen=True, slots=True)
class Fault:
    """
    `seconds`: how long it lasts. `needs_hub`: it begins and ends by requests to the hub. `needs_faketime`: it
    is left out where Debian's package `faketime` is not installed.
    """

    name: str
    seconds: tuple[float, float]
    on_begin: Callable[[Target, float], None]
    on_end: Callable[[Target, float], None] = _nothing
    needs_hub: bool = False
    needs_faketime: bool = False
    which: float = 0.0

    def of(self, which: float) -> "Fault":
        return replace(self, which=which)

    def can_begin(self, target: Target) -> bool:
        has_needs = target.hub_is_up or not self.needs_hub
        return has_needs and (FAKETIME is not None or not self.needs_faketime)

    def begin(self, target: Target) -> None:
        self.on_begin(target, self.which)

    def end(self, target: Target) -> None:
        self.on_end(target, self.which)


def _worker(which: float) -> str:
    return WORKERS[int(which * len(WORKERS))]


def _replica(target: Target, which: float) -> str:
    return list(target.ports)[int(which * len(target.ports))]


def _hub_goes(target: Target, _: float) -> None:
    target.hub_is_up = False
    target.scene.hub.go_down()


def _hub_comes(target: Target, _: float) -> None:
    target.scene.hub.come_back()
    target.hub_is_up = True


def _worker_goes(target: Target, which: float) -> None:
    target.away.add(_worker(which))
    target.worker_lost()
    target.scene.fleet.kill(_worker(which))


def _worker_comes(target: Target, which: float) -> None:
    target.scene.fleet.revive(_worker(which))
    target.away.discard(_worker(which))
    target.worker_found()


def _put_kubeconfig(target: Target, worker: str, text: bytes) -> None:
    data = {KUBECONFIG_KEY: base64.b64encode(text).decode()}
    target.scene.admin.merge(SECRETS, f"multikueue-{worker}", {"data": data}, namespace=NS)


def _credentials_break(target: Target, which: float) -> None:
    _put_kubeconfig(target, _worker(which), b"broken")
    target.worker_lost()


def _credentials_come(target: Target, which: float) -> None:
    _put_kubeconfig(target, _worker(which), target.scene.fleet.kubeconfig(_worker(which)))
    target.worker_found()


def _credentials_rotate(target: Target, which: float) -> None:
    worker = _worker(which)
    content = json.loads(target.scene.fleet.kubeconfig(worker))
    token = target.scene.fleet.hubs[worker].add_user(f"kueue-{len(target.secrets)}")
    content["users"][0]["user"]["token"] = token
    target.secrets.add(token)
    _put_kubeconfig(target, worker, json.dumps(content).encode())
    target.worker_lost()
    target.worker_found()


def _leaves_set(target: Target, which: float) -> None:
    target.scene.admin.merge(CLUSTERS, _worker(which), {"metadata": {"labels": {OUT: "yes"}}})


def _joins_set(target: Target, which: float) -> None:
    target.scene.admin.merge(CLUSTERS, _worker(which), {"metadata": {"labels": {OUT: None}}})


def _more_clusters(target: Target, which: float) -> None:
    target.scene.select(2 + int(which * 2))


def _one_cluster(target: Target, _: float) -> None:
    target.scene.select(1)


def _killed(target: Target, which: float) -> None:
    target.stopped.add(_replica(target, which))
    target.replicas[_replica(target, which)].kill()


def _started(target: Target, which: float) -> None:
    name = _replica(target, which)
    target.replicas[name].kill()
    target.start_replica(name, target.files[name])
    target.stopped.discard(name)


def _disk_full(target: Target, which: float) -> None:
    """Its log lines cannot be written."""
    name = _replica(target, which)
    target.replicas[name].kill()
    with open("/dev/full", "wb") as full:  # noqa: PTH123  # a device
        target.start_replica(name, full)


def _frozen(target: Target, which: float) -> None:
    name = _replica(target, which)
    target.stopped.add(name)
    target.replicas[name].freeze()


def _thawed(target: Target, which: float) -> None:
    name = _replica(target, which)
    target.replicas[name].thaw()
    target.stopped.discard(name)


def _crd(which: float) -> str:
    return REMOVED_CRDS[int(which * len(REMOVED_CRDS))]


def _crd_goes(target: Target, which: float) -> None:
    name = _crd(which)
    crd = target.scene.admin.request("GET", f"{CRDS}/{name}", None)
    keep = {key: crd["metadata"][key] for key in ("name", "labels", "annotations") if key in crd["metadata"]}
    target.crds[name] = {key: crd[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": keep}
    target.scene.admin.request("DELETE", f"{CRDS}/{name}", None)


def _crd_comes(target: Target, which: float) -> None:
    target.scene.admin.request("POST", CRDS, target.crds[_crd(which)])
    del target.crds[_crd(which)]


def _clock_set(target: Target, which: float) -> None:
    names = list(target.ports)
    number = int(which * len(names) * len(CLOCK_SECONDS))
    target.set_clock(names[number % len(names)], CLOCK_SECONDS[number // len(names)])


def _clock_right(target: Target, _: float) -> None:
    for name in target.ports:
        target.set_clock(name, 0)


def _rival(on: bool) -> Callable[[Target, float], None]:
    def happen(target: Target, _: float) -> None:
        target.rival = on

    return happen


def _api_fault(**fault: Any) -> Callable[[Target, float], None]:
    def happen(target: Target, _: float) -> None:
        target.scene.hub.faults.add(agent=OURS, times=FOR_EVER, **fault)

    return happen


def _api_right(target: Target, _: float) -> None:
    target.scene.hub.faults.clear()


FAULTS: Final = (
    Fault("hub away", (0.5, 6.0), _hub_goes, _hub_comes),
    Fault("worker away", (1.0, 20.0), _worker_goes, _worker_comes),
    Fault("credentials broken", (1.0, 10.0), _credentials_break, _credentials_come, needs_hub=True),
    Fault("credentials rotated", (0.0, 1.0), _credentials_rotate, needs_hub=True),
    Fault("cluster leaves its set", (1.0, 15.0), _leaves_set, _joins_set, needs_hub=True),
    Fault("more clusters wanted", (1.0, 15.0), _more_clusters, _one_cluster, needs_hub=True),
    Fault("replica killed", (0.0, 5.0), _killed, _started, needs_hub=True),
    Fault("replica frozen", (0.5, 8.0), _frozen, _thawed),
    Fault("disk full", (2.0, 10.0), _disk_full, _started, needs_hub=True),
    Fault("clock set", (1.0, 15.0), _clock_set, _clock_right, needs_faketime=True),
    Fault("CRD removed", (1.0, 10.0), _crd_goes, _crd_comes, needs_hub=True),
    Fault("condition reset by a rival", (0.5, 3.0), _rival(True), _rival(False)),
    Fault("429", (1.0, 8.0), _api_fault(status=429, headers={"Retry-After": "1"}), _api_right),
    Fault("500", (1.0, 8.0), _api_fault(status=500), _api_right),
    Fault("slow answers", (1.0, 8.0), _api_fault(delay=0.5), _api_right),
)
