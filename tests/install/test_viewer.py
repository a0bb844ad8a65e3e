"""The ClusterRole for users: the commands need each of its rules, and nothing that it lacks but Secrets."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from placement_ac.cli.main import main
from placement_ac.inspection.hub.requirements import VIEWER_KINDS, VIEWER_ROLE
from placement_ac.lab.hub import Hub, RecordedRequest
from placement_ac.lab.hub.request_attributes import attributes_of
from tests.inspection.test_hub_reader_on_hub import kubeconfig_of
from tests.support.crds import topology_crd
from tests.support.driver import CORE, Driver
from tests.support.hub_client import CRDS
from tests.support.hub_client import Client as HubClient
from tests.support.installation import CONFIG
from tests.support.rights import ACCOUNTS, CLUSTER_BINDINGS, CLUSTER_ROLES, bound_to, token_of
from tests.support.whatif import SAMPLES

ROLE = yaml.safe_load((CONFIG / "rbac" / "viewer.yaml").read_text("utf-8"))
SECRETS = "list secrets in namespace kueue-system"
COMMANDS = (
    "status p",
    "explain p",
    "graph p",
    "timeline p",
    "doctor --workers",
    f"plan -f {SAMPLES}/placement-demo2-2.yaml",
)


def granted() -> set[str]:
    """What the role lets a user read, as `resource.group`."""
    pairs = ((name, rule["apiGroups"][0]) for rule in ROLE["rules"] for name in rule["resources"])
    return {f"{name}.{group}".rstrip(".") for name, group in pairs}


@pytest.fixture
def viewer(hub: Hub, admin: Driver, tmp_path: Path) -> Path:
    """The kubeconfig of a user with the role, on a hub with a check, and a worker that nobody can reach."""
    for namespace in ("placement-ac-system", "default"):
        admin.try_("POST", f"{CORE}/namespaces", {"metadata": {"name": namespace}})
    admin.check("p")
    admin.try_("POST", CRDS, topology_crd())
    admin.select("p", "a")
    owner = HubClient(hub)
    owner.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    owner.create(CLUSTER_ROLES, ROLE)
    owner.create(CLUSTER_BINDINGS, bound_to("ClusterRole", VIEWER_ROLE))
    return kubeconfig_of(hub, tmp_path / "viewer", token_of(owner))


def asked(requests: list[RecordedRequest]) -> dict[str, set[int]]:
    """The lists of a user, as `resource.group`, and how the hub answered."""
    found: dict[str, set[int]] = {}
    for one in requests:
        action = attributes_of(one.method, one.path, one.query)
        if action.resource:
            found.setdefault(f"{action.resource}.{action.group}".rstrip("."), set()).add(one.status)
    return found


def test_the_role_gives_what_the_commands_read_and_no_secrets(hub: Hub, viewer: Path) -> None:
    begin = len(hub.journal)
    for words in COMMANDS:
        done = CliRunner().invoke(main, [*words.split(), "--kubeconfig", str(viewer)])
        findings = 1 if words.startswith("plan") else 2  # an error is 2 and 1
        assert done.exit_code in (0, findings), done.output
        rights = [line for line in done.stderr.splitlines() if line.startswith("missing rights")]
        assert [line for line in rights if f"the right to {SECRETS} (check: " not in line] == []
    mine = [one for one in hub.journal[begin:] if one.user.endswith(":sa")]
    assert {one.method for one in mine} == {"GET"}
    answers = asked(mine)
    assert {name for name, codes in answers.items() if 403 in codes} == {"secrets"}
    assert {name for name, codes in answers.items() if 200 in codes} == granted()


def test_the_commands_name_it_for_these_kinds() -> None:
    assert {str(kind) for kind in VIEWER_KINDS} == granted()
    assert ROLE["metadata"]["name"] == VIEWER_ROLE
    assert {tuple(rule["verbs"]) for rule in ROLE["rules"]} == {("get", "list", "watch")}
