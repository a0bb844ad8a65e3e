"""
Decide in which state a job is, and what it waits for. Pure.

Ordered rules of one Workload: the first that has an answer wins. Kueue gives quota first, then checks are
answered, then a worker admits the job.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.jobs.not_managed import never_starts
from kubectl_placement.status.unnamed_resources import never_here
from kubectl_placement.story.hub_jobs import HubJobs
from kubectl_placement.story.model import FINISHED, JobState, Wait
from placement_ac.core.api.constants import (
    FIELD_MANAGER,
    NO_CLUSTER_FITS,
    READY,
    REJECTED,
    RETRY,
    SILENT,
    WAITS_FOR,
)
from placement_ac.core.api.fields import Obj, get_int, get_list, get_str, get_strs, get_value, key_of
from placement_ac.core.api.text import enumeration, joined

RESET: Final = "Reset to Pending"
"""Kueue: the beginning of an entry's message after an eviction; it says nothing new."""
NEVER_FITS: Final = "maximum capacity"
"""Kueue: part of its message about a job that asks for more than the whole queue has."""
OTHER_NAMESPACE: Final = "namespace doesn't match"
"""Kueue: part of its message about a job whose namespace the ClusterQueue does not select."""
FAILURES: Final = ("OutOfSync", "OwnerNotFound", "AdmissionChecksRejected")
"""Kueue: reasons of the condition Finished of a job that has not succeeded, beside those with `Fail`."""
REPLACED: Final = "WorkloadSliceReplaced"
"""Kueue: the reason of the condition Finished of a slice of an elastic job that goes on in another one."""
ROUND_ENDS: Final = "wait: Kueue's dispatcher Incremental sends it when its round of 5 minutes ends"
_NO_FIT_FIXES: Final = (
    (re.compile(r"had no (LocalQueue [^\s,]+)"), r"ask an admin to create \1 on those clusters"),
    (re.compile(r"had no (ClusterQueue \S+) for "), r"ask an admin to create \1 on those clusters"),
    (re.compile(r"had too little quota"), "ask for less, or ask an admin for more quota on the clusters"),
    (re.compile(r"had no integration|served no"), "ask an admin to enable its kind on the clusters"),
    (re.compile(r"had another (\S+ \S+): rename"), r"rename or delete one of the two: \1"),
    (re.compile(r"maintenance"), "wait until the maintenance has ended"),
    (re.compile(r"is quarantined"), "wait: its quarantine ends by itself"),
    (re.compile(r"didn't match|had no node|had the taint|had a Workload"), "change what the job asks for"),
)
"""The reason of a filter (placement_ac.core.dispatch.filters) → what to do about it."""
NOTHING_TO_WAIT_FOR: Final = Wait()


@dataclass(frozen=True)
class OneJob:
    """A Workload, and the hub that it is on."""

    raw: Object
    hub: HubJobs

    def condition(self, kind: str) -> Obj:
        return condition_of(self.raw, kind)

    def has(self, kind: str) -> bool:
        """Whether that condition is True."""
        return self.condition(kind).get("status") == "True"

    def message(self, kind: str) -> str:
        return get_str(self.condition(kind), "message")

    @cached_property
    def key(self) -> tuple[str, str]:
        return key_of(self.raw)

    @cached_property
    def cluster_object(self) -> str:
        return get_str(self.raw, "status", "clusterName")

    @cached_property
    def cluster(self) -> str:
        return self.hub.cluster_of(self.cluster_object)

    @cached_property
    def nominated(self) -> list[str]:
        return [self.hub.cluster_of(one) for one in get_strs(self.raw, "status", "nominatedClusterNames")]

    @cached_property
    def entries(self) -> list[Obj]:
        """The entries of its checks, ours before those of others, and Kueue's own last."""

        def order(entry: Obj) -> tuple[bool, bool]:
            name = get_str(entry, "name")
            return self.hub.is_multikueue(name), not self.hub.is_ours(name)

        return sorted(get_list(self.raw, "status", "admissionChecks"), key=order)

    @cached_property
    def queue(self) -> str:
        return get_str(self.raw, "spec", "queueName")

    @cached_property
    def cluster_queue(self) -> str:
        admitted = get_str(self.raw, "status", "admission", "clusterQueue")
        return admitted or self.hub.queue_of(self.key[0], self.queue).cluster_queue

    @property
    def is_replaced(self) -> bool:
        """Whether it is a slice of an elastic job in whose place another Workload runs now."""
        return get_str(self.condition("Finished"), "reason") == REPLACED

    @property
    def is_nowhere(self) -> bool:
        """Whether it was evicted from its cluster, and MultiKueue has not placed it again yet."""
        checks = [get_str(entry, "name") for entry in self.entries]
        sent = any(self.hub.is_multikueue(check) or check not in self.hub.controllers for check in checks)
        return sent and self.has("Evicted") and not self.cluster_object

    @cached_property
    def state(self) -> JobState:
        if self.has("Finished"):
            return _end(self.condition("Finished"))
        if get_value(self.raw, "spec", "active") is False:
            return JobState.STOPPED
        if self.cluster_object or (self.has("Admitted") and not self.is_nowhere):
            return JobState.RUNNING
        return JobState.WAITING


def _end(finished: Obj) -> JobState:
    reason, message = get_str(finished, "reason"), get_str(finished, "message")
    failed = "Fail" in reason or reason in FAILURES or (reason == "JobFinished" and "fail" in message.lower())
    return JobState.FAILED if failed else JobState.SUCCEEDED


# -- the rules


def has_finished(job: OneJob) -> Wait | None:
    return NOTHING_TO_WAIT_FOR if job.state in FINISHED else None


def never_runs(job: OneJob) -> Wait | None:
    """MultiKueue has rejected it for good: it can only be created again."""
    never = never_starts(job.raw, job.hub.local_queue(job.key[0], job.queue))
    return (
        Wait(f"somebody to create it again, as Kueue never starts it: {never.why}", never.fix)
        if never
        else None
    )


def is_stopped(job: OneJob) -> Wait | None:
    if job.state != JobState.STOPPED:
        return None
    namespace, name = job.key
    evicted = get_str(job.condition("Evicted"), "reason").startswith("Deact")
    why = _rejection(job) or (job.message("Evicted") if evicted else "")
    patch = """--type merge -p '{"spec":{"active":true}}'"""
    fix = f"to start it again: kubectl patch workloads.kueue.x-k8s.io {name} -n {namespace} {patch}"
    return Wait(": ".join(filter(None, ("somebody to start it again", why))), fix)


def _rejection(job: OneJob) -> str:
    """Return which check has rejected the job, and why: Kueue then stops it; "": none has."""
    for entry in job.entries:
        check, state, message = (get_str(entry, field) for field in ("name", "state", "message"))
        if state == REJECTED:
            return f"check {check}{_answered_by(job, check)} has rejected it{message and f': {message}'}"
    return ""


def leaves(job: OneJob) -> Wait | None:
    """It is evicted, or a check says Retry: Kueue keeps its quota and its cluster until that has ended."""
    if not (job.has("QuotaReserved") or job.cluster_object):
        return None
    if job.is_nowhere and not job.nominated:
        round_ends = "" if job.hub.view.settings.dispatcher else ROUND_ENDS
        return Wait(f"a cluster to be sent to again: no cluster has it. {job.message('Evicted')}", round_ends)
    if job.has("Evicted"):
        return Wait(f"Kueue to end its eviction: {job.message('Evicted')}")
    if rejection := _rejection(job):
        return Wait(f"Kueue to stop it: {rejection}")
    for entry in job.entries:
        check, state, message = (get_str(entry, field) for field in ("name", "state", "message"))
        if state == RETRY:
            return Wait(f"Kueue to evict it and try again: {message or f'check {check} says Retry'}")
    return None


def runs(job: OneJob) -> Wait | None:
    if job.state != JobState.RUNNING:
        return None
    pods = job.condition("PodsReady")
    if pods.get("status") == "False":
        return Wait(f"its Pods on {job.cluster or 'the hub'}: {get_str(pods, 'message')}")
    return NOTHING_TO_WAIT_FOR


def queue_admits_nothing(job: OneJob) -> Wait | None:
    if job.has("QuotaReserved"):
        return None
    if not job.queue:
        return Wait("a queue: it names none", "set the label kueue.x-k8s.io/queue-name of the job")
    queue = job.hub.queue_of(job.key[0], job.queue)
    return Wait(queue.problem, queue.fix) if queue.problem else None


def backs_off(job: OneJob) -> Wait | None:
    until = get_str(job.raw, "status", "requeueState", "requeueAt")
    if not until or job.has("QuotaReserved"):
        return None
    count = get_int(job.raw, "status", "requeueState", "count")
    return Wait(f"the end of its backoff at {until}" + (f", after {count} evictions" if count else ""))


def has_no_quota(job: OneJob) -> Wait | None:
    if job.has("QuotaReserved"):
        return None
    message = job.message("QuotaReserved")
    where = f"ClusterQueue {job.cluster_queue}" if job.cluster_queue else f"LocalQueue {job.queue}"
    if not message:
        return Wait(f"its turn in {where}")
    never, fix = never_here(message, job.cluster_queue)
    if never:
        return Wait(never, fix)
    fix = "ask for less, or ask an admin for more quota: it never fits" if NEVER_FITS in message else ""
    if OTHER_NAMESPACE in message:
        fix = f"ask an admin to select namespace {job.key[0]} in spec.namespaceSelector of {where}"
    return Wait(f"quota in {where}: {message}", fix)


def has_no_checks(job: OneJob) -> Wait | None:
    return None if job.entries else Wait("Kueue to set its checks")


def a_check_is_not_ready(job: OneJob) -> Wait | None:
    """The first check, other than Kueue's MultiKueue, that is not Ready."""
    for entry in job.entries:
        check, state, message = (get_str(entry, field) for field in ("name", "state", "message"))
        if state == READY or job.hub.is_multikueue(check):
            continue
        if _is_unknown(job, check) and job.nominated:
            continue
        return _waits_for_check(job, check, "" if message.startswith(RESET) else message)
    return None


def _waits_for_check(job: OneJob, check: str, message: str) -> Wait:
    by = _answered_by(job, check)
    if message.startswith(NO_CLUSTER_FITS):
        why = message.removeprefix(NO_CLUSTER_FITS).lstrip(": ")
        when = _written_at(job)
        return Wait(f"a cluster that fits it: {why}{when and f' (as of {when})'}", _fix_of_no_fit(why))
    if not message:
        fix = (
            "ask an admin whether the controller runs (`kubectl placement status`)"
            if job.hub.is_ours(check)
            else ""
        )
        return Wait(f"check {check}{by}", fix)
    return Wait(f"check {check}{by}: {message}")


def _fix_of_no_fit(why: str) -> str:
    """Return what to do about each of the reasons for which clusters were refused."""
    fixes = [match.expand(fix) for reason, fix in _NO_FIT_FIXES for match in reason.finditer(why)]
    return joined(dict.fromkeys(fixes), "; or ") or "change what the job asks for"


def _written_at(job: OneJob) -> str:
    """Return when our controller wrote its answer last, by managedFields; "": unknown."""
    ours = (e for e in get_list(job.raw, "metadata", "managedFields") if e.get("manager") == FIELD_MANAGER)
    return max((get_str(entry, "time") for entry in ours), default="")


def _answered_by(job: OneJob, check: str) -> str:
    """Return who answers a check, in brackets; "": it is not known."""
    who = job.hub.controllers.get(check, "")
    return f" ({who})" if who else ""


def _is_unknown(job: OneJob, check: str) -> bool:
    """Whether it is unknown who answers a check: it may be Kueue's, which is Pending while the job waits."""
    return check not in job.hub.controllers


def hangs_with_a_worker(job: OneJob) -> Wait | None:
    if silent := job.hub.silent_clusters(get_str(entry, "name") for entry in job.entries):
        return Wait(f"cluster {joined(silent)}: {SILENT}", "wait: it starts elsewhere when Kueue has noticed")
    return None


def waits_on_clusters(job: OneJob) -> Wait | None:
    if not job.nominated:
        return None
    for entry in job.entries:
        message = get_str(entry, "message")
        if message.startswith(WAITS_FOR):
            return Wait(f"quota on {message.removeprefix(WAITS_FOR)}")
    return Wait(f"quota on {enumeration(job.nominated, 'or')}")


def is_not_nominated(job: OneJob) -> Wait | None:
    if all(get_str(entry, "state") == READY for entry in job.entries):
        return Wait("Kueue to admit it")
    if config := job.hub.config_by_hand(get_str(entry, "name") for entry in job.entries):
        why = f"placement-ac nominates none for MultiKueueConfig {config}, which is not of a Placement"
        return Wait(f"a cluster: {why}", "ask an admin to create a Placement and an AdmissionCheck for it")
    return Wait("a cluster: it is nominated to none yet")


# Order matters: a rule may assume that those above it had no answer.
RULES: Final[tuple[Callable[[OneJob], Wait | None], ...]] = (
    has_finished,
    never_runs,
    is_stopped,
    leaves,
    runs,
    queue_admits_nothing,
    backs_off,
    has_no_quota,
    has_no_checks,
    a_check_is_not_ready,
    hangs_with_a_worker,
    waits_on_clusters,
    is_not_nominated,
)


def wait_of(job: OneJob) -> Wait:
    """Return what a job waits for now; empty if it waits for nothing."""
    answers = (rule(job) for rule in RULES)
    return next((wait for wait in answers if wait is not None), NOTHING_TO_WAIT_FOR)
