"""
Plugins of third parties: filters and scores beside ours.

Pure: `config.dispatch_plugins` finds and loads them. A plugin may fail or return anything, and must not stop
the dispatcher: a filter that fails refuses, a score that fails abstains.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.filters import Filter
from placement_ac.core.dispatch.scores import Score

Plugin = Callable[[Workload, Cluster], Any]
Plugins = Mapping[str, Plugin]
"""The name of a plugin → the plugin. Looking one up may raise PluginError."""

NO_PLUGINS: Final[Plugins] = MappingProxyType({})


class PluginError(ValueError):
    """The plugin cannot be loaded; the message says why."""


def as_filter(plugin: Plugin) -> Filter:
    """Return the plugin as a filter: whatever it returns but a reason or None is a reason, too."""

    def judge(job: Workload, cluster: Cluster) -> str | None:
        try:
            reason = plugin(job, cluster)
        except Exception as error:  # whatever a third party's code raises
            return f"could not be judged: {type(error).__name__}"
        if reason is None or (isinstance(reason, str) and reason):
            return reason
        return f"could not be judged: the filter returned {type(reason).__name__}, no reason"

    return judge


def as_score(plugin: Plugin) -> Score:
    """Return the plugin as a score: it abstains if it returns no number of 0 to 100."""

    def rate(job: Workload, cluster: Cluster) -> float | None:
        try:
            points = plugin(job, cluster)
        except Exception:  # whatever a third party's code raises
            return None
        return float(points) if isinstance(points, int | float) and 0 <= points <= 100 else None

    return rate
