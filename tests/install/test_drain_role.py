"""The role of those who announce maintenance: it is enough, and nothing else is needed."""

from pathlib import Path

import pytest
import yaml

from placement_lab.hub import Hub
from tests.support import commands
from tests.support.accounts import kubeconfig_of
from tests.support.driver import Driver
from tests.support.hub_client import Client as HubClient
from tests.support.installation import CONFIG
from tests.support.jobs import managed
from tests.support.rights import ACCOUNTS, CLUSTER_BINDINGS, CLUSTER_ROLES, bound_to, token_of

ROLE = yaml.safe_load((CONFIG / "rbac" / "drain.yaml").read_text("utf-8"))


@pytest.mark.parametrize("is_bound", [True, False])
def test_the_role_is_needed_and_enough(hub: Hub, admin: Driver, tmp_path: Path, is_bound: bool) -> None:
    managed(admin, "a")
    owner = HubClient(hub)
    owner.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    owner.create(CLUSTER_ROLES, ROLE)
    if is_bound:
        owner.create(CLUSTER_BINDINGS, bound_to("ClusterRole", ROLE["metadata"]["name"]))
    user = commands.on_hub(kubeconfig_of(hub, tmp_path / "sa", token_of(owner)))
    for words in (("--in", "1h"), ("--cancel",)):
        done = user("drain", "a", *words)
        assert done.exit_code == (0 if is_bound else 1), done.output
        assert ("forbidden" in done.stderr) is not is_bound
