"""The rule for AdmissionChecks that are being deleted: what holds them. Pure."""

import json
import shlex
from collections.abc import Iterator
from typing import Any, Final

from kubectl_placement.doctor.finding import Cause, Finding, ok, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.dump import Object
from placement_ac.core.api.constants import (
    ADDON_FINALIZER,
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    FINALIZER_IN_USE,
    MULTIKUEUE_CONTROLLER,
)
from placement_ac.core.api.decode import checks_listed
from placement_ac.core.api.fields import get_str, get_strs, get_value, is_terminating, name_of
from placement_ac.core.api.text import joined

RUN_ON_HUB: Final = (
    "hold the queue first (spec.stopPolicy: Hold): without a MultiKueue check its jobs run on the hub"
)
MAY_RUN_TWICE: Final = (
    "without it nothing holds jobs back while a cluster leaves the list, and one that starts then may run "
    "twice"
)


@hub_rule(
    "check-deletion",
    "no AdmissionCheck of ours, and no multikueue check with our list, is being deleted and held",
    "kubectl patch clusterqueue QUEUE --type=json -p CHECK",
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
)
def check_deletion(setup: HubSetup) -> Iterator[Finding]:
    for check in setup.dump.of(ADMISSION_CHECK):
        if name_of(check) in setup.check_names and is_terminating(check):
            yield _held(setup, check)
    yield ok("none is being deleted")


def _held(setup: HubSetup, check: Object) -> Finding:
    name, since = name_of(check), get_str(check, "metadata", "deletionTimestamp")
    finalizers = get_strs(check, "metadata", "finalizers")
    queues = [queue for queue in setup.dump.of(CLUSTER_QUEUE) if name in checks_listed(queue)]
    holders = f"finalizer {joined(finalizers)}" if finalizers else "no finalizer"
    message = f"AdmissionCheck {name} is being deleted since {since}, held by {holders}"
    about = f"AdmissionCheck {name}"
    if FINALIZER_IN_USE in finalizers and queues:
        message += f": ClusterQueue {joined(map(name_of, queues))} still lists it"
        effects = dict.fromkeys(filter(None, (_effect(setup, queue, name) for queue in queues)))
        message += "".join(f"; {effect}" for effect in effects)
        return warn(message, "\n".join(unlist(queue, name) for queue in queues), about)
    causes = (Cause("kueue-deployment"),) if FINALIZER_IN_USE in finalizers else ()
    if ADDON_FINALIZER in finalizers:
        causes = (Cause("kueue-addon"),)
    return warn(message, f"kubectl get admissioncheck {name} -o yaml", about, causes)


def _effect(setup: HubSetup, queue: Object, name: str) -> str:
    """Return what happens to the queue's jobs when the check is taken off; "" if nothing does."""
    left = checks_listed(queue) - {name}
    senders = {check.meta.name for check in setup.view.checks if check.controller == MULTIKUEUE_CONTROLLER}
    if not left & senders:
        return RUN_ON_HUB
    return "" if name in senders or setup.settings.dispatcher else MAY_RUN_TWICE


def unlist(queue: Object, check: str) -> str:
    """Return the command that takes a check off a ClusterQueue; it fails if the list has changed."""
    patch = json.dumps([*_removals(queue, check)], separators=(",", ":"))
    return f"kubectl patch clusterqueue {shlex.quote(name_of(queue))} --type=json -p {shlex.quote(patch)}"


def _removals(queue: Object, check: str) -> Iterator[dict[str, str]]:
    """Yield the steps of the patch, for each of Kueue's two fields that lists the check."""
    for path in (("spec", "admissionChecks"), ("spec", "admissionChecksStrategy", "admissionChecks")):
        entries = get_value(queue, *path)
        names = [entry.get("name") if isinstance(entry, dict) else entry for entry in _list(entries)]
        if check in names:
            place = f"/{'/'.join(path)}/{names.index(check)}"
            is_text = isinstance(_list(entries)[names.index(check)], str)
            yield {"op": "test", "path": place if is_text else f"{place}/name", "value": check}
            yield {"op": "remove", "path": place}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


RULES: Final = (check_deletion,)
