"""Broken setups of the workers' credentials and of external job kinds."""

import json
from typing import Final

from tests.kubectl_placement.doctor.broken_setups import (
    CONFIG,
    FAIL,
    KUBE_CONFIG,
    KUEUE,
    NOTHING,
    RESTART,
    WARN,
    Break,
    applied,
    both,
    configured,
    crd,
    edited,
    gate,
    patched,
    put,
    without,
    worker,
)
from tests.support import healthy
from tests.support.healthy import NS

POD: Final = ("spec", "template", "spec")

PROVIDER: Final = {
    "name": "open-cluster-management",
    "execConfig": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/plugins/cp-creds",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
        "args": ["--managed-serviceaccount=placement-ac"],
    },
}
PLUGIN: Final = patched(
    '{"initContainers": [{"name": "cp-creds", "image": "quay.io/open-cluster-management/cp-creds:latest", '
    '"command": ["cp", "/cp-creds", "/plugins/cp-creds"], '
    '"volumeMounts": [{"name": "plugins", "mountPath": "/plugins"}]}], '
    '"containers": [{"name": "manager", "volumeMounts": [{"name": "plugins", "mountPath": "/plugins"}]}], '
    '"volumes": [{"name": "plugins", "emptyDir": {}}]}'
)

GRANT: Final = applied(
    "apiVersion: rbac.authorization.k8s.io/v1",
    "kind: ClusterRole",
    "metadata: {name: kueue-external-frameworks-pipelineruns.tekton.dev}",
    "rules:",
    "- apiGroups: [tekton.dev]",
    "  resources: [pipelineruns, pipelineruns/status]",
    "  verbs: [get, list, watch, patch, update]",
    "---",
    "apiVersion: rbac.authorization.k8s.io/v1",
    "kind: ClusterRoleBinding",
    "metadata: {name: kueue-external-frameworks-pipelineruns.tekton.dev}",
    "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, "
    "name: kueue-external-frameworks-pipelineruns.tekton.dev}",
    "subjects:",
    f"- {{kind: ServiceAccount, name: kueue-controller-manager, namespace: {NS}}}",
)

OTHER_PROVIDER: Final = (
    "- {name: secretreader, execConfig: {command: /reader/secretreader}}\n    - name: open-cluster-management"
)
OCM_PLUGIN: Final = "- name: open-cluster-management\n      execConfig:\n"
WITH_VARIABLE: Final = (
    f"{OCM_PLUGIN.replace('open-cluster-management', 'another')}        env: [{{name: A, value: b}}]\n"
)
BOTH: Final = "credentialsProviders: [{name: a, execConfig: {command: /plugins/a}}]"
PROFILES: Final = (
    Break(
        "the gate of ClusterProfiles is off",
        configured("MultiKueueClusterProfile: true", "MultiKueueClusterProfile: false"),
        "cluster-profile-gate",
        FAIL,
        "the gate MultiKueueClusterProfile is off: Kueue cannot use ClusterProfile cluster1",
        edited(NOTHING, lambda file: None),
        runs=True,
    ),
    Break(
        "the gate of ClusterProfiles is not set",
        configured("featureGates:\n  MultiKueueClusterProfile: true\n", ""),
        "cluster-profile-gate",
        FAIL,
        "the gate MultiKueueClusterProfile is off: Kueue cannot use ClusterProfile cluster1",
        edited(
            configured("featureGates:\n  MultiKueueClusterProfile: true\n", ""),
            lambda file: file.update(featureGates={"MultiKueueClusterProfile": True}),
        ),
        runs=True,
    ),
    Break(
        "the CRD of ClusterProfiles is missing",
        without(crd("clusterprofiles.multicluster.x-k8s.io")),
        "inventory-crd",
        FAIL,
        "clusterprofiles.multicluster.x-k8s.io are not served, and the gate MultiKueueClusterProfile is on: "
        "Kueue's manager exits after 2 minutes",
        "kubectl apply -f https://raw.githubusercontent.com/kubernetes-sigs/cluster-inventory-api/main/"
        "config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml",
    ),
    Break(
        "a ClusterProfile is used that is not there",
        put(worker("cluster1"), "spec", "clusterSource", "clusterProfileRef", "name", "another"),
        "access-providers",
        FAIL,
        f"ClusterProfile {NS}/another is used, but does not exist",
        "kubectl get clusterprofiles -A",
    ),
    Break(
        "Kueue has another access provider",
        configured("- name: open-cluster-management", "- name: another"),
        "access-providers",
        FAIL,
        f"ClusterProfile {NS}/cluster1 has access providers open-cluster-management, Kueue has another: "
        "none of them match",
        edited(
            configured("- name: open-cluster-management", "- name: another"),
            lambda file: file["multiKueue"]["clusterProfile"]["accessProviders"].append(PROVIDER),
        ),
        runs=True,
    ),
    Break(
        "another access provider has a variable, which may be secret",
        configured(OCM_PLUGIN, WITH_VARIABLE),
        "access-providers",
        FAIL,
        f"ClusterProfile {NS}/cluster1 has access providers open-cluster-management, Kueue has another: "
        "none of them match",
        f"kubectl edit {KUBE_CONFIG}  # multiKueue.clusterProfile.accessProviders: {json.dumps(PROVIDER)}\n"
        f"{RESTART}",
    ),
    Break(
        "a profile has a provider that is not OCM's, and that Kueue has not",
        put(("ClusterProfile", NS, "cluster1"), "status", "accessProviders", 0, "name", "secretreader"),
        "access-providers",
        FAIL,
        f"ClusterProfile {NS}/cluster1 has access providers secretreader, Kueue has open-cluster-management: "
        "none of them match",
        f"kubectl edit {KUBE_CONFIG}  # multiKueue.clusterProfile.accessProviders: add secretreader, "
        "with the command of its plugin",
    ),
    Break(
        "Kueue has no access provider",
        configured(healthy.PROVIDERS, ""),
        "access-providers",
        FAIL,
        f"ClusterProfile {NS}/cluster1 has access providers open-cluster-management, Kueue has none: "
        "none of them match",
        edited(
            configured(healthy.PROVIDERS, ""),
            lambda file: file["multiKueue"].update(clusterProfile={"accessProviders": [PROVIDER]}),
        ),
        runs=True,
    ),
    Break(
        "Kueue's configuration has providers under both names",
        configured("    accessProviders:\n", f"    {BOTH}\n    accessProviders:\n"),
        "access-providers",
        FAIL,
        "Kueue's configuration has both accessProviders and credentialsProviders: "
        "Kueue does not start with both",
        f"kubectl edit {KUBE_CONFIG}  # move all under accessProviders",
    ),
    Break(
        "the plugin's folder is mounted from nowhere",
        put(KUEUE, *POD, "containers", 0, "volumeMounts", healthy.MOUNTS),
        "access-provider-plugin",
        FAIL,
        "plugin /plugins/cp-creds of access provider open-cluster-management: no volume is mounted at "
        "/plugins (mounted: /controller_manager_config.yaml), and Kueue's image has no plugin",
        PLUGIN,
        runs=True,
    ),
    Break(
        "no plugin comes with a volume, and Kueue's image is one's own",
        both(
            put(KUEUE, *POD, "containers", 0, "volumeMounts", healthy.MOUNTS),
            put(KUEUE, *POD, "containers", 0, "image", "example.com/kueue:v0.20.6"),
        ),
        "access-provider-plugin",
        WARN,
        "plugin /plugins/cp-creds of access provider open-cluster-management: no volume is mounted at "
        "/plugins (mounted: /controller_manager_config.yaml); is it in the image example.com/kueue:v0.20.6?",
        f"kubectl get deployment -n {NS} kueue-controller-manager "
        "-o jsonpath='{.spec.template.spec.containers[*].image}'",
    ),
    Break(
        "nobody puts the plugin there",
        put(KUEUE, *POD, "initContainers", []),
        "access-provider-plugin",
        FAIL,
        "plugin /plugins/cp-creds of access provider open-cluster-management: volume plugins is empty: "
        "no init container mounts it",
        PLUGIN,
        runs=True,
    ),
    Break(
        "the plugin's volume is not defined",
        put(KUEUE, *POD, "volumes", [{"name": "manager-config", "configMap": {"name": CONFIG[2]}}]),
        "access-provider-plugin",
        FAIL,
        "plugin /plugins/cp-creds of access provider open-cluster-management: volume plugins is not defined",
        PLUGIN,
    ),
    Break(
        "the plugin is looked for in the image",
        configured("command: /plugins/cp-creds", "command: cp-creds"),
        "access-provider-plugin",
        FAIL,
        "plugin cp-creds of access provider open-cluster-management: it has no folder, and "
        "Kueue's image has no plugin",
        f"kubectl edit {KUBE_CONFIG}  # command: /plugins/cp-creds\n{PLUGIN}",
    ),
    Break(
        "the plugin of another provider is nowhere",
        configured("- name: open-cluster-management", OTHER_PROVIDER),
        "access-provider-plugin",
        FAIL,
        "plugin /reader/secretreader of access provider secretreader: no volume is mounted at /reader "
        "(mounted: /controller_manager_config.yaml, /plugins, /tmp/k8s-webhook-server/serving-certs), "
        "and Kueue's image has no plugin",
        f"kubectl edit deployment -n {NS} kueue-controller-manager  "
        "# mount a volume with the plugin of secretreader",
    ),
    Break(
        "the gate of external frameworks is off",
        gate("MultiKueueAdaptersForCustomJobs: false"),
        "external-frameworks-gate",
        FAIL,
        "the gate MultiKueueAdaptersForCustomJobs is off: PipelineRun.v1.tekton.dev are not sent",
        edited(
            gate("MultiKueueAdaptersForCustomJobs: false"),
            lambda file: file["featureGates"].update(MultiKueueAdaptersForCustomJobs=True),
        ),
        runs=True,
    ),
    Break(
        "Kueue has no rights on an external framework",
        without(("ClusterRoleBinding", "", "kueue-external-frameworks")),
        "external-frameworks-rights",
        FAIL,
        "Kueue may not get, list, watch, patch, update pipelineruns.tekton.dev; get, patch, update "
        "pipelineruns/status.tekton.dev: external framework PipelineRun.v1.tekton.dev does not work",
        GRANT,
        runs=True,
    ),
    Break(
        "Kueue lacks one right on an external framework",
        put(
            ("ClusterRole", "", "kueue-external-frameworks"),
            "rules",
            0,
            "verbs",
            ["get", "list", "watch", "patch"],
        ),
        "external-frameworks-rights",
        FAIL,
        "Kueue may not update pipelineruns.tekton.dev; update pipelineruns/status.tekton.dev: "
        "external framework PipelineRun.v1.tekton.dev does not work",
        GRANT,
    ),
    Break(
        "an external framework is no kind",
        configured("PipelineRun.v1.tekton.dev", "pipelineruns"),
        "external-frameworks-rights",
        FAIL,
        "external framework 'pipelineruns' is no Kind.version.group, like PipelineRun.v1.tekton.dev",
        f"kubectl edit {KUBE_CONFIG}  # multiKueue.externalFrameworks",
    ),
)
