"""Asking workers what jobs need beside queues: it is read with them, and takes nothing from them."""

from collections.abc import Iterator
from typing import Any

import pytest

from placement_ac.core.inputs.job_facts import JobFacts, JobNeeds
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.queues import QueueReader
from placement_lab.hub import RecordedRequest
from placement_lab.standins.worker_quota import queue_manifests
from tests.support.driver import KUEUE, Driver
from tests.support.workers import by_secret, put_secret, serving, with_connector

JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB, RAY_JOB = "Job.v1.batch", "RayJob.v1.ray.io"
WAITING = JobNeeds(frozenset({JOB, RAY_JOB}), frozenset({JOB, RAY_JOB}))
FOUND = JobFacts({JOB: True, RAY_JOB: False}, {JOB: frozenset({("default", "train")})})
NAMES_UNKNOWN = JobFacts(FOUND.served)


@pytest.fixture
def worker(admin: Driver) -> Iterator[Driver]:
    """A worker with queues, Jobs that Kueue has sent, and one that somebody else has made."""
    with serving() as driver:
        for item in queue_manifests({"default": {"cpu": "8"}}, ["one"]):
            names = "namespaces/default/localqueues" if item["kind"] == "LocalQueue" else "clusterqueues"
            driver.ask("POST", f"{KUEUE}/v1beta2/{names}", item)
        origin = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
        named = {"kueue.x-k8s.io/prebuilt-workload-name": "job-sent"}
        for name, metadata in (
            ("sent", {"labels": origin, "annotations": named}),
            ("sent-by-0.17", {"labels": origin | named}),
            ("without-origin", {"annotations": named}),
            ("train", {}),
        ):
            template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
            made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **metadata}}
            driver.ask("POST", JOBS, made | {"spec": {"template": template}})
        put_secret(admin, driver)
        yield driver


def ask(
    admin: Driver,
    needs: JobNeeds = WAITING,
    *,
    times: int = 1,
    timeout: float = 10.0,
    kueue_namespace: str = "",
) -> list[WorkerFacts]:
    """The answers to so many questions, one after the other."""

    async def read(connector: WorkerConnector) -> list[WorkerFacts]:
        reader = QueueReader(connector, kueue_namespace=kueue_namespace)
        return [await reader.read(by_secret(), needs) for _ in range(times)]

    answers: list[WorkerFacts] = with_connector(admin, read, timeout=timeout)
    assert all(answer.queues and not answer.problem for answer in answers), "the queues are known"
    return answers


def asked(worker: Driver, path: str) -> list[RecordedRequest]:
    return [request for request in list(worker.hub.journal) if request.path.startswith(path)]


def test_kinds_and_names_that_are_taken(admin: Driver, worker: Driver) -> None:
    assert [facts.jobs for facts in ask(admin)] == [FOUND]


def test_nothing_is_asked_that_no_job_needs(admin: Driver, worker: Driver) -> None:
    before = len(list(worker.hub.journal))
    assert [facts.jobs for facts in ask(admin, JobNeeds())] == [JobFacts()]
    assert len(list(worker.hub.journal)) - before == 5, "the group, its version, and three lists"


def test_no_names_are_asked_of_a_kind_of_which_no_job_waits(admin: Driver, worker: Driver) -> None:
    found = ask(admin, JobNeeds(WAITING.kinds))
    assert [facts.jobs for facts in found] == [NAMES_UNKNOWN]
    assert asked(worker, "/apis/batch/v1/jobs") == []


def test_it_is_asked_once_for_a_while(admin: Driver, worker: Driver) -> None:
    assert [facts.jobs for facts in ask(admin, times=3)] == [FOUND] * 3
    assert [len(asked(worker, path)) for path in ("/apis/batch/v1/jobs", "/apis/ray.io/v1")] == [1, 1]


@pytest.mark.parametrize(
    ("path", "fault", "known"),
    [
        pytest.param("batch/v1/jobs", {"status": 403}, NAMES_UNKNOWN, id="no right to list jobs"),
        pytest.param("batch/v1/jobs", {"status": 406}, NAMES_UNKNOWN, id="no metadata alone"),
        pytest.param(
            "batch/v1/jobs",
            {"status": 200, "body": {"kind": "JobList", "items": []}},
            NAMES_UNKNOWN,
            id="whole objects",
        ),
        pytest.param("ray.io/v1", {"status": 403}, JobFacts({JOB: True}, FOUND.taken), id="no discovery"),
        pytest.param(
            "ray.io/v1", {"status": 200, "body": {}}, JobFacts({JOB: True}, FOUND.taken), id="another server"
        ),
    ],
)
def test_what_cannot_be_read_is_not_known(
    admin: Driver, worker: Driver, path: str, fault: dict[str, Any], known: JobFacts
) -> None:
    worker.hub.faults.add("GET", path, **{"body": {}, "times": 5} | fault)
    assert [facts.jobs for facts in ask(admin)] == [known]


def test_a_slow_answer_takes_no_answer_about_the_queues_away(admin: Driver, worker: Driver) -> None:
    worker.hub.faults.add("GET", "batch/v1/jobs", delay=4.0)
    assert [facts.jobs for facts in ask(admin, timeout=2.0)] == [NAMES_UNKNOWN]


CONFIG = "/api/v1/namespaces/kueue-system/configmaps"
JOB_SETS = "kind: Configuration\nintegrations: {frameworks: [jobset.x-k8s.io/jobset]}"


def integrations(admin: Driver, worker: Driver, text: str | None = JOB_SETS) -> list[frozenset[str] | None]:
    """Those that two questions find, with this configuration of Kueue on the worker."""
    worker.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
    if text is not None:
        data = {"controller_manager_config.yaml": text}
        worker.ask("POST", CONFIG, {"metadata": {"name": "kueue-manager-config"}, "data": data})
    found = ask(admin, JobNeeds(), times=2, kueue_namespace="kueue-system")
    return [facts.jobs.integrations for facts in found]


def test_kueues_integrations_are_read_by_name_once_for_a_while(admin: Driver, worker: Driver) -> None:
    assert integrations(admin, worker) == [frozenset({"jobset.x-k8s.io/jobset"})] * 2
    reads = [(one.method, one.path) for one in asked(worker, CONFIG) if one.method == "GET"]
    assert reads == [("GET", f"{CONFIG}/kueue-manager-config")]


def test_without_the_setting_kueues_configuration_is_not_read(admin: Driver, worker: Driver) -> None:
    assert [facts.jobs.integrations for facts in ask(admin)] == [None]
    assert asked(worker, CONFIG) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(None, {}, id="there is no such ConfigMap"),
        pytest.param("integrations: [", {}, id="it is not YAML"),
        pytest.param(JOB_SETS, {"status": 403, "body": {}}, id="no right to read it"),
        pytest.param(JOB_SETS, {"status": 200, "body": {"data": "x" * 300_000}}, id="it is too large"),
    ],
)
def test_integrations_that_cannot_be_read_are_not_known(
    admin: Driver, worker: Driver, text: str | None, fault: dict[str, Any]
) -> None:
    if fault:
        worker.hub.faults.add("GET", "kueue-manager-config", times=5, **fault)
    assert integrations(admin, worker, text) == [None, None]
    assert len([one for one in asked(worker, f"{CONFIG}/") if one.method == "GET"]) == 1, "once for a while"
