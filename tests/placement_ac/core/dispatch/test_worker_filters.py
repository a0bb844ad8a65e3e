"""The filters that read what a worker has beside its queues."""

from typing import Any

import pytest

from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.dispatch.filters import FILTERS
from placement_ac.core.inputs.job_facts import JobFacts, JobNeeds, job_needs
from tests.support.jobs_to_dispatch import cluster, job, raw_job

JOB = "Job.v1.batch"
TRAIN = ("batch/v1", "Job", "train")
PYTORCH = ("kubeflow.org/v1", "PyTorchJob", "train")


@pytest.mark.parametrize(
    ("owner", "refused"),
    [
        pytest.param(PYTORCH, True, id="the kind is not served"),
        pytest.param(TRAIN, False, id="it is served"),
        pytest.param(("ray.io/v1", "RayJob", "train"), False, id="it is not known"),
        pytest.param(("v1", "Pod", "train"), False, id="a Pod has no CRD"),
        pytest.param(None, False, id="a Workload without a job"),
    ],
)
def test_framework(owner: tuple[str, str, str] | None, refused: bool) -> None:
    facts = JobFacts(served={"PyTorchJob.v1.kubeflow.org": False, JOB: True})
    reason = "served no PyTorchJob.v1.kubeflow.org: install its CRD and its controller there"
    answer = FILTERS["Framework"](job(owner=owner), cluster(jobs=facts))
    assert answer == (reason if refused else None)


@pytest.mark.parametrize(
    ("owner", "integrations", "lacks"),
    [
        pytest.param(PYTORCH, {"batch/job"}, "kubeflow.org/pytorchjob", id="it is off"),
        pytest.param(PYTORCH, {"kubeflow.org/pytorchjob"}, "", id="it is on"),
        pytest.param(TRAIN, {"pod"}, "batch/job", id="that of Jobs is off"),
        pytest.param(
            ("apps/v1", "StatefulSet", "train"), {"pod"}, "statefulset", id="a name without a group"
        ),
        pytest.param(("v1", "Pod", "train"), {"batch/job"}, "pod", id="that of Pods is off"),
        pytest.param(PYTORCH, {"PyTorchJob.v1.kubeflow.org"}, "", id="another controller starts the kind"),
        pytest.param(
            ("tekton.dev/v1", "PipelineRun", "train"), {"batch/job"}, "", id="Kueue has none of the kind"
        ),
        pytest.param(PYTORCH, None, "", id="it is not known"),
        pytest.param(None, {"batch/job"}, "", id="a Workload without a job"),
    ],
)
def test_framework_without_the_integration(
    owner: tuple[str, str, str] | None, integrations: set[str] | None, lacks: str
) -> None:
    facts = JobFacts(integrations=None if integrations is None else frozenset(integrations))
    reason = f"had no integration {lacks}: add it to integrations.frameworks of Kueue's configuration there"
    answer = FILTERS["Framework"](job(owner=owner), cluster(jobs=facts))
    assert answer == (reason if lacks else None)


@pytest.mark.parametrize(
    ("owner", "taken", "refused"),
    [
        pytest.param(TRAIN, ("default", "train"), True, id="the same name"),
        pytest.param(TRAIN, ("default", "train-2"), False, id="another name"),
        pytest.param(TRAIN, ("team-a", "train"), False, id="in another namespace"),
        pytest.param(PYTORCH, ("default", "train"), False, id="of another kind"),
        pytest.param(None, ("default", ""), False, id="a Workload without a job"),
    ],
)
def test_name_conflict(owner: tuple[str, str, str] | None, taken: tuple[str, str], refused: bool) -> None:
    facts = JobFacts(taken={JOB: frozenset({taken})})
    reason = "had another Job default/train: rename or delete one of the two"
    answer = FILTERS["NameConflict"](job(owner=owner), cluster(jobs=facts))
    assert answer == (reason if refused else None)


@pytest.mark.parametrize(("controller", "name"), [(True, "train"), (False, "")])
def test_of_several_owners_the_controller_is_the_job(controller: bool, name: str) -> None:
    raw = raw_job(owner=TRAIN)
    owners = raw["metadata"]["ownerReferences"]
    owners[0]["controller"] = controller
    owners.insert(0, {"apiVersion": "v1", "kind": "ConfigMap", "name": "other"})
    assert workload_with_job(raw).job_name == name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        pytest.param({}, "train", id="waits"),
        pytest.param({"cluster": "p-a"}, "", id="runs"),
        pytest.param({"finished": True}, "", id="is finished"),
    ],
)
def test_the_name_is_kept_of_a_job_that(given: dict[str, Any], name: str) -> None:
    assert job(owner=TRAIN, **given).job_name == name


def test_kinds_are_looked_for_while_there_are_jobs_and_names_while_one_waits() -> None:
    placed = job("a", owner=PYTORCH, cluster="p-a")
    pod, strange = job("b", owner=("v1", "Pod", "p")), job("c", owner=("../../x/v1", "Job", "n"))
    needs = job_needs([job("d", owner=TRAIN), placed, pod, strange, job("e")])
    assert needs == JobNeeds(frozenset({JOB, "PyTorchJob.v1.kubeflow.org"}), frozenset({JOB}))


def test_of_many_kinds_some_are_looked_for() -> None:
    many = [job(f"j{n}", owner=("example.com/v1", f"Kind{n}", "n")) for n in range(40)]
    assert len(job_needs(many).kinds) == len(job_needs(many).waiting) == 16
