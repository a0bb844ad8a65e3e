"""The rule for jobs with ResourceClaims, for which the hub's Kueue has no mapping to quota. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, ok, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.dump import condition_of
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.fields import Key, get_list, get_value, key_of
from placement_ac.core.api.text import count_text, joined

NAMED: Final = 3
"""So many Workloads are named."""
FIELD: Final = "resources.deviceClassMappings"


def _waiting(setup: HubSetup) -> list[Key]:
    """Return the Workloads with ResourceClaims that have neither finished nor a cluster, by name."""
    return sorted(
        key_of(raw)
        for raw in setup.dump.of(WORKLOAD)
        if not get_value(raw, "status", "clusterName")
        and condition_of(raw, "Finished").get("status") != "True"
        and any(
            get_list(podset, "template", "spec", "resourceClaims")
            for podset in get_list(raw, "spec", "podSets")
        )
    )


def _unread(setup: HubSetup) -> tuple[Finding, ...]:
    return setup.unknown(WORKLOAD) if setup.missing_right(WORKLOAD) else ()


@hub_rule(
    "resource-claims",
    f"where jobs with ResourceClaims wait, Kueue's `{FIELD}` says what they count",
    "kubectl edit configmap -n KUEUE kueue-manager-config",
    unknown=lambda setup: setup.unknown_config() if _waiting(setup) else _unread(setup),
)
def resource_claims(setup: HubSetup) -> Iterator[Finding]:
    waiting = _waiting(setup)
    if waiting and not get_list(setup.kueue.config, "resources", "deviceClassMappings"):
        names = joined(map("/".join, waiting), shown=NAMED)
        wait = "waits" if len(waiting) == 1 else "wait"
        yield warn(
            f"{count_text(len(waiting), 'Workload')} with ResourceClaims ({names}) {wait}, and Kueue's"
            f" configuration has no {FIELD}: Kueue gives no quota, or one without the devices (before 0.18),"
            " and no cluster's room is compared",
            setup.kueue.edit_config(f"{FIELD}: [{{name: RESOURCE, deviceClassNames: [CLASS]}}]"),
        )
    yield ok("no job with ResourceClaims waits that Kueue has no mapping for")


RULES: Final = (resource_claims,)
