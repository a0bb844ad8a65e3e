"""The guard of each write, on a real hub: all that these tests need is one with Kueue's and OCM's CRDs."""

import pytest

from placement_ac.core.api.constants import JOB
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from tests.support.guards import TABLES, THERE, answers, rows
from tests.support.late_writes import LATE_WRITES, landings


@pytest.mark.parametrize("name", [name for name, (kind, _) in TABLES.items() if kind != JOB])
async def test_writes_that_name_a_uid_or_a_version(hub_login: Login, name: str) -> None:
    """Jobs are left out: their controller writes them meanwhile."""
    kind, tables = TABLES[name]
    wanted = rows(tables[kind])
    async with Client(hub_login) as client:
        assert await answers(client, kind, wanted, there=tables is THERE) == wanted


@pytest.mark.parametrize("name", LATE_WRITES)
async def test_where_a_late_write_lands(hub_login: Login, name: str) -> None:
    write = LATE_WRITES[name]
    async with Client(hub_login, field_manager="guard") as client:
        assert await landings(client, write) == write.lands
