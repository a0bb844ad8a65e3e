"""
What a new decision comes to at once, where nothing but the decision has changed: a swap of clusters.

Pure. A short way to what `outline` and `first_phases` come to, for the usual case alone: no job, nothing
that leaves, no objection, as many clusters as before, and each of them ready. The answer to all else is
None, and the long way is taken. That both come to the same write is asserted by a property test.
"""

from placement_ac.core.inputs.state import Snapshot, WantedCluster, WantedConfig
from placement_ac.core.kubeconfig.source import Source
from placement_ac.core.plan.diff import Apply, cluster_write, config_write
from placement_ac.core.plan.plan import Outline, owners_of
from placement_ac.core.selection.selection import ranking, seconds_to_wait


def is_at_rest(seen: Snapshot, drawn: Outline) -> bool:
    """Whether the list is as it is to be, and nothing but a decision can change that.

    There is one decision, all agrees, and nothing that lasts has a say in what is listed next.
    """
    config, course, wanted = seen.config, drawn.course, drawn.config
    if not (config and course and wanted) or drawn.objection or wanted.clusters != config.listed:
        return False
    ready = {entry.name for entry in course.usable if entry.source}
    return (
        ready == set(config.listed)
        and ready <= seen.clusters.keys()
        and len(seen.decisions) == 1
        and len(seen.decisions[0].clusters) == len(ready)
        and not seconds_to_wait(seen)
        and not seen.workloads
        and not seen.unreachable
        and not seen.policy.probe
        and not seen.hub.shared
        and len(seen.hub.namespaces) == 1
        and not config.draining
    )


def swap(seen: Snapshot) -> Apply | None:
    """Return the write of the list that a decision calls for; None: that takes a look at everything.

    `seen` was at rest before the decision. One that is as long as the one before, and names nobody twice,
    agrees with its Placement as that one did.
    """
    listed = seen.config.listed if seen.config else ()
    ranked = ranking(seen)
    if len(seen.decisions) != 1 or not len(listed) == len(seen.decisions[0].clusters) == len(ranked):
        return None
    clusters = [entry.cluster for entry in ranked]
    names = seen.hub.cluster_objects(seen.name, clusters)
    new = set(names).difference(listed)
    if not new:
        return None  # the order alone: it has to matter, and is not changed often
    owners = owners_of(seen)
    for cluster, name in zip(clusters, names, strict=True):
        source = seen.credentials[cluster]
        if not isinstance(source, Source):
            return None
        if name in new and not _is_there(WantedCluster(name, cluster, source, owners), seen):
            return None
    return config_write(WantedConfig(seen.name, tuple(names), owners), seen.config, seen.hub)


def _is_there(wanted: WantedCluster, seen: Snapshot) -> bool:
    """Whether the MultiKueueCluster is as it is to be."""
    there = seen.clusters.get(wanted.name)
    return there is not None and cluster_write(wanted, seen.name, there, seen.hub) is None
