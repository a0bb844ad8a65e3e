"""A rate limit that lets a burst through."""

import pytest

from placement_ac.core.token_bucket import TokenBucket


@pytest.mark.parametrize(
    ("at", "waits"),
    [
        pytest.param([5.0, 5.0], [0.0, 0.0], id="so many at once"),
        pytest.param([5.0, 5.0, 5.0, 5.0], [0.0, 0.0, 0.5, 1.0], id="then at a pace"),
        pytest.param([5.0, 5.0, 5.5, 6.0], [0.0, 0.0, 0.0, 0.0], id="which may be kept"),
        pytest.param([5.0, 5.0, 99.0, 99.0, 99.0], [0.0, 0.0, 0.0, 0.0, 0.5], id="a pause saves no more"),
    ],
)
def test_a_burst_passes_at_once_and_the_rest_at_the_rate(at: list[float], waits: list[float]) -> None:
    bucket = TokenBucket(2.0, 2)
    assert [bucket.reserve(now) for now in at] == waits


@pytest.mark.parametrize("count", [20, 100])
def test_many_requests_take_the_time_of_the_rate(count: int) -> None:
    bucket = TokenBucket(5.0, 10)
    assert max(bucket.reserve(0.0) for _ in range(count)) == (count - 10) / 5
