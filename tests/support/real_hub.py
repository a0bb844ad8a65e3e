"""
`RealHub`: an API server that all tests share, behind the proxy of the tests, in place of `Hub`.

A test that needs what only the embedded hub has is skipped.
"""

import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

import pytest

from placement_lab.hub import Hub
from tests.support.envtest import admin_session
from tests.support.installed_crds import InstalledCrds
from tests.support.proxy import Proxy, Upstream

Object = dict[str, Any]

HubMaker = Callable[..., AbstractContextManager[Hub]]
"""Makes a `Hub` with these options; on a shared API server it is that one, cleared."""

EMBEDDED_ONLY = {
    "history": "an API server keeps its history for minutes, not for a number of changes",
    "shortest_token_seconds": "an API server issues no token for less than 10 minutes",
}
"""Options of `Hub` that an API server does not have, and why."""


class ApiServer(Protocol):
    """
    A running API server: where it listens, and the token of its admin. `ca_file`: None for http.

    `rbac_lag`: the seconds after which a changed role counts.
    """

    @property
    def url(self) -> str: ...

    @property
    def token(self) -> str: ...

    @property
    def ca_file(self) -> Path | None: ...

    @property
    def rbac_lag(self) -> float: ...

    def wipe(self) -> None:
        """Delete every object that did not exist at the start, but no CRD."""


class RealHub(Proxy):
    """An API server behind the proxy. `crds`: the CRDs that a test finds unless it wants others."""

    def __init__(self, server: ApiServer, crds: Sequence[Object]) -> None:
        tls = ssl.create_default_context(cafile=server.ca_file) if server.ca_file else None
        super().__init__(Upstream(server.url, server.token, tls, server.rbac_lag))
        self._server, self._published = server, crds
        self._admin = admin_session(server.token, server.ca_file)
        self._crds = InstalledCrds(self._admin, server.url)
        self._is_used = False

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        pytest.skip(f"an API server in another process has no Hub.{name}")

    def stop(self) -> None:
        if self._is_used:
            pytest.skip("an API server for all tests is not stopped by one of them")
        self._admin.close()
        super().stop()

    @contextmanager
    def cleared(
        self, *, crds: Sequence[Object] | None = None, token: str | None = None, **others: object
    ) -> Iterator[Hub]:
        """Yield this hub without the objects, users, faults and requests of other tests, with these CRDs."""
        for option in others:
            pytest.skip(EMBEDDED_ONLY[option])
        assert not self._is_used, "there is one API server for all tests: make a second hub with Hub(…)"
        self._is_used = True
        try:
            self.wipe(self._published if crds is None else crds, token)
            yield cast("Hub", self)
        finally:
            self._is_used = False

    def wipe(self, crds: Sequence[Object], token: str | None = None) -> None:
        """Delete what tests have added, and restore the CRDs."""
        self.reset(token)
        self._server.wipe()
        self._crds.restore(crds)
        self.journal.clear()
