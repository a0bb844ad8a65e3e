"""
The hub for a measurement: an embedded one in its own process, or the one of a kubeconfig.

`python -m bench.hubs KUBECONFIG [workloads COUNT OURS | fleet CLUSTERS CHECKS WORKLOADS]` serves until its
standard input ends, with the objects of `bench.objects` from the start; each line there is an order (`fill
SCENE`, `down`, `up`, `taken`), answered by a line on standard output. The separate process keeps the hub's
cost out of the measurement.
"""

import asyncio
import gc
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import click

from bench.measure import named
from bench.scene import Ask, Scene, asks, clear, owned_by, prepare, refuse_what_is_in_use
from placement_ac.core.api.constants import PLACEMENT, PLACEMENT_DECISION
from placement_ac.kube.client import Client, Object
from placement_lab.hub import Hub
from placement_lab.hub.api import ApiRequest, ApiResponse

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
        await asyncio.to_thread(self._order, f"fill {json.dumps(asdict(scene))}")

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
        match order.split(maxsplit=1):
            case ["down"]:
                self._hub.go_down()
            case ["up"]:
                self._hub.come_back()
            case ["fill", scene]:
                fill(self._hub, Scene(**json.loads(scene)))
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


def fill(hub: Hub, scene: Scene) -> None:
    """Create the scene by the same requests as over HTTP, but in the hub's own thread."""

    def send(ask: Ask) -> Object:
        call = ApiRequest(
            ask.method,
            ask.path,
            query_string="",
            body=json.dumps(ask.body).encode(),
            content_type=ask.content_type,
            authorization=f"Bearer {hub.token}",
            user_agent=AGENT,
        )
        _, answer = hub._api.handle(call)  # noqa: SLF001  # see above
        assert isinstance(answer, ApiResponse)  # noqa: S101  # none of them is a watch
        if answer.status >= 300:
            raise RuntimeError(f"{ask.path}: {answer.body.decode()}")
        return dict(json.loads(answer.body))

    async def send_all() -> None:
        for few in asks(scene):
            placement: Object = {}
            for ask in few:
                if ask.body.get("kind") == PLACEMENT_DECISION.kind:
                    ask = replace(ask, body=owned_by(ask.body, placement))  # noqa: PLW2901
                answer = send(ask)
                if answer.get("kind") == PLACEMENT.kind:
                    placement = answer

    hub._run(send_all())  # noqa: SLF001  # see above
    gc.collect()
    gc.freeze()  # a garbage collection over 5,000 clusters would count as the API server's time


def _put(hub: Hub, objects: Iterable[Object]) -> None:
    """Write objects to the store of a hub that does not serve yet: over HTTP it would take minutes."""
    store = hub._store  # noqa: SLF001  # see above
    known = {(resource.group, resource.kind): resource for resource in store.by_resource}
    for obj in objects:
        metadata = obj["metadata"]
        resource = known[obj["apiVersion"].rpartition("/")[0], obj["kind"]]
        store.put(resource, (metadata.get("namespace", ""), metadata["name"]), obj)


def _serve(kubeconfig: Path, objects: Iterable[Object]) -> None:
    hub = Hub()
    _put(hub, objects)
    with hub:
        hub.write_kubeconfig(kubeconfig)
        print("ready", flush=True)  # noqa: T201  # whoever has started it waits for that
        serving = _Serving(hub)
        for line in sys.stdin:
            print(serving.obey(line), flush=True)  # noqa: T201  # the answer


def main(kubeconfig: str, kind: str = "", *sizes: str) -> None:
    from bench.objects import FILLS  # noqa: PLC0415  # a hub with a scene needs none of them

    _serve(Path(kubeconfig), FILLS[kind](*map(int, sizes)) if kind else ())


if __name__ == "__main__":
    main(*sys.argv[1:])
