"""Helm itself installs, upgrades and uninstalls the chart on a hub. The Pod of `helm test`: test_check.py."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement_lab.hub import Hub
from tests.support import chart
from tests.support.chart import CHART, GIVEN, HOOK, Key, helm, key_of, merged
from tests.support.driver import CORE, Driver, eventually
from tests.support.hub_client import CRDS, crd
from tests.support.installation import NAME, NAMESPACE, ROOT, Object, contains

pytestmark = pytest.mark.long

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
RBAC_KINDS = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}


class Helm:
    """Helm's actions on the release placement-ac; waits are off, as no Pod is ever ready on this hub."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        hub.write_kubeconfig(folder / "admin")
        self.config = helm.Config(kubeconfig_path=folder / "admin", namespace=NAMESPACE)

    def install(self, values: Object | None = None) -> Object:
        return dict(
            self.config.install(CHART, NAME, merged(GIVEN, values or {}), create_namespace=True, timeout=20)
        )

    def upgrade(self, values: Object, **options: Any) -> Object:
        return dict(self.config.upgrade(CHART, NAME, merged(GIVEN, values), timeout=20, **options))

    def objects(self) -> list[Object]:
        """The objects of the release, as Helm has stored them."""
        manifest = self.config.status(NAME)["manifest"]
        return [one for one in yaml.safe_load_all(manifest) if one]


@pytest.fixture
def release(hub: Hub, tmp_path: Path) -> Iterator[Helm]:
    made = Helm(hub, tmp_path)
    with made.config:
        yield made


def everything(admin: Driver) -> dict[Key, Object]:
    """Return all objects on the hub, each in the preferred version of its group, but for events."""
    groups = admin.ask("GET", "/apis")["groups"]
    found = {}
    for base in (CORE, *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
        for resource in admin.ask("GET", base)["resources"]:
            if "list" in resource["verbs"] and "/" not in resource["name"] and resource["name"] != "events":
                listed = admin.ask("GET", f"{base}/{resource['name']}")["items"]
                # An API server leaves both out of the items of its own kinds.
                kind = {"apiVersion": re.sub("^/apis?/", "", base), "kind": resource["kind"]}
                found |= {key_of(one | kind): one | kind for one in listed}
    return found


def of_the_release(admin: Driver) -> dict[Key, Object]:
    return {key: one for key, one in everything(admin).items() if _is_helms(one)}


def _is_helms(one: Object) -> bool:
    return bool(one["metadata"].get("annotations", {}).get("meta.helm.sh/release-name") == NAME)


def assert_installed(admin: Driver, release: Helm, values: Object) -> None:
    """The hub has the objects that the chart renders with these values, and no others of this release."""
    wanted = {
        key_of(one): one
        for one in chart.template(values)
        if HOOK not in one["metadata"].get("annotations", {})
    }
    live = of_the_release(admin)
    assert live.keys() == wanted.keys()
    assert [key for key, one in wanted.items() if not contains(live[key], one)] == []
    assert {key_of(obj) for obj in release.objects()} == wanted.keys()


def of_the_namespace(admin: Driver) -> set[Key]:
    """The namespace, which Helm creates and leaves, and the objects that Kubernetes makes in each."""
    there = {("Namespace", "", NAMESPACE), ("ServiceAccount", NAMESPACE, "default")}
    return {key for key in (*there, ("ConfigMap", NAMESPACE, "kube-root-ca.crt")) if key in everything(admin)}


def test_a_mode_that_is_left_takes_its_rights_along(admin: Driver, release: Helm) -> None:
    """`kubectl apply -k` leaves them: docs/install.md, Upgrade."""
    release.install(chart.mode_values("provisioning") | {"probing": {"enabled": True}})
    more = {key for key in of_the_release(admin) if key[0] in RBAC_KINDS}
    release.upgrade({})
    assert_installed(admin, release, {})
    assert {name for _, _, name in more - of_the_release(admin).keys()} == {
        f"{NAME}-kubeconfigs",
        f"{NAME}-probe",
        f"{NAME}-provisioning",
    }
    release.config.rollback(NAME)
    assert {key for key in of_the_release(admin) if key[0] in RBAC_KINDS} == more
    assert [one["status"] for one in release.config.history(NAME)] == ["superseded", "superseded", "deployed"]


def test_only_changed_settings_restart_the_pods(admin: Driver, release: Helm) -> None:
    def pods() -> Object:
        return dict(of_the_release(admin)["Deployment", NAMESPACE, NAME]["spec"]["template"])

    release.install()
    first = pods()
    release.upgrade({"replicaCount": 3, "metrics": {"dashboard": {"enabled": True}}})
    assert pods() == first
    release.upgrade({"config": {"removal": {"settle": "1m"}}}, reuse_values=True)
    assert pods() != first
    assert release.config.get_values(NAME)["replicaCount"] == 3


def test_the_commands_in_the_page(
    admin: Driver, release: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`helm install`, `upgrade` and `uninstall` in docs/install.md, one after the other."""
    text = (ROOT / "docs" / "install.md").read_text("utf-8")
    (mine,) = re.findall(r"```yaml\n(# my-values.yaml\n.*?)```", text, re.DOTALL)
    (tmp_path / "my-values.yaml").write_text(mine)
    admin.ask("POST", CRDS, crd("PodMonitor", ANYTHING, group="monitoring.coreos.com"))
    eventually(lambda: admin.try_("GET", "/apis/monitoring.coreos.com/v1/podmonitors").ok)
    before = everything(admin)
    monkeypatch.chdir(ROOT)
    done = []
    for line in re.findall(r"^helm .*", text.replace("\\\n", " "), re.MULTILINE):
        words = HELM.parse_args(shlex.split(line)[1:])
        done.append(words.action)
        assert (words.name, words.namespace) == (NAME, NAMESPACE)
        values = helm.parse_set_string(words.set)
        for file in words.values:
            values = merged(values, yaml.safe_load((tmp_path / file).read_text()))
        match words.action:
            case "install":
                release.config.install(words.chart, NAME, values, create_namespace=words.create_namespace)
                assert_installed(admin, release, values)
            case "upgrade":
                release.config.upgrade(words.chart, NAME, values)
                assert_installed(admin, release, values)
            case "uninstall":
                release.config.uninstall(NAME)
    assert done == ["install", "test", "upgrade", "uninstall"]
    assert everything(admin).keys() - before.keys() == of_the_namespace(admin)


def helm_parser() -> argparse.ArgumentParser:
    """Helm's command line, as far as the page uses it."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("action", choices=["install", "upgrade", "test", "uninstall"])
    parser.add_argument("name")
    parser.add_argument("chart", nargs="?")
    parser.add_argument("-n", "--namespace")
    parser.add_argument("--create-namespace", action="store_true")
    parser.add_argument("--set", default="")
    parser.add_argument("-f", "--values", action="append", default=[])
    return parser


HELM = helm_parser()
