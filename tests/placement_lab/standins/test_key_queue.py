"""The queue of keys to reconcile."""

import asyncio

from placement_lab.standins.key_queue import Key, KeyQueue


def reconciled(*adds: tuple[str, float]) -> list[str]:
    """Add the keys with these delays, and return the keys that were reconciled before the key `end`."""
    found: list[str] = []

    async def play() -> None:
        ended = asyncio.Event()

        async def reconcile(key: Key) -> None:
            found.append(key[0])
            if key == ("end",):
                ended.set()

        queue = KeyQueue("test", reconcile)
        for key, after in adds:
            queue.add((key,), after=after)
        queue.add(("end",), after=0.2)
        running = asyncio.create_task(queue.run())
        await ended.wait()
        running.cancel()

    asyncio.run(play())
    return found[:-1]


def test_a_key_that_is_added_several_times_is_reconciled_once() -> None:
    assert reconciled(("a", 0), ("b", 0), ("a", 0)) == ["a", "b"]


def test_of_several_delays_the_shortest_counts() -> None:
    assert reconciled(("a", 0.1), ("b", 0.06), ("a", 0.02), ("a", 0.08)) == ["a", "b"]
