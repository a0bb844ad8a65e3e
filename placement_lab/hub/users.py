"""
Users: a name and groups. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MASTERS = "system:masters"  # may do everything, regardless of roles
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ACCOUNT = "system:serviceaccount:"  # the prefix of every ServiceAccount's user name
ACCOUNTS = "system:serviceaccounts"


@dataclass(frozen=True, slots=True)
class UserInfo:
    """An authenticated user; only ServiceAccounts have `uid` and `extra` (such as the token's id)."""

    name: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict, compare=False)

    def wire(self) -> dict[str, Any]:
        """Return an authentication.k8s.io/v1 UserInfo."""
        info = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": self.extra}
        return {key: value for key, value in info.items() if value}


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user that a request asks to be handled as: its headers Impersonate-User and Impersonate-Group."""

    name: str
    groups: tuple[str, ...] = ()


ANONYMOUS = UserInfo("system:anonymous", (UNAUTHENTICATED,))
LOOPBACK = UserInfo("system:apiserver", (MASTERS, AUTHENTICATED))  # the hub itself


def account_name(namespace: str, name: str) -> str:
    """Return the user name of a ServiceAccount."""
    return f"{ACCOUNT}{namespace}:{name}"


def account(namespace: str, name: str, uid: str, token_id: str) -> UserInfo:
    """Return the user of a ServiceAccount."""
    groups = (ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED)
    extra = {"authentication.kubernetes.io/credential-id": [f"JTI={token_id}"]}
    return UserInfo(account_name(namespace, name), groups, uid, extra)
