"""
Kueue's feature gates: in the arguments of its manager, or in its configuration. Pure.

Kueue refuses to start with both (cmd/kueue/main.go).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str, get_strs
from placement_ac.core.safe_yaml import NotYaml, load_yaml

KUEUE_CONFIG_MAP: Final = "kueue-manager-config"
"""The ConfigMap with Kueue's configuration, unless its Deployment mounts another one."""
KUEUE_CONFIG_KEY: Final = "controller_manager_config.yaml"
KUEUE_CONTAINER: Final = "manager"
GATES_FLAG: Final = "--feature-gates"
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
"""Go: strconv.ParseBool."""

Gates = Mapping[str, bool]
"""Gate → whether it is on, of those that are set."""


def gates_in_arguments(arguments: Sequence[str]) -> dict[str, bool]:
    """Return the gates that a manager's arguments set."""
    by_name: dict[str, bool] = {}
    for place, word in enumerate(arguments):
        flag, has_value, value = word.partition("=")
        if flag == GATES_FLAG:
            pairs = value if has_value else next(iter(arguments[place + 1 : place + 2]), "")
            gates = (pair.partition("=") for pair in pairs.split(",") if pair)
            by_name |= {gate.strip(): on.strip() in _TRUE for gate, _, on in gates}
    return by_name


def gates_of_deployment(deployment: Obj) -> dict[str, bool]:
    """Return the gates that the arguments of Kueue's Deployment set."""
    containers = get_list(deployment, "spec", "template", "spec", "containers")
    managers = (container for container in containers if get_str(container, "name") == KUEUE_CONTAINER)
    return gates_in_arguments(get_strs(next(managers, {}), "args"))


def gates_in_config(config: object) -> dict[str, bool]:
    """Return the gates that Kueue's configuration sets; `config` is the file's content, parsed."""
    return {str(gate): on is True for gate, on in get_dict(config, "featureGates").items()}


def parsed_config(config_map: Obj) -> Obj | str:
    """Return Kueue's configuration in its ConfigMap, or what is wrong with it."""
    text = get_str(config_map, "data", KUEUE_CONFIG_KEY)
    try:
        config = load_yaml(text)
    except NotYaml:
        return f"its {KUEUE_CONFIG_KEY} is not YAML"
    return config if isinstance(config, Mapping) else f"it has no {KUEUE_CONFIG_KEY}"


def gates_of_config_map(config_map: Obj) -> dict[str, bool] | str:
    """Return the gates that Kueue's ConfigMap sets, or what is wrong with it."""
    config = parsed_config(config_map)
    if isinstance(config, str):
        return config
    gates = config.get("featureGates") or {}
    if not isinstance(gates, Mapping) or any(not isinstance(on, bool) for on in gates.values()):
        return "its featureGates are not names with true or false"
    return gates_in_config(config)


def parse_gate(text: str) -> tuple[str, bool] | None:
    """Return the gate and whether it is on, of Name=true or Name=false; None for anything else."""
    name, _, on = text.partition("=")
    if not name.isalnum() or on not in (*_TRUE, *_FALSE):
        return None
    return name, on in _TRUE
