"""Broken cluster sets, checks, ClusterQueues, and credentials of workers."""

import base64
import copy
import json
from typing import Any, Final

from placement_ac.core.api.constants import ANNOTATION_PLACEMENT_NAMESPACE, NO_QUOTA_THERE
from tests.kubectl_placement.doctor.broken_setups import (
    CHECK,
    FAIL,
    LOGS,
    QUEUE,
    SENDER,
    WARN,
    Break,
    How,
    Objects,
    add,
    applied,
    both,
    edited,
    put,
    recreated,
    setting,
    unlisted,
    with_condition,
    without,
    worker,
)
from tests.support import healthy
from tests.support.builders import condition, kubeconfig
from tests.support.healthy import NS, Key

PLACEMENT: Final[Key] = ("Placement", NS, "placement-demo1")
DECISION: Final[Key] = ("PlacementDecision", NS, "placement-demo1-decision-1")
OCM: Final = "cluster.open-cluster-management.io"
SETS: Final = "cluster.open-cluster-management.io/v1beta2"
NO_CREDENTIALS: Final = (
    "cluster cluster3 of Placement placement-demo1 is left out: "
    f"create Secret {NS}/multikueue-cluster3 with key kubeconfig: cluster3 has no credentials"
)

TRIED: Final = (
    f"(umask 077; kubectl get secret -n {NS} multikueue-cluster3 -o jsonpath='{{.data.kubeconfig}}' "
    "| base64 -d > cluster3.kubeconfig) && "
    "kubectl --kubeconfig cluster3.kubeconfig auth can-i watch workloads.kueue.x-k8s.io -A"
)

PATCH_QUEUE: Final = "kubectl patch clusterqueue cluster-queue-demo1 --type=json -p"
LISTS: Final = "ClusterQueue cluster-queue-demo1 lists"
MULTIKUEUE: Final = ("kueue.x-k8s.io/multikueue", "kueue.x-k8s.io, kind: MultiKueueConfig")


def made(name: str, controller: str, kind: str) -> str:
    """Return how a check is made that names what `kind` says."""
    return applied(
        "apiVersion: kueue.x-k8s.io/v1beta2",
        "kind: AdmissionCheck",
        f"metadata: {{name: {name}}}",
        "spec:",
        f"  controllerName: {controller}",
        f"  parameters: {{apiGroup: {kind}, name: placement-demo1}}",
    )


def check_of(name: str, controller: str, group: str) -> healthy.Object:
    """Return a check with the parameters of `placement-demo1`, in that group."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": name, "generation": 1},
        "spec": {
            "controllerName": controller,
            "parameters": {"apiGroup": group, "kind": "Placement", "name": "placement-demo1"},
        },
        "status": {"conditions": [condition()]},
    }


def listed_too(objects: Objects) -> None:
    objects[QUEUE]["spec"]["admissionChecksStrategy"]["admissionChecks"].append({"name": "another"})


def secret(name: str) -> Key:
    return "Secret", NS, name


def bound_elsewhere(objects: Objects) -> None:
    """The namespace has a binding, of another set."""
    binding = objects.pop(("ManagedClusterSetBinding", NS, "spoke"))
    other = copy.deepcopy(objects["ManagedClusterSet", "", "spoke"])
    binding["metadata"]["name"] = binding["spec"]["clusterSet"] = other["metadata"]["name"] = "other"
    objects["ManagedClusterSetBinding", NS, "other"] = binding
    objects["ManagedClusterSet", "", "other"] = other


def only_cluster3(objects: Objects) -> None:
    objects[DECISION]["status"]["decisions"] = [{"clusterName": "cluster3", "reason": ""}]


def ends_tomorrow(objects: Objects) -> None:
    parts: list[Any] = [{"alg": "none"}, {"exp": int(healthy.NOW.timestamp()) + 86400}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    text = kubeconfig(token=".".join((*encoded, "x")))
    objects[secret("multikueue-cluster3")]["data"] = {"kubeconfig": base64.b64encode(text).decode()}


PLACEMENTS: Final = "placements.cluster.open-cluster-management.io"


def second_placement(objects: Objects) -> None:
    """Another Placement of the namespace names no cluster set."""
    other = copy.deepcopy(objects[PLACEMENT])
    other["metadata"]["name"] = "other"
    other["spec"] = {}
    objects["Placement", NS, "other"] = other


DELETED: Final = (
    "AdmissionCheck placement-demo1 is being deleted since 2026-08-01T11:00:00Z, held by finalizer"
)
_PLACE: Final = "/spec/admissionChecksStrategy/admissionChecks/1"
UNLISTED: Final = (
    f'[{{"op":"test","path":"{_PLACE}/name","value":"placement-demo1"}},{{"op":"remove","path":"{_PLACE}"}}]'
)


def deleted(*finalizers: str) -> How:
    return both(
        put(CHECK, "metadata", "deletionTimestamp", "2026-08-01T11:00:00Z"),
        put(CHECK, "metadata", "finalizers", list(finalizers)),
    )


def binding(name: str) -> str:
    return applied(
        f"apiVersion: {SETS}",
        "kind: ManagedClusterSetBinding",
        f"metadata: {{name: {name}, namespace: {NS}}}",
        f"spec: {{clusterSet: {name}}}",
    )


def listing(check: str) -> str:
    where = "/spec/admissionChecksStrategy/admissionChecks/-"
    patch = f'[{{"op":"add","path":"{where}","value":{{"name":"{check}"}}}}]'
    return f"kubectl patch clusterqueue cluster-queue-demo1 --type=json -p '{patch}'"


def parameters(check: str, group: str, kind: str) -> str:
    output = f'{{"apiGroup":"{group}","kind":"{kind}","name":"placement-demo1"}}'
    return f"""kubectl patch admissioncheck {check} --type=merge -p '{{"spec":{{"parameters":{output}}}}}'"""


def namesake(objects: Objects) -> None:
    """Another namespace that the controller watches has a Placement of the name."""
    setting("PLACEMENT_NAMESPACE", f"{NS},team")(objects)
    other = copy.deepcopy(objects[PLACEMENT])
    other["metadata"]["namespace"] = "team"
    objects["Placement", "team", other["metadata"]["name"]] = other


def check_of_the_namesake(objects: Objects) -> None:
    """Our check names the namespace of its Placement, and another check that of the namesake."""
    other = copy.deepcopy(objects[CHECK])
    other["metadata"] |= {"name": "placement-other", "annotations": {ANNOTATION_PLACEMENT_NAMESPACE: "team"}}
    objects["AdmissionCheck", "", "placement-other"] = other
    put(CHECK, "metadata", "annotations", {ANNOTATION_PLACEMENT_NAMESPACE: NS})(objects)


CHECKS: Final = (
    Break(
        "no cluster set is bound",
        without(("ManagedClusterSetBinding", NS, "spoke")),
        "cluster-set-bindings",
        FAIL,
        f"no cluster set is bound in namespace {NS}: Placement {NS}/placement-demo1 selects nothing",
        binding("spoke"),
        runs=True,
    ),
    Break(
        "no cluster set is bound, and the Placement names none",
        both(without(("ManagedClusterSetBinding", NS, "spoke")), put(PLACEMENT, "spec", {})),
        "cluster-set-bindings",
        FAIL,
        f"no cluster set is bound in namespace {NS}: Placement {NS}/placement-demo1 selects nothing",
        "kubectl get managedclustersets",
    ),
    Break(
        "another cluster set is bound",
        bound_elsewhere,
        "cluster-set-bindings",
        FAIL,
        f"Placement {NS}/placement-demo1 names cluster set spoke, but its namespace binds only other",
        binding("spoke"),
        runs=True,
    ),
    Break(
        "one of the cluster sets is not bound",
        put(PLACEMENT, "spec", "clusterSets", ["spoke", "more"]),
        "cluster-set-bindings",
        WARN,
        f"Placement {NS}/placement-demo1 also names cluster set more, which is not bound there",
        binding("more"),
    ),
    Break(
        "the bound cluster set does not exist",
        without(("ManagedClusterSet", "", "spoke")),
        "cluster-set-bindings",
        FAIL,
        "ManagedClusterSet spoke is bound, but does not exist",
        applied(f"apiVersion: {SETS}", "kind: ManagedClusterSet", "metadata: {name: spoke}"),
        runs=True,
    ),
    Break(
        "the bound cluster set is called otherwise",
        both(
            put(("ManagedClusterSetBinding", NS, "spoke"), "spec", "clusterSet", "spokes"),
            put(PLACEMENT, "spec", "clusterSets", ["spokes"]),
        ),
        "cluster-set-bindings",
        FAIL,
        "ManagedClusterSet spokes is bound, but does not exist; did you mean spoke?",
        "kubectl get managedclustersets",
    ),
    Break(
        "another Placement names no cluster set",
        both(without(("ManagedClusterSetBinding", NS, "spoke")), second_placement),
        "cluster-set-bindings",
        FAIL,
        f"no cluster set is bound in namespace {NS}: Placement {NS}/placement-demo1 selects nothing "
        "(once bound, Placement other, which names no set, selects from it as well)",
        binding("spoke"),
    ),
    Break(
        "our check has no parameters",
        put(CHECK, "spec", {"controllerName": "open-cluster-management.io/placement"}),
        "check-parameters",
        FAIL,
        "AdmissionCheck placement-demo1: spec.parameters is missing",
        parameters("placement-demo1", "cluster.open-cluster-management.io", "Placement"),
        runs=True,
    ),
    Break(
        "the parameters of a check of ours name another group",
        add(check_of("gate", "open-cluster-management.io/placement", "apps.open-cluster-management.io")),
        "check-parameters",
        FAIL,
        "AdmissionCheck gate: spec.parameters.apiGroup is 'apps.open-cluster-management.io'",
        parameters("gate", OCM, "Placement"),
        runs=True,
    ),
    Break(
        "a check names a Placement, and another controller",
        both(
            add(check_of("gate", "open-cluster-management.io/placements", OCM)),
            put(QUEUE, "spec", "admissionChecksStrategy", "admissionChecks", 1, "name", "gate"),
            put(QUEUE, "spec", "admissionChecks", ["placement-demo1"]),
        ),
        "check-parameters",
        WARN,
        "AdmissionCheck gate names Placement placement-demo1, but placement-ac does not answer it: "
        "spec.controllerName is 'open-cluster-management.io/placements', not "
        "'open-cluster-management.io/placement', and cannot be changed",
        "\n".join(
            (
                made("gate-2", "open-cluster-management.io/placement", f"{OCM}, kind: Placement"),
                f'{PATCH_QUEUE} \'[{{"op":"add","path":"/spec/admissionChecks/-","value":"gate-2"}}]\'',
                f"{PATCH_QUEUE} '{UNLISTED}'".replace('"placement-demo1"', '"gate"'),
                "kubectl delete admissioncheck gate",
            )
        ),
    ),
    Break(
        "our check's Placement is missing",
        without(PLACEMENT),
        "check-parameters",
        FAIL,
        f"AdmissionCheck placement-demo1 names Placement placement-demo1: there is no {NS}/placement-demo1",
        f"kubectl get {PLACEMENTS} -A",
    ),
    Break(
        "our check names a Placement that is called otherwise",
        put(CHECK, "spec", "parameters", "name", "placement-demo-1"),
        "check-parameters",
        FAIL,
        "AdmissionCheck placement-demo1 names Placement placement-demo-1: "
        f"there is no {NS}/placement-demo-1; did you mean placement-demo1?",
        "kubectl edit admissioncheck placement-demo1  # parameters.name: placement-demo1",
    ),
    Break(
        "a check names the namespace of another Placement of the name",
        both(namesake, check_of_the_namesake),
        "check-parameters",
        FAIL,
        f"AdmissionCheck placement-other: correct the annotation {ANNOTATION_PLACEMENT_NAMESPACE}: all checks"
        f" of one Placement's name share its MultiKueueConfig, and {NS}/placement-demo1 is in use",
        f"kubectl annotate admissioncheck placement-other {ANNOTATION_PLACEMENT_NAMESPACE}={NS} --overwrite",
    ),
    Break(
        "our check is being deleted, and a ClusterQueue lists it",
        deleted("kueue.x-k8s.io/resource-in-use"),
        "check-deletion",
        WARN,
        f"{DELETED} kueue.x-k8s.io/resource-in-use: ClusterQueue cluster-queue-demo1 still lists it; "
        "without it nothing holds jobs back while a cluster leaves the list, and one that starts then may "
        "run twice",
        f"kubectl patch clusterqueue cluster-queue-demo1 --type=json -p '{UNLISTED}'",
    ),
    Break(
        "our check is being deleted, and another program holds it",
        deleted("example.com/hold"),
        "check-deletion",
        WARN,
        f"{DELETED} example.com/hold",
        "kubectl get admissioncheck placement-demo1 -o yaml",
    ),
    Break(
        "our check is not Active",
        with_condition(CHECK, "False", "NoClusterSelected", "none matches"),
        "check-condition",
        FAIL,
        "AdmissionCheck placement-demo1 is not Active: NoClusterSelected: none matches",
        "kubectl describe admissioncheck placement-demo1; "
        f"kubectl describe placement -n {NS} placement-demo1",
    ),
    Break(
        "the controller has found a worker without a queue",
        with_condition(CHECK, "True", "Active", f"generated; cluster1: {NO_QUOTA_THERE}a/b (there is none)"),
        "check-condition",
        WARN,
        f"AdmissionCheck placement-demo1: cluster1: {NO_QUOTA_THERE}a/b (there is none)",
        "placement-ac doctor --workers --cluster cluster1",
    ),
    Break(
        "nothing has been said of our check",
        put(CHECK, "status", {}),
        "check-condition",
        WARN,
        "AdmissionCheck placement-demo1 has no condition",
        LOGS,
    ),
    Break(
        "our check was changed since",
        put(CHECK, "metadata", "generation", 2),
        "check-condition",
        WARN,
        "AdmissionCheck placement-demo1 was changed, and the controller has not reconciled it since",
        LOGS,
    ),
    Break(
        "the multikueue check names no list",
        put(SENDER, "spec", "parameters", "name", "other"),
        "multikueue-checks",
        FAIL,
        "AdmissionCheck multikueue-demo1 names MultiKueueConfig other, which does not exist: "
        "no check of ours names a Placement of that name",
        parameters("multikueue-demo1", "kueue.x-k8s.io", "MultiKueueConfig"),
        runs=True,
    ),
    Break(
        "the multikueue check names something else",
        put(SENDER, "spec", "parameters", "kind", "MultiKueueCluster"),
        "multikueue-checks",
        FAIL,
        "AdmissionCheck multikueue-demo1 names no MultiKueueConfig: spec.parameters.kind is "
        "'MultiKueueCluster'",
        parameters("multikueue-demo1", "kueue.x-k8s.io", "MultiKueueConfig"),
        runs=True,
    ),
    Break(
        "our check is listed, but does not exist",
        without(CHECK),
        "queue-checks",
        FAIL,
        f"{LISTS} AdmissionCheck placement-demo1, which does not exist: it admits nothing",
        made(
            "placement-demo1",
            "open-cluster-management.io/placement",
            "cluster.open-cluster-management.io, kind: Placement",
        ),
        runs=True,
    ),
    Break(
        "the multikueue check is listed, but does not exist",
        without(SENDER),
        "queue-checks",
        FAIL,
        f"{LISTS} AdmissionCheck multikueue-demo1, which does not exist: it admits nothing",
        made("multikueue-demo1", *MULTIKUEUE),
        runs=True,
    ),
    Break(
        "a check that nobody knows is listed",
        listed_too,
        "queue-checks",
        FAIL,
        f"{LISTS} AdmissionCheck another, which does not exist: it admits nothing",
        "kubectl describe clusterqueue cluster-queue-demo1",
    ),
    Break(
        "there is no multikueue check",
        both(without(SENDER), unlisted("multikueue-demo1")),
        "queue-checks",
        WARN,
        f"{LISTS} our check placement-demo1, but no multikueue check: no job is sent",
        made("multikueue-placement-demo1", *MULTIKUEUE) + "\n" + listing("multikueue-placement-demo1"),
        runs=True,
    ),
    Break(
        "our check is not listed: there is no gate",
        unlisted("placement-demo1"),
        "queue-checks",
        WARN,
        "ClusterQueue cluster-queue-demo1 lists multikueue-demo1 without our check placement-demo1: "
        "a job may run twice when a cluster leaves",
        listing("placement-demo1"),
        runs=True,
    ),
    Break(
        "the multikueue check is not listed",
        unlisted("multikueue-demo1"),
        "queue-checks",
        WARN,
        "ClusterQueue cluster-queue-demo1 lists our check placement-demo1, but no multikueue check: "
        "no job is sent",
        listing("multikueue-demo1"),
        runs=True,
    ),
    Break(
        "a ClusterQueue is inactive",
        with_condition(QUEUE, "False", "FlavorNotFound", "references missing flavors"),
        "cluster-queues",
        FAIL,
        "ClusterQueue cluster-queue-demo1 admits nothing: FlavorNotFound: references missing flavors",
        "kubectl describe clusterqueue cluster-queue-demo1",
    ),
    Break(
        "a ClusterQueue is stopped",
        both(
            with_condition(QUEUE, "False", "Stopped", "is stopped"), put(QUEUE, "spec", "stopPolicy", "Hold")
        ),
        "cluster-queues",
        FAIL,
        "ClusterQueue cluster-queue-demo1 admits nothing: Stopped: is stopped",
        """kubectl patch clusterqueue cluster-queue-demo1 --type=merge -p '{"spec":{"stopPolicy":"None"}}'""",
    ),
    Break(
        "a ClusterQueue selects no namespace",
        put(QUEUE, "spec", "namespaceSelector", None),
        "cluster-queues",
        FAIL,
        "ClusterQueue cluster-queue-demo1 admits no job: it has no namespaceSelector, so it selects no "
        "namespace",
        "kubectl patch clusterqueue cluster-queue-demo1 --type=merge -p"
        """ '{"spec":{"namespaceSelector":{}}}'""",
        runs=True,
    ),
    Break(
        "nothing has been said of a ClusterQueue",
        put(QUEUE, "status", {}),
        "cluster-queues",
        WARN,
        "ClusterQueue cluster-queue-demo1 has no condition yet",
        "kubectl describe clusterqueue cluster-queue-demo1",
    ),
)

WORKERS: Final = (
    Break(
        "the Placement selects the hub itself",
        put(("ManagedCluster", "", "cluster2"), "metadata", "labels", "local-cluster", "true"),
        "hub-as-worker",
        FAIL,
        f"Placement {NS}/placement-demo1 (check placement-demo1) selects cluster2, which is this hub "
        "(its label local-cluster is true): Kueue does not support the manager cluster as its own worker",
        f"kubectl edit placement -n {NS} placement-demo1  # spec.predicates: "
        '[{"requiredClusterSelector": {"labelSelector": {"matchExpressions": '
        '[{"key": "local-cluster", "operator": "NotIn", "values": ["true"]}]}}}]',
    ),
    Break(
        "a cluster has no credentials",
        without(secret("multikueue-cluster3")),
        "credentials",
        WARN,
        NO_CREDENTIALS,
        recreated("multikueue-cluster3", "cluster3"),
        runs=True,
    ),
    Break(
        "no cluster has credentials",
        both(without(secret("multikueue-cluster3")), only_cluster3),
        "credentials",
        FAIL,
        NO_CREDENTIALS,
        recreated("multikueue-cluster3", "cluster3"),
        runs=True,
    ),
    Break(
        "another namespace has a Placement of the name",
        namesake,
        "credentials",
        WARN,
        f"Placement placement-demo1: rename Placement team/placement-demo1, or annotate the check with "
        f"{ANNOTATION_PLACEMENT_NAMESPACE}: it is ignored, because {NS}/placement-demo1 is in use",
        "",
    ),
    Break(
        "credentials end soon",
        ends_tomorrow,
        "credential-expiry",
        WARN,
        "renew the credentials of cluster cluster3 in Secret multikueue-cluster3: they expire at "
        "2026-08-02T12:00:00Z",
        recreated("multikueue-cluster3", "cluster3"),
    ),
    Break(
        "a listed cluster is missing",
        without(worker("cluster2")),
        "connections",
        FAIL,
        "MultiKueueCluster placement-demo1-cluster2 is listed, but does not exist",
        "kubectl get multikueueclusters",
    ),
    Break(
        "nothing has been said of a listed cluster",
        put(worker("cluster2"), "status", {}),
        "connections",
        WARN,
        "MultiKueueCluster placement-demo1-cluster2 has no condition yet",
        "kubectl describe multikueuecluster placement-demo1-cluster2",
    ),
    Break(
        "a worker lacks a job kind",
        with_condition(
            worker("cluster3"),
            "False",
            "ClientConnectionFailed",
            'no matches for kind "JobSet" in version "jobset.x-k8s.io/v1alpha2"',
        ),
        "connections",
        FAIL,
        "Kueue is not connected to MultiKueueCluster placement-demo1-cluster3: install the CRD"
        " jobsets.jobset.x-k8s.io there, or disable JobSet in the hub's Kueue: it connects only to workers"
        " that serve every job kind which it has enabled, so no job goes there; ClientConnectionFailed:"
        ' no matches for kind "JobSet" in version "jobset.x-k8s.io/v1alpha2"',
        "kubectl get crd jobsets.jobset.x-k8s.io -o yaml | kubectl --context cluster3 create -f -",
    ),
    *(
        Break(
            f"{reason} of {cluster}",
            with_condition(worker(cluster), "False", reason, "because"),
            "connections",
            FAIL,
            f"Kueue is not connected to MultiKueueCluster placement-demo1-{cluster}: {reason}: because",
            fix,
        )
        for reason, cluster, fix in (
            ("BadKubeConfig", "cluster2", recreated("kueue-admin-cluster2-kubeconfig", "cluster2")),
            ("InsecureKubeConfig", "cluster3", recreated("multikueue-cluster3", "cluster3")),
            ("ClientConnectionFailed", "cluster3", TRIED),
            ("ClientConnectionFailed", "cluster1", f"kubectl get clusterprofile -n {NS} cluster1 -o yaml"),
            (
                "MultiKueueClusterProfileFeatureDisabled",
                "cluster1",
                edited("featureGates: MultiKueueClusterProfile: true"),
            ),
            ("BadClusterProfile", "cluster1", f"kubectl get clusterprofile -n {NS} cluster1 -o yaml"),
            ("BadRestConfig", "cluster1", f"kubectl get clusterprofile -n {NS} cluster1 -o yaml"),
            ("Another", "cluster1", "kubectl describe multikueuecluster placement-demo1-cluster1"),
        )
    ),
)
