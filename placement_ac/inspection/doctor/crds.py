"""
Rules for the kinds that the controller needs: does the hub serve them in supported versions?

Pure.
"""

from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import KUEUE, OCM_CLUSTER, OPTIONAL_KINDS, REQUIRED_KINDS, Kind
from placement_ac.core.api.schemas import as_mapping
from placement_ac.core.api.text import joined
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.setup import HubSetup, hub_rule, sequence, spec_of
from placement_ac.inspection.hub.kinds import CRD

KUEUE_KINDS: Final = tuple(kind for kind in REQUIRED_KINDS if kind.group == KUEUE)
OCM_KINDS: Final = tuple(kind for kind in REQUIRED_KINDS if kind.group == OCM_CLUSTER)
OCM_OPTIONAL: Final = tuple(kind for kind in OPTIONAL_KINDS if kind.group == OCM_CLUSTER)
KUEUE_MANIFESTS: Final = "https://github.com/kubernetes-sigs/kueue/releases/download/v{}/manifests.yaml"
KUEUE_TO_INSTALL: Final = "0.19.2"
"""The newest release that `core.inputs.rights` covers."""
INSTALL_KUEUE: Final = f"kubectl apply --server-side -f {KUEUE_MANIFESTS.format(KUEUE_TO_INSTALL)}"
INSTALL_OCM: Final = "clusteradm init --wait"


def versions(setup: HubSetup, kind: Kind) -> tuple[str, ...] | None:
    """Return the versions in which the hub serves a kind; None: unknown."""
    definition = setup.dump.find(CRD, str(kind))
    if definition is not None:
        entries = (as_mapping(one) for one in sequence(spec_of(definition).get("versions")))
        return tuple(str(one.get("name")) for one in entries if one.get("served"))
    found = setup.dump.served.get(kind)
    if found and (setup.dump.live or not setup.knows(CRD)):
        return (found.version,)
    return () if setup.dump.live or setup.knows(CRD) else None


@hub_rule(
    "kueue-crds",
    "Kueue's kinds are served, in versions that the controller supports",
    f"kubectl apply --server-side -f {KUEUE_MANIFESTS.format('RELEASE')}",
)
def kueue_crds(setup: HubSetup) -> Iterator[RuleResult]:
    yield from _served_results(setup, KUEUE_KINDS, INSTALL_KUEUE)


@hub_rule(
    "ocm-crds", "OCM's Placements and decisions are served; so are ManagedClusters and scores", INSTALL_OCM
)
def ocm_crds(setup: HubSetup) -> Iterator[RuleResult]:
    yield from _served_results(setup, OCM_KINDS, INSTALL_OCM)
    for kind in OCM_OPTIONAL:
        if versions(setup, kind) == ():
            yield warn(f"{kind} are not served, so they are not used", INSTALL_OCM)


def _served_results(setup: HubSetup, kinds: tuple[Kind, ...], fix: str) -> Iterator[RuleResult]:
    silent = [kind for kind in kinds if versions(setup, kind) is None]
    if silent:
        yield from setup.unknown_results(CRD)
    for kind in kinds:
        there = versions(setup, kind)
        if there == ():
            yield fail(f"{kind} are not served", fix)
        elif there and not set(there) & set(kind.versions):
            yield fail(
                f"{kind} are served as {joined(there)}, but the controller needs {joined(kind.versions)}",
                fix,
            )
    yield ok(joined(f"{kind.plural} {_common_version(setup, kind)}".strip() for kind in kinds))


def _common_version(setup: HubSetup, kind: Kind) -> str:
    there = versions(setup, kind) or ()
    return next((version for version in kind.versions if version in there), "")


RULES: Final = (kueue_crds, ocm_crds)
