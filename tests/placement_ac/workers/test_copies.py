"""Asking workers for the copies that they hold: what is read, of which versions, and what goes wrong."""

import pytest

from placement_ac.core.api import decode
from placement_ac.observability import logs
from placement_ac.workers.copies import CopyReader, WorkerCopies
from tests.support.driver import NS, Driver
from tests.support.exec_plugins import TOKEN
from tests.support.worker_copies import WORKLOADS, ask, copy_of, problem, with_reader
from tests.support.workers import ECHO, Raw, by_secret, kueue_crds, put_secret, serving


def test_the_copies_of_all_namespaces_and_which_hold_quota(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    copy_of(worker, "waits")
    copy_of(worker, "runs", "QuotaReserved", "Admitted")
    copy_of(worker, "runs", "QuotaReserved", namespace="other")
    copy_of(worker, "done", "QuotaReserved", "Admitted", "Finished")
    copy_of(worker, "of-its-own", "QuotaReserved", mine="yes")
    copies = {("ns", "waits"): False, ("ns", "runs"): True, ("other", "runs"): True, ("ns", "done"): False}
    assert ask(admin) == WorkerCopies(copies)


def test_a_condition_that_is_false_is_no_quota(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    copy_of(worker, "evicted", "QuotaReserved")
    path = f"{WORKLOADS.format('v1beta2', 'ns')}/evicted/status"
    worker.ask(
        "PATCH", path, [{"op": "replace", "path": "/status/conditions/0/status", "value": "False"}], "json"
    )
    assert ask(admin) == WorkerCopies({("ns", "evicted"): False})


def test_page_by_page_and_again_when_a_page_has_expired(
    admin: Driver, worker: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.workers.reader.PAGE_SIZE", 2)
    put_secret(admin, worker)
    for number in range(5):
        copy_of(worker, f"w{number}")
    gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    worker.hub.faults.add("GET", "v1beta2/workloads", delay=0)
    worker.hub.faults.add("GET", "v1beta2/workloads", status=410, body=gone)
    assert ask(admin) == WorkerCopies({("ns", f"w{number}"): False for number in range(5)})
    lists = [r.query for r in worker.hub.journal if r.path.endswith("v1beta2/workloads")]
    assert [("continue" in query) for query in lists] == [False, True, False, True, True]
    assert {query["labelSelector"] for query in lists} == {"kueue.x-k8s.io/multikueue-origin"}


@pytest.mark.parametrize("name", ["../../default/secrets/other", "s?watch=true", "..", "S", ""])
def test_a_location_that_is_no_name_reads_nothing(admin: Driver, name: str) -> None:
    since = len(admin.hub.journal)
    answer = ask(admin, by_secret(name))
    why = f"correct its kubeConfig.location: {name!r} is not the name of a Secret"
    assert answer == problem(why if name else "it names neither a Secret nor a ClusterProfile")
    assert admin.hub.journal[since:] == []


def test_an_older_kueue_on_the_worker(admin: Driver) -> None:
    with serving(crds=kueue_crds("Workload", versions=("v1beta1",))) as worker:
        put_secret(admin, worker)
        copy_of(worker, "runs", "QuotaReserved", version="v1beta1")
        assert ask(admin) == WorkerCopies({("ns", "runs"): True})


def test_a_worker_without_kueue(admin: Driver) -> None:
    with serving(crds=[]) as worker:
        put_secret(admin, worker)
        assert ask(admin) == problem("the worker serves no Workloads: is Kueue installed there?")


def test_a_workers_api_versions_are_looked_up_once_until_one_is_not_found(
    admin: Driver, worker: Driver
) -> None:
    put_secret(admin, worker)

    async def four_times(workers: CopyReader) -> list[str]:
        first = [(await workers.read(by_secret())).problem for _ in range(2)]
        worker.hub.faults.add("GET", "v1beta2/workloads", status=404)
        return first + [(await workers.read(by_secret())).problem for _ in range(2)]

    not_found = problem("the worker answered with HTTP 404").problem
    assert with_reader(admin, four_times) == ["", "", not_found, ""]
    looked_up = [r for r in worker.hub.journal if r.path == "/apis/kueue.x-k8s.io"]
    assert len(looked_up) == 2


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"kubeConfig": {"location": "s", "locationType": "Secret"}}, id="v1beta1"),
        pytest.param({"kubeConfig": {"location": "s"}, "clusterProfileRef": None}, id="v1alpha1"),
        pytest.param({"clusterSource": {"kubeConfig": {"location": "s"}}}, id="v1beta2"),
    ],
)
def test_every_version_of_a_multikueuecluster(admin: Driver, worker: Driver, spec: Raw) -> None:
    put_secret(admin, worker)
    assert ask(admin, decode.kueue_object({"metadata": {"name": "p-w"}, "spec": spec})) == WorkerCopies()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"clusterSource": {"kubeConfig": {"location": "/etc/kubeconfig", "locationType": "Path"}}},
            "its kubeconfig is a file in Kueue's container, out of reach from here",
            id="a path",
        ),
        pytest.param({}, "it names neither a Secret nor a ClusterProfile", id="nothing"),
        pytest.param({"clusterSource": {}}, "it names neither a Secret nor a ClusterProfile", id="no source"),
    ],
)
def test_a_multikueuecluster_that_leads_nowhere(admin: Driver, spec: Raw, why: str) -> None:
    assert ask(admin, decode.kueue_object({"metadata": {"name": "p-w"}, "spec": spec})) == problem(why)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param(
            {"status": 401}, f"the worker does not accept the credentials of Secret {NS}/s", id="401"
        ),
        pytest.param(
            {"status": 403},
            f"the worker does not let the account of Secret {NS}/s"
            " list workloads.kueue.x-k8s.io in all namespaces",
            id="403",
        ),
        pytest.param({"status": 500}, "the worker answered with HTTP 500", id="500"),
        pytest.param(
            {"status": 200, "body": [TOKEN]}, "what the worker answered is no JSON object", id="no object"
        ),
        pytest.param(
            {"status": 200, "body": {"kind": "Welcome"}},
            "what the worker answered is no list of Workloads",
            id="another server",
        ),
        pytest.param(
            {"status": 200, "body": {"kind": "WorkloadList", "items": [TOKEN]}},
            "unexpected AttributeError",
            id="no Workload",
        ),
        pytest.param(
            {"hang_up": True},
            f"the worker of Secret {NS}/s cannot be reached: ServerDisconnectedError",
            id="hangs up",
        ),
        pytest.param({"delay": 2.0}, "the worker did not answer within 0.5 s", id="late"),
    ],
)
def test_an_error_of_a_worker_is_reported(
    admin: Driver, worker: Driver, capfd: pytest.CaptureFixture[str], fault: Raw, why: str
) -> None:
    logs.configure("json", "debug")
    put_secret(admin, worker)
    worker.hub.faults.add("GET", "v1beta2/workloads", **{"body": ECHO, "times": 2} | fault)
    assert ask(admin, timeout=0.5 if "delay" in fault else 10) == problem(why)
    assert TOKEN not in "".join(capfd.readouterr())
