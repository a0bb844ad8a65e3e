"""
The hub for a measurement: an embedded one in its own process, or the one of a kubeconfig.

`python -m bench.hubs KUBECONFIG [KIND SIZE ...]` serves until its standard input ends, with the objects of
`bench.objects.FILLS` from the start; each line there is an order (`down`, `up`, `taken`), answered by a line
on standard output. The separate process keeps the hub's
cost out of the measurement.
"""

import gc
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path

import click

from bench.measure import named
from bench.scene import Scene, clear, prepare, refuse_what_is_in_use
from kubectl_placement.structural_schema.schema_node import prune_and_default
from placement_ac.kube.client import Client, Object
from placement_lab.hub import Hub, strategies

AGENT = "bench"
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
    command = [sys.executable, "-m", "bench.hubs", *map(str, (kubeconfig, *[objects][: len(sizes)], *sizes))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]  # noqa: S603  # ours
        try:
            yield Ours(kubeconfig, process)
        finally:
            process.stdin.close()


def embedded_scene(kubeconfig: Path, scene: Scene) -> AbstractContextManager[Ours]:
    """Run an embedded hub with that scene."""
    return embedded(kubeconfig, "scene", *map(int, astuple(scene)))


def fleet_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that says how big the fleet on its hub is."""
    for name, default, text in (
        ("--workloads", 1_000, "Unfinished Workloads."),
        ("--checks", 200, "Checks, each with a Placement of 10 clusters."),
        ("--clusters", 1_000, "ManagedClusters, each with a Secret."),
    ):
        command = click.option(name, default=default, help=text)(command)
    return command


# -- in the hub's process


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
    from bench.objects import FILLS  # noqa: PLC0415  # only the hub's process needs them

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
