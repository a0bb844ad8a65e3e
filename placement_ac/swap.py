"""
What a new decision comes to at once, where nothing but the decision has changed: a swap of clusters.

Pure. A short way to what `outline` and `first_phases` come to, for the usual case alone: no job, nothing
that leaves, no objection, as many clusters as before, and each of them ready. The answer to all else is
None, and the long way is taken. That both come to the same write is asserted by a property test, and by
`reconcile` each time, when the write has been done and there is time to look at everything.
"""

from placement_ac.diff import Apply, cluster_write, config_write
from placement_ac.plan import Outline, owners_of
from placement_ac.rank import rank
from placement_ac.selection import seconds_to_wait
from placement_ac.snapshot import NewDecision, Settled, Snapshot, WantedCluster, WantedConfig
from placement_ac.ways import Source


def settled(seen: Snapshot, drawn: Outline) -> Settled | None:
    """Return what the next decision can be held against as long as nothing else changes; None: nothing."""
    config, placement, course, wanted = seen.config, seen.placement, drawn.course, drawn.config
    if not (config and placement and course and wanted) or drawn.objection or not _is_plain(seen):
        return None
    ready = {entry.name for entry in course.usable if entry.source}
    if wanted.clusters != config.listed or ready != set(config.listed) or not ready <= seen.clusters.keys():
        return None
    return Settled(placement, config, owners_of(seen))


def _is_plain(seen: Snapshot) -> bool:
    """Whether there is one decision, all agrees, and nothing that lasts has a say in what is listed next."""
    return (
        len(seen.decisions) == 1
        and len(seen.decisions[0].clusters) == len(seen.config.listed if seen.config else ())
        and not seconds_to_wait(seen)
        and not seen.workloads
        and not seen.unreachable
        and not seen.policy.probe
        and not seen.hub.shared
        and len(seen.hub.namespaces) == 1
        and not (seen.config and seen.config.draining)
    )


def swap(new: NewDecision) -> Apply | None:
    """Return the write of the list that a decision calls for; None: that takes a look at everything.

    A decision that is as long as the one before, and names nobody twice, agrees with its Placement as that
    one did.
    """
    before, decision = new.before, new.decision
    listed, owners = before.config.listed, before.owners
    ranked = rank((decision,), before.placement.prioritizers, new.scores, new.now)
    if not len(listed) == len(decision.clusters) == len(ranked):
        return None
    clusters = [entry.cluster for entry in ranked]
    names = new.hub.cluster_objects(new.name, clusters)
    if set(names) == set(listed):
        return None  # the order alone: it has to matter, and is not changed often
    for cluster, name in zip(clusters, names, strict=True):
        source = new.credentials[cluster]
        if not isinstance(source, Source):
            return None
        if name not in listed:
            there, wanted = new.clusters.get(("", name)), WantedCluster(name, cluster, source, owners)
            if there is None or cluster_write(wanted, new.name, there, new.hub):
                return None
    return config_write(WantedConfig(new.name, tuple(names), owners), before.config, new.hub)
