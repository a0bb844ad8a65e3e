"""
Who leads, since when, or that no controller is running: from the Lease and the Deployment on a hub.

Pure.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kubectl_placement.hub.controller_settings import deployments
from kubectl_placement.hub.hub_view import HubView
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import ANNOTATION_LED_BEFORE, ANNOTATION_RECONCILED, LEASE
from placement_ac.core.api.fields import Key, get_int, get_str, get_time, key_of

SKEW: Final = timedelta(seconds=60)
"""Tolerated difference between the clocks of two machines."""


@dataclass(frozen=True, slots=True)
class ControllerState:
    """The controller of a hub."""

    running: bool | None
    """Whether one is running; in a dump: whether one was. None: unknown."""
    leader: str
    """The holder of the Lease, or the last one; "": nobody holds it, or there is no Lease."""
    since: datetime | None
    """When the leader acquired the Lease."""
    renewed: datetime | None
    """When it last renewed the Lease."""
    lease: str
    """The Lease as namespace/name; "": the controller uses none."""
    deployment: str
    """Its Deployment with ready Pods, as namespace/name; "": there is none, or it is unknown."""
    problem: str = ""
    """Why it is unknown whether it runs."""
    silent: bool = False
    """Whether the leader has not reconciled since it leads, by its Lease, although it had the time to."""
    led_before: str = ""
    """Who led before; "": it is not known."""
    transitions: int = 0
    """How often another has become the leader, also by a restart."""


def lease_key(settings: Settings) -> Key:
    """Return the namespace and the name of the Lease of a controller with these settings."""
    namespace = settings.leader_elect_resource_namespace or settings.kueue_namespace
    return namespace, settings.leader_elect_resource_name


def controller_state(view: HubView) -> ControllerState:
    """Return who leads; without leader election, whether the Deployment has ready Pods."""
    ready = next((obj for obj in deployments(view.dump) if get_int(obj, "status", "readyReplicas")), None)
    deployment = "/".join(key_of(ready)) if ready else ""
    if not view.settings.leader_elect:
        problem = "" if ready else "it uses no Lease, and no Deployment of it is ready"
        return ControllerState(True if ready else None, "", None, None, "", deployment, problem)
    key = lease_key(view.settings)
    lease = view.dump.by_key(LEASE).get(key)
    problem = "" if lease else view.dump.why_not_read(LEASE)
    since, renewed = get_time(lease, "spec", "acquireTime"), get_time(lease, "spec", "renewTime")
    leader = get_str(lease, "spec", "holderIdentity")
    valid = timedelta(seconds=get_int(lease, "spec", "leaseDurationSeconds") or 0) + SKEW
    is_current = not view.dump.live or (renewed is not None and view.now - renewed < valid)
    running = None if problem else bool(leader) and is_current
    is_settled = since is not None and view.now - since > valid  # the mark comes with the next renewal
    mark = get_str(lease, "metadata", "annotations", ANNOTATION_RECONCILED)
    silent = bool(running) and is_settled and mark == "false"
    before = get_str(lease, "metadata", "annotations", ANNOTATION_LED_BEFORE)
    transitions = get_int(lease, "spec", "leaseTransitions") or 0
    return ControllerState(
        running, leader, since, renewed, "/".join(key), deployment, problem, silent, before, transitions
    )
