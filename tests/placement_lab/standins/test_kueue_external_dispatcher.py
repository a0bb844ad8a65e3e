"""
The stand-in for Kueue with a dispatcher of somebody else, as recorded in shared/kueue.

Each test names the recording that it follows. Kueue's times pass 20 times as fast here.
"""

from collections.abc import Callable

import pytest

from placement_ac.core.api.errors import Refused
from placement_lab.standins.multikueue import KueueSettings
from placement_lab.standins.multikueue.objects import condition, is_condition_true
from tests.placement_lab.standins.workload_environment import (
    EXTERNAL,
    KUEUE_ADMISSION,
    WORKLOADS,
    Staged,
    WorkloadEnvironment,
)

# external-dispatcher.txt


@pytest.fixture
def external(staged: Staged) -> WorkloadEnvironment:
    settings = KueueSettings(dispatcher=EXTERNAL, events_batch_seconds=20)
    return staged(held=["worker1", "worker2", "worker3"], settings=settings)


def submitted(stage: WorkloadEnvironment, name: str) -> None:
    stage.submit(name)
    stage.wait(lambda: is_condition_true(stage.workload(name), "QuotaReserved"))
    stage.wait(lambda: condition(stage.workload(name), "Admitted"))


def test_external_dispatcher_the_whole_apply_as_kueue_works(external: WorkloadEnvironment) -> None:
    submitted(external, "e")
    external.nominate("e", "worker2")
    external.until_waiting("e", "worker2")
    assert is_condition_true(external.workload("e"), "QuotaReserved")
    external.fleet.release("worker2")
    external.until_placed("e", "worker2")
    assert external.copies("e") == ["worker2"]
    with pytest.raises(Refused, match="mutually exclusive"):
        external.nominate("e", "worker3")


def by_merge(stage: WorkloadEnvironment, manager: str) -> None:
    patch = {"status": {"nominatedClusterNames": ["worker2"]}}
    where = stage.identity("e")
    stage.merge(WORKLOADS, where["name"], patch, namespace="default", subresource="status")


def by_apply(stage: WorkloadEnvironment, manager: str) -> None:
    body = {"metadata": stage.identity("e"), "status": {"nominatedClusterNames": ["worker2"]}}
    stage.apply_status(WORKLOADS, body, manager=manager, force=True)


@pytest.mark.parametrize("write", [by_merge, by_apply])
def test_external_dispatcher_fields_of_another_manager_are_never_cleared(
    external: WorkloadEnvironment, write: Callable[[WorkloadEnvironment, str], None]
) -> None:
    submitted(external, "e")
    external.fleet.release("worker2")
    write(external, "dispatcher")
    external.wait(lambda: is_condition_true(external.copy("e", "worker2") or {}, "Admitted"))
    submitted(external, "f")
    external.nominate("f", "worker2")
    external.until_placed("f", "worker2")
    assert external.placed("e") == (None, ["worker2"])


def test_external_dispatcher_applying_only_the_names_removes_the_admission(
    external: WorkloadEnvironment,
) -> None:
    submitted(external, "e")
    body = {"metadata": external.identity("e"), "status": {"nominatedClusterNames": ["worker2"]}}
    answer = external.apply_status(WORKLOADS, body, manager=KUEUE_ADMISSION, force=True)
    left = {"admissionChecks", "conditions", "nominatedClusterNames"}
    assert answer["status"].keys() == left
    assert [one["type"] for one in answer["status"]["conditions"]] == ["PodsReady"]
    external.wait(lambda: is_condition_true(external.workload("e"), "QuotaReserved"))


def denominated_during_admission(external: WorkloadEnvironment) -> None:
    """Let worker2 admit the copy of `e`, and remove worker2 from the nominations before Kueue records it."""
    submitted(external, "e")
    external.nominate("e", "worker2", "worker3")
    external.until_waiting("e", "worker2", "worker3")
    external.fleet.release("worker2")
    external.wait(lambda: is_condition_true(external.copy("e", "worker2") or {}, "Admitted"))
    external.nominate("e", "worker3")
    external.until_runs("e", "worker2")


def test_external_dispatcher_the_race_and_its_fix(external: WorkloadEnvironment) -> None:
    denominated_during_admission(external)
    external.until(lambda: external.copies("e"), ["worker2"])
    assert external.placed("e") == (None, ["worker3"])
    external.nominate("e", "worker2", "worker3")
    external.until_placed("e", "worker2")
    assert external.fleet.counter.counts_of("e") == {"maxCopies": 1, "starts": 1, "finished": False}
