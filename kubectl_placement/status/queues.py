"""The ClusterQueues and LocalQueues of a check, and its unfinished Workloads with their GPUs. Pure."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kubectl_placement.hub.dump import Dump, Object, condition_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.kueue_failures import missing_kind_fix, sync_failure
from kubectl_placement.status.model import ConditionStatus, QueueRow, WorkloadRow
from kubectl_placement.status.taken_up import taken_up
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE, NO_QUOTA_THERE, SILENT, WORKLOAD
from placement_ac.core.api.decode import active_of, checks_listed
from placement_ac.core.api.fields import get_dict, get_int, get_list, get_str, name_of, namespace_of
from placement_ac.core.api.objects import Check, Workload
from placement_ac.core.api.quantities import milli
from placement_ac.core.api.schemas import Condition

GPU: Final = "/gpu"
"""The end of a resource's name, as in nvidia.com/gpu and amd.com/gpu."""
STOP_POLICIES: Final = ("Hold", "HoldAndDrain")
"""Kueue: the values of `spec.stopPolicy` that stop a queue; the default is `None`."""


@dataclass(frozen=True)
class QueueIndex:
    """All queues of a hub, indexed once."""

    dump: Dump

    def of(self, checks: Collection[str]) -> tuple[QueueRow, ...]:
        """Return the ClusterQueues that list any of `checks`, by name."""
        queues = {name_of(queue): queue for check in checks for queue in self._by_check.get(check, ())}
        return tuple(self._row(queues[name], checks) for name in sorted(queues))

    def _row(self, queue: Object, checks: Collection[str]) -> QueueRow:
        active = active_of(queue)
        known = not self.dump.why_unknown(LOCAL_QUEUE)
        return QueueRow(
            name=name_of(queue),
            active=condition_status(active),
            why=inactive_reason(active),
            lists=tuple(sorted(checks_listed(queue).intersection(checks))),
            local_queues=tuple(sorted(self._local.get(name_of(queue), ()))) if known else None,
            pending=get_int(queue, "status", "pendingWorkloads") or 0,
            # Kueue's count may be behind: it is not less than the jobs that run.
            admitted=max(get_int(queue, "status", "admittedWorkloads") or 0, self._placed[name_of(queue)]),
        )

    @cached_property
    def _by_check(self) -> dict[str, list[Object]]:
        queues: dict[str, list[Object]] = {}
        for queue in self.dump.of(CLUSTER_QUEUE):
            for check in checks_listed(queue):
                queues.setdefault(check, []).append(queue)
        return queues

    @cached_property
    def _placed(self) -> Counter[str]:
        """ClusterQueue → its unfinished Workloads that are placed on a cluster."""
        return Counter(
            get_str(workload, "status", "admission", "clusterQueue")
            for workload in self.dump.of(WORKLOAD)
            if get_str(workload, "status", "clusterName")
            and condition_of(workload, "Finished").get("status") != "True"
        )

    @cached_property
    def _local(self) -> dict[str, list[str]]:
        """The LocalQueues of each ClusterQueue, as namespace/name."""
        labels: dict[str, list[str]] = {}
        for queue in self.dump.of(LOCAL_QUEUE):
            label = f"{namespace_of(queue)}/{name_of(queue)}"
            labels.setdefault(get_str(queue, "spec", "clusterQueue"), []).append(label)
        return labels


def condition_status(condition: Condition | None) -> ConditionStatus:
    """Return the status of a condition; Unknown if there is none."""
    if condition is None or condition.status not in ("True", "False"):
        return "Unknown"
    return "True" if condition.status == "True" else "False"


def inactive_reason(condition: Condition | None) -> str:
    """Return reason and message of a condition that is not True, after the fix if it is known; "" if True."""
    if condition is None or condition.status == "True":
        return ""
    message = f"{condition.reason}: {condition.message}".strip(": ")
    return "; ".join(filter(None, (missing_kind_fix(condition.message), message)))


# -- Workloads


def workload_rows(
    view: HubView,
    workloads: Iterable[Workload],
    cluster_of: Callable[[str], str],
    ours: Collection[str] = (),
) -> tuple[WorkloadRow, ...]:
    """Return these Workloads as rows; `cluster_of` gives the managed cluster of a MultiKueueCluster.

    `ours`: our checks, whose entries say why a Workload waits.
    """

    def row(workload: Workload) -> WorkloadRow:
        raw = view.dump.by_key(WORKLOAD).get(workload.meta.id, {})
        here = workload.cluster
        return WorkloadRow(
            *workload.meta.id,
            queue=get_str(raw, "spec", "queueName"),
            state="running" if here else "waiting" if workload.nominated else "pending",
            cluster=cluster_of(here) if here else "",
            nominated=() if here else tuple(map(cluster_of, workload.nominated)),
            gpus=gpus_of(raw),
            why=""
            if here
            else next((state.message for state in workload.check_states if state.check in ours), ""),
            failure=sync_failure(raw, cluster_of),
            elsewhere=taken.sentence if here and (taken := taken_up(view, raw)) else "",
        )

    return tuple(map(row, workloads))


def gpus_of(workload: Object) -> int:
    """Return the GPUs that all Pods of a Workload request; a quantity that cannot be read counts as 0."""
    total = 0
    for pods in get_list(workload, "spec", "podSets"):
        count = get_int(pods, "count")
        containers = get_list(pods, "template", "spec", "containers")
        total += (1 if count is None else count) * sum(map(_milli_gpus, containers))
    return total // 1000


def _milli_gpus(container: object) -> int:
    """Return the GPUs of a container, in thousandths; in Kubernetes a missing request equals the limit."""
    wanted = {**get_dict(container, "resources", "limits"), **get_dict(container, "resources", "requests")}
    return sum(milli(amount) or 0 for name, amount in wanted.items() if name.endswith(GPU))


def queue_remarks_of(check: Check) -> Mapping[str, str]:
    """Return the clusters whose queues give no quota by the check's condition → which queues, and why."""
    return {cluster: why for cluster, why in _remarks(check) if why.startswith(NO_QUOTA_THERE)}


def silent_clusters_of(check: Check) -> tuple[str, ...]:
    """Return the clusters that hang by the check's condition, as Kueue does not know yet."""
    return tuple(cluster for cluster, why in _remarks(check) if why == SILENT)


def _remarks(check: Check) -> Iterator[tuple[str, str]]:
    """Yield the clusters of the condition's remarks, and each remark."""
    active = check.active
    for part in (active.message if active else "").split("; "):
        cluster, _, why = part.partition(": ")
        yield cluster, why
