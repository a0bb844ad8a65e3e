"""The annotation that announces maintenance."""

from datetime import UTC, datetime, timedelta

import pytest

from placement_ac.core.api.constants import ANNOTATION_MAINTENANCE
from placement_ac.core.maintenance.window import MaintenanceWindow, parse_window

SIX = datetime(2026, 11, 26, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        pytest.param("2026-11-26T18:00:00Z", MaintenanceWindow(SIX), id="UTC"),
        pytest.param("2026-11-26T19:00:00+01:00", MaintenanceWindow(SIX), id="another zone"),
        pytest.param("2026-11-26T18:00:00Z,force", MaintenanceWindow(SIX, True), id="with force"),
        pytest.param(" 2026-11-26T18:00:00Z , force ", MaintenanceWindow(SIX, True), id="blanks"),
    ],
)
def test_a_window(text: str, window: MaintenanceWindow) -> None:
    assert parse_window(text) == window
    assert parse_window(str(window)) == window


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("18:00", id="an hour"),
        pytest.param("2026-11-26T18:00:00", id="without a zone"),
        pytest.param("soon", id="a word"),
        pytest.param("2026-11-26T18:00:00Z,", id="nothing after the comma"),
        pytest.param("2026-11-26T18:00:00Z,please", id="something else after it"),
        pytest.param("0001-01-01T00:00:00+14:00", id="before the first year"),
        pytest.param("9999-12-31T23:59:59-14:00", id="after the last year"),
    ],
)
def test_another_text_is_a_problem_that_names_the_annotation(text: str) -> None:
    problem = parse_window(text)
    assert isinstance(problem, str)
    assert problem.startswith(f"correct the annotation {ANNOTATION_MAINTENANCE}: ")
    assert problem.endswith("is ignored")


def test_the_time_that_is_left() -> None:
    window = MaintenanceWindow(SIX)
    before, after = SIX - timedelta(seconds=90), SIX + timedelta(seconds=90)
    assert [window.seconds_left(now) for now in (before, SIX, after)] == [90.0, 0.0, 0.0]
    assert [window.has_begun(now) for now in (before, SIX, after)] == [False, True, True]
