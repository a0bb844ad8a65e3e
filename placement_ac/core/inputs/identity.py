"""
The identity of a worker: the uids of objects that its kubeconfig shows.

Pure. `metadata.uid` is unique in an API server and is never used again: two connections that show the same
one lead to one worker. The exception is an API server that was restored from the backup of another one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from placement_ac.core.kubeconfig.source import CredentialSource

QUEUES_COMPARABLE_SECONDS: Final = 600.0
"""How far apart two workers may have been asked so that their ClusterQueues tell that they are not one."""


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """The objects that a worker has shown, all by uid."""

    version: str
    """Of the credentials that were used."""
    asked_at: datetime
    namespace: str = ""
    """Namespace kube-system; "": the account may not read it."""
    queues: frozenset[str] = frozenset()
    """Its first ClusterQueues; none: the account may not list them."""
    copies: frozenset[str] = frozenset()
    """The first Workloads there that a hub's MultiKueue has made."""
    problem: str = ""
    """Why it could not be asked; "": it answered."""

    @property
    def uids(self) -> Iterator[str]:
        if self.namespace:
            yield self.namespace
        yield from self.queues
        yield from self.copies

    def is_comparable(self, other: "WorkerIdentity") -> bool:
        """Whether these answers tell two workers apart: without an object in common, they are two."""
        apart = abs(self.asked_at - other.asked_at)
        has_queues = self.queues and other.queues and apart <= timedelta(seconds=QUEUES_COMPARABLE_SECONDS)
        return bool((self.namespace and other.namespace) or has_queues)


Identities = Mapping[CredentialSource, WorkerIdentity]
"""Credentials → the last answer of their worker."""
