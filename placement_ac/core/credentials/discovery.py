"""
Find the way into a cluster among what others have put on the hub.

Pure. A way that is there but unusable is told, and the next one is tried.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from placement_ac.core.api.constants import CREDENTIAL_METHODS, CredentialMethod
from placement_ac.core.api.objects import ClusterProfile, Secret, SecretRef
from placement_ac.core.credentials.readiness import TOO_OLD, provisioned_credentials, secret_problem
from placement_ac.core.inputs.state import ProvisioningInputs
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

SECRET_NAMES: Final = ("kueue-admin-{}-kubeconfig", "multikueue-{}")


ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
"""Before anything expires."""


@dataclass(frozen=True, slots=True)
class DiscoveryInputs:
    """What the hub holds for one cluster."""

    cluster: str
    kueue_namespace: str
    profiles: Sequence[ClusterProfile] = ()
    """Its ClusterProfiles in Kueue's namespace."""
    secret: Callable[[str], Secret | None] = lambda _: None
    """Returns the Secret of that name in Kueue's namespace."""
    profiles_supported: bool = True
    """Whether the served MultiKueueCluster has `clusterProfileRef` (v1beta2)."""
    providers: Collection[str] | None = None
    """The access providers that Kueue supports; None: it is not known which."""
    now: datetime = ALWAYS
    made: ProvisioningInputs | None = None
    """What was made, or is being made, for the cluster by this program; None: nothing ever is."""


def find_credentials(
    found: DiscoveryInputs, ways: Sequence[CredentialMethod] = CREDENTIAL_METHODS
) -> CredentialSource | Unusable:
    """Return the first usable way of `ways`, else the one that was made; or why there is none."""
    answer, problems = _found(found, ways)
    if answer is not None:
        return answer
    made = provisioned_credentials(found.made) if found.made else None
    if isinstance(made, CredentialSource):
        return made
    if made and found.made and (found.made.policy.provision or found.made.secret):
        problems.append(made.why)
    told = dict.fromkeys(problems)  # two ways may meet the same trouble
    return Unusable("; ".join(told) if told else _nothing_found(found, ways))


def find_external_credentials(
    found: DiscoveryInputs, ways: Sequence[CredentialMethod] = CREDENTIAL_METHODS
) -> CredentialSource | None:
    """Return the first usable credentials that others have put there."""
    return _found(found, ways)[0]


def _found(
    found: DiscoveryInputs, ways: Sequence[CredentialMethod]
) -> tuple[CredentialSource | None, list[str]]:
    """Return the first usable way that others have made, or what is wrong with those that are there."""
    problems: list[str] = []
    for way in ways:
        answer = _FINDERS[way](found)
        if isinstance(answer, CredentialSource):
            return answer, []
        problems += [answer.why] if answer else []
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


def _profile_secret(found: DiscoveryInputs) -> CredentialSource | Unusable | None:
    problems = []
    for profile in found.profiles:
        if profile.problem:
            problems.append(_unreadable(profile))
        for ref in profile.secrets:
            problem = _what_is_wrong(ref, profile, found)
            secret = found.secret(ref.name)
            if secret and not problem:
                return _source(secret)
            problems.append(problem)
    return Unusable("; ".join(problems)) if problems else None


def _what_is_wrong(ref: SecretRef, profile: ClusterProfile, found: DiscoveryInputs) -> str:
    told_by = f"named by ClusterProfile {_id(profile)}"
    if ref.kind != "Secret" or not ref.name:
        return f"status.credentials of ClusterProfile {_id(profile)} names no Secret"
    if ref.namespace != found.kueue_namespace:
        return (
            f"Secret {ref.namespace}/{ref.name}, {told_by}, is out of Kueue's reach: "
            f"copy it to namespace {found.kueue_namespace}"
        )
    secret = found.secret(ref.name)
    if secret is None:
        return f"Secret {ref.namespace}/{ref.name}, {told_by}, does not exist"
    wrong = secret_problem(secret, found.now)
    return f"Secret {ref.namespace}/{ref.name} {wrong}" if wrong else ""


def _named_secret(found: DiscoveryInputs) -> CredentialSource | Unusable | None:
    problems = []
    for name in secret_names(found.cluster):
        secret = found.secret(name)
        if secret is None or (found.made and name == found.made.secret_name):
            continue
        wrong = secret_problem(secret, found.now)
        if not wrong:
            return _source(secret)
        problems.append(f"Secret {found.kueue_namespace}/{name} {wrong}")
    return Unusable("; ".join(problems)) if problems else None


def _source(secret: Secret) -> CredentialSource:
    return CredentialSource("Secret", secret.meta.name, secret.expires, secret.issued, secret.digest)


def _access_provider(found: DiscoveryInputs) -> CredentialSource | Unusable | None:
    for profile in found.profiles:
        if profile.problem:
            return Unusable(_unreadable(profile))
        if not supports(profile, found.providers):
            continue
        if not found.profiles_supported:
            return Unusable(TOO_OLD)
        return CredentialSource("ClusterProfile", profile.meta.name)
    return None


def supports(profile: ClusterProfile, providers: Collection[str] | None) -> bool:
    """Whether a ClusterProfile has an access provider that Kueue supports; one of several is enough."""
    return any(providers is None or name in providers for name in profile.providers)


_FINDERS: Final[
    Mapping[CredentialMethod, Callable[[DiscoveryInputs], CredentialSource | Unusable | None]]
] = {
    "profile-secret": _profile_secret,
    "secret": _named_secret,
    "access-provider": _access_provider,
}


def _nothing_found(found: DiscoveryInputs, ways: Sequence[CredentialMethod]) -> str:
    namespace = found.kueue_namespace
    hints = {
        "profile-secret": f"no ClusterProfile in namespace {namespace} names a Secret for kueue-admin",
        "secret": f"no Secret {' or '.join(secret_names(found.cluster))} in namespace {namespace}",
        "access-provider": f"no ClusterProfile in namespace {namespace} has an access provider",
    }
    return "no credentials: " + ", ".join(hints[way] for way in ways)


def _unreadable(profile: ClusterProfile) -> str:
    return f"ClusterProfile {_id(profile)} cannot be read: {profile.problem}"


def _id(profile: ClusterProfile) -> str:
    return f"{profile.meta.namespace}/{profile.meta.name}"
