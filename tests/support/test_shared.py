"""Shared test data: each test gets a copy that it may change."""

from pathlib import Path

import pytest

from tests.support.shared import VARIABLE, published_crds, shared_dir


def test_a_changed_copy_of_the_crds_does_not_affect_others() -> None:
    mine = published_crds()
    for crd in mine:
        crd["spec"]["versions"].clear()
    assert all(crd["spec"]["versions"] for crd in published_crds())


@pytest.mark.parametrize("ci", [pytest.param("", id="skipped"), pytest.param("true", id="failed")])
def test_without_the_folder_tests_are_skipped_and_in_ci_they_fail(
    ci: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception if ci else pytest.skip.Exception) as caught:
        shared_dir()
    if isinstance(caught.value, pytest.skip.Exception):
        assert caught.value.allow_module_level, "some modules read recordings while they are collected"
