"""A server that says how it was reached, and a shell of its clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubectl_login import Reach
from tests.support.kubectl_shell import Shell


@pytest.fixture(scope="module")
def reach() -> Iterator[Reach]:
    with Reach().running() as opened:
        yield opened


@pytest.fixture
def shell(reach: Reach, tmp_path: Path) -> Shell:
    reach.through = []
    (tmp_path / "home").mkdir()
    return Shell(reach, tmp_path)
