"""The limit on Kueue's requests to one worker."""

import pytest

from placement_ac.lab.standins.multikueue import TokenBucket


def waits(bucket: TokenBucket, *times: float) -> list[float]:
    return [round(bucket.reserve(now), 6) for now in times]


def test_a_burst_passes_at_once_and_then_five_a_second() -> None:
    assert waits(TokenBucket(), *[0.0] * 13) == [0.0] * 10 + [0.2, 0.4, 0.6]


def test_after_a_pause_the_burst_is_there_again_but_no_more() -> None:
    bucket = TokenBucket(qps=5, burst=2)
    assert waits(bucket, 0, 0, 0) == [0, 0, 0.2]
    assert waits(bucket, 60, 60, 60) == [0, 0, 0.2]


@pytest.mark.parametrize("count", [20, 100])
def test_many_requests_take_the_time_of_the_rate(count: int) -> None:
    assert max(waits(TokenBucket(), *[0.0] * count)) == (count - 10) / 5
