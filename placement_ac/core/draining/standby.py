"""
The stable list: with our own dispatcher, a cluster that is no longer selected may stay listed and stand by.

Pure. It is listed and never nominated, so a decision that selects it again writes no MultiKueueConfig: Kueue
reconciles every Workload of the check after each such write. Before it stands by, it is denominated and asked
for copies as before a removal; from then on nothing can get there, so it may be unlisted at any time.
"""

from placement_ac.core.api.constants import COPIES_FRESH_SECONDS
from placement_ac.core.draining.gate import ask_when_quiet
from placement_ac.core.draining.state import DrainContext, DrainState, DrainStep
from placement_ac.core.inputs.state import Timer, TimerKind


def stand_by(context: DrainContext, step: DrainStep) -> DrainStep:
    """Keep a cluster listed on which nothing runs or waits, until `unlist_after` or until it must leave."""
    timer = Timer(TimerKind.STANDING_BY, step.cluster)
    if context.seen.workloads:
        step = ask_when_quiet(context, step)
        if step.state is DrainState.QUIET:
            return step._replace(state=DrainState.STANDING_BY, timers=step.timers | {timer})
        if step.state is not DrainState.UNLISTED:
            return step
        timers = frozenset({timer, Timer(TimerKind.QUIET, step.cluster)})  # the report stays good
    else:
        timers = frozenset({timer})
    step = step._replace(state=DrainState.STANDING_BY, timers=timers)
    left = context.seen.policy.unlist_after - context.seen.age(timer)
    if left > 0 and not _must_leave(context, step):
        return step._replace(requeue_after=left)
    return _unlist(context, step)


def _must_leave(context: DrainContext, step: DrainStep) -> bool:
    """Whether its slot is needed, it gets another name, its credentials are gone, or an admin wants that."""
    config = context.seen.objects.config
    asked_to = config.unlist if config else ()
    is_asked_to = step.cluster in asked_to or step.name in asked_to
    has_credentials = context.seen.credentials.usable(step.cluster) is not None
    return is_asked_to or step.cluster in context.must_leave or not has_credentials


def _unlist(context: DrainContext, step: DrainStep) -> DrainStep:
    """Unlist it, if it can be asked after a fresh report: someone else may have nominated it."""
    reported = context.seen.fleet.worker_copies.get(step.name)
    is_old = reported is None or reported.age > COPIES_FRESH_SECONDS
    if context.seen.workloads and is_old and context.seen.credentials.usable(step.cluster):
        return step._replace(ask_for_copies=True)
    return step._replace(state=DrainState.UNLISTED)  # its timers go on: the write may fail
