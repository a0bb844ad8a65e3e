"""
Plugins: filters and scores, the built-in ones and those of third parties.

Pure: `config.dispatch_plugins` finds and loads those of third parties. A plugin may raise or return anything,
and must not stop the dispatcher: then a filter refuses and a score abstains, and the problem is reported.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.errors import error_place
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster

Kind = Literal["filter", "score", ""]
"""Whether a function returns reasons or points; "": it is not known."""


class PluginError(ValueError):
    """The plugin cannot be loaded or used; the message says why."""


def _nowhere(_: str) -> None:
    """Report a problem to nobody."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The function of a filter or score; `report` gets each problem with it."""

    function: Callable[[Workload, Cluster], object]
    report: Callable[[str], None] = _nowhere
    kind: Kind = ""

    def refuse(self, job: Workload, cluster: Cluster) -> str | None:
        """Return its reason to refuse the cluster; None: it does not. Use it as a filter."""
        reason, problem = self.ask(job, cluster)
        if not problem and (reason is None or (isinstance(reason, str) and reason)):
            return reason
        return f"could not be judged: {problem or self._wrong(reason, 'reason')}"

    def rate(self, job: Workload, cluster: Cluster) -> float | None:
        """Return its points for the cluster; None: it abstains. Use it as a score."""
        points, _ = self.ask(job, cluster)
        if points is None:
            return None
        if isinstance(points, int | float) and not isinstance(points, bool) and 0 <= points <= 100:
            return float(points)
        self._wrong(points, "number of 0 to 100")
        return None

    def ask(self, job: Workload, cluster: Cluster) -> tuple[object, str]:
        """Return the function's answer, or the type of its error."""
        try:
            return self.function(job, cluster), ""
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # code of third parties may raise SystemExit as well
            self.report(error_place(error))
            return None, type(error).__name__

    def _wrong(self, answer: object, wanted: str) -> str:
        problem = f"it returned {type(answer).__name__}, no {wanted}"
        self.report(problem)
        return problem


def kind_of(function: Callable[[Workload, Cluster], object]) -> Kind:
    """Return what a function is, by its annotation, or else by its answer about an example."""
    try:
        annotation = inspect.signature(function).return_annotation
        words = set(re.findall(r"\w+", str(annotation)))
    except (TypeError, ValueError):  # such as a function in C
        words = set()
    is_score, is_filter = bool(words & {"int", "float"}), "str" in words
    if is_score != is_filter:
        return "score" if is_score else "filter"
    answer, _ = Plugin(function).ask(workload_with_job({"metadata": {"name": "example"}}), Cluster("c", "c"))
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return "score"
    return "filter" if isinstance(answer, str) and answer else ""


Plugins = Mapping[str, Plugin]
"""The name of a plugin → the plugin. Looking one up may raise PluginError."""

NO_PLUGINS: Final[Plugins] = MappingProxyType({})


class AssumedPlugins(Mapping[str, Plugin]):
    """Plugins that may be installed elsewhere: every name is taken for one that has no say."""

    def __getitem__(self, name: str) -> Plugin:
        return Plugin(lambda _job, _cluster: None)

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
