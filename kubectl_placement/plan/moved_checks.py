"""
Find the jobs that Kueue sends again because the parameters of its check name another MultiKueueConfig.

Pure. Kueue looks for a running job in the list that its check names now. A job on a cluster that is not in
this list is evicted at once and sent again, while its first copy runs on: the controller cannot prevent that.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.placement_side import PlacementSide, placement_key
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG
from placement_ac.core.api.decode import kueue_object
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import joined


class MovedCheck(NamedTuple):
    """A check of Kueue that will name another MultiKueueConfig."""

    name: str
    before: str
    """The MultiKueueConfig that it names now."""
    after: str
    lost: frozenset[str]
    """The MultiKueueClusters of the list before that are not in the list after."""
    jobs: tuple[Workload, ...]
    """Those of the check that run or wait there."""

    @property
    def warning(self) -> str:
        """Which jobs will run twice, and how to prevent that; "": none."""
        running = [workload.label for workload in self.jobs if workload.cluster]
        if not running:
            return ""
        return (
            f"apply AdmissionCheck {self.name} when these Workloads have ended: {joined(running)}: Kueue"
            " sends them again at once, while their first copies run on, because MultiKueueConfig"
            f" {self.after} does not list their clusters"
        )


def moved_checks(before: HubView, after: HubView) -> Iterator[MovedCheck]:
    """Yield the checks of Kueue that name another MultiKueueConfig after a change, if that has a list."""
    known = {check.meta.name: check.config for check in before.checks}
    for check in after.checks:
        old, new = known.get(check.meta.name, ""), check.config
        config = before.snapshot(old).objects.config if old and new and old != new else None
        names = _list_of(after, new) if config else ()
        if config and names:
            lost = frozenset(config.listed).difference(names)
            jobs = [
                workload
                for workload in before.snapshot(old).workloads
                if workload.check_state(check.meta.name)
                and not lost.isdisjoint((workload.cluster, *(() if workload.cluster else workload.nominated)))
            ]
            yield MovedCheck(check.meta.name, old, new, lost, tuple(jobs))


def _list_of(view: HubView, name: str) -> tuple[str, ...]:
    """Return the list of a MultiKueueConfig once the controller has written it; (): there is none."""
    side = PlacementSide(view, placement_key(view, name))
    if side.snapshot and not side.foreign_list:
        return side.plan.config.clusters if side.plan.config else ()
    raw = view.dump.find(MULTIKUEUE_CONFIG, name)
    return kueue_object(raw).listed if raw else ()
