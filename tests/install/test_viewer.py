"""The roles for users: the commands need each of their rules, and nothing that they lack but Secrets."""

from pathlib import Path

import pytest
import yaml

from kubectl_placement.hub.requirements import VIEWER_KINDS
from placement_lab.hub import Hub, RecordedRequest
from placement_lab.hub.request_attributes import attributes_of
from tests.support import commands
from tests.support.accounts import kubeconfig_of
from tests.support.documents import ROOT
from tests.support.driver import CORE, Driver
from tests.support.hub_client import Client as HubClient
from tests.support.installation import CONFIG, kubectl
from tests.support.rights import ACCOUNTS, CLUSTER_BINDINGS, CLUSTER_ROLES, RBAC, bound_to, token_of
from tests.support.transcripts import Shown, shown_on
from tests.support.whatif import SAMPLES

ROLES = list(yaml.safe_load_all((CONFIG / "rbac" / "viewer.yaml").read_text("utf-8")))
VIEWER = "placement-ac-viewer"
NAMESPACES = ["placement-ac-system", "kueue-system", "default"]
PAGE = ROOT / "docs" / "inspect.md"
LEASES = "/apis/coordination.k8s.io/v1"
SECRETS = "list secrets in namespace kueue-system"
COMMANDS = (
    "status p",
    "explain p",
    "version",
    "doctor --workers",
    f"plan -f {SAMPLES}/placement-demo2-2.yaml",
)


def granted() -> set[str]:
    """The resources that the roles let a user read, as `resource.group`."""
    rules = [rule for role in ROLES for rule in role["rules"]]
    pairs = ((name, rule["apiGroups"][0]) for rule in rules for name in rule["resources"])
    return {f"{name}.{group}".rstrip(".") for name, group in pairs}


def in_namespace(namespace: str, plural: str) -> str:
    return f"{RBAC}/namespaces/{namespace}/{plural}"


def with_roles(hub: Hub) -> None:
    """Create the namespaces and the roles."""
    owner = HubClient(hub)
    for namespace in NAMESPACES:
        owner.ask("POST", f"{CORE}/namespaces", {"metadata": {"name": namespace}})
    for role in ROLES:
        namespace = role["metadata"].get("namespace")
        owner.create(in_namespace(namespace, "roles") if namespace else CLUSTER_ROLES, role)


def installed(hub: Hub) -> None:
    """Create the controller's Deployment and the settings that it mounts."""
    manager = CONFIG / "manager"
    [deployment] = [
        one
        for one in yaml.safe_load_all((manager / "deployment.yaml").read_text("utf-8"))
        if one["kind"] == "Deployment"
    ]
    namespace, settings = deployment["metadata"]["namespace"], (manager / "config.yaml").read_text("utf-8")
    owner = HubClient(hub)
    owner.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment)
    body = {"metadata": {"name": "placement-ac"}, "data": {"config.yaml": settings}}
    owner.create(f"{CORE}/namespaces/{namespace}/configmaps", body)


@pytest.fixture
def viewer(hub: Hub, admin: Driver, tmp_path: Path) -> Path:
    """The kubeconfig of a user with the roles, on a hub with a check, and a worker that nobody can reach.

    The controller is installed: only without its Deployment do the commands look for its Lease elsewhere.
    """
    with_roles(hub)
    installed(hub)
    admin.check("p")
    admin.select("p", "a")
    owner = HubClient(hub)
    owner.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    owner.create(CLUSTER_BINDINGS, bound_to("ClusterRole", VIEWER))
    for namespace in NAMESPACES:
        owner.create(in_namespace(namespace, "rolebindings"), bound_to("Role", VIEWER))
    return kubeconfig_of(hub, tmp_path / "viewer", token_of(owner))


def asked(requests: list[RecordedRequest]) -> dict[str, set[int]]:
    """The lists of a user, as `resource.group`, and how the hub answered."""
    found: dict[str, set[int]] = {}
    for request in requests:
        action = attributes_of(request.method, request.path, request.query)
        if action.resource:
            found.setdefault(f"{action.resource}.{action.group}".rstrip("."), set()).add(request.status)
    return found


def test_the_roles_give_what_the_commands_read_and_no_secrets(hub: Hub, viewer: Path) -> None:
    begin = len(hub.journal)
    for words in COMMANDS:
        done = commands.run(*words.split(), "--kubeconfig", str(viewer))
        findings = 1 if words.startswith("plan") else 2  # an error is 2 and 1
        assert done.exit_code in (0, findings), done.output
        rights = [line for line in done.stderr.splitlines() if line.startswith("missing rights")]
        assert [line for line in rights if f"the right to {SECRETS} (check: " not in line] == []
    mine = [one for one in hub.journal[begin:] if one.user.endswith(":sa")]
    assert {one.method for one in mine} == {"GET"}
    answers = asked(mine)
    assert {name for name, codes in answers.items() if 403 in codes} == {"secrets", "jobs.batch"}
    assert {name for name, codes in answers.items() if 200 in codes} == granted()


def test_the_commands_name_it_for_these_kinds() -> None:
    assert {str(kind) for kind in VIEWER_KINDS} == granted()
    assert {role["metadata"]["name"] for role in ROLES} == {VIEWER}
    assert [role["metadata"]["namespace"] for role in ROLES[1:]] == NAMESPACES
    assert {tuple(rule["verbs"]) for role in ROLES for rule in role["rules"]} == {("get", "list", "watch")}


ONE = "?fieldSelector=metadata.name%3D{}"


ANSWERS = {
    f"{CORE}/namespaces/placement-ac-system/configmaps{ONE.format('placement-ac')}": 200,
    f"{CORE}/namespaces/placement-ac-system/configmaps/placement-ac": 200,
    f"{CORE}/namespaces/placement-ac-system/configmaps": 403,
    f"{CORE}/namespaces/placement-ac-system/configmaps/other": 403,
    f"{CORE}/namespaces/kueue-system/configmaps{ONE.format('kueue-manager-config')}": 200,
    f"{CORE}/namespaces/kueue-system/configmaps": 403,
    f"{CORE}/namespaces/default/configmaps": 403,
    f"{CORE}/configmaps": 403,
    f"{LEASES}/namespaces/kueue-system/leases{ONE.format('placement-ac')}": 200,
    f"{LEASES}/namespaces/kueue-system/leases": 403,
    f"{LEASES}/leases": 403,
    f"{CORE}/namespaces/default/events": 200,
    f"{CORE}/namespaces/kueue-system/events": 403,
    f"{CORE}/events": 403,
}


def test_of_shared_kinds_a_user_reads_only_what_is_ours_and_kueues(hub: Hub, viewer: Path) -> None:
    client = HubClient(hub, yaml.safe_load(viewer.read_text())["users"][0]["user"]["token"])
    assert {path: client.ask("GET", path).status_code for path in ANSWERS} == ANSWERS


def test_the_commands_in_the_page_bind_the_roles(hub: Hub, tmp_path: Path) -> None:
    with_roles(hub)
    hub.write_kubeconfig(tmp_path / "admin")
    commands = [one.command for one in shown_on(PAGE.read_text("utf-8")) if isinstance(one, Shown)]
    binds = [
        command.split()[1:]
        for command in commands
        if command.startswith("kubectl create ") and VIEWER in command
    ]
    for words in binds:
        kubectl(*words, KUBECONFIG=str(tmp_path / "admin"), HOME=str(tmp_path))
    jane = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    paths = [CLUSTER_BINDINGS, *(in_namespace(namespace, "rolebindings") for namespace in NAMESPACES)]
    bound = [HubClient(hub).ok("GET", f"{path}/{VIEWER}") for path in paths]
    assert [one["subjects"] for one in bound] == [[jane]] * len(ROLES)
    assert [(one["roleRef"]["kind"], one["roleRef"]["name"]) for one in bound] == [
        ("ClusterRole", VIEWER),
        *[("Role", VIEWER)] * len(NAMESPACES),
    ]
