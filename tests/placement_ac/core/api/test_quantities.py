"""Kubernetes quantities as numbers, in thousandths, and as text again."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.quantities import LARGEST, exact, format_milli, milli


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1000),
        (2, 2000),
        (0.5, 500),
        ("500m", 500),
        ("0.1", 100),
        ("1.", 1000),
        (".5", 500),
        ("-1", -1000),
        ("2k", 2_000_000),
        ("1Ki", 1_024_000),
        ("1.5Gi", 3 * 2**29 * 1000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("1E", 10**21),
        ("8Ei", LARGEST),
        ("9Ei", LARGEST),
        ("-1e99", -LARGEST),
        ("-0.5m", -1),
        ("0.1n", 1),
        pytest.param(10**5000, LARGEST, id="5000 digits"),
        ("1u", 1),
        ("1n", 1),
        ("1500u", 2),
    ],
)
def test_a_quantity(text: Any, value: int) -> None:
    assert milli(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100m", Fraction(1, 10)),
        ("16Gi", 16 * 2**30),
        ("1e3", 1000),
        ("-2Ki", -2048),
        ("1n", Fraction(1, 10**9)),
        ("0.1n", Fraction(1, 10**9)),
        ("9Ei", 2**63 - 1),
        ("100E", 10**20),
        pytest.param(10**5000, 2**63 - 1, id="5000 digits"),
    ],
)
def test_exact_quantities(text: object, value: Fraction | int) -> None:
    assert exact(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Gi",
        "1gi",
        "1 ",
        "0x10",
        "1KI",
        "e3",
        "1e",
        "1e999",
        "¹",
        "٣",
        "0" * 101,
        None,
        True,
        {},
    ],
)
def test_no_quantity(text: Any) -> None:
    assert (milli(text), exact(text)) == (None, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (16_000, "16"),
        (1_024_000, "1024"),
        (500, "500m"),
        (1500, "1500m"),
        (2**20 * 1000, "1Mi"),
        (48 * 2**30 * 1000, "48Gi"),
        (10**21, "1000000000000000000"),
    ],
)
def test_as_text(value: int, text: str) -> None:
    assert format_milli(value) == text
    assert milli(text) == value


RECORDED = [
    json.loads(line) for line in Path(__file__).with_name("quantities.jsonl").read_text("utf-8").splitlines()
]
"""Texts as apimachinery 0.36.2 writes them, their `Value` and `MilliValue`, and Kueue's `ResourceValue` of
memory and of cpu (main, August 2026)."""
INT64_MAX = 2**63 - 1


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: repr(row["text"]))
def test_a_quantity_counts_as_in_kueue(row: dict[str, Any]) -> None:
    amount = milli(row["text"])
    if amount is None:  # a CRD refuses those that Go takes for 0
        assert row.get("error") or row["text"].strip() != row["text"] or row["value"] == 0
    elif amount >= 0:
        counted = min(-(-amount // 1000), INT64_MAX), min(amount, INT64_MAX)
        assert counted == (row["kueue"], row["kueueCpu"])
