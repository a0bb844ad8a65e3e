"""
One inspected worker, and the decorator of its rules.

Pure.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from placement_ac.core.api.constants import KUEUE, KUEUE_VERSIONS, Kind
from placement_ac.core.inputs.fitness import Unknown, WorkerFindings
from placement_ac.core.inputs.rights import KueueRelease, parse_release
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.inspection.doctor.commands import Kubectl, manifest
from placement_ac.inspection.doctor.finding import DoctorRule, Finding
from placement_ac.inspection.doctor.setup import HubSetup
from placement_ac.inspection.doctor.worker_inspection import (
    INSPECTED_KINDS,
    ExpectedQueue,
    WorkerInspection,
    WorkerTarget,
    is_valid_name,
)
from placement_ac.inspection.hub.dump import Key, Object, key_of
from placement_ac.inspection.hub.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR, TOPOLOGY
from placement_ac.scheduling.objects import Obj, section, text

FROM_HUB: Final = (CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR)
"""The hub's kinds that define which queues a worker should have."""
_NOTHING: Final = WorkerFindings("", frozenset())


@dataclass(frozen=True)
class InspectedWorker:
    """A worker of the hub, inspected or not."""

    setup: HubSetup
    inspection: WorkerInspection

    @property
    def target(self) -> WorkerTarget:
        return self.inspection.target

    @property
    def cluster(self) -> str:
        return self.target.cluster

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.cluster)

    @property
    def source(self) -> CredentialSource:
        """Its credentials on the hub, or the Secret that should hold some."""
        source = self.target.credential
        default = CredentialSource("Secret", f"multikueue-{self.cluster}")
        return source if isinstance(source, CredentialSource) else default

    @property
    def found(self) -> WorkerFindings:
        """Empty if it was not inspected."""
        return self.inspection.found or _NOTHING

    @cached_property
    def release(self) -> KueueRelease | None:
        """The release of its Kueue."""
        release = self.found.kueue_version
        return None if isinstance(release, Unknown) else parse_release(release)

    @cached_property
    def unknown(self) -> Mapping[Kind, Unknown]:
        """The kinds of INSPECTED_KINDS that could not be listed."""
        found = ((kind, self.inspection.objects.get(kind)) for kind in INSPECTED_KINDS)
        return {kind: answer for kind, answer in found if isinstance(answer, Unknown)}

    def knows(self, *kinds: Kind) -> bool:
        """Whether the present and the expected objects of these kinds are known; of none: if inspected."""
        if self.inspection.found is None or self.unknown.keys() & kinds:
            return False
        return not kinds or all(map(self.setup.knows, FROM_HUB))

    @cached_property
    def objects(self) -> Mapping[Kind, Mapping[Key, Object]]:
        """The objects of INSPECTED_KINDS by (namespace, name); none of a kind that is unknown."""
        answers = {kind: self.inspection.objects.get(kind, ()) for kind in INSPECTED_KINDS}
        return {
            kind: {} if isinstance(answer, Unknown) else {key_of(one): one for one in answer}
            for kind, answer in answers.items()
        }

    def manifest(self, kind: Kind, name: str, spec: Mapping[str, Any], namespace: str = "") -> Object:
        """Return an object of a Kueue kind, in the version of the hub, else the newest served one."""
        versions = {
            one.version for one in self.found.served if (one.group, one.plural) == (KUEUE, kind.plural)
        }
        hub = self.setup.dump.served.get(kind)
        wanted = (*([hub.version] if hub else ()), *KUEUE_VERSIONS)
        version = next((version for version in wanted if version in versions), wanted[0])
        return manifest(kind, name, spec, namespace=namespace, version=version)

    def hub_spec(self, kind: Kind, name: str) -> Obj:
        """Return the spec of an object on the hub; empty if there is none."""
        return section(self.setup.dump.find(kind, name), "spec")

    # -- its queues

    @cached_property
    def in_use(self) -> Mapping[str, ExpectedQueue]:
        """ClusterQueue of the worker → a LocalQueue that uses it, if possible one with a flavor."""
        queues = self.objects[LOCAL_QUEUE]
        found: dict[str, ExpectedQueue] = {}
        for wanted in self.target.queues:
            name = text(queues.get((wanted.namespace, wanted.name)), "spec", "clusterQueue")
            if is_valid_name(name) and (name not in found or (wanted.flavor and not found[name].flavor)):
                found[name] = wanted
        return found

    def cluster_queues(self) -> Iterator[tuple[str, Object, ExpectedQueue]]:
        """Yield the ClusterQueues in use that exist."""
        existing = self.objects[CLUSTER_QUEUE]
        for name, wanted in self.in_use.items():
            if queue := existing.get(("", name)):
                yield name, queue, wanted

    def cluster_queue_for(self, wanted: ExpectedQueue) -> str:
        """Return the ClusterQueue that a missing LocalQueue should use."""
        names = [name for _, name in self.objects[CLUSTER_QUEUE]]
        return names[0] if len(names) == 1 else wanted.cluster_queue

    def flavor(self, name: str) -> Object | None:
        return self.objects[RESOURCE_FLAVOR].get(("", name))

    def topology_of(self, flavor: str) -> str:
        """Return the Topology that a ResourceFlavor names."""
        return text(self.flavor(flavor), "spec", "topologyName")

    def has_topology(self, name: str) -> bool:
        return ("", name) in self.objects[TOPOLOGY]


Evaluate = Callable[[InspectedWorker], Iterator[Finding]]


def worker_rule(
    check: str, looks_at: str, fix: str, *known: Kind
) -> Callable[[Evaluate], DoctorRule[InspectedWorker]]:
    """Make a rule of a function; it finds nothing on a worker without the `known` kinds."""
    return lambda evaluate: DoctorRule(
        check, looks_at, fix, lambda worker: evaluate(worker) if worker.knows(*known) else ()
    )
