"""A Placement over full and empty clusters whose jobs may be moved, as the plan sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from placement_ac.core.api.constants import ANNOTATION_MOVABLE, ANNOTATION_MOVES
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere
from placement_ac.core.inputs.state import MovePolicy, PlacementPolicy, Plan, Since, Snapshot, WorkerCopies
from placement_ac.core.maintenance.window import MaintenanceWindow
from placement_ac.core.moves.planning import MovePlan
from placement_ac.core.plan.job_fit import job_fit
from placement_ac.core.plan.moving import moving
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.builders import NOW, Raw, inputs
from tests.support.decided import decided, ranked
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues, raw_job

POLICY: Final = PlacementPolicy(
    retention=0.0, loss_grace=0.0, dispatcher=True, dispatch_profile="headroom", moves=MovePolicy()
)
WITH_KUEUES: Final = replace(POLICY, dispatcher=False)
"""The same with Kueue's own dispatcher."""
USED: Final = {"a": (8, 8), "b": (8, 2), "c": (8, 7)}
"""Cluster → its GPUs, and how many of them are used: b is the best one."""


def job(name: str = "job", cluster: str = "a", *, movable: str = "true", gpus: int = 1, **rest: Any) -> Raw:
    """A job that runs on a cluster (on none: "")."""
    states = {"check": "Ready", "mk": "Ready" if cluster else "Pending"}
    annotations = {ANNOTATION_MOVABLE: movable} if movable else {}
    on = f"p-{cluster}" if cluster else ""
    return raw_job(name, annotations=annotations, pods=gpu_pods(gpus), cluster=on, **(states | rest))


def entry(
    minutes: float, uid: str = "Workload/other", *, check: str = "check", left: str = "a", target: str = "b"
) -> str:
    """The entry of a move that was so long ago."""
    at = NOW - timedelta(minutes=minutes)
    return f"{check}:{uid}:{left}:{target}:better={at:%Y-%m-%dT%H:%M:%SZ}"


def fleet(
    *jobs: Raw,
    used: Mapping[str, tuple[int, int] | None] = USED,
    selected: str | None = None,
    moves: Sequence[str] = (),
    copies: Mapping[str, WorkerCopies] | None = None,
    ages: Mapping[Since, float] | None = None,
    policy: PlacementPolicy = POLICY,
    quarantined: Mapping[str, str] | None = None,
    retry_at: Mapping[str, datetime] | None = None,
    avoided: Mapping[str, datetime] | None = None,
    maintenance: Mapping[str, MaintenanceWindow] | None = None,
    **rest: Any,
) -> Snapshot:
    """A hub whose config lists all these clusters; `rest`: of `decided`.

    `used`: None: its queues are not known. `copies`: by default each cluster has just reported its jobs.
    `avoided`: the clusters where job `job` has failed, and until when it avoids them.
    """
    placed = {raw["status"].get("clusterName"): raw["metadata"]["name"] for raw in jobs}
    by_cluster = {
        f"p-{name}": {("default", j): True for on, j in placed.items() if on == f"p-{name}"} for name in used
    }
    reported = {name: WorkerCopies(there, age=1.0) for name, there in by_cluster.items()}
    annotations = {ANNOTATION_MOVES: ",".join(moves)} if moves else None
    hub = decided(
        ranked("".join(used) if selected is None else selected), used, annotations=annotations, **rest
    )
    seen = inputs(hub, *jobs, policy=policy, ages=ages, copies=reported if copies is None else copies)
    running = {w.cluster: w.meta.uid for w in seen.workloads}
    facts = {
        f"p-{name}": WorkerFacts(
            queues((GPU, "f", *amounts)) if amounts else {},
            WorkloadsThere(frozenset(uid for on, uid in running.items() if on == f"p-{name}")),
            "" if amounts else "forbidden",
        )
        for name, amounts in used.items()
    }
    return replace(
        seen,
        fleet=replace(
            seen.fleet,
            queue_facts=facts,
            quarantined=quarantined or {},
            retry_at=retry_at or {},
            avoided={"Workload/job": avoided} if avoided else {},
            maintenance=maintenance or {},
        ),
    )


def after(seconds: float, *jobs: Raw, **rest: Any) -> Snapshot:
    """The same, when all that lasts has lasted for so long."""
    lasting = plan(fleet(*jobs, **rest)).lasting
    return fleet(*jobs, ages=dict.fromkeys(lasting, seconds), **rest)


def planned(*jobs: Raw, seconds: float = 300.0, **rest: Any) -> Plan:
    """The plan when all that lasts has lasted for so long."""
    return plan(after(seconds, *jobs, **rest))


def explained(*jobs: Raw, seconds: float = 300.0, **rest: Any) -> MovePlan:
    """The moves of that plan, and why the other jobs are not moved."""
    seen = after(seconds, *jobs, **rest)
    targets = select_targets(seen)
    return moving(seen, targets, job_fit(seen, targets), in_step=True).plan


def recorded(answer: Plan) -> list[str]:
    """The moves that the plan writes into the config, without their times."""
    return [
        text.partition("=")[0] for text in (answer.config.moves if answer.config else "").split(",") if text
    ]


def evicted(raw: Raw, message: str, when: datetime) -> Raw:
    """The same Workload, evicted by Kueue for this reason, and without a cluster."""
    condition = {"type": "Evicted", "status": "True", "reason": "AdmissionCheck", "message": message}
    raw["status"]["conditions"].append(condition | {"lastTransitionTime": f"{when:%Y-%m-%dT%H:%M:%SZ}"})
    raw["status"].pop("clusterName", None)
    return raw
