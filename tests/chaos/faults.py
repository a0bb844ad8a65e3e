"""
The faults, and the scene that they spoil.

A fault begins and ends; which worker or replica it hits is decided by a number between 0 and 1.
"""

import base64
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import requests
import yaml

from placement_ac.core.api import constants as api
from placement_ac.core.api.errors import ApiError, Unavailable
from tests.support.driver import Object
from tests.support.replicas import Replica
from tests.support.scored_jobs import NS, WORKERS, Scene

OURS: Final = ("placement-ac", "kopf/")
"""How the User-Agents of the controller begin."""
FOR_EVER: Final = 10**9
CHECK: Final = "placement"
CHECKS: Final = api.ADMISSION_CHECK.at("v1beta2")
OUT: Final = "chaos.example.com/out"
"""A ManagedCluster with this label is in no set."""
SETS: Final[Object] = yaml.safe_load(f"""
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {{name: global}}
spec:
  clusterSelector:
    selectorType: LabelSelector
    labelSelector: {{matchExpressions: [{{key: {OUT}, operator: DoesNotExist}}]}}
""")
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

    def start(self) -> None:
        self.scene.admin.apply(SETS)
        for name in self.ports:
            self.files[name] = (self.folder / f"{name}.log").open("ab")
            self.start_replica(name, self.files[name])
        self.secrets |= {token_of(json.loads(self.scene.fleet.kubeconfig(name))) for name in WORKERS}

    def start_replica(self, name: str, log: IO[bytes]) -> None:
        options = self.settings | {"health_probe_bind_address": f"127.0.0.1:{self.ports[name]}"}
        environment = faketime(self.folder / f"{name}.clock")
        made = Replica(self.scene.hub, self.folder, name, log=log, environment=environment, **options)
        self.secrets.add(token_of(json.loads((self.folder / name).read_text())))
        self.replicas[name] = made
        made.start()

    def close(self) -> None:
        for replica in self.replicas.values():
            replica.kill()
        for file in self.files.values():
            file.close()

    def running(self) -> list[Replica]:
        return [one for name, one in self.replicas.items() if name not in self.stopped and one.runs]

    def seconds_to_answer(self, name: str) -> float | None:
        """Return how long a replica took to answer `/livez`; None if it does not serve yet."""
        began = time.monotonic()
        try:
            self.session.get(f"http://127.0.0.1:{self.ports[name]}/livez", timeout=ANSWER_SECONDS)
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
        lost = any(ended is None or ended > created for ended in self.workers_lost)
        return "dispatcher" not in self.settings and lost

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
                self.scene.fleet.finish(job)

    def state(self) -> Object:
        check = self.scene.admin.get(CHECKS, CHECK) or {}
        conditions = (check.get("status") or {}).get("conditions") or []
        ready = [name for name in self.ports if self.is_ready(name)]
        lists = {"selected": self.scene.selected(), "listed": self.scene.listed()}
        return lists | {"conditions": conditions, "ready": ready}

    def is_right(self) -> bool:
        state = self.state()
        active = [condition["status"] for condition in state["conditions"] if condition["type"] == "Active"]
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
    names = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(clock)}
    return names | {"FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


# -- what each fault does: `on` when it begins, else when it ends

Act = Callable[[Target, float, bool], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """
    `seconds`: how long it lasts. `needs_hub`: it begins and ends by requests to the hub. `needs_faketime`: it
    is left out where Debian's package `faketime` is not installed.
    """

    name: str
    seconds: tuple[float, float]
    act: Act
    needs_hub: bool = False
    needs_faketime: bool = False

    def can_begin(self, target: Target) -> bool:
        has_needs = target.hub_is_up or not self.needs_hub
        return has_needs and (FAKETIME is not None or not self.needs_faketime)


def _worker(which: float) -> str:
    return WORKERS[int(which * len(WORKERS))]


def _replica(target: Target, which: float) -> str:
    return list(target.ports)[int(which * len(target.ports))]


def _hub_away(target: Target, _: float, on: bool) -> None:
    if on:
        target.hub_is_up = False
        target.scene.hub.go_down()
    else:
        target.scene.hub.come_back()
        target.hub_is_up = True


def _worker_away(target: Target, which: float, on: bool) -> None:
    worker = _worker(which)
    if on:
        target.away.add(worker)
        target.worker_lost()
        target.scene.fleet.kill(worker)
    else:
        target.scene.fleet.revive(worker)
        target.away.discard(worker)
        target.worker_found()


def _put_kubeconfig(target: Target, worker: str, text: bytes) -> None:
    data = {api.KUBECONFIG_KEY: base64.b64encode(text).decode()}
    target.scene.admin.merge(api.SECRET.at("v1"), f"multikueue-{worker}", {"data": data}, namespace=NS)


def _credentials_broken(target: Target, which: float, on: bool) -> None:
    worker = _worker(which)
    _put_kubeconfig(target, worker, b"broken" if on else target.scene.fleet.kubeconfig(worker))
    (target.worker_lost if on else target.worker_found)()


def _credentials_rotated(target: Target, which: float, on: bool) -> None:
    if not on:
        return
    worker = _worker(which)
    content = json.loads(target.scene.fleet.kubeconfig(worker))
    token = target.scene.fleet.hubs[worker].add_user(f"kueue-{len(target.secrets)}")
    content["users"][0]["user"]["token"] = token
    target.secrets.add(token)
    _put_kubeconfig(target, worker, json.dumps(content).encode())
    target.worker_lost()
    target.worker_found()


def _out_of_set(target: Target, which: float, on: bool) -> None:
    labels = {"metadata": {"labels": {OUT: "yes" if on else None}}}
    target.scene.admin.merge(api.MANAGED_CLUSTER.at("v1"), _worker(which), labels)


def _more_clusters(target: Target, which: float, on: bool) -> None:
    target.scene.select(2 + int(which * 2) if on else 1)


def _killed(target: Target, which: float, on: bool) -> None:
    name = _replica(target, which)
    if on:
        target.stopped.add(name)
        target.replicas[name].kill()
    else:
        _start(target, name)


def _start(target: Target, name: str) -> None:
    target.replicas[name].kill()
    target.start_replica(name, target.files[name])
    target.stopped.discard(name)


def _disk_full(target: Target, which: float, on: bool) -> None:
    """Its log lines cannot be written."""
    name = _replica(target, which)
    if not on:
        _start(target, name)
        return
    target.replicas[name].kill()
    with open("/dev/full", "wb") as full:  # noqa: PTH123  # a device
        target.start_replica(name, full)


def _frozen(target: Target, which: float, on: bool) -> None:
    name = _replica(target, which)
    if on:
        target.stopped.add(name)
        target.replicas[name].freeze()
    else:
        target.replicas[name].thaw()
        target.stopped.discard(name)


def _crd_removed(target: Target, which: float, on: bool) -> None:
    name, request = REMOVED_CRDS[int(which * len(REMOVED_CRDS))], target.scene.admin.request
    if on:
        crd = request("GET", f"{CRDS}/{name}", None)
        metadata = {
            key: one for key, one in crd["metadata"].items() if key in ("name", "labels", "annotations")
        }
        target.crds[name] = {key: crd[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
        request("DELETE", f"{CRDS}/{name}", None)
    else:
        request("POST", CRDS, target.crds[name])
        del target.crds[name]


def _clock_set(target: Target, which: float, on: bool) -> None:
    names = list(target.ports)
    number = int(which * len(names) * len(CLOCK_SECONDS))
    hit, seconds = names[number % len(names)], CLOCK_SECONDS[number // len(names)]
    for name in [hit] if on else names:
        (target.folder / f"{name}.clock").write_text(f"{seconds if on else 0:+d}\n")


def _rival(target: Target, _: float, on: bool) -> None:
    target.rival = on


def _api_fault(**fault: Any) -> Act:
    def act(target: Target, _: float, on: bool) -> None:
        if on:
            target.scene.hub.faults.add(agent=OURS, times=FOR_EVER, **fault)
        else:
            target.scene.hub.faults.clear()

    return act


FAULTS: Final = (
    Fault("hub away", (0.5, 6.0), _hub_away),
    Fault("worker away", (1.0, 20.0), _worker_away),
    Fault("credentials broken", (1.0, 10.0), _credentials_broken, needs_hub=True),
    Fault("credentials rotated", (0.0, 1.0), _credentials_rotated, needs_hub=True),
    Fault("cluster leaves its set", (1.0, 15.0), _out_of_set, needs_hub=True),
    Fault("more clusters wanted", (1.0, 15.0), _more_clusters, needs_hub=True),
    Fault("replica killed", (0.0, 5.0), _killed, needs_hub=True),
    Fault("replica frozen", (0.5, 8.0), _frozen),
    Fault("disk full", (2.0, 10.0), _disk_full, needs_hub=True),
    Fault("clock set", (1.0, 15.0), _clock_set, needs_faketime=True),
    Fault("CRD removed", (1.0, 10.0), _crd_removed, needs_hub=True),
    Fault("condition reset by a rival", (0.5, 3.0), _rival),
    Fault("429", (1.0, 8.0), _api_fault(status=429, headers={"Retry-After": "1"})),
    Fault("500", (1.0, 8.0), _api_fault(status=500)),
    Fault("slow answers", (1.0, 8.0), _api_fault(delay=0.5)),
)
