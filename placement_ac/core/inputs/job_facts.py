"""
The needs of jobs on a worker beside quota, and what is known of them: kinds, taken names.

Pure. Kinds are written as in Kueue's multiKueue.externalFrameworks, `Kind.version.group`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.rights import FRAMEWORKS, ExternalFramework, parse_external

KINDS_MAX: Final = 16
"""So many kinds of jobs are looked for on a worker; Kueue has 18, and sends 16."""

JobId = tuple[str, str]
"""The namespace and the name of a job."""


class JobNeeds(NamedTuple):
    """The needs of the jobs of a Placement."""

    kinds: frozenset[str] = frozenset()
    """The kinds of its unfinished jobs."""
    waiting: frozenset[str] = frozenset()
    """Those of them of which a job waits."""

    def union(self, other: "JobNeeds") -> "JobNeeds":
        """Return what is needed by either."""
        return JobNeeds(self.kinds | other.kinds, self.waiting | other.waiting)

    def intersection(self, other: "JobNeeds") -> "JobNeeds":
        """Return what is needed by both."""
        return JobNeeds(self.kinds & other.kinds, self.waiting & other.waiting)

    def is_part_of(self, other: "JobNeeds") -> bool:
        """Whether the other needs all of this, too."""
        return self.kinds <= other.kinds and self.waiting <= other.waiting


NO_NEEDS: Final = JobNeeds()


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The part of it that a worker has; whatever is not here is not known."""

    served: Mapping[str, bool] = field(default_factory=dict)
    """Kind → whether the worker serves it, in that version."""
    taken: Mapping[str, frozenset[JobId]] = field(default_factory=dict)
    """Kind → the jobs there that no MultiKueue has sent."""
    integrations: frozenset[str] | None = None
    """The kinds of jobs that Kueue starts there, by its names or as `Kind.version.group`; None: not known."""

    def lacks_integration(self, kind: str) -> str:
        """Return Kueue's name of the integration of a kind if it is off there; "": it is on, or not known."""
        name = framework_of(kind)
        if not name or self.integrations is None:
            return ""
        return name if self.integrations.isdisjoint((name, kind)) else ""


NO_JOB_FACTS: Final = JobFacts()


def job_needs(workloads: Iterable[Workload]) -> JobNeeds:
    """Return what these Workloads need; of kinds, the first by name."""
    workloads = tuple(workloads)
    kinds = {workload.job.kind for workload in workloads}
    start = {workload.job.kind for workload in workloads if not workload.cluster}
    readable = sorted(kind for kind in kinds if resource_of(kind))[:KINDS_MAX]
    return JobNeeds(frozenset(readable), frozenset(start.intersection(readable)))


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
