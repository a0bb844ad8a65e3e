"""The picture of `explain workload --workers` shows what its page says."""

import pytest

from website.workload_photographs import play

REASONS = {
    "cluster3": "-",
    "cluster1": "didn't match accelerator=nvidia-h100 (ClusterAffinity)",
    "cluster2": "had too little quota: 16 nvidia.com/gpu asked, 8 at most (Capacity)",
}


@pytest.mark.long
def test_one_is_nominated_and_two_are_refused() -> None:
    lines = play().splitlines()
    assert lines[0] == "$ placement-ac explain workload train --workers"
    table = [line.split("  ", 1) for line in lines if line.startswith("cluster")]
    assert [name for name, _ in table] == [*REASONS]
    assert all(cells.lstrip().startswith(f"{REASONS[name]} ") for name, cells in table)
    assert ["yes, " in cells for _, cells in table] == [True, False, False]
