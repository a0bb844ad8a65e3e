"""
A rule for Kueue's feature gates that change something here: their values, where these are from, what follows.

Pure. The rights that follow from a gate are those that a worker's account needs with it, and not without it.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kubectl_placement.doctor.finding import Finding, ok, warn
from kubectl_placement.doctor.kueue import (
    CLUSTER_PROFILE_GATE,
    CONFIG_MAP_NAME,
    GATES,
    MERGE_PATCH_GATE,
    NO_DEPLOYMENT,
    ORDER_GATE,
    REUSE_LIMITS_GATE,
    HubKueue,
)
from kubectl_placement.doctor.kueue_config_rules import DISPATCHERS
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.jobs.finished_jobs import TTL_GATE, TTL_GATE_SINCE
from placement_ac.config.policy import known_kueue
from placement_ac.core.api.constants import KUEUE_MANAGER
from placement_ac.core.api.kueue_gates import GATES_FLAG, gates_in_config
from placement_ac.core.inputs.rights import GATES as GATES_FOR_RIGHTS
from placement_ac.core.inputs.rights import UNKNOWN_KUEUE, Right, RunningKueue, VersionRange, is_on


class _Effect(NamedTuple):
    """The consequences of a gate that changes no rights on workers."""

    since: VersionRange
    """The releases that have it."""
    on: str
    off: str = ""


_EFFECTS: Final = {
    CLUSTER_PROFILE_GATE: _Effect(VersionRange("0.15"), "credentials may be ClusterProfiles"),
    TTL_GATE: _Effect(TTL_GATE_SINCE, "a worker leaves finished Jobs to the hub", "see finished-jobs"),
    ORDER_GATE: _Effect(VersionRange("0.19"), "Kueue's Incremental dispatcher follows the list's order"),
    REUSE_LIMITS_GATE: _Effect(
        VersionRange("0.19.4"),
        "requests to a worker have the limits of Kueue's clientConnection",
        "a worker gets 5 requests a second for each kind, so a changed list takes seconds",
    ),
    MERGE_PATCH_GATE: _Effect(VersionRange("0.14"), "Kueue clears nominations of any field manager"),
}
"""pkg/features/kube_features.go; of 0.18.7, 0.19.3, 0.19.4 by their changelogs (14827, 14828, 15280)."""


@hub_rule(
    "kueue-gates",
    "the gates of Kueue that change something here: their values, where these are from, and what follows; the"
    " controller knows those on which rights depend",
    "kubectl set env -n CONTROLLER deployment/NAME PLACEMENT_AC_KUEUE_FEATURE_GATES=GATE=true",
    unknown=lambda setup: setup.unknown_config() or ([] if setup.kueue.deployment else [NO_DEPLOYMENT]),
)
def kueue_gates(setup: HubSetup) -> Iterator[Finding]:
    yield from _unknown_to_controller(setup)
    yield from _order_ignored(setup)
    by_source: dict[str, list[str]] = {}
    for gate in GATES:
        if effect := _effect(setup, gate):
            by_source.setdefault(_source(setup.kueue, gate), []).append(effect)
    yield ok("; ".join(f"{source}: {', '.join(effects)}" for source, effects in by_source.items()))


def _effect(setup: HubSetup, gate: str) -> str:
    """Return a gate, its value and what follows; "" if this Kueue does not have it, or nothing depends on it.

    MultiKueue and that for external frameworks have checks of their own.
    """
    value = setup.kueue.is_on(gate)
    state = f"{gate} {'on' if value else 'off'}"
    if gate in GATES_FOR_RIGHTS:
        rights = _rights_text(_rights_of(setup, gate))
        return (f"{state} ({_accounts(setup)} {rights})" if value else state) if rights else ""
    effect = _EFFECTS.get(gate)
    if effect is None or not effect.since.has(setup.kueue.release):
        return ""
    text = effect.on if value else effect.off
    return f"{state} ({text})" if text else state


def _accounts(setup: HubSetup) -> str:
    made = setup.settings.credentials_provision != "none"
    return "made accounts get" if made else "accounts on workers need"


def _source(kueue: HubKueue, gate: str) -> str:
    """Return where a gate's value is from."""
    stage = "AllBeta" if GATES[gate].has(kueue.release) else "AllAlpha"
    config_map = f"ConfigMap {kueue.namespace}/{kueue.config_name}"
    for name in (gate, stage):
        place = GATES_FLAG if name in kueue.flags else config_map if name in kueue.gates else ""
        if place:
            return f"by {place}" if name == gate else f"by {name} of {place}"
    if kueue.release is None and GATES[gate].since:
        return "assumed, because Kueue's release is unknown"
    return f"by default in Kueue {kueue.release}" if kueue.release else "by default in each release"


def _rights_of(setup: HubSetup, gate: str) -> tuple[Right, ...]:
    """Return the rights that a worker's account needs with a gate, and not without it."""
    kueue = setup.kueue

    def needed(value: bool) -> set[Right]:
        gates = tuple(sorted((kueue.gates | {gate: value}).items()))
        return {*setup.requirements_of(RunningKueue(kueue.release, gates)).rights}

    return tuple(sorted(needed(True) - needed(False)))


def _rights_text(rights: Iterable[Right]) -> str:
    labels = (f"{right.verb} {right.rule_resource}.{right.group}".rstrip(".") for right in rights)
    return " and ".join(labels)


def _unknown_to_controller(setup: HubSetup) -> Iterator[Finding]:
    """Yield the gates that the controller takes for something else, if rights on workers depend on them."""
    kueue, settings = setup.kueue, setup.settings
    if settings.credentials_provision == "none" and not settings.credentials_probe:
        return
    release, gates = known_kueue(settings, _as_controller_reads(kueue), UNKNOWN_KUEUE)
    wrong = [
        (gate, kueue.is_on(gate), _rights_text(rights))
        for gate, known in GATES_FOR_RIGHTS.items()
        if (rights := _rights_of(setup, gate))
        and is_on(gate, known.default_on, dict(gates or ()), release) != kueue.is_on(gate)
    ]
    if wrong:
        right = {gate: f"{gate}={str(value).lower()}" for gate, value, _ in wrong}
        kept = [gate for gate in settings.kueue_feature_gates if gate.partition("=")[0] not in right]
        which = "; ".join(
            f"{gate} is {'on' if value else 'off'} {_source(kueue, gate)}, and the controller counts it as"
            f" {'off' if value else 'on'} (with it, accounts on workers need {rights})"
            for gate, value, rights in wrong
        )
        gates_text = ",".join((*kept, *right.values()))
        message = f"set --kueue-feature-gates to {gates_text}: {which}"
        fix = setup.set_setting("kueue_feature_gates", gates_text)
        yield setup.settings_failure(message, fix) if any(on for _, on, _ in wrong) else warn(message, fix)


def _as_controller_reads(kueue: HubKueue) -> RunningKueue:
    """Return what the controller reads of Kueue: it may get a Deployment and a ConfigMap of fixed names."""
    is_named = kueue.name == KUEUE_MANAGER
    in_file = gates_in_config(kueue.config) if kueue.config_name == CONFIG_MAP_NAME else {}
    gates = in_file | (kueue.flags if is_named else {})
    return RunningKueue(kueue.release if is_named else None, tuple(sorted(gates.items())))


def _order_ignored(setup: HubSetup) -> Iterator[Finding]:
    kueue, incremental = setup.kueue, DISPATCHERS[1]
    named = kueue.multikueue.get("dispatcherName") == incremental
    if named and _EFFECTS[ORDER_GATE].since.has(kueue.release) and not kueue.is_on(ORDER_GATE):
        message = (
            f"turn on {ORDER_GATE}: without it, Kueue nominates clusters by name, not in the list's order"
        )
        yield warn(message, kueue.enable_gate(ORDER_GATE))


RULES: Final = (kueue_gates,)
