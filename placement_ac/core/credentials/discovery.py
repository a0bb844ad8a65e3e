"""
Find credentials for a cluster: among those that others have put on the hub, then those of our own.

Pure. The methods are tried in their order: one that finds something unusable is reported, and the next tried.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from placement_ac.core.api.constants import CredentialMethod
from placement_ac.core.credentials.cluster_profile import ACCESS_PROVIDER, PROFILE_SECRET
from placement_ac.core.credentials.named_secret import NAMED_SECRET
from placement_ac.core.credentials.provisioned import find_provisioned
from placement_ac.core.credentials.source import CredentialFinder, DiscoveryInputs, Find
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

SOURCES: Final[Mapping[CredentialMethod, CredentialFinder]] = {
    "secret": NAMED_SECRET,
    "profile-secret": PROFILE_SECRET,
    "access-provider": ACCESS_PROVIDER,
}
"""The sources of what others make, the simplest to set up first; the setting `credentials` orders them."""


def find_credentials(inputs: DiscoveryInputs) -> CredentialSource | Unusable:
    """Return the first usable credentials that others made, else ours; or why none are usable."""
    source, problems = _search(inputs, (*_searches(inputs), find_provisioned))
    return source or Unusable("; ".join(problems) or _nothing_found(inputs))


def find_external_credentials(inputs: DiscoveryInputs) -> CredentialSource | None:
    """Return the first usable credentials that others have put on the hub."""
    return _search(inputs, _searches(inputs))[0]


def _searches(inputs: DiscoveryInputs) -> list[Find]:
    return [SOURCES[method].find for method in inputs.methods]


def _search(
    inputs: DiscoveryInputs, searches: Iterable[Find]
) -> tuple[CredentialSource | None, Iterable[str]]:
    """Return the first usable credentials, or why none of the existing ones is, each reason once."""
    problems: dict[str, None] = {}
    for find in searches:
        source = find(inputs)
        if isinstance(source, CredentialSource):
            return source, ()
        if source:
            problems[source.why] = None
    return None, problems


def _nothing_found(inputs: DiscoveryInputs) -> str:
    """Return the simplest fix by these methods."""
    fixes = (source.fix(inputs) for method, source in SOURCES.items() if method in inputs.methods)
    return f"{next(fixes, 'set --credentials')}: {inputs.cluster} has no credentials"
