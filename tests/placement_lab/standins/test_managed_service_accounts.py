"""The lifetime of tokens, their subjects, and the time at which OCM's agent renews them."""

import base64
import json

import pytest

from placement_ac.kube.client import Object
from placement_lab.standins.managed_service_accounts import (
    AGENT_NAMESPACE,
    MalformedToken,
    needs_token,
    refresh_at,
    subject_of,
    validity,
)
from placement_lab.standins.multikueue.objects import parse_time

SUBJECT = f"system:serviceaccount:{AGENT_NAMESPACE}:a"
BEGUN, ENDS = "2026-11-21T10:00:00Z", "2026-11-21T10:10:00Z"
STATUS = {"tokenSecretRef": {"name": "a", "lastRefreshTimestamp": BEGUN}, "expirationTimestamp": ENDS}


def token(claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


def secret(text: str) -> Object:
    return {"data": {"token": base64.b64encode(text.encode()).decode()}}


def account(**status: object) -> Object:
    return {"metadata": {"name": "a", "namespace": "w1"}, "spec": {"rotation": {}}, "status": status}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("24h0m0s", 86400.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("1500ms", 1.5), ("", 8640 * 3600.0)],
)
def test_a_validity_is_a_go_duration(asked: str, expected: float) -> None:
    assert validity({"spec": {"rotation": {"validity": asked}}}) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "invalid JWT token format", id="nothing"),
        pytest.param("a.b", "invalid JWT token format", id="two parts"),
        pytest.param("a.b.c", "failed to decode payload", id="no base64"),
        pytest.param("a.aGVsbG8.c", "failed to unmarshal claims", id="no JSON"),
        pytest.param("a._w.c", "failed to unmarshal claims", id="no text"),
        pytest.param(token(["sub"]), "sub claim not found in token claims", id="a list"),
        pytest.param(token({"sub": 1}), "sub claim not found in token claims", id="a number"),
    ],
)
def test_a_malformed_token_has_the_agents_message(text: str, why: str) -> None:
    with pytest.raises(MalformedToken, match=f"^{why}$"):
        subject_of(text)


def test_the_subject_of_a_token() -> None:
    assert subject_of(token({"sub": SUBJECT})) == SUBJECT


def test_a_refresh_is_due_after_four_fifths_of_the_lifetime() -> None:
    assert refresh_at(STATUS) - parse_time(BEGUN) == 480.0


@pytest.mark.parametrize(
    ("status", "found", "passed", "expected"),
    [
        pytest.param(STATUS, secret(token({"sub": SUBJECT})), 480.0, False, id="just not due"),
        pytest.param(STATUS, secret(token({"sub": SUBJECT})), 480.1, True, id="due"),
        pytest.param(STATUS, secret(token({"sub": "someone"})), 0.0, True, id="another's token"),
        pytest.param(STATUS, None, 0.0, True, id="no Secret"),
        pytest.param({}, secret("broken"), 0.0, True, id="nothing reported yet"),
    ],
)
def test_when_a_new_token_is_needed(
    status: Object, found: Object | None, passed: float, expected: bool
) -> None:
    assert needs_token(account(**status), found, parse_time(BEGUN) + passed) is expected


def test_a_malformed_token_is_not_replaced() -> None:
    with pytest.raises(MalformedToken):
        needs_token(account(**STATUS), {}, parse_time(BEGUN))
