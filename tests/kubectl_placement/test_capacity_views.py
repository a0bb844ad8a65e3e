"""The rows of a capacity report: each number with its own time, and unknown clusters as unknown."""

from datetime import UTC, datetime, timedelta

import pytest

from kubectl_placement.capacity.hub_queues import hub_rows
from kubectl_placement.capacity.views import Row, rows_of, total_rows
from kubectl_placement.cli.capacity import Answer
from kubectl_placement.hub.dump_files import dump_of
from placement_ac.core.capacity_report.document import documents, read_report
from placement_ac.core.capacity_report.model import Amounts, CapacityReport, ClusterCapacity, Supply

NOW = datetime(2026, 11, 26, tzinfo=UTC)
GPU = "nvidia.com/gpu"
GPUS = (GPU,)


def known(name: str, minutes: int) -> ClusterCapacity:
    """A cluster with 8 GPUs, of which 2 are used, as its worker said so many minutes ago."""
    quota = {Supply("f", GPU): Amounts(8000, 2000, 0, 0, 6000, 6000)}
    return ClusterCapacity(name, ("p",), NOW - timedelta(minutes=minutes), quota=quota)


UNKNOWN = ClusterCapacity("c", ("p",), None, "its worker has not been asked")
CLUSTERS = (known("a", 3), known("b", 9), UNKNOWN)


@pytest.mark.parametrize(
    ("counted", "ages"),
    [
        pytest.param(None, [3, 9, None, 9], id="as the workers said"),
        pytest.param(1, [1, 1, None, 1], id="with the jobs that came and left since"),
        pytest.param(5, [3, 5, None, 5], id="asked after that"),
    ],
)
def test_each_number_has_its_own_time(counted: int | None, ages: list[int | None]) -> None:
    at = None if counted is None else NOW - timedelta(minutes=counted)
    report = read_report(documents(CapacityReport(CLUSTERS, GPUS, counted_at=at))[0])
    rows = (*rows_of(report, "cluster"), *total_rows(report))
    assert [None if row.read_at is None else (NOW - row.read_at).seconds // 60 for row in rows] == ages
    asked = [None if row.asked_at is None else (NOW - row.asked_at).seconds // 60 for row in rows]
    assert asked == [3, 9, None, 9]


def test_an_unknown_cluster_has_a_row_without_numbers_and_is_not_in_the_total() -> None:
    report = CapacityReport(CLUSTERS, GPUS)
    rows, totals = rows_of(report, "cluster"), total_rows(report)
    assert rows[2] == Row("c", "", "")
    assert [(row.nominal, row.free) for row in totals] == [(16000, 12000)]
    assert Answer("cluster", "controller", rows, totals, report, NOW).total_name == "TOTAL (2 of 3 clusters)"


def test_the_queues_of_the_hub() -> None:
    resources = [{"name": GPU, "nominalQuota": "8"}]
    group = {"coveredResources": [GPU], "flavors": [{"name": "f", "resources": resources}]}
    used = [{"name": "f", "resources": [{"name": GPU, "total": "3"}]}]
    queues = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
            "status": {"flavorsReservation": used},
        }
        for name in ("ours", "other")
    ]
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "q", "namespace": "team"},
        "spec": {"clusterQueue": "ours"},
    }
    rows = hub_rows(dump_of([queues[0] | {"status": {}}, local]), {"ours"}, GPUS, NOW)
    assert [(row.nominal, row.used, row.free) for row in rows] == [(8000, None, None)]
    [row] = hub_rows(dump_of([*queues, local]), {"ours"}, GPUS, NOW)
    assert row == Row(
        "ours", "f", GPU, 8000, 3000, None, 0, 5000, None, read_at=NOW, asked_at=NOW, on_hub=True
    )
