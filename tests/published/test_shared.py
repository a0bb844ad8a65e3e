"""Whether the folder is there. Where it is not, no other test of this folder is collected."""

import pytest

from tests.published.shared import SHARED, missing


def test_the_folder_is_there() -> None:
    if reason := missing():
        pytest.skip(f"nothing is compared with what others published: {reason}")
    assert {"cases", "crds", "hub", "kueue", "ocm"} <= {path.name for path in SHARED.iterdir()}
