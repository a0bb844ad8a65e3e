"""The objects of the virtual Kueue are valid by the published CRDs, with all their rules."""

import pytest

from tests.published.shared import published_crds
from tests.support.virtual.test_kueue import faults_of


@pytest.mark.parametrize("seed", range(3))
def test_all_objects_are_valid(seed: int) -> None:
    assert faults_of(seed, published_crds()) == []
