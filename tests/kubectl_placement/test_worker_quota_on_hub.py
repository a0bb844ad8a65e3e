"""`--workers` of `explain workload` and `plan`: the quota of workers counts as for the controller."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.explain.workload import PLACED
from kubectl_placement.jobs.finished_jobs import TTL_GATE, warning_text
from placement_ac.core.api.constants import FIELD_MANAGER, JOB
from placement_lab.standins.multikueue import hub_job
from tests.placement_ac.controller.test_dispatch import SELECTOR, entry
from tests.support import commands, kueue
from tests.support.admin import Admin, login_to
from tests.support.commands import READ_GROUPS, Run, listing, on_hub, reader, run_with
from tests.support.driver import Controllers, Driver
from tests.support.hub_client import Client as HubClient
from tests.support.jobs import JOBS, Stage, dispatched, secrets_of, soon
from tests.support.rights import ME, RBAC, bound_to, rule

GPU = "nvidia.com/gpu"
SIZES = {"a": "2", "b": "8", "c": "16"}
TOO_LITTLE = "had too little quota: 16 nvidia.com/gpu asked, {} at most"
NOT_READ = "use --workers to read the quota of the workers: without it, Capacity and Headroom abstain"
NO_RIGHT = "the quota of {} is unknown: you have no right to get Secrets in namespace kueue-system"
REFUSED = (
    "the worker does not let the account of Secret kueue-system/multikueue-a list "
    "clusterqueues.kueue.x-k8s.io and localqueues.kueue.x-k8s.io"
)


@pytest.fixture
def there(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    quotas = {name: {"default": {GPU: size}} for name, size in SIZES.items()}
    t4, profile = {"a": {"gpu": "t4"}}, {"dispatch_profile": "headroom"}
    with dispatched(admin, controllers, [*SIZES], quotas=quotas, labels=t4, controller=profile) as opened:
        yield opened


@pytest.fixture
def run(there: Stage, tmp_path: Path) -> Run:
    settings = tmp_path / "settings.yaml"
    settings.write_text("dispatch: {enabled: true, stepSize: 1, profile: headroom}\n")
    hub = f"--kubeconfig={there.controllers.kubeconfig}"
    return run_with(hub, f"--config={settings}", env={"COLUMNS": "200"})


def explained(run: Run, job: str, *words: str) -> dict[str, Any]:
    done = run("explain", "workload", job, "-o", "json", *words)
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout)["workload"])


def rows(found: dict[str, Any]) -> dict[str, tuple[str, str, float | None, str]]:
    """Cluster → filter, reason, points of Headroom, and whether its quota is known."""
    [choice] = found["placements"]
    return {
        cluster["cluster"]: (
            cluster["filter"],
            cluster["reason"],
            cluster["points"].get("Headroom"),
            cluster["quota"],
        )
        for cluster in choice["clusters"]
    }


def job_file(folder: Path, gpus: str = "", **pods: int) -> str:
    """Write the manifest of a Job whose Pods ask for GPUs, and return its path."""
    container = {"name": "c", "image": "i", "resources": {"requests": {GPU: gpus} if gpus else {}}}
    template = {"spec": {"containers": [container]}}
    metadata = {"name": "new", "labels": {"kueue.x-k8s.io/queue-name": "gated"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template} | pods,
    }
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    return str(path)


def test_quota_refuses_and_gives_points(there: Stage, run: Run) -> None:
    there.submit("large", requests={GPU: "16"}, annotations={SELECTOR: "gpu!=t4"})
    there.until_runs("large", "c")
    refused = {"a": ("ClusterAffinity", "didn't match gpu!=t4", None, "not needed")}
    found = explained(run, "large", "--workers")
    assert rows(found) == refused | {
        "b": ("Capacity", TOO_LITTLE.format(8), None, "known"),
        "c": ("", "", 12.5, "known"),
    }
    assert found["notes"] == [PLACED]
    without = explained(run, "large")
    unread = ("", "", None, "not read")
    assert rows(without) == refused | {"b": unread, "c": unread}
    assert without["notes"][1:] == [NOT_READ]
    assert f"({NOT_READ})" in run("explain", "workload", "large").stdout
    table = run("explain", "workload", "large", "--workers").stdout
    assert f"{TOO_LITTLE.format(8)} (Capacity)" in table
    assert NOT_READ not in table

    there.admin.ask("PATCH", f"{JOBS}/large", {"spec": {"ttlSecondsAfterFinished": 5}}, "merge")
    note = warning_text("its Job", sent=True)
    assert note in explained(run, "large")["notes"]
    config = f"{kueue.SHIPPED}featureGates:\n  {TTL_GATE}: true\n"
    with Admin(login_to(there.admin.hub)) as admin:
        admin.apply(*kueue.installed(config=config))
    assert note not in explained(run, "large")["notes"]


def test_a_job_does_not_go_where_another_one_has_its_name(there: Stage, run: Run) -> None:
    with Admin(there.fleet.login("c")) as worker:
        worker.apply(hub_job("large", "default", "another-queue"))
        there.submit("large", requests={GPU: "16"})
        why = "had another Job default/large: rename or delete one of the two"
        soon(lambda: f"1 {why} (NameConflict)" in entry(there, "large")[1])
        assert rows(explained(run, "large", "--workers"))["c"] == ("NameConflict", why, None, "known")
        assert there.nominations("large") == []
        worker.delete(JOB.at("v1"), "large", "default")
    there.until_runs("large", "c")


def test_a_job_that_waits_beside_one_of_the_same_name_says_so(there: Stage, run: Run) -> None:
    """Kueue admits its copy beside the other Job, records nothing, and the job never runs (issue 12404).

    The worker does not let the dispatcher list its Jobs.
    """
    there.fleet.hubs["c"].faults.add("GET", "/batch/v1/jobs$", status=403, body={}, times=100)
    with Admin(there.fleet.login("c")) as worker:
        worker.apply(hub_job("large", "default", "another-queue"))
        there.submit("large", requests={GPU: "16"})
        problem = (
            "c: rename or delete Job default/large there, or the hub's: it is another one of the same name,"
            " and the hub's has quota there, so it is sent nowhere else and never runs"
        )
        soon(lambda: problem in explained(run, "large", "--workers")["notes"])
        assert there.account("large")[1] == 0
        worker.delete(JOB.at("v1"), "large", "default")
    there.until_runs("large", "c")
    soon(lambda: explained(run, "large", "--workers")["notes"] == [PLACED])


def test_plan_says_where_a_job_would_go_and_which_worker_cannot_be_asked(
    there: Stage, run: Run, tmp_path: Path
) -> None:
    """Which workers are asked for which job: test_worker_quota.py."""
    for gpus, expected in (
        ("16", "goes to c, best first"),
        ("32", f"goes to no cluster: 0/3 clusters fit: 1 {TOO_LITTLE.replace('16', '32').format(2)}"),
    ):
        words = "plan", "-f", job_file(tmp_path, gpus), "--workers"
        done = run(*words)
        assert (done.exit_code, expected in done.stdout) == (0, True), done.output
    [job] = json.loads(run(*words, "-o", "json").stdout)["jobs"]
    assert {quota for *_, quota in rows(job).values()} == {"known"}
    assert job["notes"] == []
    fewer = run("plan", "-f", job_file(tmp_path, "8", parallelism=4, completions=2), "--workers")
    assert "goes to c, best first" in fewer.stdout, "no more Pods run at a time than are to complete"
    done = run("plan", "-f", job_file(tmp_path, "16"))
    assert "goes to a, b, c, best first" in done.stdout
    assert f"  note: {NOT_READ}\n" in done.stdout
    dump = tmp_path / "dump.yaml"
    written = on_hub(there.controllers.kubeconfig)("dump", f"--output-file={dump}")
    assert written.exit_code == 0, written.output
    asked = ["plan", "-f", job_file(tmp_path, "16"), f"--from-dump={dump}"]
    settings = f"--config={tmp_path / 'settings.yaml'}"
    assert "note: a dump has no quota of the workers: Capacity and Headroom abstain" in (
        commands.run(*asked, settings).stdout
    )

    there.fleet.hubs["a"].faults.add("GET", "/clusterqueues$", status=403, times=1000)
    there.fleet.hubs["b"].faults.add("GET", "/clusterqueues$", delay=3.0, times=1000)
    words = "plan", "-f", job_file(tmp_path, "16"), "--workers", "--timeout", "1s"
    done = run(*words, "-o", "json")
    [job] = json.loads(done.stdout)["jobs"]
    assert {name: quota for name, (*_, quota) in rows(job).items()} == {
        "a": "unknown",
        "b": "unknown",
        "c": "known",
    }
    assert sorted(job["notes"]) == [
        f"the quota of a is unknown: {REFUSED}",
        "the quota of b is unknown: the worker did not answer within 1 s",
    ]
    table = run(*words)
    assert "goes to c, a, b, best first" in table.stdout
    assert all(f"  note: {note}\n" in table.stdout for note in job["notes"])
    printed = done.output + table.output
    assert [secret for secret in secrets_of(there) if secret in printed] == []


@pytest.fixture
def run_without_secrets(there: Stage, tmp_path: Path) -> Run:
    """Runs commands as a user who may read all but Secrets."""
    account = reader(there.admin.hub, tmp_path, *listing(*READ_GROUPS, "apps"))
    settings = tmp_path / "settings.yaml"
    settings.write_text("dispatch: {enabled: true}\n")
    return run_with(f"--kubeconfig={account}", f"--config={settings}")


def test_it_only_reads_and_without_the_right_to_secrets_one_line_says_so(
    there: Stage, run_without_secrets: Run, tmp_path: Path
) -> None:
    done = run_without_secrets("plan", "-f", job_file(tmp_path, "16"), "--workers")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("note: ") == 1
    assert f"  note: {NO_RIGHT.format('a, b, c')}\n" in done.stdout
    owner, here = HubClient(there.admin.hub), f"{RBAC}/namespaces/kueue-system"
    owner.create(f"{here}/roles", {"metadata": {"name": "r"}, "rules": [rule("get", "", "secrets")]})
    owner.create(f"{here}/rolebindings", bound_to("Role", "r"))
    done = run_without_secrets("plan", "-f", job_file(tmp_path, "16"), "--workers")
    assert "goes to c, best first" in done.stdout
    mine = [one for one in list(there.admin.hub.journal) if one.user == ME]
    assert {one.method for one in mine} == {"GET"}
    of_workers = [one for hub in there.fleet.hubs.values() for one in list(hub.journal)]
    asked = [one for one in of_workers if one.user_agent == FIELD_MANAGER]
    assert {(one.method, one.path.rpartition("/")[2]) for one in asked} >= {("GET", "localqueues")}
    assert {one.method for one in asked} == {"GET"}


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("explain", "cluster", "a", "--workers"), 2, "use --workers only with a workload"),
        (
            ("explain", "workload", "w", "--workers", "--from-dump", "-"),
            2,
            "use --workers without --from-dump",
        ),
        (("plan", "-f", "job.yaml", "--workers", "--from-dump", "x"), 2, "use --workers without --from-dump"),
        (("plan", "-f", "job.yaml", "--workers", "--timeout", "soon"), 2, "use a duration like 90s, 5m"),
    ],
    ids=["no-workload", "explain-a-dump", "plan-a-dump", "timeout"],
)
def test_wrong_words(words: tuple[str, ...], code: int, expected: str) -> None:
    done = commands.run(*words, input="")
    assert (done.exit_code, expected in done.output) == (code, True), done.output
