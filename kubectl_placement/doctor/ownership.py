"""Rules for conflicts of ownership: the Go kueue-addon, and objects of others under our names. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, fail, ok, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.dump import Object
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    ADDON_CONTROLLER,
    ADDON_FINALIZER,
    ADMISSION_CHECK,
    ANNOTATION_ADOPT,
    DEPLOYMENT,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
)
from placement_ac.core.api.fields import get_dict, get_strs, key_of, labels_of, name_of
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.state import is_shared
from placement_ac.core.plan.conditions import is_taken

ADOPT_COMMAND: Final = "placement-ac adopt"


@hub_rule(
    "kueue-addon",
    "the Go kueue-addon does not run, and its objects have been handed over",
    f"kubectl scale deployment -n NAMESPACE {ADDON_CONTROLLER} --replicas=0",
)
def kueue_addon(setup: HubSetup) -> Iterator[Finding]:
    for deployment in setup.dump.of(DEPLOYMENT):
        namespace, name = key_of(deployment)
        runs = get_dict(deployment, "spec").get("replicas", 1) != 0 or get_dict(deployment, "status").get(
            "replicas"
        )
        if name == ADDON_CONTROLLER and runs:
            yield fail(
                f"Deployment {namespace}/{name}, the Go kueue-addon, answers the same checks: each "
                "controller undoes the other's writes",
                f"kubectl scale deployment -n {namespace} {name} --replicas=0",
            )
    yield from _addon_objects(setup)
    yield from setup.unknown(DEPLOYMENT, ADMISSION_CHECK)
    yield ok("the Go kueue-addon does not run, and none of its objects are left to hand over")


def _addon_objects(setup: HubSetup) -> Iterator[Finding]:
    ours = {check.meta.name for check in setup.view.our_checks}
    checks = (check for check in setup.dump.of(ADMISSION_CHECK) if name_of(check) in ours)
    if names := joined(
        name_of(check) for check in checks if ADDON_FINALIZER in get_strs(check, "metadata", "finalizers")
    ):
        message = f"the Go kueue-addon's finalizer is on AdmissionCheck {names}: no controller removes it"
        yield warn(message, ADOPT_COMMAND)
    accounts = (account for account in setup.dump.of(ACCOUNT) if name_of(account) == ADDON_ACCOUNT)
    if names := joined("/".join(key_of(account)) for account in accounts if not _is_adopted(account)):
        message = f"ManagedServiceAccount {names} is the Go kueue-addon's: no controller renews its Secret"
        yield warn(message, ADOPT_COMMAND)


def _is_adopted(account: Object) -> bool:
    adopted = get_dict(account, "metadata", "annotations").get(ANNOTATION_ADOPT) == "true"
    return adopted or labels_of(account).get(LABEL_MANAGED_BY) == MANAGED_BY


@hub_rule(
    "name-taken",
    "no MultiKueueConfig or MultiKueueCluster that someone else owns has a name that we need",
    f"kubectl annotate multikueueclusters.kueue.x-k8s.io NAME {ANNOTATION_ADOPT}=true",
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
)
def name_taken(setup: HubSetup) -> Iterator[Finding]:
    taken = {}
    for placement in setup.checks_by_placement:
        snapshot, targets = setup.view.snapshot(placement), setup.view.targets(placement)
        there = snapshot.objects.clusters
        clusters = ((MULTIKUEUE_CLUSTER, there.get(entry.name), entry.cluster) for entry in targets.to_list)
        for kind, obj, cluster in ((MULTIKUEUE_CONFIG, snapshot.objects.config, ""), *clusters):
            label = "" if obj and is_shared(obj.meta.name, cluster) else placement
            if obj and is_taken(obj, label, cluster):
                taken[kind, obj.meta.name] = fail(
                    f"{kind.kind} {obj.meta.name} has a name that we need, and is owned by someone else",
                    f"kubectl annotate {kind} {obj.meta.name} {ANNOTATION_ADOPT}=true",
                    f"Placement {placement}",
                )
    yield from taken.values()
    yield ok("no name of ours is taken")


RULES: Final = (kueue_addon, name_taken)
