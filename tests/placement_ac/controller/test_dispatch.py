"""With our dispatcher, each job goes where its annotations say, among the clusters that are selected."""

from collections.abc import Iterator

import pytest

from tests.support.driver import Controllers, Driver
from tests.support.jobs import Stage, dispatched, label, soon, workloads_in

ALL = ["a", "b", "c"]
DOMAIN = "placement-ac.open-cluster-management.io"
SELECTOR = f"{DOMAIN}/cluster-selector"


@pytest.fixture
def stage(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    nodes = {"node_labels": ("gpu.product=gpu",)}
    with dispatched(admin, controllers, ALL, labels={"b": {"gpu": "h100"}}, controller=nodes) as opened:
        yield opened


def entry(stage: Stage, job: str) -> tuple[str, str]:
    entries = (stage.workload(job).get("status") or {}).get("admissionChecks", ())
    return next(((one["state"], one["message"]) for one in entries if one["name"] == "p"), ("", ""))


def events(admin: Driver, reason: str) -> list[str]:
    return [event["message"] for event in admin.events("Workload") if event["reason"] == reason]


def test_a_job_goes_where_its_annotations_say(stage: Stage, admin: Driver) -> None:
    stage.submit("anywhere")
    stage.until_runs("anywhere", "a")
    stage.submit("selected", annotations={SELECTOR: "gpu=h100"})
    stage.until_runs("selected", "b")
    stage.submit("named", annotations={"kueue.x-k8s.io/multikueue-cluster-names": "c"})
    stage.until_runs("named", "c")
    assert [stage.account(job)[:2] for job in stage.jobs] == [(1, 1)] * 3
    soon(lambda: sorted(events(admin, "Nominated")), [f"nominated to p-{name}" for name in ALL])


def test_a_job_that_fits_nowhere_waits_until_a_cluster_fits(stage: Stage, admin: Driver) -> None:
    stage.submit("picky", annotations={SELECTOR: "gpu=b200"})
    why = "0/3 clusters fit: 3 didn't match gpu=b200 (ClusterAffinity)"
    soon(lambda: entry(stage, "picky"), ("Pending", f"NoClusterFits: {why}"))
    soon(lambda: events(admin, "NoClusterFits"), [why])
    label(admin, "c", gpu="b200")
    stage.until_runs("picky", "c")
    assert stage.account("picky")[:2] == (1, 1)


def test_a_job_whose_admission_was_applied_in_a_version_that_is_not_served_any_more_is_nominated(
    stage: Stage, admin: Driver
) -> None:
    """Kueue 0.20 does not serve v1beta1."""
    stage.submit("old", annotations={SELECTOR: "gpu=b200"})
    soon(lambda: entry(stage, "old")[0], "Pending")
    workload = stage.workload("old")
    for fields in workload["metadata"]["managedFields"]:
        if fields["manager"] == "kueue-admission":
            fields["apiVersion"] = "kueue.x-k8s.io/v1alpha1"
    metadata = {"metadata": {"managedFields": workload["metadata"]["managedFields"]}}
    admin.ask("PATCH", f"{workloads_in('default')}/{workload['metadata']['name']}", metadata, "merge")
    label(admin, "c", gpu="b200")
    stage.until_runs("old", "c")
    assert stage.account("old")[:2] == (1, 1)
