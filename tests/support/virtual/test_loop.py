"""The virtual loop: time passes for each timer."""

import asyncio

from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.loop import play


def test_time_passes_while_a_timer_of_less_than_its_resolution_sets_itself_again() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(10):
            await asyncio.sleep(4e-7)
        return loop.time() - began

    assert 1e-6 < play(VirtualKueue(0, {"worker1": 1}), story()) < 1e-4
