"""A tiny run of the bench of nominations."""

import asyncio

import pytest

from bench.nominations import measure


@pytest.mark.long
def test_a_tiny_run_nominates_each_workload_once() -> None:
    figures = asyncio.run(measure("spread", singles=4, burst=20, unplaced=6))
    assert (figures["unplaced"], figures["burst"], figures["mostNominationsOfOne"]) == (6, 20, 1)
    assert figures["kueue"] == "takes no part"
    assert 0 < figures["p50Ms"] <= figures["p99Ms"]
