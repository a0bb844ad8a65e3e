"""
Rules for what must be installed: the kinds of Kueue and OCM, and Kueue's Deployment in a suitable release.

Pure.
"""

from collections.abc import Collection, Iterator
from typing import Final

from kubectl_placement.doctor.commands import (
    HUB,
    KUEUE_MANIFESTS,
    KUEUE_TO_INSTALL,
    WATCH_CACHES,
    WATCH_CACHES_FAIL,
)
from kubectl_placement.doctor.finding import Cause, Finding, fail, ok, warn
from kubectl_placement.doctor.kueue import NO_DEPLOYMENT
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.doctor.stored_versions import stored_in_old, stored_versions
from kubectl_placement.hub.kinds import CRD
from placement_ac.core.api.constants import DEPLOYMENT, KUEUE, OCM_CLUSTER
from placement_ac.core.api.fields import get_dict, get_int, key_of
from placement_ac.core.api.kueue_deployment import kueue_deployments
from placement_ac.core.api.text import joined
from placement_ac.core.decisions import SOURCE
from placement_ac.core.inputs.kinds import OPTIONAL_KINDS, REQUIRED_KINDS
from placement_ac.core.inputs.rights import VersionRange

CHOOSE: Final = "kubectl config get-contexts"
"""Where kinds are missing, the context is most likely that of another cluster: it must not get them."""
UPGRADE: Final = f"kubectl apply --server-side -f {KUEUE_MANIFESTS.format('RELEASE')}"
KEEPS_JOBS: Final = VersionRange("0.17.8, 0.18.4")
"""Releases that do not evict healthy jobs when a watch of a worker restarts."""
KEEPS_ORDER: Final = VersionRange("0.19")
"""Releases whose Incremental dispatcher follows the order of the list; earlier ones sort by name."""


@hub_rule("kueue-crds", "Kueue's kinds are served, in versions that the controller supports", CHOOSE)
def kueue_crds(setup: HubSetup) -> Iterator[Finding]:
    yield from _served(setup, {KUEUE}, "Kueue", HUB.install_kueue())


@hub_rule("ocm-crds", "OCM's Placements and decisions are served; so are ManagedClusters and scores", CHOOSE)
def ocm_crds(setup: HubSetup) -> Iterator[Finding]:
    see = f"kubectl api-resources --api-group={OCM_CLUSTER}"
    yield from _served(setup, {OCM_CLUSTER, SOURCE.kind.group}, "OCM", see)
    for kind in OPTIONAL_KINDS:
        if kind.group == OCM_CLUSTER and setup.served_versions(kind) == ():
            yield warn(f"{kind} are not served, so they are not used", see)


def _served(setup: HubSetup, groups: Collection[str], owner: str, upgrade: str) -> Iterator[Finding]:
    """Yield the findings on the required kinds of these groups."""
    served = {kind: setup.served_versions(kind) for kind in REQUIRED_KINDS if kind.group in groups}
    if None in served.values():
        yield from setup.unknown(CRD)
    if lacking := [str(kind) for kind, versions in served.items() if versions == ()]:
        which = f"{joined(lacking)} are not served"
        yield fail(f"choose the context of a hub, or install {owner} there: {which}", CHOOSE)
    for kind, versions in served.items():
        if versions and not set(versions) & set(kind.versions):
            needed = joined(kind.versions)
            yield fail(f"{kind} are served as {joined(versions)}, but the controller needs {needed}", upgrade)
    newest = {
        kind: next((version for version in kind.versions if version in (versions or ())), "")
        for kind, versions in served.items()
    }
    yield ok(joined(f"{kind.plural} {version}".strip() for kind, version in newest.items()))


@hub_rule(
    "kueue-deployment",
    "Kueue's Deployment is in its namespace and has a ready Pod",
    "kubectl rollout restart -n KUEUE deployment/NAME",
)
def kueue_deployment(setup: HubSetup) -> Iterator[Finding]:
    namespace, deployment = setup.kueue_namespace, setup.kueue.deployment
    name = setup.kueue.name
    label = f"Deployment {namespace}/{name}"
    if deployment is None:
        if unknown := setup.unknown(DEPLOYMENT, namespaces=[namespace]):
            yield from unknown
            return
        message, fix = f"there is no Deployment of Kueue in namespace {namespace}", NO_DEPLOYMENT.fix
        spaces = (key_of(obj)[0] for obj in kueue_deployments(setup.dump.of(DEPLOYMENT)))
        if other := next(spaces, None):
            message, fix = f"{message}; Kueue is in {other}", setup.set_setting("kueue_namespace", other)
        yield setup.settings_failure(message, fix)
    elif not get_dict(deployment, "spec").get("replicas", 1):
        fix = f"kubectl scale deployment -n {namespace} {name} --replicas=1"
        yield fail(f"{label} is scaled to 0", fix)
    elif not (ready := get_int(deployment, "status", "readyReplicas")):
        where = f"-n {namespace} deployment/{name}"
        fix = f"kubectl rollout restart {where} && kubectl rollout status {where}"
        yield fail(f"no Pod of {label} is ready", fix)
    else:
        yield ok(f"{label} has {ready} ready")


@hub_rule(
    "kueue-release",
    "its release does not evict healthy jobs (from 0.17.8, 0.18.4 on), follows the order of the list "
    f"(from 0.19 on), and does not break watch caches (from {KUEUE_TO_INSTALL} on, of 0.20)",
    UPGRADE,
)
def kueue_release(setup: HubSetup) -> Iterator[Finding]:
    kueue, release = setup.kueue, setup.kueue.release
    migrate_first = [Cause(stored_versions.check)] if stored_in_old(setup.dump.of(CRD)) else []
    if kueue.deployment is None and release is None:
        yield NO_DEPLOYMENT
    elif release is None:
        yield warn("unknown: neither image nor label of Kueue's Deployment names a release", kueue.show_image)
    elif not KEEPS_JOBS.has(release):
        yield fail(
            f"Kueue {release} evicts healthy jobs when a watch of a worker restarts: "
            "fixed in 0.17.8, 0.18.4 and 0.19.0",
            setup.kueue.upgrade(),
            causes=migrate_first,
        )
    elif not KEEPS_ORDER.has(release):
        yield warn(
            f"Kueue {release} nominates clusters by name, not in the Placement's order: fixed in 0.19.0",
            setup.kueue.upgrade(),
            causes=migrate_first,
        )
    elif WATCH_CACHES_FAIL.has(release):
        yield warn(f"upgrade Kueue {release}: with it, {WATCH_CACHES}", setup.kueue.upgrade())
    else:
        yield ok(f"Kueue {release}")


RULES: Final = (kueue_crds, ocm_crds, kueue_deployment, kueue_release)
