"""OCM's work agents on the virtual clock: `work_rules` say what they do, here is when."""

from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Final

from placement_ac.core.api.constants import MANIFEST_WORK, SETUP_NAME, Kind
from placement_lab.standins.work_rules import WorkRules
from tests.support.builders import Raw
from tests.support.virtual.hub import VirtualHub

HEARS_SECONDS: Final = (0.05, 1.0)
"""From a change of a ManifestWork to the agent's acting."""
POLL_SECONDS: Final = (0.5, 19.0)
"""From a change on the worker to its report; OCM's agent reads every 10 to 19 seconds."""


class VirtualAgents:
    """The agents of these clusters, which begin bare."""

    def __init__(self, hub: VirtualHub, clusters: Sequence[str]) -> None:
        self._hub, self._kueue = hub, hub.kueue
        self._rules = WorkRules(self, lambda: self._kueue.now)
        self._away: dict[str, set[str]] = {cluster: set() for cluster in clusters}
        self._back = dict.fromkeys(clusters, 0.0)
        """Cluster → when its agent came back."""
        self._due: dict[str, float] = {}
        hub.listeners.append(self._on_hub)
        self._kueue.on_use.append(lambda worker: self._soon(worker, POLL_SECONDS))

    def is_away(self, cluster: str) -> bool:
        return bool(self._away[cluster])

    def was_away(self, cluster: str, seconds: float) -> bool:
        """Whether the agent is away, or was so many seconds ago."""
        return self.is_away(cluster) or self._kueue.now - self._back[cluster] < seconds

    def pause(self, cluster: str, why: str) -> None:
        """Stop acting for a cluster, until every reason is over."""
        self._away[cluster].add(why)

    def resume(self, cluster: str, why: str) -> None:
        if why in self._away[cluster]:
            self._away[cluster].discard(why)
            self._back[cluster] = self._kueue.now
        self._soon(cluster, HEARS_SECONDS)

    def _on_hub(self, _: str, kind: Kind, raw: Raw) -> None:
        if kind == MANIFEST_WORK:
            self._soon(raw["metadata"]["namespace"], HEARS_SECONDS)

    def _soon(self, cluster: str, seconds: tuple[float, float]) -> None:
        """Act within these seconds, or when it was going to, if that is earlier."""
        due = self._kueue.now + self._kueue.random.uniform(*seconds)
        if due < self._due.get(cluster, float("inf")):
            self._due[cluster] = due
            self._kueue.later(due - self._kueue.now, partial(self._act, cluster, due))

    def _act(self, cluster: str, due: float) -> None:
        if self._due.get(cluster) != due:
            return
        del self._due[cluster]
        work = self._hub.objects.get((MANIFEST_WORK, cluster, SETUP_NAME))
        worker = self._kueue.workers[cluster].bare
        if work and worker and not self.is_away(cluster):
            _at_once(self._rules.reconcile(worker, work))

    # -- what the rules ask of the hub

    async def patch(self, _: Kind, item: Raw, patch: Raw) -> Raw:
        return self._hub.update(item, **patch)

    async def replace_status(self, _: Kind, item: Raw, status: Raw) -> Raw:
        return self._hub.update(item, status=status)


def _at_once(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that does not wait."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")
