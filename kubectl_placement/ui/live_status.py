"""
The state of all checks while a hub is followed: the status of each, and its last hour.

Pure, except that it remembers. After a change it computes only the checks that the change concerns.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.live_view import Affected, LiveView
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import CheckStatus
from kubectl_placement.timeline.event_history import list_events
from kubectl_placement.timeline.model import Timeline
from kubectl_placement.timeline.state import current_state
from kubectl_placement.ui.history import History
from kubectl_placement.ui.summary import Slots, slots
from placement_ac.core.api.constants import EVENT

AGE_MAX: Final = timedelta(seconds=60)
"""A status that is older is computed again: credentials and tolerations expire."""
BATCH: Final = 10
"""Statuses that are computed again at a time, so that a change need not wait for all of them."""


@dataclass(slots=True)
class LiveStatus:
    """The checks of a hub. Not thread-safe: one thread owns it."""

    statuses: dict[str, CheckStatus] = field(default_factory=dict)
    _live: LiveView = field(default_factory=LiveView)
    _histories: dict[str, History] = field(default_factory=dict)
    _computed_at: dict[str, datetime] = field(default_factory=dict)

    @property
    def view(self) -> HubView:
        """The hub as it was read last. Raises LookupError before the first `update`."""
        if self._live.view is None:
            raise LookupError("the hub has not been read")
        return self._live.view

    def update(self, reading: HubView, at: datetime | None = None) -> Collection[str]:
        """Take in a reading of the hub; return the checks whose status was computed again.

        `at`: the time of its objects, if it is an old one.
        """
        view, affected = self._live.update(reading)
        ours = {check.meta.name: check.placement for check in view.our_checks}
        for name in self.statuses.keys() - ours.keys():
            del self.statuses[name], self._computed_at[name]
            self._histories.pop(name, None)
        concerned = [name for name, placement in ours.items() if self._concerns(affected, name, placement)]
        self._compute(view, concerned, at)
        return concerned

    def refresh(self, now: datetime) -> Collection[str]:
        """Compute the oldest statuses again, if they are too old; return their names."""
        old = [name for name, at in self._computed_at.items() if now - at >= AGE_MAX][:BATCH]
        if old:
            self._compute(self._live.renew(now), old)
        return old

    def _compute(self, view: HubView, names: Collection[str], at: datetime | None = None) -> None:
        for check_status in check_statuses(view, names) if names else ():
            self.statuses[check_status.name] = check_status
            self._computed_at[check_status.name] = view.now
            leaving = {row.name: row.draining_since for row in check_status.clusters if row.draining_since}
            history = self._histories.setdefault(check_status.name, History())
            state = current_state(view, check_status, all_scores=False)
            history.add(replace(state, time=at or view.now), leaving)

    def _concerns(self, affected: Affected, name: str, placement: str) -> bool:
        known = self.statuses.get(name)
        return (
            known is None
            or affected.everything
            or affected.has_key_of(name, placement)
            or not affected.checks.isdisjoint((name, *known.users))
            or (bool(affected.clusters) and not affected.clusters.isdisjoint(_clusters_in(known)))
        )

    def slots(self, check: str) -> Slots:
        """Return the slots of a check. Raises KeyError."""
        return slots(self.statuses[check], self.view.facts.clusters_max)

    def timeline(self, check: str, now: datetime) -> Timeline:
        """Return the last hour of a check. Raises KeyError."""
        events = list_events(check, self.view.dump.of(EVENT))
        return self._histories[check].timeline(check, events, now)

    def changed_at(self, check: str) -> datetime:
        """Return when the list, the scores or the jobs of a check changed last. Raises KeyError."""
        return self._histories[check].states[-1].time

    def exact_since(self, check: str) -> datetime:
        """Return from when on the last hour is exact. Raises KeyError."""
        return self._histories[check].states[0].time


def _clusters_in(check_status: CheckStatus) -> Iterator[str]:
    """Yield the managed clusters and MultiKueueClusters that a status names."""
    for row in check_status.clusters:
        yield from (row.name, row.cluster_object)
    for job in check_status.jobs:
        yield from (job.cluster, *job.nominated)
