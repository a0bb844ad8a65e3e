"""
Every rule of `doctor` for the hub, in the order of an installation: a rule depends only on earlier ones.

Pure.
"""

from typing import Final

from placement_ac.inspection.doctor import (
    admission_checks,
    cluster_profiles,
    cluster_sets,
    connections,
    controller_rules,
    deletion,
    external_frameworks,
    installation,
    kueue_config_rules,
    own_rights,
    ownership,
    waiting_grace,
)
from placement_ac.inspection.doctor.finding import Finding
from placement_ac.inspection.doctor.setup import HubRule, HubSetup

RULES: Final[tuple[HubRule, ...]] = (
    *own_rights.RULES,
    *installation.RULES,
    *kueue_config_rules.RULES,
    *cluster_profiles.RULES,
    *external_frameworks.RULES,
    *controller_rules.RULES,
    *ownership.RULES,
    *cluster_sets.RULES,
    *deletion.RULES,
    *admission_checks.RULES,
    *connections.RULES,
    *waiting_grace.RULES,
)


def examine_hub(setup: HubSetup) -> tuple[Finding, ...]:
    """Return the findings of each rule, in order."""
    return tuple(finding for rule in RULES for finding in rule.findings(setup))
