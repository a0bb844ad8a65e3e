"""
The credentials of a cluster: where Kueue finds them, what access they give, or why Kueue can use none.

Pure data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """Where Kueue finds the credentials of a cluster: a Secret or a ClusterProfile in its namespace."""

    kind: Literal["Secret", "ClusterProfile"]
    name: str
    expires: datetime | None = field(default=None, compare=False)
    """When they expire; None: never, or not known. Renewed credentials have the same source."""
    issued: datetime | None = field(default=None, compare=False)
    version: str = field(default="", compare=False)
    """The digest of the content: another one may lead to another API server."""
    origin: str = field(default="", compare=False)
    """How they were found, for people."""

    @property
    def cluster_source(self) -> dict[str, Any]:
        """The `clusterSource` of a MultiKueueCluster with these credentials."""
        if self.kind == "ClusterProfile":
            return {"clusterProfileRef": {"name": self.name}}
        return {"kubeConfig": {"location": self.name, "locationType": self.kind}}


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a cluster cannot be used: the fix, then the reason."""

    why: str


CredentialsByCluster = Mapping[str, CredentialSource | Unusable]
"""Managed cluster → its credentials, or why it has none that are usable."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """An API server and the credentials for it, all of it in memory. Its repr shows no secret."""

    server: str
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    """PEM, as are the next two."""
    key: str = field(default="", repr=False)
    authority: str = field(default="", repr=False)
    """The CA of the server's certificate; "": those that this machine trusts."""
    server_name: str = ""
    """The name in the server's certificate, if that is not the host's."""
    proxy: str = field(default="", repr=False)
    """Its URL; "": the environment's."""
    impersonation: tuple[tuple[str, str], ...] = ()
    """The headers for the user as whom each request is sent; one may occur more than once."""
    insecure: bool = False
    """Whether the server is not verified. Never so for a worker."""
    expires: datetime | None = None
    """When it ends, in UTC: the token, the client certificate or all authorities, whichever is first."""
    expires_what: str = ""
    """Which of them ends then: expiry.TOKEN, CLIENT_CERTIFICATE or AUTHORITY."""
    issued: datetime | None = None
    """When that one became valid, if known."""

    @property
    def is_secure(self) -> bool:
        return self.server.startswith("https://")


@dataclass(frozen=True, slots=True)
class UsableByKueueOnly(Unusable):
    """Access that Kueue can use and this program cannot. Never connect with `access`: it is incomplete."""

    access: ClusterAccess = field(repr=False)
