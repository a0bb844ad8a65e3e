"""
Plugins of the dispatcher that third parties install: entry points of the group `placement_ac.dispatch`.

One is imported when a profile names it, not before. Its first problem is logged.
"""

from collections.abc import Iterator, Mapping
from functools import cache, cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import structlog

from placement_ac.core.api.errors import error_place
from placement_ac.core.api.text import joined
from placement_ac.core.dispatch.plugins import Plugin, PluginError, kind_of

GROUP: Final = "placement_ac.dispatch"

log = structlog.get_logger(__name__)


class PluginProblems:
    """Logs the first problem of each plugin."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def __call__(self, plugin: str, problem: str) -> None:
        if plugin not in self._reported:
            self._reported.add(plugin)
            log.error("a plugin of the dispatcher failed", plugin=plugin, error=problem)


class InstalledPlugins(Mapping[str, Plugin]):
    """The plugins by name. Looking one up imports it once, and raises PluginError if it cannot be used."""

    def __init__(self) -> None:
        self._loaded: dict[str, Plugin | PluginError] = {}

    @cached_property
    def _entries(self) -> dict[str, list[EntryPoint]]:
        """Name → its entry points; looking for them takes a while, which most profiles do not need."""
        entries: dict[str, list[EntryPoint]] = {}
        for entry_point in entry_points(group=GROUP):
            entries.setdefault(entry_point.name, []).append(entry_point)
        return entries

    def __getitem__(self, name: str) -> Plugin:
        if name not in self._loaded:
            self._loaded[name] = _loaded(name, self._entries[name])
        plugin = self._loaded[name]
        if isinstance(plugin, PluginError):
            raise plugin
        return plugin

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@cache
def installed_plugins() -> InstalledPlugins:
    """Return the plugins that are installed when one is looked for first."""
    return InstalledPlugins()


def _loaded(name: str, entries: list[EntryPoint]) -> Plugin | PluginError:
    """Return the plugin, or why it cannot be used."""
    report = partial(PluginProblems(), name)
    if len(entries) > 1:
        return PluginError(
            f"several plugins have the name {name}: {joined(entry.value for entry in entries)}"
        )
    [entry] = entries
    try:
        function = entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a third party's module may raise SystemExit as well
        report(error_place(error))
        return PluginError(f"the plugin {name} ({entry.value}) cannot be imported: {type(error).__name__}")
    return (
        Plugin(function, report, kind_of(function))
        if callable(function)
        else PluginError(f"the plugin {name} ({entry.value}) is no function")
    )
