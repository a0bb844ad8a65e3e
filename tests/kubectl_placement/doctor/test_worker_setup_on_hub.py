"""`doctor` names the clusters whose workers are not set up for jobs, and the command that fixes each."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import commands
from tests.support.bare_workers import BareStage, bare_stage
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
"""
NO_LABEL = "in queues.yaml of ConfigMap kueue-system/queues, line 11: give c2 the label flavor: it has none"


@dataclass(frozen=True)
class Break:
    """`remark`: a part of the condition that says it; `messages` and `fix`: those of doctor about it."""

    id: str
    how: Callable[[BareStage], Any]
    remark: str
    message: str
    fix: str
    listed: tuple[str, ...] = ("c1",)
    template: str = ""


BREAKS = (
    Break(
        "the work agent is away",
        lambda bare: bare.agents.pause("c2"),
        "wait, or see that OCM's work agent runs there",
        "cluster c2 of Placement p is left out: wait, or see that OCM's work agent runs there: it has not"
        " reported on ManifestWork c2/placement-ac-queues yet",
        "kubectl --context c2 get pods -n open-cluster-management-agent",
    ),
    Break(
        "Kueue is missing",
        lambda bare: bare.without_kueue("c2"),
        "install Kueue there",
        "cluster c2 of Placement p is left out: install Kueue there: it serves no"
        " ResourceFlavor.kueue.x-k8s.io (Failed to apply manifest: the server doesn't have a resource type"
        ' "ResourceFlavor")',
        "kubectl --context c2 apply --server-side -f"
        " https://github.com/kubernetes-sigs/kueue/releases/download/v0.20.6/manifests.yaml",
    ),
    Break(
        "a label for the template is missing",
        lambda bare: label(bare.admin, "c1", flavor="default-flavor"),
        NO_LABEL,
        f"cluster c2 of Placement p is left out: {NO_LABEL}",
        "kubectl edit configmap -n kueue-system queues",
        template=TEMPLATE,
    ),
    Break(
        "somebody else has set a queue",
        lambda bare: bare.by_hand("c2", "team", "team-a", "their-queue"),
        "stays as somebody else has set it",
        "cluster c2 of Placement p: LocalQueue team-a/team on the worker stays as somebody else has set it",
        "kubectl --context c2 get localqueue -n team-a team -o yaml --show-managed-fields",
        listed=("c1", "c2"),
    ),
)


@pytest.mark.parametrize("broken", BREAKS, ids=lambda one: one.id)
def test_doctor_names_the_cluster_and_the_fix_and_others_go_on(
    broken: Break, admin: Driver, controllers: Controllers
) -> None:
    with bare_stage(admin, controllers, "c1", "c2", start=False) as bare:
        broken.how(bare)
        settings = {"worker_setup_template": "queues"} if broken.template else {}
        if broken.template:
            bare.template(broken.template)
        controllers.start(worker_setup="manifestwork", leader_elect=True, **settings)
        bare.stage.until_listed(*broken.listed)
        soon(lambda: broken.remark in bare.stage.remark())

        def of_c2() -> list[Any]:
            return [one for one in findings(controllers) if "c2" in one["message"]]

        soon(lambda: [(one["check"], one["fix"]) for one in of_c2()], [("worker-setup", broken.fix)])
        assert of_c2()[0]["message"].startswith(broken.message)


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
    return [one for one in json.loads(done.stdout)["findings"] if one["level"] != "OK"]
