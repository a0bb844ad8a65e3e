"""The meaning of an API server's answers."""

from typing import Any

import pytest

from placement_ac.core.api.errors import ApiError, Conflict, Refused
from placement_ac.kube.responses import error_of


def status(**details: Any) -> dict[str, Any]:
    return {"kind": "Status", "message": "no", "reason": "Invalid", "details": details}


@pytest.mark.parametrize(
    ("body_text", "kind"),
    [
        pytest.param(status(causes=[{"field": "metadata.uid"}]), Conflict, id="another object by now"),
        pytest.param(status(causes=[{"field": "metadata.resourceVersion"}]), Conflict, id="exists by now"),
        pytest.param(status(causes=[{"field": "spec.clusters"}]), Refused, id="a field"),
        pytest.param(status(causes=[None]), Refused, id="no cause"),
        pytest.param(status(causes="?"), Refused, id="no causes"),
        pytest.param({"details": []}, Refused, id="no details"),
        pytest.param("Bad Gateway", Refused, id="no Status"),
    ],
)
def test_a_422(body_text: object, kind: type[ApiError]) -> None:
    assert type(error_of(422, body_text, "PATCH /x")) is kind


@pytest.mark.parametrize(
    ("given", "reason"),
    [("Forbidden", "Forbidden"), ("denied: token eyJhbGci", ""), (["Forbidden"], ""), (None, "")],
)
def test_only_known_reasons_are_quoted(given: object, reason: str) -> None:
    assert error_of(403, {"kind": "Status", "reason": given}, "PATCH /x").reason == reason


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("1.5", 1.5),
        ("60", 60.0),
        ("3600", 60.0),
        ("inf", 60.0),
        ("-1", 0.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        (None, None),
    ],
)
def test_a_retry_after_is_kept_up_to_a_minute(header: str | None, seconds: float | None) -> None:
    assert error_of(429, None, "GET /x", header).retry_after == seconds
