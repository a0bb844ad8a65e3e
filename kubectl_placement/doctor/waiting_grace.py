"""A rule for `--waiting-grace`: does it leave Kueue the time that it takes to place a job? Pure."""

from collections.abc import Collection, Iterator
from math import ceil
from typing import Final

from kubectl_placement.doctor.finding import Finding, ok, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from placement_ac.config.policy import placement_policy
from placement_ac.core.api.constants import ADMISSION_CHECK, IMMEDIATE, READY, WORKLOAD
from placement_ac.core.api.decode import workload
from placement_ac.core.api.objects import Workload

WORKLOADS_MIN: Final = 5
"""Fewer Workloads say nothing about the slowest tenth."""
GRACE_FACTOR: Final = 3
"""The grace should be so many times the p90."""


@hub_rule(
    "waiting-grace",
    "`--waiting-grace` is at least three times the p90 of the time that Kueue takes from our `Ready` for a"
    " Workload until a worker has admitted it, over the Workloads of the hub (at least 5)",
    "kubectl set env -n CONTROLLER deployment/NAME PLACEMENT_AC_WAITING_GRACE=SECONDS",
    ADMISSION_CHECK,
    # A dump without any Workload may be complete.
    unknown=lambda setup: setup.unknown(WORKLOAD) if setup.dump.live else (),
)
def waiting_grace(setup: HubSetup) -> Iterator[Finding]:
    policy = placement_policy(setup.settings)
    if policy.dispatcher or policy.removal == IMMEDIATE:
        yield ok("--waiting-grace is not used, because of --dispatcher or --removal-policy Immediate")
        return
    times = sorted(_placing_times(setup))
    if len(times) < WORKLOADS_MIN:
        known = f"the times of {len(times)} of {WORKLOADS_MIN} Workloads are known"
        yield ok(f"unknown how long Kueue takes to place a job: {known}")
        return
    p90 = times[ceil(0.9 * len(times)) - 1]
    figure = f"{p90:g} s (p90 of {len(times)} Workloads)"
    if p90 * GRACE_FACTOR > policy.waiting_grace:
        wanted = ceil(p90 * GRACE_FACTOR)
        yield warn(
            f"set --waiting-grace to {wanted} s or more: Kueue takes {figure} from our Ready until a worker "
            f"has admitted a job, and the gate sends it back after {policy.waiting_grace:g} s",
            setup.set_setting("waiting_grace", f"{wanted}s"),
        )
    else:
        yield ok(f"Kueue takes {figure} to place a job, of {policy.waiting_grace:g} s")


def _placing_times(setup: HubSetup) -> Iterator[float]:
    """Yield the seconds from our Ready to Kueue's for each Workload that has both, finished ones too.

    The API has whole seconds. Where ours is later, it was written again after the placement.
    """
    ours = {check.meta.name for check in setup.view.our_checks}
    kueues = {check.meta.name for check in setup.view.checks if check.multikueue}
    for job in map(workload, setup.dump.of(WORKLOAD)):
        since, until = _ready_since(job, ours), _ready_since(job, kueues)
        if since is not None and until is not None and until >= since:
            yield until - since


def _ready_since(job: Workload, checks: Collection[str]) -> float | None:
    """Return when the last of these checks became Ready, in seconds since 1970."""
    states = [state for state in job.check_states if state.check in checks]
    times = [state.since.timestamp() for state in states if state.state == READY and state.since]
    return max(times) if times and len(times) == len(states) else None


RULES: Final = (waiting_grace,)
