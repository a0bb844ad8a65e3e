"""
Rules for our AdmissionChecks, Kueue's multikueue checks that use our lists, and the ClusterQueues of both.

Pure.
"""

import json
import shlex
from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    MANAGED_BY,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CONTROLLER,
    OCM_CLUSTER,
    OUR_CONTROLLER,
    PLACEMENT,
    Kind,
)
from placement_ac.core.api.decode import active_of, checks_listed
from placement_ac.core.api.objects import Check
from placement_ac.core.api.text import count_text, joined
from placement_ac.core.plan.conditions import parameters_problem
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.setup import (
    HubSetup,
    apply_command,
    hub_rule,
    name_of,
    spec_of,
    yaml_of,
)
from placement_ac.inspection.hub.dump import Object, key_of
from placement_ac.inspection.hub.kinds import CLUSTER_QUEUE, SET_BINDING
from placement_ac.inspection.status.queues import inactive_reason


@hub_rule(
    "check-parameters",
    "each AdmissionCheck of ours names a Placement that exists",
    "kubectl patch admissioncheck CHECK --type=merge -p PARAMETERS",
    ADMISSION_CHECK,
)
def check_parameters(setup: HubSetup) -> Iterator[RuleResult]:
    for one in setup.view.our_checks:
        name = one.meta.name
        if not one.placement:
            yield fail(f"AdmissionCheck {name}: {parameters_problem(one)}", _name_placement(setup, one))
        elif setup.view.placement(one.placement) is None:
            spaces = setup.settings.placement_namespace
            if unknown := setup.unknown_results(PLACEMENT, namespaces=setup.placement_namespaces):
                yield from unknown
                continue
            looked_for = joined([f"{space}/{one.placement}" for space in spaces], " or ")
            message = f"AdmissionCheck {name} names Placement {one.placement}: there is no {looked_for}"
            yield fail(message, _placement(setup, one.placement, spaces[0]))
    names = [one.meta.name for one in setup.view.our_checks]
    yield ok(f"the Placement of {joined(names)} exists" if names else "there is no check of ours")


@hub_rule(
    "check-condition",
    "each AdmissionCheck of ours is Active",
    "kubectl describe admissioncheck CHECK",
    ADMISSION_CHECK,
)
def check_condition(setup: HubSetup) -> Iterator[RuleResult]:
    for one in setup.view.our_checks:
        name, active = one.meta.name, one.active
        logs = f"kubectl logs -n {_controllers(setup)} --all-pods --tail=50"
        if active is None:
            yield warn(f"AdmissionCheck {name} has no condition", logs)
        elif active.observed_generation is not None and active.observed_generation < one.meta.generation:
            yield warn(
                f"AdmissionCheck {name} was changed, and the controller has not reconciled it since", logs
            )
        elif active.status != "True":
            fix = f"kubectl describe admissioncheck {name}"
            if one.placement and (placement := setup.view.placement(one.placement)):
                namespace, called = key_of(placement)
                fix += f"; kubectl describe placement -n {namespace} {called}"
            yield fail(f"AdmissionCheck {name} is not Active: {inactive_reason(active)}", fix)
    names = [one.meta.name for one in setup.view.our_checks]
    yield ok(f"AdmissionCheck {joined(names)} is Active" if names else "there is no check of ours")


@hub_rule(
    "multikueue-checks",
    "each multikueue check names a MultiKueueConfig that exists, or that a check of ours creates",
    "kubectl patch admissioncheck CHECK --type=merge -p PARAMETERS",
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
)
def multikueue_checks(setup: HubSetup) -> Iterator[RuleResult]:
    found = [one for one in setup.view.checks if one.multikueue]
    there = {name_of(config) for config in setup.dump.of(MULTIKUEUE_CONFIG)}
    ours = sorted(_placements(setup))
    for one in found:
        if one.config not in there and one.config not in ours:
            message = f"AdmissionCheck {one.meta.name} names MultiKueueConfig {one.config or '(none)'}"
            beside = _placements_beside(setup, one)
            fix = _set_parameters(one, MULTIKUEUE_CONFIG, beside or ours or sorted(there))
            yield fail(
                f"{message}, which does not exist: no check of ours names a Placement of that name", fix
            )
    names = [one.meta.name for one in found]
    yield ok(f"the list of {joined(names)} exists, or will exist" if names else "there are none")


@hub_rule(
    "queue-checks",
    "the checks that a ClusterQueue lists exist; if it lists a multikueue check with our list, it also "
    "lists our check, which is the gate",
    "kubectl patch clusterqueue QUEUE --type=json -p CHECK",
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
)
def queue_checks(setup: HubSetup) -> Iterator[RuleResult]:
    queues = [queue for queue in setup.dump.of(CLUSTER_QUEUE) if checks_listed(queue)]
    for queue in queues:
        yield from _without_check(setup, queue)
        yield from _without_gate(setup, queue)
        yield from _without_multikueue(setup, queue)
    yield ok(f"{count_text(len(queues), 'ClusterQueue')} with checks")


def _without_check(setup: HubSetup, queue: Object) -> Iterator[RuleResult]:
    """Yield the listed checks that do not exist: a check of ours, or Kueue's, may have been deleted."""
    unsent = _checks_without_multikueue(setup, queue)
    for name in sorted(_missing(setup, queue)):
        fix = f"kubectl describe clusterqueue {name_of(queue)}"
        if setup.view.placement(name):
            fix = _make_check(setup, name, OUR_CONTROLLER, PLACEMENT, name)
        elif unsent:
            fix = _make_check(setup, name, MULTIKUEUE_CONTROLLER, MULTIKUEUE_CONFIG, unsent[0].placement)
        message = f"ClusterQueue {name_of(queue)} lists AdmissionCheck {name}, which does not exist"
        yield fail(f"{message}: it admits nothing", fix)


def _missing(setup: HubSetup, queue: Object) -> frozenset[str]:
    """Return the checks that a queue lists but that do not exist."""
    return checks_listed(queue) - {one.meta.name for one in setup.view.checks}


def _without_gate(setup: HubSetup, queue: Object) -> Iterator[RuleResult]:
    """Yield the queues that list a multikueue check with a list of ours, but not our check."""
    listed, gates = checks_listed(queue), _placements(setup)
    guarded = {one.placement for one in setup.view.our_checks if one.meta.name in listed}
    for one in setup.view.checks:
        if one.meta.name in listed and one.config in gates.keys() - guarded:
            yield warn(
                f"ClusterQueue {name_of(queue)} lists {one.meta.name} without our check {gates[one.config]}: "
                "a job may run twice when a cluster leaves",
                _list_check(queue, gates[one.config]),
            )


def _without_multikueue(setup: HubSetup, queue: Object) -> Iterator[RuleResult]:
    """Yield the queues that list a check of ours but no multikueue check."""
    if _missing(setup, queue):
        return
    for one in _checks_without_multikueue(setup, queue):
        yield warn(
            f"ClusterQueue {name_of(queue)} lists our check {one.meta.name}, but no multikueue check: "
            "no job is sent",
            _add_multikueue_check(setup, queue, one.placement),
        )


def _add_multikueue_check(setup: HubSetup, queue: Object, placement: str) -> str:
    """Return the commands that list a multikueue check for a Placement, and create it if there is none."""
    for one in setup.view.checks:
        if one.config == placement:
            return _list_check(queue, one.meta.name)
    taken = {one.meta.name for one in setup.view.checks}
    name = f"multikueue-{placement}"
    while name in taken:
        name += "-2"
    made = _make_check(setup, name, MULTIKUEUE_CONTROLLER, MULTIKUEUE_CONFIG, placement)
    return f"{made}\n{_list_check(queue, name)}"


def _checks_without_multikueue(setup: HubSetup, queue: Object) -> list[Check]:
    """Return the checks of ours that a queue lists if it lists no multikueue check."""
    listed = checks_listed(queue)
    if any(one.multikueue for one in setup.view.checks if one.meta.name in listed):
        return []
    return [one for one in setup.view.our_checks if one.meta.name in listed and one.placement]


@hub_rule(
    "cluster-queues",
    "the ClusterQueues that list these checks are active",
    "kubectl describe clusterqueue QUEUE",
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
)
def cluster_queues(setup: HubSetup) -> Iterator[RuleResult]:
    mine = {one.meta.name for one in setup.view.checks if one.ours or one.config in _placements(setup)}
    queues = [one for one in setup.dump.of(CLUSTER_QUEUE) if mine & checks_listed(one)]
    for queue in queues:
        name, active = name_of(queue), active_of(queue)
        see = f"kubectl describe clusterqueue {name}"
        if active is None:
            yield warn(f"ClusterQueue {name} has no condition yet", see)
        elif active.status != "True":
            stopped = spec_of(queue).get("stopPolicy") not in (None, "None")
            patch = '-p \'{"spec":{"stopPolicy":"None"}}\''
            fix = f"kubectl patch clusterqueue {name} --type=merge {patch}"
            yield fail(
                f"ClusterQueue {name} admits nothing: {inactive_reason(active)}",
                fix if stopped else see,
            )
    names = [name_of(one) for one in queues]
    yield ok(f"ClusterQueue {joined(names)} admits jobs" if names else "no ClusterQueue lists our checks")


def _placements(setup: HubSetup) -> dict[str, str]:
    """Return Placement → the first check of ours that names it."""
    return {one.placement: one.meta.name for one in reversed(setup.view.our_checks) if one.placement}


def _controllers(setup: HubSetup) -> str:
    namespace, _, name = setup.controller.partition("/")
    return f"{namespace or setup.controller_namespace} deployment/{name or MANAGED_BY}"


def _placements_beside(setup: HubSetup, sender: Check) -> list[str]:
    """Return the Placements of our checks in the ClusterQueues that list a multikueue check."""
    queues = [checks_listed(queue) for queue in setup.dump.of(CLUSTER_QUEUE)]
    listed = {name for names in queues if sender.meta.name in names for name in names}
    return sorted(
        {one.placement for one in setup.view.our_checks if one.meta.name in listed and one.placement}
    )


def _name_placement(setup: HubSetup, one: Check) -> str:
    """Return the command that sets the Placement of a check of ours; if there is none, one of its name."""
    there = sorted({key_of(obj)[1] for obj in setup.dump.of(PLACEMENT)})
    return _set_parameters(one, PLACEMENT, there or [one.meta.name])


def _set_parameters(one: Check, kind: Kind, there: list[str]) -> str:
    """Return the command that sets the parameters of a check: the only object, or that of its name."""
    meant = [name for name in there if name == one.meta.name] or there
    if len(meant) != 1:
        choice = f"  # parameters.name: {joined(there, ' or ')}" if there else ""
        return f"kubectl edit admissioncheck {one.meta.name}{choice}"
    parameters = {"apiGroup": kind.group, "kind": kind.kind, "name": meant[0]}
    patch = json.dumps({"spec": {"parameters": parameters}}, separators=(",", ":"))
    return f"kubectl patch admissioncheck {one.meta.name} --type=merge -p {shlex.quote(patch)}"


def _placement(setup: HubSetup, name: str, namespace: str) -> str:
    sets = [key_of(one)[1] for one in setup.dump.of(SET_BINDING) if key_of(one)[0] == namespace]
    return apply_command(
        f"apiVersion: {OCM_CLUSTER}/{PLACEMENT.versions[0]}",
        f"kind: {PLACEMENT.kind}",
        f"metadata: {{name: {yaml_of(name)}, namespace: {namespace}}}",
        f"spec: {{clusterSets: [{', '.join(map(yaml_of, sets))}]}}" if sets else "spec: {}",
    )


def _make_check(setup: HubSetup, name: str, controller: str, kind: Kind, of: str) -> str:
    """Return the command that creates an AdmissionCheck whose parameters name `of`."""
    served = setup.dump.served.get(ADMISSION_CHECK)
    version = served.version if served else ADMISSION_CHECK.versions[0]
    return apply_command(
        f"apiVersion: {ADMISSION_CHECK.at(version).api_version}",
        f"kind: {ADMISSION_CHECK.kind}",
        f"metadata: {{name: {yaml_of(name)}}}",
        "spec:",
        f"  controllerName: {controller}",
        f"  parameters: {{apiGroup: {kind.group}, kind: {kind.kind}, name: {yaml_of(of)}}}",
    )


def _list_check(queue: Object, check: str) -> str:
    """Return the command that adds a check to a ClusterQueue, in the field that it uses."""
    plain = "admissionChecks" in spec_of(queue)
    where = "/spec/admissionChecks/-" if plain else "/spec/admissionChecksStrategy/admissionChecks/-"
    value = check if plain else {"name": check}
    patch = json.dumps([{"op": "add", "path": where, "value": value}], separators=(",", ":"))
    return f"kubectl patch clusterqueue {name_of(queue)} --type=json -p {shlex.quote(patch)}"


RULES: Final = (check_parameters, check_condition, multikueue_checks, queue_checks, cluster_queues)
