"""A tiny run of the bench of the set-up of workers: each ManifestWork is written once per change."""

import asyncio

from bench.worker_setup import measure


def test_a_change_costs_one_write_for_each_cluster() -> None:
    figures = asyncio.run(measure(4, per_placement=2, rest=1.0))
    assert [figures[part]["writes"] for part in ("coldStart", "anotherLocalQueue")] == [4, 4]
