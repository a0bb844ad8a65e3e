"""A hub that enforces RBAC, its admin, and an account without permissions."""

import pytest

from placement_lab.hub import Hub
from tests.support.hub_client import Client
from tests.support.rights import ACCOUNTS, token_of


@pytest.fixture
def admin(hub: Hub) -> Client:
    return Client(hub)


@pytest.fixture
def account(admin: Client) -> Client:
    """A client of the ServiceAccount `sa` in the namespace `default`, which has no permissions yet."""
    admin.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    return Client(admin.hub, token_of(admin))
