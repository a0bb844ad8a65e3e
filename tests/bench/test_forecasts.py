"""The bench of forecasts: what a look costs, and for how many jobs the start is known."""

from bench.forecasts import measure
from placement_ac.core.expected_start.estimate import SIMULATION_SECONDS


async def test_of_a_short_queue_the_start_of_each_job_is_said() -> None:
    found = await measure(clusters=3, waiting=30)
    assert (found["known"], found["waiting"]) == (30, 30)
    assert 0 < found["cost"] < SIMULATION_SECONDS
