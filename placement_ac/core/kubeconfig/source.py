"""The credentials of a cluster: where Kueue finds them, or why there are none that it can use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """Where Kueue finds the credentials of a cluster: a Secret or a ClusterProfile in its namespace."""

    kind: Literal["Secret", "ClusterProfile"]
    name: str
    expires: datetime | None = field(default=None, compare=False)
    """When they expire, as far as one can tell; renewed credentials have the same source."""
    issued: datetime | None = field(default=None, compare=False)
    version: str = field(default="", compare=False)
    """The digest of the content: another one may lead to another API server."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a cluster cannot be used: the fix, then the reason."""

    why: str


CredentialsByCluster = Mapping[str, CredentialSource | Unusable]
"""Managed cluster → its credentials, or why it has none that are usable."""
