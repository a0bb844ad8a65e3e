"""
Kueue on a hub: its Deployment, release and configuration, and the commands that change these.

Pure. The configuration is a file in a ConfigMap; feature gates are in that file or in Kueue's arguments.
"""

import json
import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import yaml

from kubectl_placement.doctor.commands import HUB, as_yaml, manifest, patch_pods, without_flag
from kubectl_placement.doctor.finding import Finding, fail, ok, unknown
from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.jobs.finished_jobs import TTL_GATE, TTL_GATE_SINCE
from placement_ac.core.api.constants import CONFIG_MAP, DEPLOYMENT, KUEUE_MANAGER
from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str, get_strs, get_value, key_of
from placement_ac.core.api.kueue_deployment import KUEUE_SELECTOR, kueue_deployments
from placement_ac.core.api.kueue_gates import (
    GATES_FLAG,
    KUEUE_CONFIG_KEY,
    KUEUE_CONFIG_MAP,
    KUEUE_CONTAINER,
    gates_in_arguments,
    gates_in_config,
)
from placement_ac.core.inputs.fitness import release_of
from placement_ac.core.inputs.rights import GATES as GATES_FOR_RIGHTS
from placement_ac.core.inputs.rights import KueueRelease, RunningKueue, VersionRange, is_on, parse_release
from placement_ac.core.safe_yaml import NotYaml, load_yaml

FILE: Final = KUEUE_CONFIG_KEY
CONFIG_MAP_NAME: Final = KUEUE_CONFIG_MAP
API_VERSIONS: Final = ("config.kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta1")
ACCESS: Final = "accessProviders"
CREDENTIALS: Final = "credentialsProviders"
"""Its name before 0.19; only one of the two may have entries (pkg/config/validation.go)."""

MULTIKUEUE: Final = "MultiKueue"
CLUSTER_PROFILE_GATE: Final = "MultiKueueClusterProfile"
CUSTOM_JOBS: Final = "MultiKueueAdaptersForCustomJobs"
ORDER_GATE: Final = "MultiKueueIncrementalDispatcherRespectConfigOrder"
REUSE_LIMITS_GATE: Final = "MultiKueueReuseClientConnectionConfigForWorkers"
MERGE_PATCH_GATE: Final = "WorkloadRequestUseMergePatch"
GATES: Final = {
    MULTIKUEUE: VersionRange("0.9"),
    CUSTOM_JOBS: VersionRange("0.15"),
    **{name: gate.default_on for name, gate in GATES_FOR_RIGHTS.items()},
    CLUSTER_PROFILE_GATE: VersionRange(""),
    TTL_GATE: VersionRange(""),
    ORDER_GATE: VersionRange("0.19"),
    REUSE_LIMITS_GATE: VersionRange("0.20"),
    MERGE_PATCH_GATE: VersionRange(""),
}
"""The releases in which each is on by default (pkg/features/kube_features.go)."""

MANAGER: Final = "placement-ac-doctor"
"""A field manager of our own: with kubectl's, fields that this manifest lacks (labels) would be removed."""
_APPLY: Final = f"kubectl apply --server-side --field-manager={MANAGER} --force-conflicts -f -"
NO_DEPLOYMENT: Final = unknown(
    "Kueue's Deployment was not found",
    f"kubectl get deployments -A -l {KUEUE_SELECTOR}",
    "kueue-deployment",
)


@dataclass(frozen=True)
class HubKueue:
    """Kueue on a hub. `version`: its release if the settings name it."""

    dump: Dump
    namespace: str
    version: str = ""

    @cached_property
    def deployment(self) -> Object | None:
        return next(kueue_deployments(self.dump.of(DEPLOYMENT), self.namespace), None)

    @property
    def name(self) -> str:
        """The name of its Deployment; that of Kueue's manifests if there is none."""
        return key_of(self.deployment)[1] if self.deployment else KUEUE_MANAGER

    @property
    def pod(self) -> Obj:
        """The spec of its Pods."""
        return get_dict(self.deployment, "spec", "template", "spec")

    @cached_property
    def manager(self) -> Obj:
        """The container that runs Kueue's manager."""
        return next(
            (
                container
                for container in get_list(self.pod, "containers")
                if container.get("name") == KUEUE_CONTAINER
            ),
            {},
        )

    @cached_property
    def release(self) -> KueueRelease | None:
        return parse_release(self.version or release_of(self.deployment or {}))

    # -- its configuration

    @cached_property
    def config_name(self) -> str:
        """The name of the ConfigMap that its Deployment mounts."""
        mounts = {
            get_str(volume_mount, "name")
            for volume_mount in get_list(self.manager, "volumeMounts")
            if FILE in (volume_mount.get("subPath"), get_str(volume_mount, "mountPath").rpartition("/")[2])
        }
        for volume in get_list(self.pod, "volumes"):
            if get_str(volume, "name") in mounts and (name := get_str(volume, "configMap", "name")):
                return name
        return CONFIG_MAP_NAME

    @cached_property
    def config_map(self) -> Object | None:
        return self.dump.find(CONFIG_MAP, self.config_name, self.namespace)

    @property
    def config_text(self) -> str:
        return get_str(self.config_map, "data", FILE)

    @cached_property
    def _parsed(self) -> tuple[Obj, str]:
        """Return the configuration and the problem with it."""
        if self.config_map is None:
            return {}, "does not exist"
        if not isinstance(get_value(self.config_map, "data", FILE), str):
            return {}, f"has no {FILE}"
        try:
            body = load_yaml(self.config_text)
        except NotYaml:
            return {}, f"has a {FILE} that is not YAML"
        if not isinstance(body, Mapping) or body.get("kind") != "Configuration":
            return {}, f"has a {FILE} that is no Configuration"
        version = body.get("apiVersion")
        return body, "" if version in API_VERSIONS else f"has a {FILE} of {version}, which is unknown"

    @property
    def config(self) -> Obj:
        """The file's content; empty if it cannot be read."""
        return self._parsed[0]

    @property
    def config_problem(self) -> str:
        """Why the configuration cannot be read, or that it does not exist; "" if it can be read."""
        return self._parsed[1]

    @property
    def multikueue(self) -> Obj:
        return get_dict(self.config, "multiKueue")

    @property
    def frameworks(self) -> tuple[str, ...]:
        """The names in integrations.frameworks; () if it does not name any."""
        return tuple(get_strs(self.config, "integrations", "frameworks"))

    @property
    def external_frameworks(self) -> tuple[str, ...]:
        """The names in multiKueue.externalFrameworks."""
        return tuple(
            str(external_framework.get("name"))
            for external_framework in get_list(self.multikueue, "externalFrameworks")
        )

    @property
    def access_providers(self) -> list[Obj]:
        """The access providers, under either name of the list."""
        return [
            raw for key in (ACCESS, CREDENTIALS) for raw in get_list(self.multikueue, "clusterProfile", key)
        ]

    # -- its feature gates

    @property
    def _args(self) -> list[str]:
        return get_strs(self.manager, "args")

    @cached_property
    def flags(self) -> dict[str, bool]:
        """The feature gates in its arguments."""
        return gates_in_arguments(self._args)

    @cached_property
    def gates(self) -> dict[str, bool]:
        """The feature gates that are set."""
        return gates_in_config(self.config) | self.flags

    @property
    def running(self) -> RunningKueue:
        return RunningKueue(self.release, tuple(sorted(self.gates.items())))

    def is_on(self, gate: str) -> bool:
        """Whether a feature gate is on; if it is not configured: whether it is on by default."""
        return is_on(gate, GATES[gate], self.gates, self.release)

    @property
    def clears_ttl(self) -> bool:
        """Whether it leaves finished Jobs on workers: AllAlpha turns on no gate that a release lacks."""
        return TTL_GATE_SINCE.has(self.release) and self.is_on(TTL_GATE)

    def gate_finding(self, gate: str, purpose: str, effect: str) -> Finding:
        """Return whether a gate is on; `purpose`: what needs it, `effect`: the effect if it is off."""
        if self.is_on(gate):
            return ok(f"the gate {gate} is on{purpose}")
        return fail(f"the gate {gate} is off: {effect}", self.enable_gate(gate))

    # -- commands

    @property
    def config_words(self) -> str:
        """kubectl's words for the ConfigMap."""
        return f"configmap -n {self.namespace} {shlex.quote(self.config_name)}"

    def open_config(self, hint: str) -> str:
        """Return the command that opens the configuration in an editor."""
        return f"kubectl edit {self.config_words}  # {hint}"

    def edit_config(self, path: tuple[str, ...], value: object) -> str:
        """Return the commands that apply the file with a field changed, and restart Kueue.

        `value` is appended to a list and merged into a map. An editor, where variables of a plugin may be
        secret: a dump lacks their values.
        """
        if not self.config or any(
            "env" in get_dict(access_provider, "execConfig") for access_provider in self.access_providers
        ):
            hint = f"{'.'.join(path)}: {json.dumps(value)}"
            return f"{self.open_config(hint)}\n{self._restart}"
        file = yaml.safe_dump(_with_field(self.config, path, value), sort_keys=False, width=1000)
        return f"{_APPLY} <<'EOF' &&\n{self._config_manifest(file)}EOF\n{self._restart}"

    def keep_config(self, command: str) -> str:
        """Return a command that may replace the file, and restores the file afterwards, even if it fails."""
        if not self.config_text:
            return command
        key = FILE.replace(".", "\\.")
        get = f"kubectl get {self.config_words} -o jsonpath='{{.data.{key}}}'"
        made = f'kubectl create {self.config_words} --from-literal={FILE}="$config" --dry-run=client -o yaml'
        return f"config=$({get}) && {{\n{command}\n{made} |\n{_APPLY} &&\n{self._restart}\n}}"

    def upgrade(self, release: KueueRelease | None = None) -> str:
        """Return the command that installs a release (None: KUEUE_TO_INSTALL) and keeps the configuration.

        kubectl removes fields that the release lacks: if that may be a plugin, it only shows the diff.
        """
        install = HUB.install_kueue(release)
        if self.access_providers:
            shown = install.replace("apply", "diff", 1)
            return f"{shown}  # apply it with the plugins of your access providers"
        return self.keep_config(install)

    def create_config(self) -> str:
        """Return the command that creates a configuration with Kueue's defaults."""
        file = f"apiVersion: {API_VERSIONS[0]}\nkind: Configuration\n"
        return HUB.apply_text(self._config_manifest(file))

    def _config_manifest(self, file: str) -> str:
        head = as_yaml(manifest(CONFIG_MAP, self.config_name, namespace=self.namespace))
        return f"{head}data:\n  {FILE}: |\n{textwrap.indent(file, ' ' * 4)}"

    @property
    def _restart(self) -> str:
        return f"kubectl rollout restart -n {self.namespace} deployment/{self.name}"

    def move_gates_to_config(self) -> str:
        """Return the commands that move the feature gates from the arguments into the file."""
        leave = self._patch_args(without_flag(self._args, GATES_FLAG))
        missing = {gate: on for gate, on in self.flags.items() if gate not in gates_in_config(self.config)}
        return f"{self.edit_config(('featureGates',), missing)} &&\n{leave}" if missing else leave

    def enable_gate(self, gate: str) -> str:
        """Return the commands that turn a feature gate on, in the place that already has gates."""
        if not self.flags:
            return self.edit_config(("featureGates", gate), True)
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in {**self.flags, gate: True}.items())
        return self._patch_args([*without_flag(self._args, GATES_FLAG), f"{GATES_FLAG}={gates}"])

    def _patch_args(self, args: list[str]) -> str:
        pods = {"containers": [{"name": KUEUE_CONTAINER, "args": args}]}
        return patch_pods(f"-n {self.namespace} deployment/{self.name}", pods)

    @property
    def show_image(self) -> str:
        """The command that shows the images of its Deployment."""
        image = "{.spec.template.spec.containers[*].image}"
        return f"kubectl get deployment -n {self.namespace} {self.name} -o jsonpath='{image}'"


def _with_field(there: Any, path: tuple[str, ...], value: object) -> Any:
    """Return a copy of a file's content, or of a part of it, with the field at `path` changed."""
    if path:
        inner = there if isinstance(there, Mapping) else {}
        return {**inner, path[0]: _with_field(inner.get(path[0]), path[1:], value)}
    if isinstance(there, list):
        return [*there, value]
    return {**there, **value} if isinstance(there, Mapping) and isinstance(value, Mapping) else value
