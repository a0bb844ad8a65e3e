"""The history that an API server seems to have forgotten: older watches and pages get 410."""

import base64
import json
from typing import Any

from placement_lab.hub.errors import StatusError, gone


class ForgottenHistory:
    """`oldest`: the first resourceVersion that is still known; 0: nothing is forgotten."""

    def __init__(self) -> None:
        self.oldest = 0

    def error_of(self, query: dict[str, str]) -> StatusError | None:
        """Return the 410 for a list or a watch that needs a forgotten version."""
        version = _needed_version(query)
        if not self.oldest or version is None or version >= self.oldest:
            return None
        return gone(f"too old resource version: {version} ({self.oldest})")


def _needed_version(query: dict[str, str]) -> int | None:
    if token := query.get("continue"):
        return _version_in(token)
    watches = query.get("watch") in ("true", "1") and query.get("sendInitialEvents") != "true"
    if watches or query.get("resourceVersionMatch") == "Exact":
        asked = query.get("resourceVersion", "")
        return int(asked) if asked.isdecimal() and int(asked) else None
    return None


def _version_in(token: str) -> int | None:
    """Return the version in a continue token: {"rv": …} of Kubernetes, or [version, …] of the hub."""
    try:
        content: Any = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(content["rv"] if isinstance(content, dict) else content[0])
    except (ValueError, KeyError, TypeError, IndexError):
        return None
