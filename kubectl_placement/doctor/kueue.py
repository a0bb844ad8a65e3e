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
from typing import Final

from kubectl_placement.doctor.commands import HUB, as_yaml, for_comment, manifest
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

    def edit_config(self, hint: str) -> str:
        """Return the commands that open the configuration in an editor and restart Kueue.

        `hint` names what to change. A file written by us would lack what a dump leaves out.
        """
        return f"kubectl edit {self.config_words}  # {for_comment(hint)}\n{self._restart}"

    def upgrade(self, release: KueueRelease | None = None) -> str:
        """Return the command for a release (None: KUEUE_TO_INSTALL).

        Where there is a configuration it only shows what would change: applied, Kueue's manifest replaces the
        file, and takes from its Pods what the release lacks, which may be a plugin.
        """
        install = HUB.install_kueue(release)
        if not (self.config_text or self.access_providers):
            return install
        kept = f"{FILE} and the plugins of your access providers" if self.access_providers else FILE
        return f"{install.replace('apply', 'diff', 1)}  # apply it with your {kept}"

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
        missing = [gate for gate in sorted(self.flags) if gate not in gates_in_config(self.config)]
        leave = self._edit_deployment(f"remove {GATES_FLAG}")
        gates = ", ".join(f"{gate}: {json.dumps(self.flags[gate])}" for gate in missing)
        return f"{self.edit_config(f'featureGates: {gates}')}\n{leave}" if missing else leave

    def enable_gate(self, gate: str) -> str:
        """Return the command that turns a feature gate on, in the place that already has gates."""
        if self.flags:
            return self._edit_deployment(f"{GATES_FLAG}: {gate}=true")
        return self.edit_config(f"featureGates: {gate}: true")

    def _edit_deployment(self, hint: str) -> str:
        return f"kubectl edit deployment -n {self.namespace} {self.name}  # {for_comment(hint)}"

    @property
    def show_image(self) -> str:
        """The command that shows the images of its Deployment."""
        image = "{.spec.template.spec.containers[*].image}"
        return f"kubectl get deployment -n {self.namespace} {self.name} -o jsonpath='{image}'"
