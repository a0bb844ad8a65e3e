"""
Find the way into a cluster among what others have put on the hub.

Pure. A way that is there but unusable is told, and the next one is tried.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from placement_ac.model import Profile, Secret, SecretRef
from placement_ac.names import WAYS, Way
from placement_ac.snapshot import Source, Unusable

SECRET_NAMES: Final = ("kueue-admin-{}-kubeconfig", "multikueue-{}")


@dataclass(frozen=True, slots=True)
class Found:
    """What the hub holds for one cluster."""

    cluster: str
    kueue_namespace: str
    profiles: Sequence[Profile] = ()
    """Its ClusterProfiles, Kueue's namespace first."""
    secret: Callable[[str], Secret | None] = lambda _: None
    """Returns the Secret of that name in Kueue's namespace."""
    profiles_supported: bool = True
    """Whether the served MultiKueueCluster has `clusterProfileRef` (v1beta2)."""


def find(found: Found, ways: Sequence[Way] = WAYS) -> Source | Unusable:
    """Return the first usable way in the order of `ways`, or why there is none."""
    problems: list[str] = []
    for way in ways:
        answer = _FINDERS[way](found)
        if isinstance(answer, Source):
            return answer
        problems += [answer.why] if answer else []
    told = dict.fromkeys(problems)  # two ways may meet the same trouble
    return Unusable("; ".join(told) if told else _nothing_found(found, ways))


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


def _profile_secret(found: Found) -> Source | Unusable | None:
    problems = []
    for profile in found.profiles:
        if profile.problem:
            problems.append(_unreadable(profile))
        for ref in profile.secrets:
            problem = _what_is_wrong(ref, profile, found)
            if not problem:
                return Source("Secret", ref.name)
            problems.append(problem)
    return Unusable("; ".join(problems)) if problems else None


def _what_is_wrong(ref: SecretRef, profile: Profile, found: Found) -> str:
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
    return f"Secret {ref.namespace}/{ref.name} {secret.problem}" if secret.problem else ""


def _named_secret(found: Found) -> Source | Unusable | None:
    problems = []
    for name in secret_names(found.cluster):
        secret = found.secret(name)
        if secret and not secret.problem:
            return Source("Secret", name)
        if secret:
            problems.append(f"Secret {found.kueue_namespace}/{name} {secret.problem}")
    return Unusable("; ".join(problems)) if problems else None


def _access_provider(found: Found) -> Source | Unusable | None:
    for profile in found.profiles:
        if profile.meta.namespace != found.kueue_namespace:
            continue
        if profile.problem:
            return Unusable(_unreadable(profile))
        if not profile.providers:
            continue
        if not found.profiles_supported:
            return Unusable("Kueue on this hub is too old for ClusterProfiles (it needs v1beta2)")
        return Source("ClusterProfile", profile.meta.name)
    return None


_FINDERS: Final[Mapping[Way, Callable[[Found], Source | Unusable | None]]] = {
    "profile-secret": _profile_secret,
    "secret": _named_secret,
    "access-provider": _access_provider,
}


def _nothing_found(found: Found, ways: Sequence[Way]) -> str:
    namespace = found.kueue_namespace
    hints = {
        "profile-secret": "no ClusterProfile names a Secret for kueue-admin",
        "secret": f"no Secret {' or '.join(secret_names(found.cluster))} in namespace {namespace}",
        "access-provider": f"no ClusterProfile in namespace {namespace} has an access provider",
    }
    return "no credentials: " + ", ".join(hints[way] for way in ways)


def _unreadable(profile: Profile) -> str:
    return f"ClusterProfile {_id(profile)} cannot be read: {profile.problem}"


def _id(profile: Profile) -> str:
    return f"{profile.meta.namespace}/{profile.meta.name}"
