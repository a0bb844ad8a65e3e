"""The virtual loop: time passes for each timer."""

import asyncio

from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.loop import play


def test_time_passes_before_a_timer_of_less_than_its_resolution() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        began, fired = loop.time(), loop.create_future()
        loop.call_at(began + 4e-7, lambda: fired.set_result(loop.time()))
        for _ in range(3):
            await asyncio.sleep(0)  # as long as there is work, no time passes
        assert not fired.done()
        return float(await fired) - began

    assert 0 < play(VirtualKueue(0, {"worker1": 1}), story()) < 1e-4
