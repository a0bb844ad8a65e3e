"""A write that names a uid or a resourceVersion is refused where a real API server refuses it."""

import pytest

from placement_ac.kube.client import Client
from placement_lab.hub import Hub
from tests.support.admin import login_to
from tests.support.guards import TABLES, THERE, answers, rows


@pytest.mark.parametrize("name", TABLES)
async def test_writes_that_name_a_uid_or_a_version(hub: Hub, name: str) -> None:
    kind, tables = TABLES[name]
    wanted = rows(tables[kind])
    async with Client(login_to(hub)) as client:
        assert await answers(client, kind, wanted, there=tables is THERE) == wanted
