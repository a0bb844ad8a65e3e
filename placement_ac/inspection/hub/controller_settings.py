"""
The controller's Deployment on a hub, and the settings that it runs with.

Pure. A command that reads a hub must use the controller's settings, because names, namespaces and limits
depend on them. They are in its Deployment (arguments, PLACEMENT_AC_… variables) and its ConfigMap.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, Final

from placement_ac.config.load import PREFIX, LoadedSettings, load
from placement_ac.config.settings import BadSettings, Settings
from placement_ac.core.api.constants import LABEL_MANAGED_BY, MANAGED_BY
from placement_ac.core.dispatch.plugins import AssumedPlugins
from placement_ac.inspection.hub.dump import Dump, Object, key_of
from placement_ac.inspection.hub.kinds import CONFIG_MAP, DEPLOYMENT
from placement_ac.scheduling.objects import listed, section, words

NAMESPACE: Final = "placement-ac-system"
"""The namespace in which config/ installs the controller."""
NAME_LABEL: Final = "app.kubernetes.io/name"
_PART_LABEL: Final = "app.kubernetes.io/part-of"
"""The chart sets it whatever `nameOverride` says."""
_RELEASE_LABEL: Final = "app.kubernetes.io/instance"
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
    """The settings to use.

    `deployment`: the controller's Deployment as namespace/name, "" for none. `problem`: why its settings are
    unknown.
    """

    loaded: LoadedSettings
    deployment: str = ""
    problem: str = ""


def deployments(dump: Dump) -> list[Object]:
    """Return the Deployments of this controller: by our label, or by the name of the image.

    Not by the container's name, which others use too (ingress-nginx): `doctor` prints commands that change
    these Deployments.
    """
    return [
        one for one in dump.of(DEPLOYMENT) if has_our_label(one) or any(map(_has_our_image, _containers(one)))
    ]


def mounted_config_map(dump: Dump, namespace: str = NAMESPACE) -> str:
    """Return the name of the ConfigMap that the Deployment mounts; without one, that of config/."""
    return next(map(config_map_name, _nearest(dump, namespace)), MANAGED_BY)


def _nearest(dump: Dump, namespace: str) -> list[Object]:
    """Return the controller's Deployments, those in its namespace first."""
    return sorted(deployments(dump), key=lambda one: key_of(one)[0] != namespace)


def find_settings(dump: Dump, given: Mapping[str, Any], namespace: str = NAMESPACE) -> ControllerSettings:
    """Return the settings of the controller on the hub, or those of the settings file in `given`.

    `given`: settings of the command line by name; they take precedence. `namespace`: that of the controller;
    only if it has no Deployment of ours does one elsewhere count. Raises BadSettings.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    found = None if "config" in asked else next(iter(_nearest(dump, namespace)), None)
    problem = ""
    try:
        loaded = _load(dump, found, asked) if found else load(asked, {}, plugins=AssumedPlugins())
    except (BadSettings, OSError) as error:
        if found is None:
            raise
        loaded, problem = load(asked, {}, plugins=AssumedPlugins()), str(error)
    outside_pod = {name: Settings.model_fields[name].default for name in _POD_SETTINGS}
    loaded = replace(loaded, settings=loaded.settings.model_copy(update=outside_pod))
    return ControllerSettings(loaded, "/".join(key_of(found)) if found else "", problem)


def _load(dump: Dump, deployment: Object, asked: dict[str, Any]) -> LoadedSettings:
    return load(
        _arguments(deployment) | asked,
        _environment(deployment),
        lambda _: _settings_file(dump, deployment),
        AssumedPlugins(),
    )


def installed_by_helm(obj: Object) -> str:
    """Return the Helm release that an object belongs to; "" if it was not installed by Helm."""
    labels = section(obj, "metadata", "labels")
    return str(labels.get(_RELEASE_LABEL, "")) if labels.get(LABEL_MANAGED_BY) == "Helm" else ""


def has_our_label(obj: Object) -> bool:
    labels = section(obj, "metadata", "labels")
    return MANAGED_BY in (labels.get(NAME_LABEL), labels.get(_PART_LABEL))


def _has_our_image(container: Mapping[str, Any]) -> bool:
    image = str(container.get("image", "")).partition("@")[0]
    return _IMAGE.search(image) is not None


def _containers(deployment: Object) -> Sequence[Mapping[str, Any]]:
    return listed(deployment, "spec", "template", "spec", "containers")


def controller_container(deployment: Object) -> Mapping[str, Any] | None:
    """Return the container that runs the controller, in a Deployment of ours."""
    containers = _containers(deployment)
    ours = (one for one in containers if _has_our_image(one))
    named = (one for one in containers if one.get("name") == _CONTAINER)
    return next(chain(ours, named), None)


def _arguments(deployment: Object) -> dict[str, str]:
    arguments = words(controller_container(deployment), "args")
    flags: dict[str, str] = {}
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if found := _FLAG.fullmatch(word):
            flags[found[1].replace("-", "_")] = following if found[2] is None else found[2]
    return {name: value for name, value in flags.items() if name in Settings.model_fields}


def _environment(deployment: Object) -> dict[str, str]:
    return {
        str(entry["name"]): str(entry["value"])
        for entry in listed(controller_container(deployment), "env")
        if str(entry.get("name", "")).startswith(PREFIX) and "value" in entry
    }


def _settings_file(dump: Dump, deployment: Object) -> str:
    """Return the controller's settings file, from its ConfigMap. Raises OSError if it is missing."""
    namespace, _ = key_of(deployment)
    name = config_map_name(deployment)
    text = section(dump.find(CONFIG_MAP, name, namespace), "data").get(CONFIG_KEY)
    if text is None:
        raise OSError(0, f"ConfigMap {namespace}/{name} has no {CONFIG_KEY}, or cannot be read")
    return str(text)


def config_map_name(deployment: Object) -> str:
    """Return the name of the mounted ConfigMap: a Helm release of another name has one of another name."""
    volumes = listed(deployment, "spec", "template", "spec", "volumes")
    names = (section(one, "configMap").get("name") for one in volumes if one.get("name") == _CONFIG_VOLUME)
    return str(next(filter(None, names), MANAGED_BY))
