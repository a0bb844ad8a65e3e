"""The folder with shared facts and recordings: `../shared`, beside the repository."""

import copy
import functools
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement_lab.hub.kinds import bundled

VARIABLE = "SHARED_DIR"
"""The environment variable with another path of the folder."""


def shared_dir() -> Path:
    """Return the folder; without it the test fails in CI and is skipped elsewhere."""
    path = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[3] / "shared")
    if (path / "crds").is_dir():
        return path
    reason = f"{path} is not there: it holds recordings of real servers (name another place in ${VARIABLE})"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


@functools.cache
def _crds(folder: Path) -> bytes:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return pickle.dumps([yaml.load(path.read_text(), loader) for path in sorted(folder.glob("*.yaml"))])


def published_crds() -> list[dict[str, Any]]:
    """Return the CRDs as their projects publish them; without the shared folder, the hub's own.

    The caller may change them.
    """
    try:
        crds: list[dict[str, Any]] = pickle.loads(_crds(shared_dir() / "crds"))
    except pytest.skip.Exception:
        return copy.deepcopy(bundled())
    return crds
