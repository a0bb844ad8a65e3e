"""
Facts of a worker's queues: the quota of its ClusterQueues, and how much of it is used.

Pure. Read from ClusterQueues and LocalQueues in Kueue's v1beta1 and v1beta2; amounts are in thousandths.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from placement_ac.core.api.fields import Obj, name_of, namespace_of
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.schemas import ClusterQueueSpec, ClusterQueueStatus, Conditions, LocalQueueSpec
from placement_ac.core.api.shapes import ApiModel, validate
from placement_ac.core.api.text import shortened
from placement_ac.core.inputs.flavors import Flavor
from placement_ac.core.inputs.job_facts import NO_JOB_FACTS, NO_NEEDS, JobFacts, JobNeeds

S = TypeVar("S", bound=ApiModel)
T = TypeVar("T", bound=Conditions)

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
    nodes: Flavor | None = None
    """The nodes of the flavor; None: they are not known."""

    @property
    def most(self) -> int | None:
        """The largest amount that one podSet can ever get; None: it is not known."""
        return None if self.borrowable is None else self.nominal + self.borrowable


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """The ClusterQueue behind a LocalQueue of a worker; LocalQueues of one share one object."""

    cluster_queue: str
    quotas: Mapping[str, tuple[FlavorQuota, ...]] = field(default_factory=dict)
    """Resource → its quota in each flavor, in the ClusterQueue's order."""
    pending: int = 0
    """Workloads that wait there, of whichever hub."""
    reserving: int = 0
    """Workloads that have quota there."""
    active: bool = True
    """Whether it gives quota: neither it nor the LocalQueue is on hold, and all that it needs is there."""
    selects_no_namespace: bool = False
    """Whether it has no `namespaceSelector`: then it gives no quota, and is not `active`."""
    exists: bool = True
    cohort: str = ""
    """The cohort with which it shares quota; "": none."""


class WorkloadsThere(NamedTuple):
    """The uids of a Placement's Workloads on a worker, as the hub knows them, and what its jobs need."""

    running: frozenset[str] = frozenset()
    """Their quota is reserved."""
    waiting: frozenset[str] = frozenset()
    """Those that are nominated there."""
    needs: JobNeeds = NO_NEEDS


NO_WORKLOADS: Final = WorkloadsThere()


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """The queues of a worker; `problem`: why they are not known."""

    queues: Mapping[Queue, QueueFacts] = field(default_factory=dict)
    """All its LocalQueues."""
    then: WorkloadsThere = NO_WORKLOADS
    """The Placement's Workloads there when the worker was asked."""
    problem: str = ""
    invalid: bool = False
    """Whether the problem is a field of an object there that is not as Kueue writes it."""
    silent: bool = False
    """Whether the problem is that there was no answer in time."""
    age: float = 0.0
    """Seconds since the question."""
    jobs: JobFacts = NO_JOB_FACTS
    """The things there beside the queues, as far as it let us see them."""

    @property
    def is_fresh(self) -> bool:
        """Whether it is an answer that still counts, be it a problem."""
        return self.age <= FACTS_VALID_SECONDS

    @property
    def known(self) -> Mapping[Queue, QueueFacts] | None:
        """The queues; None: they are not known, or were too long ago."""
        return self.queues if self.is_fresh and not self.problem else None

    @property
    def known_of_jobs(self) -> JobFacts:
        """The same, if it still counts."""
        return self.jobs if self.is_fresh and not self.problem else NO_JOB_FACTS


def flavors_in(queues: Mapping[Queue, QueueFacts]) -> frozenset[str]:
    """Return the names of the flavors of these queues."""
    return frozenset(
        quota.flavor for facts in queues.values() for quotas in facts.quotas.values() for quota in quotas
    )


def with_flavors(
    queues: Mapping[Queue, QueueFacts], flavors: Mapping[str, Flavor]
) -> Mapping[Queue, QueueFacts]:
    """Return the queues with the nodes of these flavors; LocalQueues of one ClusterQueue share one object."""
    known = {id(facts): facts for facts in queues.values()} if flavors else {}
    changed = {
        at: replace(
            facts,
            quotas={
                resource: tuple([quota._replace(nodes=flavors.get(quota.flavor)) for quota in quotas])
                for resource, quotas in facts.quotas.items()
            },
        )
        for at, facts in known.items()
    }
    return {queue: changed.get(id(facts), facts) for queue, facts in queues.items()}


def worker_facts(local_queues: Iterable[Obj], cluster_queues: Iterable[Obj]) -> WorkerFacts:
    """Return the facts of each LocalQueue of a worker.

    A worker may say anything: if a field is not as Kueue writes it, nothing is known of the worker, and the
    problem names the field.
    """
    try:
        by_name = {name_of(cluster_queue): _cluster_queue(cluster_queue) for cluster_queue in cluster_queues}
        return WorkerFacts(dict(_local_queue(local_queue, by_name) for local_queue in local_queues))
    except _WrongField as wrong:
        return WorkerFacts(problem=str(wrong), invalid=True)


class _WrongField(ValueError):
    """A field of a worker's object is not as Kueue writes it."""


def _local_queue(raw: Obj, by_name: dict[str, QueueFacts]) -> tuple[Queue, QueueFacts]:
    spec, status = _read(raw, "LocalQueue", LocalQueueSpec, Conditions)
    facts = by_name.setdefault(spec.cluster_queue, _missing(spec.cluster_queue))
    active = facts.active and _is_active(spec.stop_policy, status)
    namespace = namespace_of(raw)
    return (namespace, name_of(raw)), facts if active == facts.active else replace(facts, active=active)


def _missing(name: str) -> QueueFacts:
    return QueueFacts(name, active=False, exists=False)


def _cluster_queue(raw: Obj) -> QueueFacts:
    spec, status = _read(raw, "ClusterQueue", ClusterQueueSpec, ClusterQueueStatus)
    in_cohort, selects_none = bool(spec.cohort_name or spec.cohort), spec.namespace_selector is None
    reserved = {
        (flavor.name, resource.name): resource.total
        for flavor in status.flavors_reservation
        for resource in flavor.resources
    }
    quotas: dict[str, list[FlavorQuota]] = {}
    groups = (status.effective_quotas or spec).resource_groups
    for flavor in (flavor for group in groups for flavor in group.flavors):
        for resource in flavor.resources:
            limit = resource.borrowing_limit if in_cohort else 0
            quota = FlavorQuota(
                flavor.name, resource.nominal_quota, reserved.get((flavor.name, resource.name), 0), limit
            )
            quotas.setdefault(resource.name, []).append(quota)
    return QueueFacts(
        name_of(raw),
        {resource: tuple(flavors) for resource, flavors in quotas.items()},
        status.pending_workloads,
        status.reserving_workloads,
        _is_active(spec.stop_policy, status) and not selects_none,
        selects_no_namespace=selects_none,
        cohort=spec.cohort_name or spec.cohort or "",
    )


def _read(raw: Obj, kind: str, spec: type[S], status: type[T]) -> tuple[S, T]:
    """Return both parts of an object. Raises _WrongField."""
    found_spec, wrong_spec = validate(spec, raw, "spec")
    found_status, wrong_status = validate(status, raw, "status")
    if found_spec is None or found_status is None:
        raise _WrongField(
            f"correct {kind} {one_line(shortened(name_of(raw)))} there: {wrong_spec or wrong_status}"
        )
    return found_spec, found_status


def _is_active(stop_policy: str | None, status: Conditions) -> bool:
    stopped = (stop_policy or "None") != "None"
    return not stopped and not any(
        (condition.type, condition.status) == ("Active", "False") for condition in status.conditions
    )
