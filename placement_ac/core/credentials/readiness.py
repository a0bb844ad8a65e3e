"""
How far the credentials are that are made for one cluster: the way in, or what they wait for.

Pure. A MultiKueueCluster that stands on them already goes by their Secret alone: what OCM says of
the account or the permission then is no reason to take a cluster out.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from placement_ac.core.api.constants import ACCOUNT, ANNOTATION_ADOPT, PERMISSION, SECRET, Kind
from placement_ac.core.api.objects import ProvisionedObject, Secret, WritableObject
from placement_ac.core.inputs.state import ProvisioningInputs
from placement_ac.core.kubeconfig.access import write_kubeconfig
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

TOO_OLD: Final = "Kueue on this hub is too old for ClusterProfiles (it needs v1beta2)"
ADDON: Final = "is OCM's addon managed-serviceaccount enabled for the cluster?"


def provisioned_credentials(seen: ProvisioningInputs) -> CredentialSource | Unusable:
    """Return the way in that was made for a cluster, or how far it is."""
    source = _by_profile(seen) if seen.policy.form == "cluster-profile" else _by_secret(seen)
    if isinstance(source, Unusable) and seen.on_secret:
        before = _by_secret(seen)  # until the ClusterProfile is there
        source = source if isinstance(before, Unusable) else before
    if isinstance(source, CredentialSource) and (_is_stood_on(seen, source) or not seen.policy.provision):
        return source
    for problem in _problems(seen):
        return Unusable(problem)
    return source


def _is_stood_on(seen: ProvisioningInputs, source: CredentialSource) -> bool:
    return seen.on_secret if source.kind == "Secret" else seen.on_profile


def name_conflict(seen: ProvisioningInputs) -> str:
    """Return which of the objects to be made is somebody else's; "" when none is."""
    where = seen.cluster
    things: tuple[tuple[Kind, WritableObject | None, str], ...] = (
        (ACCOUNT, seen.account, where),
        (PERMISSION, seen.permission, where),
        (SECRET, seen.secret if seen.policy.form == "kubeconfig" else None, seen.namespace),
    )
    for kind, obj, namespace in things:
        if obj and not obj.ours and not obj.handed_over:
            name = obj.meta.name
            hand_over = f"kubectl annotate -n {namespace} {kind.kind.lower()} {name} {ANNOTATION_ADOPT}=true"
            return (
                f"{kind.kind} {namespace}/{name} was not made by placement-ac: delete it, "
                f"or hand it over with {hand_over}"
            )
    return ""


def kubeconfig_of(seen: ProvisioningInputs) -> bytes | Unusable:
    """Return the kubeconfig that is to be in our Secret, or why there can be none yet."""
    token = seen.token
    if token is None:
        return Unusable(f"OCM has not reported the token of {_account(seen)} yet: {ADDON}")
    told = f"Secret {token.meta.namespace}/{token.meta.name}"
    if token.problem:
        return Unusable(f"{told}, in which OCM reports the token, {token.problem}")
    door = _by_proxy(seen) if seen.policy.proxy else _direct(seen)
    if isinstance(door, Unusable):
        return door
    made = write_kubeconfig(door.server, door.authority or token.authority, token.token, seen.cluster)
    if isinstance(made, Unusable):
        return Unusable(f"no kubeconfig can be made of {told} and {door.described_as}: {made.why}")
    return made


@dataclass(frozen=True, slots=True)
class _ApiEndpoint:
    """A worker's API server: its URL, and its CA as PEM (empty: the one reported with the token)."""

    server: str
    authority: bytes
    described_as: str


def _by_proxy(seen: ProvisioningInputs) -> _ApiEndpoint:
    server = f"{seen.policy.proxy.rstrip('/')}/{seen.cluster}"
    return _ApiEndpoint(server, seen.policy.proxy_authority, "the setting cluster-proxy")


def _direct(seen: ProvisioningInputs) -> _ApiEndpoint | Unusable:
    told = f"ManagedCluster {seen.cluster}: spec.managedClusterClientConfigs"
    if seen.managed is None or not seen.managed.server:
        return Unusable(f"{told} has no url of the API server")
    try:
        authority = base64.b64decode(seen.managed.authority, validate=True)
    except ValueError:
        return Unusable(f"{told}[0].caBundle is not base64")
    return _ApiEndpoint(seen.managed.server, authority, f"{told}[0]")


# -- how far it is


def _by_secret(seen: ProvisioningInputs) -> CredentialSource | Unusable:
    secret = seen.secret
    told = f"Secret {seen.namespace}/{seen.secret_name}"
    if secret is None:
        return Unusable(f"{told} is not there")
    if problem := secret_problem(secret, seen.now):
        return Unusable(f"{told} {problem}")
    return CredentialSource("Secret", seen.secret_name, secret.expires, secret.issued, secret.digest)


def _by_profile(seen: ProvisioningInputs) -> CredentialSource | Unusable:
    if not seen.hub.takes_profiles:
        return Unusable(TOO_OLD)
    if seen.profile is None:
        return Unusable(
            f"no ClusterProfile of {seen.cluster} in namespace {seen.namespace} has an access provider "
            "that is supported"
        )
    if not seen.synced:
        return Unusable(f"OCM has not copied the token of {_account(seen)} to namespace {seen.namespace} yet")
    return CredentialSource("ClusterProfile", seen.profile.meta.name)


def secret_problem(secret: Secret, now: datetime) -> str:
    """Return why Kueue could not use a Secret now; "" when it could."""
    if not secret.problem and secret.expires and secret.expires <= now:
        return f"has a {secret.expires_what} that expired at {secret.expires:%Y-%m-%dT%H:%M:%SZ}"
    return secret.problem


def _problems(seen: ProvisioningInputs) -> Iterator[str]:
    """Yield what keeps a cluster from being listed for the first time, the first step first."""
    if not seen.policy.provision:
        return
    if not seen.policy.served:
        yield "this hub has no ManagedServiceAccounts or no ClusterPermissions: install OCM's addons for them"
    if seen.managed is None:
        yield f"there is no ManagedCluster {seen.cluster}"
    yield from (problem for problem in (seen.trouble, name_conflict(seen)) if problem)
    yield from _not_done(seen, seen.account, ACCOUNT, ADDON)
    if seen.policy.form == "kubeconfig" and isinstance(made := kubeconfig_of(seen), Unusable):
        yield made.why
    yield from _not_done(seen, seen.permission, PERMISSION, "does OCM's cluster-permission controller run?")


def _not_done(
    seen: ProvisioningInputs, grant: ProvisionedObject | None, kind: Kind, hint: str
) -> Iterator[str]:
    told = f"{kind.kind} {seen.cluster}/{seen.name}"
    if grant is None:
        yield f"{told} is being made"
    elif not grant.in_force:
        yield f"{told}: {grant.problem}" if grant.problem else f"{told} is not in force yet: {hint}"


def _account(seen: ProvisioningInputs) -> str:
    return f"{ACCOUNT.kind} {seen.cluster}/{seen.name}"
