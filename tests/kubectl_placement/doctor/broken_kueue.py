"""Broken kinds, Deployments and configurations of Kueue."""

from typing import Final

import yaml

from kubectl_placement.doctor.commands import WATCH_CACHES
from kubectl_placement.doctor.kueue import ORDER_GATE
from kubectl_placement.hub.kinds import KUEUE_CRDS
from tests.kubectl_placement.doctor.broken_setups import (
    CONFIG,
    CONTROLLER,
    DEPLOYED,
    FAIL,
    FILE,
    KUEUE,
    RESTART,
    WARN,
    Break,
    Objects,
    add,
    applied,
    both,
    configured,
    crd,
    edited,
    edited_pods,
    gate,
    image,
    of_release,
    put,
    setting,
    without,
)
from tests.support.builders import workload
from tests.support.healthy import NS

INSTALL: Final = (
    "kubectl apply --server-side -f "
    "https://github.com/kubernetes-sigs/kueue/releases/download/v0.20.6/manifests.yaml"
)
LOCAL_QUEUES: Final = "localqueues.kueue.x-k8s.io"
CHOOSE: Final = "choose the context of a hub, or install"
POD: Final = ("spec", "template", "spec")
ARGS: Final = (*POD, "containers", 0, "args")
OURS: Final = "open-cluster-management.io/placement"
AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
STEPS: Final = "kueue.x-k8s.io/multikueue-dispatcher-incremental"
CONFIGURED: Final = (
    "multikueue-gate",
    "dispatcher-name",
    "kueue-gates",
    "cluster-profile-gate",
    "access-providers",
    "external-frameworks-gate",
)
"""Lines that stand on Kueue's configuration."""


_CLAIM: Final = {"name": "gpu", "resourceClaimTemplateName": "eight"}
CLAIMING: Final = workload("claims", quota=False)
CLAIMING["spec"]["podSets"] = [{"name": "main", "template": {"spec": {"resourceClaims": [_CLAIM]}}}]
GATE_ARGUMENT: Final = put(KUEUE, *ARGS, ["--config=/x", "--feature-gates", "MultiKueue=true"])
BY_HAND: Final = tuple(
    yaml.safe_load_all(
        """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: by-hand}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: by-hand}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: by-hand}
spec: {clusters: [worker1]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: by-hand}
spec: {namespaceSelector: {}, admissionChecksStrategy: {admissionChecks: [{name: by-hand}]}}
"""
    )
)
"""The set-up of Kueue's tutorial."""
MINE: Final = configured("  gcInterval: 1m\n", "  dispatcherName: example.com/mine\n")


def moved(objects: Objects) -> None:
    deployment = objects.pop(KUEUE)
    deployment["metadata"]["namespace"] = "kueue"
    objects["Deployment", "kueue", KUEUE[2]] = deployment


def old_configuration(objects: Objects) -> None:
    data = objects[CONFIG]["data"]
    data[FILE] = data[FILE].replace("config.kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta1")


def renamed(objects: Objects) -> None:
    """Kueue's Deployment mounts a ConfigMap of another name, which the controller may not get."""
    config = objects.pop(CONFIG)
    config["metadata"]["name"] = "ours"
    objects["ConfigMap", NS, "ours"] = config
    put(KUEUE, *POD, "volumes", 1, "configMap", "name", "ours")(objects)


QUOTA: Final = "MultiKueueManagerQuotaAutomation"
RUN_WITH_KINDS: Final = [
    "run",
    "--external-frameworks=PipelineRun.v1.tekton.dev",
    "--frameworks=batch/job,jobset.x-k8s.io/jobset",
]
QUEUE_RIGHTS: Final = " and ".join(
    f"{verb} {plural}.kueue.x-k8s.io"
    for plural in ("clusterqueues", "localqueues")
    for verb in ("list", "watch")
)
NO_ORDER: Final = both(
    gate(f"{ORDER_GATE}: false"),
    configured("  gcInterval: 1m\n", f"  gcInterval: 1m\n  dispatcherName: {STEPS}\n"),
)


def migrated(script: str) -> str:
    """Return how stored objects are written again, and the old version leaves the CRD."""
    return (
        "curl -fsSLO https://raw.githubusercontent.com/kubernetes-sigs/kueue/main/hack/migrate-to-v1beta2.sh"
        " &&\n"
        f"{script} &&\nkubectl patch crd {LOCAL_QUEUES} --subresource=status --type=merge"
        """ -p '{"status": {"storedVersions": ["v1beta2"]}}'"""
    )


SHOWN: Final = (
    f"{INSTALL.replace('apply', 'diff')}  # apply it with your {FILE} and the plugins of your access"
    " providers"
)
"""How a newer release is installed where it would replace the configuration."""
RELEASES: Final = (
    *(
        Break(
            f"Kueue {release} evicts jobs",
            image(release),
            "kueue-release",
            FAIL,
            f"Kueue {release} evicts healthy jobs when a watch of a worker restarts: "
            "fixed in 0.17.8, 0.18.4 and 0.19.0",
            SHOWN,
        )
        for release in ("0.16.9", "0.17.7", "0.18.3")
    ),
    *(
        Break(
            f"Kueue {release} goes by the alphabet",
            image(release),
            "kueue-release",
            WARN,
            f"Kueue {release} nominates clusters by name, not in the Placement's order: fixed in 0.19.0",
            SHOWN,
        )
        for release in ("0.17.8", "0.18.4")
    ),
    *(
        Break(
            f"with Kueue {release}, watch caches fail",
            of_release(release),
            "kueue-release",
            WARN,
            f"upgrade Kueue {release}: with it, {WATCH_CACHES}",
            SHOWN,
        )
        for release in ("0.20.0", "0.20.5")
    ),
    Break(
        "Kueue tells no release",
        put(KUEUE, *POD, "containers", 0, "image", "kueue:latest"),
        "kueue-release",
        WARN,
        "unknown: neither image nor label of Kueue's Deployment names a release",
        f"kubectl get deployment -n {NS} kueue-controller-manager "
        "-o jsonpath='{.spec.template.spec.containers[*].image}'",
    ),
)

KUEUES: Final = (
    Break(
        "Kueue's CRD is missing",
        without(crd("multikueueconfigs.kueue.x-k8s.io")),
        "kueue-crds",
        FAIL,
        f"{CHOOSE} Kueue there: multikueueconfigs.kueue.x-k8s.io are not served",
        "kubectl config get-contexts",
        unknown=("name-taken", "multikueue-checks", "connections"),
    ),
    Break(
        "Kueue's CRD is of a version that nobody speaks",
        put(
            crd("workloads.kueue.x-k8s.io"),
            *("spec", "versions", [{"name": "v1", "served": True}, {"name": "v1beta2", "served": False}]),
        ),
        "kueue-crds",
        FAIL,
        "workloads.kueue.x-k8s.io are served as v1, but the controller needs v1beta2, v1beta1",
        INSTALL,
    ),
    Break(
        "objects of Kueue may be stored in a version of before",
        put(crd(LOCAL_QUEUES), "status", "storedVersions", ["v1beta1", "v1beta2"]),
        "stored-versions",
        WARN,
        "migrate Kueue's objects to v1beta2 before Kueue is upgraded to 0.20, which does not serve v1beta1:"
        f" objects of {LOCAL_QUEUES} may be stored in v1beta1",
        migrated("bash migrate-to-v1beta2.sh"),
    ),
    Break(
        "Kueue stores a version of before",
        both(
            put(crd(LOCAL_QUEUES), "status", "storedVersions", ["v1beta1"]),
            put(crd(LOCAL_QUEUES), "spec", "versions", 0, "storage", True),
        ),
        "stored-versions",
        WARN,
        "upgrade Kueue to 0.19.2 and migrate its objects before it is upgraded to 0.20, which does not serve"
        f" v1beta1: it stores {LOCAL_QUEUES} in v1beta1",
        SHOWN.replace("0.20.6", "0.19.2"),
    ),
    Break(
        "a CRD of Kueue's says nothing of stored versions",
        put(crd(LOCAL_QUEUES), "status", {}),
        "stored-versions",
        WARN,
        "unknown: Kueue's CRDs do not say in which versions objects are stored",
        f"kubectl get crd {' '.join(KUEUE_CRDS)}",
    ),
    Break(
        "OCM's CRD is missing",
        without(crd("placementdecisions.cluster.open-cluster-management.io")),
        "ocm-crds",
        FAIL,
        f"{CHOOSE} OCM there: placementdecisions.cluster.open-cluster-management.io are not served",
        "kubectl config get-contexts",
        unknown=("hub-as-worker", "credentials", "credential-expiry"),
    ),
    Break(
        "a CRD of OCM's is missing that one can do without",
        without(crd("addonplacementscores.cluster.open-cluster-management.io")),
        "ocm-crds",
        WARN,
        "addonplacementscores.cluster.open-cluster-management.io are not served, so they are not used",
        "kubectl api-resources --api-group=cluster.open-cluster-management.io",
    ),
    Break(
        "Kueue is not installed",
        without(KUEUE),
        "kueue-deployment",
        FAIL,
        f"there is no Deployment of Kueue in namespace {NS}",
        "kubectl get deployments -A -l control-plane=controller-manager",
        unknown=("kueue-release", "kueue-gates"),
    ),
    Break(
        "Kueue is elsewhere",
        moved,
        "kueue-deployment",
        FAIL,
        f"there is no Deployment of Kueue in namespace {NS}; Kueue is in kueue",
        "kubectl set env -n placement-ac-system deployment/placement-ac PLACEMENT_AC_KUEUE_NAMESPACE=kueue",
        runs=True,
        unknown=("kueue-release", "kueue-gates"),
    ),
    Break(
        "Kueue is scaled to 0",
        put(KUEUE, "spec", "replicas", 0),
        "kueue-deployment",
        FAIL,
        f"Deployment {NS}/kueue-controller-manager is scaled to 0",
        f"kubectl scale deployment -n {NS} kueue-controller-manager --replicas=1",
        runs=True,
    ),
    Break(
        "no Pod of Kueue's is ready",
        put(KUEUE, "status", {"replicas": 1}),
        "kueue-deployment",
        FAIL,
        f"no Pod of Deployment {NS}/kueue-controller-manager is ready",
        f"{RESTART} && kubectl rollout status -n {NS} deployment/kueue-controller-manager",
    ),
    *RELEASES,
    Break(
        "Kueue's configuration is missing",
        without(CONFIG),
        "kueue-configuration",
        FAIL,
        f"ConfigMap {NS}/kueue-manager-config does not exist",
        applied(
            "apiVersion: v1",
            "kind: ConfigMap",
            f"metadata: {{name: kueue-manager-config, namespace: {NS}}}",
            "data:",
            f"  {FILE}: |",
            "    apiVersion: config.kueue.x-k8s.io/v1beta2",
            "    kind: Configuration",
        ),
        runs=True,
        unknown=CONFIGURED,
    ),
    *(
        Break(
            f"Kueue's configuration is {problem_name}",
            put(CONFIG, "data", FILE, text),
            "kueue-configuration",
            FAIL,
            f"ConfigMap {NS}/kueue-manager-config has a {FILE} {problem}",
            edited(f"{FILE}: config.kueue.x-k8s.io/v1beta2"),
            unknown=CONFIGURED,
        )
        for problem_name, text, problem in (
            ("no YAML", "{", "that is not YAML"),
            ("of no kind", "a: b", "that is no Configuration"),
            ("too new", "{kind: Configuration, apiVersion: v9}", "of v9, which is unknown"),
        )
    ),
    Break(
        "Kueue's configuration is of an old version",
        old_configuration,
        "kueue-configuration",
        WARN,
        f"ConfigMap {NS}/kueue-manager-config is of config.kueue.x-k8s.io/v1beta1: write it as"
        " config.kueue.x-k8s.io/v1beta2 before a Kueue that no longer reads it",
        edited("apiVersion: config.kueue.x-k8s.io/v1beta2"),
    ),
    Break(
        "a feature gate is set in both places",
        GATE_ARGUMENT,
        "kueue-configuration",
        FAIL,
        f"feature gates are set both in ConfigMap {NS}/kueue-manager-config and by --feature-gates: "
        "Kueue exits at once",
        edited("featureGates: MultiKueue: true") + "\n" + edited_pods("remove --feature-gates"),
    ),
    Break(
        "MultiKueue is off",
        gate("MultiKueue: false"),
        "multikueue-gate",
        FAIL,
        "the gate MultiKueue is off: no job is sent to a worker",
        edited("featureGates: MultiKueue: true"),
    ),
    Break(
        "MultiKueue is off by an argument",
        both(
            configured("featureGates:\n  MultiKueueClusterProfile: true\n", ""),
            put(KUEUE, *ARGS, ["--feature-gates=MultiKueue=false,MultiKueueClusterProfile=true", "-v"]),
        ),
        "multikueue-gate",
        FAIL,
        "the gate MultiKueue is off: no job is sent to a worker",
        edited_pods("--feature-gates: MultiKueue=true"),
    ),
    Break(
        "the controller cannot know a gate on which rights depend",
        both(
            gate(f"{QUOTA}: true"),
            setting("CREDENTIALS_PROBE", "true"),
            put(CONTROLLER, *ARGS, RUN_WITH_KINDS),
            renamed,
        ),
        "kueue-gates",
        FAIL,
        f"set --kueue-feature-gates to {QUOTA}=true: {QUOTA} is on by ConfigMap {NS}/ours, and the controller"
        f" counts it as off (with it, accounts on workers need {QUEUE_RIGHTS})",
        "kubectl set env -n placement-ac-system deployment/placement-ac"
        " PLACEMENT_AC_KUEUE_FEATURE_GATES=MultiKueueManagerQuotaAutomation=true",
        runs=True,
    ),
    Break(
        "the settings have a gate that is off",
        both(
            setting("CREDENTIALS_PROVISION", "managed-serviceaccount"),
            put(
                CONTROLLER,
                *ARGS,
                [
                    *RUN_WITH_KINDS,
                    f"--kueue-feature-gates=A=true,{QUOTA}=true",
                ],
            ),
        ),
        "kueue-gates",
        WARN,
        f"set --kueue-feature-gates to A=true,{QUOTA}=false: {QUOTA} is off by default in Kueue 0.20.6, and"
        f" the controller counts it as on (with it, accounts on workers need {QUEUE_RIGHTS})",
        f"kubectl edit {DEPLOYED}  # --kueue-feature-gates=A=true,MultiKueueManagerQuotaAutomation=false",
    ),
    Break(
        "Incremental goes by the alphabet",
        NO_ORDER,
        "kueue-gates",
        WARN,
        f"turn on {ORDER_GATE}: without it, Kueue nominates clusters by name, not in the list's order",
        edited(f"featureGates: {ORDER_GATE}: true"),
    ),
    Break(
        "Kueue waits for our nominations, and there are none",
        configured("  gcInterval: 1m\n", f"  gcInterval: 1m\n  dispatcherName: {OURS}\n"),
        "dispatcher-name",
        FAIL,
        f"Kueue leaves nominations to {OURS}, but the controller does not nominate (--dispatcher): "
        "no job is nominated",
        "kubectl set env -n placement-ac-system deployment/placement-ac PLACEMENT_AC_DISPATCHER=true",
        runs=True,
    ),
    Break(
        "nobody nominates for a list by hand",
        both(
            setting("DISPATCHER", "true"),
            configured("  gcInterval: 1m\n", f"  gcInterval: 1m\n  dispatcherName: {OURS}\n"),
            *map(add, BY_HAND),
        ),
        "nominations",
        FAIL,
        "jobs of ClusterQueue by-hand are sent nowhere: AdmissionCheck by-hand names MultiKueueConfig "
        "by-hand, which is not of a Placement, and Kueue leaves all nominations to placement-ac",
        "kubectl get multikueueconfig by-hand -o yaml  # select its clusters with a Placement, and create an "
        "AdmissionCheck of placement-ac that names it",
    ),
    Break(
        "both nominate",
        setting("DISPATCHER", "true"),
        "dispatcher-name",
        WARN,
        "both the controller (--dispatcher) and Kueue nominate, Kueue with "
        "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
        edited(f"multiKueue: dispatcherName: {OURS}"),
    ),
    Break(
        "somebody else nominates",
        MINE,
        "dispatcher-name",
        WARN,
        "Kueue leaves nominations to example.com/mine, which is not one of its own dispatchers",
        edited(f"multiKueue: dispatcherName: {AT_ONCE}"),
    ),
    Break(
        "Kueue leaves a namespace with a queue alone",
        configured("integrations:\n", "managedJobsNamespaceSelector: {matchLabels: {a: b}}\nintegrations:\n"),
        "managed-namespaces",
        FAIL,
        "Kueue leaves jobs of namespace default alone, as its managedJobsNamespaceSelector selects others:"
        " they stay suspended for ever, or run on the hub itself, beside all quota",
        "kubectl label namespaces default a=b",
    ),
    Break(
        "a job with ResourceClaims waits that Kueue has no mapping for",
        add(CLAIMING),
        "resource-claims",
        WARN,
        "1 Workload with ResourceClaims (default/claims) waits, and Kueue's configuration has no"
        " resources.deviceClassMappings: Kueue gives no quota, or one without the devices (before 0.18), and"
        " no cluster's room is compared",
        edited("resources.deviceClassMappings: [{name: RESOURCE, deviceClassNames: [CLASS]}]"),
    ),
    Break(
        "a job kind is missing among ours",
        both(
            setting("CREDENTIALS_PROBE", "true"),
            put(
                CONTROLLER,
                *ARGS,
                ["run", "--external-frameworks=PipelineRun.v1.tekton.dev", "--frameworks=batch/job"],
            ),
        ),
        "frameworks",
        FAIL,
        "Kueue sends jobset.x-k8s.io/jobset, but --frameworks does not have it: Kueue will not connect",
        f"kubectl edit {DEPLOYED}  # --frameworks=batch/job,jobset.x-k8s.io/jobset",
    ),
    Break(
        "a job kind is there among ours that Kueue does not send",
        both(
            setting("CREDENTIALS_PROBE", "true"),
            put(
                CONTROLLER,
                *ARGS,
                [
                    "run",
                    "--external-frameworks=PipelineRun.v1.tekton.dev",
                    "--frameworks=batch/job,jobset.x-k8s.io/jobset,pod",
                ],
            ),
        ),
        "frameworks",
        WARN,
        "Kueue does not send pod, but --frameworks requires it of each worker",
        f"kubectl edit {DEPLOYED}  # --frameworks=batch/job,jobset.x-k8s.io/jobset",
    ),
    Break(
        "the external job kinds are missing among ours",
        both(
            setting("CREDENTIALS_PROVISION", "managed-serviceaccount"),
            put(CONTROLLER, *ARGS, ["run", "--frameworks=batch/job,jobset.x-k8s.io/jobset"]),
        ),
        "frameworks",
        FAIL,
        "Kueue sends PipelineRun.v1.tekton.dev, but --external-frameworks does not have it: "
        "Kueue will not connect",
        "kubectl set env -n placement-ac-system deployment/placement-ac "
        "PLACEMENT_AC_EXTERNAL_FRAMEWORKS=PipelineRun.v1.tekton.dev",
        runs=True,
    ),
)
