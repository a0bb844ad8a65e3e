"""Credentials in a Secret that is found by its name. Pure."""

from typing import Final

from placement_ac.core.api.constants import SECRET
from placement_ac.core.credentials.source import (
    CredentialFinder,
    DiscoveryInputs,
    in_secret,
    secret_problem,
)
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

SECRET_NAMES: Final = ("kueue-admin-{}-kubeconfig", "multikueue-{}")


def secret_names(cluster: str) -> tuple[str, ...]:
    """Return the names under which a Secret for `cluster` is looked for."""
    return tuple(name.format(cluster) for name in SECRET_NAMES)


def clusters_of_secret(name: str) -> tuple[str, ...]:
    """Return the clusters whose Secret may have this name: the inverse of `secret_names`."""
    clusters = []
    for pattern in SECRET_NAMES:
        head, tail = pattern.split("{}")
        if name.startswith(head) and name.endswith(tail) and len(name) > len(head) + len(tail):
            clusters.append(name[len(head) : len(name) - len(tail)])
    return tuple(clusters)


def _find(inputs: DiscoveryInputs) -> CredentialSource | Unusable | None:
    problems = []
    for name in secret_names(inputs.cluster):
        secret = inputs.secret(name)
        if secret is None or (inputs.provisioned and name == inputs.provisioned.secret_name):
            continue
        problem = secret_problem(secret, inputs.now)
        if not problem:
            return in_secret(secret, "found by its name")
        problems.append(f"in Secret {inputs.kueue_namespace}/{name}, {problem}")
    return Unusable("; ".join(problems)) if problems else None


def _fix(inputs: DiscoveryInputs) -> str:
    *_, name = secret_names(inputs.cluster)
    return f"create Secret {inputs.kueue_namespace}/{name} with key kubeconfig"


NAMED_SECRET: Final = CredentialFinder((SECRET,), _find, _fix)
