"""
The rules of the stand-in for Kueue: the conditions of clusters, checks and queues, in v1beta2 and v1beta1.

By Kueue's code, where nothing is recorded: pkg/cache/scheduler/clusterqueue.go, pkg/util/admissioncheck.
"""

from typing import Any

import pytest

from placement_ac.core.api.constants import KUEUE, MULTIKUEUE_CONTROLLER
from placement_lab.standins.kueue_rules import (
    ActiveCondition,
    KueueCache,
    WorkerCredentials,
    checks_of,
    judge_check,
    judge_cluster,
    judge_local_queue,
    judge_queue,
)

ACTIVE = {"status": {"conditions": [{"type": "Active", "status": "True"}]}}
CACHE = KueueCache(
    configs={"mkd": {"spec": {"clusters": ["gone-1", "no-1", "gone-2", "no-2"]}}},
    clusters={"no-1": {}, "no-2": {}},
    checks={"acd": {"spec": {"controllerName": MULTIKUEUE_CONTROLLER}}},
    flavors=("default",),
    queues={"works": ACTIVE, "waits": {"status": {}}},
)
NO_CREDENTIALS = WorkerCredentials(
    secrets={}, profiles={}, cluster_profiles=False, access_providers=frozenset()
)
GONE = {"locationType": "Secret", "location": "gone"}
GOOD_PARAMETERS = {"apiGroup": KUEUE, "kind": "MultiKueueConfig", "name": "mkd"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"clusterSource": {"kubeConfig": GONE}}, 'Secret "gone" not found', id="v1beta2"),
        pytest.param({"kubeConfig": GONE}, 'Secret "gone" not found', id="v1beta1"),
        pytest.param(
            {"kubeConfig": {"locationType": "Path", "location": "/tmp/k"}},
            'kubeconfig path is not under the allowed prefix: "/tmp/k" is not under'
            ' "/etc/multikueue/kubeconfigs"',
            id="a path",
        ),
    ],
)
def test_a_cluster_without_credentials(spec: dict[str, Any], message: str) -> None:
    found = judge_cluster({"spec": spec}, NO_CREDENTIALS)
    assert found == ActiveCondition(False, "BadKubeConfig", f"load client config failed: {message}")


def judged(field: str, server: str) -> ActiveCondition:
    """The condition of a MultiKueueCluster whose ClusterProfile offers this server in this field."""
    provider = {"name": "ocm", "cluster": {"server": server}}
    found = WorkerCredentials(
        secrets={},
        profiles={"p": {"status": {field: [{"name": "other"}, provider]}}},
        cluster_profiles=True,
        access_providers=frozenset({"ocm"}),
    )
    return judge_cluster({"spec": {"clusterSource": {"clusterProfileRef": {"name": "p"}}}}, found)


@pytest.mark.parametrize("field", ["accessProviders", "credentialProviders"])
def test_access_providers_of_both_generations(field: str) -> None:
    assert judged(field, "https://worker.example:6443") == ActiveCondition(True, "Active", "Connected")


@pytest.mark.parametrize("server", ["", "https://un_der.example", "https://"])
def test_an_access_provider_that_leads_to_no_host(server: str) -> None:
    message = "load client config failed: untrusted server endpoint"
    assert judged("accessProviders", server) == ActiveCondition(False, "BadRestConfig", message)


@pytest.mark.parametrize(
    ("parameters", "reason", "message"),
    [
        pytest.param(None, "BadConfig", "missing parameters reference", id="none"),
        pytest.param(
            GOOD_PARAMETERS | {"apiGroup": "example.com"},
            "BadConfig",
            'wrong group "example.com", expecting "kueue.x-k8s.io": bad parameters reference',
            id="group",
        ),
        pytest.param(
            GOOD_PARAMETERS | {"kind": "Placement"},
            "BadConfig",
            'wrong kind "Placement", expecting "MultiKueueConfig": bad parameters reference',
            id="kind",
        ),
        pytest.param(
            GOOD_PARAMETERS,
            "NoUsableClusters",
            "Missing clusters: [gone-1 gone-2], Inactive clusters: [no-1 no-2]",
            id="clusters",
        ),
    ],
)
def test_a_check_that_is_not_active(parameters: Any, reason: str, message: str) -> None:
    begin = "Cannot load the AdmissionChecks parameters: " if reason == "BadConfig" else ""
    found = judge_check({"spec": {"parameters": parameters}}, CACHE)
    assert found == ActiveCondition(False, reason, begin + message)


@pytest.mark.parametrize(
    ("spec", "listed"),
    [
        pytest.param(
            {"admissionChecksStrategy": {"admissionChecks": [{"name": "b"}, {"name": "a"}]}}, ["a", "b"]
        ),
        pytest.param({"admissionChecks": ["b", "a"]}, ["a", "b"]),
        pytest.param({"admissionChecksStrategy": {}}, []),
        pytest.param({}, []),
    ],
    ids=["v1beta2", "v1beta1", "empty strategy", "none"],
)
def test_the_checks_of_a_queue_in_either_version(spec: dict[str, Any], listed: list[str]) -> None:
    assert checks_of({"spec": spec}) == listed


def test_a_queue_lists_all_findings_and_the_first_is_the_reason() -> None:
    groups = [{"flavors": [{"name": "default"}, {"name": "gone"}]}]
    spec = {"admissionChecks": ["nosuch", "acd"], "resourceGroups": groups, "stopPolicy": "Hold"}
    assert judge_queue({"spec": spec}, CACHE) == ActiveCondition(
        False,
        "Stopped",
        "Can't admit new workloads: is stopped, references missing ResourceFlavor(s): gone,"
        " references missing AdmissionCheck(s): nosuch, references inactive AdmissionCheck(s): acd.",
    )


@pytest.mark.parametrize(
    ("queue", "active", "reason"),
    [
        ("works", True, "Ready"),
        ("waits", False, "ClusterQueueIsInactive"),
        ("gone", False, "ClusterQueueDoesNotExist"),
    ],
)
def test_a_local_queue(queue: str, active: bool, reason: str) -> None:
    found = judge_local_queue({"spec": {"clusterQueue": queue}}, CACHE)
    assert (found.active, found.reason) == (active, reason)
