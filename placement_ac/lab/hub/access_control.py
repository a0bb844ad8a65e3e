"""
Who asks, and may they? Tokens to users, and what the roles allow them.

Runs in the hub's thread, but for `Access.add` and `Access.expire`.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from placement_ac.lab.hub.errors import ApiError, forbidden
from placement_ac.lab.hub.rbac import Rbac
from placement_ac.lab.hub.service_accounts import Accounts, Refused
from placement_ac.lab.hub.users import ANONYMOUS, AUTHENTICATED, MASTERS, User

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement_ac.lab.hub.request_attributes import Action
    from placement_ac.lab.hub.store import Store


class Access:
    """The users of the hub: those it was told of, and the ServiceAccounts in its store."""

    def __init__(self, store: Store, shortest_token_seconds: int) -> None:
        self.rbac = Rbac(store)
        self.accounts = Accounts(store, shortest_token_seconds)
        self._users: dict[str, User] = {}

    def add(self, name: str, token: str | None = None, groups: Sequence[str] | None = None) -> str:
        """
        Register a user and return its token (a random one unless given).

        Without `groups` it may do everything. From any thread: a single dict operation.
        """
        token = token or secrets.token_hex(24)  # no "-" in front: it may be an argument
        self._users[token] = User(name, (*((MASTERS,) if groups is None else groups), AUTHENTICATED))
        return token

    def expire(self, token: str) -> None:
        """Forget a token of a user. From any thread: a single dict operation."""
        self._users.pop(token, None)

    def user(self, authorization: str) -> User:
        """The user an Authorization header names; raises 401 for a token that is not good (any more)."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return ANONYMOUS
        try:
            return self.bearer(token.strip())
        except Refused as refused:
            raise ApiError(401, "Unauthorized", "Unauthorized") from refused

    def bearer(self, token: str) -> User:
        """The user that a token stands for; raises `Refused`."""
        return self._users.get(token) or self.accounts.user(token)

    def require(self, user: User, action: Action) -> None:
        """Raises 403 unless the roles allow it."""
        verdict = self.rbac.judge(user, action)
        if not verdict.allowed:
            raise _refusal(user, action, verdict.reason)


def _refusal(user: User, action: Action, reason: str) -> ApiError:
    """Source: Kubernetes, apiserver/pkg/endpoints/handlers/responsewriters/errors.go."""
    told = f'User "{user.name}" cannot {action.verb} '
    why = f": {reason}" if reason else ""
    if action.path is not None:
        return forbidden(f'forbidden: {told}path "{action.path}"{why}')
    what = f"{action.resource}.{action.group}" if action.group else action.resource
    if action.name:
        what += f' "{action.name}"'
    where = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    told += f'resource "{action.full_resource}" in API group "{action.group}" {where}'
    details = {"name": action.name, "group": action.group, "kind": action.resource}
    return forbidden(
        f"{what} is forbidden: {told}{why}", {key: value for key, value in details.items() if value}
    )
