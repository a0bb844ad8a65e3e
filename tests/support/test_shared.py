"""Shared test data: each test gets a copy that it may change."""

from tests.support.shared import published_crds


def test_a_changed_copy_of_the_crds_does_not_affect_others() -> None:
    mine = published_crds()
    for crd in mine:
        crd["spec"]["versions"].clear()
    assert all(crd["spec"]["versions"] for crd in published_crds())
