"""Several controllers on one hub, each with a user of its own, and who led and wrote by the journal."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from placement_ac.hub import Hub
from placement_ac.hub.faults import Request

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases"
LEASE: Final = f"{LEASES}/placement-ac"
QUICK: Final = {
    "leader_elect_lease_duration": "2s",
    "leader_elect_renew_deadline": "1200ms",
    "leader_elect_retry_period": "300ms",
}
AT_ONCE: Final = {"cluster_retention": "0", "mass_loss_grace": "0", "reorder_margin": "0"}


def kubeconfig(hub: Hub, folder: Path, name: str) -> Path:
    """Return the kubeconfig of a user who may do everything; the journal knows him by this name."""
    content = hub.kubeconfig()
    content["users"][0]["user"]["token"] = hub.add_user(name)
    path = folder / name
    path.write_text(json.dumps(content))
    return path


class Replica:
    """`placement-ac run` in a process of its own, for a user of that name; killed at the end if need be."""

    def __init__(self, hub: Hub, folder: Path, name: str, **settings: str) -> None:
        options = [f"--{key.replace('_', '-')}={value}" for key, value in (AT_ONCE | settings).items()]
        path = kubeconfig(hub, folder, name)
        self.name = name
        self._command = [sys.executable, "-m", "placement_ac", "run", f"--kubeconfig={path}", *options]

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        """Stop it in good order, and wait for it."""
        self._process.terminate()
        self._process.wait()

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def __exit__(self, _: type[BaseException] | None, __: object, ___: TracebackType | None) -> None:
        self._process.kill()  # a stopped one hears of nothing else
        self._process.wait()


@dataclass(frozen=True, slots=True)
class Record:
    """What the journal says: who took the Lease and wrote, in order."""

    terms: tuple[tuple[float, str], ...]
    """When each one took the lead (time.time()), and who."""
    writes: tuple[tuple[float, str], ...]
    """When something was written, and by whom."""
    strays: tuple[Request, ...]
    """Writes of somebody who did not lead; a real one would see them as those of two writers."""


def record(journal: Iterable[Request], names: Iterable[str]) -> Record:
    """Read the journal from its beginning on, and so from a time when nobody led."""
    names = set(names)
    leader = ""
    terms, writes, strays = [], [], []
    for request in journal:
        if request.user not in names or request.method == "GET":
            continue
        if request.path.startswith(LEASES):
            if request.status < 400 and request.status:
                taken = bool(request.body["spec"]["holderIdentity"])
                if taken and leader != request.user:
                    terms.append((request.at, request.user))
                leader = request.user if taken else ""
            continue
        writes.append((request.at, request.user))
        if request.user != leader:
            strays.append(request)
    return Record(tuple(terms), tuple(writes), tuple(strays))
