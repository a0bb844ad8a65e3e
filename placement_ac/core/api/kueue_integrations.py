"""
The integrations that Kueue's configuration enables: the kinds of jobs that it starts. Pure.

`multiKueue.externalFrameworks` is another thing: the kinds that the hub sends besides.
"""

from collections.abc import Mapping
from typing import Final, TypeGuard

from placement_ac.core.api.fields import Obj
from placement_ac.core.api.kueue_gates import parsed_config

DEFAULT_FRAMEWORKS: Final = ("batch/job",)
"""Kueue's default (apis/config/v1beta2, defaults.go); its shipped configuration names more."""
_RUN_AS_PODS: Final = ("deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset")
"""They enable `pod` (ImplicitlyEnabledFrameworkNames; until 0.15, it had to be named as well)."""


def integrations_of_config_map(config_map: Obj) -> frozenset[str] | None:
    """Return the names in Kueue's `integrations.frameworks` and `integrations.externalFrameworks`.

    Without a name in `frameworks`: Kueue's default. None: Kueue would not start with it.
    """
    config = parsed_config(config_map)
    if isinstance(config, str) or config.get("kind") != "Configuration":
        return None
    integrations = _given(config, "integrations", {})
    if not isinstance(integrations, Mapping):
        return None
    frameworks, externals = (_given(integrations, key, []) for key in ("frameworks", "externalFrameworks"))
    if not (_is_texts(frameworks) and _is_texts(externals)):
        return None
    enabled = {*(frameworks or DEFAULT_FRAMEWORKS), *externals}
    return frozenset(enabled if enabled.isdisjoint(_RUN_AS_PODS) else {*enabled, "pod"})


def _given(parent: Mapping[str, object], key: str, default: object) -> object:
    value = parent.get(key)
    return default if value is None else value


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
