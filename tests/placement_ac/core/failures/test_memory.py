"""The memory of failed jobs: shares, quarantines, and which jobs avoid a cluster."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from placement_ac.core.failures.ends import Cause, End
from placement_ac.core.failures.memory import FailureMemory

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
AVOID = 600.0
GOOD, BAD, EVICTED = Cause.FINISHED, Cause.FAILED_EARLY, Cause.EVICTED


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def end(at: float, cause: Cause = BAD, job: str = "", worker: str = "w", ran: float = 0.5) -> End:
    """An end so many minutes after NOW; each is of a job of its own, unless `job` says so."""
    when = NOW + minutes(at)
    return End(when, worker, f"{worker} {at} {job}", job or f"{worker} {at}", cause, when - minutes(ran))


def memory(*ends: End) -> FailureMemory:
    remembered = FailureMemory(AVOID)
    for one in ends:
        remembered.take(one)
    return remembered


def failing(*ends: End, at: float = 0.0) -> dict[str, tuple[int, int, datetime]]:
    found = memory(*ends).failing(NOW + minutes(at))
    return {worker: (it.bad, it.total, it.retry_at) for worker, it in found.items()}


FIVE = tuple(end(at) for at in range(5))


def test_four_ends_say_nothing_and_the_fifth_quarantines() -> None:
    assert failing(*FIVE[:4]) == {}
    assert failing(*FIVE) == {"w": (5, 5, NOW + minutes(14))}
    assert memory(*FIVE[:4]).reliability(NOW) == {}
    assert memory(*FIVE).reliability(NOW + minutes(5)) == {"w": 0.0}


def test_a_third_of_the_ends_is_not_enough_and_older_ones_weigh_less() -> None:
    mostly_good = [end(at, BAD if at % 3 == 2 else GOOD) for at in range(30)]
    assert failing(*mostly_good) == {}
    old_and_good = [end(at, GOOD) for at in range(10)]
    new_and_bad = [end(50 + at) for at in range(5)]
    assert failing(*old_and_good, *new_and_bad) == {"w": (3, 13, NOW + minutes(62))}  # the third one
    assert memory(*old_and_good).reliability(NOW + minutes(59)) == {"w": 1.0}


def test_the_job_that_tries_a_cluster_says_whether_it_has_recovered() -> None:
    assert failing(*FIVE, end(15, GOOD, ran=10)) == {}  # placed after the last failure
    assert failing(*FIVE, end(15, GOOD, ran=60)) == failing(*FIVE)  # it has been there since before
    twice = failing(*FIVE, end(15))
    assert twice == {"w": (6, 6, NOW + minutes(35))}
    assert failing(*FIVE, end(15), end(36)) == {"w": (7, 7, NOW + minutes(36 + 40))}


def test_jobs_that_were_there_already_do_not_double_the_wait() -> None:
    assert failing(*FIVE, end(5), end(6)) == failing(*FIVE)


def test_the_wait_is_two_hours_at_most_and_a_cluster_without_jobs_is_forgotten() -> None:
    ends, at = list(FIVE), 4.0
    for wait in (10, 20, 40, 80, 120, 120):
        at += wait + 1
        ends.append(end(at))
    assert failing(*ends, at=at) == {"w": (11, 11, NOW + minutes(at + 120))}
    assert failing(*ends, at=at + 241) == {}


def test_a_job_that_fails_on_two_clusters_counts_against_none() -> None:
    there = [end(at, job=f"j{at}") for at in range(5)]
    elsewhere = [end(10 + at, job=f"j{at}", worker="v") for at in range(5)]
    assert list(failing(*there)) == ["w"]
    assert failing(*there, elsewhere[0]) == {}
    assert failing(*there, *elsewhere) == {}
    is_well = end(20, GOOD, "j0", worker="u")
    assert failing(*there, *elsewhere[:1], is_well).keys() == {"w"}  # j0 is well elsewhere
    assert failing(*elsewhere[:1], *there, end(21, GOOD, "j0", "u")).keys() == {"w"}


def test_a_job_goes_last_to_a_cluster_for_twice_as_long_after_each_failure() -> None:
    def until(*ends: End, at: float) -> dict[str, datetime]:
        return memory(*ends).avoided("j", NOW + minutes(at))

    first, second = end(0, job="j"), end(11, EVICTED, job="j")
    assert until(first, at=9) == {"w": NOW + minutes(10)}
    assert until(first, at=11) == {}
    assert until(first, second, at=12) == {"w": NOW + minutes(31)}
    often = [end(at * 200, job="j") for at in range(9)]
    assert until(*often, at=1601) == {"w": NOW + minutes(1600 + 120)}
    assert until(end(0, GOOD, job="j"), at=1) == {}


def again(ends: Iterable[End]) -> list[End]:
    return [one for one in ends for _ in range(2)]


@pytest.mark.parametrize(
    ("first", "second", "is_new"),
    [
        (end(0, EVICTED, "j"), end(0, EVICTED, "j"), False),
        (end(0, EVICTED, "j"), end(0, EVICTED, "j")._replace(at=NOW + minutes(3), is_over=True), False),
        (end(0, EVICTED, "j"), end(0, EVICTED, "j")._replace(at=NOW + minutes(3)), True),
        (end(0, EVICTED, "j"), end(0, EVICTED, "k"), True),
    ],
    ids=["seen again", "it has quota again", "once more", "another job"],
)
def test_an_end_counts_once(first: End, second: End, is_new: bool) -> None:
    remembered = memory(first)
    assert remembered.take(second) is is_new


def test_a_copy_and_another_order_come_to_the_same() -> None:
    ends = [*FIVE, end(15), *(end(at, GOOD, worker="v") for at in range(7))]
    wanted = memory(*ends).failing(NOW)
    assert memory(*ends).copy().failing(NOW) == wanted
    assert memory(*reversed(again(ends))).failing(NOW) == wanted
