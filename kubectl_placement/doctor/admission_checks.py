"""
Rules for our AdmissionChecks, Kueue's multikueue checks that use our lists, and the ClusterQueues of both.

Pure.
"""

import json
import shlex
from collections.abc import Collection, Iterator
from itertools import count
from typing import Final

from kubectl_placement.doctor.cluster_sets import MISSING_SET
from kubectl_placement.doctor.commands import HUB, manifest
from kubectl_placement.doctor.deletion import unlist
from kubectl_placement.doctor.finding import Cause, Finding, fail, of_cluster, ok, skip, warn
from kubectl_placement.doctor.namespace_selectors import selects_none
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.dump import Object
from kubectl_placement.status.queues import inactive_reason, queue_remarks_of
from placement_ac.core.api import constants
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    ANNOTATION_PLACEMENT_NAMESPACE,
    CLUSTER_QUEUE,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CONTROLLER,
    OUR_CONTROLLER,
    PLACEMENT,
    PROVISIONING_CONTROLLER,
    Kind,
)
from placement_ac.core.api.decode import active_of, checks_listed, flavors_left_out
from placement_ac.core.api.fields import get_dict, get_value, key_of, name_of
from placement_ac.core.api.objects import Check
from placement_ac.core.api.text import closest, count_text, did_you_mean, joined
from placement_ac.core.plan.conditions import parameters_problem, refused_checks

_NOT_COMBINED: Final = (
    "MultipleMultiKueueAdmissionChecks",
    "MultiKueueAdmissionCheckAppliedPerFlavor",
    "MultiKueueWithProvisioningRequest",
)
"""Kueue's reasons of a ClusterQueue whose checks do not go together."""
_NO_CHECK: Final = skip("there is no check of ours")


@hub_rule(
    "check-parameters",
    "each AdmissionCheck of ours names a Placement that exists",
    "kubectl patch admissioncheck CHECK --type=merge -p PARAMETERS",
    ADMISSION_CHECK,
)
def check_parameters(setup: HubSetup) -> Iterator[Finding]:
    for check in setup.view.our_checks:
        name = check.meta.name
        if not check.placement:
            placements = sorted({name_of(obj) for obj in setup.dump.of(PLACEMENT)})
            fix = _set_parameters(check, PLACEMENT, _meant(check, placements), placements)
            yield fail(f"AdmissionCheck {name}: {parameters_problem(check)}", fix, label(name))
        elif setup.view.placement(check.placement) is None:
            spaces = setup.settings.placement_namespace
            if unknown := setup.unknown(PLACEMENT, namespaces=setup.placement_namespaces):
                yield from unknown
                continue
            labels = joined([f"{space}/{check.placement}" for space in spaces], " or ")
            message = f"AdmissionCheck {name} names Placement {check.placement}: there is no {labels}"
            existing = {key_of(obj)[1] for obj in setup.dump.of(PLACEMENT) if key_of(obj)[0] in spaces}
            meant = did_you_mean(check.placement, existing)
            yield fail(message + meant, _name_another(check, closest(check.placement, existing)), label(name))
        elif refused := refused_checks(setup.view.snapshot(check.placement)).get(name):
            home = key_of(setup.view.placement(check.placement) or {})[0]
            words = f"{ANNOTATION_PLACEMENT_NAMESPACE}={home}"
            fix = HUB.run("annotate", "admissioncheck", name, words, "--overwrite")
            yield fail(f"AdmissionCheck {name}: {refused.message}", fix, label(name))
    yield from _of_other_controllers(setup)
    names = [check.meta.name for check in setup.view.our_checks]
    yield ok(f"the Placement of {joined(names)} exists") if names else _NO_CHECK


def _of_other_controllers(setup: HubSetup) -> Iterator[Finding]:
    """Yield checks that name a Placement, but not our controller: a typo, as a rule."""
    taken = {check.meta.name for check in setup.view.checks}
    for check in setup.view.checks:
        if check.ours or check.multikueue or not (placement := check.names(PLACEMENT)):
            continue  # `multikueue-checks` is about Kueue's
        name = next(free for n in count(2) if (free := f"{check.meta.name}-{n}") not in taken)
        queues = [obj for obj in setup.dump.of(CLUSTER_QUEUE) if check.meta.name in checks_listed(obj)]
        steps = [_create_check(setup, name, OUR_CONTROLLER, PLACEMENT, placement)]
        for queue in queues:
            steps += (_list_check(queue, name), unlist(queue, check.meta.name))
        yield warn(
            f"AdmissionCheck {check.meta.name} names Placement {placement}, but placement-ac does not answer "
            f"it: spec.controllerName is {check.controller!r}, not {OUR_CONTROLLER!r}, and cannot be changed",
            "\n".join((*steps, HUB.run("delete", "admissioncheck", check.meta.name))),
            label(check.meta.name),
        )


@hub_rule(
    "check-condition",
    "each AdmissionCheck of ours is Active, and names no cluster whose queues give no quota",
    "kubectl describe admissioncheck CHECK",
    ADMISSION_CHECK,
)
def check_condition(setup: HubSetup) -> Iterator[Finding]:
    for check in setup.view.our_checks:
        name, active = check.meta.name, check.active
        logs = f"kubectl logs {setup.controller_words} --all-pods --tail=50"
        deleted = Cause("check-deletion", label(name))
        stopped = (deleted, Cause("controller"))
        if active is None:
            yield warn(f"AdmissionCheck {name} has no condition", logs, label(name), stopped)
        elif active.observed_generation is not None and active.observed_generation < check.meta.generation:
            yield warn(
                f"AdmissionCheck {name} was changed, and the controller has not reconciled it since",
                logs,
                label(name),
                stopped,
            )
        elif active.status != "True":
            fix = f"kubectl describe admissioncheck {name}"
            if check.placement and (placement := setup.view.placement(check.placement)):
                namespace, called = key_of(placement)
                fix += f"; kubectl describe placement -n {namespace} {called}"
            causes = (deleted, *_causes_of_reason(check, active.reason))
            message = f"AdmissionCheck {name} is not Active: {inactive_reason(active)}"
            yield fail(message, fix, label(name), causes)
        for cluster, why in queue_remarks_of(check).items():
            fix = shlex.join(("placement-ac", "doctor", "--workers", "--cluster", cluster))
            message, about = f"AdmissionCheck {name}: {cluster}: {why}", of_cluster(cluster)
            causes = (Cause("worker-queues", about), Cause("worker-cluster-queues", about))
            yield warn(message, fix, about, causes, cluster)
    names = [check.meta.name for check in setup.view.our_checks]
    yield ok(f"AdmissionCheck {joined(names)} is Active") if names else _NO_CHECK


def label(check: str) -> str:
    return f"AdmissionCheck {check}"


def _causes_of_reason(check: Check, reason: str) -> tuple[Cause, ...]:
    """Return the findings that a reason of the condition `Active` follows from."""
    about = f"Placement {check.placement}"
    match reason:
        case constants.BAD_PARAMETERS | constants.PLACEMENT_NOT_FOUND:
            return (Cause("check-parameters", label(check.meta.name)),)
        case constants.NO_CLUSTER_SELECTED:
            return (Cause("cluster-set-bindings", about), Cause("cluster-set-bindings", MISSING_SET))
        case constants.NO_CLUSTER_USABLE:
            return (Cause("credentials", about),)
        case constants.NAME_TAKEN:
            return (Cause("name-taken", about),)
        case _:
            return ()


@hub_rule(
    "multikueue-checks",
    "each multikueue check names a MultiKueueConfig that exists, or that a check of ours creates",
    "kubectl patch admissioncheck CHECK --type=merge -p PARAMETERS",
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
)
def multikueue_checks(setup: HubSetup) -> Iterator[Finding]:
    checks = [check for check in setup.view.checks if check.multikueue]
    existing = sorted(name_of(config) for config in setup.dump.of(MULTIKUEUE_CONFIG))
    ours = list(setup.checks_by_placement)
    for check in checks:
        meant = _meant(check, (*existing, *ours)) or _placements_beside(setup, check)
        fix = _set_parameters(check, MULTIKUEUE_CONFIG, meant, ours or existing)
        if not check.config:
            problem = parameters_problem(check, MULTIKUEUE_CONFIG)
            message = f"AdmissionCheck {check.meta.name} names no MultiKueueConfig: {problem}"
            yield fail(message, fix, label(check.meta.name))
        elif check.config not in (*existing, *ours):
            yield fail(
                f"AdmissionCheck {check.meta.name} names MultiKueueConfig {check.config}, which "
                "does not exist: no check of ours names a Placement of that name",
                fix,
                label(check.meta.name),
            )
    names = joined(check.meta.name for check in checks)
    yield ok(f"the list of {names} exists, or will exist") if names else skip("there are none")


@hub_rule(
    "queue-checks",
    "the checks that a ClusterQueue lists exist; if it lists a multikueue check with our list, it also "
    "lists our check, which is the gate",
    "kubectl patch clusterqueue QUEUE --type=json -p CHECK",
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
)
def queue_checks(setup: HubSetup) -> Iterator[Finding]:
    queues = [queue for queue in setup.dump.of(CLUSTER_QUEUE) if checks_listed(queue)]
    for queue in queues:
        listed = checks_listed(queue)
        checks = [check for check in setup.view.checks if check.meta.name in listed]
        missing = listed - {check.meta.name for check in checks}
        sends = any(check.multikueue for check in checks)
        unsent = [] if sends else [check for check in checks if check.ours and check.placement]
        yield from _without_check(setup, queue, missing, unsent)
        yield from _not_combined(queue, checks)
        yield from _without_gate(setup, queue, checks)
        yield from _gate_for_some_flavors(queue, checks)
        for check in () if missing else unsent:
            yield warn(
                f"ClusterQueue {name_of(queue)} lists our check {check.meta.name}, but no multikueue check: "
                "no job is sent",
                _add_multikueue_check(setup, queue, check.placement),
            )
    yield ok(f"{count_text(len(queues), 'ClusterQueue')} with checks")


def _without_check(
    setup: HubSetup, queue: Object, missing: Collection[str], unsent: list[Check]
) -> Iterator[Finding]:
    """Yield the listed checks that do not exist: a check of ours, or Kueue's, may have been deleted."""
    existing = [check.meta.name for check in setup.view.checks if check.meta.name not in checks_listed(queue)]
    for name in sorted(missing):
        fix = f"kubectl describe clusterqueue {name_of(queue)}"
        meant = did_you_mean(name, existing)
        if setup.view.placement(name):
            fix = _create_check(setup, name, OUR_CONTROLLER, PLACEMENT, name)
        elif unsent and not meant:
            fix = _create_check(setup, name, MULTIKUEUE_CONTROLLER, MULTIKUEUE_CONFIG, unsent[0].placement)
        message = f"ClusterQueue {name_of(queue)} lists AdmissionCheck {name}, which does not exist"
        yield fail(f"{message}: it admits nothing{meant}", fix, f"ClusterQueue {name_of(queue)}")


def _without_gate(setup: HubSetup, queue: Object, checks: list[Check]) -> Iterator[Finding]:
    """Yield the multikueue checks of a queue with a list of ours, if our check is not among its checks."""
    gates = setup.checks_by_placement
    guarded = {check.placement for check in checks if check.ours}
    for check in checks:
        if check.config in gates.keys() - guarded:
            yield warn(
                f"ClusterQueue {name_of(queue)} lists {check.meta.name} without our check "
                f"{gates[check.config]}: a job may run twice when a cluster leaves",
                _list_check(queue, gates[check.config]),
            )


def _not_combined(queue: Object, checks: list[Check]) -> Iterator[Finding]:
    """Yield what Kueue does not combine (pkg/cache/scheduler/clusterqueue.go): the queue admits nothing."""
    name, about = name_of(queue), f"ClusterQueue {name_of(queue)}"
    edit = f"kubectl edit clusterqueue {shlex.quote(name)}  # spec.admissionChecksStrategy.admissionChecks: "
    senders = sorted(check.meta.name for check in checks if check.multikueue)
    if len(senders) > 1:
        yield fail(
            f"{about} lists the multikueue checks {joined(senders)}: Kueue allows one, so it admits nothing",
            f"{edit}keep one of {joined(senders)}",
            about,
        )
    for sender in sorted(flavors_left_out(queue).keys() & {*senders}):
        yield fail(
            f"{about} lists the multikueue check {sender} with onFlavors: Kueue allows it only for all "
            "flavors, so it admits nothing",
            f"{edit}remove onFlavors of {sender}",
            about,
        )
    provisioning = sorted(check.meta.name for check in checks if check.controller == PROVISIONING_CONTROLLER)
    if senders and provisioning:
        yield fail(
            f"{about} lists the multikueue check {joined(senders)} and the provisioning check "
            f"{joined(provisioning)}: Kueue does not combine them, so it admits nothing",
            f"{edit}remove {joined(provisioning)}; workers may have such a check",
            about,
        )


def _gate_for_some_flavors(queue: Object, checks: list[Check]) -> Iterator[Finding]:
    """Yield our checks that do not apply to all flavors of a queue that sends jobs."""
    left_out = flavors_left_out(queue)
    for check in checks:
        without = left_out.get(check.meta.name)
        if check.ours and without and any(other.config == check.placement for other in checks):
            yield warn(
                f"ClusterQueue {name_of(queue)} lists our check {check.meta.name} with onFlavors, without "
                f"{joined(without)}: a job with that flavor has no gate, and may run twice when a cluster "
                "leaves",
                f"kubectl edit clusterqueue {shlex.quote(name_of(queue))}  # remove onFlavors of "
                f"{check.meta.name}",
            )


def _add_multikueue_check(setup: HubSetup, queue: Object, placement: str) -> str:
    """Return the commands that list a multikueue check for a Placement, and create it if there is none."""
    for check in setup.view.checks:
        if check.config == placement:
            return _list_check(queue, check.meta.name)
    taken = {check.meta.name for check in setup.view.checks}
    name = f"multikueue-{placement}"
    while name in taken:
        name += "-2"
    created = _create_check(setup, name, MULTIKUEUE_CONTROLLER, MULTIKUEUE_CONFIG, placement)
    return f"{created}\n{_list_check(queue, name)}"


@hub_rule(
    "cluster-queues",
    "the ClusterQueues that list these checks are active, and have a namespaceSelector",
    "kubectl describe clusterqueue QUEUE",
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
)
def cluster_queues(setup: HubSetup) -> Iterator[Finding]:
    queues = [queue for queue in setup.dump.of(CLUSTER_QUEUE) if setup.check_names & checks_listed(queue)]
    for queue in queues:
        name, active = name_of(queue), active_of(queue)
        fix = f"kubectl describe clusterqueue {name}"
        if active is None:
            yield warn(f"ClusterQueue {name} has no condition yet", fix)
        elif active.status != "True":
            if get_value(queue, "spec", "stopPolicy") not in (None, "None"):
                fix = HUB.patch("clusterqueue", name, {"stopPolicy": "None"})
            about = f"ClusterQueue {name}"
            message = f"{about} admits nothing: {inactive_reason(active)}"
            yield fail(message, fix, about, _causes_of_inactivity(queue, active.reason))
        if closed := selects_none(HUB, queue):
            yield closed
    names = joined(map(name_of, queues))
    yield ok(f"ClusterQueue {names} admits jobs") if names else skip("no ClusterQueue lists our checks")


def _causes_of_inactivity(queue: Object, reason: str) -> Iterator[Cause]:
    """Yield the findings that make a ClusterQueue inactive, if Kueue's reason is about AdmissionChecks."""
    if reason in _NOT_COMBINED:
        yield Cause("queue-checks", f"ClusterQueue {name_of(queue)}")
    if reason.startswith(ADMISSION_CHECK.kind):
        yield Cause("queue-checks", f"ClusterQueue {name_of(queue)}")
        for check in sorted(checks_listed(queue)):
            for rule in ("check-condition", "multikueue-checks", "check-deletion"):
                yield Cause(rule, label(check))


def _placements_beside(setup: HubSetup, sender: Check) -> list[str]:
    """Return the Placements of our checks in the ClusterQueues that list a multikueue check."""
    queues = [checks_listed(queue) for queue in setup.dump.of(CLUSTER_QUEUE)]
    listed = {name for names in queues if sender.meta.name in names for name in names}
    return sorted(
        {check.placement for check in setup.view.our_checks if check.meta.name in listed and check.placement}
    )


def _name_another(check: Check, near: list[str]) -> str:
    """Return the command with which the admin names another Placement, or that shows all."""
    return _set_parameters(check, PLACEMENT, [], near) if near else f"kubectl get {PLACEMENT} -A"


def _meant(check: Check, existing: Collection[str]) -> list[str]:
    """Return what a check means, if it exists: the name in its parameters, or else its own."""
    names = (check.parameters.name if check.parameters else "", check.meta.name)
    return next(([name] for name in names if name in existing), [])


def _set_parameters(check: Check, kind: Kind, meant: list[str], choice: list[str]) -> str:
    """Return the command that sets the parameters of a check.

    `meant`: the names that it is certainly about; the admin chooses if that is not one, from `choice`.
    """
    if len(meant) != 1:
        names = meant or choice
        hint = f"  # parameters.name: {joined(names, ' or ')}" if names else ""
        return f"kubectl edit admissioncheck {check.meta.name}{hint}"
    return HUB.patch("admissioncheck", check.meta.name, {"parameters": _parameters(kind, meant[0])})


def _parameters(kind: Kind, name: str) -> dict[str, str]:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def _create_check(setup: HubSetup, name: str, controller: str, kind: Kind, of: str) -> str:
    """Return the command that creates an AdmissionCheck whose parameters name `of`."""
    served = setup.dump.served.get(ADMISSION_CHECK)
    spec = {"controllerName": controller, "parameters": _parameters(kind, of)}
    return HUB.apply(manifest(ADMISSION_CHECK, name, spec, version=served.version if served else ""))


def _list_check(queue: Object, check: str) -> str:
    """Return the command that adds a check to a ClusterQueue, in the field that it uses."""
    plain = "admissionChecks" in get_dict(queue, "spec")
    path = "/spec/admissionChecks/-" if plain else "/spec/admissionChecksStrategy/admissionChecks/-"
    value = check if plain else {"name": check}
    patch = json.dumps([{"op": "add", "path": path, "value": value}], separators=(",", ":"))
    return f"kubectl patch clusterqueue {name_of(queue)} --type=json -p {shlex.quote(patch)}"


RULES: Final = (check_parameters, check_condition, multikueue_checks, queue_checks, cluster_queues)
