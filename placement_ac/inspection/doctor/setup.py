"""
The hub that `doctor` examines, and the helpers that several rules share.

Pure.
"""

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from placement_ac.config.load import PREFIX
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import KUEUE_MANAGER, LABEL_RELEASE, MANAGED_BY, Kind
from placement_ac.core.api.schemas import as_mapping
from placement_ac.core.inputs.fitness import release_of
from placement_ac.core.inputs.rights import KueueRelease, parse_release
from placement_ac.inspection.doctor.finding import DoctorRule, RuleResult, fail, warn
from placement_ac.inspection.hub.dump import Dump, MissingRight, Object, key_of
from placement_ac.inspection.hub.hub_view import HubView
from placement_ac.inspection.hub.kinds import DEPLOYMENT

_PLAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
CONTAINER: Final = "manager"


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

    @property
    def dump(self) -> Dump:
        return self.view.dump

    @property
    def settings(self) -> Settings:
        return self.view.settings

    @property
    def kueue_namespace(self) -> str:
        return self.settings.kueue_namespace

    @property
    def placement_namespaces(self) -> tuple[str, ...]:
        """The namespaces of Placements and decisions; ("",) for a file, which has any."""
        return self.settings.placement_namespace if self.dump.live else ("",)

    # -- what was read

    def knows(self, kind: Kind, namespace: str = "") -> bool:
        """Whether all objects of a kind (in that namespace) are known; of a file: whether it has any."""
        if self.dump.live or not namespace:
            return kind in self.dump.objects and self.missing_right(kind, namespace) is None
        return any(key_of(obj)[0] == namespace for obj in self.dump.of(kind))

    def missing_right(self, kind: Kind, namespace: str = "") -> MissingRight | None:
        """Return the missing right to list it; None if there is none."""
        wanted = (kind, namespace)
        return next((one for one in self.dump.missing if (one.kind, one.namespace) == wanted), None)

    def unknown_results(self, *kinds: Kind, namespaces: Collection[str] = ("",)) -> tuple[RuleResult, ...]:
        """Return a warning for each of these kinds that could not be read."""
        pairs = ((kind, namespace) for kind in kinds for namespace in namespaces)
        return tuple(
            message
            for kind, space in pairs
            if not self.knows(kind, space)
            for message in self._unread(kind, space)
        )

    def _unread(self, kind: Kind, namespace: str) -> Iterable[RuleResult]:
        if right := self.missing_right(kind, namespace):
            yield warn(f"unknown: the right to {right} is missing", right.check_command)
        elif not self.dump.live:
            where = f" -n {namespace}" if namespace else " -A" if kind.namespaced else ""
            fix = f"kubectl get {kind}{where} -o yaml > {kind.plural}.yaml"
            there = f" of namespace {namespace}" if namespace else ""
            yield warn(f"unknown: the dump has no {kind.plural}{there}", fix)
        else:
            yield warn(f"unknown: {kind} were not read")

    @property
    def settings_assumed(self) -> bool:
        """Whether the settings are unknown, so that the defaults are assumed."""
        if self.given:
            return False
        unseen = not self.controller and not self.knows(DEPLOYMENT, self.controller_namespace)
        return unseen or bool(self.settings_problem)

    def settings_failure(self, message: str, fix: str) -> RuleResult:
        """Return a failure that depends on the controller's settings: a warning if they are assumed."""
        if self.settings_assumed:
            return warn(f"{message}, if the controller uses the defaults: see controller-settings", fix)
        return fail(message, fix)

    # -- Kueue

    @cached_property
    def kueue(self) -> Object | None:
        """Kueue's Deployment."""
        return self.dump.find(DEPLOYMENT, KUEUE_MANAGER, self.kueue_namespace)

    @cached_property
    def manager(self) -> Mapping[str, Any]:
        """The container in it that runs Kueue's manager."""
        found = containers_of(self.kueue or {})
        return next((one for one in found if one.get("name") == CONTAINER), {})

    @cached_property
    def kueue_release(self) -> KueueRelease | None:
        """The release of Kueue, from the settings or its Deployment."""
        label = labels_of(self.kueue).get(LABEL_RELEASE)
        return parse_release(self.settings.kueue_version or release_of(self.manager.get("image"), label))


HubRule = DoctorRule[HubSetup]
Evaluate = Callable[[HubSetup], Iterator[RuleResult]]


def hub_rule(check: str, looks_at: str, fix: str, *required: Kind) -> Callable[[Evaluate], HubRule]:
    """Make a rule of a function; if a required kind is unknown, the rule warns instead."""
    return lambda evaluate: DoctorRule(
        check, looks_at, fix, lambda setup: setup.unknown_results(*required) or evaluate(setup)
    )


def sequence(value: object) -> list[Any]:
    """Return a list as it is, and anything else as an empty one."""
    return value if isinstance(value, list) else []


def strings(value: object) -> list[str]:
    """Return the strings of a list."""
    return [one for one in sequence(value) if isinstance(one, str)]


def spec_of(obj: Object | None) -> Mapping[str, Any]:
    return as_mapping((obj or {}).get("spec"))


def status_of(obj: Object | None) -> Mapping[str, Any]:
    return as_mapping((obj or {}).get("status"))


def labels_of(obj: Object | None) -> Mapping[str, Any]:
    return as_mapping(as_mapping((obj or {}).get("metadata")).get("labels"))


def pod_of(deployment: Object) -> Mapping[str, Any]:
    """Return the spec of a Deployment's Pods."""
    return as_mapping(as_mapping(spec_of(deployment).get("template")).get("spec"))


def containers_of(deployment: Object, what: str = "containers") -> list[Mapping[str, Any]]:
    return [as_mapping(one) for one in sequence(pod_of(deployment).get(what))]


def condition_of(obj: Object | None, kind: str) -> Mapping[str, Any]:
    """Return a condition by its type; empty if there is none."""
    found = (as_mapping(one) for one in sequence(status_of(obj).get("conditions")))
    return next((one for one in found if one.get("type") == kind), {})


def ready(deployment: Object) -> int:
    """Return the number of ready Pods."""
    count = status_of(deployment).get("readyReplicas")
    return count if isinstance(count, int) else 0


def set_setting_command(setup: HubSetup, name: str, value: str) -> str:
    """Return the command that changes a setting of the controller: its flag if present, else a variable."""
    namespace, _, deployment = setup.controller.partition("/")
    where = f"-n {namespace or setup.controller_namespace} deployment/{deployment or MANAGED_BY}"
    flag = f"--{name.replace('_', '-')}"
    for container in containers_of(setup.dump.find(DEPLOYMENT, deployment, namespace) or {}):
        args = [str(one) for one in sequence(container.get("args"))]
        if any(one.partition("=")[0] == flag for one in args):
            message = {"name": container.get("name"), "args": [*without_flag(args, flag), f"{flag}={value}"]}
            return patch_pods_command(where, {"containers": [message]})
    return f"kubectl set env {where} {PREFIX}{name.upper()}={shlex.quote(value)}"


def list_deployments_command() -> str:
    """Return the command that shows Kueue's Deployment in any namespace."""
    return f"kubectl get deployments -A --field-selector metadata.name={KUEUE_MANAGER}"


def image_command(setup: HubSetup) -> str:
    """Return the command that shows Kueue's images."""
    image = "{.spec.template.spec.containers[*].image}"
    return f"kubectl get deployment -n {setup.kueue_namespace} {KUEUE_MANAGER} -o jsonpath='{image}'"


def name_of(obj: Object) -> str:
    return str(as_mapping(obj.get("metadata")).get("name") or "")


def yaml_of(text: str) -> str:
    """Return a text as a YAML scalar on one line, quoted if necessary."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def apply_command(*lines: str) -> str:
    """Return the command that applies a manifest."""
    return "\n".join(("kubectl apply -f - <<'EOF'", *lines, "EOF"))


def without_flag(args: list[str], flag: str) -> list[str]:
    """Return the arguments without a flag and its value."""
    return [
        word
        for place, word in enumerate(args)
        if word.partition("=")[0] != flag and not (place and args[place - 1] == flag)
    ]


def patch_pods_command(where: str, pods: Mapping[str, Any]) -> str:
    """Return the command that merges `pods` into a Deployment's Pods; `where`: kubectl's words for it."""
    patch = json.dumps({"spec": {"template": {"spec": pods}}})
    return f"kubectl patch {where} -p {shlex.quote(patch)}"
