"""The figures of the bench of many jobs at once."""

from typing import Any

from bench.real_jobs import Seen


def job(name: str, *, suspend: bool = False) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name}, "spec": {"suspend": suspend}}


def seen_of(*names: str) -> Seen:
    return Seen(created=dict.fromkeys(names, 0.0), wanted=len(names))


def test_a_job_starts_when_it_is_not_suspended_on_a_worker() -> None:
    seen = seen_of("a", "b")
    seen.take_job("worker1", "ADDED", job("a", suspend=True))
    assert seen.figures()["started"] == 0
    seen.take_job("worker1", "MODIFIED", job("a"))
    assert (seen.figures()["started"], seen.all_started.is_set()) == (1, False)
    seen.take_job("worker2", "ADDED", job("b"))
    assert (seen.figures()["started"], seen.all_started.is_set()) == (2, True)


def test_a_job_on_two_workers_is_counted() -> None:
    seen = seen_of("a", "b")
    seen.take_job("worker1", "ADDED", job("a"))
    seen.take_job("worker1", "DELETED", job("a"))
    seen.take_job("worker2", "ADDED", job("a"))
    assert seen.figures()["twice"] == 0
    seen.take_job("worker1", "ADDED", job("a"))
    assert seen.figures()["twice"] == 1


def test_jobs_of_others_are_not_counted() -> None:
    seen = seen_of("a")
    seen.take_job("worker1", "ADDED", job("another"))
    assert seen.figures()["started"] == 0


def test_each_copy_is_counted_once_however_often_it_is_listed() -> None:
    seen = seen_of("a", "b")
    for uid in ("one", "two", "three", "one"):
        seen.take_copy("ADDED", {"metadata": {"uid": uid}})
    assert seen.figures()["copiesPerJob"] == 1.5
