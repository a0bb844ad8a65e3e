"""
The origin of a hub's Kueue: the label value of all that its MultiKueue creates on workers. Pure.

Each hub's Kueue deletes, once a minute, the copies of its origin whose Workload it does not have, with their
jobs (multikueuecluster.go, runGC): so hubs that share a worker need different ones.
"""

from typing import Final

from placement_ac.core.api.fields import Obj, get_str
from placement_ac.core.api.kueue_gates import parsed_config

DEFAULT_ORIGIN: Final = "multikueue"
"""Kueue: DefaultMultiKueueOrigin (apis/config/v1beta2/defaults.go)."""


def origin_in_config(config: Obj) -> str:
    """Return the origin that Kueue's configuration sets, or Kueue's default."""
    return get_str(config, "multiKueue", "origin") or DEFAULT_ORIGIN


def origin_of_config_map(config_map: Obj) -> str:
    """Return the origin that Kueue's ConfigMap sets, or Kueue's default; "" if it cannot be read."""
    config = parsed_config(config_map)
    return "" if isinstance(config, str) else origin_in_config(config)
