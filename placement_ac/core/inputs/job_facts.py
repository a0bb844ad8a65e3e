"""
The needs of jobs on a worker beside quota, and what is known of them: kinds, taken names, objects.

Pure. Kinds are written as in Kueue's multiKueue.externalFrameworks, `Kind.version.group`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import Final, NamedTuple

from placement_ac.core.api.constants import CONFIG_MAP, NAMESPACE, SECRET, Kind, Resource
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.rights import FRAMEWORKS, ExternalFramework, parse_external

KINDS_MAX: Final = 16
"""So many kinds of jobs are looked for on a worker; Kueue has 18, and sends 16."""

OBJECTS_MAX: Final = 64
"""So many objects are looked for on a worker, those of the first Workloads by name."""
NAMESPACES: Final = "namespaces"
PRECONDITIONS: Final[Mapping[str, Kind]] = {
    NAMESPACES: NAMESPACE,
    "configmaps": CONFIG_MAP,
    "persistentvolumeclaims": Kind("", "PersistentVolumeClaim", "persistentvolumeclaims", True, ("v1",)),
    "resourceclaimtemplates": Kind(
        "resource.k8s.io",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        True,
        ("v1", "v1beta2", "v1beta1"),
    ),
    "secrets": SECRET,
    "serviceaccounts": Kind("", "ServiceAccount", "serviceaccounts", True, ("v1",)),
}
"""The kinds of objects that may be looked for on workers, by plural."""


class NeededObject(NamedTuple):
    """An object that a job needs on its cluster."""

    plural: str
    namespace: str
    """"" for a namespace."""
    name: str

    @property
    def kind(self) -> str:
        return PRECONDITIONS[self.plural].kind


JobId = tuple[str, str]
"""The namespace and the name of a job."""


class JobNeeds(NamedTuple):
    """The needs of the jobs of a Placement."""

    kinds: frozenset[str] = frozenset()
    """The kinds of its unfinished jobs."""
    waiting: frozenset[str] = frozenset()
    """Those of them of which a job waits."""
    objects: frozenset[NeededObject] = frozenset()
    """The objects that these jobs name, of the kinds in the settings."""

    def union(self, other: "JobNeeds") -> "JobNeeds":
        """Return what is needed by either."""
        return JobNeeds(self.kinds | other.kinds, self.waiting | other.waiting, self.objects | other.objects)

    def intersection(self, other: "JobNeeds") -> "JobNeeds":
        """Return what is needed by both."""
        return JobNeeds(self.kinds & other.kinds, self.waiting & other.waiting, self.objects & other.objects)

    def is_part_of(self, other: "JobNeeds") -> bool:
        """Whether the other needs all of this, too."""
        return self.kinds <= other.kinds and self.waiting <= other.waiting and self.objects <= other.objects


NO_NEEDS: Final = JobNeeds()


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The part of it that a worker has; whatever is not here is not known."""

    served: Mapping[str, bool] = field(default_factory=dict)
    """Kind → whether the worker serves it, in that version."""
    taken: Mapping[str, frozenset[JobId]] = field(default_factory=dict)
    """Kind → the jobs there that no MultiKueue has sent."""
    missing: frozenset[NeededObject] = frozenset()
    """Those of the needed objects that are not there."""
    integrations: frozenset[str] | None = None
    """The kinds of jobs that Kueue starts there, by its names or as `Kind.version.group`; None: not known."""

    def lacks_integration(self, kind: str) -> str:
        """Return Kueue's name of the integration of a kind if it is off there; "": it is on, or not known."""
        name = framework_of(kind)
        if not name or self.integrations is None:
            return ""
        return name if self.integrations.isdisjoint((name, kind)) else ""


NO_JOB_FACTS: Final = JobFacts()


def objects_of(workload: Workload) -> Iterator[NeededObject]:
    """Yield what a job needs: its namespace, and the objects that its Pods name."""
    namespace = workload.meta.namespace
    yield NeededObject(NAMESPACES, "", namespace)
    for plural, name in workload.job.references:
        yield NeededObject(plural, namespace, name)


def job_needs(
    workloads: Iterable[Workload],
    preconditions: Collection[str] = (),
    asked: JobNeeds = NO_NEEDS,
) -> JobNeeds:
    """Return what these Workloads need; of kinds, the first by name.

    `preconditions`: kinds of objects. `asked`: what was looked for before; of too many objects, it stays.
    """
    workloads = tuple(workloads)
    kinds = {workload.job.kind for workload in workloads}
    waiting = [workload for workload in workloads if not workload.cluster]
    start = frozenset(workload.job.kind for workload in waiting)
    readable = sorted(kind for kind in kinds if resource_of(kind))[:KINDS_MAX]
    objects = _objects(waiting, preconditions, asked.objects) if preconditions else frozenset[NeededObject]()
    return JobNeeds(frozenset(readable), start.intersection(readable), objects)


def _objects(
    workloads: Iterable[Workload],
    preconditions: Collection[str],
    asked: frozenset[NeededObject],
) -> frozenset[NeededObject]:
    """Return what these need, OBJECTS_MAX at most."""
    with_quota = (workload for workload in workloads if workload.has_quota)
    alike = {(workload.meta.namespace, id(workload.job)): workload for workload in with_quota}
    before, new = dict[NeededObject, None](), dict[NeededObject, None]()
    for one in chain.from_iterable(map(objects_of, alike.values())):
        if one.plural in preconditions:
            (before if one in asked else new)[one] = None
            if len(before) + len(new) >= OBJECTS_MAX and len(before) == len(asked):
                break
    return frozenset(islice(chain(before, new), OBJECTS_MAX))


_BY_KIND: Final = {(one.group, name.rpartition("/")[2]): name for name, one in FRAMEWORKS.items()}


def framework_of(kind: str) -> str:
    """Return Kueue's name of the integration of a kind, whatever its version; "": Kueue has none."""
    singular, _, rest = kind.partition(".")
    return _BY_KIND.get((rest.partition(".")[2], singular.lower()), "")


@lru_cache(maxsize=64)
def resource_of(kind: str) -> Resource | None:
    """Return the resource of a kind, its plural guessed; None: it is none of a job, or of the core group.

    Anybody who may create a Workload writes its owner: only what has a kind's form becomes part of a path.
    """
    parsed = parse_external(kind)
    if not isinstance(parsed, ExternalFramework):
        return None
    return Kind(parsed.group, parsed.kind, parsed.plural, True, (parsed.version,)).at(parsed.version)
