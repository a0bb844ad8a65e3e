"""The set-up of workers in the cache: which reports of OCM's work agent concern a Placement."""

from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.core.api import constants
from placement_ac.core.inputs.state import HubFacts, Key, Since, SinceKind
from placement_ac.core.inputs.worker_setup import WorkerSetupPolicy
from placement_ac.core.plan.diff import Apply
from placement_ac.core.worker_setup.planning import plan_worker_setup
from tests.support.builders import (
    NOW,
    SHARED,
    Raw,
    an,
    check,
    decision,
    managed_cluster,
    multikueue_check,
    our_cluster,
    our_config,
)

QUEUE = {"kind": "LocalQueue", "metadata": {"name": "team", "namespace": "a"}, "spec": {"clusterQueue": "q"}}
OURS = [{"manager": "placement-ac", "operation": "Apply", "fieldsV1": {}}]
CLUSTER, PLACEMENT = Key("cluster", "c1"), Key("placement", "p")


def work(version: str, *, applied: str = "True", reserving: int = 0, **spec: Any) -> Raw:
    """A ManifestWork of c1, with what OCM says of the LocalQueue."""
    values = [{"name": "reserving", "fieldValue": {"type": "Integer", "integer": reserving}}]
    conditions = [{"type": "Applied", "status": applied}, {"type": "Available", "status": "True"}]
    meta = {"kind": "LocalQueue", "namespace": "a", "name": "team"}
    manifest = {"resourceMeta": meta, "conditions": conditions, "statusFeedback": {"values": values}}
    body = an(
        constants.MANIFEST_WORK,
        constants.SETUP_NAME,
        "c1",
        spec={"workload": {"manifests": [QUEUE]}} | spec,
        status={"resourceStatus": {"manifests": [manifest]}},
    )
    body["metadata"] |= {"resourceVersion": version, "managedFields": OURS}
    return body


def queues() -> list[Raw]:
    checks = {"admissionChecks": [{"name": "check"}, {"name": "mk"}]}
    return [
        an(constants.CLUSTER_QUEUE, "q", spec={"admissionChecksStrategy": checks}),
        an(constants.LOCAL_QUEUE, "team", "a", spec={"clusterQueue": "q"}),
    ]


@pytest.mark.parametrize(
    ("report", "touched"),
    [
        pytest.param(work("2", reserving=3), {CLUSTER}, id="how much is in use"),
        pytest.param(work("2", applied="False"), {CLUSTER, PLACEMENT}, id="it is not ready any more"),
        pytest.param(work("2", deleteOption={}), {CLUSTER, PLACEMENT}, id="another spec"),
    ],
)
def test_a_report_of_what_is_in_use_on_a_worker_concerns_no_placement(report: Raw, touched: set[Key]) -> None:
    cache = Cache(setup=WorkerSetupPolicy(enabled=True))
    there = [check(), multikueue_check(), decision("c1"), managed_cluster("c1"), *queues(), work("1")]
    for kind in cache.kinds:
        cache.replace(kind, [raw for raw in there if raw["kind"] == kind.kind], "1")
    assert cache.setups.state("c1").problem == ""
    assert cache.put(constants.MANIFEST_WORK, report) == touched


def draining(hub: HubFacts, name: str) -> Cache:
    """A cache with a cluster that is listed, and that no Placement selects any more."""
    cache = Cache(hub, setup=WorkerSetupPolicy(enabled=True))
    listed = [our_config(name), our_cluster("c1", None if hub.shared else "p")]
    there = [check(), multikueue_check(), decision(), managed_cluster("c1"), *listed, *queues(), work("1")]
    for kind in cache.kinds:
        cache.replace(kind, [raw for raw in there if raw["kind"] == kind.kind], "1")
    return cache


@pytest.mark.parametrize(("hub", "name"), [(HubFacts(), "p-c1"), (SHARED, "c1")], ids=["own", "shared"])
def test_a_cluster_that_drains_gets_what_changes_on_the_hub(hub: HubFacts, name: str) -> None:
    cache = draining(hub, name)
    more = an(constants.LOCAL_QUEUE, "more", "a", version=2, spec={"clusterQueue": "q"})
    assert CLUSTER in cache.put(constants.LOCAL_QUEUE, more)
    settled = {Since(SinceKind.SETUP_WRITTEN, "1"): 3.0}
    [[write]] = plan_worker_setup(cache.setup_inputs("c1", NOW, settled)).phases
    assert isinstance(write, Apply)
    manifests = write.body["spec"]["workload"]["manifests"]
    assert ("LocalQueue", "more") in [(one["kind"], one["metadata"]["name"]) for one in manifests]
    annotations = {constants.ANNOTATION_TEMPLATE: "queues"}
    assert CLUSTER in cache.put(constants.ADMISSION_CHECK, check(version=2, annotations=annotations))
    assert {owner["name"] for owner in write.body["metadata"]["ownerReferences"]} == {"check", "mk"}
