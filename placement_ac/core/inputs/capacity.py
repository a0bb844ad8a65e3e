"""
The inputs of the CapacityProviders that follow a Placement.

Plain data; no I/O, no clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from placement_ac.core.api.objects import CapacityProvider
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts


@dataclass(frozen=True, slots=True)
class WrittenQueues:
    """The queues that our ManifestWork has put onto a worker."""

    queues: Mapping[Queue, QueueFacts] = field(default_factory=dict)
    """LocalQueues that are there as we set them → the ClusterQueue behind each, as we set it."""
    others: frozenset[Queue] = frozenset()
    """LocalQueues of the ManifestWork that are not, or whose ClusterQueue is not: the worker knows more."""
    problem: str = ""
    """The field of the ManifestWork that is no quantity."""


@dataclass(frozen=True, slots=True)
class CapacityInputs:
    """The CapacityProviders of ours that name a Placement, and what their sums depend on."""

    providers: tuple[CapacityProvider, ...] = ()
    queues: Mapping[str, frozenset[Queue]] = field(default_factory=dict)
    """ClusterQueue of the hub that sends jobs through the Placement's checks → its LocalQueues."""
    covered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """ResourceFlavor of these ClusterQueues → the resources that they cover with it."""
    written: Mapping[str, WrittenQueues] = field(default_factory=dict)
    """Cluster → the queues there that are ours."""
