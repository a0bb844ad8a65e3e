"""`plan` with the set-up of workers: what is put onto them, and what the sums of quota become."""

from dataclasses import replace
from typing import Any

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.plan_report import PlanReport, SetupChange, SetupQuota
from kubectl_placement.plan.what_if import what_if
from kubectl_placement.plan.worker_setups import as_reported
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import CONFIG_MAP, MANIFEST_WORK
from tests.support.builders import Raw
from tests.support.whatif import sample, story_2, the_plan

GPU = "nvidia.com/gpu"
STORY_2, STORY_3 = "placement-demo2-1.yaml", "placement-demo2-2.yaml"


def hub(*more: Raw, reported: bool = True, templates: tuple[Raw, ...] = (), **settings: Any) -> HubView:
    """Story 2 on a hub that sets workers up; `reported`: it has set up cluster2 and cluster3."""
    dump = story_2(*more).dump
    objects = {**dump.objects, MANIFEST_WORK: (), CONFIG_MAP: templates}
    served = {**dump.served, MANIFEST_WORK: MANIFEST_WORK.at("v1"), CONFIG_MAP: CONFIG_MAP.at("v1")}
    view = HubView(
        replace(dump, objects=objects, served=served),
        Settings(worker_setup="manifestwork", **settings),
        story_2().now,
        templates_read=True,
    )
    return view.with_changes(as_reported(view, ("cluster2", "cluster3")))[0] if reported else view


def objects(change: SetupChange) -> list[tuple[str, str, str]]:
    return [(one.verb, one.kind, one.name) for one in change.objects]


def gpus(answer: PlanReport) -> list[tuple[str, str | None, str, int]]:
    """On the hub, on workers before and after, and on how many."""
    return [(one.on_hub, one.before, one.after, one.workers) for one in answer.quota if one.resource == GPU]


NEW = [
    ("add", "Namespace", "default"),
    ("add", "ResourceFlavor", "default-flavor-demo2"),
    ("add", "ClusterQueue", "cluster-queue-demo2"),
    ("add", "LocalQueue", "user-queue-demo2"),
]


def test_workers_that_have_nothing_yet_get_everything() -> None:
    answer = what_if(hub(reported=False), sample(STORY_2))
    assert [(one.cluster, one.verb) for one in answer.setups] == [
        ("cluster2", "create"),
        ("cluster3", "create"),
    ]
    assert objects(answer.setups[0]) == NEW
    assert gpus(answer) == [("3", None, "6", 2)]
    assert the_plan(answer).order == ("cluster2", "cluster3")  # they count as ready with it
    assert answer.changed


def test_the_quota_of_a_new_queue_is_in_each_flavor_and_resource() -> None:
    [_, cluster3] = what_if(hub(reported=False), sample(STORY_2)).setups
    flavor = "default-flavor-demo2"
    assert cluster3.objects[2].quota == (
        SetupQuota(flavor, "cpu", None, "14400m"),
        SetupQuota(flavor, "memory", None, "58982Mi"),
        SetupQuota(flavor, GPU, None, "3"),
    )


def test_a_cluster_that_joins_counts_as_ready_with_its_queues() -> None:
    [cluster1] = [
        one
        for one in sample("fleet")
        if one["metadata"]["name"] == "cluster1" and one["kind"] == "ManagedCluster"
    ]
    cluster1["metadata"]["labels"]["accelerator"] = "nvidia-tesla-t4"
    answer = what_if(hub(), [cluster1])
    [change] = answer.setups
    assert (change.cluster, change.verb, objects(change)) == ("cluster1", "create", NEW)
    assert the_plan(answer).added == ("cluster1",)
    assert gpus(answer) == []
    assert [one.after for one in answer.quota if one.resource == "cpu"] == ["43200m"]


def test_a_cluster_that_leaves_loses_its_local_queues() -> None:
    answer = what_if(hub(), sample(STORY_3))
    [change] = answer.setups
    assert (change.cluster, change.verb) == ("cluster2", "delete")
    assert objects(change) == [("remove", "LocalQueue", "user-queue-demo2")]
    assert gpus(answer) == [("3", "6", "3", 1)]


def test_nothing_changes_on_workers_that_have_it_all() -> None:
    answer = what_if(hub(), sample(STORY_2))
    assert (answer.setups, answer.quota, answer.warnings, answer.changed) == ((), (), (), False)


def cluster_queue(gpus: str) -> Raw:
    """The hub's ClusterQueue with another quota."""
    [queue] = [one for one in sample("multikueue-setup-demo2.yaml") if one["kind"] == "ClusterQueue"]
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][2]["nominalQuota"] = gpus
    return queue


def test_more_quota_on_the_hub_than_on_its_workers_is_reported_with_the_fix() -> None:
    [total] = what_if(hub(), [cluster_queue("7")]).quota
    assert (total.on_hub, total.before, total.after) == ("7", "6", "6")
    assert "has 7 of nvidia.com/gpu, more than the 6 on 2 listed workers" in total.problem
    assert total.fix.startswith("kubectl patch clusterqueue cluster-queue-demo2 ")


def template(gpus: str) -> Raw:
    text = f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: cluster-queue-demo2
spec:
  namespaceSelector: {{}}
  resourceGroups:
  - coveredResources: [{GPU}]
    flavors:
    - name: default-flavor-demo2
      resources:
      - name: {GPU}
        nominalQuota: "{gpus}"
"""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "queues", "namespace": "kueue-system"},
        "data": {"queues.yaml": text},
    }


def test_another_template_changes_the_quota_everywhere() -> None:
    before = hub(templates=(template("{allocatable.nvidia.com/gpu}"),), worker_setup_template="queues")
    answer = what_if(before, [template("{allocatable.nvidia.com/gpu * 0.4}")])
    assert [(one.cluster, objects(one)) for one in answer.setups] == [
        (cluster, [("change", "ClusterQueue", "cluster-queue-demo2")]) for cluster in ("cluster2", "cluster3")
    ]
    assert answer.setups[0].objects[0].quota == (SetupQuota("default-flavor-demo2", GPU, "3", "1"),)
    assert gpus(answer) == [("3", "6", "2", 2)]


def test_a_wrong_template_changes_nothing_and_is_named() -> None:
    before = hub(templates=(template("{allocatable.nvidia.com/gpu}"),), worker_setup_template="queues")
    answer = what_if(before, [template("{allocatable.nvidia.com/gpu / 2}")])
    assert answer.setups == ()
    [warning] = answer.warnings
    where = "in queues.yaml of ConfigMap kueue-system/queues, line 14: "
    assert warning.startswith(f"cluster2, cluster3: nothing changes there: {where}")


def test_a_template_that_may_not_be_read_is_reported() -> None:
    before = replace(hub(worker_setup_template="queues"), templates_read=False)
    answer = what_if(before, sample(STORY_2))
    assert answer.setups == ()
    assert answer.warnings == (
        "what is put onto workers is unknown: ConfigMap kueue-system/queues: it was not read",
    )


def test_without_the_set_up_flavors_are_passed_over() -> None:
    [flavor] = [one for one in sample("multikueue-setup-demo2.yaml") if one["kind"] == "ResourceFlavor"]
    answer = what_if(replace(hub(), settings=Settings()), [flavor])
    assert (answer.setups, answer.objects) == ((), ())
    assert answer.passed_over == ("ResourceFlavor default-flavor-demo2: plan does not consider this kind",)
