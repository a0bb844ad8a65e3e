"""Every test of this folder is marked `shared`; without `../shared`, one of them is skipped for all."""

from pathlib import Path

import pytest

from tests.published.shared import missing


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    is_test = collection_path.name.startswith("test_") and collection_path.name != "test_shared.py"
    return True if is_test and missing() else None


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.shared)
