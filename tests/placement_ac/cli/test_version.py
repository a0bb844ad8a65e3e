"""`placement-ac version` on a hub."""

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from placement_lab.hub import Hub
from tests.support import commands
from tests.support.accounts import kubeconfig_of
from tests.support.driver import Driver, free_port

DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
OCM = "open-cluster-management-hub"


def deployment(name: str, image: str, **labels: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "manager", "image": image}]}
    selector = {"matchLabels": {"app": name}}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": selector, "template": template},
    }


def shown(kubeconfig: Path, *words: str) -> Result:
    return commands.run("version", f"--kubeconfig={kubeconfig}", *words)


@pytest.fixture
def kubeconfig(hub: Hub, tmp_path: Path) -> Path:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    return tmp_path / "kubeconfig"


def test_all_versions(admin: Driver, kubeconfig: Path) -> None:
    admin.namespace(OCM)
    scheduler = deployment("cluster-manager-placement-controller", "quay.io/ocm/placement:v1.1.0")
    admin.ask("POST", DEPLOYMENTS.format(OCM), scheduler)
    kueue = deployment("kueue-controller-manager", "x@sha256:0", **{"app.kubernetes.io/version": "v0.19.1"})
    admin.ask("POST", DEPLOYMENTS.format("kueue-system"), kueue)
    found = json.loads(shown(kubeconfig, "-o", "json").stdout)
    assert found.pop("hub").startswith("v1.")
    assert found == {"placementAc": version("placement-ac"), "kueue": "v0.19.1", "ocm": "v1.1.0"}


def test_a_missing_kueue_is_reported_as_unknown(admin: Driver, kubeconfig: Path) -> None:
    done = shown(kubeconfig)
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 5)
    assert "unknown: there is no Deployment kueue-system/kueue-controller-manager" in done.stdout


def test_a_missing_right_is_said(hub: Hub, admin: Driver, tmp_path: Path) -> None:
    token = hub.add_user("nobody", groups=["system:authenticated"])
    done = shown(kubeconfig_of(hub, tmp_path / "nobody", token))
    assert "unknown: no right to get deployments.apps in namespace kueue-system" in done.stdout


def away(hub: Hub, path: Path) -> None:
    content = hub.kubeconfig()
    content["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{free_port()}"
    path.write_text(json.dumps(content))


def an_unknown_token(hub: Hub, path: Path) -> None:
    content = hub.kubeconfig()
    content["users"][0]["user"] = {"token": "s3cret"}
    path.write_text(json.dumps(content))


def missing(hub: Hub, path: Path) -> None:
    pass


@pytest.mark.parametrize("hub_is", [away, an_unknown_token, missing])
def test_without_a_hub_the_version_of_the_program_is_shown(
    hub: Hub, tmp_path: Path, hub_is: Callable[[Hub, Path], None]
) -> None:
    hub_is(hub, tmp_path / "kubeconfig")
    done = shown(tmp_path / "kubeconfig")
    assert (done.exit_code, version("placement-ac") in done.stdout) == (1, True)
    assert done.stderr.startswith("Error: ")
    assert "s3cret" not in done.output
