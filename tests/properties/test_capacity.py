"""The capacity of workers is that of their ClusterQueues, whatever these are and whatever runs there."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.core.api.quantities import milli
from placement_ac.core.capacity_report.compute import WorkerState, capacity_report
from placement_ac.core.capacity_report.document import documents, read_report
from placement_ac.core.capacity_report.model import CapacityReport, Supply
from placement_ac.core.inputs.queue_facts import worker_facts
from tests.support.builders import Raw, an

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
