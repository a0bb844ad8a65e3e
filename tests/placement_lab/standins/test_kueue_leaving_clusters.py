"""
The stand-in for Kueue when a cluster, the list or a worker goes, as recorded in shared/kueue.

Each test names the recording that it follows. Kueue's times pass 20 times as fast here.
"""

import pytest

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, SECRET
from placement_lab.standins.multikueue import KueueSettings
from placement_lab.standins.multikueue.objects import is_condition_true
from tests.placement_lab.standins.workload_environment import JOBS, TRAINJOB, Staged, V, config
from tests.support.crds import plain_crd

# cluster-unlisted-while-running.log, cluster-unlisted-variants.log


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_cluster_unlisted_while_running_runs_the_job_twice(staged: Staged) -> None:
    stage = staged(2, held=["worker1"])
    stage.submit("b1")
    stage.until_placed("b1", "worker2")
    stage.fleet.release("worker1")
    stage.apply(config("worker1"))
    stage.until_runs("b1", "worker1", "worker2")
    stage.until(lambda: stage.placed("b1"), ("worker1", []))
    assert stage.fleet.counter.counts_of("b1") == {"maxCopies": 2, "starts": 2, "finished": False}
    stage.delete(JOBS, "b1", "default")
    stage.until(lambda: stage.copies("b1"), [])


# worker-lost-and-back.log


def test_worker_lost_and_back(staged: Staged) -> None:
    stage = staged(2, held=["worker1"], settings=KueueSettings(worker_lost_seconds=10))
    stage.submit("b4")
    stage.until_placed("b4", "worker2")
    stage.fleet.release("worker1")
    stage.fleet.kill("worker2")
    url = stage.fleet.hubs["worker2"].secure_url
    refused = (
        f'False ClientConnectionFailed | failed to get server groups: Get "{url}/api": dial tcp'
        f" {url.removeprefix('https://')}: connect: connection refused; connection attempts: "
    )
    stage.wait(lambda: (stage.says("worker2") or "").startswith(f"{refused}2, next connection attempt: 2"))
    stage.until(lambda: stage.says("multikueue"), "True SomeActiveClusters | Inactive clusters: [worker2]")
    stage.until(lambda: stage.placed("b4"), ("worker1", []))
    stage.until_runs("b4", "worker1", "worker2")
    stage.fleet.revive("worker2")
    stage.until(lambda: stage.says("worker2"), "True Active | Connected")
    stage.until_runs("b4", "worker2")
    assert stage.fleet.counter.counts_of("b4") == {"maxCopies": 2, "starts": 2, "finished": False}


# broken-configuration.txt


def test_broken_configuration_unknown_token(staged: Staged) -> None:
    stage = staged(2)
    text = stage.fleet.kubeconfig("worker1").decode().replace(stage.fleet.hubs["worker1"].token, "wrong")
    patch = {"stringData": {"kubeconfig": text}}
    stage.merge(SECRET.at("v1"), "multikueue-worker1", patch, namespace="kueue-system")
    expected = (
        "False ClientConnectionFailed | failed to get server groups:"
        " the server has asked for the client to provide credentials; connection attempts: "
    )
    stage.wait(lambda: (stage.says("worker1") or "").startswith(expected))
    stage.apply(*stage.fleet.secrets())
    stage.until(lambda: stage.says("worker1"), "True Active | Connected")


def test_a_worker_that_lacks_a_job_kind_is_not_connected(staged: Staged) -> None:
    """By its code: one missing CRD disconnects the worker for all jobs (issue 15157)."""
    stage = staged(2, job_kinds=[TRAINJOB], ready=False)
    missing = 'no matches for kind "TrainJob" in version "trainer.kubeflow.org/v1alpha1"'
    refused = f"False ClientConnectionFailed | {missing}"
    stage.wait(lambda: (stage.says("worker2") or "").startswith(refused))
    stage.on("worker1").apply(plain_crd(TRAINJOB.group, TRAINJOB.kind, "v1alpha1"))
    stage.until(lambda: stage.says("worker1"), "True Active | Connected")
    stage.submit("b1")
    stage.until_placed("b1", "worker1")


# config-deleted.log


def test_config_deleted_evicts_and_admits_nothing(staged: Staged) -> None:
    stage = staged(2)
    stage.submit("d2")
    stage.wait(lambda: stage.fleet.counter.running("d2"))
    stage.delete(MULTIKUEUE_CONFIG.at(V), "mkconfig")
    stage.wait(lambda: (stage.says("multikueue") or "").startswith("False BadConfig"))
    stage.submit("d2b")
    inactive = 'F:Suspended "ClusterQueue cluster-queue is inactive"'
    stage.until(lambda: stage.condition_line("d2b", "QuotaReserved"), inactive)
    assert is_condition_true(stage.workload("d2"), "Admitted")
    stage.apply(config("worker1", "worker2"))
    stage.wait(lambda: stage.fleet.counter.running("d2b"))
    assert stage.fleet.counter.counts_of("d2") == {"maxCopies": 1, "starts": 1, "finished": False}


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_config_deleted_orphaned_copies_are_collected(staged: Staged) -> None:
    stage = staged(2, settings=KueueSettings(gc_seconds=10))
    stage.submit("d2")
    stage.wait(lambda: stage.fleet.counter.running("d2"))
    stage.delete(MULTIKUEUE_CONFIG.at(V), "mkconfig")
    stage.wait(lambda: (stage.says("multikueue") or "").startswith("False BadConfig"))
    stage.delete(JOBS, "d2", "default")
    stage.until(lambda: stage.workload("d2"), {})
    stage.until(lambda: stage.copies("d2"), [])
    stage.until_runs("d2")
