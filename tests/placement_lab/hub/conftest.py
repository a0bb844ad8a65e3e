"""An embedded hub for each test, and a client for it."""

from collections.abc import Iterator

import pytest

from placement_lab.hub import Hub
from tests.support.hub_client import Client
from tests.support.real_hub import HubMaker


@pytest.fixture
def hub(a_hub: HubMaker) -> Iterator[Hub]:
    with a_hub() as hub:
        yield hub


@pytest.fixture
def client(hub: Hub) -> Client:
    return Client(hub)
