"""The rule for the feature gate of `multiKueue.externalFrameworks`. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, skip
from kubectl_placement.doctor.kueue import CONFIG_MAP_NAME, CUSTOM_JOBS
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from placement_ac.core.api.text import joined


@hub_rule(
    "external-frameworks-gate",
    f"with `multiKueue.externalFrameworks`: Kueue's gate {CUSTOM_JOBS} is on",
    f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # featureGates",
    unknown=HubSetup.unknown_config,
)
def external_frameworks_gate(setup: HubSetup) -> Iterator[Finding]:
    names = joined(setup.kueue.external_frameworks)
    yield (
        setup.kueue.gate_finding(CUSTOM_JOBS, f", for {names}", f"{names} are not sent")
        if names
        else skip("Kueue has no external frameworks")
    )


RULES: Final = (external_frameworks_gate,)
