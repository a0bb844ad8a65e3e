"""
Print the logs of a job's containers once, in order.

Some are read at the same time, each at most a few blocks ahead, so that memory does not grow with the logs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from kubectl_placement.access.log_query import LineSplitter, LogQuery
from kubectl_placement.access.open import PODS
from kubectl_placement.access.pod_choice import Container
from placement_ac.core.api.errors import ApiError
from placement_ac.kube.client import Client

Write = Callable[[Container, bytes], None]
"""Gets a block of whole lines."""
Fail = Callable[[Container, ApiError], None]
"""Gets why the rest of a log cannot be read."""

AT_ONCE: Final = 16
BLOCKS_AHEAD: Final = 2
_Block = bytes | ApiError | None


async def blocks_of(
    client: Client, namespace: str, container: Container, query: LogQuery, *, follow: bool = False
) -> AsyncIterator[bytes]:
    """Yield a container's log in blocks of whole lines. Raises ApiError."""
    path = PODS.path(namespace, container.pod, "log")
    lines = LineSplitter()
    async for part in client.stream(path, query.parameters(container.name, follow=follow)):
        if block := lines.add(part):
            yield block
    if rest := lines.end():
        yield rest


async def print_logs(
    client: Client,
    namespace: str,
    containers: Iterable[Container],
    query: LogQuery,
    write: Write,
    fail: Fail,
) -> None:
    """Give all logs to `write`, one container after the other; `fail` gets each that cannot be read."""
    waiting = list(containers)
    running: list[tuple[Container, asyncio.Queue[_Block], asyncio.Task[None]]] = []
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                container = waiting.pop(0)
                queue: asyncio.Queue[_Block] = asyncio.Queue(BLOCKS_AHEAD)
                reading = asyncio.create_task(_read(client, namespace, container, query, queue))
                running.append((container, queue, reading))
            container, queue, _ = running[0]
            block = await queue.get()
            if isinstance(block, bytes):
                write(container, block)
                continue
            if block is not None:
                fail(container, block)
            running.pop(0)
    finally:
        for _, _, reading in running:
            reading.cancel()
        await asyncio.gather(*(reading for _, _, reading in running), return_exceptions=True)


async def _read(
    client: Client, namespace: str, container: Container, query: LogQuery, queue: asyncio.Queue[_Block]
) -> None:
    try:
        async for block in blocks_of(client, namespace, container, query):
            await queue.put(block)
    except ApiError as error:
        await queue.put(error)
    else:
        await queue.put(None)
