"""
Every metric there is: its name, its type, its labels, and what it tells.

What is exported, the table in the docs and the tests are made of this one table. Names and units are as
Prometheus wants them (https://prometheus.io/docs/practices/naming/), `result` and `reason` as in the metrics
of Kueue, `controller` as in those of controller-runtime.
"""

from typing import Final, Literal, NamedTuple

from placement_ac.core.api.errors import (
    ApiError,
    Conflict,
    NotFound,
    NotLeading,
    Refused,
    Unavailable,
    WorkloadTrouble,
)

PREFIX: Final = "placement_ac_"

Type = Literal["counter", "gauge", "histogram"]


class MetricDefinition(NamedTuple):
    """One metric; `name` is whole, with `_total` where it counts. A histogram has the label `le` as well."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


def _counter(name: str, labels: tuple[str, ...], description: str) -> MetricDefinition:
    return MetricDefinition(PREFIX + name, "counter", labels, description)


def _gauge(name: str, labels: tuple[str, ...], description: str) -> MetricDefinition:
    return MetricDefinition(PREFIX + name, "gauge", labels, description)


def _histogram(name: str, labels: tuple[str, ...], description: str) -> MetricDefinition:
    return MetricDefinition(PREFIX + name, "histogram", labels, description, SECONDS)


RECONCILES: Final = _counter(
    "reconciles_total", ("controller", "result"), "How often a Placement, check or cluster was looked at."
)
RECONCILE_SECONDS: Final = _histogram(
    "reconcile_duration_seconds", ("controller", "result"), "How long one look took, with its writes."
)
LATENCY: Final = _histogram(
    "event_to_applied_seconds",
    ("controller",),
    "From the event of a change until what follows from it was written; waits on purpose are not in it, "
    "but the answer to a write may be read 3 ms late.",
)
DECISION_CHANGES: Final = _counter(
    "decision_changes_total",
    ("placement", "change"),
    "How often the clusters that OCM has decided on, or their order, became others.",
)
WRITES: Final = _counter(
    "writes_total",
    ("kind", "verb", "result"),
    "Writes to the hub, by the kind of object and what came of them.",
)
API_SECONDS: Final = _histogram(
    "api_request_duration_seconds",
    ("verb",),
    "How long the hub's API server took to answer, or until that was read, 3 ms at least where others go "
    "first; watches not.",
)
API_ERRORS: Final = _counter(
    "api_errors_total",
    ("code", "verb"),
    "Requests to the hub's API server that failed, by HTTP code; `none`: there was no answer.",
)
QUEUE_DEPTH: Final = _gauge("workqueue_depth", (), "Keys that wait for their turn.")
QUEUE_AGE: Final = _gauge(
    "workqueue_oldest_waiting_seconds", (), "How long the key has waited that has waited the longest."
)
QUEUE_RUNNING: Final = _gauge(
    "workqueue_longest_running_seconds", (), "How long the key has been worked on that takes the longest."
)
QUEUE_RETRYING: Final = _gauge(
    "workqueue_retrying", (), "Keys that failed last time and will be tried again."
)
CHECK_ACTIVE: Final = _gauge(
    "check_active",
    ("check", "placement", "reason"),
    "1 for each AdmissionCheck of ours whose condition `Active` is True, 0 for the others.",
)
CLUSTERS: Final = _gauge(
    "clusters",
    ("check", "state"),
    "Clusters of an AdmissionCheck: `selected` by OCM, `listed` in the MultiKueueConfig, of which some may be"
    " `draining`; `unusable`: selected, but left out for its credentials or its fitness.",
)
DRAIN_START: Final = _gauge(
    "oldest_drain_start_timestamp_seconds",
    ("check",),
    "Since when the cluster drains that has drained the longest, in seconds since 1970; none if none does.",
)
EXPIRATION: Final = _gauge(
    "credential_expiration_timestamp_seconds",
    ("cluster",),
    "When the credentials end of a cluster that is listed or selected, in seconds since 1970; none for those"
    " that never end, or of which it is not known.",
)
LEADER: Final = _gauge("leader", (), "1 for the replica that writes, 0 for one that stands by.")
BUILD_INFO: Final = _gauge("build_info", ("version", "python_version"), "1, with the version as a label.")

MEASURES: Final = (
    RECONCILES,
    RECONCILE_SECONDS,
    LATENCY,
    DECISION_CHANGES,
    WRITES,
    API_SECONDS,
    API_ERRORS,
    QUEUE_DEPTH,
    QUEUE_AGE,
    QUEUE_RUNNING,
    QUEUE_RETRYING,
    CHECK_ACTIVE,
    CLUSTERS,
    DRAIN_START,
    EXPIRATION,
    LEADER,
    BUILD_INFO,
)

CONTROLLERS: Final = ("placement", "check", "cluster")
"""The kinds of keys."""
SUCCESS: Final = "success"
ERROR: Final = "error"
"""What nobody expected."""
NO_ANSWER: Final = "none"
_RESULTS: Final[tuple[tuple[type[ApiError], str], ...]] = (
    (Conflict, "conflict"),
    (NotFound, "not_found"),
    (Refused, "refused"),
    (Unavailable, "unavailable"),
    (WorkloadTrouble, "workload"),
    (NotLeading, "not_leading"),
)
RESULTS: Final = (SUCCESS, *(name for _, name in _RESULTS), ERROR)


def result_of(error: BaseException | None) -> str:
    """Return what became of something that ended with `error`, or because of the error that caused it."""
    if error is None:
        return SUCCESS
    cause = error.__cause__ or error
    return next((name for kind, name in _RESULTS if isinstance(cause, kind)), ERROR)
