"""What a way into a cluster comes to: where Kueue finds it, or why it cannot be used."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """How Kueue gets into a cluster: a Secret in its namespace, or a ClusterProfile there."""

    kind: Literal["Secret", "ClusterProfile"]
    name: str
    expires: datetime | None = field(default=None, compare=False)
    """When it ends, as far as one can tell; the way stays the same when it is renewed."""
    issued: datetime | None = field(default=None, compare=False)
    version: str = field(default="", compare=False)
    """Of what is in it: another one may open another door."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a cluster cannot be used, for a person to act on."""

    why: str


CredentialsByCluster = Mapping[str, CredentialSource | Unusable]
"""Managed cluster → the way in, or why there is none."""
