"""`placement-ac check` on a hub: the running controller, and what the settings ask for."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from placement_ac.core.api.constants import ANNOTATION_RECONCILED, LEASE
from placement_lab.hub import Hub
from tests.support import commands
from tests.support.driver import NS, Controllers, Driver, eventually
from tests.support.hub_client import CRDS

SHORT = {"leader_elect_lease_duration": 1.0}
LEASES = LEASE.at("v1").path(NS)
NONE_HOLDS = f"none holds Lease {NS}/placement-ac"
V1 = "client.authentication.k8s.io/v1"
Check = Callable[..., Result]


@pytest.fixture
def run(hub: Hub, admin: Driver, tmp_path: Path) -> Check:
    """Runs the command as the hub's admin, with a Lease of short duration."""
    hub.write_kubeconfig(tmp_path / "admin")
    flags = [f"--{name.replace('_', '-')}={value}s" for name, value in SHORT.items()]
    return commands.run_with("--kubeconfig", str(tmp_path / "admin"), *flags)


def failed(done: Result) -> list[str]:
    """The lines that are not OK; all others are."""
    lines = done.stdout.splitlines()
    assert {line[:6] for line in lines} <= {"OK    ", "FAIL  "}
    return [line.removeprefix("FAIL  ") for line in lines if line.startswith("FAIL")]


def test_without_a_controller_it_can_be_left_out(run: Check) -> None:
    done = run("check", "--without-controller")
    assert (done.exit_code, failed(done), "controller:" in done.stdout) == (0, [], False)
    done = run("check")
    assert (done.exit_code, failed(done)) == (
        1,
        [f"controller: start it, or see why it does not run: {NONE_HOLDS}"],
    )


def test_a_controller_that_has_died(admin: Driver, run: Check) -> None:
    spec = {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}
    metadata = {"name": "placement-ac", "annotations": {ANNOTATION_RECONCILED: "true"}}
    admin.ask("POST", LEASES, {"metadata": metadata, "spec": spec})
    (line,) = failed(run("check"))
    assert line.endswith(f": me holds Lease {NS}/placement-ac and does not renew it")


def test_a_controller_that_cannot_write(
    hub: Hub, admin: Driver, controllers: Controllers, run: Check
) -> None:
    """It leads and has listed all, but has reconciled nothing."""
    hub.faults.add("PATCH", "/kueue.x-k8s.io/", status=500, times=10_000)
    admin.check("p")
    admin.select("p", "a")
    with controllers(leader_elect=True, **SHORT):
        (line,) = failed(run("check"))
    assert line.startswith("controller: see its log and its /readyz: ")
    assert line.endswith(" leads, but has not reconciled yet")


def test_a_controller_on_a_hub_without_checks(controllers: Controllers, run: Check) -> None:
    """There is nothing to reconcile: it is ready once all is listed."""
    with controllers(leader_elect=True, **SHORT):
        assert failed(run("check")) == []


def test_without_a_lease_no_controller_is_looked_for(run: Check) -> None:
    done = run("check", "--leader-elect=false")
    assert (done.exit_code, failed(done)) == (0, [])
    assert (
        done.stdout.splitlines()[-1] == "OK    controller: unknown: with leader-elect=false it has no Lease"
    )


def test_the_rights_of_somebody_else(run: Check) -> None:
    done = run("check", "--as", "jane")
    lines = failed(done)
    assert done.exit_code == 1
    assert "rights on events: grant the account create, patch (docs/install.md, Permissions)" in lines
    assert {line.partition(" ")[0] for line in lines} == {"rights"}


@pytest.mark.parametrize(
    ("kind", "flag", "owner"),
    [
        ("manifestworks.work", "--worker-setup=manifestwork", "OCM"),
        (
            "clusterpermissions.rbac",
            "--credentials-provision=managed-serviceaccount",
            "OCM's addon cluster-permission",
        ),
    ],
)
def test_the_kinds_of_an_option(admin: Driver, run: Check, kind: str, flag: str, owner: str) -> None:
    name = f"{kind}.open-cluster-management.io"
    admin.ask("DELETE", f"{CRDS}/{name}")
    eventually(lambda: admin.get(f"{CRDS}/{name}"), None)
    eventually(lambda: len(failed(run("check", "--without-controller", flag))), 1)
    (line,) = failed(run("check", "--without-controller", flag))
    assert line.startswith(f"kind {name}: install {owner}: the hub serves it in no version of v1")
    assert failed(run("check", "--without-controller")) == []


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_wrong_policy_of_an_access_provider(tmp_path: Path, command: str) -> None:
    """An error of a setting: the setting, the file, the field, what is possible, and exit code 2."""
    provider = {
        "name": "ocm",
        "execConfig": {"apiVersion": V1, "command": "/plugins/creds"},
        "profileSourcedCLIArgsPolicy": "Append",
    }
    path = tmp_path / "providers.yaml"
    path.write_text(yaml.safe_dump({"providers": [provider]}))
    done = commands.run(command, "--access-providers", str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert (
        f"access-providers: {path}: providers.0.profileSourcedCLIArgsPolicy: Input should be '' or 'Ignore'"
    ) in done.stderr


def test_an_unknown_setting(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("logging: {format: json}\nremoval: {settel: 1m}\n")
    done = commands.run("check", "--config", str(path), "--without-controller")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{path}:2: removal.settel: there is no such setting; did you mean removal.settle?" in done.stderr
