"""
The rule for AdmissionChecks that are being deleted: what holds them.

Pure.
"""

import json
import shlex
from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import ADDON_FINALIZER, ADMISSION_CHECK
from placement_ac.core.api.decode import checks_listed
from placement_ac.core.api.text import joined
from placement_ac.inspection.doctor.finding import Cause, Finding, ok, warn
from placement_ac.inspection.doctor.setup import HubSetup, hub_rule
from placement_ac.inspection.hub.dump import Object
from placement_ac.inspection.hub.kinds import CLUSTER_QUEUE
from placement_ac.scheduling.objects import is_terminating, listed, name_of, section, text, words

IN_USE: Final = "kueue.x-k8s.io/resource-in-use"
"""Kueue's finalizer: it stays while a ClusterQueue lists the check (pkg/controller/core)."""


@hub_rule(
    "check-deletion",
    "no AdmissionCheck of ours, and no multikueue check with our list, is being deleted and held",
    "kubectl patch clusterqueue QUEUE --type=json -p CHECK",
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
)
def check_deletion(setup: HubSetup) -> Iterator[Finding]:
    names = {
        one.meta.name for one in setup.view.checks if one.ours or one.config in setup.checks_by_placement
    }
    for check in setup.dump.of(ADMISSION_CHECK):
        if name_of(check) in names and is_terminating(check):
            yield _held(setup, check)
    yield ok("none is being deleted")


def _held(setup: HubSetup, check: Object) -> Finding:
    name, since = name_of(check), text(check, "metadata", "deletionTimestamp")
    finalizers = words(check, "metadata", "finalizers")
    queues = [one for one in setup.dump.of(CLUSTER_QUEUE) if name in checks_listed(one)]
    holders = f"finalizer {joined(finalizers)}" if finalizers else "no finalizer"
    message = f"AdmissionCheck {name} is being deleted since {since}, held by {holders}"
    about = f"AdmissionCheck {name}"
    if IN_USE in finalizers and queues:
        message += f": ClusterQueue {joined(map(name_of, queues))} still lists it"
        return warn(message, "\n".join(_unlist(queue, name) for queue in queues), about)
    causes = (Cause("kueue-deployment"),) if IN_USE in finalizers else ()
    if ADDON_FINALIZER in finalizers:
        causes = (Cause("kueue-addon-objects"),)
    return warn(message, f"kubectl get admissioncheck {name} -o yaml", about, causes)


def _unlist(queue: Object, check: str) -> str:
    """Return the command that takes a check off a ClusterQueue; it fails if the list has changed."""
    plain = "admissionChecks" in section(queue, "spec")
    strategy = listed(queue, "spec", "admissionChecksStrategy", "admissionChecks")
    entries = words(queue, "spec", "admissionChecks") if plain else [text(one, "name") for one in strategy]
    path = "/spec/admissionChecks" if plain else "/spec/admissionChecksStrategy/admissionChecks"
    place = f"{path}/{entries.index(check)}"
    test = {"op": "test", "path": place if plain else f"{place}/name", "value": check}
    patch = json.dumps([test, {"op": "remove", "path": place}], separators=(",", ":"))
    return f"kubectl patch clusterqueue {shlex.quote(name_of(queue))} --type=json -p {shlex.quote(patch)}"


RULES: Final = (check_deletion,)
