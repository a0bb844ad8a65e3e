"""Cases in which jobs would end or run twice: whose a copy is, two names, moved checks, losses in steps."""

import re

import pytest

from tests.published.cases.scripts import run_case, section

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
]


def test_a_copy_is_the_hubs_own_whichever_way_it_names_its_workload() -> None:
    output = run_case("25")
    assert output.count('nominated ["gpu-c1"]; Ready: 1 of 1 selected clusters usable: c1') == 2
    assert len(re.findall(r"^OK +worker-same-names", output, re.MULTILINE)) == 2
    assert "NameConflict" not in output


def test_a_cluster_that_is_imported_twice_is_listed_once_and_its_jobs_start_once() -> None:
    output = run_case("29")
    assert '["gpu-cluster1"]' in section(output, "imported again, as cluster1-new")
    assert "remove ManagedCluster cluster1-new" in output
    assert "first ADDED 1\nsecond ADDED 1" in output
    assert re.search(r"^WARN +duplicate-clusters", output, re.MULTILINE)


def test_a_check_that_moves_to_another_placement_leaves_the_list_of_its_jobs() -> None:
    output = run_case("30")
    for title in ("plan: Kueue's check alone", "plan: both checks"):
        assert "gpu removed ['cluster1'] affected ['job-first" in section(output, title), output
    assert 'gpu ["gpu-cluster1"]' in section(output, "applied: both checks, while the job runs")


def test_losses_in_steps_count_together() -> None:
    output = run_case("31")
    every = '["gpu-ap-1","gpu-eu-1","gpu-eu-2","gpu-us-1","gpu-us-2","gpu-us-3"]'
    assert re.findall(r"^(?:before|after): (\S+)", output, re.MULTILINE) == [every] * 10
    assert output.count("6 of 6 clusters would go at once") == 4
    assert "lists seen: 1" in output
