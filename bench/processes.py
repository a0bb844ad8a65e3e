"""
The processes of a measurement: the hub, the controller and the floor; their memory, CPU time and processors.

`python -m bench.processes KUBECONFIG SIZE ...` is an embedded hub: it serves until its standard input ends,
with a scene of these sizes (the fields of `bench.scene.Scene`) from the start; each line there asks for the
requests since the last one, answered by a line on standard output. The separate process keeps the hub's cost
out of the measurement.
"""

import asyncio
import compileall
import contextlib
import gc
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

import placement_ac
from bench.scene import NEVER_SECONDS, Scene, clear, prepare, refuse_what_is_in_use, stored, workloads
from placement_ac.kube.client import Client, Object
from placement_lab.hub import Hub, strategies
from placement_lab.structural_schema.schema_node import prune_and_default

STOP_SECONDS: Final = 10.0
REST_SHARE: Final = 0.05
"""A process that uses a smaller share of a CPU is idle."""


@contextmanager
def module(*words: str, **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Run a Python module in its own process, and end it. `options`: of Popen."""
    with subprocess.Popen([sys.executable, "-m", *words], **options) as process:  # noqa: S603  # our own
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def controller(kubeconfig: Path, *options: str) -> "contextlib.AbstractContextManager[Any]":
    """Run `placement-ac run` in its own process."""
    return module("placement_ac", "run", "--kubeconfig", str(kubeconfig), *options)


@cache
def _compile_ours() -> None:
    """Compile our code once, as pip does: no start shall wait for it."""
    for file in (__file__, placement_ac.__file__):
        compileall.compile_dir(Path(file).parent, quiet=1)


# -- the two sides of the comparison


@dataclass(frozen=True, slots=True)
class Side:
    """A side of the comparison: its name, its module with arguments, and options after the kubeconfig."""

    name: str
    words: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def is_controller(self) -> bool:
        return self.name == CONTROLLER.name

    @property
    def whole(self) -> "Side":
        """The side that writes MultiKueueClusters and conditions as well, as the controller always does."""
        return self if self.is_controller else replace(self, options=(*self.options, "--whole"))

    def of(self, scene: Scene) -> "Side":
        """The side that names MultiKueueClusters as the scene expects."""
        if not scene.shared_names:
            return self
        option = "--cluster-names={cluster}" if self.is_controller else "--shared-names"
        return replace(self, options=(*self.options, option))


CONTROLLER: Final = Side(
    "controller",
    # A single replica, like the floor; its log is not read.
    ("placement_ac", "run", "--leader-elect=false", "--log-level=error", "--kubeconfig"),
)
FLOOR: Final = Side("floor", ("bench.floor",))


class Process:
    """A running side. `began`: its start, by the event loop's clock."""

    def __init__(self, popen: "subprocess.Popen[bytes]", began: float) -> None:
        self._popen = popen
        self.began, self.pid = began, popen.pid

    def check(self) -> None:
        """Raise if the process has ended by itself."""
        if (code := self._popen.poll()) is not None:
            raise click.ClickException(f"process {self.pid} has ended with {code}")

    def memory(self) -> float:
        return round(memory(self.pid)[0], 1)

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)


@contextmanager
def running(side: Side, kubeconfig: Path) -> Iterator[Process]:
    """Run one side."""
    _compile_ours()
    began = asyncio.get_running_loop().time()
    # A session of its own: Ctrl-C reaches the bench alone, which then stops it.
    with module(*side.words, str(kubeconfig), *side.options, start_new_session=True) as popen:
        yield Process(popen, began)


# -- the cost of a process


async def until_idle(pid: int, seconds: float, check: Callable[[], None] = lambda: None) -> None:
    """Wait until a process uses less than `REST_SHARE` of a CPU for `seconds`; `check` may raise before."""
    end = time.monotonic() + NEVER_SECONDS
    while time.monotonic() < end:
        check()
        before = cpu_seconds(pid)
        await asyncio.sleep(seconds)
        if cpu_seconds(pid) - before < seconds * REST_SHARE:
            return
    raise click.ClickException(f"process {pid} does not become idle")


def memory(pid: int) -> tuple[float, float]:
    """Return the memory of a process in MB (10^6 bytes): now, and the maximum."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, peak = (int(lines[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))
    return now, peak


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, by Linux's clock of the process: /proc counts ticks of 10 ms."""
    return time.clock_gettime((~pid << 3) | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)


# -- processors


def usable() -> set[int]:
    """Return the processors that this process may use; none when the system cannot report them."""
    return os.sched_getaffinity(0) if sys.platform == "linux" else set()


def shared_out(processors: set[int]) -> tuple[set[int], set[int]] | None:
    """Return the processors of the hubs and those of the rest; None with fewer than two processors."""
    if len(processors) < 2:
        return None
    first = {min(processors)}
    return first, processors - first


@contextmanager
def of_their_own(pids: Iterable[int]) -> Iterator[None]:
    """Give these processes one processor, and this one and its children the others; undo it at the end.

    Otherwise a hub with a request waits for a processor, longer with more processes, and the wait would be
    measured.
    """
    before = usable()
    shares = shared_out(before)
    if shares is None:
        yield
        return
    try:
        for pid in pids:
            _tie(pid, shares[0])
        _tie(os.getpid(), shares[1])
        yield
    finally:
        _tie(os.getpid(), before)


def _tie(pid: int, processors: set[int]) -> None:
    """Set the affinity of a process's threads; threads that they start inherit it."""
    for thread in list(Path(f"/proc/{pid}/task").iterdir()):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), processors)


# -- the hub: an embedded one in its own process, or the one of a kubeconfig

AGENT: Final = "bench"
"""The User-Agent of the bench itself."""
Requests = Mapping[str, int]
"""Number of requests by name: `verb plural[/subresource]`, such as `patch multikueueconfigs`."""


class Theirs:
    """The hub of a kubeconfig. The namespace stays: not every hub has a controller that deletes it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._is_ours = False

    async def fill(self, client: Client, scene: Scene) -> None:
        """Create a scene; objects of an earlier one are deleted. ClickException: the hub is in use."""
        await refuse_what_is_in_use(client)
        self._is_ours = True
        await clear(client)
        await prepare(client, scene)

    async def clear(self, client: Client) -> None:
        """Delete the scene and everything created for it."""
        if self._is_ours:  # what others have there is not deleted
            await clear(client)

    def requests(self) -> Requests | None:
        """Return the requests since the last call, without the bench's; None: the hub does not count them."""


class Ours(Theirs):
    """An embedded hub in its own process, which ends with it."""

    def __init__(self, kubeconfig: Path, process: "subprocess.Popen[str]") -> None:
        super().__init__(kubeconfig)
        self._process = process
        self.pid = process.pid
        self._answer()  # it serves now

    async def fill(self, _: Client, scene: Scene) -> None:
        """It has its scene from the start."""

    def requests(self) -> Requests:
        assert self._process.stdin  # noqa: S101  # opened as a pipe
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: Requests = json.loads(self._answer())
        return found

    def _answer(self) -> str:
        assert self._process.stdout  # noqa: S101  # opened as a pipe
        if line := self._process.stdout.readline():
            return line
        raise click.ClickException("the hub has ended")


@contextmanager
def embedded(kubeconfig: Path, scene: Scene) -> Iterator[Ours]:
    """Run an embedded hub with that scene; it writes its kubeconfig."""
    command = [sys.executable, "-m", "bench.processes", str(kubeconfig)]
    command += [str(int(size)) for size in astuple(scene)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]  # noqa: S603  # ours
        try:
            yield Ours(kubeconfig, process)
        finally:
            process.stdin.close()


# -- in the hub's process


def named(method: str, path: str, query: Mapping[str, str]) -> str:
    """Return a request's name; its path is /apis/GROUP/VERSION[/namespaces/NS]/PLURAL[/NAME[/SUB]]."""
    parts = path.strip("/").split("/")
    rest = {"api": parts[2:], "apis": parts[3:]}.get(parts[0], [])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if not rest:
        return "get discovery"
    plural, name, sub = (*rest, "", "")[:3]
    verb = {"GET": "get" if name else "list"}.get(method, method.lower())
    if "watch" in query:
        verb = "watch"
    return f"{verb} {plural}{'/' + sub if sub else ''}"


def _requests(hub: Hub) -> Requests:
    requests = hub.journal[:]
    del hub.journal[: len(requests)]
    return Counter(named(r.method, r.path, r.query) for r in requests if r.user_agent != AGENT)


def _put(hub: Hub, objects: Iterable[Object], *, complete: bool) -> None:
    """Write objects to the store of a hub that does not serve yet: over HTTP it would take minutes.

    `complete`: as created over HTTP, with the defaults of their schemas.
    """
    store = hub._store  # noqa: SLF001  # there is no other way
    known = {(resource.group, resource.kind): resource for resource in store.by_resource}
    for given in objects:
        group, _, version = given["apiVersion"].rpartition("/")
        resource, obj = known[group, given["kind"]], given
        if complete:
            schema = resource.versions[version].schema
            defaulted = prune_and_default(schema, given, defaults=True, unknown=[])
            obj = strategies.prepare(resource, defaulted, None)
        metadata = obj["metadata"]
        store.put(resource, (metadata.get("namespace", ""), metadata["name"]), obj)


def main(kubeconfig: str, *sizes: str) -> None:
    checks, clusters, draws, shared_names, number = map(int, sizes)
    scene = Scene(checks, clusters, bool(draws), bool(shared_names), number)
    hub = Hub()
    _put(hub, stored(scene), complete=True)
    _put(hub, workloads(number), complete=False)
    gc.collect()
    gc.freeze()  # a garbage collection over 5,000 clusters would count as the API server's time
    with hub:
        hub.write_kubeconfig(Path(kubeconfig))
        print("ready", flush=True)  # noqa: T201  # whoever has started it waits for that
        for _ in sys.stdin:
            print(json.dumps(_requests(hub)), flush=True)  # noqa: T201  # the answer


if __name__ == "__main__":
    main(*sys.argv[1:])
