"""
Plugins of the dispatcher that third parties install: entry points of the group `placement_ac.dispatch`.

One is imported when a profile names it, not before.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import structlog

from placement_ac.core.api.errors import error_place
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.plugins import Plugin, PluginError

GROUP: Final = "placement_ac.dispatch"

log = structlog.get_logger(__name__)


class InstalledPlugins(Mapping[str, Plugin]):
    """The plugins by name. Looking one up imports it, and raises PluginError if it cannot be imported."""

    def __init__(self) -> None:
        self._entries = {one.name: one for one in entry_points(group=GROUP)}
        self._loaded: dict[str, Plugin] = {}

    def __getitem__(self, name: str) -> Plugin:
        if name not in self._loaded:
            self._loaded[name] = _logged(name, _load(self._entries[name]))
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@cache
def installed_plugins() -> InstalledPlugins:
    """Return the plugins that were installed when it was called first."""
    return InstalledPlugins()


def _load(entry: EntryPoint) -> Plugin:
    try:
        found = entry.load()
    except Exception as error:  # whatever a third party's module raises when it is imported
        raise PluginError(
            f"the plugin {entry.name} ({entry.value}) cannot be imported: {type(error).__name__}"
        ) from None
    if not callable(found):
        raise PluginError(f"the plugin {entry.name} ({entry.value}) is no function")
    return found  # type: ignore[no-any-return]


def _logged(name: str, plugin: Plugin) -> Plugin:
    """Return the plugin so that its first error is logged, with its place."""
    failed = False

    def call(job: Workload, cluster: Cluster) -> object:
        nonlocal failed
        try:
            return plugin(job, cluster)
        except Exception as error:
            if not failed:
                failed = True
                log.error("a plugin of the dispatcher failed", plugin=name, error=error_place(error))  # noqa: TRY400  it would quote
            raise

    return call
