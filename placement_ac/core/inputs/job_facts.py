"""
What jobs need of a worker beside quota, and what is known of it: kinds, names that are taken, and objects.

Pure. Kinds are written as in Kueue's multiKueue.externalFrameworks, `Kind.version.group`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.rights import ExternalFramework, parse_external

KINDS_MAX: Final = 16
"""So many kinds of jobs are looked for on a worker; Kueue has 18, and sends 16."""

JobId = tuple[str, str]
"""The namespace and the name of a job."""


class JobNeeds(NamedTuple):
    """What the jobs of a Placement need."""

    kinds: frozenset[str] = frozenset()
    """The kinds of its unfinished jobs."""
    waiting: frozenset[str] = frozenset()
    """Those of them of which a job waits."""

    def union(self, other: "JobNeeds") -> "JobNeeds":
        """Return what is needed by either."""
        return JobNeeds(self.kinds | other.kinds, self.waiting | other.waiting)


NO_NEEDS: Final = JobNeeds()


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What a worker has of it; whatever is not here is not known."""

    served: Mapping[str, bool] = field(default_factory=dict)
    """Kind → whether the worker serves it, in that version."""
    taken: Mapping[str, frozenset[JobId]] = field(default_factory=dict)
    """Kind → the jobs there that no MultiKueue has sent."""


NO_JOB_FACTS: Final = JobFacts()


def job_needs(workloads: Iterable[Workload]) -> JobNeeds:
    """Return what these Workloads need; of kinds, the first by name."""
    workloads = tuple(workloads)
    kinds = {workload.job.kind for workload in workloads}
    waiting = frozenset(workload.job.kind for workload in workloads if not workload.cluster)
    readable = sorted(kind for kind in kinds if resource_of(kind))[:KINDS_MAX]
    return JobNeeds(frozenset(readable), waiting.intersection(readable))


@lru_cache(maxsize=64)
def resource_of(kind: str) -> Resource | None:
    """Return the resource of a kind, its plural guessed; None: it is none of a job, or of the core group.

    Anybody who may create a Workload writes its owner: only what has a kind's form becomes part of a path.
    """
    parsed = parse_external(kind)
    if not isinstance(parsed, ExternalFramework):
        return None
    return Kind(parsed.group, parsed.kind, parsed.plural, True, (parsed.version,)).at(parsed.version)
