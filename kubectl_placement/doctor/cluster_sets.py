"""Rules for cluster sets: they exist, and are bound in the namespaces of the Placements. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.commands import HUB, manifest
from kubectl_placement.doctor.finding import Finding, fail, ok, skip, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.dump import Object
from placement_ac.core.api.constants import ADMISSION_CHECK, CLUSTER_SET, PLACEMENT, SET_BINDING
from placement_ac.core.api.fields import get_str, get_strs, key_of, name_of
from placement_ac.core.api.text import did_you_mean, joined

GLOBAL: Final = "global"
"""OCM's own set of all clusters."""
DEFAULT: Final = "default"
"""OCM's own set of the clusters that are in no other."""
MISSING_SET: Final = "ManagedClusterSet"
"""The subject of a finding about a set that does not exist: any Placement may select from it."""


@hub_rule(
    "cluster-set-bindings",
    "the cluster sets of each Placement that a check names are bound in its namespace, and exist",
    "clusteradm clusterset bind SET --namespace NAMESPACE",
    ADMISSION_CHECK,
    SET_BINDING,
)
def cluster_set_bindings(setup: HubSetup) -> Iterator[Finding]:
    placements = _placements(setup)
    for placement in placements:
        yield from _unbound(setup, placement)
    yield from setup.unknown(CLUSTER_SET) or _missing_sets(setup, placements)
    labels = joined("/".join(key_of(placement)) for placement in placements)
    message = f"cluster sets are bound for {labels}{_not_bound(setup, placements)}"
    yield ok(message) if labels else skip("no check of ours names a Placement")


def _missing_sets(setup: HubSetup, placements: list[Object]) -> Iterator[Finding]:
    used: set[str] = set()
    for placement in placements:
        named = get_strs(placement, "spec", "clusterSets")
        used |= {name for name in _bound(setup, placement) if not named or name in named}
    for name in sorted(used - {name_of(cluster_set) for cluster_set in setup.dump.of(CLUSTER_SET)}):
        message = f"ManagedClusterSet {name} is bound, but does not exist"
        meant = did_you_mean(name, map(name_of, setup.dump.of(CLUSTER_SET)))
        create = HUB.apply(manifest(CLUSTER_SET, name))
        yield fail(message + meant, "kubectl get managedclustersets" if meant else create, MISSING_SET)


def _placements(setup: HubSetup) -> list[Object]:
    """Return the Placements that checks of ours name, each once, in the order of the checks."""
    names = dict.fromkeys(check.placement for check in setup.view.our_checks if check.placement)
    placements = (setup.view.placement(name) for name in names)
    return [placement for placement in placements if placement is not None]


def _bound(setup: HubSetup, placement: Object) -> list[str]:
    """Return the sets that are bound in a Placement's namespace."""
    namespace, _ = key_of(placement)
    bindings = (binding for binding in setup.dump.of(SET_BINDING) if key_of(binding)[0] == namespace)
    return [get_str(binding, "spec", "clusterSet") or name_of(binding) for binding in bindings]


def _not_bound(setup: HubSetup, placements: list[Object]) -> str:
    """Return the cluster sets that no namespace of these Placements binds: nothing selects from them."""
    bound = {name for placement in placements for name in _bound(setup, placement)}
    others = sorted(
        {name_of(cluster_set) for cluster_set in setup.dump.of(CLUSTER_SET)} - bound - {DEFAULT, GLOBAL}
    )
    return f"; not bound there: ManagedClusterSet {joined(others)}" if others else ""


def _unbound(setup: HubSetup, placement: Object) -> Iterator[Finding]:
    namespace, name = key_of(placement)
    label = f"Placement {namespace}/{name}"
    bound, wanted = _bound(setup, placement), get_strs(placement, "spec", "clusterSets")
    missing = [set_name for set_name in wanted if set_name not in bound]
    if not bound:
        yield fail(
            f"no cluster set is bound in namespace {namespace}: {label} selects nothing"
            + _also(setup, wanted, placement),
            # For a Placement that names none, the admin chooses what it may select from.
            _bind(namespace, wanted) if wanted else "kubectl get managedclustersets",
            f"Placement {name}",
        )
    elif wanted and len(missing) == len(wanted):
        yield fail(
            f"{label} names cluster set {joined(wanted)}, but its namespace binds only {joined(bound)}"
            + _also(setup, missing, placement),
            _bind(namespace, missing),
            f"Placement {name}",
        )
    elif missing:
        yield warn(
            f"{label} also names cluster set {joined(missing)}, which is not bound there"
            + _also(setup, missing, placement),
            _bind(namespace, missing),
        )


def _also(setup: HubSetup, sets: list[str], placement: Object) -> str:
    """Return which other Placements would select from sets that are bound: those that name none."""
    namespace, _ = key_of(placement)
    there = (obj for obj in setup.dump.of(PLACEMENT) if key_of(obj)[0] == namespace and obj is not placement)
    others = joined(key_of(obj)[1] for obj in there if not get_strs(obj, "spec", "clusterSets"))
    more = f" (once bound, Placement {others}, which names no set, selects from it as well)"
    return more if sets and others else ""


def _bind(namespace: str, sets: list[str]) -> str:
    bindings = (manifest(SET_BINDING, name, {"clusterSet": name}, namespace=namespace) for name in sets)
    return HUB.apply(*bindings)


RULES: Final = (cluster_set_bindings,)
