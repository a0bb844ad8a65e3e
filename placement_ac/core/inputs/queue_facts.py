"""
Facts of a worker's queues: the quota of its ClusterQueues, and how much of it is used.

Pure. Read from ClusterQueues and LocalQueues in Kueue's v1beta1 and v1beta2; amounts are in thousandths.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from placement_ac.core.api.quantities import milli
from placement_ac.core.api.schemas import Raw, as_mapping

Queue = tuple[str, str]
"""The namespace and the name of a LocalQueue."""

FACTS_VALID_SECONDS: Final = 60.0
"""Older facts count as unknown."""


class FlavorQuota(NamedTuple):
    """The quota that a ClusterQueue has of one resource in one flavor."""

    flavor: str
    nominal: int
    reserved: int = 0
    """The part that Workloads with quota hold, borrowed quota included."""
    borrowable: int | None = 0
    """How much more than `nominal` it may reserve at most; None: its cohort has it, without a limit here."""

    @property
    def most(self) -> int | None:
        """The largest amount that one podSet can ever get; None: it is not known."""
        return None if self.borrowable is None else self.nominal + self.borrowable


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """The ClusterQueue behind a LocalQueue of a worker; LocalQueues of one ClusterQueue share one object."""

    cluster_queue: str
    quotas: Mapping[str, tuple[FlavorQuota, ...]] = field(default_factory=dict)
    """Resource → its quota in each flavor, in the ClusterQueue's order."""
    pending: int = 0
    """Workloads that wait there, of whichever hub."""
    reserving: int = 0
    """Workloads that have quota there."""
    active: bool = True
    """Whether it gives quota: it is not stopped, and all that it needs is there."""


class WorkloadsThere(NamedTuple):
    """The uids of a Placement's Workloads on a worker, as the hub knows them."""

    running: frozenset[str] = frozenset()
    """Their quota is reserved."""
    waiting: frozenset[str] = frozenset()
    """Those that are nominated there."""


NO_WORKLOADS: Final = WorkloadsThere()


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """The queues of a worker; `problem`: why they are not known."""

    queues: Mapping[Queue, QueueFacts] = field(default_factory=dict)
    """All its LocalQueues."""
    then: WorkloadsThere = NO_WORKLOADS
    """The Placement's Workloads there when the worker was asked."""
    problem: str = ""
    age: float = 0.0
    """Seconds since the question."""

    @property
    def is_fresh(self) -> bool:
        """Whether it is an answer that still counts, be it a problem."""
        return self.age <= FACTS_VALID_SECONDS

    @property
    def known(self) -> Mapping[Queue, QueueFacts] | None:
        """The queues; None: they are not known, or were too long ago."""
        return self.queues if self.is_fresh and not self.problem else None


def queue_facts(local_queues: Iterable[Raw], cluster_queues: Iterable[Raw]) -> dict[Queue, QueueFacts]:
    """Return the facts of each LocalQueue; whatever has another shape than Kueue's counts as absent."""
    by_name = {_name(one): _facts(one) for one in cluster_queues}
    found = {}
    for local in local_queues:
        name = str(as_mapping(local.get("spec")).get("clusterQueue", ""))
        namespace = str(as_mapping(local.get("metadata")).get("namespace", ""))
        found[namespace, _name(local)] = by_name.setdefault(name, QueueFacts(name))
    return found


def _facts(cluster_queue: Raw) -> QueueFacts:
    spec, status = as_mapping(cluster_queue.get("spec")), as_mapping(cluster_queue.get("status"))
    in_cohort = bool(spec.get("cohortName") or spec.get("cohort"))
    reserved = {
        (flavor, resource): milli(amounts.get("total")) or 0
        for flavor, resource, amounts in _amounts(status.get("flavorsReservation"))
    }
    quotas: dict[str, list[FlavorQuota]] = {}
    for group in _mappings(spec.get("resourceGroups")):
        for flavor, resource, amounts in _amounts(group.get("flavors")):
            nominal, limit = milli(amounts.get("nominalQuota")), milli(amounts.get("borrowingLimit"))
            quota = FlavorQuota(
                flavor, nominal or 0, reserved.get((flavor, resource), 0), limit if in_cohort else 0
            )
            quotas.setdefault(resource, []).append(quota)
    return QueueFacts(
        _name(cluster_queue),
        {resource: tuple(flavors) for resource, flavors in quotas.items()},
        _number(status.get("pendingWorkloads")),
        _number(status.get("reservingWorkloads")),
        _is_active(status),
    )


def _is_active(status: Raw) -> bool:
    conditions = _mappings(status.get("conditions"))
    return not any((one.get("type"), one.get("status")) == ("Active", "False") for one in conditions)


def _amounts(flavors: Any) -> Iterator[tuple[str, str, Raw]]:
    """Yield flavor, resource and its amounts."""
    for flavor in _mappings(flavors):
        for resource in _mappings(flavor.get("resources")):
            yield str(flavor.get("name", "")), str(resource.get("name", "")), resource


def _name(item: Raw) -> str:
    return str(as_mapping(item.get("metadata")).get("name", ""))


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _mappings(value: Any) -> list[Raw]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
