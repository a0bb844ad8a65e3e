"""The rules of the stand-in for Kueue for objects of both API versions: v1beta2 and v1beta1."""

from typing import Any

import pytest

from placement_lab.standins.kueue_rules import (
    ActiveCondition,
    KueueCache,
    WorkerCredentials,
    checks_of,
    judge_cluster,
    judge_queue,
)

NOTHING = KueueCache(configs={}, clusters={}, checks={}, flavors=(), queues={})
NO_CREDENTIALS = WorkerCredentials(
    secrets={}, profiles={}, cluster_profiles=False, access_providers=frozenset()
)
REFERENCE = {"locationType": "Secret", "location": "gone"}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"clusterSource": {"kubeConfig": REFERENCE}}, id="v1beta2"),
        pytest.param({"kubeConfig": REFERENCE}, id="v1beta1"),
    ],
)
def test_a_cluster_in_either_version(spec: dict[str, Any]) -> None:
    message = 'load client config failed: Secret "gone" not found'
    assert judge_cluster({"spec": spec}, NO_CREDENTIALS) == ActiveCondition(False, "BadKubeConfig", message)


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


def test_the_old_list_of_checks() -> None:
    message = "Can't admit new workloads: references missing AdmissionCheck(s): a."
    active = judge_queue({"spec": {"admissionChecks": ["a"]}}, NOTHING)
    assert active == ActiveCondition(False, "AdmissionCheckNotFound", message)


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
