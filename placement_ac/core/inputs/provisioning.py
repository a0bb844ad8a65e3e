"""
The inputs of provisioning: what the credentials of one cluster depend on when this program makes them.

No logic beyond reading what is there; no I/O, no clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from placement_ac.core.api.constants import LABEL_SYNC, CredentialsForm, Kind
from placement_ac.core.api.objects import (
    AccountToken,
    ClusterProfile,
    ManagedCluster,
    ProvisionedObject,
    Secret,
    WritableObject,
)
from placement_ac.core.inputs.state import Ages, Body, HubFacts
from placement_ac.core.kubeconfig.source import CredentialSource


@dataclass(frozen=True, slots=True)
class ProvisioningPolicy:
    """The admin's choices about provisioned credentials."""

    provision: bool = False
    """Whether any are made at all."""
    account: str = "placement-ac"
    """The name of the ManagedServiceAccounts and ClusterPermissions."""
    form: CredentialsForm = "kubeconfig"
    """Where a token goes: into our own kubeconfig, or OCM copies it to the ClusterProfile."""
    validity: float = 86400.0
    """Seconds for which a token is valid."""
    rules: tuple[Body, ...] = ()
    """The PolicyRules that an account gets on its worker."""
    proxy: str = ""
    """The URL of cluster-proxy, without the cluster's name; "": the worker is reached directly."""
    proxy_authority: bytes = b""
    """PEM: the CA of the proxy's certificate; empty: the one that OCM reports with the token."""
    served: bool = True
    """Whether the hub has ManagedServiceAccounts and ClusterPermissions at all."""
    retention: float = 0.0
    """Seconds for which unneeded credentials stay: a decision may flicker."""


@dataclass(frozen=True, slots=True)
class ProvisioningObjects:
    """The objects on the hub that credentials are made of; None: the hub has no such object."""

    managed_cluster: ManagedCluster | None = None
    account: ProvisionedObject | None = None
    """The ManagedServiceAccount."""
    permission: ProvisionedObject | None = None
    """The ClusterPermission."""
    token: AccountToken | None = None
    """The Secret in which OCM reports the account's token."""
    secret: Secret | None = None
    """The Secret with our kubeconfig."""
    profile: ClusterProfile | None = None
    """The ClusterProfile in Kueue's namespace, if it has an access provider that is supported."""
    profile_problem: str = ""
    """Why no plugin may be run for the server of that ClusterProfile; "": one may be."""
    profile_has_token: bool = False
    """Whether OCM has copied the token to the namespace of that ClusterProfile."""
    orphans: tuple[tuple[Kind, WritableObject], ...] = ()
    """Objects made under another account's name, which no MultiKueueCluster uses; Secrets first."""

    @property
    def account_is_ours(self) -> bool:
        """Whether the account is ours, or was handed over to us."""
        return self.account is not None and (self.account.ours or self.account.handed_over)

    @property
    def account_is_synced(self) -> bool:
        """Whether OCM copies the account's token to ClusterProfiles."""
        return self.account is not None and self.account.meta.labels.get(LABEL_SYNC) == "true"


@dataclass(frozen=True, slots=True)
class CredentialUsage:
    """Who needs the credentials of a cluster, and which MultiKueueClusters use them."""

    owners: Mapping[str, str] = field(default_factory=dict)
    """The AdmissionChecks that use the cluster: uid → name."""
    selected: bool = False
    """Whether a check of ours selects the cluster, and it is among those that get credentials."""
    listed: bool = False
    """Whether there is a MultiKueueCluster of ours for the cluster, whatever its source."""
    secret_used: bool = False
    """Whether a MultiKueueCluster uses our Secret; in the form cluster-profile it does so from before."""
    profile_used: bool = False
    """Whether a MultiKueueCluster uses the ClusterProfile of the cluster."""
    in_use: bool = False
    """Whether a MultiKueueCluster uses what is provisioned, in the form that is wanted or was."""


@dataclass(frozen=True, slots=True)
class ProvisioningInputs:
    """All that the provisioned credentials of one cluster depend on, taken in one go."""

    cluster: str
    now: datetime
    hub: HubFacts = field(default_factory=HubFacts)
    policy: ProvisioningPolicy = ProvisioningPolicy()
    kueue_namespace: str = "kueue-system"
    account_name: str = "placement-ac"
    """The name of its account and its permission: the Go kueue-addon's, if those were handed over."""
    objects: ProvisioningObjects = ProvisioningObjects()
    usage: CredentialUsage = CredentialUsage()
    external: CredentialSource | None = None
    """The usable credentials that others have put on the hub."""
    error: str = ""
    """Why the API server refused the last write."""
    ages: Ages = field(default_factory=dict)

    @property
    def secret_name(self) -> str:
        return f"{self.account_name}-{self.cluster}"
