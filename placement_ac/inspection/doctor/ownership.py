"""
Rules for conflicts of ownership: the Go kueue-addon, and objects of others under our names.

Pure.
"""

from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    ADDON_CONTROLLER,
    ADDON_FINALIZER,
    ADMISSION_CHECK,
    ANNOTATION_ADOPT,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    Kind,
)
from placement_ac.core.api.schemas import as_mapping
from placement_ac.core.api.text import joined
from placement_ac.core.plan.conditions import is_taken
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.setup import (
    HubSetup,
    hub_rule,
    labels_of,
    sequence,
    spec_of,
    status_of,
)
from placement_ac.inspection.hub.dump import Object, key_of
from placement_ac.inspection.hub.kinds import DEPLOYMENT

ADOPT_COMMAND: Final = "placement-ac adopt"


@hub_rule(
    "kueue-addon",
    "the Go kueue-addon does not run",
    f"kubectl scale deployment -n NAMESPACE {ADDON_CONTROLLER} --replicas=0",
)
def kueue_addon(setup: HubSetup) -> Iterator[RuleResult]:
    for one in setup.dump.of(DEPLOYMENT):
        namespace, name = key_of(one)
        if name == ADDON_CONTROLLER and (
            spec_of(one).get("replicas", 1) != 0 or status_of(one).get("replicas")
        ):
            yield fail(
                f"Deployment {namespace}/{name}, the Go kueue-addon, answers the same checks: each "
                "controller undoes the other's writes",
                f"kubectl scale deployment -n {namespace} {name} --replicas=0",
            )
    if not setup.knows(DEPLOYMENT):
        yield from setup.unknown_results(DEPLOYMENT)
    yield ok("the Go kueue-addon does not run")


@hub_rule(
    "kueue-addon-objects",
    "the objects of the Go kueue-addon have been handed over",
    "placement-ac adopt",
    ADMISSION_CHECK,
)
def kueue_addon_objects(setup: HubSetup) -> Iterator[RuleResult]:
    accounts = [
        one for one in setup.dump.of(ACCOUNT) if key_of(one)[1] == ADDON_ACCOUNT and _is_not_adopted(one)
    ]
    checks = [one for one in setup.dump.of(ADMISSION_CHECK) if _has_finalizer(one)]
    mine = {one.meta.name for one in setup.view.our_checks}
    if names := [name for _, name in map(key_of, checks) if name in mine]:
        message = f"the Go kueue-addon's finalizer is on AdmissionCheck {joined(names)}"
        yield warn(f"{message}: no controller removes it", ADOPT_COMMAND)
    if accounts:
        message = joined(f"{namespace}/{name}" for namespace, name in map(key_of, accounts))
        yield warn(
            f"ManagedServiceAccount {message} is the Go kueue-addon's: no controller renews its Secret",
            ADOPT_COMMAND,
        )
    yield ok("no objects of the Go kueue-addon are left to hand over")


@hub_rule(
    "name-taken",
    "no MultiKueueConfig or MultiKueueCluster that someone else owns has a name that we need",
    f"kubectl annotate multikueueclusters.kueue.x-k8s.io NAME {ANNOTATION_ADOPT}=true",
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
)
def name_taken(setup: HubSetup) -> Iterator[RuleResult]:
    found: dict[tuple[Kind, str], RuleResult] = {}
    for placement in sorted({one.placement for one in setup.view.our_checks if one.placement}):
        seen, course = setup.view.snapshot(placement), setup.view.targets(placement)
        there = seen.objects.clusters
        clusters = ((MULTIKUEUE_CLUSTER, there.get(one.name), one.cluster) for one in course.usable)
        wanted = ((MULTIKUEUE_CONFIG, seen.objects.config, ""), *clusters)
        for kind, obj, cluster in wanted:
            label = "" if seen.hub.shared and kind == MULTIKUEUE_CLUSTER else placement
            if obj and is_taken(obj, label, cluster):
                found[(kind, obj.meta.name)] = _name_conflict(kind, obj.meta.name)
    yield from found.values()
    yield ok("no name of ours is taken")


def _name_conflict(kind: Kind, name: str) -> RuleResult:
    return fail(
        f"{kind.kind} {name} has a name that we need, and is owned by someone else",
        f"kubectl annotate {kind} {name} {ANNOTATION_ADOPT}=true",
    )


def _is_not_adopted(account: Object) -> bool:
    """Whether it has not been handed over."""
    annotations = as_mapping(as_mapping(account.get("metadata")).get("annotations"))
    ours = labels_of(account).get(LABEL_MANAGED_BY) == MANAGED_BY
    return not ours and annotations.get(ANNOTATION_ADOPT) != "true"


def _has_finalizer(check: Object) -> bool:
    return ADDON_FINALIZER in sequence(as_mapping(check.get("metadata")).get("finalizers"))


RULES: Final = (kueue_addon, kueue_addon_objects, name_taken)
