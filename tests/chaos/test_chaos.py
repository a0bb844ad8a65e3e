"""One minute of `make chaos`."""

from pathlib import Path

import pytest

from tests.chaos.play import played

pytestmark = pytest.mark.long


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2], ids=["Kueue's dispatcher", "our dispatcher"])
def test_nothing_goes_wrong_in_half_a_minute(seed: int, tmp_path: Path) -> None:
    summary = played(seed, seconds=30.0, right_again=120.0, rate=0.3, folder=tmp_path)
    assert summary["wrong"] == {}
    assert summary["jobs"] > 0
    assert len(summary["faults"]) > 3
    assert summary["logLines"] > 10
