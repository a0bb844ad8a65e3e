"""
Rules for `multiKueue.externalFrameworks`: the feature gate, and Kueue's rights on these job kinds.

Pure. The rights on the hub are those of Kueue's page "Run External Framework Jobs in Multi-Cluster".
"""

from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import KUEUE_MANAGER
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import ExternalFramework, parse_external
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok
from placement_ac.inspection.doctor.kueue_config import (
    CONFIG_MAP_NAME,
    CUSTOM_JOBS,
    enable_gate,
    is_on,
    kueue_config,
    unread_results,
)
from placement_ac.inspection.doctor.rbac import PolicyRule, missing_permissions, rules_of
from placement_ac.inspection.doctor.setup import HubSetup, apply_command, hub_rule, pod_of, yaml_of
from placement_ac.inspection.hub.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING

VERBS: Final = {"": ("get", "list", "watch", "patch", "update"), "/status": ("get", "patch", "update")}
"""The verbs that Kueue needs on such a kind on the hub, by subresource."""
ROLE: Final = "kueue-external-frameworks"


@hub_rule(
    "external-frameworks-gate",
    f"with `multiKueue.externalFrameworks`: Kueue's gate {CUSTOM_JOBS} is on",
    f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # featureGates",
)
def external_frameworks_gate(setup: HubSetup) -> Iterator[RuleResult]:
    kueue = kueue_config(setup)
    if unknown := unread_results(setup, kueue):
        yield from unknown
        return
    named = kueue.external_frameworks
    if not named:
        yield ok("Kueue has no external frameworks")
    elif is_on(setup, kueue, CUSTOM_JOBS):
        yield ok(f"the gate {CUSTOM_JOBS} is on, for {joined(named)}")
    else:
        fix = enable_gate(setup, kueue, CUSTOM_JOBS)
        yield fail(f"the gate {CUSTOM_JOBS} is off: {joined(named)} are not sent", fix)


@hub_rule(
    "external-frameworks-rights",
    "with `multiKueue.externalFrameworks`: a ClusterRole lets Kueue read and update them on the hub",
    "kubectl apply -f -  # ClusterRole and ClusterRoleBinding",
)
def external_frameworks_rights(setup: HubSetup) -> Iterator[RuleResult]:
    kueue = kueue_config(setup)
    if unknown := unread_results(setup, kueue):
        yield from unknown
        return
    named = kueue.external_frameworks
    if not named:
        yield ok("Kueue has no external frameworks")
        return
    if unknown := setup.unknown_results(CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
        yield from unknown
        return
    rules = rules_of(setup, setup.kueue_namespace, account_of(setup))
    for name in named:
        kind = parse_external(name)
        if isinstance(kind, str):
            change = f"kubectl edit {kueue.where(setup.kueue_namespace)}"
            yield fail(f"external framework {kind}", f"{change}  # multiKueue.externalFrameworks")
        elif missing := _missing(kind, rules):
            yield fail(
                f"Kueue may not {joined(missing, '; ')}: external framework {name} does not work",
                _grant(setup, kind),
            )
    yield ok(f"Kueue has its rights on {joined(named)}")


def account_of(setup: HubSetup) -> str:
    return str(pod_of(setup.kueue or {}).get("serviceAccountName") or KUEUE_MANAGER)


def _missing(kind: ExternalFramework, rules: list[PolicyRule]) -> list[str]:
    """Return the verbs that Kueue lacks, with the resource, as text."""
    return missing_permissions(rules, kind.group, {kind.plural + sub: verbs for sub, verbs in VERBS.items()})


def _grant(setup: HubSetup, kind: ExternalFramework) -> str:
    name = f"{ROLE}-{kind.plural}.{kind.group}"
    return apply_command(
        "apiVersion: rbac.authorization.k8s.io/v1",
        "kind: ClusterRole",
        f"metadata: {{name: {name}}}",
        "rules:",
        f"- apiGroups: [{kind.group}]",
        f"  resources: [{kind.plural}, {kind.plural}/status]",
        f"  verbs: [{', '.join(VERBS[''])}]",
        "---",
        "apiVersion: rbac.authorization.k8s.io/v1",
        "kind: ClusterRoleBinding",
        f"metadata: {{name: {name}}}",
        f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}",
        "subjects:",
        f"- {{kind: ServiceAccount, name: {yaml_of(account_of(setup))}, namespace: {setup.kueue_namespace}}}",
    )


RULES: Final = (external_frameworks_gate, external_frameworks_rights)
