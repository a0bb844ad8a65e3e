"""A worker with Kueue, and a server that never answers."""

import socket
from collections.abc import Iterator

import pytest

from tests.support.driver import Driver
from tests.support.workers import kueue_crds, serving


@pytest.fixture
def worker() -> Iterator[Driver]:
    with serving(crds=kueue_crds("Workload", "LocalQueue")) as driver:
        yield driver


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"
