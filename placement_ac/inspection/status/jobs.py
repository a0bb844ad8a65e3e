"""
The unfinished Workloads of a check: where they run or wait, and how many GPUs they request.

Pure.
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Final

from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.objects import Workload
from placement_ac.inspection.hub.dump import Dump, Object
from placement_ac.inspection.status.model import WorkloadRow
from placement_ac.scheduling.objects import integer, listed, section, text
from placement_ac.scheduling.quantities import QuantityError, parse_quantity

GPU: Final = "/gpu"
"""The end of a resource's name, as in nvidia.com/gpu and amd.com/gpu."""


def workload_rows(
    dump: Dump, workloads: Iterable[Workload], cluster_of: Callable[[str], str]
) -> tuple[WorkloadRow, ...]:
    """Return these Workloads as rows; `cluster_of` gives the managed cluster of a MultiKueueCluster."""

    def row(workload: Workload) -> WorkloadRow:
        raw = dump.by_key(WORKLOAD).get(workload.meta.id, {})
        here = workload.cluster
        return WorkloadRow(
            *workload.meta.id,
            queue=text(raw, "spec", "queueName"),
            state="running" if here else "waiting" if workload.nominated else "pending",
            cluster=cluster_of(here) if here else "",
            nominated=() if here else tuple(map(cluster_of, workload.nominated)),
            gpus=gpus_of(raw),
        )

    return tuple(map(row, workloads))


def gpus_of(workload: Object) -> int:
    """Return the GPUs that all Pods of a Workload request; a quantity that cannot be read counts as 0."""
    total = Fraction(0)
    for pods in listed(workload, "spec", "podSets"):
        count = integer(pods, "count")
        total += (1 if count is None else count) * sum(
            amount
            for container in listed(pods, "template", "spec", "containers")
            for amount in _gpus(container)
        )
    return int(total)


def _gpus(container: object) -> Iterator[Fraction]:
    """Yield the GPUs of a container; in Kubernetes a missing request equals the limit."""
    wanted = {**section(container, "resources", "limits"), **section(container, "resources", "requests")}
    for name, amount in wanted.items():
        if name.endswith(GPU):
            try:
                yield parse_quantity(amount)
            except QuantityError:
                continue
