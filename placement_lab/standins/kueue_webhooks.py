"""
Kueue's webhook for Jobs: the queue, `suspend` and `managedBy` of new ones, and the changes that it refuses.

Pure. Source: Kueue's job_webhook.go, jobframework/defaults.go and validation.go at ff69552e, and the
scenarios in tests/support. Kueue's caches may miss what is milliseconds old; this reads what is stored.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    KUEUE,
    LABEL_MAX_SECONDS,
    LABEL_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CONTROLLER,
)
from placement_lab.hub.admission import Webhook
from placement_lab.standins.kueue_rules import checks_of, is_multikueue, is_stopped

Object = dict[str, Any]
Find = Callable[[str, str, str], Object | None]

DEFAULT_QUEUE: Final = "default"
"""The LocalQueue of jobs without the label (Kueue: LocalQueueDefaulting)."""
LABEL_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
IMMUTABLE: Final = "field is immutable"
_JOB_CONTROLLER: Final = "kubernetes.io/job-controller"


def complete(job: Object, find: Find) -> Object:
    """Return a new Job with its queue, suspended, and managed by MultiKueue if its queue's check is.

    A LocalQueue that is stopped counts as missing.
    """
    namespace = str(job["metadata"].get("namespace", ""))
    labels: Object = job["metadata"].get("labels") or {}
    if not labels.get(LABEL_QUEUE) and _is_open(find(LOCAL_QUEUE.plural, namespace, DEFAULT_QUEUE)):
        labels = labels | {LABEL_QUEUE: DEFAULT_QUEUE}
        job = job | {"metadata": job["metadata"] | {"labels": labels}}
    queue = labels.get(LABEL_QUEUE)
    if not queue:
        return job
    spec = job["spec"] | {"suspend": True}
    local = find(LOCAL_QUEUE.plural, namespace, str(queue))
    is_ours = spec.get("managedBy") in (None, _JOB_CONTROLLER)
    if is_ours and _is_open(local) and _is_multikueue(local or {}, find):
        spec["managedBy"] = MULTIKUEUE_CONTROLLER
    return job | {"spec": spec}


def _is_open(local_queue: Object | None) -> bool:
    return local_queue is not None and not is_stopped(local_queue)


def _is_multikueue(local_queue: Object, find: Find) -> bool:
    queue = find(CLUSTER_QUEUE.plural, "", local_queue["spec"].get("clusterQueue", ""))
    checks = (find(ADMISSION_CHECK.plural, "", name) for name in checks_of(queue or {"spec": {}}))
    return any(check is not None and is_multikueue(check) for check in checks)


def refusal(job: Object, live: Object | None) -> str | None:
    """Return why Kueue refuses a Job, or its change; None: it does not."""
    reasons = list(_objections(job, live))
    return f"[{', '.join(reasons)}]" if len(reasons) > 1 else next(iter(reasons), None)


def _objections(job: Object, live: Object | None) -> Iterator[str]:
    limit = _label(job, LABEL_MAX_SECONDS)
    if limit and not re.fullmatch("[+-]?[0-9]+", limit):
        syntax = f'strconv.Atoi: parsing "{limit}": invalid syntax'
        yield _invalid(LABEL_MAX_SECONDS, limit, syntax)
    elif limit and int(limit) <= 0:
        yield _invalid(LABEL_MAX_SECONDS, int(limit), "should be greater than 0")
    if live is None:
        return
    runs = not job["spec"].get("suspend", False)
    if runs and _label(job, LABEL_QUEUE) != _label(live, LABEL_QUEUE):
        yield _invalid(LABEL_QUEUE, _label(job, LABEL_QUEUE), IMMUTABLE)
    if (runs or not live["spec"].get("suspend", False)) and limit != _label(live, LABEL_MAX_SECONDS):
        yield _invalid(LABEL_MAX_SECONDS, limit, IMMUTABLE)
    before, after = _label(live, LABEL_PRIORITY), _label(job, LABEL_PRIORITY)
    if runs and after and not before:
        why = "WorkloadPriorityClass cannot be added to a non-suspended workload"
        yield _invalid(LABEL_PRIORITY, after, why)
    elif before and not after:
        yield _invalid(LABEL_PRIORITY, after, "WorkloadPriorityClass cannot be removed from a workload")


def _label(job: Mapping[str, Any], name: str) -> str:
    return str((job["metadata"].get("labels") or {}).get(name, ""))


def _invalid(label: str, value: str | int, why: str) -> str:
    shown = f'"{value}"' if isinstance(value, str) else value
    return f"metadata.labels[{label}]: Invalid value: {shown}: {why}"


JOB_WEBHOOK: Final = Webhook("vjob.kb.io", JOB.plural, KUEUE, complete, refusal)
"""For a hub whose Kueue has the integration `batch/job`: `hub.add_webhook(JOB_WEBHOOK)`."""
