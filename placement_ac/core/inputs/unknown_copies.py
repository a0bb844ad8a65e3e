"""
The copies on a worker that have the origin of this hub's Kueue, and no Workload on this hub.

Pure. They are another hub's with the same origin, or this hub's own from after the backup it was restored
from. Kueue deletes them, with their jobs, within a minute after it is connected to the worker.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from placement_ac.core.api.text import count_text
from placement_ac.core.kubeconfig.source import CredentialSource

COUNTED_MAX: Final = 100
"""So many are counted at most: for each, the hub is asked for its Workload."""


@dataclass(frozen=True, slots=True)
class UnknownCopies:
    """Such copies on one worker that hold quota and are not finished."""

    version: str
    """Of the credentials that were used."""
    asked_at: datetime
    number: int = 0
    """At most COUNTED_MAX."""
    origin: str = ""
    assumed: str = ""
    """The ConfigMap that could not be read, so that the origin is Kueue's default; "": it was read."""
    problem: str = ""
    """Why the worker could not be asked; "": it answered."""

    @property
    def text(self) -> str:
        """`3 unfinished Workloads with quota, of origin multikueue, that this hub does not have`."""
        number = f"{'at least ' if self.number >= COUNTED_MAX else ''}{self.number}"
        noun = count_text(self.number, "unfinished Workload").partition(" ")[2]
        origin = f"{self.origin} (assumed: {self.assumed} cannot be read)" if self.assumed else self.origin
        return f"{number} {noun} with quota, of origin {origin}, that this hub does not have"


UnknownCopiesByCredentials = Mapping[CredentialSource, UnknownCopies]
"""Credentials → the last answer of their worker."""
