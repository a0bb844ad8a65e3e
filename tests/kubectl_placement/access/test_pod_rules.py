"""Which Pods are of a job, and which one is meant: as by kubectl and the controllers."""

import base64
from typing import Any

import pytest
import trustme

from kubectl_placement.access.api_servers import ApiServer, mismatch, servers_of_cluster
from kubectl_placement.access.log_query import BLOCK_BYTES, LineSplitter, LogQuery, StampedLines
from kubectl_placement.access.pod_choice import NoSuchContainer, chosen_container, containers_of, first_pod
from kubectl_placement.access.pod_selectors import copy_problem, is_of_another, selectors
from kubectl_placement.jobs.lookup import JobId
from placement_ac.core.kubeconfig.source import ClusterAccess

Raw = dict[str, Any]


@pytest.mark.parametrize(
    ("api_version", "kind", "status", "expected"),
    [
        ("batch/v1", "Job", {}, ["batch.kubernetes.io/job-name=t"]),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {}, ["jobset.sigs.k8s.io/jobset-name=t"]),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", {}, ["jobset.sigs.k8s.io/jobset-name=t"]),
        ("kubeflow.org/v1", "PyTorchJob", {}, ["training.kubeflow.org/job-name=t"]),
        ("kubeflow.org/v2beta1", "MPIJob", {}, ["training.kubeflow.org/job-name=t"]),
        ("ray.io/v1", "RayCluster", {}, ["ray.io/cluster=t"]),
        ("ray.io/v1", "RayJob", {}, ["batch.kubernetes.io/job-name=t"]),
        (
            "ray.io/v1",
            "RayJob",
            {"rayClusterName": "t-x"},
            ["ray.io/cluster=t-x", "batch.kubernetes.io/job-name=t"],
        ),
        (
            "ray.io/v1",
            "RayService",
            {
                "activeServiceStatus": {"rayClusterName": "old"},
                "pendingServiceStatus": {"rayClusterName": "new"},
            },
            ["ray.io/cluster=old", "ray.io/cluster=new"],
        ),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {}, ["leaderworkerset.sigs.k8s.io/name=t"]),
        ("tekton.dev/v1", "PipelineRun", {}, ["tekton.dev/pipelineRun=t"]),
        ("v1", "Pod", {}, ["kueue.x-k8s.io/managed=true"]),
        ("apps/v1", "StatefulSet", {}, ["kueue.x-k8s.io/managed=true"]),
        ("example.com/v1", "Thing", {}, None),
    ],
    ids=lambda value: value if isinstance(value, str) and "/" not in value else "",
)
def test_the_labels_by_which_pods_are_found(
    api_version: str, kind: str, status: Raw, expected: list[str] | None
) -> None:
    found = selectors(JobId("default", api_version, kind, "t"), {"status": status})
    assert (None if found is None else [*found]) == expected


JOB = JobId("default", "batch/v1", "Job", "t")
GANG = JobId("default", "apps/v1", "StatefulSet", "t")
SET = JobId("default", "jobset.x-k8s.io/v1alpha2", "JobSet", "t")


@pytest.mark.parametrize(
    ("job", "copy", "owner", "expected"),
    [
        pytest.param(JOB, {"metadata": {"uid": "1"}}, "1", False, id="of this run"),
        pytest.param(JOB, {"metadata": {"uid": "1"}}, "2", True, id="of another Job of that name"),
        pytest.param(JOB, None, "2", False, id="the Job cannot be read"),
        pytest.param(SET, {"metadata": {"uid": "1"}}, "2", False, id="of a Job of a JobSet"),
        pytest.param(GANG, {"metadata": {"uid": "1"}}, "2", False, id="of the group"),
    ],
)
def test_a_pod_of_another_run_is_left_out(job: JobId, copy: Raw | None, owner: str, expected: bool) -> None:
    annotations = {"kueue.x-k8s.io/pod-group-name": "wl"}
    pod = {"metadata": {"ownerReferences": [{"uid": owner}], "annotations": annotations}}
    assert is_of_another(job, "wl", copy, pod) is expected


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        pytest.param({"annotations": {"kueue.x-k8s.io/multikueue-origin-uid": "1"}}, "", id="the hub's"),
        pytest.param(
            {},
            "rename or delete Job default/t there, or the hub's: it is another one of the same name",
            id="somebody else's",
        ),
    ],
)
def test_whose_a_copy_is(metadata: Raw, problem: str) -> None:
    assert copy_problem(JOB, "wl", "1", {"metadata": metadata}) == problem


# -- which Pod, which container


def pod(name: str, phase: str = "Running", node: str = "n", **more: Any) -> Raw:
    """A Pod with one container that runs; `ready`: since when; `restarts`; `created`."""
    ready = more.get("ready", "")
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": ready}]
    statuses = [{"name": "c", "restartCount": more.get("restarts", 0), "ready": bool(ready)}]
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": more.get("created", "2026-01-01T00:00:00Z"),
        },
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": statuses},
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(pod("b"), pod("a", node=""), id="one on a node first"),
        pytest.param(pod("b"), pod("a", "Pending"), id="one that runs first"),
        pytest.param(pod("b", "Unknown"), pod("a", "Pending"), id="unknown before pending"),
        pytest.param(pod("b", ready="2026-01-02T00:00:00Z"), pod("a"), id="one that is ready first"),
        pytest.param(
            pod("b", ready="2026-01-02T00:00:00Z"),
            pod("a", ready="2026-01-03T00:00:00Z"),
            id="one that has been ready for longer first",
        ),
        pytest.param(pod("b", restarts=2), pod("a", restarts=1), id="one that restarted more often first"),
        pytest.param(pod("b"), pod("a", created="2026-02-01T00:00:00Z"), id="the older one first"),
    ],
)
def test_the_pod_that_kubectl_would_choose(first: Raw, second: Raw) -> None:
    assert first_pod([second, first]) is first
    assert first_pod([first, second]) is first


TWO: Raw = {
    "metadata": {"name": "p", "annotations": {}},
    "spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "a"}, {"name": "b"}]},
}


def test_the_container_that_is_meant() -> None:
    assert [container.name for container in containers_of(TWO)] == ["i", "a", "b"]
    chosen, note = chosen_container(TWO, "")
    assert (chosen.name, note) == ("a", 'Defaulted container "a" out of: a, b, i (init)')
    assert chosen_container(TWO, "i")[0].name == "i"
    annotated = TWO | {"metadata": {"annotations": {"kubectl.kubernetes.io/default-container": "b"}}}
    assert (chosen_container(annotated, "")[0].name, chosen_container(annotated, "")[1]) == ("b", "")
    with pytest.raises(NoSuchContainer, match="container x is not valid for pod p"):
        chosen_container(TWO, "x")


@pytest.mark.parametrize("broken", [{}, {"spec": []}, {"status": {"containerStatuses": "x"}}])
def test_a_malformed_pod_does_not_crash(broken: Raw) -> None:
    assert containers_of(broken) == []
    assert first_pod([broken]) is broken
    with pytest.raises(NoSuchContainer):
        chosen_container(broken, "")


# -- lines


def test_blocks_are_of_whole_lines_but_for_very_long_ones() -> None:
    lines = LineSplitter()
    assert [lines.add(part) for part in (b"a", b"b\nc\nd", b"\n")] == [b"", b"ab\nc\n", b"d\n"]
    assert (lines.add(b"e"), lines.end(), lines.end()) == (b"", b"e", b"")
    assert len(lines.add(b"x" * (BLOCK_BYTES + 1))) == BLOCK_BYTES + 1


def test_lines_that_come_again_are_left_out() -> None:
    lines = StampedLines(shown=False)
    assert lines.new(b"t1 a\nt2 b\nt2 c\n") == b"a\nb\nc\n"
    lines.reconnect()
    assert lines.new(b"t2 b\nt2 c\nt2 d\nt3 e\n") == b"d\ne\n"
    shown = StampedLines(shown=True)
    assert shown.new(b"t1 a\n") == b"t1 a\n"


def test_the_whole_second_comes_again() -> None:
    lines = StampedLines(shown=False)
    assert lines.new(b"t11 a\nt12 b\nt13 c\nt13 d\n") == b"a\nb\nc\nd\n"
    for new in (b"e\n", b"f\n"):
        lines.reconnect()
        assert lines.new(b"t11 a\nt12 b\nt13 c\n") == b"", "lost again before the last line"
        lines.reconnect()
        known = b"t11 a\nt12 b\nt13 c\nt13 d\n" + (b"t13 e\n" if new == b"f\n" else b"")
        assert lines.new(known + b"t13 " + new) == new


def test_lines_of_two_streams_that_are_out_of_order_come_once() -> None:
    lines = StampedLines(shown=False)
    lines.new(b"t12 a\nt11 b\n")
    lines.reconnect()
    assert lines.new(b"t12 a\nt11 b\nt11 c\n") == b"c\n"


def test_if_the_last_line_is_gone_all_that_are_later_are_new() -> None:
    lines = StampedLines(shown=False)
    lines.new(b"t1 a\n")
    lines.reconnect()
    assert lines.new(b"t2 b\nt2 c\n") == b"b\nc\n"


def test_only_a_line_feed_ends_a_line() -> None:
    lines = StampedLines(shown=False)
    assert lines.new(b"t1 10%\r20%\r30%\n") == b"10%\r20%\r30%\n"
    assert lines.last == "t1"
    lines.reconnect()
    assert lines.new(b"t1 10%\r20%\r30%\nt2 \x0bend\n") == b"\x0bend\n"


def test_a_part_of_a_long_line_has_no_time() -> None:
    lines = StampedLines(shown=False)
    assert [lines.new(part) for part in (b"t1 a", b"t9 b", b"c d\nt2 e\n")] == [b"a", b"t9 b", b"c d\ne\n"]
    assert lines.last == "t2"
    lines.reconnect()
    assert [lines.new(part) for part in (b"t2 e", b"e\n", b"t3 f\n")] == [b"", b"", b"f\n"]


def test_the_parameters_of_a_request() -> None:
    query = LogQuery(previous=True, timestamps=True, tail=0, since_seconds=5, limit_bytes=9)
    assert query.parameters("c", follow=True) == {
        "container": "c",
        "follow": "true",
        "previous": "true",
        "timestamps": "true",
        "tailLines": "0",
        "sinceSeconds": "5",
        "limitBytes": "9",
    }
    assert LogQuery(since_time="t").parameters("c") == {"container": "c", "sinceTime": "t"}


# -- the API server


PEMS = [trustme.CA().cert_pem.bytes().decode() for _ in range(2)]


@pytest.mark.parametrize(
    ("url", "pem", "known", "expected"),
    [
        pytest.param("https://API.example:443/", PEMS[0], PEMS[0], "", id="the same, written in another way"),
        pytest.param("https://api.example", PEMS[0], "".join(PEMS), "", id="one of two certificates"),
        pytest.param(
            "https://api.example", PEMS[0], PEMS[0].replace("\n", "\r\n"), "", id="other line breaks"
        ),
        pytest.param("https://api.example", "", "", "", id="a CA that everybody trusts"),
        pytest.param("https://api.example:6443", PEMS[0], PEMS[0], "address", id="another port"),
        pytest.param("https://api.example/x", PEMS[0], PEMS[0], "address", id="another path"),
        pytest.param("no url", PEMS[0], PEMS[0], "address", id="no URL"),
        pytest.param("https://api.example", PEMS[0], PEMS[1], "its CA is another one", id="another CA"),
        pytest.param("https://api.example", "", PEMS[0], "it names no CA, and the hub does", id="no CA"),
        pytest.param(
            "https://api.example",
            PEMS[0],
            "",
            "the hub does not name the CA of that server",
            id="no CA on the hub",
        ),
    ],
)
def test_a_context_leads_to_a_server_by_address_and_ca(url: str, pem: str, known: str, expected: str) -> None:
    assert mismatch(ClusterAccess(url, authority=pem), ApiServer("https://api.example", known)) == expected


def test_a_context_that_does_not_verify_the_server_leads_nowhere() -> None:
    access = ClusterAccess("https://api.example", insecure=True)
    why = "it does not verify the server (insecure-skip-tls-verify)"
    assert mismatch(access, ApiServer("https://api.example", PEMS[0])) == why


def test_the_base64_of_a_ca_may_be_broken() -> None:
    good = base64.b64encode(PEMS[0].encode()).decode()
    configs = [
        {"url": "https://a", "caBundle": "%"},
        {"url": "https://b", "caBundle": good},
        {"caBundle": good},
    ]
    found = servers_of_cluster({"spec": {"managedClusterClientConfigs": configs}})
    assert [(server.url, server.authority) for server in found] == [("https://a", ""), ("https://b", PEMS[0])]
