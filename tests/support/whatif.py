"""Dumps of a hub for the tests of `plan`: the samples with decisions and lists, and objects of the test."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.plan_report import PlacementPlan, PlanReport
from kubectl_placement.plan.reschedule import decisions_as_changes
from kubectl_placement.readers.manifests import read_manifests
from placement_ac.config.settings import Settings
from placement_ac.core.api import constants
from placement_ac.core.api.constants import GENERATED
from tests.support import builders
from tests.support.builders import Raw

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
DEMO2 = "placement-demo2"
NOW = datetime(2026, 8, 1, 12, 0, 0, tzinfo=UTC)


def sample(*files: str) -> list[Raw]:
    return read_manifests(str(SAMPLES / file) for file in files)


def stored(obj: Raw) -> Raw:
    """The object as an API server stores it."""
    name = obj["metadata"]["name"]
    fresh = {"uid": f"{obj['kind']}/{name}", "resourceVersion": "1", "generation": 1}
    return obj | {"metadata": fresh | obj["metadata"]}


def view_of(*objects: Raw | Iterable[Raw], **settings: Any) -> HubView:
    raws = [raw for part in objects for raw in ([part] if isinstance(part, dict) else part)]
    return HubView(dump_of(raws), Settings(**settings), NOW)


def ocm_decides(view: HubView) -> HubView:
    """The hub after OCM has decided each Placement."""
    placements = view.dump.by_key(constants.PLACEMENT)
    return view.with_changes(
        decisions_as_changes(view, {key: view.schedule(one) for key, one in placements.items()})
    )[0]


def story_2(*more: Raw | Iterable[Raw]) -> HubView:
    """The end of Story 2: cluster2 and cluster3 are decided and listed; cluster3 has more free GPUs."""
    fleet = [one for one in sample("fleet") if one["kind"] not in ("Secret", "AddOnPlacementScore")]
    for one in fleet:
        if one["kind"] == "ManagedCluster" and one["metadata"]["name"] != "cluster1":
            one["metadata"]["labels"]["accelerator"] = "nvidia-tesla-t4"
    setup = sample("multikueue-setup-demo2.yaml", "placement-demo2-1.yaml")
    checks = (DEMO2, "multikueue-demo2")
    condition = builders.condition(message=GENERATED)
    for one in setup:
        if one["kind"] == "AdmissionCheck" and one["metadata"]["name"] == DEMO2:
            one["status"] = {"conditions": [condition]}
    free = {"cluster2": 30, "cluster3": 70}
    gpus = [builders.scores(c, "resource-usage-score", gpuClusterAvailable=free[c]) for c in free]
    our_objects = builders.our_objects("cluster2", "cluster3", of=DEMO2, owners=checks)
    ways = builders.secrets("cluster1", "cluster2", "cluster3")
    return ocm_decides(view_of(map(stored, fleet), map(stored, setup), gpus, our_objects, ways, *more))


def job(name: str, cluster: str, *, gpus: int = 1, nominated: Sequence[str] = (), pods: int = 1) -> Raw:
    """A Workload of Story 2 that runs on a managed cluster or waits on several."""
    on = f"{DEMO2}-{cluster}" if cluster else ""
    where = [f"{DEMO2}-{one}" for one in nominated]
    state = "Ready" if cluster else "Pending"
    one = builders.workload(name, cluster=on, nominated=where, **{DEMO2: "Ready", "multikueue-demo2": state})
    container = {"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    pod_set = {"count": pods, "template": {"spec": {"containers": [container]}}}
    one["spec"] |= {"queueName": "user-queue-demo2", "podSets": [pod_set]}
    return one


def the_plan(answer: PlanReport) -> PlacementPlan:
    (entry,) = answer.entries
    return entry.plan


def as_list(dump: Dump) -> str:
    """The dump as `kubectl get -o json` prints it."""
    items = [obj for objects in dump.objects.values() for obj in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def bound(name: str, namespace: str = "kueue-system") -> list[Raw]:
    head = {"apiVersion": "cluster.open-cluster-management.io/v1beta2"}
    return [
        head | {"kind": "ManagedClusterSet", "metadata": {"name": name}, "spec": {}},
        head
        | {
            "kind": "ManagedClusterSetBinding",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterSet": name},
        },
    ]


def manifest(name: str = "p", **spec: Any) -> Raw:
    head = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement"}
    return head | {"metadata": {"name": name}, "spec": spec}


def named(name: str, namespace: str = "kueue-system") -> Raw:
    return {"name": name, "namespace": namespace}
