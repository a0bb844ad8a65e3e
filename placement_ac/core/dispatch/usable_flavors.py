"""
The flavors of a worker that the Pods of a podSet may use.

Pure. Each flavor is judged once for a podSet, whatever number of resources it has.
"""

from collections.abc import Iterable, Sequence

from placement_ac.core.api.job_spec import JobSpec, PodNodes
from placement_ac.core.api.pod_requests import Requests
from placement_ac.core.inputs.queue_facts import FlavorQuota


class UsableFlavors:
    """Answers for Pods of one kind, on one worker."""

    def __init__(self, pods: PodNodes) -> None:
        self._pods = pods
        self._known: dict[str, bool] = {}
        """Flavor → whether they may use it."""

    def of(self, flavors: Iterable[FlavorQuota]) -> list[FlavorQuota]:
        """Return those of these flavors that the Pods may use."""
        return [flavor for flavor in flavors if self.includes(flavor)]

    def places(self, flavors: Sequence[FlavorQuota]) -> list[int]:
        """Return the indices of those."""
        return [at for at, flavor in enumerate(flavors) if self.includes(flavor)]

    def includes(self, flavor: FlavorQuota) -> bool:
        """Whether the Pods may use a flavor, as far as it is known."""
        if flavor.nodes is None:
            return True
        if flavor.flavor not in self._known:
            self._known[flavor.flavor] = flavor.nodes.admits(self._pods)
        return self._known[flavor.flavor]


def asks_of(job: JobSpec) -> list[tuple[Requests, UsableFlavors]]:
    """Return how much each podSet asks for, and its flavors, for one worker; equal podSets share them."""
    by_pods: dict[PodNodes, UsableFlavors] = {}
    return [(podset, by_pods.setdefault(pods, UsableFlavors(pods))) for podset, pods in job.asks]
