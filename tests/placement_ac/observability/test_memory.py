"""Objects that stay are frozen once, and not before everything has been listed."""

import asyncio
import gc
import weakref

import pytest

from placement_ac.observability.memory import freeze_when_complete


class Ring:
    """Holds itself: only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


async def test_memory_is_frozen_once_the_cache_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHECK_INTERVAL_SECONDS", "SETTLE_SECONDS"):
        monkeypatch.setattr(f"placement_ac.observability.memory.{name}", 0.01)
    complete: list[bool] = []

    async def play() -> tuple[int, int]:
        sparing = asyncio.create_task(freeze_when_complete(lambda: bool(complete)))
        await asyncio.sleep(0.05)
        before = gc.get_freeze_count()
        complete.append(True)
        await sparing
        return before, gc.get_freeze_count()

    gc.unfreeze()
    left = weakref.ref(Ring())
    gc.freeze()  # as an earlier session has done
    gc.unfreeze()
    gc.disable()
    try:
        before, after = await play()
    finally:
        gc.enable()
        gc.unfreeze()
    assert before == 0 < after
    assert left() is None, "what an earlier session left was collected first"
