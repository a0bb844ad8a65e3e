"""Several controllers on one hub, each with its own user, and an audit of leaders and writers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from placement_lab.hub import Hub
from placement_lab.hub.faults import RecordedRequest
from tests.support import quick
from tests.support.accounts import kubeconfig_of
from tests.support.driver import Driver

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases"
LEASE: Final = f"{LEASES}/placement-ac"
QUICK: Final = {"leader_elect_lease_duration": "3s"}
LISTED: Final = {
    "admissionchecks",
    "addonplacementscores",
    "clusterprofiles",
    "managedclusters",
    "multikueueclusters",
    "multikueueconfigs",
    "placementdecisions",
    "placements",
    "secrets",
    "workloads",
}
"""The kinds that the cache needs."""
AT_ONCE: Final = {"mass_loss_grace": "0", "settle": "0"}


def occupy(admin: Driver) -> None:
    """Write the Lease for a holder that does not exist, for 68 years."""
    spec = {"holderIdentity": "nobody", "leaseDurationSeconds": 2147483647}
    admin.ask("PATCH", LEASE, {"spec": spec}, "merge")


class Replica:
    """`placement-ac run` in its own process, for a user of that name; killed at the end if necessary."""

    def __init__(
        self,
        hub: Hub,
        folder: Path,
        name: str,
        *,
        log: IO[bytes] | None = None,
        environment: Mapping[str, str] | None = None,
        program: str = quick.__name__,
        **settings: str,
    ) -> None:
        options = [f"--{key.replace('_', '-')}={value}" for key, value in (AT_ONCE | settings).items()]
        path = kubeconfig_of(hub, folder / name, hub.add_user(name))
        self.name = name
        self._log = log
        self._environment = environment or {}
        self.kubeconfig = path
        self._command = [sys.executable, "-m", program, "run", f"--kubeconfig={path}", *options]

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | self._environment
        self._process = subprocess.Popen(self._command, env=environment, stderr=self._log)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        """Stop it with SIGTERM and wait for its end."""
        self._process.terminate()
        self.wait()

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def wait(self) -> None:
        """Wait until it has ended."""
        self._process.wait()

    def freeze(self) -> None:
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def __exit__(self, _: type[BaseException] | None, __: object, ___: TracebackType | None) -> None:
        self.kill()  # a stopped process reacts to no other signal


class Audit:
    """Leaders and writers by the journal, read from a time without a leader."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self.leader = ""
        self.terms: list[tuple[float, str]] = []
        """When (time.time()) and who: each change of the leader."""
        self.writes: list[tuple[float, str]] = []
        """When and who: each write."""
        self.strays: list[RecordedRequest] = []
        """Writes of a replica that did not lead."""
        self.listed: dict[str, set[str]] = {}
        """User → the kinds that it has listed."""

    def read(self, journal: Iterable[RecordedRequest]) -> Self:
        for request in journal:
            if request.user in self._names:
                self._take(request)
        return self

    def _take(self, request: RecordedRequest) -> None:
        if request.method == "GET":
            if "limit" in request.query:
                self.listed.setdefault(request.user, set()).add(request.path.rsplit("/", 1)[1])
        elif request.path.startswith(LEASES):
            self._take_lease(request)
        else:
            self.writes.append((request.at, request.user))
            if request.user != self.leader:
                self.strays.append(request)

    def _take_lease(self, request: RecordedRequest) -> None:
        if request.status not in (200, 201):
            return
        held = bool(request.body["spec"]["holderIdentity"])
        if held and self.leader != request.user:
            self.terms.append((request.at, request.user))
        self.leader = request.user if held else ""

    def is_warm(self, name: str) -> bool:
        """Whether the replica has listed every kind that the cache needs."""
        return self.listed.get(name, set()) >= LISTED
