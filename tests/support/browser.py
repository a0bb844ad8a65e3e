"""The browser of tests, and how legible a text in it is."""

import os
import shutil
from pathlib import Path

import pytest

READABLE = 4.5
"""WCAG 2.1, 1.4.3: the minimum contrast of text."""
PLACES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


def browser_path() -> str:
    """Return the path of Chromium; without it the test fails in CI and is skipped elsewhere."""
    found = next((place for place in PLACES if Path(place).exists()), shutil.which("chromium"))
    if found:
        return found
    reason = "there is no Chromium on this machine: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def luminance(colour: str) -> float:
    """WCAG 2.1: relative luminance of `rgb(r, g, b)`."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)
