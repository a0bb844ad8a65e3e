"""
The settings that the controller of a hub runs with, and where they are.

Pure. A command that reads a hub must use the controller's settings, because names, namespaces and limits
depend on them. The leader publishes them on its Lease. They are also in its Deployment (arguments,
PLACEMENT_AC_… variables) and its ConfigMap.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, Final

from kubectl_placement.hub.dump import Dump, Object
from placement_ac.config.load import PREFIX, LoadedSettings, load
from placement_ac.config.published import read_published
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ANNOTATION_SETTINGS,
    CONFIG_MAP,
    DEPLOYMENT,
    LABEL_APP_NAME,
    LABEL_MANAGED_BY,
    LEASE,
    MANAGED_BY,
)
from placement_ac.core.api.errors import BadSettings
from placement_ac.core.api.fields import get_dict, get_int, get_list, get_str, get_strs, get_value, key_of
from placement_ac.core.api.text import joined

NAMESPACE: Final = "placement-ac-system"
"""The namespace in which config/ installs the controller."""
_PART_LABEL: Final = "app.kubernetes.io/part-of"
"""The chart sets it whatever `nameOverride` says."""
_RELEASE_LABEL: Final = "app.kubernetes.io/instance"
SELECTORS: Final = (f"{LABEL_APP_NAME}={MANAGED_BY}", f"{_PART_LABEL}={MANAGED_BY}")
"""The label selectors of the controller's Deployment."""
LEASE_SELECTOR: Final = f"{LABEL_MANAGED_BY}={MANAGED_BY}"
_CONTAINER: Final = "controller"
_IMAGE: Final = re.compile(rf"(^|/){MANAGED_BY}(:[^/]*)?$")
CONFIG_KEY: Final = "config.yaml"
"""The key of the settings file in the controller's ConfigMap."""
_CONFIG_VOLUME: Final = "config"
_FLAG: Final = re.compile(r"--([a-z][a-z-]*)(?:=(.*))?", re.DOTALL)
_POD_SETTINGS: Final = ("config", "kubeconfig", "context", "cluster_proxy_ca", "access_providers")
"""Settings that name files and logins inside the controller's Pod."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The settings to use: the defaults if they are unknown."""

    loaded: LoadedSettings
    deployment: str = ""
    """The controller's Deployment as namespace/name; "": none was found."""
    problem: str = ""
    """Why its settings are unknown; "": they are known, or there is no controller."""
    lease: str = ""
    """The Lease that names the settings, as namespace/name; "": they are from somewhere else."""

    given: bool = False
    """Whether they are of a settings file that the caller names."""

    @property
    def known(self) -> bool:
        """Whether they are those of a controller, or of such a file: else they are the defaults."""
        return self.given or (bool(self.deployment or self.lease) and not self.problem)

    @property
    def namespace(self) -> str:
        """The namespace of the Deployment; "": none was found."""
        return self.deployment.partition("/")[0]


def deployments(dump: Dump) -> list[Object]:
    """Return the Deployments of this controller: by our label, or by the name of the image.

    Not by the container's name, which others use too (ingress-nginx): `doctor` prints commands that change
    these Deployments.
    """
    return [
        deployment
        for deployment in dump.of(DEPLOYMENT)
        if has_our_label(deployment) or any(map(_has_our_image, _containers(deployment)))
    ]


def find_settings(dump: Dump, given: Mapping[str, Any], namespace: str = "") -> ControllerSettings:
    """Return the settings of the controller on the hub, or those of the settings file in `given`.

    `given`: settings of the command line by name; they take precedence. `namespace`: that of the controller;
    "": any. A Lease that is held names the settings of the controller that runs; else its Deployment does,
    else the Lease of the last leader. Raises BadSettings.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    if "config" in asked:
        return _used(ControllerSettings(_loaded(asked), given=True))
    deployment = next(iter(_nearest(dump, namespace)), None)
    label = "/".join(key_of(deployment)) if deployment else ""
    lease = _published_on(dump)
    try:
        if lease and (deployment is None or get_str(lease, "spec", "holderIdentity")):
            words_there = get_str(lease, "metadata", "annotations", ANNOTATION_SETTINGS)
            loaded = _loaded(read_published(words_there) | asked)
            return _used(ControllerSettings(loaded, label, lease="/".join(key_of(lease))))
        if deployment:
            return _used(ControllerSettings(_of_deployment(dump, deployment, asked), label))
    except (BadSettings, OSError) as error:
        return _used(ControllerSettings(_loaded(asked), label, str(error)))
    return _used(ControllerSettings(_loaded(asked), problem=_why_unknown(dump, namespace)))


def _used(controller: ControllerSettings) -> ControllerSettings:
    """Return the settings as they are used here: outside the Pod, its files and logins mean nothing."""
    outside_pod = {name: Settings.model_fields[name].default for name in _POD_SETTINGS}
    settings = controller.loaded.settings.model_copy(update=outside_pod)
    return replace(controller, loaded=replace(controller.loaded, settings=settings))


def _loaded(flags: Mapping[str, Any]) -> LoadedSettings:
    return load(flags, {})


def _nearest(dump: Dump, namespace: str) -> list[Object]:
    """Return the controller's Deployments, the likeliest first.

    That is one in its namespace, one that has a ready Pod, and one where config/ installs it.
    """

    def distance(deployment: Object) -> tuple[bool, bool, bool]:
        there = key_of(deployment)[0]
        is_ready = bool(get_int(deployment, "status", "readyReplicas"))
        return there != (namespace or there), not is_ready, there != NAMESPACE

    return sorted(deployments(dump), key=distance)


def _published_on(dump: Dump) -> Object | None:
    """Return the Lease on which a leader has published its settings, one that is held first."""
    leases = [
        lease
        for lease in dump.of(LEASE)
        if isinstance(get_value(lease, "metadata", "annotations", ANNOTATION_SETTINGS), str)
    ]
    return min(leases, key=lambda lease: not get_str(lease, "spec", "holderIdentity"), default=None)


def _why_unknown(dump: Dump, namespace: str) -> str:
    """Return why the settings of a controller are unknown of which nothing was found; "": there is none."""
    if not dump.live:
        return ""
    held = [lease for lease in dump.of(LEASE) if get_str(lease, "spec", "holderIdentity")]
    of_it = (right.kind.plural for right in dump.missing if right.kind in (DEPLOYMENT, LEASE))
    rights = joined(dict.fromkeys(of_it), " and ")
    where = f" in namespace {namespace}" if namespace else ""
    if held:
        leads = f"{get_str(held[0], 'spec', 'holderIdentity')} holds Lease {'/'.join(key_of(held[0]))}"
        missing = f" (you may not list all {rights})" if rights else ""
        return f"{leads}, which does not name them, and no Deployment of it was found{where}{missing}"
    return f"no Deployment or Lease of it was found{where}: you may not list all {rights}" if rights else ""


def _of_deployment(dump: Dump, deployment: Object, asked: dict[str, Any]) -> LoadedSettings:
    return load(
        _arguments(deployment) | asked,
        _environment(deployment),
        lambda _: _settings_file(dump, deployment),
    )


def installed_by_helm(obj: Object) -> str:
    """Return the Helm release that an object belongs to; "" if it was not installed by Helm."""
    labels = get_dict(obj, "metadata", "labels")
    return str(labels.get(_RELEASE_LABEL, "")) if labels.get(LABEL_MANAGED_BY) == "Helm" else ""


def has_our_label(obj: Object) -> bool:
    labels = get_dict(obj, "metadata", "labels")
    return MANAGED_BY in (labels.get(LABEL_APP_NAME), labels.get(_PART_LABEL))


def _has_our_image(container: Mapping[str, Any]) -> bool:
    image = str(container.get("image", "")).partition("@")[0]
    return _IMAGE.search(image) is not None


def _containers(deployment: Object) -> Sequence[Mapping[str, Any]]:
    return get_list(deployment, "spec", "template", "spec", "containers")


def controller_container(deployment: Object) -> Mapping[str, Any] | None:
    """Return the container that runs the controller, in a Deployment of ours."""
    containers = _containers(deployment)
    ours = (container for container in containers if _has_our_image(container))
    named = (container for container in containers if container.get("name") == _CONTAINER)
    return next(chain(ours, named), None)


def _arguments(deployment: Object) -> dict[str, str]:
    arguments = get_strs(controller_container(deployment), "args")
    flags: dict[str, str] = {}
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if match := _FLAG.fullmatch(word):
            flags[match[1].replace("-", "_")] = following if match[2] is None else match[2]
    return {name: value for name, value in flags.items() if name in Settings.model_fields}


def _environment(deployment: Object) -> dict[str, str]:
    return {
        str(entry["name"]): str(entry["value"])
        for entry in get_list(controller_container(deployment), "env")
        if str(entry.get("name", "")).startswith(PREFIX) and "value" in entry
    }


def _settings_file(dump: Dump, deployment: Object) -> str:
    """Return the controller's settings file, from its ConfigMap. Raises OSError if it is missing."""
    namespace, _ = key_of(deployment)
    name = config_map_name(deployment)
    content = get_dict(dump.find(CONFIG_MAP, name, namespace), "data").get(CONFIG_KEY)
    if content is None:
        raise OSError(0, f"ConfigMap {namespace}/{name} has no {CONFIG_KEY}, or cannot be read")
    return str(content)


def config_map_name(deployment: Object) -> str:
    """Return the name of the mounted ConfigMap: a Helm release of another name has one of another name."""
    volumes = get_list(deployment, "spec", "template", "spec", "volumes")
    names = (
        get_dict(volume, "configMap").get("name")
        for volume in volumes
        if volume.get("name") == _CONFIG_VOLUME
    )
    return str(next(filter(None, names), MANAGED_BY))
