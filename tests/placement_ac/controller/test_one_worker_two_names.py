"""A cluster is imported again under another name, with another account: what runs there goes on."""

import base64
import json
from typing import Any

import pytest

from tests.support.driver import CORE, NS, Driver
from tests.support.jobs import Play, Stage, managed, soon
from tests.support.stage import shorten

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ALL: dict[str, list[str]] = {"*": ["*"]}
FEW = {"kueue.x-k8s.io": ["workloads", "workloads/status"], "batch": ["jobs", "jobs/status"]}
"""Of an account that sees neither Namespace kube-system nor ClusterQueues."""


def kubeconfig_with(stage: Stage, rights: dict[str, list[str]], user: str) -> str:
    """A kubeconfig of the worker `w` for a user with these rights."""
    hub = stage.fleet.hubs["w"]
    token = hub.add_user(user, f"token-of-{user}-for-the-worker", groups=())
    rules = [{"apiGroups": [group], "resources": kinds, "verbs": ["*"]} for group, kinds in rights.items()]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    worker = Driver(hub)
    for kind, rest in (
        ("ClusterRole", {"rules": rules}),
        ("ClusterRoleBinding", {"roleRef": role, "subjects": [subject]}),
    ):
        body: dict[str, Any] = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": user},
        }
        worker.ask("POST", f"{RBAC}/{kind.lower()}s", body | rest)
    content = hub.kubeconfig()
    content["users"][0]["user"] = {"token": token}
    return base64.b64encode(json.dumps(content).encode()).decode()


@pytest.fixture
def stage(play: Play) -> Stage:
    return play("w", quotas={"w": {"default": {"cpu": "8"}}})


def import_again(stage: Stage, rights: dict[str, list[str]]) -> None:
    stage.admin.secret("multikueue-w-new", value=kubeconfig_with(stage, rights, "w-new"))
    managed(stage.admin, "w-new")
    stage.select("w", "w-new")


def replace_account(stage: Stage, rights: dict[str, list[str]]) -> None:
    """Give the cluster `w` an account with these rights."""
    data = {"kubeconfig": kubeconfig_with(stage, rights, "first")}
    stage.admin.ask("PATCH", f"{CORE}/namespaces/{NS}/secrets/multikueue-w", {"data": data}, "merge")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(ALL, ALL, id="kube-system"),
        pytest.param(FEW, FEW, id="copies of both"),
    ],
)
def test_the_job_goes_on_and_the_next_one_runs_once(
    stage: Stage, first: dict[str, list[str]], second: dict[str, list[str]]
) -> None:
    replace_account(stage, first)
    stage.select("w")
    stage.controllers.start()
    stage.until_listed("w")
    stage.submit("first")
    stage.until_runs("first", "w")
    import_again(stage, second)
    soon(lambda: "it leads to the same worker as w, which stays" in stage.remark())
    stage.submit("second")
    stage.until_runs("second", "w")
    assert stage.listed() == ["w"]
    assert [stage.account(job)[:2] for job in ("first", "second")] == [(1, 1), (1, 1)]
    assert stage.placed("first") == stage.placed("second") == "p-w"


def test_neither_is_listed_yet(stage: Stage) -> None:
    stage.admin.secret("multikueue-w-new", value=kubeconfig_with(stage, ALL, "w-new"))
    managed(stage.admin, "w-new")
    stage.select("w-new", "w")
    stage.controllers.start()
    stage.until_listed("w")
    assert [request.body["spec"]["clusters"] for request in stage.config_writes()] == [["p-w"]]


def test_two_names_that_nothing_told_apart_are_found_by_a_job_that_never_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, START_SECONDS=2.0, AGAIN_SECONDS=0.2)
    replace_account(stage, FEW)
    stage.admin.secret("multikueue-w-new", value=kubeconfig_with(stage, FEW, "w-new"))
    managed(stage.admin, "w-new")
    stage.select("w", "w-new")
    stage.controllers.start()
    stage.until_listed("w", "w-new")
    stage.submit("job")
    stage.until_runs("job", "w")
    assert stage.listed() == ["w"]
