"""
Rules for Kueue's Deployment: does it exist, does it run, and is its release suitable?

Pure.
"""

from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import KUEUE_MANAGER
from placement_ac.core.inputs.rights import VersionRange
from placement_ac.inspection.doctor.cluster_profiles import providers
from placement_ac.inspection.doctor.crds import INSTALL_KUEUE, KUEUE_MANIFESTS, KUEUE_TO_INSTALL
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.kueue_config import keep_config, kueue_config
from placement_ac.inspection.doctor.setup import (
    HubSetup,
    hub_rule,
    image_command,
    list_deployments_command,
    ready,
    set_setting_command,
    spec_of,
)
from placement_ac.inspection.hub.dump import key_of
from placement_ac.inspection.hub.kinds import DEPLOYMENT

KEEPS_JOBS: Final = VersionRange("0.17.8, 0.18.4")
"""Releases that do not evict healthy jobs when a watch of a worker restarts."""
KEEPS_ORDER: Final = VersionRange("0.19")
"""Releases whose Incremental dispatcher follows the order of the list; earlier ones sort by name."""


@hub_rule(
    "kueue-deployment",
    f"the Deployment {KUEUE_MANAGER} is in Kueue's namespace and has a ready Pod",
    f"kubectl rollout restart -n KUEUE deployment/{KUEUE_MANAGER}",
)
def kueue_deployment(setup: HubSetup) -> Iterator[RuleResult]:
    where = f"{setup.kueue_namespace}/{KUEUE_MANAGER}"
    deployment = setup.kueue
    if deployment is None:
        if not setup.knows(DEPLOYMENT, setup.kueue_namespace):
            yield from setup.unknown_results(DEPLOYMENT, namespaces=[setup.kueue_namespace])
            return
        others = [one for one in setup.dump.of(DEPLOYMENT) if key_of(one)[1] == KUEUE_MANAGER]
        message = f"there is no Deployment {where}"
        if others:
            namespace = key_of(others[0])[0]
            fix = set_setting_command(setup, "kueue_namespace", namespace)
            yield setup.settings_failure(f"{message}; Kueue is in {namespace}", fix)
        else:
            yield setup.settings_failure(message, INSTALL_KUEUE)
    elif not spec_of(deployment).get("replicas", 1):
        yield fail(
            f"Deployment {where} is scaled to 0",
            f"kubectl scale deployment -n {setup.kueue_namespace} {KUEUE_MANAGER} --replicas=1",
        )
    elif not ready(deployment):
        yield fail(
            f"no Pod of Deployment {where} is ready",
            f"kubectl rollout restart -n {setup.kueue_namespace} deployment/{KUEUE_MANAGER} && "
            f"kubectl rollout status -n {setup.kueue_namespace} deployment/{KUEUE_MANAGER}",
        )
    else:
        yield ok(f"Deployment {where} has {ready(deployment)} ready")


@hub_rule(
    "kueue-release",
    "its release does not evict healthy jobs (from 0.17.8, 0.18.4 on) and follows the order of the list "
    "(from 0.19 on)",
    f"kubectl apply --server-side -f {KUEUE_MANIFESTS.format('RELEASE')}",
)
def kueue_release(setup: HubSetup) -> Iterator[RuleResult]:
    found = setup.kueue_release
    upgrade = _upgrade(setup)
    if setup.kueue is None and found is None:
        yield warn("unknown: Kueue's Deployment was not found", list_deployments_command())
    elif found is None:
        yield warn(
            "unknown: neither image nor label of Kueue's Deployment names a release", image_command(setup)
        )
    elif not KEEPS_JOBS.has(found):
        yield fail(
            f"Kueue {found} evicts healthy jobs when a watch of a worker restarts: "
            "fixed in 0.17.8, 0.18.4 and 0.19.0",
            upgrade,
        )
    elif not KEEPS_ORDER.has(found):
        yield warn(
            f"Kueue {found} nominates clusters by name, not in the Placement's order: fixed in 0.19.0",
            upgrade,
        )
    else:
        yield ok(f"Kueue {found}")


def _upgrade(setup: HubSetup) -> str:
    """Return the command that installs a newer release and keeps the configuration.

    kubectl removes fields that the release lacks: if that may be a plugin, the command only shows the diff.
    """
    release = f"--server-side -f {KUEUE_MANIFESTS.format(KUEUE_TO_INSTALL)}"
    kueue = kueue_config(setup)
    if providers(kueue):
        return f"kubectl diff {release}  # apply it with the plugins of your access providers"
    return keep_config(setup, kueue, f"kubectl apply {release}")


RULES: Final = (kueue_deployment, kueue_release)
