"""The real kubectl against the hub."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from placement_lab.hub import Hub
from tests.support.accounts import kubeconfig_of
from tests.support.driver import eventually
from tests.support.real_hub import HubMaker

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")

Kubectl = Callable[..., str]

CONFIG = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: c, labels: {l: "1"}}
spec: {clusters: [%s]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m}
data: {k: "%s"}
"""


@pytest.fixture(scope="module")
def served(a_hub: HubMaker) -> Iterator[Hub]:
    with a_hub() as hub:
        yield hub


@pytest.fixture(scope="module")
def environment(served: Hub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    served.write_kubeconfig(home / "kubeconfig")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(home / "kubeconfig")}


@pytest.fixture
def kubectl(environment: dict[str, str]) -> Kubectl:
    def run(command: str, text: str = "", fails: bool = False, **more: str) -> str:
        done = subprocess.run(
            ["kubectl", *command.split()],
            input=text,
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout

    return run


def test_kubectl_lists_kinds_rights_the_user_and_fields(kubectl: Kubectl) -> None:
    assert "multikueueconfigs " in kubectl("api-resources")
    assert kubectl("auth can-i create secrets") == "yes\n"
    assert "kubernetes-admin" in kubectl("auth whoami")
    assert "FIELD: clusters <[]string>" in kubectl("explain mkconf.spec.clusters")
    by_v2 = kubectl("explain --output=plaintext-openapiv2 mkconf.spec.clusters")
    assert "FIELD:    clusters <[]string>" in by_v2


def test_the_life_of_an_object(kubectl: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(CONFIG % ("a", "1"))
    assert "mkconf" not in kubectl(f"apply -f {file}")
    assert kubectl(f"apply -f {file}").count("unchanged") == 2
    file.write_text(CONFIG % ("b", "2"))
    assert kubectl(f"apply -f {file}").count("configured") == 2
    assert kubectl("get mkconf c -o jsonpath={.spec.clusters}") == '["b"]'
    assert kubectl("get cm m -o jsonpath={.data.k}") == "2"
    assert kubectl(f"apply --server-side -f {file}").count("serverside-applied") == 2
    assert "conflict" in kubectl(
        "apply --server-side --field-manager=other -f -", CONFIG % ("x", "9"), fails=True
    )
    kubectl("label mkconf c team=ml")
    kubectl("edit mkconf c", EDITOR="sed -i s/team:.ml/team:\\ ops/")
    assert kubectl("get mkconf c -o jsonpath={.metadata.labels}") == '{"l":"1","team":"ops"}'
    kubectl('patch cm m -p {"data":{"n":"3"}}')
    kubectl("wait mkconf/c --for=jsonpath={.metadata.name}=c --timeout=5s")
    assert "Clusters:" in kubectl("describe mkconf c")
    kubectl(f"delete -f {file}")
    assert "not found" in kubectl("get mkconf c", fails=True)


LIST = """\
apiVersion: v1
kind: List
items:
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: MultiKueueConfig
  metadata: {name: listed}
  spec: {clusters: [a]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: listed}
  data: {k: v}
"""


def test_a_list_is_validated_and_applied(kubectl: Kubectl) -> None:
    """kubectl validates it by itself, with /openapi/v2."""
    wrong = kubectl("apply -f -", LIST.replace("clusters:", "clusterz:"), fails=True)
    assert 'ValidationError(MultiKueueConfig.spec): unknown field "clusterz"' in wrong
    assert 'missing required field "clusters"' in wrong
    assert 'invalid type for io.k8s.api.core.v1.ConfigMap.data: got "string"' in kubectl(
        "apply -f -", LIST.replace("{k: v}", "v"), fails=True
    )
    assert kubectl("apply -f -", LIST).count("created") == 2
    assert kubectl("apply --server-side --force-conflicts -f -", LIST).count("serverside-applied") == 2
    assert kubectl("create --dry-run=client -f -", LIST).count("created") == 2


def test_a_deployment_is_scaled(kubectl: Kubectl) -> None:
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    kubectl("apply -f -", json.dumps(body))
    kubectl("scale deployment d --replicas=3")
    shown = kubectl("get --raw /apis/apps/v1/namespaces/default/deployments/d/scale")
    kubectl("scale deployment d --current-replicas=3 --replicas=0")
    assert (
        kubectl("get deployment d -o jsonpath={.spec.replicas}/{.spec.template.spec.containers[0].image}")
        == "0/i"
    )
    scale = json.loads(shown)
    assert (scale["kind"], scale["spec"], scale["status"]["replicas"]) == ("Scale", {"replicas": 3}, 0)
    assert "not found" in kubectl("scale deployment nowhere --replicas=1", fails=True)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("create job NAME --image=i -- sleep 1s", "{.spec.template.spec}{.spec.parallelism}"),
        (
            "create deployment NAME --image=i --port=80 --replicas=2",
            "{.spec.template}{.spec.replicas}{.spec.selector}",
        ),
        ("create service clusterip NAME --tcp=80:8080", "{.spec}"),
        ("create service externalname NAME --external-name=example.com", "{.spec}"),
        ("create poddisruptionbudget NAME --min-available=50% --selector=a=b", "{.spec}"),
        ("create poddisruptionbudget NAME --max-unavailable=1 --selector=a=b", "{.spec}"),
    ],
)
def test_kubectl_creates_by_protobuf(kubectl: Kubectl, command: str, path: str) -> None:
    """The same object is made as by JSON."""
    command = command.replace("NAME", "made")
    as_json = kubectl(command.replace(" made ", " made --dry-run=client -o json "))
    kind = json.loads(as_json)["kind"]
    specs = []
    for create, text in ((command, ""), ("create -f -", as_json)):
        kubectl(create, text)
        specs.append(kubectl(f"get {kind} made -o jsonpath={path}"))
        kubectl(f"delete {kind} made")
    assert specs[0] == specs[1] != ""


def test_all_objects_of_a_namespace_and_jobs_that_succeeded(kubectl: Kubectl) -> None:
    containers = [{"name": "c", "image": "i"}]
    spec = {"suspend": True, "template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}
    for name in ("done", "waits"):
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        kubectl("apply -f -", json.dumps(body))
    kubectl('patch job done --subresource=status --type=merge -p {"status":{"succeeded":1}}')
    for selector, names in (("=1", ["done"]), ("=0", ["waits"]), ("!=1", ["waits"])):
        found = kubectl(f"get jobs --field-selector status.successful{selector} -o name").split()
        assert found == [f"job.batch/{name}" for name in names], selector
    assert {"job.batch/done", "job.batch/waits"} <= {*kubectl("get all -o name").split()}


@pytest.mark.embedded("a bare API server has no namespace controller")
def test_a_namespace_is_deleted(kubectl: Kubectl) -> None:
    kubectl("create namespace gone")
    kubectl("create secret generic s -n gone --from-literal=k=v")
    kubectl("delete namespace gone")
    assert kubectl("get secret -n gone --no-headers") == ""


def test_a_watch_prints_rows(
    served: Hub, kubectl: Kubectl, environment: dict[str, str], tmp_path: Path
) -> None:
    since = len(served.journal)
    with (tmp_path / "out").open("w") as out:
        watch = subprocess.Popen(["kubectl", "get", "mkc", "-w"], env=environment, stdout=out)
        try:
            eventually(lambda: any("watch" in r.query for r in served.journal[since:]), True)
            cluster = (
                '{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"MultiKueueCluster","metadata":{"name":"w"},'
                '"spec":{"clusterSource":{"clusterProfileRef":{"name":"p"}}}}'
            )
            kubectl("create -f -", cluster)
            kubectl("delete mkc w")
            eventually(lambda: len((tmp_path / "out").read_text().splitlines()), 3)
        finally:
            watch.terminate()
            watch.wait()
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[0].split() == ["NAME", "CONNECTED", "AGE"]
    assert [line.split()[0] for line in lines[1:]] == ["w", "w"]


def test_an_account_gets_permissions_and_a_token(served: Hub, kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create serviceaccount sa")
    kubectl("create clusterrole reader --verb=get,list --resource=configmaps,jobs.batch/status")
    kubectl("create clusterrolebinding reader --clusterrole=reader --serviceaccount=default:sa")
    kubectl("create role one --verb=get --resource=secrets --resource-name=x")
    kubectl("create rolebinding one --role=one --serviceaccount=default:sa --user=u --group=g")
    token = kubectl("create token sa --duration=10m").strip()
    assert "less than 10 minutes" in kubectl("create token sa --duration=1m", fails=True)
    mine = {"KUBECONFIG": str(kubeconfig_of(served, tmp_path / "sa", token))}
    assert "system:serviceaccount:default:sa" in kubectl("auth whoami", **mine)
    assert kubectl("auth can-i list configmaps", **mine) == "yes\n"
    rights = [line.split() for line in kubectl("auth can-i --list", **mine).splitlines()]
    assert ["configmaps", "[]", "[]", "[get", "list]"] in rights
    assert ["secrets", "[]", "[x]", "[get]"] in rights
    refused = kubectl("get secrets", fails=True, **mine)
    assert 'cannot list resource "secrets" in API group "" in the namespace "default"' in refused
