"""The first line of `status` and `explain`: who leads, or that no controller is running."""

from datetime import datetime

from rich.text import Text

from kubectl_placement.cli.output import age_text, safe_text
from kubectl_placement.hub.controller_state import ControllerState


def controller_line(one: ControllerState, now: datetime, *, renewed: bool = True) -> Text:
    """Return the line; `renewed`: of one that leads, with the time of its last renewal."""
    if one.running is None:
        return safe_text(f"Controller: unknown whether it is running: {one.problem}", "yellow")
    if not one.running:
        return safe_text(
            f"No controller is running: what follows is what it last wrote ({_last(one, now)})", "red"
        )
    if not one.lease:
        return safe_text(f"Controller: Deployment {one.deployment} is ready; it uses no Lease")
    since = f" since {one.since:%Y-%m-%dT%H:%M:%SZ}" if one.since else ""
    last = f" (renewed {_age(one.renewed, now)})" if renewed else ""
    return safe_text(f"Controller: {one.leader} leads{since}{last}")


def _last(one: ControllerState, now: datetime) -> str:
    """Return who has led last, and until when."""
    if one.renewed is None:
        return f"there is no Lease {one.lease}" if not one.leader else f"Lease {one.lease} has no renewTime"
    what = f"{one.leader} renewed it last" if one.leader else "it was released"
    return f"Lease {one.lease}: {what} {_age(one.renewed, now)}"


def _age(when: datetime | None, now: datetime) -> str:
    return f"{age_text((now - when).total_seconds())} ago" if when else "at an unknown time"
