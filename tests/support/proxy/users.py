"""The users of the proxy: it maps its own tokens to impersonation headers on the admin's credentials.

So the API server's own RBAC decides what they may do.
"""

import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from multidict import CIMultiDict

from placement_lab.hub.http_server import ADMIN
from placement_lab.hub.users import ANONYMOUS, MASTERS, UserInfo


@dataclass(frozen=True, slots=True)
class Identity:
    """The user of a request, as the journal names it, and the headers that the API server needs."""

    name: str
    headers: dict[str, str]
    groups: tuple[str, ...] = ()

    def replace_in(self, headers: CIMultiDict[str]) -> None:
        if not self.headers:
            return
        headers.update(self.headers)
        if "Impersonate-User" in self.headers:
            headers.popall("Impersonate-Group", None)
        for group in self.groups:
            headers.add("Impersonate-Group", group)


class Users:
    """`upstream_token`: the admin's token on the API server. Safe to use from any thread."""

    def __init__(self, upstream_token: str) -> None:
        self._authorization = f"Bearer {upstream_token}"
        self._users: dict[str, UserInfo] = {}

    def add(self, name: str, token: str | None = None, groups: Sequence[str] | None = None) -> str:
        """Register a user and return its token; without `groups` it may do everything."""
        token = token or secrets.token_hex(24)
        self._users[token] = UserInfo(name, (MASTERS,) if groups is None else tuple(groups))
        return token

    def expire(self, token: str) -> None:
        self._users.pop(token, None)

    def clear(self) -> None:
        self._users.clear()

    def identify(self, authorization: str) -> Identity:
        """Return the identity behind an Authorization header; the API server judges unknown tokens."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return Identity(ANONYMOUS.name, {})
        user = self._users.get(token.strip())
        if user is None:
            return Identity(_subject(token.strip()), {})
        mine = {"Authorization": self._authorization}
        if user.name == ADMIN:
            return Identity(ADMIN, mine)
        return Identity(user.name, mine | {"Impersonate-User": user.name}, user.groups)


def _subject(token: str) -> str:
    """Return the user in a ServiceAccount's token, "" if it is none."""
    try:
        _, claims, _ = token.split(".")
        return str(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"])
    except (ValueError, KeyError, TypeError):
        return ""
