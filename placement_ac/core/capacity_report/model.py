"""
The capacity of workers, by cluster, ClusterQueue, flavor and resource.

Pure. Amounts are in thousandths. The dataclasses are also the published document (`document.py`): a quota is
a list of rows there, each with flavor, resource and the amounts in their order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter


class Supply(NamedTuple):
    """A resource in a flavor."""

    flavor: str
    resource: str


class Amounts(NamedTuple):
    """The amounts of one resource in one flavor."""

    nominal: int = 0
    used: int = 0
    """Reserved by Workloads with quota there, of whichever hub; borrowed quota included."""
    waiting: int | None = 0
    """Asked for by this hub's Workloads that are nominated there and not placed yet; None: it is unknown."""
    borrowable: int | None = 0
    """How much more than `nominal` may be reserved; None: the cohort decides, without a limit of its own."""
    free: int = 0
    """The nominal quota that is not used; none of a queue on hold."""
    largest: int = 0
    """The most that one podSet gets now within the nominal quota of one queue, after those that wait."""


_Row = tuple[str, str, int, int, int | None, int | None, int, int]
_ROWS = TypeAdapter(list[_Row])


def _rows(quota: Mapping[Supply, Amounts]) -> list[tuple[object, ...]]:
    return [(*supply, *amounts) for supply, amounts in quota.items()]


def _quota(rows: object) -> Mapping[Supply, Amounts]:
    return {Supply(row[0], row[1]): Amounts(*row[2:]) for row in _ROWS.validate_python(rows)}


Quota = Annotated[Mapping[Supply, Amounts], PlainValidator(_quota), PlainSerializer(_rows)]


@dataclass(frozen=True, slots=True)
class QueueCapacity:
    """A ClusterQueue of a worker."""

    name: str
    quota: Quota
    active: bool = True
    """Whether it gives quota."""
    pending: int = 0
    """Workloads that wait there, of whichever hub."""


@dataclass(frozen=True, slots=True)
class ClusterCapacity:
    """The ClusterQueues of a cluster's worker to which LocalQueues lead; each is in it once."""

    name: str
    placements: tuple[str, ...] = ()
    """The Placements whose MultiKueueConfigs list it."""
    read_at: Annotated[datetime | None, Field(alias="readAt")] = None
    """When its worker was asked; None: it was not, or its answer says nothing."""
    problem: str = ""
    """Why it is not known."""
    queues: tuple[QueueCapacity, ...] = ()
    quota: Quota = field(default_factory=dict)
    """The sum of its queues; a queue that borrows takes from the free quota of the others."""

    @property
    def known(self) -> bool:
        return self.read_at is not None and not self.problem

    @property
    def pending(self) -> int:
        """Workloads that wait in its queues, of whichever hub."""
        return sum(queue.pending for queue in self.queues)


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """The capacity of all clusters, by name."""

    clusters: tuple[ClusterCapacity, ...] = ()
    gpus: tuple[str, ...] = ()
    """The resources that count as GPUs."""
    waiting: Mapping[str, int] | None = None
    """Resource → what all waiting Workloads ask for, each counted once; None: it is unknown."""
    note: str = ""
    """That all is left out, and why."""
    counted_at: Annotated[datetime | None, Field(alias="countedAt")] = None
    """When this hub's jobs were counted that came and left since the answers; None: they were not."""
    version: Literal[2] = 2
    """Of the document."""

    @property
    def steps(self) -> object:
        """The part that is worth a write when it differs: clusters, queues, nominal quota, steps of use.

        An admin plans with whole GPUs, and with a twentieth of everything else.
        """
        return [
            (
                cluster.name,
                cluster.placements,
                cluster.problem,
                [(queue.name, queue.active, self._steps_of(queue.quota)) for queue in cluster.queues],
            )
            for cluster in self.clusters
        ]

    def _steps_of(self, quota: Mapping[Supply, Amounts]) -> list[tuple[object, ...]]:
        def number(amount: int, supply: Supply, nominal: int) -> int:
            return amount // (1000 if supply.resource in self.gpus else max(nominal // 20, 1))

        return [
            (
                *supply,
                one.nominal,
                *(number(some or 0, supply, one.nominal) for some in (one.used, one.waiting)),
            )
            for supply, one in quota.items()
        ]

    def totals(self, clusters: Iterable[ClusterCapacity] | None = None) -> dict[str, Amounts]:
        """Return resource → its sum over clusters (None: all) and flavors, GPUs first.

        Of all clusters together, a job that waits for several of them counts once.
        """
        shown = self.clusters if clusters is None else tuple(clusters)
        sums = added(
            (Supply("", supply.resource), amounts)
            for cluster in shown
            for supply, amounts in cluster.quota.items()
        )
        totals = {supply.resource: amounts for supply, amounts in sums.items()}
        if clusters is None and self.waiting is not None:
            waiting = self.waiting
            totals = {name: one._replace(waiting=waiting.get(name, 0)) for name, one in totals.items()}
        return dict(sorted(totals.items(), key=lambda item: by_resource(item[0], self.gpus)))


def by_resource(resource: str, gpus: tuple[str, ...]) -> tuple[int, str]:
    """Return a sort key: the GPUs in their order, then all others by name."""
    return (gpus.index(resource) if resource in gpus else len(gpus), resource)


def added(parts: Iterable[tuple[Supply, Amounts]]) -> dict[Supply, Amounts]:
    """Return the sum of the amounts of each supply; `largest` is that of the best part."""
    sums: dict[Supply, Amounts] = {}
    for supply, more in parts:
        one = sums.get(supply)
        sums[supply] = more if one is None else _sum(one, more)
    return sums


def _sum(one: Amounts, more: Amounts) -> Amounts:
    return Amounts(
        one.nominal + more.nominal,
        one.used + more.used,
        None if one.waiting is None or more.waiting is None else one.waiting + more.waiting,
        None if one.borrowable is None or more.borrowable is None else one.borrowable + more.borrowable,
        one.free + more.free,
        max(one.largest, more.largest),
    )
