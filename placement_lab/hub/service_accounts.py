"""
ServiceAccount tokens: issue them (TokenRequest), and authenticate requests that use them.

A token is valid until it expires, as long as its ServiceAccount exists with the same uid.
Source: Kubernetes, pkg/serviceaccount/claims.go and pkg/registry/core/serviceaccount/storage/token.go.
"""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from placement_lab.hub import kinds, users
from placement_lab.hub.errors import StatusError, bad_request
from placement_lab.hub.tokens import TokenSigner
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from placement_lab.hub.store import Record, Store
    from placement_lab.hub.users import UserInfo

AUDIENCE = "https://kubernetes.default.svc.cluster.local"  # as kubeadm has it; also the issuer
HOUR = 3600  # seconds; the default lifetime of a token
LONGEST = 2**32  # seconds


class InvalidToken(Exception):
    """A token cannot be authenticated; the message says why and never contains the token."""


class ServiceAccountTokens:
    """Issues and authenticates tokens for the ServiceAccounts of one store.

    `shortest`: the shortest lifetime that can be requested, in seconds.
    """

    def __init__(self, store: Store, shortest: int) -> None:
        self._store, self._shortest = store, shortest
        self._kind = next(kind for kind in kinds.builtin() if kind.plural == "serviceaccounts")
        self._signer = TokenSigner()

    def issue(self, account: Record, request: dict[str, Any]) -> dict[str, Any]:
        """Return the TokenRequest with its status; raises 422 for an invalid lifetime."""
        given = request.get("spec") or {}
        if not isinstance(given, dict) or not isinstance(given.get("audiences") or [], list):
            raise bad_request("the spec of a TokenRequest is a map, and its audiences are a list")
        if given.get("boundObjectRef"):
            raise bad_request("this hub binds tokens to no objects")
        seconds = given.get("expirationSeconds")
        seconds = HOUR if seconds is None else seconds
        self._check(account.key[1], seconds)
        issued = int(time.time())
        claims = _claims(account, given.get("audiences") or [AUDIENCE], issued, issued + seconds)
        namespace, name = account.key
        ends = datetime.fromtimestamp(claims["exp"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": None},
            "spec": {"audiences": claims["aud"], "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": self._signer.sign(claims), "expirationTimestamp": ends},
        }

    def _check(self, name: str, seconds: Any) -> None:
        if not isinstance(seconds, int):
            raise bad_request("spec.expirationSeconds: a number is needed")
        if self._shortest <= seconds <= LONGEST:
            return
        least = "10 minutes" if self._shortest == 600 else f"{self._shortest} seconds"
        bound = f"less than {least}" if seconds < self._shortest else "larger than 2^32 seconds"
        cause = StatusCause(
            "FieldValueInvalid",
            f"Invalid value: {seconds}: may not specify a duration {bound}",
            "spec.expirationSeconds",
        )
        raise StatusError(
            422,
            "Invalid",
            f'TokenRequest.authentication.k8s.io "{name}" is invalid: {cause.field}: {cause.message}',
            causes=[cause],
            details={"name": name, "group": "authentication.k8s.io", "kind": "TokenRequest"},
        )

    def authenticate(self, token: str) -> UserInfo:
        """Return the ServiceAccount of a token as a user; raises `InvalidToken`."""
        claims = self._signer.verify(token)
        if claims is None:
            raise InvalidToken("invalid bearer token")
        if AUDIENCE not in claims["aud"]:
            raise InvalidToken("token audiences do not include this server")
        # Claims have whole seconds: a token lives up to a second longer than requested.
        if int(time.time()) > claims["exp"]:
            raise InvalidToken("service account token has expired")
        of = claims["kubernetes.io"]
        namespace, name, uid = of["namespace"], of["serviceaccount"]["name"], of["serviceaccount"]["uid"]
        record = self._store.get(self._kind, (namespace, name))
        if record is None or record.uid != uid:
            raise InvalidToken("service account token has been invalidated")
        return users.account(namespace, name, uid, claims["jti"])


def _claims(account: Record, audiences: list[str], issued: int, ends: int) -> dict[str, Any]:
    namespace, name = account.key
    return {
        "aud": audiences,
        "exp": ends,
        "iat": issued,
        "iss": AUDIENCE,
        "jti": str(uuid.uuid4()),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": account.uid}},
        "nbf": issued,
        "sub": users.account_name(namespace, name),
    }
