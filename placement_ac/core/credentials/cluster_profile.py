"""Credentials by a ClusterProfile: a Secret that it names for Kueue, or its access provider. Pure."""

from collections.abc import Collection
from typing import Final

from placement_ac.core.api.constants import CLUSTER_PROFILE, SECRET
from placement_ac.core.api.objects import ClusterProfile, SecretRef
from placement_ac.core.credentials.source import (
    TOO_OLD,
    CredentialFinder,
    DiscoveryInputs,
    in_secret,
    secret_problem,
)
from placement_ac.core.kubeconfig.servers import AllowedServers, server_problem
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable


def _find_secret(inputs: DiscoveryInputs) -> CredentialSource | Unusable | None:
    problems = []
    for profile in inputs.profiles:
        if profile.problem:
            problems.append(_unreadable(profile))
        for ref in profile.secrets:
            problem = _ref_problem(ref, profile, inputs)
            secret = inputs.secret(ref.name)
            if secret and not problem:
                return in_secret(secret, "named by its ClusterProfile")
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


def _find_provider(inputs: DiscoveryInputs) -> CredentialSource | Unusable | None:
    for profile in inputs.profiles:
        if profile.problem:
            return Unusable(_unreadable(profile))
        if not supports(profile, inputs.providers):
            continue
        if not inputs.profiles_supported:
            return Unusable(TOO_OLD)
        if problem := disallowed_server(profile, inputs.providers):
            return Unusable(problem)
        return CredentialSource("ClusterProfile", profile.meta.name, origin="for its access provider")
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


def _unreadable(profile: ClusterProfile) -> str:
    return f"fix {_label(profile)}: {profile.problem}"


def _label(profile: ClusterProfile) -> str:
    return f"ClusterProfile {'/'.join(profile.meta.id)}"


def _profile(inputs: DiscoveryInputs) -> str:
    return f"the ClusterProfile of {inputs.cluster} in namespace {inputs.kueue_namespace}"


PROFILE_SECRET: Final = CredentialFinder(
    (SECRET, CLUSTER_PROFILE),
    _find_secret,
    lambda inputs: f"name a Secret for kueue-admin in {_profile(inputs)}",
)
ACCESS_PROVIDER: Final = CredentialFinder(
    (CLUSTER_PROFILE,), _find_provider, lambda inputs: f"give {_profile(inputs)} an access provider"
)
