"""The roles for owners of jobs: the commands about a job need each of their rules, and get no Secret."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement_ac.core.api.constants import CAPACITY_KEY, CAPACITY_NAME, CAPACITY_QUEUES_NAME
from placement_ac.core.capacity_report.document import documents
from placement_ac.core.capacity_report.model import CapacityReport, ClusterCapacity
from placement_lab.hub import RecordedRequest
from placement_lab.hub.request_attributes import attributes_of
from tests.kubectl_placement.access.stage import JobStage, job_stage
from tests.support.hub_client import Client as HubClient
from tests.support.installation import CONFIG
from tests.support.rights import CLUSTER_BINDINGS, CLUSTER_ROLES, RBAC, rule

ROLES = list(yaml.safe_load_all((CONFIG / "rbac" / "job-viewer.yaml").read_text("utf-8")))
EVERYWHERE, THERE = (role["metadata"]["name"] for role in ROLES)
TEAM, OTHER = "team-a", "team-b"
JANE = {"kind": "User", "name": "jane"}


def bound(role: str) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return {"metadata": {"name": role}, "roleRef": reference, "subjects": [JANE]}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[JobStage]:
    """Jobs of two teams on a worker; jane is of one of them, by the roles on the hub, by a context there."""
    with job_stage(tmp_path, ["a"]) as stage:
        stage.job(namespace=TEAM)
        stage.job("secret-plan", namespace=OTHER)
        admin = HubClient(stage.hub)
        for role in ROLES:
            admin.create(CLUSTER_ROLES, role)
        admin.create(CLUSTER_BINDINGS, bound(EVERYWHERE))
        admin.create(f"{RBAC}/namespaces/{TEAM}/rolebindings", bound(THERE))
        worker = HubClient(stage.fleet.hubs["a"])
        rules = [
            rule("get list", "", "pods pods/log"),
            rule("list", "", "events"),
            rule("get", "batch", "jobs"),
        ]
        worker.create(CLUSTER_ROLES, {"metadata": {"name": "view"}, "rules": rules})
        worker.create(f"{RBAC}/namespaces/{TEAM}/rolebindings", bound("view"))
        config = json.loads(stage.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": stage.hub.add_user("jane", groups=[])}
        config["users"][1]["user"] = {"token": stage.fleet.hubs["a"].add_user("jane", groups=[])}
        stage.kubeconfig.write_text(json.dumps(config))
        yield stage


def asked(requests: list[RecordedRequest]) -> set[tuple[str, str, str, int]]:
    """Verb, resource, namespace and answer of jane's requests for objects."""
    mine = [one for one in requests if one.user == "jane"]
    actions = [(attributes_of(one.method, one.path, one.query), one.status) for one in mine]
    return {
        (action.verb, f"{action.full_resource}.{action.group}".rstrip("."), action.namespace, status)
        for action, status in actions
        if action.resource
    }


def granted() -> set[tuple[str, str]]:
    return {
        (verb, f"{resource}.{one['apiGroups'][0]}".rstrip("."))
        for role in ROLES
        for one in role["rules"]
        for resource in one["resources"]
        for verb in one["verbs"]
    }


def test_the_roles_give_what_the_commands_read_and_no_secrets(stage: JobStage) -> None:
    for words in ("logs train", "logs train -f"):
        if words.endswith("-f"):
            stage.place("train", "p-a", TEAM, finished=True)
        done = stage.run(*words.split(), "-n", TEAM)
        assert (done.exit_code, done.stderr) == (0, ""), done.output
    publish_capacity(stage)
    for words in ("capacity", f"capacity --by team -n {TEAM}"):
        done = stage.run(*words.split())
        assert done.exit_code == 0, done.output
    answers = asked(stage.hub.journal)
    assert [one for one in answers if one[3] == 403] == []
    assert {namespace for _, _, namespace, _ in answers} == {TEAM, "", "kueue-system"}
    for words in ("job train", "jobs"):
        done = stage.run(*words.split(), "-n", TEAM)
        assert (done.exit_code, "placement-ac-job-viewer" in done.output) == (0, False), done.output
    answers = asked(stage.hub.journal)
    assert {(verb, resource) for verb, resource, _, status in answers if status in (200, 404)} == {
        ("get", "clusterprofiles.multicluster.x-k8s.io"),
        *(right for right in granted() if right[0] != "watch"),  # for --watch
    }
    assert [one for one in (*answers, *asked(stage.fleet.hubs["a"].journal)) if "secrets" in one[1]] == []


def publish_capacity(stage: JobStage) -> None:
    """The capacity that a controller has published: the sums of a cluster, and its queues."""
    texts = documents(CapacityReport((ClusterCapacity("a", read_at=datetime.now(UTC)),)))
    for name, text in zip((CAPACITY_NAME, CAPACITY_QUEUES_NAME), texts, strict=True):
        body = {"metadata": {"name": name}, "data": {CAPACITY_KEY: text}}
        HubClient(stage.hub).create("/api/v1/namespaces/kueue-system/configmaps", body)


def test_a_user_of_one_namespace_sees_its_jobs_alone(stage: JobStage) -> None:
    assert stage.run("access", "train", "-n", TEAM).exit_code == 0
    for words in ("logs", "access"):
        done = stage.run(*words.split(), "secret-plan", "-n", OTHER)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == (
            f"Error: get the right to list workloads.kueue.x-k8s.io in namespace {OTHER} "
            f"(check: kubectl auth can-i list workloads.kueue.x-k8s.io -n {OTHER})\n"
        )
    hidden = stage.run("logs", "secret-plan", "-n", TEAM)
    asked = "does it have the label kueue.x-k8s.io/queue-name?"
    assert hidden.stderr == f'Error: no job "secret-plan" found in namespace {TEAM}; {asked}\n'
