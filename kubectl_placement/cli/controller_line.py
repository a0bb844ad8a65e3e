"""The first line of `status` and `explain`: who leads, or that no controller is running."""

from datetime import datetime

from rich.text import Text

from kubectl_placement.cli.output import age_text, safe_text
from kubectl_placement.hub.controller_state import ControllerState, controller_state
from kubectl_placement.hub.hub_view import HubView
from placement_ac.core.api.text import count_text


def controller_line(controller: ControllerState, now: datetime, *, renewed: bool = True) -> Text:
    """Return the line; `renewed`: of one that leads, with the time of its last renewal."""
    if controller.running is None:
        return safe_text(f"Controller: unknown whether it is running: {controller.problem}", "yellow")
    if not controller.running:
        return safe_text(
            f"No controller is running: what follows is what it last wrote ({_last(controller, now)})", "red"
        )
    if not controller.lease:
        return safe_text(f"Controller: Deployment {controller.deployment} is ready; it uses no Lease")
    since = f" since {controller.since:%Y-%m-%dT%H:%M:%SZ}" if controller.since else ""
    if controller.silent:
        return safe_text(
            f"Controller: {controller.leader} leads{since} but has not reconciled yet: what follows is older",
            "yellow",
        )
    last = f" (renewed {_age(controller.renewed, now)})" if renewed else ""
    return safe_text(f"Controller: {controller.leader} leads{since}{last}{_before(controller)}")


def _before(controller: ControllerState) -> str:
    """Return who led before, and how often the leader has changed; "": it has not."""
    if not controller.transitions:
        return ""
    after = f", after {controller.led_before}" if controller.led_before else ""
    return f"{after}; {count_text(controller.transitions, 'change')} of leader"


def controller_problem(view: HubView) -> str:
    """Return the line if it must come before all else: nobody answers, or not yet; "": all is well."""
    controller = controller_state(view)
    is_old = controller.running is False or controller.silent
    return controller_line(controller, view.now).plain if is_old else ""


def _last(controller: ControllerState, now: datetime) -> str:
    """Return who has led last, and until when."""
    if controller.renewed is None:
        return (
            f"there is no Lease {controller.lease}"
            if not controller.leader
            else f"Lease {controller.lease} has no renewTime"
        )
    what = f"{controller.leader} renewed it last" if controller.leader else "it was released"
    return f"Lease {controller.lease}: {what} {_age(controller.renewed, now)}"


def _age(when: datetime | None, now: datetime) -> str:
    return f"{age_text((now - when).total_seconds())} ago" if when else "at an unknown time"
