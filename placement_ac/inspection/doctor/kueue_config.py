"""
Kueue's configuration: the file in its ConfigMap, and the feature gates in the file and in its arguments.

Pure.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import yaml

from placement_ac.core.api.constants import KUEUE_MANAGER
from placement_ac.core.api.schemas import as_mapping
from placement_ac.core.inputs.rights import VersionRange
from placement_ac.inspection.doctor.finding import RuleResult, warn
from placement_ac.inspection.doctor.setup import (
    CONTAINER,
    HubSetup,
    apply_command,
    patch_pods_command,
    pod_of,
    sequence,
    without_flag,
    yaml_of,
)
from placement_ac.inspection.doctor.yaml_edit import awk_program
from placement_ac.inspection.hub.kinds import CONFIG_MAP

FILE: Final = "controller_manager_config.yaml"
CONFIG_MAP_NAME: Final = "kueue-manager-config"
API_VERSIONS: Final = ("config.kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta1")

MULTIKUEUE: Final = "MultiKueue"
CLUSTER_PROFILE_GATE: Final = "MultiKueueClusterProfile"
CUSTOM_JOBS: Final = "MultiKueueAdaptersForCustomJobs"
GATES: Final = {
    MULTIKUEUE: VersionRange("0.9"),
    CLUSTER_PROFILE_GATE: VersionRange(""),
    CUSTOM_JOBS: VersionRange("0.15"),
}
"""The releases in which each is on by default (pkg/features/kube_features.go)."""

MANAGER: Final = "placement-ac-doctor"
"""A field manager of our own: with kubectl's, fields that this manifest lacks (labels) would be removed."""
ALL_ALPHA, ALL_BETA = "AllAlpha", "AllBeta"
"""Kubernetes' gates for all gates of a stage. A gate that is on by default is beta, else alpha."""
_FLAG: Final = "--feature-gates"
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
"""Go: strconv.ParseBool."""


@dataclass(frozen=True, slots=True)
class KueueConfig:
    """Kueue's configuration. `problem`: why its file cannot be read ("": it can)."""

    name: str = CONFIG_MAP_NAME
    """The ConfigMap's."""
    text: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    flags: Mapping[str, bool] = field(default_factory=dict)
    """Feature gates in the arguments."""

    def where(self, namespace: str) -> str:
        """Return kubectl's words for its ConfigMap."""
        return f"configmap -n {namespace} {shlex.quote(self.name)}"

    @property
    def file_gates(self) -> Mapping[str, bool]:
        return {str(gate): value is True for gate, value in as_mapping(self.body.get("featureGates")).items()}

    @property
    def gates(self) -> Mapping[str, bool]:
        return {**self.file_gates, **self.flags}

    @property
    def multikueue(self) -> Mapping[str, Any]:
        return as_mapping(self.body.get("multiKueue"))

    @property
    def external_frameworks(self) -> tuple[str, ...]:
        """The names in multiKueue.externalFrameworks."""
        message = sequence(self.multikueue.get("externalFrameworks"))
        return tuple(str(as_mapping(one).get("name")) for one in message)

    @property
    def integrations(self) -> Mapping[str, Any]:
        return as_mapping(self.body.get("integrations"))


def kueue_config(setup: HubSetup) -> KueueConfig:
    """Return Kueue's configuration; `problem` says what is wrong with it, or that it does not exist."""
    name = _config_map(setup)
    flags = _flags(_args(setup))
    found = setup.dump.find(CONFIG_MAP, name, setup.kueue_namespace)
    if found is None:
        return KueueConfig(name, problem="does not exist", flags=flags)
    text = as_mapping(found.get("data")).get(FILE)
    if not isinstance(text, str):
        return KueueConfig(name, problem=f"has no {FILE}", flags=flags)
    body, problem = _read(text)
    return KueueConfig(name, text, body, problem, flags)


@lru_cache(maxsize=8)
def _read(text: str) -> tuple[Mapping[str, Any], str]:
    try:
        body = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}, f"has a {FILE} that is not YAML"
    if not isinstance(body, Mapping) or body.get("kind") != "Configuration":
        return {}, f"has a {FILE} that is no Configuration"
    if body.get("apiVersion") not in API_VERSIONS:
        return body, f"has a {FILE} of {body.get('apiVersion')}, which is unknown"
    return body, ""


def unread_results(setup: HubSetup, kueue: KueueConfig) -> tuple[RuleResult, ...]:
    """Return a warning if the configuration is unknown."""
    if unknown := setup.unknown_results(CONFIG_MAP, namespaces=[setup.kueue_namespace]):
        return unknown
    see = f"kubectl get {kueue.where(setup.kueue_namespace)} -o yaml"
    return (warn("unknown: see kueue-configuration", see),) if kueue.problem else ()


def is_on(setup: HubSetup, kueue: KueueConfig, gate: str) -> bool:
    """Whether a feature gate is on; if it is not configured: whether it is on by default."""
    default = GATES[gate].has(setup.kueue_release)
    return kueue.gates.get(gate, kueue.gates.get(ALL_BETA if default else ALL_ALPHA, default))


def edit_config(setup: HubSetup, kueue: KueueConfig, path: tuple[str, ...], value: object) -> str:
    """Return the commands that set a field of the file to `value`, and restart Kueue.

    `value` is appended to a list.
    """
    where = kueue.where(setup.kueue_namespace)
    restart = _restart(setup)
    edited = awk_program(kueue.text, path, value)
    if edited is None:
        return f"kubectl edit {where}  # {'.'.join(path)}: {json.dumps(value)}\n{restart}"
    return f"config=$({_get(where)} | awk '{edited}') &&\n{_put(where)} &&\n{restart}"


def keep_config(setup: HubSetup, kueue: KueueConfig, command: str) -> str:
    """Return a command that may replace the file, and restores the file afterwards, even if it fails."""
    if not kueue.text:
        return command
    where = kueue.where(setup.kueue_namespace)
    return f"config=$({_get(where)}) && {{\n{command}\n{_put(where)} &&\n{_restart(setup)}\n}}"


def _restart(setup: HubSetup) -> str:
    return f"kubectl rollout restart -n {setup.kueue_namespace} deployment/{KUEUE_MANAGER}"


def _get(where: str) -> str:
    return f"kubectl get {where} -o jsonpath='{{.data.{FILE.replace('.', chr(92) + '.')}}}'"


def _put(where: str) -> str:
    return (
        f'kubectl create {where} --from-literal={FILE}="$config" --dry-run=client -o yaml |\n'
        f"kubectl apply --server-side --field-manager={MANAGER} --force-conflicts -f -"
    )


def move_gates_to_config(setup: HubSetup, kueue: KueueConfig) -> str:
    """Return the commands that move the feature gates from the arguments into the file."""
    args = without_flag(_args(setup), _FLAG)
    leave = patch_pods(setup, {"containers": [{"name": CONTAINER, "args": args}]})
    missing = {gate: on for gate, on in kueue.flags.items() if gate not in kueue.file_gates}
    return f"{edit_config(setup, kueue, ('featureGates',), missing)} &&\n{leave}" if missing else leave


def create_config(setup: HubSetup, kueue: KueueConfig) -> str:
    """Return the command that creates a configuration with Kueue's defaults."""
    where = f"{{name: {yaml_of(kueue.name)}, namespace: {setup.kueue_namespace}}}"
    file = (f"    apiVersion: {API_VERSIONS[0]}", "    kind: Configuration")
    return apply_command(
        "apiVersion: v1", "kind: ConfigMap", f"metadata: {where}", "data:", f"  {FILE}: |", *file
    )


def enable_gate(setup: HubSetup, kueue: KueueConfig, gate: str) -> str:
    """Return the commands that turn a feature gate on, in the place where gates are configured already."""
    if not kueue.flags:
        return edit_config(setup, kueue, ("featureGates", gate), True)
    message = ",".join(f"{name}={str(on).lower()}" for name, on in {**kueue.flags, gate: True}.items())
    args = [*without_flag(_args(setup), _FLAG), f"{_FLAG}={message}"]
    return patch_pods(setup, {"containers": [{"name": CONTAINER, "args": args}]})


def patch_pods(setup: HubSetup, spec: Mapping[str, Any]) -> str:
    """Return the command that merges `spec` into the Pods of Kueue's Deployment."""
    return patch_pods_command(f"-n {setup.kueue_namespace} deployment/{KUEUE_MANAGER}", spec)


def _config_map(setup: HubSetup) -> str:
    """Return the name of the ConfigMap that Kueue's Deployment mounts."""
    mounts = {
        str(one.get("name"))
        for one in map(as_mapping, sequence(setup.manager.get("volumeMounts")))
        if FILE in (one.get("subPath"), str(one.get("mountPath")).rpartition("/")[2])
    }
    for volume in map(as_mapping, sequence(pod_of(setup.kueue or {}).get("volumes"))):
        if str(volume.get("name")) in mounts and (name := as_mapping(volume.get("configMap")).get("name")):
            return str(name)
    return CONFIG_MAP_NAME


def _args(setup: HubSetup) -> list[str]:
    return [str(one) for one in sequence(setup.manager.get("args"))]


def _flags(args: list[str]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for place, word in enumerate(args):
        flag, _, value = word.partition("=")
        if flag == _FLAG:
            message = value or (args[place + 1] if place + 1 < len(args) else "")
            pairs = (pair.partition("=") for pair in message.split(",") if pair)
            found |= {gate.strip(): on.strip() in _TRUE for gate, _, on in pairs}
    return found
