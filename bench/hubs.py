"""
The hub for a measurement: an embedded one in its own process, or the one of a kubeconfig.

`python -m bench.hubs KUBECONFIG` serves until its standard input ends; each line there is a command (`fill
SCENE`, `down`, `up`, `taken`), answered by a line on standard output. The separate process keeps
the hub's cost out of the measurement.
"""

import asyncio
import gc
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

import click

from bench.clearing import clear, refuse_what_is_in_use
from bench.figures import named
from bench.scene import Ask, Scene, asks, owned_by, prepare
from placement_ac.core.api.constants import PLACEMENT, PLACEMENT_DECISION
from placement_ac.kube.client import Client, Object
from placement_lab.hub import Hub
from placement_lab.hub.api import ApiRequest, ApiResponse

AGENT = "bench"
"""The User-Agent of the bench itself."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The requests to a hub and the bytes of its watches, except those of the bench itself."""

    requests: Mapping[str, int] = field(default_factory=dict)
    """Number of requests by name."""
    watched: Mapping[str, int] = field(default_factory=dict)
    """Bytes sent by watches, by kind."""


class Bench(Protocol):
    """A hub for a measurement."""

    kubeconfig: Path

    async def check(self, client: Client) -> None:
        """Raise ClickException for a hub that is in use."""

    async def fill(self, client: Client, scene: Scene) -> None:
        """Create a scene; objects of an earlier one are deleted."""

    async def clear(self, client: Client) -> None:
        """Delete the scene and everything created for it."""

    def down(self) -> bool:
        """Make the hub unreachable; False: not possible with this hub."""

    def up(self) -> None:
        """Make the hub reachable again, with all its objects."""

    def taken(self) -> Taken | None:
        """Return the requests and bytes since the last call; None: the hub does not count them."""


class Ours:
    """An embedded hub in its own process, which ends with it."""

    def __init__(self, kubeconfig: Path, process: "subprocess.Popen[str]") -> None:
        self.kubeconfig = kubeconfig
        self._process = process
        self.pid = process.pid

    def until_ready(self) -> None:
        if self._answer() != "ready\n":
            raise click.ClickException("the hub did not start")

    async def check(self, _: Client) -> None:
        return

    async def fill(self, _: Client, scene: Scene) -> None:
        await asyncio.to_thread(self._order, f"fill {json.dumps(asdict(scene))}")

    async def clear(self, _: Client) -> None:
        return

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
        line = self._process.stdout.readline()
        if not line:
            raise click.ClickException("the hub has ended")
        return line


class Theirs:
    """The hub of a kubeconfig. The namespace stays: not every hub has a controller that deletes it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    async def check(self, client: Client) -> None:
        await refuse_what_is_in_use(client)

    async def fill(self, client: Client, scene: Scene) -> None:
        await clear(client)
        await prepare(client, scene)

    async def clear(self, client: Client) -> None:
        await clear(client)

    def down(self) -> bool:
        return False

    def up(self) -> None:
        return

    def taken(self) -> None:
        return None


@contextmanager
def embedded(kubeconfig: Path) -> Iterator[Ours]:
    """Run an embedded hub that writes its kubeconfig; callers wait with `until_ready`."""
    command = [sys.executable, "-m", "bench.hubs", str(kubeconfig)]
    with subprocess.Popen(  # noqa: S603  # our own
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            yield Ours(kubeconfig, process)
        finally:
            if process.stdin:
                process.stdin.close()


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

    def send(one: Ask) -> Object:
        _, answer = hub._api.handle(_call(one, hub.token))  # noqa: SLF001  # see above
        assert isinstance(answer, ApiResponse)  # noqa: S101  # none of them is a watch
        if answer.status >= 300:
            raise RuntimeError(f"{one.path}: {answer.body.decode()}")
        return dict(json.loads(answer.body))

    async def ask() -> None:
        for few in asks(scene):
            placement: Object = {}
            for one in few:
                if one.body.get("kind") == PLACEMENT_DECISION.kind:
                    one = replace(one, body=owned_by(one.body, placement))  # noqa: PLW2901
                answer = send(one)
                if answer.get("kind") == PLACEMENT.kind:
                    placement = answer

    hub._run(ask())  # noqa: SLF001  # see above
    gc.collect()
    gc.freeze()  # a garbage collection over 5,000 clusters would count as the API server's time


def _call(ask: Ask, token: str) -> ApiRequest:
    return ApiRequest(
        ask.method,
        ask.path,
        query_string="",
        body=json.dumps(ask.body).encode(),
        content_type=ask.content_type,
        authorization=f"Bearer {token}",
        user_agent=AGENT,
    )


def _serve(kubeconfig: Path) -> None:
    with Hub() as hub:
        hub.write_kubeconfig(kubeconfig)
        _answer("ready")
        serving = _Serving(hub)
        for line in sys.stdin:
            _answer(serving.obey(line))


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
