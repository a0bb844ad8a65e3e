"""The folder with published CRDs, recordings and cases: `shared`, beside the repository."""

import functools
import os
import pickle
from pathlib import Path
from typing import Any

import yaml

VARIABLE = "SHARED_DIR"
"""The environment variable with another path of the folder."""
SHARED = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[3] / "shared")


def missing() -> str:
    """Return why nothing can be compared: the folder is not there; or ""."""
    if (SHARED / "crds").is_dir():
        return ""
    return (
        f"{SHARED} is not there: it holds published CRDs, recordings and cases (another place: ${VARIABLE})"
    )


@functools.cache
def _crds() -> bytes:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    files = sorted((SHARED / "crds").glob("*.yaml"))
    return pickle.dumps([yaml.load(path.read_text("utf-8"), loader) for path in files])


def published_crds() -> list[dict[str, Any]]:
    """Return the CRDs as their projects publish them; the caller may change them."""
    crds: list[dict[str, Any]] = pickle.loads(_crds())
    return crds
