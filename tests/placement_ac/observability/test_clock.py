"""A clock that is set is noticed, once each time; one that goes is not."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from placement_ac.observability.clock import watch_clock


@pytest.mark.parametrize(("seconds", "noticed"), [(0, 0), (1, 0), (3600, 1), (-3600, 1)])
async def test_a_clock_that_is_set(monkeypatch: pytest.MonkeyPatch, seconds: int, noticed: int) -> None:
    monkeypatch.setattr("placement_ac.observability.clock.CHECK_INTERVAL_SECONDS", 0.02)
    ahead, jumps = [timedelta()], []
    noticing = asyncio.create_task(watch_clock(lambda: datetime.now(UTC) + ahead[0], lambda: jumps.append(1)))
    await asyncio.sleep(0.1)
    ahead[0] = timedelta(seconds=seconds)
    await asyncio.sleep(0.1)
    noticing.cancel()
    assert len(jumps) == noticed
