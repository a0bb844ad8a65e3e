"""
Rules for cluster sets: they exist, and are bound in the namespaces of the Placements.

Pure.
"""

from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import ADMISSION_CHECK
from placement_ac.core.api.text import joined
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.setup import (
    HubSetup,
    apply_command,
    hub_rule,
    name_of,
    sequence,
    spec_of,
    yaml_of,
)
from placement_ac.inspection.hub.dump import Object, key_of
from placement_ac.inspection.hub.kinds import CLUSTER_SET, SET_BINDING

API_VERSION: Final = "cluster.open-cluster-management.io/v1beta2"
GLOBAL: Final = "global"
"""OCM's own set of all clusters."""


@hub_rule(
    "cluster-set-bindings",
    "the cluster sets of each Placement that a check names are bound in its namespace",
    "clusteradm clusterset bind SET --namespace NAMESPACE",
    ADMISSION_CHECK,
    SET_BINDING,
)
def cluster_set_bindings(setup: HubSetup) -> Iterator[RuleResult]:
    placements = placements_of(setup)
    for placement in placements:
        yield from _binding_results(setup, placement)
    message = [f"{namespace}/{name}" for namespace, name in map(key_of, placements)]
    yield ok(
        f"cluster sets are bound for {joined(message)}" if message else "no check of ours names a Placement"
    )


@hub_rule(
    "cluster-sets",
    "the bound cluster sets exist",
    "clusteradm create clusterset SET",
    ADMISSION_CHECK,
    SET_BINDING,
    CLUSTER_SET,
)
def cluster_sets(setup: HubSetup) -> Iterator[RuleResult]:
    there = {name_of(one) for one in setup.dump.of(CLUSTER_SET)}
    bound = {
        name for placement in placements_of(setup) for name in _used(placement, _bound(setup, placement))
    }
    for name in sorted(bound - there):
        lines = (
            f"apiVersion: {API_VERSION}",
            "kind: ManagedClusterSet",
            f"metadata: {{name: {yaml_of(name)}}}",
        )
        yield fail(f"ManagedClusterSet {name} is bound, but does not exist", apply_command(*lines))
    yield ok(f"there is ManagedClusterSet {joined(sorted(bound))}" if bound else "none is needed")


def placements_of(setup: HubSetup) -> list[Object]:
    """Return the Placements that checks of ours name, each once."""
    names = dict.fromkeys(one.placement for one in setup.view.our_checks if one.placement)
    found = (setup.view.placement(name) for name in names)
    return [one for one in found if one is not None]


def _bound(setup: HubSetup, placement: Object) -> list[str]:
    """Return the sets that are bound in a Placement's namespace."""
    namespace, _ = key_of(placement)
    found = (one for one in setup.dump.of(SET_BINDING) if key_of(one)[0] == namespace)
    return [str(spec_of(one).get("clusterSet") or name_of(one)) for one in found]


def _wanted(placement: Object) -> list[str]:
    return [str(one) for one in sequence(spec_of(placement).get("clusterSets"))]


def _used(placement: Object, bound: list[str]) -> list[str]:
    """Return the bound sets that a Placement selects from: those that it names, or all."""
    wanted = _wanted(placement)
    return [name for name in bound if not wanted or name in wanted]


def _binding_results(setup: HubSetup, placement: Object) -> Iterator[RuleResult]:
    namespace, name = key_of(placement)
    bound, wanted = _bound(setup, placement), _wanted(placement)
    missing = [one for one in wanted if one not in bound]
    if not bound:
        yield fail(
            f"no cluster set is bound in namespace {namespace}: Placement {namespace}/{name} selects nothing",
            _bind(namespace, wanted or _some_set(setup)),
        )
    elif wanted and len(missing) == len(wanted):
        yield fail(
            f"Placement {namespace}/{name} names cluster set {joined(wanted)}, but its namespace binds only "
            f"{joined(bound)}",
            _bind(namespace, missing),
        )
    elif missing:
        yield warn(
            f"Placement {namespace}/{name} also names cluster set {joined(missing)}, "
            "which is not bound there",
            _bind(namespace, missing),
        )


def _some_set(setup: HubSetup) -> list[str]:
    """Return an existing set for a Placement that names none; OCM's global set only if there is no other."""
    there = [one for one in map(name_of, setup.dump.of(CLUSTER_SET)) if one != GLOBAL]
    return [*there, GLOBAL][:1]


def _bind(namespace: str, sets: list[str]) -> str:
    documents = [
        "\n".join(
            (
                f"apiVersion: {API_VERSION}",
                "kind: ManagedClusterSetBinding",
                f"metadata: {{name: {yaml_of(one)}, namespace: {namespace}}}",
                f"spec: {{clusterSet: {yaml_of(one)}}}",
            )
        )
        for one in sets
    ]
    return apply_command("\n---\n".join(documents))


RULES: Final = (cluster_set_bindings, cluster_sets)
