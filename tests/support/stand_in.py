"""
An embedded hub that plays the API server behind the proxy, where no kube-apiserver is at hand.

Its URL and the token of its admin are used, as of any API server; its journal, faults and users are not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from placement_lab.hub import Hub

CRD = "customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class StandIn:
    """The hub as an API server that can be wiped; `kept`: the uids of the objects that were there first."""

    hub: Hub
    kept: frozenset[str]
    ca_file: None = None
    rbac_lag: float = 0.0

    @property
    def url(self) -> str:
        return self.hub.url

    @property
    def token(self) -> str:
        return self.hub.token

    def wipe(self) -> None:
        """Delete every object that did not exist at the start, with or without finalizers, but no CRD."""
        store = self.hub._store  # noqa: SLF001  # as etcd, which an API server does not show either

        def delete() -> None:
            for uid, record in tuple(store.by_uid.items()):
                if uid not in self.kept and record.resource.plural != CRD and uid in store.by_uid:
                    store.remove(record)

        self.hub._in_loop(delete)  # noqa: SLF001  # only its thread may use the store


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """Start a hub without CRDs."""
    with Hub(crds=[]) as hub:
        kept = frozenset(hub._store.by_uid)  # noqa: SLF001  # as above
        yield StandIn(hub, kept)
