"""
Rules for ClusterProfiles as credentials of workers: the gate, the CRD, and access providers.

Pure.
"""

import json
import shlex
from collections.abc import Iterator
from typing import Any, Final

from kubectl_placement.doctor.finding import Finding, fail, ok, skip
from kubectl_placement.doctor.kueue import (
    ACCESS,
    CLUSTER_PROFILE_GATE,
    CONFIG_MAP_NAME,
    CREDENTIALS,
    HubKueue,
)
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from placement_ac.core.api.constants import CLUSTER_PROFILE, MULTIKUEUE_CLUSTER
from placement_ac.core.api.decode import cluster_profile
from placement_ac.core.api.fields import get_dict
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import KueueRelease
from placement_ac.core.kubeconfig.source import CredentialSource

INVENTORY_CRD: Final = (
    "https://raw.githubusercontent.com/kubernetes-sigs/cluster-inventory-api/main/"
    "config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml"
)
RENAMED: Final = KueueRelease(0, 19, 0)
OCM_PROVIDER: Final = "open-cluster-management"
PLUGIN: Final = "/plugins/cp-creds"
_NOT_USED: Final = skip("no worker uses a ClusterProfile's credentials")


def profiles_in_use(setup: HubSetup) -> tuple[str, ...]:
    """Return the ClusterProfiles whose credentials Kueue uses for workers, or will use."""
    listed_sources = (obj.source for obj in setup.view.cluster_objects.values())
    names = {name for kind, name in listed_sources if kind == CLUSTER_PROFILE.kind}
    for placement in setup.checks_by_placement:
        for credential in setup.view.snapshot(placement).credentials.selected.values():
            if isinstance(credential, CredentialSource) and credential.kind == CLUSTER_PROFILE.kind:
                names.add(credential.name)
    return tuple(sorted(names))


def _unknown_profiles(setup: HubSetup) -> tuple[Finding, ...]:
    """Return a warning if the ClusterProfiles are unknown."""
    return setup.unknown(CLUSTER_PROFILE, namespaces=[setup.kueue_namespace])


def _unknown_use(setup: HubSetup) -> tuple[Finding, ...]:
    """Return a warning if it is unknown which ClusterProfiles are in use."""
    return setup.unknown(MULTIKUEUE_CLUSTER) or (_unknown_profiles(setup) if setup.dump.live else ())


@hub_rule(
    "cluster-profile-gate",
    f"if a worker uses a ClusterProfile's credentials: Kueue's gate {CLUSTER_PROFILE_GATE} is on; with it, "
    "the CRD of ClusterProfiles exists",
    f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # featureGates",
)
def cluster_profile_gate(setup: HubSetup) -> Iterator[Finding]:
    used = profiles_in_use(setup)
    yield from _without_crd(setup)
    if not used:
        yield from _unknown_use(setup)
        yield _NOT_USED
    elif unknown := setup.unknown_config():
        yield from unknown
    else:
        label = f"ClusterProfile {joined(used)}"
        yield setup.kueue.gate_finding(CLUSTER_PROFILE_GATE, f", for {label}", f"Kueue cannot use {label}")


def _without_crd(setup: HubSetup) -> Iterator[Finding]:
    versions = setup.served_versions(CLUSTER_PROFILE)
    if versions or setup.unknown_config() or not setup.kueue.is_on(CLUSTER_PROFILE_GATE):
        return
    if versions is None:
        yield from _unknown_profiles(setup)
    else:
        yield fail(
            f"{CLUSTER_PROFILE} are not served, and the gate {CLUSTER_PROFILE_GATE} is on: "
            "Kueue's manager exits after 2 minutes",
            f"kubectl apply -f {INVENTORY_CRD}",
        )


@hub_rule(
    "access-providers",
    f"each ClusterProfile in use has a provider of Kueue's `multiKueue.clusterProfile.{ACCESS}` "
    f"(before 0.19: `{CREDENTIALS}`)",
    f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # multiKueue.clusterProfile.{ACCESS}",
)
def access_providers(setup: HubSetup) -> Iterator[Finding]:
    used, kueue = profiles_in_use(setup), setup.kueue
    unknown = _unknown_profiles(setup) or setup.unknown_config() if used else _unknown_use(setup)
    if unknown:
        yield from unknown
        return
    yield from _list_is_wrong(kueue)
    names = sorted({str(access_provider.get("name")) for access_provider in kueue.access_providers})
    has = f"Kueue has {joined(names) or 'none'}"
    for name in used:
        label = f"ClusterProfile {kueue.namespace}/{name}"
        raw = setup.dump.find(CLUSTER_PROFILE, name, kueue.namespace)
        if raw is None:
            yield fail(f"{label} is used, but does not exist", "kubectl get clusterprofiles -A")
            continue
        offered = tuple(cluster_profile(raw).providers)
        if not set(names) & set(offered):
            yield fail(
                f"{label} has access providers {joined(offered) or '(none)'}, {has}: none of them match",
                _add_provider(setup, name, offered),
            )
    yield ok(f"{has}, for {joined(used)}") if used else _NOT_USED


def _list_is_wrong(kueue: HubKueue) -> Iterator[Finding]:
    profile = get_dict(kueue.multikueue, "clusterProfile")
    if profile.get(ACCESS) and profile.get(CREDENTIALS):
        yield fail(
            f"Kueue's configuration has both {ACCESS} and {CREDENTIALS}: Kueue does not start with both",
            kueue.edit_config(f"move all under {ACCESS}"),
        )
    elif ACCESS in profile and kueue.release and kueue.release < RENAMED:
        yield fail(
            f"Kueue {kueue.release} does not know {ACCESS}: they are called {CREDENTIALS} there",
            kueue.edit_config(f"{ACCESS} -> {CREDENTIALS}"),
        )


def _add_provider(setup: HubSetup, profile_name: str, offered: tuple[str, ...]) -> str:
    kueue = setup.kueue
    if not offered:
        return f"kubectl get clusterprofile -n {kueue.namespace} {shlex.quote(profile_name)} -o yaml"
    profile = get_dict(kueue.multikueue, "clusterProfile")
    old = CREDENTIALS in profile or (kueue.release and kueue.release < RENAMED)
    path = ("multiKueue", "clusterProfile", CREDENTIALS if old else ACCESS)
    if OCM_PROVIDER not in offered:
        return kueue.edit_config(f"{'.'.join(path)}: add {offered[0]}, with the command of its plugin")
    run: dict[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": PLUGIN,
        "provideClusterInfo": True,
        "interactiveMode": "Never",
        "args": [f"--managed-serviceaccount={setup.settings.credentials_account}"],
    }
    entry = {"name": OCM_PROVIDER, "execConfig": run}
    return kueue.edit_config(f"{'.'.join(path)}: add {json.dumps(entry)}")


RULES: Final = (cluster_profile_gate, access_providers)
