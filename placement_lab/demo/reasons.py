"""
Why a job of Story 4 goes where it does: the controller's rules decide once more, as before its nomination.

The rules get the hub as it is after the step, the job without a nomination, and the quota of the workers.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import DECISION_KINDS, QUEUE_KINDS
from kubectl_placement.jobs.choice import ClusterChoice, PlacementChoice, choices
from kubectl_placement.readers.hub_reader import read_kinds
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import ADMISSION_CHECK, PENDING, READY, WORKLOAD
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.inputs.queue_facts import WorkerFacts, worker_facts
from placement_ac.kube.client import Client
from placement_lab.standins.kueue_rules import is_multikueue
from placement_lab.standins.worker_quota import Quota, queue_manifests

_KINDS: Final = (*DECISION_KINDS, *QUEUE_KINDS)


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains choices. `quotas`: worker → quota; `queues`: the names of its LocalQueues."""

    settings: Settings
    quotas: Mapping[str, Quota]
    queues: Collection[str]

    async def choice(self, client: Client, workload: Object | None, placement: str) -> PlacementChoice | None:
        """Return the choice for a Workload that waits or runs, as if it had no nomination yet.

        None if it does not exist, or has no quota on the hub.
        """
        if workload is None or "admission" not in (workload.get("status") or {}):
            return None
        dump = await read_kinds(client, _KINDS, {})
        waiting = _as_waiting(dump, workload)
        others = [other for other in dump.of(WORKLOAD) if _uid(other) != _uid(workload)]
        view = HubView(
            dump.with_objects({WORKLOAD: (*others, waiting)}), self.settings, datetime.now(UTC)
        ).with_queue_facts(
            {f"{placement}-{name}": _facts(quota, self.queues) for name, quota in self.quotas.items()}
        )
        [found] = choices(view, workload_with_job(waiting))
        return found


def _facts(quota: Quota, queues: Collection[str]) -> WorkerFacts:
    """Return the queues of a worker; no Workload counts in them yet."""
    cluster_queue, *local_queues = queue_manifests(quota, queues)
    return worker_facts(local_queues, [cluster_queue])


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def _as_waiting(dump: Dump, workload: Object) -> Object:
    """Return the Workload with quota on the hub and our check Ready, before any cluster is nominated."""
    status: dict[str, Any] = workload["status"]
    conditions = [condition for condition in status["conditions"] if condition["type"] == "QuotaReserved"]
    others = {check["metadata"]["name"] for check in dump.of(ADMISSION_CHECK) if not is_multikueue(check)}
    checks = [
        admission_check | {"state": READY if admission_check["name"] in others else PENDING}
        for admission_check in status["admissionChecks"]
    ]
    kept = {"admission": status["admission"], "conditions": conditions, "admissionChecks": checks}
    return workload | {"status": kept}


def choice_lines(choice: PlacementChoice) -> Iterator[str]:
    """Yield why a job goes where it does: the weights, then a line for each cluster, the best first."""
    weights = ",".join(f"{name}={weight}" for name, weight in choice.weights.items())
    yield choice.problem or f"best first by {weights}:"
    yield from map(_cluster_line, () if choice.problem else choice.clusters)


def _cluster_line(choice: ClusterChoice) -> str:
    if choice.filter:
        return f"{choice.cluster}: {choice.reason} ({choice.filter})"
    points = ", ".join(f"{name} {_number(rate)}" for name, rate in choice.points.items() if rate is not None)
    return f"{choice.cluster}: {_number(choice.total or 0.0)} points ({points})"


def choice_document(choice: PlacementChoice) -> dict[str, Any]:
    """Return the choice for programs."""
    return {
        "weights": dict(choice.weights),
        "problem": choice.problem,
        "clusters": [
            {
                "name": cluster.cluster,
                "filter": cluster.filter,
                "reason": cluster.reason,
                "points": {name: _rounded(rate) for name, rate in cluster.points.items()},
                "total": _rounded(cluster.total),
            }
            for cluster in choice.clusters
        ],
    }


def _rounded(points: float | None) -> float | None:
    return None if points is None else round(points, 1)


def _number(points: float) -> str:
    return f"{points:.1f}".removesuffix(".0")
