"""
The workers to inspect, the queues expected on each, and the result of an inspection.

Pure: plain data. `inspection.readers.worker_inspector` does the inspection.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from placement_ac.core.api.constants import Kind
from placement_ac.core.inputs.fitness import Unknown, WorkerFindings, WorkerQueues
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from placement_ac.inspection.doctor.setup import HubSetup
from placement_ac.inspection.hub.dump import Object, key_of
from placement_ac.inspection.hub.kinds import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    TOPOLOGY,
)
from placement_ac.inspection.status.check_status import check_statuses
from placement_ac.inspection.status.model import CheckStatus, ClusterRow
from placement_ac.scheduling.objects import at, listed, name_of, text

INSPECTED_KINDS: Final = (NAMESPACE, LOCAL_QUEUE, CLUSTER_QUEUE, RESOURCE_FLAVOR, TOPOLOGY)
"""The kinds that are listed on a worker."""
Answer = tuple[Object, ...] | Unknown
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class AccessProblem(Enum):
    """Why a worker was not inspected, by the fix that it needs."""

    NO_CREDENTIALS = auto()
    """The hub has no usable credentials."""
    NO_RIGHT = auto()
    """The caller may not read the credentials."""
    NO_PLUGIN = auto()
    """The credentials are a ClusterProfile's, and its plugin is not installed here."""
    REJECTED = auto()
    """The worker does not accept the credentials."""
    UNREACHABLE = auto()
    """It does not answer, or not like a Kubernetes API server."""


@dataclass(frozen=True, slots=True)
class ExpectedQueue:
    """A LocalQueue of the hub that sends jobs to the worker."""

    namespace: str
    name: str
    cluster_queue: str
    """The hub's."""
    flavor: str = ""
    """The ResourceFlavor of that ClusterQueue that names a Topology, which the worker then assigns."""

    @property
    def label(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class WorkerTarget:
    """A worker to inspect."""

    cluster: str
    credential: CredentialSource | Unusable | None
    """None: the caller may not read it."""
    queues: tuple[ExpectedQueue, ...] = ()

    @property
    def expected_queues(self) -> Mapping[str, frozenset[str]]:
        """Namespace → LocalQueues."""
        found: dict[str, set[str]] = {}
        for one in self.queues:
            found.setdefault(one.namespace, set()).add(one.name)
        return {namespace: frozenset(names) for namespace, names in found.items()}


@dataclass(frozen=True, slots=True)
class WorkerInspection:
    """The result for a worker, or why there is none; the text quotes nothing from a Secret or a worker."""

    target: WorkerTarget
    access_problem: AccessProblem | None = None
    problem: str = ""
    found: WorkerFindings | None = None
    objects: Mapping[Kind, Answer] = field(default_factory=dict)
    """Of INSPECTED_KINDS."""
    user: str = ""
    """The user name on the worker, as the worker reports it; "": unknown."""

    @property
    def present_queues(self) -> WorkerQueues:
        """Its namespaces and LocalQueues."""
        namespaces, queues = (self.objects.get(kind, ()) for kind in (NAMESPACE, LOCAL_QUEUE))
        return WorkerQueues(
            namespaces if isinstance(namespaces, Unknown) else frozenset(map(name_of, namespaces)),
            queues if isinstance(queues, Unknown) else frozenset(map(key_of, queues)),
        )


def worker_targets(setup: HubSetup) -> tuple[WorkerTarget, ...]:
    """Return the workers of all checks of ours by name, each with all queues that send jobs there."""
    credentials: dict[str, CredentialSource | Unusable | None] = {}
    queues: dict[str, dict[tuple[str, str], ExpectedQueue]] = {}
    for branch in check_statuses(setup.view):
        wanted = {(one.namespace, one.name): one for one in _expected_queues(setup, branch)}
        for row in branch.clusters:
            if not isinstance(credentials.get(row.name), CredentialSource):
                credentials[row.name] = _credential(row, known=setup.view.credentials_known)
            queues.setdefault(row.name, {}).update(wanted)
    return tuple(
        WorkerTarget(name, credentials[name], tuple(found[key] for key in sorted(found)))
        for name, found in sorted(queues.items())
    )


def _credential(row: ClusterRow, *, known: bool) -> CredentialSource | Unusable | None:
    credential = row.credential
    if credential.kind:
        return CredentialSource(credential.kind, credential.name)
    return Unusable(credential.problem or row.why or "none are known") if known else None


def _expected_queues(setup: HubSetup, branch: CheckStatus) -> Iterator[ExpectedQueue]:
    for queue in branch.queues:
        flavor = _flavor_with_topology(setup, queue.name)
        for label in queue.local_queues or ():
            namespace, _, name = label.partition("/")
            yield ExpectedQueue(namespace, name, queue.name, flavor)


def _flavor_with_topology(setup: HubSetup, cluster_queue: str) -> str:
    flavors = flavors_of(setup.dump.find(CLUSTER_QUEUE, cluster_queue))
    found = ((name, setup.dump.find(RESOURCE_FLAVOR, name)) for name in flavors)
    return next((name for name, flavor in found if at(flavor, "spec", "topologyName")), "")


def flavors_of(cluster_queue: Object | None) -> tuple[str, ...]:
    """Return the ResourceFlavors that a ClusterQueue names."""
    groups = listed(cluster_queue, "spec", "resourceGroups")
    names = (text(flavor, "name") for group in groups for flavor in listed(group, "flavors"))
    return tuple(dict.fromkeys(filter(None, names)))


def with_valid_names(objects: tuple[Object, ...]) -> tuple[Object, ...]:
    """Return the objects with a valid name: a worker may answer anything."""
    return tuple(one for one in objects if is_valid_name(at(one, "metadata", "name")))


def is_valid_name(text: object) -> bool:
    """Whether Kubernetes accepts it as the name of an object."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None
