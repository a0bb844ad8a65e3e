"""
The rule against the hub as a worker of itself. Pure.

Kueue: "We do not currently support running the manager cluster as one of the workers for itself".
"""

import json
from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, fail, ok
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.kubeconfigs import server_and_user
from placement_ac.core.api.constants import ADMISSION_CHECK, MANAGED_CLUSTER, SECRET
from placement_ac.core.api.fields import key_of, labels_of
from placement_ac.core.decisions import SOURCE
from placement_ac.core.kubeconfig.source import CredentialSource

LABEL: Final = "local-cluster"
"""OCM and ACM: the label, with the value `true`, of the hub as its own managed cluster; also its name."""
_NAME: Final = "name"
"""The label in which each ManagedCluster has its name."""


@hub_rule(
    "hub-as-worker",
    "no Placement selects the hub itself: Kueue does not support the manager cluster as its own worker",
    "kubectl edit placement -n NAMESPACE PLACEMENT  # spec.predicates",
    ADMISSION_CHECK,
    unknown=lambda setup: setup.unknown(SOURCE.kind, namespaces=setup.placement_namespaces),
)
def hub_as_worker(setup: HubSetup) -> Iterator[Finding]:
    for name, check in setup.checks_by_placement.items():
        placement = setup.view.placement(name)
        selected = setup.view.snapshot(name).credentials.selected
        for cluster in sorted(selected):
            why = _why_it_is_the_hub(setup, cluster, selected[cluster])
            if why and placement:
                namespace, _ = key_of(placement)
                yield fail(
                    f"Placement {namespace}/{name} (check {check}) selects {cluster}, which is this hub "
                    f"({why}): Kueue does not support the manager cluster as its own worker",
                    f"kubectl edit placement -n {namespace} {name}  # spec.predicates: "
                    f"{_predicate(setup, cluster)}",
                    f"Placement {name}",
                )
    yield ok("no Placement selects the hub itself")


def _why_it_is_the_hub(setup: HubSetup, cluster: str, source: object) -> str:
    """Return how a cluster is known to be the hub; "" if nothing says so."""
    raw = setup.dump.find(MANAGED_CLUSTER, cluster)
    if raw and labels_of(raw).get(LABEL) == "true":
        return f"its label {LABEL} is true"
    if cluster == LABEL:
        return "by its name"
    if isinstance(source, CredentialSource) and source.kind == SECRET.kind and setup.dump.server:
        access = server_and_user(setup.dump.find(SECRET, source.name, setup.kueue_namespace))
        if access and access[0].rstrip("/") == setup.dump.server.rstrip("/"):
            return f"its credentials are for {setup.dump.server}"
    return ""


def _predicate(setup: HubSetup, cluster: str) -> str:
    """Return the predicate that leaves a cluster out."""
    raw = setup.dump.find(MANAGED_CLUSTER, cluster)
    labelled = raw is not None and labels_of(raw).get(LABEL) == "true"
    key, value = (LABEL, "true") if labelled else (_NAME, cluster)
    expression = {"key": key, "operator": "NotIn", "values": [value]}
    selector = {"labelSelector": {"matchExpressions": [expression]}}
    return json.dumps([{"requiredClusterSelector": selector}])


RULES: Final = (hub_as_worker,)
