"""
Where the credentials of a cluster come from: the interface of a source, and what several sources share.

Pure. A source is one `CredentialFinder` in a module of this folder; `discovery` has the table of all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import CREDENTIAL_METHODS, CredentialMethod, Kind
from placement_ac.core.api.objects import ClusterProfile, Secret
from placement_ac.core.inputs.provisioning import ProvisioningInputs
from placement_ac.core.kubeconfig.servers import AllowedServers
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
"""Before anything expires."""
TOO_OLD: Final = "update Kueue on this hub to one with v1beta2: it is too old for ClusterProfiles"


@dataclass(frozen=True, slots=True)
class DiscoveryInputs:
    """The objects on the hub from which the credentials of one cluster are chosen."""

    cluster: str
    kueue_namespace: str
    methods: Sequence[CredentialMethod] = CREDENTIAL_METHODS
    """Those by which to look for what others have made."""
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


Find = Callable[[DiscoveryInputs], CredentialSource | Unusable | None]
"""Finds credentials and checks them: returns usable ones, with their `cluster_source` and when they expire,
or what to change in those that there are; None: there are none."""


class CredentialFinder(NamedTuple):
    """A source of credentials."""

    reads: tuple[Kind, ...]
    """The kinds of the objects that it looks at."""
    find: Find
    fix: Callable[[DiscoveryInputs], str]
    """Returns how to give the cluster credentials in this way."""


def secret_problem(secret: Secret, now: datetime) -> str:
    """Return what must change in a Secret before Kueue can use it, and why; "" when Kueue can use it now."""
    if not secret.problem and secret.expires and secret.expires <= now:
        return f"renew the {secret.expires_what}: it expired at {secret.expires:%Y-%m-%dT%H:%M:%SZ}"
    return secret.problem


def in_secret(secret: Secret, origin: str) -> CredentialSource:
    """Return the credentials in a Secret; `origin`: how it was found."""
    return CredentialSource("Secret", secret.meta.name, secret.expires, secret.issued, secret.digest, origin)
