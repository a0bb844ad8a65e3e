"""Broken setups of the workers' credentials and of external job kinds."""

import json
from typing import Final

from tests.kubectl_placement.doctor.broken_setups import (
    FAIL,
    Break,
    configured,
    crd,
    edited,
    gate,
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
OCM_PLUGIN: Final = "- name: open-cluster-management\n      execConfig:\n"
WITH_VARIABLE: Final = (
    f"{OCM_PLUGIN.replace('open-cluster-management', 'another')}        env: [{{name: A, value: b}}]\n"
)
BOTH: Final = "credentialsProviders: [{name: a, execConfig: {command: /plugins/a}}]"
PROFILES: Final = (
    Break(
        "the gate of ClusterProfiles is not set",
        configured("featureGates:\n  MultiKueueClusterProfile: true\n", ""),
        "cluster-profile-gate",
        FAIL,
        "the gate MultiKueueClusterProfile is off: Kueue cannot use ClusterProfile cluster1",
        edited("featureGates: MultiKueueClusterProfile: true"),
    ),
    Break(
        "the CRD of ClusterProfiles is missing",
        without(crd("clusterprofiles.multicluster.x-k8s.io")),
        "cluster-profile-gate",
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
        "another access provider has a variable, which may be secret",
        configured(OCM_PLUGIN, WITH_VARIABLE),
        "access-providers",
        FAIL,
        f"ClusterProfile {NS}/cluster1 has access providers open-cluster-management, Kueue has another: "
        "none of them match",
        edited(f"multiKueue.clusterProfile.accessProviders: add {json.dumps(PROVIDER)}"),
    ),
    Break(
        "a profile has a provider that is not OCM's, and that Kueue has not",
        put(("ClusterProfile", NS, "cluster1"), "status", "accessProviders", 0, "name", "secretreader"),
        "access-providers",
        FAIL,
        f"ClusterProfile {NS}/cluster1 has access providers secretreader, Kueue has open-cluster-management: "
        "none of them match",
        edited("multiKueue.clusterProfile.accessProviders: add secretreader, with the command of its plugin"),
    ),
    Break(
        "Kueue has no access provider",
        configured(healthy.PROVIDERS, ""),
        "access-providers",
        FAIL,
        f"ClusterProfile {NS}/cluster1 has access providers open-cluster-management, Kueue has none: "
        "none of them match",
        edited(f"multiKueue.clusterProfile.accessProviders: add {json.dumps(PROVIDER)}"),
    ),
    Break(
        "Kueue's configuration has providers under both names",
        configured("    accessProviders:\n", f"    {BOTH}\n    accessProviders:\n"),
        "access-providers",
        FAIL,
        "Kueue's configuration has both accessProviders and credentialsProviders: "
        "Kueue does not start with both",
        edited("move all under accessProviders"),
    ),
    Break(
        "the gate of external frameworks is off",
        gate("MultiKueueAdaptersForCustomJobs: false"),
        "external-frameworks-gate",
        FAIL,
        "the gate MultiKueueAdaptersForCustomJobs is off: PipelineRun.v1.tekton.dev are not sent",
        edited("featureGates: MultiKueueAdaptersForCustomJobs: true"),
    ),
)
