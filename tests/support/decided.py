"""
A hub where OCM has decided for Placement p, and where the controller's config lists clusters already.

Callers name only what differs from a hub that is well: both checks, a Secret and a ManagedCluster for each
cluster, all connected to Kueue, and no Workload.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from placement_ac.core.api.constants import ADMISSION_CHECK, ANNOTATION_DRAINING
from placement_ac.core.inputs.state import HubFacts, PlacementPolicy, Plan, Snapshot, WorkerCopies
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    AT_ONCE,
    Raw,
    check,
    connected_objects,
    decision,
    inputs,
    managed,
    managed_clusters,
    multikueue_check,
    placement,
    secrets,
    uid_of,
    workload,
)

OWNERS = [uid_of(ADMISSION_CHECK, name) for name in ("check", "mk")]
NO_COPIES = WorkerCopies({}, age=0.5)
"""The answer of a worker that holds no copy."""


def ranked(clusters: str) -> list[tuple[str, int]]:
    """The entries of a decision that ranks these clusters in that order."""
    return [(name, 100 - at) for at, name in enumerate(clusters)]


def decided(
    selected: Iterable[str | tuple[str, int]],
    listed: Iterable[str] | None = None,
    *,
    credentials: Iterable[str] | None = None,
    fleet: Iterable[Raw] | None = None,
    off: Iterable[str] = (),
    annotations: Mapping[str, str] | None = None,
    draining: Mapping[str, datetime] | None = None,
    **changed: Any,
) -> list[Raw]:
    """
    OCM decides `selected`, the config lists `listed` (by default the same; none: there is no config).

    `credentials`: the clusters with a Secret; `fleet`: the ManagedClusters; `off`: not connected to Kueue;
    `annotations` and `draining` (cluster → since when): of the config; `changed`: of the Placement.
    """
    selected = list(selected)
    names = [entry if isinstance(entry, str) else entry[0] for entry in selected]
    listed = names if listed is None else list(listed)
    every = list(dict.fromkeys([*listed, *names]))
    ours = connected_objects(*listed, off=off) if listed else []
    if draining:
        drains = ",".join(f"p-{name}={since:%Y-%m-%dT%H:%M:%SZ}" for name, since in draining.items())
        annotations = {ANNOTATION_DRAINING: drains}
        ours[0]["metadata"]["managedFields"] = managed(ours[0]["metadata"]["labels"], OWNERS, annotations)
    if annotations:
        ours[0]["metadata"]["annotations"] = dict(annotations)
    return [
        *(check(), multikueue_check(), placement(**changed), decision(*selected)),
        *secrets(*(every if credentials is None else credentials)),
        *(managed_clusters(*every) if fleet is None else fleet),
        *ours,
    ]


def decided_inputs(
    selected: Iterable[str | tuple[str, int]],
    *objects: Any,
    listed: Iterable[str] | None = None,
    copies: WorkerCopies | Mapping[str, WorkerCopies] | None = None,
    ages: Mapping[Any, float] | None = None,
    policy: PlacementPolicy = AT_ONCE,
    hub: HubFacts | None = None,
    **rest: Any,
) -> Snapshot:
    """
    The inputs of the plan on such a hub that has these `objects` as well; `rest`: of `decided`.

    `copies`: the answers of workers by the names of their MultiKueueClusters, or that of each listed one.
    """
    selected, listed = list(selected), None if listed is None else list(listed)
    if isinstance(copies, WorkerCopies):
        copies = {f"p-{name}": copies for name in (selected if listed is None else listed)}
    hub_objects = decided(selected, listed, **rest)
    return inputs(hub_objects, *objects, ages=ages, copies=copies, policy=policy, hub=hub)


def decided_plan(selected: Iterable[str | tuple[str, int]], *objects: Any, **rest: Any) -> Plan:
    """The plan for `decided_inputs`."""
    return plan(decided_inputs(selected, *objects, **rest))


def ready(*nominated: str, name: str = "job", **rest: Any) -> Raw:
    """A Workload that our check has let through."""
    return workload(name, nominated=nominated, check="Ready", mk="Pending", **rest)


def nominated(answer: Plan) -> dict[str, tuple[str, ...]]:
    """The nominations of a plan, by the names of the Workloads."""
    return {workload.meta.name: clusters for workload, clusters in answer.nominations}


def check_states(answer: Plan) -> dict[str, str]:
    """The states that a plan writes for our check, by the names of the Workloads."""
    return {update.workload.meta.name: update.state for update in answer.check_state_updates}


def check_messages(answer: Plan) -> dict[str, str]:
    """The messages that a plan writes for our check, by the names of the Workloads."""
    return {update.workload.meta.name: update.message for update in answer.check_state_updates}


def problems(answer: Plan) -> str:
    """The condition's message behind the text that objects were generated."""
    return answer.verdicts["check"].message.partition("; ")[2]
