"""The hub that `doctor` examines, and the decorator of its rules. Pure."""

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kubectl_placement.doctor.commands import for_comment
from kubectl_placement.doctor.finding import DoctorRule, Finding, fail, unknown, warn
from kubectl_placement.doctor.kueue import HubKueue
from kubectl_placement.hub.dump import Dump, MissingRight
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import CRD
from placement_ac.config.load import PREFIX
from placement_ac.config.policy import known_kueue, worker_policy_rules, worker_requirements
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    CONFIG_MAP,
    DEPLOYMENT,
    KUEUE,
    KUEUE_VERSIONS,
    MANAGED_BY,
    OCM_CLUSTER,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.fields import get_list, get_strs, key_of
from placement_ac.core.api.kueue_deployment import is_kueue
from placement_ac.core.api.kueue_integrations import DEFAULT_FRAMEWORKS
from placement_ac.core.decisions import SOURCE
from placement_ac.core.inputs.fitness import WorkerRequirements
from placement_ac.core.inputs.rights import FRAMEWORKS, UNKNOWN_KUEUE, RunningKueue

OWN_RIGHTS: Final = "own-rights"
"""The check of the caller's own rights."""
EMBEDDED: Final = "+placement-ac"
"""The end of the embedded hub's version."""
CRDS: Final = {KUEUE: "kueue-crds", OCM_CLUSTER: "ocm-crds", SOURCE.kind.group: "ocm-crds"}
"""Group → the check that its kinds are served."""


@dataclass(frozen=True)
class HubSetup:
    """The examined hub."""

    view: HubView
    controller: str = ""
    """The controller's Deployment as namespace/name; "": there is none, or it is unknown."""
    settings_problem: str = ""
    """Why the controller's settings are unknown."""
    controller_namespace: str = ""
    """The namespace in which the controller is expected."""
    given: bool = False
    """Whether the settings were given on the command line."""
    lease: str = ""
    """The Lease that names the settings, as namespace/name; "": they are from somewhere else."""

    @property
    def is_embedded(self) -> bool:
        """Whether it is this project's embedded hub: it has no nodes, so no Deployment runs there."""
        return self.dump.release.endswith(EMBEDDED)

    @property
    def has_stand_in(self) -> bool:
        """Whether the embedded hub's stand-in takes Kueue's place; it sends Jobs alone."""
        return self.is_embedded and not any(map(is_kueue, self.dump.of(DEPLOYMENT)))

    @property
    def dump(self) -> Dump:
        return self.view.dump

    @property
    def settings(self) -> Settings:
        return self.view.settings

    @property
    def kueue_namespace(self) -> str:
        return self.settings.kueue_namespace

    @cached_property
    def kueue(self) -> HubKueue:
        return HubKueue(self.dump, self.kueue_namespace, self.settings.kueue_version)

    @property
    def placement_namespaces(self) -> tuple[str, ...]:
        """The namespaces of Placements and decisions; ("",) for a file, which has any."""
        return self.settings.placement_namespace if self.dump.live else ("",)

    @cached_property
    def checks_by_placement(self) -> dict[str, str]:
        """Placement → the first check of ours that names it, by the name of the Placement."""
        checks = reversed(self.view.our_checks)
        return dict(sorted({check.placement: check.meta.name for check in checks if check.placement}.items()))

    @cached_property
    def check_names(self) -> frozenset[str]:
        """The names of our checks, and of the multikueue checks whose config is ours."""
        ours = self.checks_by_placement
        return frozenset(check.meta.name for check in self.view.checks if check.ours or check.config in ours)

    def served_versions(self, kind: Kind) -> tuple[str, ...] | None:
        """Return the versions in which the hub serves a kind; None: unknown."""
        if definition := self.dump.find(CRD, str(kind)):
            return tuple(
                str(version.get("name"))
                for version in get_list(definition, "spec", "versions")
                if version.get("served")
            )
        resource = self.dump.served.get(kind)
        if resource and (self.dump.live or not self.knows(CRD)):
            return (resource.version,)
        return () if self.dump.live or self.knows(CRD) else None

    # -- objects that could not be read

    def knows(self, kind: Kind, namespace: str = "") -> bool:
        """Whether all objects of a kind (in that namespace) are known; of a file: whether it has any."""
        if self.dump.live or not namespace:
            return kind in self.dump.objects and self.missing_right(kind, namespace) is None
        return any(key_of(obj)[0] == namespace for obj in self.dump.of(kind))

    def missing_right(self, kind: Kind, namespace: str = "") -> MissingRight | None:
        """Return the missing right to list it; None if there is none."""
        wanted = (kind, namespace)
        return next((right for right in self.dump.missing if (right.kind, right.namespace) == wanted), None)

    def unknown(self, *kinds: Kind, namespaces: Collection[str] = ("",)) -> tuple[Finding, ...]:
        """Return a warning for each of these kinds that could not be read."""
        unserved = tuple(
            unknown(f"{kind} are not served", cause=CRDS[kind.group]) for kind in self._lacking(kinds)
        )
        pairs = ((kind, namespace) for kind in kinds for namespace in namespaces)
        return unserved or tuple(self._unread(*pair) for pair in pairs if not self.knows(*pair))

    def _lacking(self, kinds: Iterable[Kind]) -> list[Kind]:
        """Return those of Kueue's and OCM's `kinds` that the hub does not serve."""
        mine = [kind for kind in kinds if kind.group in CRDS]
        return [kind for kind in mine if self.dump.live and kind not in self.dump.served]

    def _unread(self, kind: Kind, namespace: str) -> Finding:
        if right := self.missing_right(kind, namespace):
            return unknown(f"the right to {right} is missing", right.check_command, OWN_RIGHTS)
        if self.dump.live:
            return unknown(f"{kind} were not read")
        flags = f" -n {namespace}" if namespace else " -A" if kind.namespaced else ""
        where = f" of namespace {namespace}" if namespace else ""
        fix = f"kubectl get {kind}{flags} -o yaml > {kind.plural}.yaml"
        return unknown(f"the dump has no {kind.plural}{where}", fix)

    def unknown_config(self) -> tuple[Finding, ...]:
        """Return a warning if Kueue's configuration is unknown."""
        if unread := self.unknown(CONFIG_MAP, namespaces=[self.kueue_namespace]):
            return unread
        see = f"kubectl get {self.kueue.config_words} -o yaml"
        name = "kueue-configuration"
        return (unknown(f"see {name}", see, name),) if self.kueue.config_problem else ()

    # -- the requirements of Kueue on a worker

    @cached_property
    def worker_requirements(self) -> WorkerRequirements:
        """The rights and kinds that the hub's Kueue needs on a worker."""
        return self.requirements_of(self._kueue_by_settings)

    def requirements_of(self, kueue: RunningKueue) -> WorkerRequirements:
        """Return the rights and kinds that such a Kueue needs on a worker."""
        served = self.dump.served.get(WORKLOAD)
        version = served.version if served else KUEUE_VERSIONS[0]
        return worker_requirements(self._with_job_kinds, version, kueue)

    @cached_property
    def worker_policy_rules(self) -> tuple[Mapping[str, Any], ...]:
        """The rights that the hub's Kueue needs on a worker, as PolicyRules."""
        return worker_policy_rules(self._with_job_kinds, self._kueue_by_settings)

    @property
    def _kueue_by_settings(self) -> RunningKueue:
        """The hub's Kueue as the controller takes it."""
        return known_kueue(self.settings, self.kueue.running, UNKNOWN_KUEUE)

    @property
    def _with_job_kinds(self) -> Settings:
        """The settings, with the job kinds of Kueue's configuration if that is known."""
        if self.has_stand_in and not self.settings.frameworks:
            return self.settings.model_copy(update={"frameworks": DEFAULT_FRAMEWORKS})
        if self.kueue.config_problem:
            return self.settings
        names = self.kueue.frameworks or DEFAULT_FRAMEWORKS
        kinds = {
            "frameworks": tuple(name for name in names if name in FRAMEWORKS),
            "external_frameworks": self.kueue.external_frameworks,
        }
        return self.settings.model_copy(update=kinds)

    # -- the controller's settings

    def settings_failure(self, message: str, fix: str) -> Finding:
        """Return a failure that depends on the controller's settings: a warning if they are unknown."""
        sources = (self.given, self.controller, self.lease, self.knows(DEPLOYMENT, self.controller_namespace))
        if self.settings_problem or not any(sources):
            why = self.settings_problem or "no controller was found"
            return warn(f"{message}, if the controller uses the defaults: {why}", fix)
        return fail(message, fix)

    @property
    def controller_words(self) -> str:
        """kubectl's words for the controller's Deployment."""
        namespace, _, name = self.controller.partition("/")
        return f"-n {namespace or self.controller_namespace} deployment/{name or MANAGED_BY}"

    def set_setting(self, name: str, value: str) -> str:
        """Return the command that changes a setting of the controller: its flag where it has one."""
        namespace, _, deployment = self.controller.partition("/")
        flag = f"--{name.replace('_', '-')}"
        raw = self.dump.find(DEPLOYMENT, deployment, namespace)
        containers = get_list(raw, "spec", "template", "spec", "containers")
        args = (arg for container in containers for arg in get_strs(container, "args"))
        if any(arg.partition("=")[0] == flag for arg in args):
            return f"kubectl edit {self.controller_words}  # {for_comment(f'{flag}={value}')}"
        if self.is_embedded and raw is None:
            return f"placement-ac run {flag}={shlex.quote(value)}"
        return f"kubectl set env {self.controller_words} {PREFIX}{name.upper()}={shlex.quote(value)}"


HubRule = DoctorRule[HubSetup]
Evaluate = Callable[[HubSetup], Iterator[Finding]]
Unknown = Callable[[HubSetup], Iterable[Finding]]


def hub_rule(
    check: str, looks_at: str, fix: str, *required: Kind, unknown: Unknown = HubSetup.unknown
) -> Callable[[Evaluate], HubRule]:
    """Make a rule of a function, for setups in which the required kinds are known.

    `unknown` returns more warnings of missing knowledge, which replace the rule's findings.
    """
    return lambda evaluate: DoctorRule(
        check, looks_at, fix, lambda setup: setup.unknown(*required) or unknown(setup) or evaluate(setup)
    )
