"""
The inputs of the set-up of one worker: what its ManifestWork depends on.

No logic beyond reading what is there; no I/O, no clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from placement_ac.core.api.fields import Obj
from placement_ac.core.api.objects import ManagedCluster, ManifestWork
from placement_ac.core.inputs.state import Ages, HubFacts


@dataclass(frozen=True, slots=True)
class WorkerSetupPolicy:
    """The admin's choices about the set-up of workers."""

    enabled: bool = False
    """Whether any worker is set up at all."""
    template: str = ""
    """The ConfigMap of checks that name none, in Kueue's namespace; "": the hub's queues are the template."""
    reserve: float = 0.1
    """The share of a cluster's CPU, memory and ephemeral storage that is no quota."""
    retention: float = 0.0
    """Seconds for which an unneeded ManifestWork stays: a decision may flicker."""
    served: bool = True
    """Whether the hub has ManifestWorks at all."""
    wanted_known: bool = True
    """Whether all is known from which ManifestWorks are made; commands read no templates."""


@dataclass(frozen=True, slots=True)
class HubClusterQueue:
    """A ClusterQueue of the hub that sends jobs to the worker."""

    name: str
    spec: Obj
    local_queues: tuple[tuple[str, str], ...] = ()
    """Namespace and name of each LocalQueue that uses it, in order."""
    template: str = ""
    """The ConfigMap from which its queues on workers are made; "": from itself."""


@dataclass(frozen=True, slots=True)
class SetupUsage:
    """Who needs the set-up of a worker."""

    owners: Mapping[str, str] = field(default_factory=dict)
    """The AdmissionChecks that use the cluster: uid → name."""
    selected: bool = False
    """Whether a check of ours selects the cluster, and it is listed or next in rank."""
    listed: bool = False
    """Whether there is a MultiKueueCluster of ours for the cluster."""


@dataclass(frozen=True, slots=True)
class WorkerSetupInputs:
    """All that the ManifestWork of one cluster depends on, taken in one go."""

    cluster: str
    now: datetime
    hub: HubFacts = field(default_factory=HubFacts)
    policy: WorkerSetupPolicy = WorkerSetupPolicy()
    kueue_namespace: str = "kueue-system"
    managed_cluster: ManagedCluster | None = None
    queues: tuple[HubClusterQueue, ...] = ()
    """By name."""
    flavors: Mapping[str, Obj] = field(default_factory=dict)
    """The spec of each ResourceFlavor of the hub."""
    templates: Mapping[str, str | None] = field(default_factory=dict)
    """The text in each ConfigMap that `queues` name; None: there is no such text."""
    work: ManifestWork | None = None
    usage: SetupUsage = SetupUsage()
    error: str = ""
    """Why the API server refused the last write."""
    ages: Ages = field(default_factory=dict)
