"""
Authentication and authorization: map a token to a user, and check the user's permissions.

Runs in the hub's thread, except `AccessControl.add` and `AccessControl.expire`.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from placement_lab.hub.errors import StatusError, forbidden
from placement_lab.hub.rbac import Rbac
from placement_lab.hub.request_attributes import RequestAttributes
from placement_lab.hub.service_accounts import InvalidToken, ServiceAccountTokens
from placement_lab.hub.users import ACCOUNT, ACCOUNTS, ANONYMOUS, AUTHENTICATED, MASTERS, UserInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement_lab.hub.store import Store
    from placement_lab.hub.users import Impersonation


class AccessControl:
    """The users of the hub: those registered with `add`, and the ServiceAccounts in its store."""

    def __init__(self, store: Store, shortest_token_seconds: int) -> None:
        self.rbac = Rbac(store)
        self.service_account_tokens = ServiceAccountTokens(store, shortest_token_seconds)
        self._users: dict[str, UserInfo] = {}

    def add(self, name: str, token: str | None = None, groups: Sequence[str] | None = None) -> str:
        """
        Register a user and return its token (a random one unless given).

        Without `groups` the user may do everything. Safe to call from any thread.
        """
        token = token or secrets.token_hex(24)  # no "-" in front: it may be an argument
        self._users[token] = UserInfo(name, (*((MASTERS,) if groups is None else groups), AUTHENTICATED))
        return token

    def expire(self, token: str) -> None:
        """Revoke a user's token. Safe to call from any thread."""
        self._users.pop(token, None)

    def authenticate(self, authorization: str) -> UserInfo:
        """Return the user of an Authorization header; raises 401 for an invalid or expired token."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return ANONYMOUS
        try:
            return self.authenticate_token(token.strip())
        except InvalidToken as refused:
            raise StatusError(401, "Unauthorized", "Unauthorized") from refused

    def authenticate_token(self, token: str) -> UserInfo:
        """Return the user of a bearer token; raises `InvalidToken`."""
        return self._users.get(token) or self.service_account_tokens.authenticate(token)

    def impersonate(self, user: UserInfo, wanted: Impersonation) -> UserInfo:
        """
        Return the wanted user; raises 403 unless `user` may impersonate its name and its groups.

        Source: Kubernetes, apiserver/pkg/endpoints/filters/impersonation.
        """
        account = wanted.name.removeprefix(ACCOUNT).split(":")
        groups = wanted.groups
        if wanted.name.startswith(ACCOUNT) and len(account) == 2:
            self.authorize(
                user, RequestAttributes("impersonate", "", "serviceaccounts", "", account[0], account[1])
            )
            groups = groups or (ACCOUNTS, f"{ACCOUNTS}:{account[0]}")
        else:
            self.authorize(user, RequestAttributes("impersonate", "", "users", "", "", wanted.name))
        for group in wanted.groups:
            self.authorize(user, RequestAttributes("impersonate", "", "groups", "", "", group))
        return UserInfo(wanted.name, (*groups, AUTHENTICATED))

    def authorize(self, user: UserInfo, action: RequestAttributes) -> None:
        """Raise 403 unless RBAC allows the request."""
        verdict = self.rbac.authorize(user, action)
        if not verdict.allowed:
            raise _forbidden(user, action, verdict.reason)


def _forbidden(user: UserInfo, action: RequestAttributes, reason: str) -> StatusError:
    """Source: Kubernetes, apiserver/pkg/endpoints/handlers/responsewriters/errors.go."""
    denied = f'User "{user.name}" cannot {action.verb} '
    why = f": {reason}" if reason else ""
    if action.path is not None:
        return forbidden(f'forbidden: {denied}path "{action.path}"{why}')
    what = f"{action.resource}.{action.group}" if action.group else action.resource
    if action.name:
        what += f' "{action.name}"'
    where = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    denied += f'resource "{action.full_resource}" in API group "{action.group}" {where}'
    details = {"name": action.name, "group": action.group, "kind": action.resource}
    return forbidden(
        f"{what} is forbidden: {denied}{why}", {key: value for key, value in details.items() if value}
    )
