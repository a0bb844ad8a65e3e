"""The commands find the controller's settings, wherever it is installed, or refuse what depends on them."""

import json
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.constants import ANNOTATION_SETTINGS
from tests.support import chart
from tests.support.commands import Run
from tests.support.driver import Controllers, Driver, eventually

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases"
SHARED = {"cluster_names": "{cluster}", "dispatcher": True}
VALUES = {"image": {"repository": "r/pac"}, "clusterNames": "{cluster}", "dispatcher": {"enabled": True}}


@pytest.fixture
def run(admin: Driver, controllers: Controllers, run: Run) -> Run:
    """Runs commands on a hub whose controller shares MultiKueueClusters, and has listed one."""
    admin.check("p")
    admin.select("p", "a")
    with controllers(**SHARED):
        eventually(lambda: admin.reason("p"), "Active")
    return run


def rows(run: Run) -> Any:
    done = run("status", "-o", "json")
    assert done.exit_code == 0, done.output
    return [
        (cluster["name"], cluster["state"], cluster["clusterObject"])
        for cluster in json.loads(done.stdout)["checks"][0]["clusters"]
    ]


def install(admin: Driver, namespace: str = "gpu-platform") -> None:
    """Install the Helm release `gpu` in a namespace of its own: its Deployment is gpu-placement-ac."""
    admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for obj in chart.template(VALUES, "gpu", namespace):
        group = {"Deployment": "/apis/apps/v1", "ConfigMap": "/api/v1"}.get(obj["kind"])
        if group:
            admin.ask("POST", f"{group}/namespaces/{namespace}/{obj['kind'].lower()}s", obj)


def test_a_release_in_another_namespace_is_found(admin: Driver, run: Run) -> None:
    assert len(rows(run)) == 2, "without the settings, one cluster is shown twice"
    install(admin)
    assert rows(run) == [("a", "listed", "a")]


def test_the_lease_alone_names_them(
    admin: Driver, run: Run, controllers: Controllers, tmp_path: Path
) -> None:
    """Of a controller that runs outside of the hub."""
    with controllers(**SHARED, leader_elect=True):
        eventually(lambda: "holderIdentity" in (admin.get(f"{LEASE}/placement-ac") or {}).get("spec", {}))
        assert rows(run) == [("a", "listed", "a")]
        lease = admin.get(f"{LEASE}/placement-ac") or {}
        published = json.loads(lease["metadata"]["annotations"][ANNOTATION_SETTINGS])
        assert (published["cluster-names"], published["dispatcher"]) == ("{cluster}", "true")
        assert "kubeconfig" not in published, "it names a file of the process"
    assert rows(run) == [("a", "listed", "a")], "they are the last ones known"


def test_a_leader_that_names_no_settings_is_not_taken_for_one_with_the_defaults(
    admin: Driver, run: Run, tmp_path: Path
) -> None:
    """Of an older release, or one whose Deployment cannot be found."""
    spec = {"holderIdentity": "pod_1", "leaseDurationSeconds": 15, "renewTime": "2026-11-25T10:00:00.000000Z"}
    admin.ask("POST", LEASE, {"metadata": {"name": "placement-ac"}, "spec": spec})
    (tmp_path / "settings.yaml").write_text("clusterNames: '{cluster}'\ndispatch: {enabled: true}\n")
    for command in (["status"], ["explain", "check", "p"]):
        done = run(*command)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "name the controller's settings with --settings FILE" in done.stderr
        assert "pod_1 holds Lease kueue-system/placement-ac, which does not name them" in done.stderr
        assert run(*command, "--settings", str(tmp_path / "settings.yaml")).exit_code == 0
