"""
Rules for `multiKueue.externalFrameworks`: the feature gate, and Kueue's rights on these job kinds.

Pure. The rights on the hub are those of Kueue's page "Run External Framework Jobs in Multi-Cluster".
"""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.commands import HUB, cluster_role
from kubectl_placement.doctor.finding import Finding, fail, ok
from kubectl_placement.doctor.kueue import CONFIG_MAP_NAME, CUSTOM_JOBS
from kubectl_placement.doctor.rbac import missing_permissions, rules_of
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import parse_external

VERBS: Final = {"": ("get", "list", "watch", "patch", "update"), "/status": ("get", "patch", "update")}
"""The verbs that Kueue needs on such a kind on the hub, by subresource."""
ROLE: Final = "kueue-external-frameworks"
_NONE: Final = ok("Kueue has no external frameworks")


@hub_rule(
    "external-frameworks-gate",
    f"with `multiKueue.externalFrameworks`: Kueue's gate {CUSTOM_JOBS} is on",
    f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # featureGates",
    unknown=HubSetup.unknown_config,
)
def external_frameworks_gate(setup: HubSetup) -> Iterator[Finding]:
    names = joined(setup.kueue.external_frameworks)
    yield setup.kueue.gate_finding(CUSTOM_JOBS, f", for {names}", f"{names} are not sent") if names else _NONE


@hub_rule(
    "external-frameworks-rights",
    "with `multiKueue.externalFrameworks`: a ClusterRole lets Kueue read and update them on the hub",
    "kubectl apply -f -  # ClusterRole and ClusterRoleBinding",
    unknown=HubSetup.unknown_config,
)
def external_frameworks_rights(setup: HubSetup) -> Iterator[Finding]:
    kueue = setup.kueue
    names = kueue.external_frameworks
    if not names:
        yield _NONE
        return
    if unknown := setup.unknown(CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
        yield from unknown
        return
    account = {"kind": "ServiceAccount", "name": kueue.account, "namespace": kueue.namespace}
    rules = rules_of(setup.dump, kueue.namespace, kueue.account)
    for name in names:
        kind = parse_external(name)
        if isinstance(kind, str):
            yield fail(f"external framework {kind}", kueue.open_config("multiKueue.externalFrameworks"))
            continue
        needed = {kind.plural + subresource: verbs for subresource, verbs in VERBS.items()}
        if missing := missing_permissions(rules, kind.group, needed):
            granted = {"apiGroups": [kind.group], "resources": [*needed], "verbs": [*VERBS[""]]}
            yield fail(
                f"Kueue may not {joined(missing, '; ')}: external framework {name} does not work",
                HUB.apply(*cluster_role(f"{ROLE}-{kind.plural}.{kind.group}", [granted], account)),
            )
    yield ok(f"Kueue has its rights on {joined(names)}")


RULES: Final = (external_frameworks_gate, external_frameworks_rights)
