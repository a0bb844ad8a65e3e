"""
Rules for Kueue's configuration: does it match this controller and its settings?

Pure.
"""

from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import FRAMEWORKS, default_frameworks
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.kueue_config import (
    API_VERSIONS,
    CONFIG_MAP_NAME,
    FILE,
    MULTIKUEUE,
    KueueConfig,
    create_config,
    edit_config,
    enable_gate,
    is_on,
    kueue_config,
    move_gates_to_config,
    unread_results,
)
from placement_ac.inspection.doctor.setup import (
    HubSetup,
    hub_rule,
    list_deployments_command,
    sequence,
    set_setting_command,
)
from placement_ac.inspection.hub.kinds import CONFIG_MAP

DISPATCHERS: Final = tuple(
    f"kueue.x-k8s.io/multikueue-dispatcher-{name}" for name in ("all-at-once", "incremental")
)
"""Kueue's own (apis/config)."""
DISPATCHER: Final = ("multiKueue", "dispatcherName")
INCREMENTAL: Final = "incrementalDispatcherConfig"
"""Kueue accepts it only with its own incremental dispatcher (pkg/config/validation.go)."""
DEFAULT_FRAMEWORKS: Final = ("batch/job",)
"""Kueue's default (apis/config/v1beta2, defaults.go)."""
_EDIT: Final = f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}"


@hub_rule(
    "kueue-configuration",
    "Kueue's configuration is in its ConfigMap, can be read, and sets feature gates in one place only",
    _EDIT,
)
def kueue_configuration(setup: HubSetup) -> Iterator[RuleResult]:
    if not setup.knows(CONFIG_MAP, setup.kueue_namespace):
        yield from setup.unknown_results(CONFIG_MAP, namespaces=[setup.kueue_namespace])
        return
    kueue = kueue_config(setup)
    where = f"ConfigMap {setup.kueue_namespace}/{kueue.name}"
    if kueue.problem and setup.kueue is None:
        yield warn("unknown: Kueue's Deployment was not found", list_deployments_command())
    elif kueue.problem:
        change = f"kubectl edit {kueue.where(setup.kueue_namespace)}  # {FILE}: {API_VERSIONS[0]}"
        there = setup.dump.find(CONFIG_MAP, kueue.name, setup.kueue_namespace)
        yield fail(f"{where} {kueue.problem}", change if there else create_config(setup, kueue))
    elif kueue.flags and kueue.body.get("featureGates") is not None:
        yield fail(
            f"feature gates are set both in {where} and by --feature-gates: Kueue exits at once",
            move_gates_to_config(setup, kueue),
        )
    else:
        yield ok(f"{where} is read as {kueue.body.get('apiVersion')}")


@hub_rule("multikueue-gate", f"Kueue's gate {MULTIKUEUE} is on", f"{_EDIT}  # featureGates")
def multikueue_gate(setup: HubSetup) -> Iterator[RuleResult]:
    kueue = kueue_config(setup)
    if unknown := unread_results(setup, kueue):
        yield from unknown
        return
    if is_on(setup, kueue, MULTIKUEUE):
        yield ok(f"the gate {MULTIKUEUE} is on")
    else:
        yield fail(
            f"the gate {MULTIKUEUE} is off: no job is sent to a worker", enable_gate(setup, kueue, MULTIKUEUE)
        )


@hub_rule(
    "dispatcher-name",
    "Kueue's `multiKueue.dispatcherName` and our `--dispatcher` agree on who nominates",
    "kubectl set env -n CONTROLLER deployment/NAME PLACEMENT_AC_DISPATCHER=true",
)
def dispatcher_name(setup: HubSetup) -> Iterator[RuleResult]:
    kueue = kueue_config(setup)
    if unknown := unread_results(setup, kueue):
        yield from unknown
        return
    named = str(kueue.multikueue.get("dispatcherName") or "")
    ours = named == OUR_CONTROLLER
    if ours and not setup.settings.dispatcher:
        yield setup.settings_failure(
            f"Kueue leaves nominations to {named}, but the controller does not nominate (--dispatcher): "
            "no job is nominated",
            set_setting_command(setup, "dispatcher", "true"),
        )
    elif setup.settings.dispatcher and not ours:
        yield warn(
            f"both the controller (--dispatcher) and Kueue nominate, Kueue with {named or DISPATCHERS[0]}",
            _nominate(setup, kueue, OUR_CONTROLLER),
        )
    elif named and not ours and named not in DISPATCHERS:
        yield warn(
            f"Kueue leaves nominations to {named}, which is not one of its own dispatchers",
            _nominate(setup, kueue, DISPATCHERS[0]),
        )
    else:
        yield ok(f"nominations come from {named or DISPATCHERS[0]}")


def _nominate(setup: HubSetup, kueue: KueueConfig, dispatcher: str) -> str:
    """Return the command that sets the dispatcher; an editor, if another field would stop Kueue's start."""
    if INCREMENTAL not in kueue.multikueue:
        return edit_config(setup, kueue, DISPATCHER, dispatcher)
    change = f"kubectl edit {kueue.where(setup.kueue_namespace)}"
    return f"{change}  # multiKueue: dispatcherName: {dispatcher}, and no {INCREMENTAL}"


@hub_rule(
    "frameworks",
    "if credentials are provisioned or probed: `--frameworks` and `--external-frameworks` match Kueue",
    "kubectl set env -n CONTROLLER deployment/NAME PLACEMENT_AC_FRAMEWORKS=NAMES",
)
def frameworks(setup: HubSetup) -> Iterator[RuleResult]:
    settings = setup.settings
    if settings.credentials_provision == "none" and not settings.credentials_probe:
        yield ok("credentials are neither provisioned nor probed: --frameworks is not used")
        return
    kueue, found = kueue_config(setup), setup.kueue_release
    if unknown := unread_results(setup, kueue):
        yield from unknown
        return
    named = kueue.integrations.get("frameworks")
    sent = {
        str(name)
        for name in (sequence(named) if named is not None else DEFAULT_FRAMEWORKS)
        if name in FRAMEWORKS and FRAMEWORKS[str(name)].is_sent(found)
    }
    ours = {
        name for name in settings.frameworks or default_frameworks(found) if FRAMEWORKS[name].is_sent(found)
    }
    yield from _compared(setup, "frameworks", sent, ours)
    externals = set(kueue.external_frameworks)
    yield from _compared(setup, "external-frameworks", externals, set(settings.external_frameworks))


def _compared(setup: HubSetup, setting: str, kueues: set[str], ours: set[str]) -> Iterator[RuleResult]:
    fix = set_setting_command(setup, setting.replace("-", "_"), ",".join(sorted(kueues)))
    if lacking := sorted(kueues - ours):
        message = f"Kueue sends {joined(lacking)}, but --{setting} does not have it: Kueue will not connect"
        yield setup.settings_failure(message, fix)
    elif extra := sorted(ours - kueues):
        yield warn(f"Kueue does not send {joined(extra)}, but --{setting} requires it of each worker", fix)
    yield ok(f"--{setting} has what Kueue sends: {joined(sorted(kueues)) or 'none'}")


RULES: Final = (kueue_configuration, multikueue_gate, dispatcher_name, frameworks)
