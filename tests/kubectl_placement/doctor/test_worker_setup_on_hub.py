"""`doctor` names the clusters whose workers are not set up for jobs, and the command that fixes each."""

import json
from typing import Any

from tests.support import commands
from tests.support.bare_workers import bare_stage
from tests.support.driver import Controllers, Driver
from tests.support.jobs import label, soon

TEMPLATE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: team
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: ["nvidia.com/gpu"]
    flavors:
    - name: "{label.flavor}"
      resources:
      - name: nvidia.com/gpu
        nominalQuota: 1
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata:
  name: "{label.flavor}"
"""
NO_LABEL = "in queues.yaml of ConfigMap kueue-system/queues, line 11: give c2 the label flavor: it has none"


def examined(controllers: Controllers) -> dict[str, tuple[str, str, str]]:
    """Cluster → check, message and fix of the finding about it."""
    found = findings(controllers)
    return {
        cluster: (one["check"], one["message"], one["fix"])
        for one in found
        for cluster in CLUSTERS
        if cluster in one["message"]
    }


CLUSTERS = ("c1", "c2", "c3", "c4")
RELEASES = "https://github.com/kubernetes-sigs/kueue/releases/download"
LEFT_OUT = "cluster {} of Placement p is left out: "
WRONG = {
    "c2": (
        "worker-setup",
        LEFT_OUT.format("c2") + "wait, or see that OCM's work agent runs there: it has not reported on "
        "ManifestWork c2/placement-ac-queues yet",
        "kubectl --context c2 get pods -n open-cluster-management-agent",
    ),
    "c3": (
        "worker-setup",
        LEFT_OUT.format("c3") + "install Kueue there: it serves no ResourceFlavor.kueue.x-k8s.io (Failed to "
        'apply manifest: the server doesn\'t have a resource type "ResourceFlavor")',
        f"kubectl --context c3 apply --server-side -f {RELEASES}/v0.20.6/manifests.yaml",
    ),
    "c4": (
        "worker-setup",
        "cluster c4 of Placement p: LocalQueue team-a/team on the worker stays as somebody else has set it",
        "kubectl --context c4 get localqueue -n team-a team -o yaml --show-managed-fields",
    ),
}


def test_doctor_names_each_cluster_with_its_fix_and_others_go_on(
    admin: Driver, controllers: Controllers
) -> None:
    with bare_stage(admin, controllers, *CLUSTERS, start=False) as bare:
        bare.agents.pause("c2")
        bare.without_kueue("c3")
        bare.by_hand("c4", "team", "team-a", "their-queue")
        controllers.start(worker_setup="manifestwork", leader_elect=True)
        bare.stage.until_listed("c1", "c4")
        soon(lambda: examined(controllers), WRONG)
        remark = bare.stage.remark()
        assert "c2 (wait, or see that OCM's work agent" in remark
        assert ", c3; c4: LocalQueue team-a/team on the worker" in remark


def test_a_label_for_the_template_that_is_missing(admin: Driver, controllers: Controllers) -> None:
    with bare_stage(admin, controllers, "c1", "c2", start=False) as bare:
        label(bare.admin, "c1", flavor="default-flavor")
        bare.template(TEMPLATE)
        controllers.start(worker_setup="manifestwork", leader_elect=True, worker_setup_template="queues")
        bare.stage.until_listed("c1")
        soon(lambda: NO_LABEL in bare.stage.remark())
        message, fix = LEFT_OUT.format("c2") + NO_LABEL, "kubectl edit configmap -n kueue-system queues"
        soon(lambda: examined(controllers), {"c2": ("worker-setup", message, fix)})


def test_doctor_warns_of_an_older_kueue_by_the_image_that_ocm_reports(
    admin: Driver, controllers: Controllers
) -> None:
    with bare_stage(admin, controllers, "c1", "c2", start=False) as bare:
        for cluster, release in (("c1", "0.20.6"), ("c2", "0.19.2")):
            bare.install_kueue(cluster, release)
        controllers.start(worker_setup="manifestwork", leader_elect=True, kueue_version="0.20.6")
        bare.stage.until_listed("c1", "c2")
        soon(lambda: bare.reported("c2", "Deployment", "kueue-controller-manager").get("image"))
        [found] = [one for one in findings(controllers) if one["check"] == "worker-setup"]
        assert found["message"] == "c2: Kueue 0.19.2 there is older than 0.20.6 on the hub"
        assert found["fix"].startswith("kubectl --context c2 apply --server-side -f ")


def findings(controllers: Controllers) -> list[Any]:
    done = commands.run("doctor", "--kubeconfig", str(controllers.kubeconfig), "-ojson")
    return [one for one in json.loads(done.stdout)["findings"] if one["level"] in ("WARN", "FAIL")]
