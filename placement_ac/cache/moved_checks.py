"""
Find what a MultiKueueConfig that no check names any more still has to do with: the jobs of its former checks.

No I/O, no clock. Jobs are counted by where they run, whatever the parameters of their checks name now.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from placement_ac.cache.tables import Tables
from placement_ac.core.api.objects import Check, KueueObject, Workload
from placement_ac.core.inputs.state import WorkerCopies


def moved_checks(tables: Tables, config: KueueObject | None, placement: str) -> tuple[Check, ...]:
    """Return the checks that own a config of ours; they are to name another one now."""
    if config is None or not config.ours or config.placement not in ("", placement):
        return ()
    return tuple(check for uid in sorted(config.owners) for check in tables.checks.by("uid", uid))


def left_workloads(tables: Tables, config: KueueObject, workloads: Iterable[Workload]) -> Iterator[Workload]:
    """Yield the Workloads that may be on the clusters of the config by its list alone.

    The configs that their checks name now may list the same MultiKueueClusters: what runs or waits on one of
    those goes on there.
    """
    for workload in workloads:
        served = _served(tables, workload).intersection(config.listed)
        if workload.cluster not in served:
            yield replace(workload, nominated=tuple(n for n in workload.nominated if n not in served))


def left_copies(
    tables: Tables,
    config: KueueObject,
    workloads: Iterable[Workload],
    worker_copies: Mapping[str, WorkerCopies],
) -> dict[str, WorkerCopies]:
    """Return the copies that the clusters of the config reported, without those that are where they belong.

    Another config may list the same worker: what runs or waits there by its name is no copy left behind.
    """
    at_home = {workload.meta.id: _clusters_of(tables, config, workload) for workload in workloads}
    cluster_of, known = tables.hub.cluster_of, tables.multikueue_clusters
    return {
        name: replace(
            report,
            copies={
                id_: has_quota
                for id_, has_quota in report.copies.items()
                if cluster_of(config.meta.name, name, known.get(("", name))) not in at_home.get(id_, ())
            },
        )
        for name, report in worker_copies.items()
    }


def _served(tables: Tables, workload: Workload) -> set[str]:
    """Return the MultiKueueClusters that the present configs of a Workload's checks list."""
    checks = (tables.checks.get(("", state.check)) for state in workload.check_states)
    configs = (tables.configs.get(("", check.config)) for check in checks if check and check.config)
    return {name for config in configs if config for name in config.listed}


def _clusters_of(tables: Tables, config: KueueObject, workload: Workload) -> set[str]:
    """Return the managed clusters where a Workload runs or waits by other names than those of the config."""
    served, known = _served(tables, workload), tables.multikueue_clusters
    names = {name for name in (workload.cluster, *workload.nominated) if name}
    others = (known.get(("", name)) for name in names if name in served or name not in config.listed)
    return {obj.cluster for obj in others if obj}
