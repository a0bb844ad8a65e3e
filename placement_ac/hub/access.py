"""
Who asks, and may they? Tokens to names; everyone who has one may do everything.
"""

from __future__ import annotations

import secrets
from typing import Any

from placement_ac.hub.errors import ApiError, forbidden

ANONYMOUS = "system:anonymous"
# What anyone may read. Source: the role system:public-info-viewer.
OPEN = ("/version", "/healthz", "/livez", "/readyz")


class Access:
    """The tokens of the hub's users. Thread-safe: single dict operations only."""

    def __init__(self) -> None:
        self._users: dict[str, str] = {}

    def add(self, name: str, token: str | None = None) -> str:
        """Register a user and return its token (a random one unless given)."""
        token = token or secrets.token_urlsafe(24)
        self._users[token] = name
        return token

    def user(self, authorization: str) -> str:
        """The user an Authorization header names; raises 401 for a token nobody has."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return ANONYMOUS
        name = self._users.get(token.strip())
        if name is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return name

    @staticmethod
    def check(user: str, method: str, path: str) -> None:
        """Raises 403 unless this user may ask this."""
        if user == ANONYMOUS and not path.startswith(OPEN):
            raise forbidden(f'User "{user}" cannot {method.lower()} path "{path}"')


def review(plural: str, user: str, body: dict[str, Any]) -> dict[str, Any]:
    """Answer a question of a user about itself: what it may do, or who it is."""
    groups = ["system:masters", "system:authenticated"]
    if plural == "selfsubjectreviews":
        return body | {"status": {"userInfo": {"username": user, "groups": groups}}}
    return body | {"status": {"allowed": True}}
