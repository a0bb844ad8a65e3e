"""
Access to a worker cluster's API server, as a kubeconfig or a ClusterProfile gives it.

Pure data.
"""

from dataclasses import dataclass, field
from datetime import datetime

from placement_ac.core.kubeconfig.source import Unusable


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
    expires: datetime | None = None
    """When it ends, in UTC: the token, the client certificate or all authorities, whichever is first."""
    expires_what: str = ""
    """Which of them ends then: expiry.TOKEN, CLIENT_CERTIFICATE or AUTHORITY."""
    issued: datetime | None = None
    """When that one became valid, if it says so."""

    @property
    def is_secure(self) -> bool:
        return self.server.startswith("https://")


@dataclass(frozen=True, slots=True)
class UsableByKueueOnly(Unusable):
    """Access that Kueue can use and this program cannot. Never connect with `access`: it is incomplete."""

    access: ClusterAccess = field(repr=False)
