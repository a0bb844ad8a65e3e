"""
The events of a job, in order: from its Workload's conditions and checks, and from the events on it. Pure.

Events are kept for an hour; they tell of earlier tries, which conditions forget.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.status.taken_up import placement_of_event
from kubectl_placement.story.hub_jobs import KUEUE
from kubectl_placement.story.lines import placed_at, stopped_by
from kubectl_placement.story.model import JobState, StoryStep
from kubectl_placement.story.waits import RESET, OneJob
from placement_ac.core.api.constants import FIELD_MANAGER, PENDING, READY, WAITS_FOR, WORKLOAD
from placement_ac.core.api.decode import workload, workload_with_job
from placement_ac.core.api.fields import get_dict, get_int, get_list, get_str, get_time, key_of
from placement_ac.core.api.text import joined

SAME_SECONDS: Final = 2.0
"""An event so close to the condition that it repeats is left out: both are written by one controller."""
STOPPERS: Final = {"ClusterQueueStopped": "an admin", "LocalQueueStopped": "an admin"}
"""Kueue: reasons of an eviction that somebody has asked for → who."""
_UID: Final = re.compile(r"\(UID: ([0-9A-Za-z-]{1,64})")
"""Kueue: the Workload that preempts, in the message of the condition Preempted."""
_ORDER: Final = (
    "Queued",
    "Preempted",
    "Evicted",
    "Requeued",
    "QuotaReserved",
    "Check",
    "Nominated",
    "Placed",
)
"""Steps that follow each other within a second, as the times of Kubernetes are."""
_LAST: Final = ("PodsReady", "Stopped", "Finished")
_REPEATS: Final = {"Admitted": "Placed", "Finished": "Finished", "Stopped": "Evicted"}
"""Kueue's reason of an event → the step that says the same."""


def steps_of(job: OneJob, events: Iterable[Object]) -> tuple[StoryStep, ...]:
    """Return the steps, oldest first, with the seconds between them; `events`: any of its namespace."""
    posted = [*_without_placements_again(job, _of_events(job, events))]
    dated = {step.what for step in posted}
    known = [step for step in _recorded(job) if step.time or step.what not in dated]
    whole = [*known, *_without_repetitions(known, posted)]
    return tuple(_with_pauses(sorted(whole, key=_order)))


def _order(step: StoryStep) -> tuple[bool, int, int]:
    names = (*_ORDER, step.what, *_LAST)  # other steps are events on what came before
    place = names.index(step.what.partition(" ")[0] if step.what.startswith("Check ") else step.what)
    return step.time is None, int(step.time.timestamp()) if step.time else 0, place


def _with_pauses(steps: Sequence[StoryStep]) -> Iterator[StoryStep]:
    times = [step.time for step in steps]
    for number, step in enumerate(steps):
        before = next(filter(None, reversed(times[:number])), None)
        yield replace(step, after=(step.time - before).total_seconds() if step.time and before else None)


# -- what the Workload records


def _recorded(job: OneJob) -> Iterator[StoryStep]:
    """Yield the steps in the order in which they follow each other within a second."""
    created = get_time(job.raw, "metadata", "creationTimestamp")
    cluster_queue = f" (ClusterQueue {job.cluster_queue})" if job.cluster_queue else ""
    yield StoryStep(created, "Queued", "", f"in LocalQueue {job.queue or 'none'}{cluster_queue}")
    yield from _evictions(job)
    if job.has("QuotaReserved"):
        yield _of_condition(job, "QuotaReserved", KUEUE, _quota(job))
    yield from _checks(job)
    if job.nominated:
        since = workload_with_job(job.raw).nominated_since
        by = FIELD_MANAGER if job.hub.view.settings.dispatcher else ""
        yield StoryStep(since, "Nominated", by, f"to {joined(job.nominated)}")
    if job.cluster_object:
        yield StoryStep(placed_at(job), "Placed", KUEUE, f"on {job.cluster}")
    if job.has("PodsReady"):
        yield _of_condition(job, "PodsReady", KUEUE)
    if job.state == JobState.STOPPED:
        who, when = stopped_by(job)
        yield StoryStep(when, "Stopped", who, "spec.active was set to false")
    if job.has("Finished"):
        finished = job.condition("Finished")
        yield _of_condition(
            job, "Finished", KUEUE, f"{get_str(finished, 'reason')}: {job.message('Finished')}"
        )


def _of_condition(job: OneJob, kind: str, by: str, detail: str = "") -> StoryStep:
    condition = job.condition(kind)
    return StoryStep(get_time(condition, "lastTransitionTime"), kind, by, detail or job.message(kind))


def _quota(job: OneJob) -> str:
    """Return where it got quota, and of which flavors."""
    assignments = get_list(job.raw, "status", "admission", "podSetAssignments")
    flavors = (flavor for one in assignments for flavor in get_dict(one, "flavors").values())
    names = joined(dict.fromkeys(flavor for flavor in flavors if isinstance(flavor, str)))
    where = f"in ClusterQueue {job.cluster_queue}" if job.cluster_queue else "of its ClusterQueue"
    return where + (f" (flavors {names})" if names else "")


def _checks(job: OneJob) -> Iterator[StoryStep]:
    for entry in job.entries:
        check, state, message = (get_str(entry, field) for field in ("name", "state", "message"))
        is_unanswered = state == PENDING and (not message or message.startswith(RESET))
        by = KUEUE if is_unanswered else job.hub.controllers.get(check, "")
        if job.hub.is_multikueue(check) and (state == READY or not message):
            continue  # `Placed` or `Nominated` says so
        is_over = job.cluster_object and message.startswith(WAITS_FOR)
        detail = "" if message.startswith(RESET) or is_over else message
        when = get_time(entry, "lastTransitionTime")
        yield StoryStep(when, f"Check {check}", by, ": ".join(filter(None, (state, detail))))


def _evictions(job: OneJob) -> Iterator[StoryStep]:
    """Yield the last eviction, and how often there was one."""
    if job.has("Preempted"):
        yield _of_condition(job, "Preempted", KUEUE, f"{job.message('Preempted')}{_preemptor(job)}")
    if job.has("Evicted"):
        reason, message = get_str(job.condition("Evicted"), "reason"), job.message("Evicted")
        yield _of_condition(job, "Evicted", _evictor(job, reason), f"{reason}: {message}{_times(job)}")
    elif job.condition("Evicted"):  # its time is that of the quota which it got again
        message = job.message("Evicted").removeprefix("Previously: ")
        yield _of_condition(job, "Evicted", _evictor(job, ""), f"until then: {message}{_times(job)}")
    if job.has("Requeued"):
        yield _of_condition(job, "Requeued", KUEUE)


def _evictor(job: OneJob, reason: str) -> str:
    return FIELD_MANAGER if workload(job.raw).sent_back_from else STOPPERS.get(reason, KUEUE)


def _times(job: OneJob) -> str:
    counts = get_list(job.raw, "status", "schedulingStats", "evictions")
    number = sum(get_int(entry, "count") or 0 for entry in counts)
    return f" ({number} evictions so far)" if number > 1 else ""


def _preemptor(job: OneJob) -> str:
    match = _UID.search(job.message("Preempted"))
    others = job.hub.view.dump.of(WORKLOAD) if match else ()
    found = next((raw for raw in others if get_str(raw, "metadata", "uid") == (match and match[1])), None)
    return f": {'/'.join(key_of(found))}" if found else ""


# -- what events tell


def _of_events(job: OneJob, events: Iterable[Object]) -> Iterator[StoryStep]:
    owners = get_list(job.raw, "metadata", "ownerReferences")
    uids = {get_str(job.raw, "metadata", "uid"), *(get_str(owner, "uid") for owner in owners)} - {""}
    namespace = job.key[0]
    for event in events:
        about = get_dict(event, "involvedObject")
        if get_str(about, "namespace") == namespace and get_str(about, "uid") in uids:
            yield _of_event(job, event)


def _without_placements_again(job: OneJob, posted: Iterable[StoryStep]) -> Iterator[StoryStep]:
    """Yield the events, of placements only those before the one that the Workload records, each once."""
    evicted = get_time(job.condition("Evicted"), "lastTransitionTime")
    before = ""
    for event in sorted(posted, key=_order):
        if event.what != "Placed":
            yield event
            continue
        is_recorded = event.detail == f"on {job.cluster}" and not (
            event.time and evicted and event.time < evicted
        )
        if not is_recorded and event.detail != before:
            yield event
        before = event.detail


def _of_event(job: OneJob, event: Object) -> StoryStep:
    if placement := placement_of_event(event):
        return StoryStep(
            placement.time, "Placed", KUEUE, f"on {job.hub.cluster_of(placement.cluster_object)}"
        )
    source = get_str(event, "reportingComponent") or get_str(event, "source", "component")
    by = KUEUE if source.startswith("kueue") or source.endswith("-kueue-controller") else source
    count = get_int(event, "series", "count") or get_int(event, "count") or 1
    times = f" ({count} times)" if count > 1 else ""
    when = get_time(event, "series", "lastObservedTime") or get_time(event, "lastTimestamp")
    when = when or get_time(event, "eventTime") or get_time(event, "firstTimestamp")
    return StoryStep(when, get_str(event, "reason"), by, get_str(event, "message") + times)


def _without_repetitions(known: Sequence[StoryStep], posted: Iterable[StoryStep]) -> Iterator[StoryStep]:
    for event in posted:
        what = event.what.partition("DueTo")[0]
        what = _REPEATS.get(what, what)
        if not any(
            _at_once(step, event) and (step.what == what or event.detail in step.detail) for step in known
        ):
            yield event


def _at_once(step: StoryStep, event: StoryStep) -> bool:
    if not (step.time and event.time):
        return False
    return abs((step.time - event.time).total_seconds()) <= SAME_SECONDS
