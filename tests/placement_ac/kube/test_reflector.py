"""There is one way to follow a hub, and it spares a server that ends each watch at once."""

import ast
import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.constants import WORKLOAD
from placement_ac.kube.reflector import Reflector

ROOT = Path(__file__).parents[3]
PACKAGES = ("placement_ac", "kubectl_placement", "placement_lab")


def opens_a_watch(path: Path) -> bool:
    """Whether a file calls the `watch` of a client."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
    return any(
        isinstance(call, ast.Attribute)
        and call.attr == "watch"
        and ast.unparse(call.value).endswith(("client", "_client"))
        for call in calls
    )


def test_only_the_reflector_follows_a_kind() -> None:
    """The election waits for changes of one Lease; the stand-in for Kueue reads its first list by a watch."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert sorted(str(path.relative_to(ROOT)) for path in paths if opens_a_watch(path)) == [
        "placement_ac/controller/lease.py",
        "placement_ac/kube/reflector.py",
        "placement_lab/standins/informer.py",
    ]


class EndsAtOnce:
    """A server that ends each watch `after` so many seconds, with these events before."""

    def __init__(self, *events: str, after: float = 0.0) -> None:
        self.events, self.after = events, after
        self.began: list[float] = []

    async def watch(self, *_: Any) -> AsyncGenerator[tuple[str, Any]]:
        self.began.append(asyncio.get_running_loop().time())
        for change in self.events:
            yield change, {"metadata": {"resourceVersion": "2"}}
        await asyncio.sleep(self.after)

    async def pauses(self) -> list[float]:
        """Follow it for a minute; return the seconds between the beginnings of its watches."""
        client: Any = self
        follows = Reflector(client, WORKLOAD.at("v1beta2"), version="1").follow()
        async with asyncio.timeout(60):
            async for _ in follows:
                pass
        raise AssertionError


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("server", "pauses"),
    [
        pytest.param(EndsAtOnce(), [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0], id="at once"),
        pytest.param(EndsAtOnce("BOOKMARK"), [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0], id="after a bookmark"),
        pytest.param(EndsAtOnce("ADDED"), [0.2] * 7, id="after an event"),
        pytest.param(EndsAtOnce(after=1.5), [1.5] * 7, id="later"),
    ],
)
async def test_watches_that_end_at_once_are_opened_again_ever_later(
    server: EndsAtOnce, pauses: list[float]
) -> None:
    """They were opened again every 0.2 s, without an end."""
    with pytest.raises(TimeoutError):
        await server.pauses()
    found = [later - earlier for earlier, later in zip(server.began, server.began[1:], strict=False)]
    assert [round(pause, 1) for pause in found[:7]] == pauses
