"""The capacity of workers is that of their ClusterQueues, whatever these are and whatever runs there."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.core.api.quantities import milli
from placement_ac.core.capacity_report.compute import WorkerState, capacity_report
from placement_ac.core.capacity_report.document import documents, read_report
from placement_ac.core.capacity_report.model import CapacityReport, Supply
from placement_ac.core.inputs.queue_facts import worker_facts
from tests.kubectl_placement.cli.test_capacity_on_hub import shown
from tests.support.builders import Raw, an
from tests.support.commands import on_hub
from tests.support.driver import KUEUE, Controllers, Driver
from tests.support.jobs import Stage, dispatched, soon
from tests.support.stage import shorten

GPU = "nvidia.com/gpu"
GPUS = (GPU, "amd.com/gpu")
NOW = datetime(2026, 11, 26, tzinfo=UTC)
AMOUNTS = st.integers(0, 64)


@st.composite
def groups(draw: st.DrawFn, amount: str = "nominalQuota") -> list[Raw]:
    """Resource groups of a ClusterQueue: each resource is in one of them."""
    parts = draw(st.sampled_from([[[GPU]], [[GPU, "cpu"]], [[GPU], ["cpu", "memory"]]]))
    return [
        {
            "coveredResources": names,
            "flavors": [
                {
                    "name": f"{flavor}{number}",
                    "resources": [{"name": name, amount: str(draw(AMOUNTS))} for name in names],
                }
                for flavor in draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True))
            ],
        }
        for number, names in enumerate(parts)
    ]


@st.composite
def cluster_queues(draw: st.DrawFn, name: str) -> Raw:
    quota = draw(groups())
    effective = draw(st.none() | groups())
    reserved = [
        {
            "name": flavor["name"],
            "resources": [{"name": one["name"], "total": str(draw(AMOUNTS))} for one in flavor["resources"]],
        }
        for group in effective or quota
        for flavor in group["flavors"]
    ]
    spec: Raw = {
        "namespaceSelector": {},
        "resourceGroups": quota,
        "stopPolicy": draw(st.sampled_from(["None", "Hold"])),
    }
    spec |= draw(st.sampled_from([{}, {"cohortName": "all"}]))
    status: Raw = {"flavorsReservation": reserved, "pendingWorkloads": draw(AMOUNTS)}
    status |= {"effectiveQuotas": {"resourceGroups": effective}} if effective is not None else {}
    return an(CLUSTER_QUEUE, name, spec=spec, status=status)


@st.composite
def workers(draw: st.DrawFn) -> tuple[list[Raw], list[Raw]]:
    """The LocalQueues and the ClusterQueues of a worker: some lead to none, some to the same."""
    names = draw(st.lists(st.sampled_from("pqrs"), min_size=1, max_size=4, unique=True))
    queues = [draw(cluster_queues(name)) for name in names]
    local = st.tuples(st.sampled_from("abcde"), st.sampled_from(["team", "other"]), st.sampled_from("pqrst"))
    leads = draw(st.lists(local, max_size=6, unique_by=lambda one: one[:2]))
    return [an(LOCAL_QUEUE, name, space, spec={"clusterQueue": to}) for name, space, to in leads], queues


def there(local_queues: list[Raw], queues: list[Raw]) -> dict[Supply, tuple[int, int]]:
    """Nominal quota and reservation of the ClusterQueues that a LocalQueue leads to, by hand."""
    sums: dict[Supply, tuple[int, int]] = {}
    reached = {one["spec"]["clusterQueue"] for one in local_queues}
    for queue in (one for one in queues if one["metadata"]["name"] in reached):
        status = queue.get("status") or {}
        used = {
            (flavor["name"], one["name"]): milli(one["total"]) or 0
            for flavor in status.get("flavorsReservation", ())
            for one in flavor["resources"]
        }
        quota = status.get("effectiveQuotas") or queue["spec"]
        for flavor in (flavor for group in quota["resourceGroups"] for flavor in group["flavors"]):
            for one in flavor["resources"]:
                supply = Supply(flavor["name"], one["name"])
                nominal, reserved = sums.get(supply, (0, 0))
                sums[supply] = (nominal + (milli(one["nominalQuota"]) or 0), reserved + used.get(supply, 0))
    return sums


def of_supply(report: CapacityReport, cluster: str) -> dict[Supply, tuple[int, int]]:
    quota = {one.name: one.quota for one in report.clusters}[cluster]
    return {supply: (amounts.nominal, amounts.used) for supply, amounts in quota.items()}


@given(st.lists(workers(), min_size=1, max_size=3))
def test_the_sums_are_those_of_the_cluster_queues(fleet: list[tuple[list[Raw], list[Raw]]]) -> None:
    states = [
        WorkerState(f"c{number}", queues=worker_facts(*worker).known, read_at=NOW)
        for number, worker in enumerate(fleet)
    ]
    report = capacity_report(states, GPUS)
    for number, worker in enumerate(fleet):
        assert of_supply(report, f"c{number}") == there(*worker)
    totals = {name: (one.nominal, one.used) for name, one in report.totals().items()}
    for resource, sums in totals.items():
        every = [
            one for worker in fleet for supply, one in there(*worker).items() if supply.resource == resource
        ]
        assert sums == tuple(map(sum, zip(*every, strict=True)))
    for cluster in report.clusters:
        for amounts in cluster.quota.values():
            assert 0 <= amounts.largest <= amounts.free <= max(amounts.nominal, 0)
    assert read_report(documents(report)[1]) == report


# -- over HTTP, with the stand-in's workers

QUOTAS = {
    "a": {"x": {GPU: "8", "cpu": "32"}, "y": {GPU: "4", "cpu": "16"}},
    "b": {"x": {GPU: "16", "cpu": "64"}},
    "c": {"x": {GPU: "2", "cpu": "8"}},
}


@pytest.fixture
def stage(admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    shorten(monkeypatch, WRITE_SECONDS=0.3, LOOK_SECONDS=0.1, GATHER_SECONDS=0.0)
    headroom = {"dispatch_profile": "headroom"}
    with dispatched(admin, controllers, [*QUOTAS], quotas=QUOTAS, controller=headroom) as opened:
        yield opened


def on_workers(stage: Stage) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Cluster, flavor and resource → nominal quota and reservation, as the workers' API servers have them."""
    found = {}
    for name, hub in stage.fleet.hubs.items():
        with Driver(hub) as worker:
            queues = worker.ask("GET", f"{KUEUE}/v1beta2/clusterqueues")["items"]
            local = worker.ask("GET", f"{KUEUE}/v1beta2/namespaces/default/localqueues")["items"]
        for supply, (nominal, used) in there(local, queues).items():
            found[name, *supply] = (nominal / 1000, used / 1000)
    return found


def by_command(stage: Stage, *words: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    rows = shown(on_hub(stage.controllers.kubeconfig), *words).get("rows", ())
    return {(row["cluster"], row["flavor"], row["resource"]): (row["nominal"], row["used"]) for row in rows}


def gpus(sums: dict[tuple[str, str, str], tuple[float, float]]) -> dict[str, list[float]]:
    """Cluster → GPUs, and how many are used; other resources are published in steps."""
    found: dict[str, list[float]] = {}
    for (cluster, _, resource), (nominal, used) in sums.items():
        if resource == GPU:
            before = found.get(cluster, [0, 0])
            found[cluster] = [before[0] + nominal, before[1] + used]
    return found


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 6))])
def test_random_loads_are_shown_as_the_workers_have_them(stage: Stage, seed: int) -> None:
    chance, running = random.Random(seed), []
    for number in range(6):
        for each in range(chance.randint(1, 3)):
            asked = {GPU: str(chance.randint(1, 4)), "cpu": str(chance.randint(1, 8))}
            stage.submit(f"job{number}x{each}", requests=asked)
            running.append(f"job{number}x{each}")
        soon(lambda: any(stage.placed(job) for job in running))
        # A job that ends before the controller has looked at it may count until the worker's next answer.
        soon(lambda: gpus(by_command(stage)) == gpus(on_workers(stage)))
        placed = [job for job in running if stage.placed(job)]
        for job in chance.sample(placed, min(len(placed), chance.randint(0, 2))):
            stage.finish(job)
            running.remove(job)
    soon(lambda: by_command(stage, "--workers") == on_workers(stage))
    soon(lambda: gpus(by_command(stage)), gpus(on_workers(stage)))
    used = {key[0] for key, (_, reserved) in on_workers(stage).items() if reserved}
    assert used, "some jobs run"
