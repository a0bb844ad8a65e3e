"""Broken controllers, and remains of the Go kueue-addon that are in its way."""

import copy
from typing import Final

from tests.kubectl_placement.doctor.broken_setups import (
    CHECK,
    CONTROLLER,
    DEPLOYED,
    FAIL,
    LEASE,
    LOGS,
    WARN,
    Break,
    Objects,
    add,
    both,
    put,
    unlisted,
    without,
    worker,
)
from tests.support.healthy import NS, Key

NOT_RUNNING: Final = (
    "no controller runs ({}), and ClusterQueue cluster-queue-demo1 lists our check: its jobs wait"
)
NO_LEASE: Final = f"none holds Lease {NS}/placement-ac"


MAY_NOT: Final = "ServiceAccount placement-ac-system/placement-ac, the controller's, may not"
NO_RIGHTS: Final = (
    f"{MAY_NOT} list, watch admissionchecks.kueue.x-k8s.io; patch admissionchecks/status.kueue.x-k8s.io; "
    "list, watch, create, patch, delete multikueueconfigs.kueue.x-k8s.io; "
    "list, watch, create, patch, delete multikueueclusters.kueue.x-k8s.io; "
    "list, watch workloads.kueue.x-k8s.io; patch workloads/status.kueue.x-k8s.io"
)
BINDING: Final[Key] = ("ClusterRoleBinding", "", "placement-ac")


def one_right_less(objects: Objects) -> None:
    rules = objects["ClusterRole", "", "placement-ac"]["rules"]
    rules[:] = [rule for rule in rules if rule["resources"] != ["workloads/status"]]


def second_controller(objects: Objects) -> None:
    other = copy.deepcopy(objects[CONTROLLER])
    other["metadata"]["namespace"] = "team"
    objects["Deployment", "team", "placement-ac"] = other


def helm_release(objects: Objects) -> None:
    """Name the objects as the chart does for a release `eu`, and take its ClusterRoleBinding away."""
    names = {"app.kubernetes.io/name": "placement-ac", "app.kubernetes.io/instance": "eu"}
    for kind, namespace in (("Deployment", "placement-ac-system"), ("ClusterRole", "")):
        one = objects.pop((kind, namespace, "placement-ac"))
        labels = names | {"app.kubernetes.io/managed-by": "Helm"}
        one["metadata"] |= {"name": "eu-placement-ac", "labels": labels}
        objects[kind, namespace, "eu-placement-ac"] = one
    del objects[BINDING]


ADDON: Final = {
    "replicas": 1,
    "selector": {"matchLabels": {"app": "addon"}},
    "template": {
        "metadata": {"labels": {"app": "addon"}},
        "spec": {"containers": [{"name": "addon", "image": "addon"}]},
    },
}
"""As an API server accepts the spec of a Deployment."""

CONTROLLERS: Final = (
    Break(
        "the controller is not installed",
        without(CONTROLLER, LEASE),
        "controller",
        FAIL,
        NOT_RUNNING.format(NO_LEASE),
        "kubectl apply -k OVERLAY  # your own overlay, or the chart: docs/install.md",
    ),
    Break(
        "the controller is scaled to 0",
        both(put(CONTROLLER, "spec", "replicas", 0), put(CONTROLLER, "status", {}), without(LEASE)),
        "controller",
        FAIL,
        NOT_RUNNING.format(NO_LEASE),
        f"kubectl scale {DEPLOYED} --replicas=2",
    ),
    Break(
        "no Pod of the controller's is ready, and its Lease has ended",
        both(put(CONTROLLER, "status", {}), put(LEASE, "spec", "renewTime", "2026-08-01T11:58:00Z")),
        "controller",
        FAIL,
        NOT_RUNNING.format(
            f"placement-ac-0_1 has not renewed Lease {NS}/placement-ac since 2026-08-01T11:58:00Z"
        ),
        f"kubectl rollout restart {DEPLOYED} && kubectl rollout status {DEPLOYED}",
    ),
    Break(
        "no controller runs, and nobody needs one",
        both(without(CONTROLLER, LEASE), unlisted("placement-demo1"), unlisted("multikueue-demo1")),
        "controller",
        WARN,
        f"no controller runs ({NO_LEASE}), and no ClusterQueue needs it",
        "kubectl get deployments -A -l app.kubernetes.io/name=placement-ac",
    ),
    Break(
        "nobody leads",
        put(LEASE, "spec", "holderIdentity", ""),
        "controller",
        WARN,
        f"Deployment placement-ac-system/placement-ac has 2 ready, but none holds Lease "
        f"{NS}/placement-ac since 2026-08-01T11:59:58Z",
        LOGS,
    ),
    Break(
        "there are two controllers",
        second_controller,
        "one-controller",
        WARN,
        "Deployment team/placement-ac also runs the controller, beside "
        "placement-ac-system/placement-ac: keep one",
        "kubectl scale -n team deployment/placement-ac --replicas=0",
        runs=True,
    ),
    Break(
        "the controller has no rights",
        without(("ClusterRoleBinding", "", "placement-ac")),
        "controller-rights",
        FAIL,
        NO_RIGHTS,
        "kubectl create clusterrolebinding placement-ac --clusterrole=placement-ac "
        "--serviceaccount=placement-ac-system:placement-ac",
        runs=True,
    ),
    Break(
        "the binding of the controller is for another account",
        put(BINDING, "subjects", 0, "namespace", "elsewhere"),
        "controller-rights",
        FAIL,
        NO_RIGHTS,
        "kubectl create clusterrolebinding placement-ac-placement-ac-system --clusterrole=placement-ac "
        "--serviceaccount=placement-ac-system:placement-ac",
    ),
    Break(
        "the controller of a Helm release of another name has no rights",
        helm_release,
        "controller-rights",
        FAIL,
        NO_RIGHTS,
        "kubectl create clusterrolebinding eu-placement-ac --clusterrole=eu-placement-ac "
        "--serviceaccount=placement-ac-system:placement-ac",
        runs=True,
    ),
    Break(
        "a Helm release has no ClusterRole",
        both(helm_release, without(("ClusterRole", "", "eu-placement-ac"))),
        "controller-rights",
        FAIL,
        NO_RIGHTS,
        "helm upgrade eu charts/placement-ac -n placement-ac-system --reuse-values",
    ),
    Break(
        "the controller may not write one thing",
        one_right_less,
        "controller-rights",
        FAIL,
        f"{MAY_NOT} patch workloads/status.kueue.x-k8s.io",
        "kubectl apply -f config/rbac/clusterrole.yaml",
    ),
    Break(
        "the Go kueue-addon runs",
        add(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "kueue-addon-controller", "namespace": "ocm"},
                "spec": ADDON,
            }
        ),
        "kueue-addon",
        FAIL,
        "Deployment ocm/kueue-addon-controller, the Go kueue-addon, answers the same checks: "
        "each controller undoes the other's writes",
        "kubectl scale deployment -n ocm kueue-addon-controller --replicas=0",
        runs=True,
    ),
    Break(
        "an account of the Go kueue-addon's is left",
        add(
            {
                "apiVersion": "authentication.open-cluster-management.io/v1beta1",
                "kind": "ManagedServiceAccount",
                "metadata": {"name": "multikueue", "namespace": "cluster1"},
                "spec": {"rotation": {}},
            }
        ),
        "kueue-addon",
        WARN,
        "ManagedServiceAccount cluster1/multikueue is the Go kueue-addon's: no controller renews its Secret",
        "placement-ac adopt",
        runs=True,
    ),
    Break(
        "a finalizer of the Go kueue-addon's is left",
        put(
            CHECK, "metadata", "finalizers", ["kueue-addon.open-cluster-management.io/admissioncheck-cleanup"]
        ),
        "kueue-addon",
        WARN,
        "the Go kueue-addon's finalizer is on AdmissionCheck placement-demo1: no controller removes it",
        "placement-ac adopt",
        runs=True,
    ),
    *(
        Break(
            f"a {key[0]} of our name is someone else's",
            put(key, "metadata", "labels", {}),
            "name-taken",
            FAIL,
            f"{key[0]} {key[2]} has a name that we need, and is owned by someone else",
            f"kubectl annotate {key[0].lower()}s.kueue.x-k8s.io {key[2]} "
            "placement-ac.open-cluster-management.io/adopt=true",
            runs=True,
        )
        for key in (("MultiKueueConfig", "", "placement-demo1"), worker("cluster2"))
    ),
)
