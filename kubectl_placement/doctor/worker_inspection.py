"""
The workers of a hub: which to inspect, the result of an inspection, and the decorator of their rules.

Pure: plain data. `inspection.readers.worker_inspector` does the inspection.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Any, Final

from kubectl_placement.doctor.commands import Kubectl, manifest
from kubectl_placement.doctor.finding import DoctorRule, Finding
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.kinds import CRD, KUEUE_CRDS
from kubectl_placement.jobs.waiting_jobs import MOST_JOBS, ForeignJob, WaitingJob, waiting_jobs
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import CheckStatus, ClusterRow
from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    KUEUE,
    KUEUE_VERSIONS,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    Kind,
)
from placement_ac.core.api.fields import Key, Obj, get_dict, get_list, get_str, key_of, name_of
from placement_ac.core.inputs.fitness import Unknown, WorkerFindings
from placement_ac.core.inputs.rights import KueueRelease, parse_release
from placement_ac.core.inputs.unknown_copies import UnknownCopies
from placement_ac.core.kubeconfig.dns import is_dns_name
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

INSPECTED_KINDS: Final = (NAMESPACE, LOCAL_QUEUE, CLUSTER_QUEUE, RESOURCE_FLAVOR)
"""The kinds that are listed on a worker."""
DEFINITION_KINDS: Final = tuple(CRD._replace(only=name) for name in KUEUE_CRDS)
"""Kueue's CRDs, each read by its name."""
FROM_HUB: Final = (CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR)
"""The hub's kinds that define which queues a worker should have."""
Answer = tuple[Object, ...] | Unknown
_NOTHING: Final = WorkerFindings("", frozenset())


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

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def label(self) -> str:
        return "/".join(self.key)


@dataclass(frozen=True, slots=True)
class WorkerTarget:
    """A worker to inspect."""

    cluster: str
    credential: CredentialSource | Unusable | None
    """None: the caller may not read it."""
    queues: tuple[ExpectedQueue, ...] = ()
    """By namespace and name."""
    jobs: tuple[WaitingJob, ...] = ()
    """The oldest jobs that wait for it."""


@dataclass(frozen=True, slots=True)
class WorkerInspection:
    """The result for a worker, or why there is none; the text quotes nothing from a Secret or a worker."""

    target: WorkerTarget
    access_problem: AccessProblem | None = None
    problem: str = ""
    findings: WorkerFindings | None = None
    objects: Mapping[Kind, Answer] = field(default_factory=dict)
    """Of INSPECTED_KINDS and DEFINITION_KINDS."""
    foreign_jobs: tuple[ForeignJob, ...] | Unknown = ()
    """Those that have the name of one of the target's jobs."""
    unknown_copies: UnknownCopies | None = None
    """The running jobs of this hub's origin there that the hub does not have; None: it was not asked."""
    kueue_config: Object | Unknown = field(default_factory=dict)
    """The ConfigMap with the configuration of its Kueue."""
    user: str = ""
    """The user name on the worker, as the worker reports it; "": unknown."""


def worker_targets(setup: HubSetup) -> tuple[WorkerTarget, ...]:
    """Return the workers of all checks of ours by name, each with all queues that send jobs there."""
    credentials: dict[str, CredentialSource | Unusable | None] = {}
    queues: dict[str, dict[tuple[str, str], ExpectedQueue]] = {}
    waiting, jobs = waiting_jobs(setup.dump), dict[str, dict[WaitingJob, None]]()
    for check_status in check_statuses(setup.view):
        wanted = {expected_queue.key: expected_queue for expected_queue in _expected_queues(check_status)}
        for row in check_status.clusters:
            if not isinstance(credentials.get(row.name), CredentialSource):
                credentials[row.name] = _credential(row, known=setup.view.credentials_known)
            queues.setdefault(row.name, {}).update(wanted)
            jobs.setdefault(row.name, {}).update(dict.fromkeys(waiting.get(row.cluster_object, ())))
    return tuple(
        WorkerTarget(
            name, credentials[name], tuple(table[key] for key in sorted(table)), tuple(jobs[name])[:MOST_JOBS]
        )
        for name, table in sorted(queues.items())
    )


def _credential(row: ClusterRow, *, known: bool) -> CredentialSource | Unusable | None:
    credential = row.credential
    if credential.kind:
        return CredentialSource(credential.kind, credential.name)
    return Unusable(credential.problem or row.why or "none are known") if known else None


def _expected_queues(check_status: CheckStatus) -> Iterator[ExpectedQueue]:
    for queue in check_status.queues:
        for label in queue.local_queues or ():
            namespace, _, name = label.partition("/")
            yield ExpectedQueue(namespace, name, queue.name)


def flavors_of(cluster_queue: Object | None) -> tuple[str, ...]:
    """Return the ResourceFlavors that a ClusterQueue names."""
    groups = get_list(cluster_queue, "spec", "resourceGroups")
    names = (get_str(flavor, "name") for group in groups for flavor in get_list(group, "flavors"))
    return tuple(dict.fromkeys(filter(None, names)))


def with_valid_names(objects: tuple[Object, ...]) -> tuple[Object, ...]:
    """Return the objects with a valid name: a worker may answer anything."""
    return tuple(obj for obj in objects if is_dns_name(name_of(obj)))


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
    def findings(self) -> WorkerFindings:
        """Empty if it was not inspected."""
        return self.inspection.findings or _NOTHING

    @cached_property
    def release(self) -> KueueRelease | None:
        """The release of its Kueue."""
        release = self.findings.kueue_version
        return None if isinstance(release, Unknown) else parse_release(release)

    @cached_property
    def unknown(self) -> Mapping[Kind, Unknown]:
        """The kinds of INSPECTED_KINDS and DEFINITION_KINDS that could not be listed."""
        answers = self.inspection.objects.items()
        return {kind: answer for kind, answer in answers if isinstance(answer, Unknown)}

    def knows(self, *kinds: Kind) -> bool:
        """Whether the present and the expected objects of these kinds are known; of none: if inspected."""
        if self.inspection.findings is None or self.unknown.keys() & kinds:
            return False
        return not kinds or all(map(self.setup.knows, FROM_HUB))

    @property
    def definitions(self) -> tuple[Object, ...]:
        """Kueue's CRDs, as far as they could be read."""
        answers = (self.inspection.objects.get(kind, ()) for kind in DEFINITION_KINDS)
        return tuple(obj for answer in answers if not isinstance(answer, Unknown) for obj in answer)

    @cached_property
    def objects(self) -> Mapping[Kind, Mapping[Key, Object]]:
        """The objects of INSPECTED_KINDS by (namespace, name); none of a kind that is unknown."""
        answers = {kind: self.inspection.objects.get(kind, ()) for kind in INSPECTED_KINDS}
        return {
            kind: {} if isinstance(answer, Unknown) else {key_of(obj): obj for obj in answer}
            for kind, answer in answers.items()
        }

    def manifest(self, kind: Kind, name: str, spec: Mapping[str, Any], namespace: str = "") -> Object:
        """Return an object of a Kueue kind, in the version of the hub, else the newest served one."""
        versions = {
            crd.version for crd in self.findings.served if (crd.group, crd.plural) == (KUEUE, kind.plural)
        }
        hub = self.setup.dump.served.get(kind)
        wanted = (*([hub.version] if hub else ()), *KUEUE_VERSIONS)
        version = next((version for version in wanted if version in versions), wanted[0])
        return manifest(kind, name, spec, namespace=namespace, version=version)

    def hub_spec(self, kind: Kind, name: str) -> Obj:
        """Return the spec of an object on the hub; empty if there is none."""
        return get_dict(self.setup.dump.find(kind, name), "spec")

    # -- its queues

    @cached_property
    def in_use(self) -> Mapping[str, ExpectedQueue]:
        """ClusterQueue of the worker → a LocalQueue that uses it."""
        table: dict[str, ExpectedQueue] = {}
        for wanted in self.target.queues:
            name = self.cluster_queue_of(wanted)
            if is_dns_name(name):
                table.setdefault(name, wanted)
        return table

    def cluster_queue_of(self, wanted: ExpectedQueue) -> str:
        """Return the ClusterQueue that the worker's LocalQueue names."""
        return get_str(self.objects[LOCAL_QUEUE].get(wanted.key), "spec", "clusterQueue")

    def cluster_queues(self) -> Iterator[tuple[str, Object]]:
        """Yield the ClusterQueues in use that exist."""
        existing = self.objects[CLUSTER_QUEUE]
        for name in self.in_use:
            if queue := existing.get(("", name)):
                yield name, queue

    def has_namespace(self, name: str) -> bool:
        """Whether it has a namespace; also if that is unknown."""
        return NAMESPACE in self.unknown or ("", name) in self.objects[NAMESPACE]

    def flavor(self, name: str) -> Object | None:
        return self.objects[RESOURCE_FLAVOR].get(("", name))


Evaluate = Callable[[InspectedWorker], Iterator[Finding]]


def worker_rule(
    check: str, looks_at: str, fix: str, *known: Kind
) -> Callable[[Evaluate], DoctorRule[InspectedWorker]]:
    """Make a rule of a function; it has findings only if these kinds are known."""
    return lambda evaluate: DoctorRule(
        check, looks_at, fix, lambda worker: evaluate(worker) if worker.knows(*known) else ()
    )
