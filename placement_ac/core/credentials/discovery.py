"""
Find credentials for a cluster among those that others have put on the hub.

Pure. The methods are tried in their order: one that finds something unusable is reported, and the next tried.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from placement_ac.core.api.constants import CREDENTIAL_METHODS, CredentialMethod
from placement_ac.core.api.objects import ClusterProfile, Secret, SecretRef
from placement_ac.core.credentials.readiness import TOO_OLD, provisioned_credentials, secret_problem
from placement_ac.core.inputs.provisioning import ProvisioningInputs
from placement_ac.core.kubeconfig.servers import AllowedServers, server_problem
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

SECRET_NAMES: Final = ("kueue-admin-{}-kubeconfig", "multikueue-{}")


ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
"""Before anything expires."""


@dataclass(frozen=True, slots=True)
class DiscoveryInputs:
    """The objects on the hub from which the credentials of one cluster are chosen."""

    cluster: str
    kueue_namespace: str
    profiles: Sequence[ClusterProfile] = ()
    """Its ClusterProfiles in Kueue's namespace."""
    secret: Callable[[str], Secret | None] = lambda _: None
    """Returns the Secret of that name in Kueue's namespace."""
    profiles_supported: bool = True
    """Whether the served MultiKueueCluster has `clusterProfileRef` (v1beta2)."""
    providers: AllowedServers | None = None
    """The access providers that Kueue supports; None: it is not known which."""
    now: datetime = ALWAYS
    provisioned: ProvisioningInputs | None = None
    """The inputs for those that this program provisions, or did; None: it never did."""


def find_credentials(
    inputs: DiscoveryInputs, methods: Sequence[CredentialMethod] = CREDENTIAL_METHODS
) -> CredentialSource | Unusable:
    """Return the first usable credentials that others made, else ours; or why none are usable."""
    source, problems = _search(inputs, methods)
    if source is not None:
        return source
    provisioned = inputs.provisioned
    ours = provisioned_credentials(provisioned) if provisioned else None
    if isinstance(ours, CredentialSource):
        return ours
    if ours and provisioned and (provisioned.policy.provision or provisioned.objects.secret):
        problems.append(ours.why)
    problems = list(dict.fromkeys(problems))  # two methods may meet the same problem
    return Unusable("; ".join(problems or [_nothing_found(inputs, methods)]))


def find_external_credentials(
    inputs: DiscoveryInputs, methods: Sequence[CredentialMethod] = CREDENTIAL_METHODS
) -> CredentialSource | None:
    """Return the first usable credentials that others have put on the hub."""
    return _search(inputs, methods)[0]


def _search(
    inputs: DiscoveryInputs, methods: Sequence[CredentialMethod]
) -> tuple[CredentialSource | None, list[str]]:
    """Return the first usable credentials that others have made, or why none of the existing ones is."""
    problems: list[str] = []
    for method in methods:
        source = _FINDERS[method](inputs)
        if isinstance(source, CredentialSource):
            return source, []
        problems += [source.why] if source else []
    return None, problems


def secret_names(cluster: str) -> tuple[str, ...]:
    """Return the names under which a Secret for `cluster` is looked for."""
    return tuple(name.format(cluster) for name in SECRET_NAMES)


def clusters_of_secret(name: str) -> tuple[str, ...]:
    """Return the clusters whose Secret may have this name: the inverse of `secret_names`."""
    found = []
    for pattern in SECRET_NAMES:
        head, tail = pattern.split("{}")
        if name.startswith(head) and name.endswith(tail) and len(name) > len(head) + len(tail):
            found.append(name[len(head) : len(name) - len(tail)])
    return tuple(found)


def _profile_secret(inputs: DiscoveryInputs) -> CredentialSource | Unusable | None:
    problems = []
    for profile in inputs.profiles:
        if profile.problem:
            problems.append(_unreadable(profile))
        for ref in profile.secrets:
            problem = _ref_problem(ref, profile, inputs)
            secret = inputs.secret(ref.name)
            if secret and not problem:
                return _source(secret)
            problems.append(problem)
    return Unusable("; ".join(problems)) if problems else None


def _ref_problem(ref: SecretRef, profile: ClusterProfile, inputs: DiscoveryInputs) -> str:
    if ref.kind != "Secret" or not ref.name:
        return f"name a Secret in status.credentials of {_label(profile)}: it names none"
    name = f"Secret {ref.namespace}/{ref.name}"
    if ref.namespace != inputs.kueue_namespace:
        return (
            f"copy {name} to namespace {inputs.kueue_namespace}: {_label(profile)} names it, "
            "and Kueue reads no other namespace"
        )
    secret = inputs.secret(ref.name)
    if secret is None:
        return f"create {name} with key kubeconfig: {_label(profile)} names it, and it does not exist"
    problem = secret_problem(secret, inputs.now)
    return f"in {name}, {problem}" if problem else ""


def _named_secret(inputs: DiscoveryInputs) -> CredentialSource | Unusable | None:
    problems = []
    for name in secret_names(inputs.cluster):
        secret = inputs.secret(name)
        if secret is None or (inputs.provisioned and name == inputs.provisioned.secret_name):
            continue
        problem = secret_problem(secret, inputs.now)
        if not problem:
            return _source(secret)
        problems.append(f"in Secret {inputs.kueue_namespace}/{name}, {problem}")
    return Unusable("; ".join(problems)) if problems else None


def _source(secret: Secret) -> CredentialSource:
    return CredentialSource("Secret", secret.meta.name, secret.expires, secret.issued, secret.digest)


def _access_provider(inputs: DiscoveryInputs) -> CredentialSource | Unusable | None:
    for profile in inputs.profiles:
        if profile.problem:
            return Unusable(_unreadable(profile))
        if not supports(profile, inputs.providers):
            continue
        if not inputs.profiles_supported:
            return Unusable(TOO_OLD)
        if problem := disallowed_server(profile, inputs.providers):
            return Unusable(problem)
        return CredentialSource("ClusterProfile", profile.meta.name)
    return None


def supports(profile: ClusterProfile, providers: Collection[str] | None) -> bool:
    """Whether a ClusterProfile has an access provider that Kueue supports; one of several is enough."""
    return any(providers is None or name in providers for name in profile.providers)


def disallowed_server(profile: ClusterProfile, providers: AllowedServers | None) -> str:
    """Return why the plugin for a ClusterProfile, the first in `providers`, may not be run; "" if it may."""
    for name, suffixes in (providers or {}).items():
        if name in profile.providers:
            problem = server_problem(name, profile.providers[name], suffixes)
            return f"in {_label(profile)}, {problem}" if problem else ""
    return ""


_FINDERS: Final[
    Mapping[CredentialMethod, Callable[[DiscoveryInputs], CredentialSource | Unusable | None]]
] = {"profile-secret": _profile_secret, "secret": _named_secret, "access-provider": _access_provider}


def _nothing_found(inputs: DiscoveryInputs, methods: Sequence[CredentialMethod]) -> str:
    """Return the simplest fix by these methods."""
    profile = f"the ClusterProfile of {inputs.cluster} in namespace {inputs.kueue_namespace}"
    *_, secret = secret_names(inputs.cluster)
    fixes = {
        "secret": f"create Secret {inputs.kueue_namespace}/{secret} with key kubeconfig",
        "profile-secret": f"name a Secret for kueue-admin in {profile}",
        "access-provider": f"give {profile} an access provider",
    }
    fix = next((text for method, text in fixes.items() if method in methods), "set --credentials")
    return f"{fix}: {inputs.cluster} has no credentials"


def _unreadable(profile: ClusterProfile) -> str:
    return f"fix {_label(profile)}: {profile.problem}"


def _label(profile: ClusterProfile) -> str:
    return f"ClusterProfile {profile.meta.namespace}/{profile.meta.name}"
