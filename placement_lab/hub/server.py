"""
`Hub`: a Kubernetes API server in a thread of this process.

The thread runs an event loop, and only that loop accesses the store. The methods of `Hub` may be
called from any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from placement_lab.hub import kinds
from placement_lab.hub.access_control import AccessControl
from placement_lab.hub.api import ApiHandler
from placement_lab.hub.catalog import Catalog
from placement_lab.hub.errors import gone, internal
from placement_lab.hub.faults import Faults, RecordedRequest
from placement_lab.hub.frontend import HttpFrontend
from placement_lab.hub.http_server import ADMIN, HttpServer
from placement_lab.hub.store import Store, StoreChange
from placement_lab.hub.watch import GARBAGE, error_line

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from aiohttp import web

    from placement_lab.hub.admission import Webhook

LAST_LINES: dict[str, bytes] = {
    "close": b"",
    "garbage": GARBAGE,
    "error-410": error_line(gone("too old resource version")),
    "error-500": error_line(internal("the watch was dropped")),
}


class Hub(HttpServer):
    """
    A Kubernetes API server in memory.

    `crds`: the CustomResourceDefinitions to install, None for the bundled ones. `history`: the number of
    changes kept per kind, for watches. `shortest_token_seconds`: the minimum lifetime of a token.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        token: str | None = None,
        crds: Sequence[dict[str, Any]] | None = None,
        history: int = 1000,
        shortest_token_seconds: int = 600,
    ) -> None:
        super().__init__(host, port)
        self.journal: list[RecordedRequest] = []
        self.faults = Faults()
        self._store = Store(history)
        self.access = AccessControl(self._store, shortest_token_seconds)
        self.token = self.access.add(ADMIN, token)
        self._api = ApiHandler(self._store, Catalog(), self.access, self._loop.call_soon)
        self._api.install(kinds.bundled() if crds is None else crds)
        self._frontend = HttpFrontend(self._api, self.faults, self.journal)

    def _handler(self) -> web.Server:
        return self._frontend.server()

    @property
    def watched(self) -> dict[tuple[str, str], int]:
        """The bytes that watches have sent so far, by User-Agent and plural name of the kind."""
        return dict(self._frontend.watched)

    def watchers(self, resource: str) -> int:
        """Return how many watches of a kind, given by its plural name, are open."""
        kinds = tuple(self._store.by_resource.values())
        return sum(len(kind.watchers) for kind in kinds if kind.resource.plural == resource)

    def observe(self, plural: str, notify: Callable[[str, Any], None]) -> None:
        """
        Call `notify` with each changed object of a kind: its name, and None if it was deleted.

        It is called in the hub's thread, before the request that changes the object is answered, also while
        the hub is unreachable. So what follows from a change, on whatever hub, is observed after it.
        """

        def on_change(change: StoreChange | None) -> None:
            if change is not None:  # None: the kind was removed
                notify(change.key[1], change.now.obj if change.now else None)

        def register() -> None:
            for kind in self._store.by_resource.values():
                if kind.resource.plural == plural:
                    kind.watchers[on_change] = None

        self._in_loop(register)

    def add_webhook(self, webhook: Webhook) -> None:
        """Let a function of this process complete new objects and refuse writes, as an admission webhook."""
        self._in_loop(lambda: self._api.writes.admission.webhooks.append(webhook))

    def write_log(self, namespace: str, pod: str, container: str, *lines: str) -> None:
        """Append lines to the log of a container, soon, also while the hub is unreachable."""
        self._loop.call_soon_threadsafe(self._api.logs.write, (namespace, pod, container), lines)

    def end_log(self, namespace: str, pod: str, container: str, *, restarts: bool = False) -> None:
        """End the log of a container that has ended, or that `restarts`, soon."""
        place = namespace, pod, container
        self._loop.call_soon_threadsafe(lambda: self._api.logs.end(place, restarts=restarts))

    def add_user(self, name: str, token: str | None = None, groups: Sequence[str] | None = None) -> str:
        """
        Register a user and return its bearer token.

        Without `groups` the user may do everything (system:masters); with groups, even an empty list,
        the roles in the hub decide.
        """
        return self.access.add(name, token, groups)

    def expire_token(self, token: str) -> None:
        """Reject a user's token with 401 from now on; open watches continue."""
        self.access.expire(token)

    # -- fault injection (for single requests: `faults`)

    def forget_history(self) -> None:
        """Forget all changes: watches from any earlier resourceVersion get 410."""
        self._in_loop(self._store.forget)

    def drop_watches(
        self,
        how: Literal["close", "hang", "garbage", "error-410", "error-500"] = "close",
        resource: str | None = None,
        agent: str | tuple[str, ...] = "",
    ) -> None:
        """
        End all watches, or those of `resource` (a plural name such as "placements"), or those whose
        User-Agent begins with `agent` (or one of them).

        `close`: as after a timeout; `hang`: they stay open, but send no more events; the others send
        half an event or an ERROR event first.
        """

        def drop() -> None:
            for watch, by in tuple(self._frontend.watches.items()):
                if resource in (None, watch.shelf.resource.plural) and by.startswith(agent):
                    watch.hang() if how == "hang" else watch.finish(LAST_LINES[how])

        self._in_loop(drop)

    def repeat_history(self, chance: random.Random, agent: str | tuple[str, ...] = "") -> None:
        """Send all remembered changes to these watches again: each change twice, in random order."""

        def repeat() -> None:
            for watch, by in tuple(self._frontend.watches.items()):
                if by.startswith(agent):
                    watch.replay(chance)

        self._in_loop(repeat)
