"""
The controller's Deployment on a hub, and the settings that it runs with.

Pure. A command that reads a hub must use the controller's settings, because names, namespaces and limits
depend on them. They are in its Deployment (arguments, PLACEMENT_AC_… variables) and its ConfigMap.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final

from placement_ac.config.load import PREFIX, LoadedSettings, load
from placement_ac.config.settings import BadSettings, Settings
from placement_ac.core.api.constants import MANAGED_BY
from placement_ac.inspection.hub.dump import Dump, Object, key_of
from placement_ac.inspection.hub.kinds import CONFIG_MAP, DEPLOYMENT
from placement_ac.scheduling.objects import listed, section, words

NAMESPACE: Final = "placement-ac-system"
"""The namespace in which config/ installs the controller."""
NAME_LABEL: Final = "app.kubernetes.io/name"
_CONFIG_KEY: Final = "config.yaml"
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
    """Return the Deployments of this controller."""
    return [
        one
        for one in dump.of(DEPLOYMENT)
        if section(one, "metadata", "labels").get(NAME_LABEL) == MANAGED_BY or _controller(one) is not None
    ]


def mounted_config_map(dump: Dump) -> str:
    """Return the name of the ConfigMap that the Deployment mounts; without one, that of config/."""
    return next(map(config_map_name, deployments(dump)), MANAGED_BY)


def find_settings(dump: Dump, given: Mapping[str, Any]) -> ControllerSettings:
    """Return the settings of the controller on the hub, or those of the settings file in `given`.

    `given`: settings of the command line by name; they take precedence. Raises BadSettings.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    found = None if "config" in asked else next(iter(deployments(dump)), None)
    problem = ""
    try:
        loaded = _load(dump, found, asked) if found else load(asked, {})
    except (BadSettings, OSError) as error:
        if found is None:
            raise
        loaded, problem = load(asked, {}), str(error)
    outside_pod = {name: Settings.model_fields[name].default for name in _POD_SETTINGS}
    loaded = replace(loaded, settings=loaded.settings.model_copy(update=outside_pod))
    return ControllerSettings(loaded, "/".join(key_of(found)) if found else "", problem)


def _load(dump: Dump, deployment: Object, asked: dict[str, Any]) -> LoadedSettings:
    return load(
        _arguments(deployment) | asked, _environment(deployment), lambda _: _settings_file(dump, deployment)
    )


def _controller(deployment: Object) -> Mapping[str, Any] | None:
    """Return the container that runs the controller."""
    containers = listed(deployment, "spec", "template", "spec", "containers")
    for container in containers:
        image = str(container.get("image", "")).partition("@")[0]
        if re.search(r"(^|/)placement-ac(:[^/]*)?$", image):
            return container
    return next((one for one in containers if one.get("name") == "controller"), None)


def _arguments(deployment: Object) -> dict[str, str]:
    arguments = words(_controller(deployment), "args")
    flags: dict[str, str] = {}
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if found := _FLAG.fullmatch(word):
            flags[found[1].replace("-", "_")] = following if found[2] is None else found[2]
    return {name: value for name, value in flags.items() if name in Settings.model_fields}


def _environment(deployment: Object) -> dict[str, str]:
    return {
        str(entry["name"]): str(entry["value"])
        for entry in listed(_controller(deployment), "env")
        if str(entry.get("name", "")).startswith(PREFIX) and "value" in entry
    }


def _settings_file(dump: Dump, deployment: Object) -> str:
    """Return the controller's settings file, from its ConfigMap. Raises OSError if it is missing."""
    namespace, _ = key_of(deployment)
    name = config_map_name(deployment)
    text = section(dump.find(CONFIG_MAP, name, namespace), "data").get(_CONFIG_KEY)
    if text is None:
        raise OSError(0, f"ConfigMap {namespace}/{name} has no {_CONFIG_KEY}, or cannot be read")
    return str(text)


def config_map_name(deployment: Object) -> str:
    """Return the name of the mounted ConfigMap: a Helm release of another name has one of another name."""
    volumes = listed(deployment, "spec", "template", "spec", "volumes")
    names = (section(one, "configMap").get("name") for one in volumes if one.get("name") == _CONFIG_VOLUME)
    return str(next(filter(None, names), MANAGED_BY))
