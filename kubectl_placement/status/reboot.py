"""
Whether a cluster can be rebooted now: no job runs or waits there, and none comes.

Pure. It follows from the hub, and from the copies that the worker itself reports, which are read later. Yes
is a promise, so whatever is not known is a reason against it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.hub.hub_view import HubView
from placement_ac.core.api.constants import MANAGED_CLUSTER, MULTIKUEUE_CONFIG, WORKLOAD
from placement_ac.core.api.decode import kueue_object, managed_cluster
from placement_ac.core.api.fields import Key, get_str, get_strs, get_time, key_of
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.state import WorkerCopies
from placement_ac.core.maintenance.window import MaintenanceWindow, parse_window

SETTLED_SECONDS: Final = 5.0
"""For so long after the maintenance has begun, a job that was sent before may still arrive."""


@dataclass(frozen=True, slots=True)
class JobThere:
    """A job on the cluster."""

    namespace: str
    name: str
    """Of its Workload."""
    state: Literal["running", "waiting", "unrecorded"]
    """running: Kueue has recorded it there. waiting: it may start at any time. unrecorded: the worker has
    started it, and Kueue on the hub has not recorded that (yet)."""
    since: datetime | None = None
    """Since when it runs, or has quota on the hub while it waits; None: unknown."""


@dataclass(frozen=True, slots=True)
class RebootAnswer:
    """Whether a cluster can be rebooted now."""

    cluster: str
    reboot: bool
    why: tuple[str, ...]
    """Why not, beside the jobs."""
    maintenance: datetime | None
    """When the announced maintenance begins, or has begun; None: none is announced."""
    force: bool
    """Whether the jobs that still run there then are sent back."""
    jobs: tuple[JobThere, ...]
    """Those that run there, then the others."""


def cluster_objects_of(view: HubView, cluster: str) -> Mapping[str, KueueObject]:
    """Return the MultiKueueClusters of a cluster by name, whichever Placements they are of."""
    objects = view.cluster_objects.items()
    return {name: obj for name, obj in objects if view.managed_cluster_of(name) == cluster}


def reboot_answer(view: HubView, cluster: str, copies: Collection[WorkerCopies]) -> RebootAnswer:
    """Return whether a cluster can be rebooted now. `copies`: by each MultiKueueCluster of the cluster."""
    window = _window(view, cluster)
    announced = window if isinstance(window, MaintenanceWindow) else None
    names = {*cluster_objects_of(view, cluster)}
    names |= {view.facts.multikueue_cluster_name(check.placement, cluster) for check in view.our_checks}
    jobs = tuple(_jobs(view, names, copies))
    why = (
        *((window,) if isinstance(window, str) else ()),
        *_coming(view, cluster, names, announced),
        *_not_asked(copies),
    )
    return RebootAnswer(
        cluster=cluster,
        reboot=not jobs and not why,
        why=why,
        maintenance=announced.starts if announced else None,
        force=announced is not None and announced.force,
        jobs=jobs,
    )


def _window(view: HubView, cluster: str) -> MaintenanceWindow | str | None:
    raw = view.dump.find(MANAGED_CLUSTER, cluster)
    text = managed_cluster(raw).maintenance if raw else ""
    return parse_window(text) if text else None


# -- the jobs that are there


def _jobs(view: HubView, names: Collection[str], copies: Collection[WorkerCopies]) -> Iterator[JobThere]:
    reported: dict[Key, bool] = {}
    for key, has_quota in (item for report in copies for item in report.copies.items()):
        reported[key] = has_quota or reported.get(key, False)
    unfinished = {
        key_of(raw): raw
        for raw in view.dump.of(WORKLOAD)
        if condition_of(raw, "Finished").get("status") != "True"
    }
    # A copy without an unfinished Workload on the hub was left behind: it may run on, or start at any time.
    there = [
        JobThere(*key, "unrecorded" if has_quota else "waiting")
        for key, has_quota in reported.items()
        if key not in unfinished
    ]
    for raw in unfinished.values():
        there += _job(raw, names, reported)
    yield from sorted(there, key=lambda job: (job.state != "running", job.namespace, job.name))


def _job(raw: Object, names: Collection[str], reported: Mapping[Key, bool]) -> Iterator[JobThere]:
    """Yield the job of a Workload if it is there; one that runs elsewhere may have left a copy."""
    key, status = key_of(raw), raw.get("status")
    on = get_str(status, "clusterName")
    is_nominated = not on and not {*names}.isdisjoint(get_strs(status, "nominatedClusterNames"))
    if on in names:
        yield JobThere(*key, "running", get_time(condition_of(raw, "Admitted"), "lastTransitionTime"))
    elif reported.get(key):
        yield JobThere(*key, "unrecorded")
    elif is_nominated or key in reported:
        yield JobThere(*key, "waiting", get_time(condition_of(raw, "QuotaReserved"), "lastTransitionTime"))


# -- whether others may come


def _coming(
    view: HubView, cluster: str, names: Collection[str], window: MaintenanceWindow | None
) -> Iterator[str]:
    """Yield why jobs may still come."""
    open_by = [*_sent_by_placements(view, cluster), *_sent_by_lists(view, names)]
    if window is None or not window.has_begun(view.now):
        when = window.announcement if window else "no maintenance is announced"
        if open_by:
            command = f"kubectl placement drain {cluster} --in 0s"
            yield f"{command} closes it now: {when}, and jobs may come: {joined(open_by, '; ')}"
    elif (view.now - window.starts).total_seconds() < SETTLED_SECONDS:
        yield f"ask again in {SETTLED_SECONDS:g} s: its maintenance has just begun"
    elif open_by:
        yield f"wait until it is no longer listed: {joined(open_by, '; ')}"


def _sent_by_placements(view: HubView, cluster: str) -> Iterator[str]:
    for placement in dict.fromkeys(check.placement for check in view.our_checks if check.placement):
        if any(entry.cluster == cluster for entry in view.targets(placement).to_list):
            yield f"Placement {placement} selects it"


def _sent_by_lists(view: HubView, names: Collection[str]) -> Iterator[str]:
    """Yield the lists from which Kueue itself, or somebody else, may choose it."""
    for config in map(kueue_object, view.dump.of(MULTIKUEUE_CONFIG)):
        nominates = view.settings.dispatcher and config.ours
        if not nominates and not {*names}.isdisjoint(config.listed):
            yield f"MultiKueueConfig {config.meta.name} lists it"


def _not_asked(copies: Collection[WorkerCopies]) -> Iterator[str]:
    if copies and all(report.problem for report in copies):
        yield f"which copies the worker holds is unknown: {next(iter(copies)).problem}"
