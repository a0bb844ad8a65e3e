"""
Every rule of `doctor` for the hub, in the order of an installation: a rule depends only on earlier ones.

Pure.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kubectl_placement.doctor import (
    admission_checks,
    cluster_profiles,
    cluster_sets,
    connections,
    controller_rules,
    deletion,
    duplicate_clusters,
    external_frameworks,
    finished_jobs,
    installation,
    kueue_config_rules,
    kueue_gates,
    managed_namespaces,
    nominations,
    own_rights,
    own_worker,
    ownership,
    resource_claims,
    score_reports,
    stored_versions,
    worker_setup,
)
from kubectl_placement.doctor.finding import Finding, skip
from kubectl_placement.doctor.grouping import grouped
from kubectl_placement.doctor.setup import HubRule, HubSetup

RULES: Final[tuple[HubRule, ...]] = (
    *own_rights.RULES,
    *installation.RULES,
    *stored_versions.RULES,
    *kueue_config_rules.RULES,
    *kueue_gates.RULES,
    *cluster_profiles.RULES,
    *external_frameworks.RULES,
    *controller_rules.RULES,
    *ownership.RULES,
    *cluster_sets.RULES,
    *deletion.RULES,
    *admission_checks.RULES,
    *managed_namespaces.RULES,
    *nominations.RULES,
    *resource_claims.RULES,
    *own_worker.RULES,
    *worker_setup.RULES,
    *score_reports.RULES,
    *connections.RULES,
    *duplicate_clusters.RULES,
    *finished_jobs.RULES,
)
_NEED_KUEUE: Final = frozenset(
    rule.check
    for rule in (
        installation.kueue_deployment,
        installation.kueue_release,
        *kueue_config_rules.RULES,
        *kueue_gates.RULES,
        *managed_namespaces.RULES,
        *resource_claims.RULES,
        *cluster_profiles.RULES,
        *external_frameworks.RULES,
    )
)
"""The rules about Kueue's Deployment and its configuration, which the stand-in does not have."""
_STAND_IN: Final = skip("not on the embedded hub: Kueue is a stand-in there")


def examine_hub(setup: HubSetup) -> tuple[Finding, ...]:
    """Return the findings of each rule, in order."""
    return grouped(finding for rule in RULES for finding in _findings(rule, setup))


def _findings(rule: HubRule, setup: HubSetup) -> Iterable[Finding]:
    if rule.check in _NEED_KUEUE and setup.has_stand_in:
        return (replace(_STAND_IN, check=rule.check),)
    return rule.findings(setup)
