"""
The rule about running jobs on a worker that have this hub's origin, and that this hub does not have. Pure.
"""

from collections.abc import Iterator

from kubectl_placement.doctor.finding import Finding, fail, ok
from kubectl_placement.doctor.worker_inspection import InspectedWorker, worker_rule
from placement_ac.core.api.constants import LABEL_ORIGIN, WORKLOAD
from placement_ac.core.selection.unknown_copies import FIX


@worker_rule(
    "worker-origin",
    "no job runs there that Kueue deletes because it has this hub's origin and is another hub's",
    f"kubectl --context CLUSTER get workloads -A -l {LABEL_ORIGIN}=ORIGIN",
)
def origin(worker: InspectedWorker) -> Iterator[Finding]:
    found = worker.inspection.unknown_copies
    if found is None or found.problem:  # why it cannot be asked is said by worker-access and worker-rights
        return
    show = worker.kubectl.run("get", WORKLOAD.plural, "-A", "-l", f"{LABEL_ORIGIN}={found.origin}")
    if found.number:
        yield fail(f"{FIX}: it has {found.text}, and Kueue deletes them with their jobs", show)
    yield ok(f"every job of origin {found.origin} that runs there is this hub's")
