"""The hub's queues are read once, however many ask for them at the same time."""

import asyncio

from placement_ac.kube.client import Client
from placement_ac.workers.queries import HubLocalQueues
from tests.support.admin import login_to
from tests.support.driver import Driver


async def test_questions_at_the_same_time_share_one_answer(admin: Driver) -> None:
    async with Client(login_to(admin.hub)) as client:
        queues = HubLocalQueues(client)
        since = len(admin.hub.journal)
        await queues.for_checks(["p"])
        once = [request.path for request in admin.hub.journal[since:]]
        since, again = len(admin.hub.journal), HubLocalQueues(client)
        await asyncio.gather(*(again.for_checks(["p"]) for _ in range(100)))
        assert sorted(request.path for request in admin.hub.journal[since:]) == sorted(once)
