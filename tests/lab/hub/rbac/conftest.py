"""A hub that judges accounts, its admin, and an account that may do nothing yet."""

from collections.abc import Iterator

import pytest

from placement_ac.lab.hub import Hub
from tests.support.hub_client import Client
from tests.support.rights import ACCOUNTS, token_of


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(shortest_token_seconds=1) as hub:
        yield hub


@pytest.fixture
def admin(hub: Hub) -> Client:
    return Client(hub)


@pytest.fixture
def account(admin: Client) -> Client:
    """A client of the ServiceAccount `sa` in the namespace `default`, which may do nothing yet."""
    admin.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    return Client(admin.hub, token_of(admin))
