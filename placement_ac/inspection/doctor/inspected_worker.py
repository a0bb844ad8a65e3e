"""
One inspected worker, and the helpers that several rules share.

Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from placement_ac.config.policy import worker_policy_rules, worker_requirements
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import KUEUE, KUEUE_VERSIONS, WORKLOAD, Kind
from placement_ac.core.inputs.fitness import Unknown, WorkerFindings, WorkerRequirements
from placement_ac.core.inputs.rights import FRAMEWORKS, KueueRelease, parse_release
from placement_ac.inspection.doctor.kueue_config import kueue_config
from placement_ac.inspection.doctor.kueue_config_rules import DEFAULT_FRAMEWORKS
from placement_ac.inspection.doctor.setup import HubSetup, sequence, spec_of
from placement_ac.inspection.doctor.worker_inspection import (
    INSPECTED_KINDS,
    ExpectedQueue,
    WorkerInspection,
    WorkerTarget,
    is_valid_name,
)
from placement_ac.inspection.hub.dump import Key, Object, key_of
from placement_ac.inspection.hub.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR, TOPOLOGY

FROM_HUB: Final = (CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR)
"""The hub's kinds that define which queues a worker should have."""


Rules = tuple[Mapping[str, Any], ...]
"""PolicyRules."""


def worker_needs(setup: HubSetup) -> WorkerRequirements:
    """Return the requirements of the hub's Kueue on a worker."""
    served = setup.dump.served.get(WORKLOAD)
    return worker_requirements(
        _kinds(setup), served.version if served else KUEUE_VERSIONS[0], setup.kueue_release
    )


def worker_policy(setup: HubSetup) -> Rules:
    """Return the rights that the hub's Kueue needs on a worker."""
    return worker_policy_rules(_kinds(setup), setup.kueue_release)


def _kinds(setup: HubSetup) -> Settings:
    """Return the settings, with the job kinds of Kueue's configuration if that is known."""
    kueue = kueue_config(setup)
    if kueue.problem:
        return setup.settings
    named = sequence(kueue.integrations.get("frameworks")) or DEFAULT_FRAMEWORKS
    kinds = {
        "frameworks": tuple(name for name in map(str, named) if name in FRAMEWORKS),
        "external_frameworks": kueue.external_frameworks,
    }
    return setup.settings.model_copy(update=kinds)


@dataclass(frozen=True)
class InspectedWorker:
    """An inspected worker. `requirements` and `rules`: of the hub's Kueue."""

    setup: HubSetup
    inspection: WorkerInspection
    requirements: WorkerRequirements
    rules: Rules

    @property
    def target(self) -> WorkerTarget:
        return self.inspection.target

    @property
    def cluster(self) -> str:
        return self.target.cluster

    @property
    def found(self) -> WorkerFindings | None:
        """None: it was not inspected."""
        return self.inspection.found

    @cached_property
    def release(self) -> KueueRelease | None:
        """The release of its Kueue."""
        message = self.found.kueue_version if self.found else ""
        return None if isinstance(message, Unknown) else parse_release(message)

    @cached_property
    def unknown(self) -> Mapping[Kind, Unknown]:
        """The kinds of INSPECTED_KINDS that could not be listed."""
        found = ((kind, self.inspection.objects.get(kind)) for kind in INSPECTED_KINDS)
        return {kind: answer for kind, answer in found if isinstance(answer, Unknown)}

    def knows(self, *kinds: Kind) -> bool:
        """Whether the present and the expected objects of these kinds are known."""
        message = self.found is not None and not any(kind in self.unknown for kind in kinds)
        return message and all(map(self.setup.knows, FROM_HUB))

    def objects_of(self, kind: Kind) -> Mapping[Key, Object]:
        """Return the objects of a kind by (namespace, name); none if they are unknown."""
        return self._objects[kind]

    @cached_property
    def _objects(self) -> Mapping[Kind, Mapping[Key, Object]]:
        message = {kind: self.inspection.objects.get(kind, ()) for kind in INSPECTED_KINDS}
        return {
            kind: {} if isinstance(answer, Unknown) else {key_of(one): one for one in answer}
            for kind, answer in message.items()
        }

    def version(self, kind: Kind) -> str:
        """Return the version of a Kueue kind to write: the hub's, else the newest served one."""
        served = self.found.served if self.found else frozenset()
        there = {one.version for one in served if (one.group, one.plural) == (KUEUE, kind.plural)}
        hub = self.setup.dump.served.get(kind)
        wanted: tuple[str, ...] = (*([hub.version] if hub else ()), *KUEUE_VERSIONS)
        return next((version for version in wanted if version in there), wanted[0])

    # -- its queues

    @cached_property
    def in_use(self) -> Mapping[str, ExpectedQueue]:
        """ClusterQueue of the worker → a LocalQueue that uses it, if possible one with a flavor."""
        queues = self.objects_of(LOCAL_QUEUE)
        found: dict[str, ExpectedQueue] = {}
        for wanted in self.target.queues:
            name = str(spec_of(queues.get((wanted.namespace, wanted.name))).get("clusterQueue") or "")
            if is_valid_name(name) and (name not in found or (wanted.flavor and not found[name].flavor)):
                found[name] = wanted
        return found

    def cluster_queues(self) -> Iterator[tuple[str, Object, ExpectedQueue]]:
        """Yield the ClusterQueues in use that exist."""
        there = self.objects_of(CLUSTER_QUEUE)
        for name, wanted in self.in_use.items():
            if queue := there.get(("", name)):
                yield name, queue, wanted

    def cluster_queue_for(self, wanted: ExpectedQueue) -> str:
        """Return the ClusterQueue that a missing LocalQueue should use."""
        there = [name for _, name in self.objects_of(CLUSTER_QUEUE)]
        return there[0] if len(there) == 1 else wanted.cluster_queue

    def flavor(self, name: str) -> Object | None:
        return self.objects_of(RESOURCE_FLAVOR).get(("", name))

    def topology_of(self, flavor: str) -> str:
        """Return the Topology that a ResourceFlavor names."""
        return str(spec_of(self.flavor(flavor)).get("topologyName") or "")

    def has_topology(self, name: str) -> bool:
        return ("", name) in self.objects_of(TOPOLOGY)
