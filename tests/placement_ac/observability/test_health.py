"""The health pages report what was received, and when. The tests set the clock."""

import asyncio
import io
import re
import time
from contextlib import redirect_stderr

import pytest

from placement_ac.core.api.errors import ApiError, Refused, TlsFailed, Unavailable
from placement_ac.observability import health as constants
from placement_ac.observability import logs
from placement_ac.observability.health import Health, HealthCheck
from placement_ac.observability.watchdog import watch_event_loop


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Life:
    """A session with two watches, `a` and `b`, that time is played to."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.health = Health(self.clock)
        self.watches = self.health.begin_session(["a", "b"])

    def passes(self, seconds: float, *heard: str, server: bool = True) -> None:
        """Let time pass, the loop turning; so often as it does in life, `heard` hear something."""
        for _ in range(round(seconds / 10)):
            for _ in range(10):
                self.clock.now += 1
                self.health.note_loop_turn()
            self.health.request_sent()
            if server:
                self.health.request_answered()
            for name in heard:
                self.watches[name].received()

    def problems(self) -> dict[str, str]:
        return {check.name: check.problem for check in self.health.liveness() if check.problem}


@pytest.fixture
def life() -> Life:
    return Life()


def test_watches_that_hear_something_are_alive(life: Life) -> None:
    life.passes(1000, "a", "b")
    assert life.health.liveness() == [
        HealthCheck("loop"),
        HealthCheck("session"),
        HealthCheck("tls"),
        HealthCheck("watch a"),
        HealthCheck("watch b"),
    ]
    assert life.health.lost_watches() == []


def test_a_watch_that_alone_hears_nothing_is_first_begun_anew_and_then_reported(life: Life) -> None:
    life.passes(constants.REVIVE_SECONDS, "a")
    assert (life.health.lost_watches(), life.problems()) == ([], {})
    life.passes(10, "a")
    assert (life.health.lost_watches(), life.problems()) == (["b"], {})
    life.watches = life.health.begin_session(["a", "b"])
    assert life.health.lost_watches() == []
    life.passes(constants.DEAD_SECONDS - constants.REVIVE_SECONDS, "a")
    assert life.problems() == {"watch b": "nothing received for 430s"}
    life.watches["b"].received()
    assert (life.health.lost_watches(), life.problems()) == ([], {})


def test_an_api_server_that_is_away_is_no_reason_for_a_restart(life: Life) -> None:
    life.passes(1000, "a", "b")
    life.passes(1000, server=False)
    assert (life.health.lost_watches(), life.problems()) == ([], {})
    note = "the API server has not answered for 1000s; a restart would not help"
    assert life.health.liveness()[-1] == HealthCheck("watch b", note=note)


REFUSED = TlsFailed("GET /api: certificate verify failed")


def tls_fails(life: Life, seconds: float) -> None:
    for _ in range(round(seconds / 10)):
        life.health.request_failed(REFUSED)
        life.passes(10, server=False)
    life.health.request_failed(REFUSED)


def test_an_api_server_whose_certificate_is_refused_is_a_reason_for_a_restart(life: Life) -> None:
    for watch in life.watches.values():
        watch.list_completed()
    tls_fails(life, constants.TLS_FAILED_SECONDS)
    assert life.problems() == {}
    tls_fails(life, 10)
    problem = "every request has failed with a TLS error for 70s; a restart reads the CA again"
    assert life.problems() == {"tls": problem}
    assert HealthCheck("tls", problem) in life.health.readiness()
    assert life.health.liveness()[-1] == HealthCheck(
        "watch b", note="the API server has not answered for 70s"
    )
    life.health.request_answered()
    assert life.problems() == {}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Unavailable("GET /api: no answer in time"), id="away"),
        pytest.param(Refused("forbidden", status=403), id="answered"),
    ],
)
def test_one_request_that_ends_otherwise_is_enough_to_go_on(life: Life, other: ApiError) -> None:
    tls_fails(life, 50)
    life.health.request_failed(other)
    tls_fails(life, 50)
    assert life.problems() == {}


def test_after_an_outage_each_watch_has_its_time_again(life: Life) -> None:
    life.passes(1000, server=False)
    life.passes(constants.REVIVE_SECONDS - 10, "a")
    assert life.health.lost_watches() == []
    life.passes(30, "a")
    assert life.health.lost_watches() == ["b"]


def test_a_watch_that_the_next_session_lacks_is_forgotten(life: Life) -> None:
    life.passes(500, "a")
    life.health.begin_session(["a"])
    assert life.problems() == {}


def test_a_controller_that_asks_nothing_any_more_is_reported(life: Life) -> None:
    life.clock.now += constants.NO_REQUEST_SECONDS + 1
    life.health.note_loop_turn()
    assert life.problems()["session"] == "no request to the API server for 151s"
    life.health.request_failed(Unavailable("no connection"))
    assert "session" not in life.problems()


def test_a_loop_that_does_not_turn_is_reported_and_for_a_moment_after(life: Life) -> None:
    life.clock.now += 40
    assert life.problems() == {"loop": "has not turned for 40s"}
    life.health.note_loop_turn()
    assert life.problems() == {"loop": "turned 39s late"}
    life.passes(20)
    assert life.problems() == {}


def test_ready_is_who_has_listed_everything_in_this_session(life: Life) -> None:
    assert Health().readiness()[0] == HealthCheck("session", "no request to the hub yet")
    life.watches["a"].list_completed()
    life.watches["b"].request_failed(Refused("b is forbidden", status=403))
    assert life.health.readiness() == [
        HealthCheck("session"),
        HealthCheck("tls"),
        HealthCheck("list a"),
        HealthCheck("list b", "not listed yet: b is forbidden"),
    ]
    life.watches["b"].list_completed()
    life.passes(1000, server=False)
    assert not any(check.problem for check in life.health.readiness())
    life.health.no_session("the session has ended")
    assert life.health.readiness()[0] == HealthCheck("session", "the session has ended")
    life.health.begin_session(["a"])
    assert life.health.readiness()[0] == HealthCheck("session")
    assert life.health.readiness()[2:] == [HealthCheck("list a", "not listed yet")]


async def _block(health: Health) -> None:
    async with watch_event_loop(health):
        await asyncio.sleep(0)
        time.sleep(0.6)  # noqa: ASYNC251  # what is tested: the loop is blocked


async def test_a_blocked_loop_is_reported_in_the_log_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.observability.watchdog.BLOCKED_SECONDS", 0.2)
    log = io.StringIO()
    with redirect_stderr(log):
        logs.configure("text", "error")
        await _block(Health())
    logs.configure("text", "error")
    assert log.getvalue().count("the event loop is blocked") == 1
    assert re.search(r"test_health\.py:\d+ _block", log.getvalue())
