"""
The command of `helm test` as the chart renders it, from what the image holds, on a hub.

A virtual environment of its own has what the Dockerfile installs: the locked packages and placement_ac.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.accounts import account_kubeconfig
from tests.support.chart import HOOK, template
from tests.support.driver import CORE, NS, Controllers, Driver, Object
from tests.support.installation import NAME, NAMESPACE, ROOT, write_mounts
from tests.support.rights import RBAC
from tests.support.venvs import build_wheel, install, new_environment

PLURALS = {
    "ServiceAccount": f"{CORE}/namespaces/{{}}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{{}}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{{}}/rolebindings",
}
SHORT = {"leaderElection": {"leaseDuration": "2s"}}
"""A controller is waited for as long as two durations of the Lease."""


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs that the Dockerfile installs."""
    folder = tmp_path_factory.mktemp("image")
    programs = new_environment(folder / "app")
    install(programs, "--require-hashes", "--requirement", str(ROOT / "requirements.lock"))
    install(programs, "--no-deps", str(build_wheel("placement_ac", folder)))
    return programs


class Release:
    """The objects of the chart on a hub; its Pods' commands run here, with the rights of its account."""

    def __init__(self, admin: Driver, image: Path, folder: Path, **config: Object) -> None:
        self._image, self._folder = image, folder
        self.objects = template({"config": config})
        admin.namespace(NAMESPACE)
        for one in self.objects:
            if one["kind"] in PLURALS:
                admin.ask("POST", PLURALS[one["kind"]].format(one["metadata"].get("namespace")), one)
        self.kubeconfig = account_kubeconfig(admin, folder)

    def check(self) -> subprocess.CompletedProcess[str]:
        """Run the Pod of `helm test` as a kubelet does: its arguments, its environment, its ConfigMaps."""
        (pod,) = (one["spec"] for one in self.objects if HOOK in one["metadata"].get("annotations", {}))
        (container,) = pod["containers"]
        words = container["args"]
        variables = {one["name"]: one["value"] for one in container.get("env", ())}
        root = self._folder / "root"
        for path in write_mounts(self.objects, pod, root):
            words = [word.replace(path, f"{root}{path}") for word in words]
            variables = {name: value.replace(path, f"{root}{path}") for name, value in variables.items()}
        return subprocess.run(
            [self._image / "placement-ac", *words],
            env={"KUBECONFIG": str(self.kubeconfig), "HOME": str(self._folder)} | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )


def test_it_passes_with_the_rights_of_the_chart_and_a_controller(
    admin: Driver, image: Path, tmp_path: Path
) -> None:
    release = Release(admin, image, tmp_path)
    admin.check("p")
    admin.select("p", "a")
    with Controllers(release.kubeconfig) as controllers:
        controllers.start(leader_elect=True)
        done = release.check()
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, [line for line in lines if not line.startswith("OK    ")]) == (
        0,
        "",
        [],
    )
    assert lines[0] == "OK    settings"
    assert f"OK    rights on secrets in namespace {NS}: list, watch, get" in lines
    assert lines[-1].startswith("OK    controller: ")
    assert lines[-1].endswith(" leads, and has reconciled")
    assert admin.reason("p") == "Active"


def no_right(admin: Driver) -> None:
    path = f"{RBAC}/namespaces/{NS}/roles/{NAME}"
    role = admin.ask("GET", path)
    (secrets,) = (rule for rule in role["rules"] if rule["resources"] == ["secrets"])
    secrets["verbs"].remove("watch")
    admin.ask("PUT", path, role)


@pytest.mark.parametrize(
    ("lacks", "message"),
    [
        pytest.param(
            no_right,
            f"rights on secrets in namespace {NS}: grant the account watch (docs/install.md, Permissions)",
            id="right",
        ),
        pytest.param(
            lambda _: None,
            f"controller: start it, or see why it does not run: none holds Lease {NS}/{NAME}",
            id="controller",
        ),
    ],
)
def test_it_names_what_is_missing(
    admin: Driver, image: Path, tmp_path: Path, lacks: Callable[[Driver], None], message: str
) -> None:
    release = Release(admin, image, tmp_path, **SHORT)
    lacks(admin)
    done = release.check()
    failed = [line for line in done.stdout.splitlines() if not line.startswith("OK    ")]
    assert (done.returncode, done.stderr, failed) == (1, "", [f"FAIL  {message}"])
