"""
The decisions of OCM's agent for ManagedServiceAccounts and of its credential syncer. Pure.

Source: managed-serviceaccount at b7ea8492 (June 2026), pkg/addon/agent/controller/token.go and
pkg/addon/manager/controller/clusterprofile_cred_syncer.go. As there, `spec.rotation.enabled` has no effect.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable
from typing import Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    AUTHORITY_KEY,
    CLUSTER_PROFILE,
    INVENTORY,
    LABEL_CLUSTER,
    LABEL_MANAGER,
    LABEL_SYNC,
    OCM_MANAGER,
    TOKEN_KEY,
)
from placement_ac.kube.client import Object
from placement_lab.standins.multikueue.objects import format_time, parse_time

LABEL_IS_ACCOUNT: Final = f"{ACCOUNT.group}/is-managed-serviceaccount"
"""The label of the Secrets and ServiceAccounts that the agent creates."""
LABEL_SYNCED_FROM: Final = f"{ACCOUNT.group}/synced-from"
AGENT_NAMESPACE: Final = "open-cluster-management-agent-addon"
"""The namespace of the agent and its ServiceAccounts on a worker."""
DEFAULT_VALIDITY: Final = "8640h0m0s"

_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class MalformedToken(Exception):
    """The Secret contains no JWT. The agent reports it, and replaces the token once the Secret is deleted."""


# tokens


def validity(account: Object) -> float:
    """Return the lifetime of the account's tokens in seconds."""
    asked = (account["spec"].get("rotation") or {}).get("validity") or DEFAULT_VALIDITY
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(asked))


def subject_of(token: str) -> str:
    """Return the `sub` of an unverified JWT. Raises MalformedToken with the agent's message."""
    parts = token.split(".")
    if len(parts) != 3:
        raise MalformedToken("invalid JWT token format")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except binascii.Error:
        raise MalformedToken("failed to decode payload") from None
    except ValueError:
        raise MalformedToken("failed to unmarshal claims") from None
    if not isinstance(claims, dict) or not isinstance(claims.get("sub"), str):
        raise MalformedToken("sub claim not found in token claims")
    return str(claims["sub"])


def token_in(secret: Object) -> str:
    """Return the token in a Secret, "" if there is none."""
    return base64.b64decode((secret.get("data") or {}).get(TOKEN_KEY, "")).decode(errors="replace")


def refresh_at(status: Object) -> float:
    """Return the POSIX time of the refresh: after four fifths of the token's lifetime."""
    begun, ends = (
        parse_time(status["tokenSecretRef"]["lastRefreshTimestamp"]),
        parse_time(status["expirationTimestamp"]),
    )
    return begun + (ends - begun) / 5 * 4


def needs_token(account: Object, secret: Object | None, now: float) -> bool:
    """Return whether a new token is needed, even if the worker accepts the old one. Raises MalformedToken."""
    status = account.get("status") or {}
    if secret is None or not status.get("tokenSecretRef") or not status.get("expirationTimestamp"):
        return True
    name = account["metadata"]["name"]
    subject = f"system:serviceaccount:{AGENT_NAMESPACE}:{name}"
    return subject_of(token_in(secret)) != subject or now > refresh_at(status)


# the reported status


def secret_of(account: Object, api_version: str, token: str, authority: str) -> Object:
    """Return a new Secret for an account. `authority`: the worker's CA in PEM."""
    namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
    owner = {
        "apiVersion": api_version,
        "kind": ACCOUNT.kind,
        "name": name,
        "uid": account["metadata"]["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {LABEL_IS_ACCOUNT: "true"},
            "ownerReferences": [owner],
        },
        "type": "Opaque",
        "data": {AUTHORITY_KEY: _encoded(authority), TOKEN_KEY: _encoded(token)},
    }


def reported_status(account: Object, *, expires: str, refreshed: str, now: float) -> Object:
    """Return the account's complete status once its Secret exists. `expires`, `refreshed`: RFC 3339."""
    status = dict(account.get("status") or {})
    conditions = status.get("conditions") or []
    for kind in ("SecretCreated", "TokenReported"):
        conditions = with_condition(conditions, kind, True, kind, "", now)
    return status | {
        "conditions": conditions,
        "expirationTimestamp": expires,
        "tokenSecretRef": {"name": account["metadata"]["name"], "lastRefreshTimestamp": refreshed},
    }


def failed_status(account: Object, message: str, now: float) -> Object:
    """Return the account's complete status after a failure: only the condition changes."""
    status = dict(account.get("status") or {})
    conditions = status.get("conditions") or []
    return status | {
        "conditions": with_condition(conditions, "TokenReported", False, "TokenReportFailed", message, now)
    }


def with_condition(
    conditions: Iterable[Object], kind: str, value: bool, reason: str, message: str, now: float, **more: int
) -> list[Object]:
    """Return `conditions` with this one set; its transition time changes only with its status."""
    before = next((condition for condition in conditions if condition["type"] == kind), {})
    wanted: Object = {"type": kind, "status": str(value), "reason": reason, "message": message, **more}
    same = before.get("status") == wanted["status"]
    wanted["lastTransitionTime"] = before["lastTransitionTime"] if same else format_time(now)
    kept = [wanted if condition["type"] == kind else condition for condition in conditions]
    return kept if before else [*kept, wanted]


# the credential syncer


def is_synced_profile(profile: Object) -> bool:
    """Return whether the syncer serves this ClusterProfile: OCM's own, of a managed cluster."""
    labels = profile["metadata"].get("labels") or {}
    return labels.get(LABEL_MANAGER) == OCM_MANAGER and LABEL_CLUSTER in labels


def is_synced(account: Object) -> bool:
    return bool((account["metadata"].get("labels") or {}).get(LABEL_SYNC) == "true")


def synced_name(account: Object) -> str:
    """Return `<cluster>-<account>`: the name and the label value of the copied Secret."""
    return f"{account['metadata']['namespace']}-{account['metadata']['name']}"


def synced_secret(account: Object, profile: Object, source: Object) -> Object:
    """Return the copy of an account's Secret for a ClusterProfile, in its namespace."""
    name = synced_name(account)
    owner = {
        "apiVersion": f"{INVENTORY}/v1alpha1",
        "kind": CLUSTER_PROFILE.kind,
        "name": profile["metadata"]["name"],
        "uid": profile["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": profile["metadata"]["namespace"],
            "labels": {LABEL_SYNCED_FROM: name},
            "ownerReferences": [owner],
        },
        "type": "Opaque",
        "data": dict(source.get("data") or {}),
    }


def is_orphan(secret: Object, profile: Object, names: Iterable[str]) -> bool:
    """Return whether a Secret is a copy for this profile, but its account is no longer in `names`."""
    metadata = secret["metadata"]
    source = (metadata.get("labels") or {}).get(LABEL_SYNCED_FROM)
    owners = metadata.get("ownerReferences") or ()
    return (
        source is not None
        and source not in names
        and any(owner["uid"] == profile["metadata"]["uid"] for owner in owners)
    )


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
