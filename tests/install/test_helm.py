"""Helm itself installs, upgrades, tests and uninstalls the chart on a hub."""

import argparse
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from placement_ac.config.load import load
from placement_lab.hub import Hub
from tests.support import chart, commands
from tests.support.accounts import account_kubeconfig
from tests.support.chart import CHART, GIVEN, HOOK, Key, helm, key_of, merged
from tests.support.driver import CORE, NS, Controllers, Driver, eventually
from tests.support.hub_client import CRDS, crd
from tests.support.installation import NAME, NAMESPACE, ROOT, Object, contains, environment_of, flags_of
from tests.support.jobs import soon

pytestmark = pytest.mark.long

PODS = f"{CORE}/namespaces/{NAMESPACE}/pods"
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


def run(kubeconfig: Path, *words: str) -> Result:
    return commands.run(*words, "--kubeconfig", str(kubeconfig))


# -- from the installation to the end


def test_install_upgrade_and_uninstall(admin: Driver, release: Helm, tmp_path: Path) -> None:
    """The controller runs in between, with the rights and settings of the release."""
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.select("p", "a", "b")
    before = everything(admin)

    made = release.install()
    assert (made["status"], made["revision"]) == ("deployed", 1)
    assert f"helm test {NAME} -n {NAMESPACE}" in made["notes"]
    assert_installed(admin, release, {})
    with Controllers(account_kubeconfig(admin, tmp_path)) as controllers:
        controllers.start(**settings(release, tmp_path / "1"))
        soon(lambda: (admin.reason("p"), admin.listed("p")), ("Active", ["p-a", "p-b"]))

    values = chart.mode_values("production") | {
        "replicaCount": 1,
        "config": {"removal": {"drainDeadline": "2h"}},
    }
    assert release.upgrade(values)["revision"] == 2
    assert_installed(admin, release, values)
    assert settings(release, tmp_path / "2")["drain_deadline"] == 7200.0
    assert release.config.get_values(NAME) == merged(GIVEN, values)

    generated = {
        ("MultiKueueConfig", "", "p"),
        ("MultiKueueCluster", "", "p-a"),
        ("MultiKueueCluster", "", "p-b"),
        ("Lease", NS, NAME),
    }
    release.config.uninstall(NAME, timeout=20)
    assert everything(admin).keys() - before.keys() == generated | of_the_namespace(admin)
    assert before.keys() <= everything(admin).keys()

    assert run(tmp_path / "admin", "cleanup", "--yes").exit_code == 0
    assert everything(admin).keys() - before.keys() == of_the_namespace(admin)


def of_the_namespace(admin: Driver) -> set[Key]:
    """The namespace, which Helm creates and leaves, and the objects that Kubernetes makes in each."""
    there = {("Namespace", "", NAMESPACE), ("ServiceAccount", NAMESPACE, "default")}
    return {key for key in (*there, ("ConfigMap", NAMESPACE, "kube-root-ca.crt")) if key in everything(admin)}


def settings(release: Helm, folder: Path) -> Object:
    """The settings of the release's Pods, without addresses and with short waits."""
    objects = release.objects()
    flags = flags_of(objects, folder)
    file = folder / flags["config"].lstrip("/")
    found = load({"config": str(file)}, environment_of(objects)).settings.model_dump(exclude_unset=True)
    here = {"metrics_bind_address": "", "health_probe_bind_address": "", "leader_elect": True}
    return found | here


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


def test_two_releases_side_by_side(admin: Driver, release: Helm) -> None:
    release.install()
    first = {*of_the_release(admin)}
    release.config.install(CHART, "second", GIVEN, timeout=20)
    assert {*of_the_release(admin)} == first
    release.config.uninstall("second", timeout=20)
    assert_installed(admin, release, {})


def test_a_wrong_value_installs_nothing(admin: Driver, release: Helm) -> None:
    before = everything(admin).keys()
    with pytest.raises(helm.HelmError, match="additional properties 'replicas' not allowed"):
        release.install({"replicas": 3})
    assert everything(admin).keys() == before


def test_an_installation_by_kustomize_is_not_taken_over(admin: Driver, release: Helm) -> None:
    role = {"metadata": {"name": NAME}, "rules": []}
    admin.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    with pytest.raises(helm.HelmError, match=r'ClusterRole "placement-ac" .* cannot be imported'):
        release.install()
    assert of_the_release(admin) == {}


# -- helm test


def kubelet(admin: Driver, folder: Path, pod: Object) -> str:
    """Run the Pod's command with its account and its settings file; write and return the Pod's phase."""
    (container,) = pod["spec"]["containers"]
    settings_file = folder / "config.yaml"
    config = admin.ask("GET", f"{CORE}/namespaces/{NAMESPACE}/configmaps/{NAME}")
    settings_file.write_text(config["data"]["config.yaml"])
    mounted = (
        word.replace("/etc/placement-ac/config.yaml", str(settings_file)) for word in container["args"]
    )
    done = run(account_kubeconfig(admin, folder), *mounted)
    phase = "Failed" if done.exit_code else "Succeeded"
    admin.ask("PATCH", f"{PODS}/{pod['metadata']['name']}/status", {"status": {"phase": phase}}, "merge")
    return done.output


@pytest.fixture
def helm_test(admin: Driver, release: Helm, tmp_path: Path) -> Callable[[], tuple[str, str]]:
    """Runs `helm test`, and the Pod as a kubelet does. Returns the Pod's output and Helm's error."""

    def play() -> tuple[str, str]:
        errors: list[str] = []

        def test() -> None:
            try:
                release.config.test(NAME, timeout=20)
            except helm.HelmError as error:
                errors.append(str(error))

        waiting = threading.Thread(target=test)
        waiting.start()
        eventually(lambda: len(admin.ask("GET", PODS)["items"]), 1)
        output = kubelet(admin, tmp_path, admin.ask("GET", PODS)["items"][0])
        waiting.join()
        return output, "".join(errors)

    return play


def test_helm_test(
    admin: Driver, release: Helm, helm_test: Callable[[], tuple[str, str]], tmp_path: Path
) -> None:
    """How it fails: tests/install/test_check.py."""
    release.install()
    with Controllers(account_kubeconfig(admin, tmp_path)) as controllers:
        controllers.start(leader_elect=True)
        output, error = helm_test()
    assert (error, "FAIL" in output) == ("", False)
    assert admin.ask("GET", PODS)["items"] == []


def test_helm_test_fails_without_rights(
    admin: Driver, release: Helm, helm_test: Callable[[], tuple[str, str]]
) -> None:
    release.install({"rbac": {"create": False}})
    output, error = helm_test()
    assert "FAIL  rights on admissionchecks.kueue.x-k8s.io: grant the account list, watch" in output
    assert "failed" in error
    assert [item["metadata"]["name"] for item in admin.ask("GET", PODS)["items"]] == [f"{NAME}-test"]
