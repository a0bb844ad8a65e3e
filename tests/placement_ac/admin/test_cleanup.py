"""`placement-ac cleanup` on a hub that a controller has left: what goes, what stays, what is in the way."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from placement_ac.admin import cleanup
from placement_ac.core.api.constants import LEASE, MANAGED_BY
from placement_lab.hub import Hub
from tests.support.credentials import Stage, open_stage
from tests.support.driver import CORE, NS, Controllers, Driver, eventually
from tests.support.hub_line import run_and_take_hub_line
from tests.support.jobs import has_quota, is_admitted_on, soon
from tests.support.rights import CLUSTER_BINDINGS, CLUSTER_ROLES, bound_to, rule

LEASES = LEASE.at("v1").path(NS)
LABELS = {"labels": {"app.kubernetes.io/managed-by": MANAGED_BY}}
LISTS = ["MultiKueueConfig p", "MultiKueueCluster p-a", "MultiKueueCluster p-b"]
PROVISION = {"credentials_provision": "managed-serviceaccount", "frameworks": "batch/job"}
NOT_DONE = "jobs are not finished: "
Clean = Callable[..., Result]


@pytest.fixture
def clean(hub: Hub, tmp_path: Path) -> Clean:
    hub.write_kubeconfig(tmp_path / "admin")
    words = ["cleanup", "--kubeconfig", str(tmp_path / "admin")]
    return lambda *more: run_and_take_hub_line([*words, *more])


@pytest.fixture
def left(admin: Driver, controllers: Controllers) -> Driver:
    """A hub on which the controller of two clusters ran, and runs no more."""
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.select("p", "a", "b")
    with controllers():
        eventually(lambda: admin.reason("p"), "Active")
    return admin


def wait_for_job(admin: Driver, name: str, clusters: list[str]) -> None:
    """A Workload that is nominated to these clusters."""
    has_quota(admin, name, "mk")
    status = {"status": {"nominatedClusterNames": clusters}}
    admin.ask("PATCH", f"{admin.kueue('namespaces/default/workloads', name)}/status", status, "merge")


def is_done(admin: Driver, name: str) -> None:
    path = admin.kueue("namespaces/default/workloads", name)
    conditions = admin.ask("GET", path)["status"]["conditions"]
    done = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": ""}
    done["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    admin.ask("PATCH", f"{path}/status", {"status": {"conditions": [*conditions, done]}}, "merge")


def writes(hub: Hub, since: int) -> list[tuple[str, str]]:
    return [(r.method, r.path) for r in hub.journal[since:] if r.method not in ("GET", "HEAD")]


def test_a_dry_run_prints_the_deletions_and_writes_nothing(hub: Hub, left: Driver, clean: Clean) -> None:
    since = len(hub.journal)
    run = clean()
    assert run.exit_code == 0
    assert run.output.splitlines() == [f"{output} deleted (dry run)" for output in LISTS]
    assert writes(hub, since) == []


def test_all_goes_once_and_the_conditions_stay(hub: Hub, left: Driver, clean: Clean) -> None:
    run = clean("--yes")
    assert (run.exit_code, run.output.splitlines()) == (0, [f"{output} deleted" for output in LISTS])
    assert (left.listed("p"), left.clusters(), left.reason("p")) == (None, [], "Active")
    since = len(hub.journal)
    again = clean("--yes")
    assert (again.exit_code, again.output, writes(hub, since)) == (0, "nothing to delete\n", [])


def test_objects_of_other_owners_stay(left: Driver, clean: Clean) -> None:
    given_away = LABELS | {"annotations": {"placement-ac.open-cluster-management.io/adopt": "false"}}
    left.config("theirs", "theirs-a", labels={"app.kubernetes.io/managed-by": "helm"})
    left.cluster("theirs-a")
    left.cluster("given-away", **given_away)
    left.ask("POST", f"{CORE}/namespaces/{NS}/secrets", {"metadata": {"name": "ours"} | LABELS})
    left.ask("POST", f"{CORE}/namespaces/default/secrets", {"metadata": {"name": "elsewhere"} | LABELS})
    run = clean("--yes")
    assert run.output.splitlines() == [f"{output} deleted" for output in (*LISTS, f"Secret {NS}/ours")]
    assert left.listed("theirs") == ["theirs-a"]
    assert sorted(left.clusters()) == ["given-away", "theirs-a"]
    assert left.get(f"{CORE}/namespaces/default/secrets/elsewhere")
    assert left.get(f"{CORE}/namespaces/{NS}/secrets/multikueue-a")


# -- what is in the way


def test_it_is_refused_while_jobs_run_or_wait_there(hub: Hub, left: Driver, clean: Clean) -> None:
    has_quota(left, "runs", "mk")
    is_admitted_on(left, "runs", "p-a")
    wait_for_job(left, "waits", ["elsewhere", "p-b"])
    wait_for_job(left, "theirs", ["elsewhere"])
    since = len(hub.journal)
    run = clean("--yes")
    jobs = "Workload default/runs runs on p-a; Workload default/waits waits for p-b"
    assert (run.exit_code, run.output) == (1, f"Error: {NOT_DONE}{jobs}; or use --force\n")
    assert writes(hub, since) == []
    dry = clean()
    assert dry.exit_code == 0
    assert dry.stderr == f"--yes would be refused: {NOT_DONE}{jobs}\n"
    is_done(left, "runs")
    assert clean("--yes").output == f"Error: {NOT_DONE}{jobs.split('; ')[1]}; or use --force\n"
    assert clean("--yes", "--force").exit_code == 0
    assert left.clusters() == []


def test_when_a_page_of_workloads_has_expired_each_job_is_named_once(
    hub: Hub, left: Driver, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.admin.cleanup.PAGE_SIZE", 1)
    wait_for_job(left, "first", ["p-a"])
    wait_for_job(left, "second", ["p-b"])
    gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    hub.faults.add("GET", "workloads$", status=410, body=gone, skip=1)
    jobs = "Workload default/first waits for p-a; Workload default/second waits for p-b"
    assert clean("--yes").output == f"Error: {NOT_DONE}{jobs}; or use --force\n"


def test_it_is_refused_while_somebody_elses_list_has_our_clusters(left: Driver, clean: Clean) -> None:
    left.config("theirs", "p-b", "x")
    run = clean("--yes")
    assert run.exit_code == 1
    assert "MultiKueueConfig theirs is owned by someone else and lists p-b; or use --force" in run.output
    assert left.listed("p") == ["p-a", "p-b"]


def lease(admin: Driver, age: float = 0.0, **spec: Any) -> None:
    renewed = (datetime.now(UTC) - timedelta(seconds=age)).isoformat(timespec="microseconds")
    spec = {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "renewTime": renewed} | spec
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": MANAGED_BY}}
    admin.ask("POST", LEASES, body | {"spec": spec})


def test_it_is_refused_while_a_controller_is_alive(hub: Hub, left: Driver, clean: Clean) -> None:
    lease(left)
    since = len(hub.journal)
    run = clean("--yes")
    assert (run.exit_code, writes(hub, since)) == (1, [])
    assert run.output == (
        "Error: run `kubectl scale deployment -n placement-ac-system placement-ac --replicas=0` first: "
        "the controller runs (pod-1 holds its Lease) and would recreate everything; or use --force\n"
    )
    forced = clean("--yes", "--force")
    assert forced.output.splitlines() == [
        f"{output} deleted" for output in (*LISTS, f"Lease {NS}/placement-ac")
    ]


@pytest.mark.parametrize(
    ("age", "spec", "looks"),
    [
        pytest.param(0.0, {"holderIdentity": ""}, 1, id="given up"),
        pytest.param(60.0, {}, 2, id="run out"),
        pytest.param(0.0, {"renewTime": None}, 2, id="never renewed"),
    ],
)
def test_a_lease_without_holder_is_deleted(
    hub: Hub, left: Driver, clean: Clean, monkeypatch: Any, age: float, spec: Any, looks: int
) -> None:
    monkeypatch.setattr(cleanup, "LOOK_AGAIN_SECONDS", 0.1)
    lease(left, age, **spec)
    run = clean("--yes")
    assert run.output.splitlines() == [f"{output} deleted" for output in (*LISTS, f"Lease {NS}/placement-ac")]
    read = [r for r in hub.journal if (r.method, r.path) == ("GET", f"{LEASES}/{MANAGED_BY}")]
    assert len(read) == looks


@contextmanager
def renewed_for_ever(hub: Hub) -> Iterator[None]:
    """Somebody renews the Lease, and has a clock that is an hour late."""
    stop = threading.Event()

    def renew() -> None:
        with Driver(hub) as driver:
            while not stop.wait(0.05):
                late = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="microseconds")
                driver.ask("PATCH", f"{LEASES}/{MANAGED_BY}", {"spec": {"renewTime": late}}, "merge")

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_lease_that_is_renewed_by_another_clock_is_held(
    hub: Hub, left: Driver, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "LOOK_AGAIN_SECONDS", 1.0)
    lease(left, 3600.0)
    with renewed_for_ever(hub):
        assert "pod-1 holds its Lease" in clean("--yes").output


# -- who may, and what fails


@pytest.fixture
def as_account(hub: Hub, admin: Driver, tmp_path: Path) -> Callable[..., Clean]:
    """Runs the command as a ServiceAccount with these rights and no others."""

    def grant(*rules: Any) -> Clean:
        accounts = f"{CORE}/namespaces/default/serviceaccounts"
        admin.ask("POST", accounts, {"metadata": {"name": "sa"}})
        admin.ask("POST", CLUSTER_ROLES, {"metadata": {"name": "r"}, "rules": list(rules)})
        admin.ask("POST", CLUSTER_BINDINGS, bound_to("ClusterRole", "r"))
        token = admin.ask("POST", f"{accounts}/sa/token", {"spec": {"expirationSeconds": 3600}})
        hub.write_kubeconfig(tmp_path / "sa")
        config = yaml.safe_load((tmp_path / "sa").read_text())
        config["users"][0]["user"] = {"token": token["status"]["token"]}
        (tmp_path / "sa").write_text(yaml.safe_dump(config))
        words = ["cleanup", "--kubeconfig", str(tmp_path / "sa")]
        return lambda *more: run_and_take_hub_line([*words, *more])

    return grant


KUEUES = rule("list delete", "kueue.x-k8s.io", "multikueueconfigs multikueueclusters")
ALL = (
    KUEUES,
    rule("list", "kueue.x-k8s.io", "workloads"),
    rule("list delete", "work.open-cluster-management.io", "manifestworks"),
    rule("list delete", "cluster.open-cluster-management.io", "addonplacementscores"),
    rule("list delete", "rbac.open-cluster-management.io", "clusterpermissions"),
    rule("list delete", "authentication.open-cluster-management.io", "managedserviceaccounts"),
    rule("list delete", "", "secrets configmaps"),
    rule("get list delete", "coordination.k8s.io", "leases"),
)
"""The rights that the reference names."""


def test_the_capacity_that_was_published_goes_and_other_config_maps_stay(left: Driver, clean: Clean) -> None:
    path = f"{CORE}/namespaces/{NS}/configmaps"
    for name, labels in (
        ("placement-ac-capacity", {"app.kubernetes.io/managed-by": MANAGED_BY}),
        ("mine", {}),
    ):
        left.ask("POST", path, {"metadata": {"name": name, "labels": labels}})
    assert f"ConfigMap {NS}/placement-ac-capacity deleted" in clean("--yes").output.splitlines()
    assert [item["metadata"]["name"] for item in left.ask("GET", path)["items"]] == ["mine"]


def test_these_rights_are_enough(left: Driver, as_account: Callable[..., Clean]) -> None:
    run = as_account(*ALL)("--yes")
    assert (run.exit_code, run.output.splitlines()) == (0, [f"{output} deleted" for output in LISTS])


def test_every_missing_right_is_reported(left: Driver, as_account: Callable[..., Clean]) -> None:
    run = as_account(KUEUES)("--yes", "--force")
    assert run.exit_code == 1
    assert run.output.startswith("Error: nothing is deleted, because not all objects could be listed: ")
    for missing in ("manifestworks", "clusterpermissions", "managedserviceaccounts", "secrets", "leases"):
        assert f'cannot list resource "{missing}"' in run.output
    assert left.listed("p") == ["p-a", "p-b"]


def test_the_missing_right_to_workloads_is_an_error(left: Driver, as_account: Callable[..., Clean]) -> None:
    clean = as_account(*(one for one in ALL if one["resources"] != ["workloads"]))
    run = clean("--yes")
    assert run.exit_code == 1
    assert run.output.startswith(
        "Error: it is unknown whether the objects are in use: workloads.kueue.x-k8s.io is "
    )
    assert run.output.endswith("; or use --force\n")
    assert clean("--yes", "--force").exit_code == 0


def test_one_that_fails_does_not_stop_what_does_not_stand_on_it(hub: Hub, left: Driver, clean: Clean) -> None:
    for cluster in ("a", "b"):
        labels = LABELS["labels"] | {"open-cluster-management.io/cluster-name": cluster}
        body = {"metadata": {"name": f"made-{cluster}", "labels": labels}}
        left.ask("POST", f"{CORE}/namespaces/{NS}/secrets", body)
    forbidden = {"kind": "Status", "message": "you shall not", "reason": "Forbidden", "code": 403}
    hub.faults.add("DELETE", "multikueueclusters/p-a", status=403, body=forbidden)
    run = clean("--yes")
    assert run.exit_code == 1
    assert run.stdout.splitlines() == [
        "MultiKueueConfig p deleted",
        "MultiKueueCluster p-b deleted",
        f"Secret {NS}/made-b deleted",
    ]
    assert run.stderr.splitlines() == [
        "MultiKueueCluster p-a: you shall not",
        f"Secret {NS}/made-a: stays, because MultiKueueCluster p-a does",
    ]
    assert clean("--yes").output.splitlines() == [
        "MultiKueueCluster p-a deleted",
        f"Secret {NS}/made-a deleted",
    ]


def test_a_list_that_stays_keeps_its_clusters(hub: Hub, left: Driver, clean: Clean) -> None:
    hub.faults.add("DELETE", "multikueueconfigs/p", status=500)
    run = clean("--yes")
    assert (run.exit_code, run.stdout) == (1, "")
    assert run.stderr.splitlines()[1:] == [
        f"{output}: stays, because MultiKueueConfig p does" for output in LISTS[1:]
    ]
    assert left.clusters() == ["p-a", "p-b"]


def test_a_recreated_object_stays(hub: Hub, left: Driver, clean: Clean) -> None:
    gone = {"kind": "Status", "message": "the UID in the precondition", "reason": "Conflict", "code": 409}
    hub.faults.add("DELETE", "multikueueclusters/p-b", status=409, body=gone)
    run = clean("--yes")
    assert run.stderr == "MultiKueueCluster p-b: was recreated meanwhile: is the controller running?\n"
    uids = [request.body for request in hub.journal if request.method == "DELETE"]
    assert all("uid" in str(body) for body in uids)


def test_an_object_that_is_gone_or_held_by_a_finalizer_is_no_failure(
    hub: Hub, left: Driver, clean: Clean
) -> None:
    hub.faults.add("DELETE", "multikueueclusters/p-b", status=404)
    finalizers = {"metadata": {"finalizers": ["example.com/held"]}}
    left.ask("PATCH", left.kueue("multikueueclusters", "p-a"), finalizers, "merge")
    run = clean("--yes")
    assert (run.exit_code, run.output.splitlines()) == (
        0,
        [
            LISTS[0] + " deleted",
            LISTS[1] + " deleted when finalizer example.com/held is removed",
            LISTS[2] + " deleted",
        ],
    )


# -- with credentials that were made, and a controller that begins anew


@pytest.fixture
def stage(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    with open_stage(admin, controllers, ["a"]) as stage:
        admin.check("p")
        admin.placement("p")
        stage.select("a")
        yield stage


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_after_it_nothing_of_ours_is_there_and_a_new_controller_makes_it_again(
    stage: Stage, clean: Clean
) -> None:
    with stage.controllers(**PROVISION, leader_elect=True):
        stage.until_connected("a")
        assert "holds its Lease) and would recreate everything" in clean("--yes").output
    before = stage.ours()
    run = clean("--yes")
    assert (run.exit_code, run.stderr) == (0, "")
    assert [line.split()[0] for line in run.output.splitlines()] == [
        "MultiKueueConfig",
        "MultiKueueCluster",
        "ClusterPermission",
        "ManagedServiceAccount",
        "Secret",
        "Lease",
    ]
    soon(stage.ours, [])
    soon(lambda: stage.on_worker("a"), [])
    with stage.controllers(**PROVISION, leader_elect=True):
        stage.until_connected("a")
    assert stage.ours() == before != []
