"""Whether expected starts held."""

from datetime import timedelta

import pytest

from placement_ac.core.expected_start.model import ExpectedStart, Interval, Unknown
from placement_ac.core.expected_start.outcomes import Forecast, Forecasts, result_of
from tests.support.builders import NOW

SOON = Interval(60.0, 120.0, 30.0)


def later(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("expected", "seconds", "result"),
    [
        pytest.param(SOON, 10, "early", id="before p10"),
        pytest.param(SOON, 30, "held", id="at p10"),
        pytest.param(SOON, 120, "held", id="at p90"),
        pytest.param(SOON, 121, "late", id="after p90"),
        pytest.param(Unknown("why"), 10, "unknown", id="nothing was said"),
    ],
)
def test_the_result_of_a_forecast(expected: ExpectedStart, seconds: float, result: str) -> None:
    assert result_of(Forecast(NOW, expected), NOW + later(seconds)) == result


def test_the_first_forecast_counts_and_each_is_counted_once() -> None:
    forecasts = Forecasts()
    forecasts.give({"x": SOON}, NOW)
    forecasts.give({"x": Unknown("why")}, NOW + later(60))
    assert forecasts.take_results(["x"], {}) == {}
    assert forecasts.take_results([], {"x": NOW + later(90)}) == {"held": 1}
    assert forecasts.take_results([], {"x": NOW + later(90)}) == {}


def test_a_job_that_is_gone_is_forgotten() -> None:
    forecasts = Forecasts()
    forecasts.give({"x": SOON}, NOW)
    assert forecasts.take_results([], {}) == {}
    assert not forecasts.known("x")
