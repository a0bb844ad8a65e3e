"""
The processes of a measurement: the hub, the controller and the floor; their memory, CPU time and processors.

`python -m bench.processes KUBECONFIG [KIND SIZE ...]` is an embedded hub: it serves until its standard input
ends, with the objects of `bench.scene.FILLS` from the start; each line there is an order (`down`, `up`,
`taken`), answered by a line on standard output. The separate process keeps the hub's cost out of the
measurement.
"""

import asyncio
import compileall
import contextlib
import gc
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

import placement_ac
from bench.scene import FILLS, NEVER_SECONDS, Scene, clear, prepare, refuse_what_is_in_use
from placement_ac.kube.client import Client, Object
from placement_lab.hub import Hub, strategies
from placement_lab.structural_schema.schema_node import prune_and_default

STOP_SECONDS: Final = 10.0
REST_SHARE: Final = 0.05
"""A process that uses a smaller share of a CPU is idle."""
POLL_SECONDS: Final = 0.01
"""The interval of the readiness probe of the controller."""


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


def controller(kubeconfig: Path, *options: str, **popen: Any) -> "contextlib.AbstractContextManager[Any]":
    """Run `placement-ac run` in its own process."""
    return module("placement_ac", "run", "--kubeconfig", str(kubeconfig), *options, **popen)


@cache
def compile_ours() -> None:
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


CONTROLLER: Final = Side(
    "controller",
    # A single replica, like the floor; its log is not read and would report the intended outage.
    ("placement_ac", "run", "--leader-elect=false", "--log-level=error", "--kubeconfig"),
)
FLOOR: Final = Side("floor", ("bench.floor",))


@dataclass(frozen=True, slots=True)
class Variant:
    """How the controller names and creates MultiKueueClusters. `options`: those of `placement-ac run`."""

    name: str
    title: str
    options: tuple[str, ...] = ()
    shared_names: bool = False

    def side(self, side: Side) -> Side:
        of_floor = ("--shared-names",) if self.shared_names else ()
        return replace(side, options=self.options if side.is_controller else of_floor)

    def scene(self, checks: int, clusters: int) -> Scene:
        return Scene(checks, clusters, draws=True, shared_names=self.shared_names)


SHARED: Final = Variant("shared", "shared names", ("--cluster-names={cluster}",), shared_names=True)
PREPARED: Final = Variant("prepared", "default names, prepared", ("--prepare-clusters=sets",))
VARIANTS: Final[Mapping[str, Variant]] = {
    one.name: one for one in (Variant("default", "default names"), PREPARED, SHARED)
}


class Process:
    """A running side. `began`: its start, by the event loop's clock."""

    def __init__(self, popen: "subprocess.Popen[bytes]", port: int, began: float) -> None:
        self._popen, self._port = popen, port
        self.began, self.pid = began, popen.pid

    def check(self) -> None:
        """Raise if the process has ended by itself."""
        if (code := self._popen.poll()) is not None:
            raise click.ClickException(f"process {self.pid} has ended with {code}")

    def memory(self) -> float:
        return round(memory(self.pid)[0], 1)

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    async def ready(self) -> float:
        """Return the seconds from its start until it reported that it is ready.

        The controller by `/readyz` (all kinds have been listed), the floor by a line when its watch is open.
        """
        if self._popen.stdout:
            while not await asyncio.to_thread(self._popen.stdout.readline):
                self.check()
        else:
            while not await _says_ok(self._port):
                self.check()
                await asyncio.sleep(POLL_SECONDS)
        return asyncio.get_running_loop().time() - self.began


async def _says_ok(port: int) -> bool:
    with contextlib.suppress(OSError):  # it does not listen yet
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: controller\r\n\r\n")
        line = await reader.readline()
        writer.close()
        return b" 200 " in line
    return False


@contextmanager
def running(side: Side, kubeconfig: Path, *, probed: bool = False) -> Iterator[Process]:
    """Run one side; with `probed` the controller serves its readiness."""
    port = _free_port() if probed and side.is_controller else 0
    probes = [f"--health-probe-bind-address=127.0.0.1:{port}"] if port else []
    compile_ours()
    began = asyncio.get_running_loop().time()
    # A session of its own: Ctrl-C reaches the bench alone, which then stops it.
    options = {"stdout": None if side.is_controller else subprocess.PIPE, "start_new_session": True}
    with module(*side.words, str(kubeconfig), *side.options, *probes, **options) as popen:
        yield Process(popen, port, began)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


# -- what a process takes


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


@dataclass(frozen=True, slots=True)
class Taken:
    """The number of requests to a hub by name, and the bytes of its watches by kind, without the bench's."""

    requests: Mapping[str, int] = field(default_factory=dict)
    watched: Mapping[str, int] = field(default_factory=dict)


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

    def down(self) -> bool:
        """Make the hub unreachable; False: not possible with this hub."""
        return False

    def up(self) -> None:
        """Make the hub reachable again, with all its objects."""

    def taken(self) -> Taken | None:
        """Return the requests and bytes since the last call; None: the hub does not count them."""


class Ours(Theirs):
    """An embedded hub in its own process, which ends with it."""

    def __init__(self, kubeconfig: Path, process: "subprocess.Popen[str]") -> None:
        super().__init__(kubeconfig)
        self._process = process
        self.pid = process.pid
        self._answer()  # it serves now

    async def fill(self, _: Client, scene: Scene) -> None:
        """It has its scene from the start."""

    def down(self) -> bool:
        self._order("down")
        return True

    def up(self) -> None:
        self._order("up")

    def taken(self) -> Taken:
        return Taken(**json.loads(self._order("taken")))

    def _order(self, words: str) -> str:
        assert self._process.stdin  # noqa: S101  # opened as a pipe
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout  # noqa: S101  # opened as a pipe
        if line := self._process.stdout.readline():
            return line
        raise click.ClickException("the hub has ended")


@contextmanager
def embedded(kubeconfig: Path, objects: str = "", *sizes: int) -> Iterator[Ours]:
    """Run an embedded hub that writes its kubeconfig, once it serves; `objects`, `sizes`: see above."""
    command = [
        sys.executable,
        "-m",
        "bench.processes",
        *map(str, (kubeconfig, *[objects][: len(sizes)], *sizes)),
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]  # noqa: S603  # ours
        try:
            yield Ours(kubeconfig, process)
        finally:
            process.stdin.close()


def embedded_scene(kubeconfig: Path, scene: Scene) -> AbstractContextManager[Ours]:
    """Run an embedded hub with that scene."""
    return embedded(kubeconfig, "scene", *map(int, astuple(scene)))


# -- in the hub's process

NEXT_PAGE: Final = " (next page)"
"""The suffix of the name of a LIST that continues an earlier page."""
DISCOVERY: Final = "get discovery"


def named(method: str, path: str, query: Mapping[str, str]) -> str:
    """Return a request's name; its path is /apis/GROUP/VERSION[/namespaces/NS]/PLURAL[/NAME[/SUB]]."""
    parts = path.strip("/").split("/")
    rest = {"api": parts[2:], "apis": parts[3:]}.get(parts[0], [])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if not rest:
        return DISCOVERY
    plural, name, sub = (*rest, "", "")[:3]
    verb = {"GET": "get" if name else "list"}.get(method, method.lower())
    if "watch" in query:
        verb = "watch"
    more = NEXT_PAGE if verb == "list" and query.get("continue") else ""
    return f"{verb} {plural}{'/' + sub if sub else ''}{more}"


class _Serving:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._watched: Counter[str] = Counter()

    def obey(self, order: str) -> str:
        match order.split():
            case ["down"]:
                self._hub.go_down()
            case ["up"]:
                self._hub.come_back()
            case ["taken"]:
                return json.dumps({"requests": self._requests(), "watched": self._sent()})
        return ""

    def _requests(self) -> Mapping[str, int]:
        requests = self._hub.journal[:]
        del self._hub.journal[: len(requests)]
        return Counter(named(r.method, r.path, r.query) for r in requests if r.user_agent != AGENT)

    def _sent(self) -> Mapping[str, int]:
        now: Counter[str] = Counter()
        for (agent, plural), size in self._hub.watched.items():
            if agent != AGENT:
                now[plural] += size
        before, self._watched = self._watched, now
        return now - before


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


def main(kubeconfig: str, kind: str = "", *sizes: str) -> None:
    hub = Hub()
    if kind:
        _put(hub, FILLS[kind](*map(int, sizes)), complete=kind == "scene")
    gc.collect()
    gc.freeze()  # a garbage collection over 5,000 clusters would count as the API server's time
    with hub:
        hub.write_kubeconfig(Path(kubeconfig))
        print("ready", flush=True)  # noqa: T201  # whoever has started it waits for that
        serving = _Serving(hub)
        for line in sys.stdin:
            print(serving.obey(line), flush=True)  # noqa: T201  # the answer


if __name__ == "__main__":
    main(*sys.argv[1:])
