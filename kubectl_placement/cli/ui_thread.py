"""The page of `placement-ac ui` in a thread, beside something else that plays on the hub."""

import asyncio
import threading
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Self

from kubectl_placement.cli.hub_options import HubSource
from kubectl_placement.cli.ui import start
from kubectl_placement.cli.ui_feed import Feed


class UiThread:
    """Serves the page of a hub as long as the `with` lasts; `url` is its address."""

    def __init__(self, kubeconfig: Path, port: int = 0, prometheus: str = "") -> None:
        self.url, self._prometheus = "", prometheus
        self._where, self._port = HubSource(kubeconfig=kubeconfig), port
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ui", daemon=True)

    def __enter__(self) -> Self:
        """Raises what the hub or the port refuses."""
        self._thread.start()
        self._started.wait()
        if self._failure:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._failure:
            raise self._failure

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # raised again in the caller's thread
            self._failure = error
        finally:
            self._loop.close()
            self._started.set()

    async def _serve(self) -> None:
        async with AsyncExitStack() as stack:
            feed = Feed(self._where, self._prometheus)
            stack.callback(feed.close)
            self.url = await start(stack, feed, self._port, self._stop)
            self._started.set()
            await self._stop.wait()
