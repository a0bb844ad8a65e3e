"""A rule for Jobs that are removed soon after their end: they may run again. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.commands import HUB, Kubectl
from kubectl_placement.doctor.finding import Finding, ok, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.jobs.finished_jobs import (
    SHORT_SECONDS,
    TTL_GATE,
    TTL_GATE_SINCE,
    short_ttl,
    warning_text,
)
from kubectl_placement.jobs.waiting_jobs import owner_of
from placement_ac.core.api.constants import JOB, WORKLOAD
from placement_ac.core.api.fields import Key, get_str, key_of
from placement_ac.core.api.text import count_text, joined

_LONGER: Final = f'{{"spec":{{"ttlSecondsAfterFinished":{SHORT_SECONDS}}}}}'
NAMED: Final = 3
"""So many Jobs are named."""


@hub_rule(
    "finished-jobs",
    f"no unfinished Job behind our checks has a `ttlSecondsAfterFinished` below {SHORT_SECONDS}, or Kueue's"
    f" gate `{TTL_GATE}` is on",
    f'kubectl patch job -n NAMESPACE NAME -p \'{{"spec":{{"ttlSecondsAfterFinished":{SHORT_SECONDS}}}}}\'',
    # A dump has no Jobs: their Pods may contain secrets.
    unknown=lambda setup: setup.unknown(JOB) if setup.missing_right(JOB) else (),
)
def finished_jobs(setup: HubSetup) -> Iterator[Finding]:
    kueue = setup.kueue
    jobs = {} if kueue.clears_ttl else dict(sorted(_short_lived(setup)))
    if jobs:
        named = list(jobs.items())[:NAMED]
        names = joined(map("/".join, jobs), shown=NAMED)
        number = count_text(len(jobs), "Job")
        has_gate = kueue.release and TTL_GATE_SINCE.has(kueue.release) and not kueue.config_problem
        on_hub = [kueue.enable_gate(TTL_GATE)] if has_gate else [_patch(HUB, key) for key, _ in named]
        on_workers = [_patch(Kubectl(cluster), key) for key, cluster in named if cluster]
        yield warn(
            warning_text(f"{number} ({names})", sent=any(jobs.values())),
            "\n".join((*on_hub, *on_workers)),
        )
    yield ok(
        "no Job is to be removed before the hub's Kueue can have seen its end; one that was sent before it"
        " was changed keeps its time on the worker"
    )


def _patch(kubectl: Kubectl, job: Key) -> str:
    return kubectl.run("patch", "job", "-n", *job, "-p", _LONGER)


def _short_lived(setup: HubSetup) -> Iterator[tuple[Key, str]]:
    """Yield the Jobs of unfinished Workloads of our checks that are removed soon after their end.

    With the cluster that has a copy; "": none has.
    """
    jobs = {get_str(job, "metadata", "uid"): job for job in setup.dump.of(JOB) if short_ttl(job) is not None}
    snapshots = map(setup.view.snapshot, setup.checks_by_placement)
    ids = {workload.meta.id for snapshot in snapshots for workload in snapshot.workloads} if jobs else set()
    for workload_id in ids:
        workload = setup.dump.by_key(WORKLOAD)[workload_id]
        if job := jobs.get(get_str(owner_of(workload), "uid")):
            placed = get_str(workload, "status", "clusterName")
            yield key_of(job), setup.view.managed_cluster_of(placed) if placed else ""


RULES: Final = (finished_jobs,)
