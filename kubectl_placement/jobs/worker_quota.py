"""
The quota of workers, as far as it matters to a Workload: whose is read, and what is reported about it.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.choice import PlacementChoice, placements_of
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import joined
from placement_ac.core.dispatch.filters import CAPACITY
from placement_ac.core.inputs.queue_facts import NO_WORKLOADS, WorkloadsThere
from placement_ac.core.plan.fact_questions import workloads_on
from placement_ac.core.plan.job_fit import JobFit
from placement_ac.core.plan.nomination import nominate

HEADROOM: Final = "Headroom"
NOT_READ: Final = "use --workers to read the quota of the workers: without it, {}"
NOT_IN_DUMP: Final = "a dump has no quota of the workers: {}"
UNKNOWN: Final = "the quota of {} is unknown: {}"
NOT_ASKED: Final = "the controller does not ask it: OCM cannot reach it, or its kubeconfig is in a file"
CLAIMS_UNKNOWN: Final = (
    "its ResourceClaims are compared with no quota, and a cluster's room for them is unknown: Kueue on the"
    " hub has counted no resource for them (resources.deviceClassMappings of its configuration)"
)

WorkloadsByWorker = Mapping[str, WorkloadsThere]
"""MultiKueueCluster → the Workloads there."""


def workers_to_ask(view: HubView, workload: Workload) -> WorkloadsByWorker:
    """Return the workers that the controller asks for their queues.

    It asks about the Workload, and about those that are nominated before it.
    """
    placements = placements_of(view, [entry.check for entry in workload.check_states])
    return merged(_asked_for(view, placement, workload) for placement in placements)


def merged(parts: Iterable[WorkloadsByWorker]) -> WorkloadsByWorker:
    """Return all these workers together."""
    workers: dict[str, WorkloadsThere] = {}
    for part in parts:
        for name, then in part.items():
            running, waiting, needs = workers.get(name, NO_WORKLOADS)
            needs = needs.union(then.needs)
            workers[name] = WorkloadsThere(running | then.running, waiting | then.waiting, needs)
    return workers


def _asked_for(view: HubView, placement: str, workload: Workload) -> WorkloadsByWorker:
    snapshot, targets = view.snapshot(placement), view.targets(placement)
    if not snapshot.policy.dispatcher:
        return {}
    fit = JobFit(snapshot, targets)
    names = fit.asks_about(workload).union(nominate(snapshot, targets, fit).questions.ask)
    return workloads_on(snapshot, names)


def quota_notes(view: HubView, choices: Sequence[PlacementChoice]) -> Iterator[str]:
    """Yield why the filters and scores that read the quota of workers abstain, where it matters."""
    if any(cluster.quota == "not read" for choice in choices for cluster in choice.clusters):
        text = NOT_READ if view.dump.live else NOT_IN_DUMP
        yield text.format(_abstaining(choices))
    unknown: dict[str, dict[str, None]] = {}
    for choice in choices:
        for cluster in choice.clusters:
            if cluster.quota == "unknown":
                facts = (view.queue_facts or {}).get(cluster.cluster_object)
                why = facts.problem if facts else NOT_ASKED
                unknown.setdefault(why, {})[cluster.cluster] = None
    for why, clusters in unknown.items():
        yield UNKNOWN.format(joined(clusters), why)


def claims_note(job: Workload) -> Iterator[str]:
    """Yield a note on a job of whose devices nobody knows how many there are."""
    if job.job.has_uncounted_claims:
        yield CLAIMS_UNKNOWN


def _abstaining(choices: Sequence[PlacementChoice]) -> str:
    scores = any(HEADROOM in choice.weights for choice in choices)
    return f"{CAPACITY} and {HEADROOM} abstain" if scores else f"{CAPACITY} abstains"
