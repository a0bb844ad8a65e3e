"""The objects of the virtual Kueue are valid by the published CRDs, with all their rules."""

from tests.published.shared import published_crds
from tests.support.virtual.test_kueue import faults_of


def test_all_objects_are_valid() -> None:
    assert faults_of(3, published_crds()) == []
