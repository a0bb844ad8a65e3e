"""
How the nominations to a cluster that leaves are withdrawn (our dispatcher), so that it starts no more jobs.

Pure. Kueue records a remote admission about a second after it happens, and cannot record it once the cluster
is no longer nominated. So the cluster is asked before, and again 2 s after; a Workload that has quota there
stays nominated, or is nominated again, until Kueue has recorded it. Source: measured on Kueue main.
"""

from placement_ac.core.api.constants import QUIET_SECONDS
from placement_ac.core.draining.gate import drain_obstacle
from placement_ac.core.draining.state import DrainContext, DrainStep
from placement_ac.core.inputs.state import Timer, TimerKind
from placement_ac.core.selection.selection import soonest


def withdraw_waiting(context: DrainContext, step: DrainStep) -> DrainStep:
    """Withdraw what waits on a cluster where Workloads run; it stays as long as they run.

    A cluster that cannot be asked keeps its nominations.
    """
    if not context.workloads.undecided:
        return step
    if obstacle := drain_obstacle(context, step):
        again = soonest((step.requeue_after, obstacle.requeue_after))
        return step._replace(ask_for_copies=obstacle.ask_for_copies, requeue_after=again)
    if context.workloads.waiting_only(step.name):
        return withdraw(context, step)
    return _confirm(context, step)


def withdraw(context: DrainContext, step: DrainStep) -> DrainStep:
    """Take the cluster out of the nominations of those that have no quota there, by a fresh report."""
    reported = context.seen.fleet.worker_copies.get(step.name)
    if reported is None or reported.age > QUIET_SECONDS:
        return step._replace(ask_for_copies=True)
    waiting = context.workloads.waiting_only(step.name)
    without_quota = tuple(one for one in waiting if not reported.copies.get(one.meta.id))
    return step._replace(denominate=without_quota, requeue_after=soonest((step.requeue_after, QUIET_SECONDS)))


def _confirm(context: DrainContext, step: DrainStep) -> DrainStep:
    """Ask once more, 2 s after nothing waits there, and nominate again what has quota there nevertheless."""
    timer = Timer(TimerKind.WITHDRAWN, step.cluster)
    since = context.seen.age(timer)
    step = step._replace(timers=step.timers | {timer})
    if since < QUIET_SECONDS:
        return step._replace(requeue_after=soonest((step.requeue_after, QUIET_SECONDS - since)))
    reported = context.seen.fleet.worker_copies.get(step.name)
    if reported is None or reported.age > since - QUIET_SECONDS:
        return step._replace(ask_for_copies=True)
    held = tuple(one for one in context.workloads.undecided if reported.copies.get(one.meta.id))
    return step._replace(make_ready=(*step.make_ready, *held))
