"""Quantities are written as a kube-apiserver does, on the hub and for CEL."""

import pytest

from kubectl_placement.scheduling.canonical_quantities import canonical
from tests.placement_ac.core.api.test_quantities import RECORDED


@pytest.mark.parametrize("row", [row for row in RECORDED if "written" in row], ids=lambda row: row["text"])
def test_a_quantity_is_written_as_by_go(row: dict[str, str]) -> None:
    assert canonical(row["text"]) == row["written"]
