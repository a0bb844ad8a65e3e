"""
Does anybody else write what is ours: the Go kueue-addon, or objects under our names?

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
from placement_ac.inspection.doctor.finding import Rule, Told, fail, warn, well
from placement_ac.inspection.doctor.setup import (
    Setup,
    labels_of,
    needing,
    sequence,
    spec_of,
    status_of,
)
from placement_ac.inspection.dump import Object, key_of
from placement_ac.inspection.kinds import DEPLOYMENT

HAND_OVER: Final = "placement-ac adopt"


def kueue_addon(setup: Setup) -> Iterator[Told]:
    for one in setup.dump.of(DEPLOYMENT):
        namespace, name = key_of(one)
        if name == ADDON_CONTROLLER and (
            spec_of(one).get("replicas", 1) != 0 or status_of(one).get("replicas")
        ):
            yield fail(
                f"Deployment {namespace}/{name}, the Go kueue-addon, answers the same checks: each undoes "
                "the other's work",
                f"kubectl scale deployment -n {namespace} {name} --replicas=0",
            )
    if not setup.knows(DEPLOYMENT):
        yield from setup.unknown(DEPLOYMENT)
    yield well("the Go kueue-addon does not run")


@needing(ADMISSION_CHECK)
def kueue_addon_objects(setup: Setup) -> Iterator[Told]:
    accounts = [one for one in setup.dump.of(ACCOUNT) if key_of(one)[1] == ADDON_ACCOUNT and _is_left(one)]
    checks = [one for one in setup.dump.of(ADMISSION_CHECK) if _has_finalizer(one)]
    mine = {one.meta.name for one in setup.view.ours}
    if names := [name for _, name in map(key_of, checks) if name in mine]:
        told = f"the Go kueue-addon's finalizer is on AdmissionCheck {joined(names)}"
        yield warn(f"{told}: nobody takes it off", HAND_OVER)
    if accounts:
        told = joined(f"{namespace}/{name}" for namespace, name in map(key_of, accounts))
        yield warn(
            f"ManagedServiceAccount {told} is the Go kueue-addon's: nobody renews its Secret", HAND_OVER
        )
    yield well("nothing of the Go kueue-addon's is left to be handed over")


@needing(ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER)
def name_taken(setup: Setup) -> Iterator[Told]:
    found: dict[tuple[Kind, str], Told] = {}
    for placement in sorted({one.placement for one in setup.view.ours if one.placement}):
        seen, course = setup.view.snapshot(placement), setup.view.course(placement)
        clusters = (
            (MULTIKUEUE_CLUSTER, seen.objects.clusters.get(one.name), one.cluster) for one in course.usable
        )
        wanted = ((MULTIKUEUE_CONFIG, seen.objects.config, ""), *clusters)
        for kind, obj, cluster in wanted:
            label = "" if seen.hub.shared and kind == MULTIKUEUE_CLUSTER else placement
            if obj and is_taken(obj, label, cluster):
                found[(kind, obj.meta.name)] = _in_the_way(kind, obj.meta.name)
    yield from found.values()
    yield well("no name of ours is taken")


def _in_the_way(kind: Kind, name: str) -> Told:
    return fail(
        f"{kind.kind} {name} is someone else's, and in the way",
        f"kubectl annotate {kind} {name} {ANNOTATION_ADOPT}=true",
    )


def _is_left(account: Object) -> bool:
    """Whether nobody has handed it over."""
    annotations = as_mapping(as_mapping(account.get("metadata")).get("annotations"))
    ours = labels_of(account).get(LABEL_MANAGED_BY) == MANAGED_BY
    return not ours and annotations.get(ANNOTATION_ADOPT) != "true"


def _has_finalizer(check: Object) -> bool:
    return ADDON_FINALIZER in sequence(as_mapping(check.get("metadata")).get("finalizers"))


RULES: Final = (
    Rule(
        "kueue-addon",
        "the Go kueue-addon does not run beside us",
        f"kubectl scale deployment -n NAMESPACE {ADDON_CONTROLLER} --replicas=0",
        kueue_addon,
    ),
    Rule(
        "kueue-addon-objects",
        "what the Go kueue-addon has made has been handed over",
        "placement-ac adopt",
        kueue_addon_objects,
    ),
    Rule(
        "name-taken",
        "no MultiKueueConfig or MultiKueueCluster of someone else's has a name that we need",
        f"kubectl annotate multikueueclusters.kueue.x-k8s.io NAME {ANNOTATION_ADOPT}=true",
        name_taken,
    ),
)
