"""The access methods to a job's cluster: which is taken, why another is not, and what is never shown."""

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubectl_placement.access.stage import JobStage, let_jane
from tests.kubectl_placement.access.user_server import UserServer
from tests.support.hub_client import Client
from tests.support.rights import rule

CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
MULTIKUEUE = "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters"


def pods_by(stage: JobStage, *words: str, **options: Any) -> list[str]:
    """The Pods whose logs are shown with these words."""
    done = stage.run("logs", "train", "--all-pods", *words, **options)
    assert done.exit_code == 0, done.output
    return [*dict.fromkeys(re.findall(r"^\[pod/(.+)/c\]", done.stdout, re.MULTILINE))]


def refused(stage: JobStage, *words: str) -> list[str]:
    """The lines on stderr where there is no access; they hold no secret."""
    done = stage.run("logs", "train", *words)
    assert (done.exit_code, done.stdout) == (1, ""), done.output
    for secret in secrets(stage):
        assert secret not in done.stderr
    return [line.strip() for line in done.stderr.splitlines()]


def secrets(stage: JobStage) -> list[str]:
    hubs = [stage.hub, *stage.fleet.hubs.values()]
    return [*(hub.token for hub in hubs), "hunter2"]


def access_file(stage: JobStage, content: Any) -> Path:
    path = stage.kubeconfig.parent / "placement-ac" / "access.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def worker_kubeconfig(stage: JobStage, path: str = "theirs", worker: str = "a") -> Path:
    file = stage.kubeconfig.parent / path
    stage.fleet.hubs[worker].write_kubeconfig(file)
    return file


def script(stage: JobStage, text: str) -> str:
    path = stage.kubeconfig.parent / "command.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


# -- contexts


def test_the_context_with_the_address_and_the_ca_of_the_cluster(stage: JobStage) -> None:
    pods = stage.job()
    assert pods_by(stage) == pods
    agents = [one.user_agent for one in stage.fleet.hubs["b"].journal if one.path.endswith("/pods")]
    assert "placement-ac" not in agents


def test_another_context_is_not_taken(stage: JobStage) -> None:
    """Why, is said in test_pod_rules.py."""
    stage.job()
    url = stage.fleet.hubs["a"].secure_url
    for changes, problem in (
        ({"server": "https://127.0.0.1:1"}, "none of 2 contexts leads there"),
        ({"certificate-authority-data": ""}, "context a has that address, but it names no CA"),
    ):
        stage.write_kubeconfig("a", **changes)
        lines = refused(stage)
        assert lines[0] == (
            "Error: fix one of these access methods to cluster a (MultiKueueCluster p-a): none works for you"
        )
        assert lines[1].startswith(
            f"1. kubeconfig: add a context for {url}, with its certificate-authority-data: {problem}"
        )
        assert [line[:3] for line in lines[1:]] == ["1. ", "2. ", "3. ", "4. "]
    assert lines[2] == (
        "2. cluster-proxy: name it with --cluster-proxy URL: no user server of it is found on the hub"
    )
    assert lines[4].startswith("4. --as-hub: add --as-hub: not asked for")


def test_a_cluster_profile_names_the_server_too(stage: JobStage) -> None:
    stage.job()
    [config] = Client(stage.hub).get(f"{CLUSTERS}/a")["spec"]["managedClusterClientConfigs"]
    Client(stage.hub).patch(f"{CLUSTERS}/a", {"spec": {"managedClusterClientConfigs": None}})
    assert "neither its ManagedCluster nor a ClusterProfile names one" in refused(stage)[1]
    cluster = {"server": config["url"], "certificate-authority-data": config["caBundle"]}
    profile = {
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ClusterProfile",
        "metadata": {"name": "a", "namespace": "kueue-system"},
        "spec": {"clusterManager": {"name": "open-cluster-management"}, "displayName": "a"},
        "status": {"accessProviders": [{"name": "p", "cluster": cluster}]},
    }
    stage.admin.apply(profile)
    assert pods_by(stage) == stage.pods("train")


def test_a_multikueuecluster_without_a_label_is_not_taken_for_the_managed_cluster_of_its_name(
    stage: JobStage,
) -> None:
    stage.workload()
    bare: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "MultiKueueCluster",
        "metadata": {"name": "b"},
    }
    bare["spec"] = {"clusterSource": {"kubeConfig": {"location": "x", "locationType": "Secret"}}}
    stage.admin.apply(bare)
    stage.place("train", "b")
    assert "its API server is unknown" in refused(stage)[1]


# -- as an owner with few rights on the hub


@pytest.fixture
def owner(stage: JobStage) -> str:
    """A user of the hub who may list Workloads of one namespace, and has the workers' contexts."""
    let_jane(stage.hub, rule("list", "kueue.x-k8s.io", "workloads"), namespace="default")
    return stage.hub.add_user("jane", groups=[])


def as_owner(stage: JobStage, token: str) -> None:
    """Log in to the hub with another token, in the same kubeconfig."""
    config = json.loads(stage.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    stage.kubeconfig.write_text(json.dumps(config))


def test_without_the_right_to_the_clusters_the_message_says_how_to_go_on(stage: JobStage, owner: str) -> None:
    stage.job()
    as_owner(stage, owner)
    lines = refused(stage)
    assert "kubectl auth can-i get multikueueclusters.kueue.x-k8s.io/p-a" in lines[1]
    assert "name your context for it in" in lines[1]
    access_file(stage, {"clusters": [{"cluster": "p-*", "context": "a"}]})
    assert pods_by(stage) == stage.pods("train")


# -- the cluster-proxy


@pytest.fixture
def proxy(stage: JobStage) -> Iterator[UserServer]:
    with UserServer(stage.hub, stage.fleet) as server:
        (stage.kubeconfig.parent / "proxy.pem").write_bytes(server.ca_certificate)
        yield server


def proxy_words(stage: JobStage, proxy: UserServer) -> list[str]:
    ca = stage.kubeconfig.parent / "proxy.pem"
    return ["--cluster-proxy", proxy.secure_url, "--cluster-proxy-ca", str(ca)]


READ_CLUSTERS = rule("get", "kueue.x-k8s.io", "multikueueclusters")


def test_the_missing_right_to_the_service_of_the_proxy_is_named(stage: JobStage, owner: str) -> None:
    stage.job()
    let_jane(stage.hub, READ_CLUSTERS)
    stage.write_kubeconfig()
    as_owner(stage, owner)
    check = "`kubectl auth can-i get services/cluster-proxy-addon-user -n"
    assert refused(stage)[2] == (
        "2. cluster-proxy: name it with --cluster-proxy URL, or get the right to read its Service on the hub:"
        " you may not read its Service cluster-proxy-addon-user there "
        f"(check: {check} open-cluster-management-addon` and {check} multicluster-engine`)"
    )


def test_the_cluster_proxy_with_the_callers_token(stage: JobStage, owner: str, proxy: UserServer) -> None:
    [pod] = stage.job()
    let_jane(stage.hub, READ_CLUSTERS)
    let_jane(stage.fleet.hubs["a"], rule("get list", "", "pods pods/log"))
    stage.write_kubeconfig()
    as_owner(stage, owner)
    assert pods_by(stage, *proxy_words(stage, proxy)) == [pod]
    done = stage.run("logs", "train", *proxy_words(stage, proxy))
    assert (done.exit_code, done.stdout) == (0, f"{pod} has started on node-1\n")
    assert set(proxy.users) == {"jane"}


def test_without_rights_there_it_says_so(stage: JobStage, proxy: UserServer) -> None:
    stage.job()
    token = stage.hub.add_user("jane")
    stage.write_kubeconfig()
    as_owner(stage, token)
    lines = refused(stage, *proxy_words(stage, proxy))
    assert lines[2].startswith(
        f"2. cluster-proxy {proxy.secure_url}: get the right to list pods in namespace default there: "
        'pods is forbidden: User "jane"'
    )


def test_the_proxy_is_named_by_the_environment_or_by_the_file(stage: JobStage, proxy: UserServer) -> None:
    stage.job()
    stage.write_kubeconfig()
    ca = str(stage.kubeconfig.parent / "proxy.pem")
    assert f"cluster-proxy {proxy.secure_url}" in refused(stage, "--cluster-proxy", proxy.secure_url)[2]
    access_file(stage, {"clusterProxy": {"url": proxy.secure_url, "certificateAuthority": ca}})
    assert f"cluster-proxy {proxy.secure_url}" in refused(stage)[2]
    assert "kubernetes-admin" in proxy.users


def test_the_hub_names_the_proxy_by_its_service(stage: JobStage) -> None:
    stage.job()
    stage.write_kubeconfig()
    admin = Client(stage.hub)
    space = "open-cluster-management-addon"
    admin.create("/api/v1/namespaces", {"metadata": {"name": space}})
    service = {
        "metadata": {"name": "cluster-proxy-addon-user"},
        "spec": {"ports": [{"port": 9092, "name": "https"}]},
    }
    made = admin.ask("POST", f"/api/v1/namespaces/{space}/services", service)
    if made.status_code == 404:
        pytest.skip("the embedded hub serves no Services")
    assert f"kubectl -n {space} port-forward service/cluster-proxy-addon-user 9092" in refused(stage)[2]


def test_a_proxy_without_tls_gets_no_token(stage: JobStage) -> None:
    stage.job()
    stage.write_kubeconfig()
    for url in ("http://proxy.example", "proxy.example", "https://", "https://a b"):
        assert refused(stage, "--cluster-proxy", url)[2].startswith("2. cluster-proxy: use an https URL"), url


# -- the access file


def test_a_file_and_commands_that_print_a_kubeconfig_or_credentials(stage: JobStage) -> None:
    stage.job()
    stage.write_kubeconfig()
    folder, there = stage.kubeconfig.parent, stage.fleet.hubs["a"]
    kubeconfig = worker_kubeconfig(stage, "theirs-a")
    (folder / "ca.pem").write_bytes("# Zürich\n".encode() + there.ca_certificate)
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    (folder / "credential").write_text(json.dumps(credential | {"status": {"token": there.token}}))
    prints = [script(stage, 'cat "$1"'), str(folder / "credential")]
    for entry in (
        {"cluster": "?", "kubeconfig": str(folder / "theirs-{cluster}")},
        {"cluster": "a", "command": [prints[0], str(kubeconfig)]},
        {"cluster": "a", "command": prints},
        {"cluster": "a", "command": prints, "certificateAuthority": str(folder / "ca.pem")},
    ):
        access_file(stage, {"clusters": [entry]})
        assert pods_by(stage) == stage.pods("train"), entry
    access_file(stage, {"clusters": [{"cluster": "a", "command": prints}]})
    Client(stage.hub).patch(f"{CLUSTERS}/a", {"spec": {"managedClusterClientConfigs": None}})
    assert refused(stage)[3].startswith("3. access file: set server, and certificateAuthority")


def test_what_a_command_or_a_file_gives_is_used_as_the_other_user(stage: JobStage) -> None:
    stage.job()
    stage.write_kubeconfig()
    let_jane(stage.hub, rule("get list", "*", "*"))
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    status = {"status": {"token": stage.fleet.hubs["a"].token}}
    prints = f"echo '{json.dumps(credential | status)}'"
    for entry in ({"command": [script(stage, prints)]}, {"kubeconfig": str(worker_kubeconfig(stage))}):
        access_file(stage, {"clusters": [{"cluster": "a", **entry}]})
        assert 'User "jane" cannot list resource "pods"' in "".join(refused(stage, "--as=jane"))
        assert pods_by(stage, "--as=jane", "--as-group=system:masters") == stage.pods("train")


SECRETIVE = (
    ("echo hunter2; exit 3", "ended with code 3"),
    ("echo hunter2", ""),
    ('echo \'{"kind": "ExecCredential", "token": "hunter2"}\'', "gave no ExecCredential"),
    ("printf 'users: [{name: x, user: {token: hunter2}}]'", "no context is chosen"),
)
"""A command, and the problem that is reported; `refused` sees that its secret is not."""


def test_what_a_command_prints_is_not_shown(stage: JobStage) -> None:
    stage.job()
    stage.write_kubeconfig()
    for text, problem in SECRETIVE:
        access_file(stage, {"clusters": [{"cluster": "a", "command": [script(stage, text)]}]})
        lines = refused(stage)
        assert lines[3].startswith("3. access file: "), text
        assert problem in lines[3], text


UNREADABLE: tuple[tuple[Any, str], ...] = (
    ({"clusters": [{"cluster": "a"}]}, "give context, kubeconfig or command for a"),
    ({"clusters": [{"cluster": "a", "contxt": "b"}]}, "clusters.0.contxt"),
    ({"clusters": [{"cluster": "a", "token": "hunter2"}]}, "clusters.0.token"),
    ([], "the file: "),
)
"""The content of an access file, and what the error says."""


def test_a_file_that_cannot_be_read_is_an_error(stage: JobStage) -> None:
    stage.job()
    for content, problem in UNREADABLE:
        access_file(stage, content)
        done = stage.run("logs", "train")
        assert done.exit_code == 2, content
        assert problem in done.stderr
        assert "hunter2" not in done.stderr


# -- the credentials of Kueue


def test_as_hub_needs_the_right_to_the_secret(stage: JobStage) -> None:
    stage.job()
    stage.write_kubeconfig()
    token = stage.hub.add_user("jane", groups=[])
    let_jane(
        stage.hub,
        rule("get list", "kueue.x-k8s.io", "workloads multikueueclusters"),
        rule("get", "cluster.open-cluster-management.io", "managedclusters"),
    )
    as_owner(stage, token)
    lines = refused(stage, "--as-hub")
    assert lines[4].startswith(
        "4. --as-hub: get the right to its Secret: Secret kueue-system/multikueue-a cannot be "
    )
    assert [one.path for one in stage.fleet.hubs["a"].journal if one.user_agent == "placement-ac"] == []


def test_without_the_option_no_secret_is_read(stage: JobStage) -> None:
    stage.job()
    stage.write_kubeconfig()
    begin = len(stage.hub.journal)
    refused(stage)
    assert [one.path for one in stage.hub.journal[begin:] if "/secrets" in one.path] == []


# -- what is wrong with a method


def test_a_cluster_that_refuses_the_credentials_or_does_not_answer(stage: JobStage) -> None:
    stage.job()
    config = json.loads(stage.kubeconfig.read_text())
    config["users"][1]["user"] = {"token": "hunter2"}
    stage.kubeconfig.write_text(json.dumps(config))
    assert refused(stage)[1] == "1. context a: log in again: the cluster does not accept its credentials"
    stage.fleet.kill("a")
    assert refused(stage)[1].startswith("1. context a: check that the cluster can be reached: ")
