"""
Every metric: its name, its type, its labels, and its help text.

Names and units follow Prometheus (https://prometheus.io/docs/practices/naming/), `result` and `reason` the
metrics of Kueue, `controller` those of controller-runtime.
"""

from functools import partial
from typing import Final, Literal, NamedTuple

from placement_ac.core.api import errors
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CAPACITY_PROVIDER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    SECRET,
)

PREFIX: Final = "placement_ac_"

Type = Literal["counter", "gauge", "histogram"]


class MetricDefinition(NamedTuple):
    """One metric; `name` has the prefix and, for a counter, `_total`. A histogram also has the label `le`."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


class QueueLoad(NamedTuple):
    """How busy a queue is: numbers of keys, and seconds."""

    waiting: int = 0
    oldest: float = 0.0
    """How long the oldest key has waited."""
    longest: float = 0.0
    """How long the longest reconcile has been running."""
    retrying: int = 0


SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
PLACING_SECONDS: Final = (0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 120.0, 300.0)
"""`--waiting-grace` is a minute by default, and Kueue takes seconds."""


def _define(
    type_: Type, name: str, labels: tuple[str, ...], help_text: str, buckets: tuple[float, ...] = SECONDS
) -> MetricDefinition:
    return MetricDefinition(PREFIX + name, type_, labels, help_text, buckets if type_ == "histogram" else ())


_counter = partial(_define, "counter")
_gauge = partial(_define, "gauge")
_histogram = partial(_define, "histogram")

RECONCILES: Final = _counter(
    "reconciles_total", ("controller", "result"), "Reconciles of a Placement, check or cluster."
)
RECONCILE_SECONDS: Final = _histogram(
    "reconcile_duration_seconds", ("controller", "result"), "Duration of one reconcile, with its writes."
)
LATENCY: Final = _histogram(
    "event_to_applied_seconds",
    ("controller",),
    "Time from the event of a change until its last write was answered, without intended waits.",
)
DECISION_CHANGES: Final = _counter(
    "decision_changes_total",
    ("placement", "change"),
    "Changes of OCM's decisions: of the clusters, or of their order.",
)
WRITES: Final = _counter(
    "writes_total", ("kind", "verb", "result"), "Writes to the hub, by kind of object and result."
)
WRITES_UNDONE: Final = _counter(
    "undone_writes_total",
    ("kind",),
    "Writes that somebody has undone within 30 seconds, by kind of object.",
)
API_SECONDS: Final = _histogram(
    "api_request_duration_seconds",
    ("verb",),
    "Time until the hub's API server answered a request, without watches.",
)
API_ERRORS: Final = _counter(
    "api_errors_total",
    ("code", "verb"),
    "Failed requests to the hub's API server, by HTTP code; `none`: no answer.",
)
QUEUE_DEPTH: Final = _gauge("workqueue_depth", (), "Keys that wait in the queue.")
QUEUE_AGE: Final = _gauge(
    "workqueue_oldest_waiting_seconds", (), "How long the oldest key has waited in the queue."
)
QUEUE_RUNNING: Final = _gauge(
    "workqueue_longest_running_seconds", (), "How long the longest reconcile has been running."
)
QUEUE_RETRYING: Final = _gauge("workqueue_retrying", (), "Keys that failed and will be retried.")
CHECK_ACTIVE: Final = _gauge(
    "check_active",
    ("check", "placement", "reason"),
    "1 for each AdmissionCheck whose condition `Active` is True, else 0.",
)
CLUSTERS: Final = _gauge(
    "clusters",
    ("check", "state"),
    "Clusters of an AdmissionCheck: `selected` by OCM; `listed` in the MultiKueueConfig; `standby` and"
    " `draining`, which are listed too; `unusable`, which are selected but left out because of their"
    " credentials or a probe.",
)
CONNECTED: Final = _gauge(
    "cluster_connected",
    ("check", "cluster"),
    "1 for each listed cluster to which Kueue is connected, else 0.",
)
QUARANTINED: Final = _gauge(
    "cluster_quarantined",
    ("check", "cluster"),
    "1 for each listed cluster that gets no new jobs, or none of some namespaces, because jobs keep failing"
    " there or an admin wants it,"
    " else 0; none without `--avoid-after-failure`.",
)
RELIABILITY: Final = _gauge(
    "cluster_reliability",
    ("check", "cluster"),
    "The share of the jobs on a listed cluster that did not end because of it, in the last hour, 0 to 1; none"
    " if fewer than five ended, or without `--avoid-after-failure`.",
)
JOB_ENDS: Final = _counter(
    "job_ends_total",
    ("cluster", "cause"),
    "Ends of jobs on clusters; none without `--avoid-after-failure`.",
)
DRAIN_START: Final = _gauge(
    "oldest_drain_start_timestamp_seconds",
    ("check",),
    "When the longest drain began, in seconds since 1970; none if no cluster drains.",
)
HELD: Final = _gauge(
    "held_workloads",
    ("check", "cluster", "drain_state"),
    "Workloads with quota that the gate holds because this cluster leaves; one that several clusters hold"
    " counts for the first by name. 0 for a draining cluster that holds none.",
)
HELD_START: Final = _gauge(
    "oldest_held_workload_start_timestamp_seconds",
    ("check",),
    "Since when the longest-held Workload has had both quota and a `Pending` entry for the check, in seconds"
    " since 1970; it may be before the gate closed. None if the gate holds no Workload.",
)
UNFIT: Final = _gauge(
    "unfit_workloads",
    ("placement",),
    "Workloads with quota that none of the Placement's clusters fits, or none ever gives quota;"
    " 0 without our dispatcher.",
)
REFUSALS: Final = _gauge(
    "dispatch_refusals",
    ("filter",),
    "How often a filter refused a cluster to a Workload with quota that was not nominated yet, in the last"
    " decisions on all Placements; a cluster that several filters refuse counts for the first. 0 without our"
    " dispatcher.",
)
LIST_WRITES: Final = _counter(
    "list_writes_total",
    ("placement",),
    "Writes that changed the clusters of an existing MultiKueueConfig, or their order.",
)
LIST_WRITE_REQUESTS: Final = _counter(
    "list_write_worker_requests_total",
    ("placement",),
    "Requests to workers that these writes cause in Kueue: the Workloads of the config times its clusters, at"
    " each write. Computed, not measured.",
)
PLACING: Final = _histogram(
    "ready_to_placed_seconds",
    (),
    "Time from our `Ready` for a Workload until Kueue has recorded that a worker admitted it. It includes"
    " the wait for quota on the worker. Only of Workloads for which this replica saw both.",
    PLACING_SECONDS,
)
EXPIRATION: Final = _gauge(
    "credential_expiration_timestamp_seconds",
    ("cluster",),
    "When the credentials of a listed or selected cluster expire, in seconds since 1970; none if they never"
    " expire or the time is unknown.",
)
CLUSTER_SCORE: Final = _gauge(
    "cluster_score",
    ("cluster", "score"),
    "The scores of clusters that are reported, as they count for OCM now; none without `--report-scores`.",
)
CLUSTER_QUOTA: Final = _gauge(
    "cluster_quota",
    ("cluster", "resource", "kind"),
    "GPUs, cores and bytes of memory in the quota of the workers that is published, over all flavors; only"
    " with `--dispatcher` or `--report-scores`.",
)
LEADER: Final = _gauge("leader", (), "1 for the replica that leads, 0 for a standby.")
BUILD_INFO: Final = _gauge("build_info", ("version", "python_version"), "1, with the version as a label.")

DEFINITIONS: Final = tuple(m for m in tuple(globals().values()) if isinstance(m, MetricDefinition))
"""All of the above."""

QUOTA_KINDS: Final = ("nominal", "used", "waiting", "free")
"""The kinds of amounts."""
QUOTA_RESOURCES: Final = ("cpu", "memory")
"""Those with a series besides GPUs: a worker may have any number of others, and of flavors."""
UNDONE_KINDS: Final = (
    ACCOUNT,
    ADMISSION_CHECK,
    CAPACITY_PROVIDER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    SECRET,
)
"""The kinds whose writes count as undone when somebody changes them soon."""
CONTROLLERS: Final = ("placement", "check", "provider", "cluster", "score")
"""The kinds of keys."""
SUCCESS: Final = "success"
ERROR: Final = "error"
"""An unexpected error."""
NO_ANSWER: Final = "none"
_RESULTS: Final[tuple[tuple[type[errors.ApiError], str], ...]] = (
    (errors.Conflict, "conflict"),
    (errors.NotFound, "not_found"),
    (errors.Refused, "refused"),
    (errors.Unavailable, "unavailable"),
    (errors.WorkloadWritesFailed, "workload"),
    (errors.HeldBack, "undone"),
    (errors.NotLeading, "not_leading"),
)
RESULTS: Final = (SUCCESS, *(name for _, name in _RESULTS), ERROR)


def result_of(error: BaseException | None) -> str:
    """Return the label `result` for work that ended with `error`, or with an error that it caused."""
    if error is None:
        return SUCCESS
    cause = error.__cause__ or error
    return next((name for kind, name in _RESULTS if isinstance(cause, kind)), ERROR)
