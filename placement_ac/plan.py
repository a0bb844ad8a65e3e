"""
Decide what Kueue should see for one Placement.

Pure functions of a `Snapshot`: no clock, no I/O, no logging. Refusing is an
answer like any other; it reaches the user as a condition, not an exception.
A refusal leaves the objects as they are, save the two that say "there is no
cluster": then the config goes, as Kueue takes none that is empty.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from placement_ac.model import Check, KueueObject
from placement_ac.names import (
    ACTIVE,
    ANNOTATION_ADOPT,
    BAD_PARAMETERS,
    CONDITION_MESSAGE_MAX,
    GENERATED,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAME_TAKEN,
    NO_CLUSTER_SELECTED,
    NO_CLUSTER_USABLE,
    NO_DECISION,
    OCM_CLUSTER,
    PLACEMENT,
    PLACEMENT_NOT_FOUND,
    RIVAL_SECONDS,
    SOME_CLUSTERS_UNUSABLE,
    Kind,
)
from placement_ac.selection import Selection, Usable, cluster_of, select
from placement_ac.snapshot import Plan, Snapshot, Source, Verdict, WantedCluster, WantedConfig

_TROUBLE: Final = (("PlacementSatisfied", "False"), ("PlacementMisconfigured", "True"))
NAMES_SHOWN: Final = 10
"""Clusters named one by one in a message; the rest is counted."""


def plan(seen: Snapshot) -> Plan:
    """Return the objects and the verdict on each check that `seen` calls for."""
    if not seen.checks:
        return _held(seen, Plan()) if owners_of(seen) else _none(seen, Plan())
    selection = select(seen)
    verdict = judge(seen, selection)
    answer = Plan(
        verdicts={check.meta.name: verdict for check in seen.checks},
        pending=selection.pending,
        recheck_after=_recheck_after(seen, selection),
    )
    if verdict.status == "True":
        return _generated(seen, selection, answer)
    if verdict.reason in (NO_CLUSTER_SELECTED, NO_CLUSTER_USABLE):
        return _none(seen, answer)
    return _held(seen, answer)


def _recheck_after(seen: Snapshot, selection: Selection) -> float | None:
    blocked = any(_claimed_elsewhere(seen, entry) for entry in selection.usable)
    return selection.recheck_after or (RIVAL_SECONDS if blocked else None)


def judge(seen: Snapshot, selection: Selection) -> Verdict:
    """Return the first objection, or what has been generated."""
    for rule in RULES:
        if objection := rule(seen, selection):
            return objection
    if selection.left_out or selection.beyond:
        return Verdict("True", SOME_CLUSTERS_UNUSABLE, f"{GENERATED}; {_who_is_missing(seen, selection)}")
    return Verdict("True", ACTIVE, GENERATED)


def owners_of(seen: Snapshot) -> dict[str, str]:
    """Return the AdmissionChecks that use the config, uid → name: as long as one lives, so does it."""
    return {check.meta.uid: check.meta.name for check in (*seen.checks, *seen.users, *seen.holders)}


def taken(obj: KueueObject | None, placement: str, cluster: str) -> bool:
    """Whether an object is somebody else's: not made for this pair, and not handed over."""
    if obj is None:
        return False
    if obj.ours:
        # A label that somebody took off says nothing, and is put back.
        return obj.placement not in ("", placement) or obj.cluster not in ("", cluster)
    return obj.meta.annotations.get(ANNOTATION_ADOPT) != "true"


# -- the rules


def parameters_are_wrong(seen: Snapshot, _: Selection) -> Verdict | None:
    problem = what_is_wrong(seen.checks[0])
    return refuse(BAD_PARAMETERS, f"{problem}; {_cure(seen)}") if problem else None


def placement_is_missing(seen: Snapshot, _: Selection) -> Verdict | None:
    if seen.placement:
        return None
    return refuse(PLACEMENT_NOT_FOUND, f"there is no Placement {seen.hub.namespace}/{seen.name}")


def nothing_is_decided(seen: Snapshot, selection: Selection) -> Verdict | None:
    malformed = _malformed(seen)
    if selection.decided and (selection.usable or not malformed):
        return None
    where = f"Placement {seen.hub.namespace}/{seen.name}"
    if malformed:
        return refuse(NO_DECISION, f"the decision of {where} cannot be read: {malformed}")
    return refuse(NO_DECISION, f"OCM has not decided yet for {where}{_placement_says(seen)}")


def nothing_is_selected(seen: Snapshot, selection: Selection) -> Verdict | None:
    if selection.usable or selection.left_out or selection.beyond:
        return None
    where = f"Placement {seen.hub.namespace}/{seen.name}"
    return refuse(NO_CLUSTER_SELECTED, f"{where} selects no cluster{_placement_says(seen)}")


def nothing_is_usable(_: Snapshot, selection: Selection) -> Verdict | None:
    if selection.usable:
        return None
    return refuse(NO_CLUSTER_USABLE, f"no selected cluster is usable: {_told(selection.left_out)}")


def name_is_taken(seen: Snapshot, selection: Selection) -> Verdict | None:
    problems = [*_config_in_the_way(seen), *_clusters_in_the_way(seen, selection)]
    return refuse(NAME_TAKEN, _some(problems, "; ")) if problems else None


def _config_in_the_way(seen: Snapshot) -> Iterator[str]:
    if taken(seen.config, seen.name, ""):
        yield _in_the_way(MULTIKUEUE_CONFIG, seen.config, seen.name)


def _clusters_in_the_way(seen: Snapshot, selection: Selection) -> Iterator[str]:
    label = "" if seen.hub.shared else seen.name
    for entry in selection.usable:
        obj = seen.clusters.get(entry.name)
        if taken(obj, label, entry.cluster):
            yield _in_the_way(MULTIKUEUE_CLUSTER, obj, entry.name)
        elif _claimed_elsewhere(seen, entry):
            rival = seen.rivals[entry.name]
            yield (
                f"MultiKueueCluster {entry.name} is the name for cluster {rival.cluster} of Placement "
                f"{rival.placement} as well: rename one of the Placements"
            )


def _claimed_elsewhere(seen: Snapshot, entry: Usable) -> bool:
    return entry.name in seen.rivals and entry.name not in seen.clusters


# Order matters: a rule may assume that those above it had no objection.
RULES: Final = (
    parameters_are_wrong,
    placement_is_missing,
    nothing_is_decided,
    nothing_is_selected,
    nothing_is_usable,
    name_is_taken,
)


def what_is_wrong(check: Check) -> str:
    """Return what keeps the parameters of a check of ours from naming a Placement; "" when nothing does."""
    if check.placement:
        return ""
    if check.problem:
        return f"the spec cannot be read: {check.problem}"
    parameters = check.parameters
    if parameters is None:
        return "spec.parameters is missing"
    if parameters.api_group != OCM_CLUSTER:
        return f"spec.parameters.apiGroup is {parameters.api_group!r}"
    if parameters.kind != PLACEMENT.kind:
        return f"spec.parameters.kind is {parameters.kind!r}"
    return "spec.parameters.name is empty"


def refuse(reason: str, message: str) -> Verdict:
    return Verdict("False", reason, message[:CONDITION_MESSAGE_MAX])


# -- the objects


def _generated(seen: Snapshot, selection: Selection, answer: Plan) -> Plan:
    """List every usable cluster."""
    owners = owners_of(seen)
    clusters = tuple(
        WantedCluster(entry.name, entry.cluster, entry.source, owners | _others(seen, entry.name))
        for entry in selection.usable
    )
    names = tuple(cluster.name for cluster in clusters)
    config = WantedConfig(seen.name, names, owners)
    return replace(answer, config=config, clusters=clusters + _needed_elsewhere(seen, names))


def _held(seen: Snapshot, answer: Plan) -> Plan:
    """Keep what is there as it is; only its owners follow."""
    owners = owners_of(seen)
    config = None
    if seen.config and not taken(seen.config, seen.name, ""):
        config = WantedConfig(seen.name, seen.config.listed, owners)
    mine = tuple(
        WantedCluster(name, cluster_of(seen, obj), None, owners | _others(seen, name))
        for name, obj in seen.clusters.items()
        if obj.ours and (obj.placement == seen.name or _listed_without_placement(obj, config))
    )
    kept = [cluster.name for cluster in mine]
    return replace(answer, config=config, clusters=mine + _needed_elsewhere(seen, kept))


def _none(seen: Snapshot, answer: Plan) -> Plan:
    """Want nothing but what other Placements share."""
    return replace(answer, clusters=_needed_elsewhere(seen, ()))


def _listed_without_placement(obj: KueueObject, config: WantedConfig | None) -> bool:
    """Whether it is listed here and shared, or its label was taken off."""
    return not obj.placement and config is not None and obj.meta.name in config.clusters


def _needed_elsewhere(seen: Snapshot, wanted: Container[str]) -> tuple[WantedCluster, ...]:
    """Shared MultiKueueClusters that only other Placements list: they stay as they are."""
    return tuple(
        WantedCluster(name, cluster_of(seen, obj), None, _others(seen, name) | _own_claim(seen, name))
        for name, obj in seen.clusters.items()
        if obj.ours and not obj.placement and name not in wanted and _others(seen, name)
    )


def _own_claim(seen: Snapshot, name: str) -> dict[str, str]:
    """Return the owners that others see in this Placement, as it selects what it does not list.

    All Placements must come to the same owners of what they share, or they would write them for ever.
    """
    return owners_of(seen) if seen.checks and isinstance(seen.credentials.get(name), Source) else {}


def _others(seen: Snapshot, name: str) -> dict[str, str]:
    return dict(seen.others.get(name, {}))


# -- the words


def _cure(seen: Snapshot) -> str:
    return (
        f"set spec.parameters to apiGroup: {OCM_CLUSTER}, kind: {PLACEMENT.kind} "
        f"and the name of a Placement in namespace {seen.hub.namespace}"
    )


def _in_the_way(kind: Kind, obj: KueueObject | None, name: str) -> str:
    if obj and obj.ours:
        pair = (f"Placement {obj.placement}", f"cluster {obj.cluster}")
        told = ", ".join(part for part in pair if not part.endswith(" "))
        return f"{kind.kind} {name} belongs to {told}: rename one of the Placements"
    return (
        f"{kind.kind} {name} was not made by placement-ac: delete it, or hand it over with "
        f"kubectl annotate {kind.kind.lower()} {name} {ANNOTATION_ADOPT}=true"
    )


def _placement_says(seen: Snapshot) -> str:
    """Quote the Placement's own conditions where they tell of trouble."""
    conditions = seen.placement.conditions if seen.placement else ()
    said = [f"{c.reason}: {c.message}".rstrip(": ") for c in conditions if (c.type, c.status) in _TROUBLE]
    if seen.placement and seen.placement.problem:
        said.append(f"it cannot be read: {seen.placement.problem}")
    return f" ({'; '.join(said)})" if said else ""


def _malformed(seen: Snapshot) -> str:
    return "; ".join(
        f"PlacementDecision {d.meta.namespace}/{d.meta.name} {d.problem}" for d in seen.decisions if d.problem
    )


def _who_is_missing(seen: Snapshot, selection: Selection) -> str:
    parts = []
    if selection.left_out:
        parts.append(f"left out: {_told(selection.left_out)}")
    if selection.beyond:
        count, most = len(selection.beyond), seen.hub.clusters_max
        parts.append(f"{count} beyond the {most} clusters that Kueue takes: {_some(selection.beyond)}")
    return "; ".join(parts)[: CONDITION_MESSAGE_MAX - len(GENERATED) - 2]


def _told(left_out: Mapping[str, str]) -> str:
    return _some([f"{cluster} ({why})" for cluster, why in left_out.items()])


def _some(names: Iterable[str], between: str = ", ") -> str:
    names = list(names)
    rest = len(names) - NAMES_SHOWN
    return between.join(names[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
