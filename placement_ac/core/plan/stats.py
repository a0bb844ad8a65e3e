"""
How things stand with one Placement and its checks, in numbers: what the metrics tell of it.

Pure. Taken from what a decision was made of, and from what it came to.
"""

from dataclasses import dataclass

from placement_ac.core.inputs.state import Plan, Snapshot


@dataclass(frozen=True, slots=True)
class PlacementStats:
    """A Placement as it was looked at last; "" for a check without one."""

    placement: str
    checks: tuple[tuple[str, bool, str], ...] = ()
    """Name of each check of ours, whether it is Active, and the reason that it has."""
    selected: tuple[str, ...] = ()
    """The clusters that OCM has decided on, best first."""
    unusable: int = 0
    listed: int = 0
    draining: tuple[float, ...] = ()
    """Since when each cluster drains that does, in seconds since 1970."""


def placement_stats(seen: Snapshot, wanted: Plan) -> PlacementStats:
    """Return how it stands with the Placement in `seen`, for which `wanted` was planned."""
    config = seen.objects.config if seen.objects.config and seen.objects.config.ours else None
    listed = config.listed if config else ()
    since = config.draining if config else {}
    return PlacementStats(
        placement=seen.name,
        checks=tuple(
            (check.meta.name, check.active.status == "True", check.active.reason)
            if check.active
            else (check.meta.name, False, "")
            for check in seen.checks.ours
        ),
        selected=wanted.selected,
        unusable=len(wanted.unusable),
        listed=len(listed),
        draining=tuple(when.timestamp() for name, when in since.items() if name in listed),
    )
