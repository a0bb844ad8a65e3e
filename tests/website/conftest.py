"""A real browser for the tests of pictures and pages."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import OPTIONS, browser_path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = browser_path()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # it costs 0.3 s

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()
