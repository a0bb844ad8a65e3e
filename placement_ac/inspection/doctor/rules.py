"""
Every rule of `doctor`, in the order in which a set-up is put up: what stands on what comes after it.

Pure.
"""

from typing import Final

from placement_ac.inspection.doctor import (
    checks,
    connections,
    controller,
    crds,
    external,
    kueue,
    kueue_rules,
    ownership,
    profiles,
    sets,
)
from placement_ac.inspection.doctor.finding import Finding, Rule
from placement_ac.inspection.doctor.setup import Setup

RULES: Final[tuple[Rule[Setup], ...]] = (
    *crds.RULES,
    *kueue.RULES,
    *kueue_rules.RULES,
    *profiles.RULES,
    *external.RULES,
    *controller.RULES,
    *ownership.RULES,
    *sets.RULES,
    *checks.RULES,
    *connections.RULES,
)


def examine(setup: Setup, rules: tuple[Rule[Setup], ...] = RULES) -> tuple[Finding, ...]:
    """Return what each rule found, in their order."""
    return tuple(finding for rule in rules for finding in rule.findings(setup))
