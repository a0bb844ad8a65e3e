"""The way from a job's LocalQueue to the AdmissionChecks that it gets. Pure."""

from typing import NamedTuple

from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.choice import placements_of
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE, Kind
from placement_ac.core.api.decode import checks_listed
from placement_ac.core.api.fields import get_str
from placement_ac.core.api.text import did_you_mean, joined


class QueuePath(NamedTuple):
    """The ClusterQueue of a LocalQueue and its checks, as far as they exist."""

    queue: str
    cluster_queue: str = ""
    checks: tuple[str, ...] = ()
    problem: str = ""
    """Why the checks lead to no Placement; "" if they do."""
    is_missing: bool = False
    """Whether one of the two queues does not exist."""


def queue_path(view: HubView, namespace: str, queue: str) -> QueuePath:
    """Return the checks that a job gets by its LocalQueue."""
    local_queue = view.dump.find(LOCAL_QUEUE, queue, namespace)
    if local_queue is None:
        problem = _missing(view.dump, LOCAL_QUEUE, queue, namespace)
        return QueuePath(queue, problem=problem, is_missing=view.dump.knows(LOCAL_QUEUE))
    name = get_str(local_queue, "spec", "clusterQueue")
    cluster_queue = view.dump.find(CLUSTER_QUEUE, name)
    if cluster_queue is None:
        problem = _missing(view.dump, CLUSTER_QUEUE, name)
        return QueuePath(queue, name, problem=problem, is_missing=view.dump.knows(CLUSTER_QUEUE))
    checks = tuple(sorted(checks_listed(cluster_queue)))
    if placements_of(view, checks):
        return QueuePath(queue, name, checks)
    listed = f"it lists {joined(checks)}" if checks else "it lists none"
    problem = f"ClusterQueue {name} has no check that leads to a Placement: {listed}"
    return QueuePath(queue, name, checks, problem)


def _missing(dump: Dump, kind: Kind, name: str, namespace: str = "") -> str:
    label = f"{kind.kind} {'/'.join(filter(None, (namespace, name)))}"
    if unknown := dump.why_unknown(kind):
        return f"{label} is {unknown}"
    names = [name for space, name in dump.by_key(kind) if space == namespace]
    return f"create {label}: it does not exist{did_you_mean(name, names)}"
