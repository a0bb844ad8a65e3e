"""Rules for Kueue's configuration: does it match this controller and its settings? Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, fail, ok, skip, warn
from kubectl_placement.doctor.kueue import (
    API_VERSIONS,
    CONFIG_MAP_NAME,
    FILE,
    MULTIKUEUE,
    NO_DEPLOYMENT,
    HubKueue,
)
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from placement_ac.core.api.constants import CONFIG_MAP, OUR_CONTROLLER
from placement_ac.core.api.fields import get_value
from placement_ac.core.api.kueue_integrations import DEFAULT_FRAMEWORKS
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import FRAMEWORKS, default_frameworks

DISPATCHERS: Final = tuple(
    f"kueue.x-k8s.io/multikueue-dispatcher-{name}" for name in ("all-at-once", "incremental")
)
"""Kueue's own (apis/config)."""
INCREMENTAL: Final = "incrementalDispatcherConfig"
"""Kueue accepts it only with its own incremental dispatcher (pkg/config/validation.go)."""
_EDIT: Final = f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}"


@hub_rule(
    "kueue-configuration",
    "Kueue's configuration is in its ConfigMap, can be read, and sets feature gates in one place only",
    _EDIT,
    unknown=lambda setup: setup.unknown(CONFIG_MAP, namespaces=[setup.kueue_namespace]),
)
def kueue_configuration(setup: HubSetup) -> Iterator[Finding]:
    kueue = setup.kueue
    label = f"ConfigMap {kueue.namespace}/{kueue.config_name}"
    if kueue.config_problem and kueue.deployment is None:
        yield NO_DEPLOYMENT
    elif kueue.config_problem:
        change = kueue.edit_config(f"{FILE}: {API_VERSIONS[0]}")
        yield fail(f"{label} {kueue.config_problem}", change if kueue.config_map else kueue.create_config())
    elif kueue.flags and kueue.config.get("featureGates") is not None:
        yield fail(
            f"feature gates are set both in {label} and by --feature-gates: Kueue exits at once",
            kueue.move_gates_to_config(),
        )
    elif (version := kueue.config.get("apiVersion")) != API_VERSIONS[0]:
        yield warn(
            f"{label} is of {version}: write it as {API_VERSIONS[0]} before a Kueue that no longer reads it",
            kueue.edit_config(f"apiVersion: {API_VERSIONS[0]}"),
        )
    else:
        yield ok(f"{label} is read as {version}")


@hub_rule(
    "multikueue-gate",
    f"Kueue's gate {MULTIKUEUE} is on",
    f"{_EDIT}  # featureGates",
    unknown=HubSetup.unknown_config,
)
def multikueue_gate(setup: HubSetup) -> Iterator[Finding]:
    yield setup.kueue.gate_finding(MULTIKUEUE, "", "no job is sent to a worker")


@hub_rule(
    "dispatcher-name",
    "Kueue's `multiKueue.dispatcherName` and our `--dispatcher` agree on who nominates",
    "kubectl set env -n CONTROLLER deployment/NAME PLACEMENT_AC_DISPATCHER=true",
    unknown=HubSetup.unknown_config,
)
def dispatcher_name(setup: HubSetup) -> Iterator[Finding]:
    named = str(setup.kueue.multikueue.get("dispatcherName") or "")
    ours = named == OUR_CONTROLLER
    if ours and not setup.settings.dispatcher:
        yield setup.settings_failure(
            f"Kueue leaves nominations to {named}, but the controller does not nominate (--dispatcher): "
            "no job is nominated",
            setup.set_setting("dispatcher", "true"),
        )
    elif setup.settings.dispatcher and not ours:
        yield warn(
            f"both the controller (--dispatcher) and Kueue nominate, Kueue with {named or DISPATCHERS[0]}",
            _nominate(setup.kueue, OUR_CONTROLLER),
        )
    elif named and not ours and named not in DISPATCHERS:
        yield warn(
            f"Kueue leaves nominations to {named}, which is not one of its own dispatchers",
            _nominate(setup.kueue, DISPATCHERS[0]),
        )
    else:
        yield ok(f"nominations come from {named or DISPATCHERS[0]}")


def _nominate(kueue: HubKueue, dispatcher: str) -> str:
    """Return the commands that set the dispatcher; with another field beside it, Kueue would not start."""
    without = f", and no {INCREMENTAL}" if INCREMENTAL in kueue.multikueue else ""
    return kueue.edit_config(f"multiKueue: dispatcherName: {dispatcher}{without}")


@hub_rule(
    "frameworks",
    "if credentials are provisioned or probed: `--frameworks` and `--external-frameworks` match Kueue",
    "kubectl set env -n CONTROLLER deployment/NAME PLACEMENT_AC_FRAMEWORKS=NAMES",
)
def frameworks(setup: HubSetup) -> Iterator[Finding]:
    settings, kueue = setup.settings, setup.kueue
    if settings.credentials_provision == "none" and not settings.credentials_probe:
        yield skip("credentials are neither provisioned nor probed: --frameworks is not used")
        return
    if unknown := setup.unknown_config():
        yield from unknown
        return
    configured = get_value(kueue.config, "integrations", "frameworks")
    sent = DEFAULT_FRAMEWORKS if configured is None else kueue.frameworks
    names = settings.frameworks or default_frameworks(kueue.release)
    for setting, kueues, ours in (
        ("frameworks", _sent(kueue, sent), _sent(kueue, names)),
        ("external-frameworks", {*kueue.external_frameworks}, {*settings.external_frameworks}),
    ):
        fix = setup.set_setting(setting.replace("-", "_"), ",".join(sorted(kueues)))
        if lacking := joined(sorted(kueues - ours)):
            yield setup.settings_failure(
                f"Kueue sends {lacking}, but --{setting} does not have it: Kueue will not connect", fix
            )
        elif extra := joined(sorted(ours - kueues)):
            yield warn(f"Kueue does not send {extra}, but --{setting} requires it of each worker", fix)
        yield ok(f"--{setting} has what Kueue sends: {joined(sorted(kueues)) or 'none'}")


def _sent(kueue: HubKueue, names: Iterable[str]) -> set[str]:
    """Return the job kinds of which MultiKueue sends jobs."""
    return {name for name in names if name in FRAMEWORKS and FRAMEWORKS[name].is_sent(kueue.release)}


RULES: Final = (kueue_configuration, multikueue_gate, dispatcher_name, frameworks)
