"""
What `graph` draws: nodes in columns, left to right, and the edges between them, made of the branches.

Pure. The columns: Workloads, LocalQueues, ClusterQueues, AdmissionChecks, Placements, MultiKueueConfigs,
clusters. What is many is folded into a node that counts: a picture of a thousand boxes shows nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Final, Literal

from placement_ac.core.api.constants import ACTIVE
from placement_ac.core.api.text import count_text, joined
from placement_ac.inspection.status.model import Branch, ClusterRow, Job, QueueRow, State

CLUSTERS_SHOWN: Final = 40
"""Clusters of a check that have a node each; beyond, those of one state are counted together."""
QUEUES_SHOWN: Final = 12
"""LocalQueues of a ClusterQueue that have a node each, beside those with Workloads of the check."""
JOBS_SHOWN: Final = 5
"""Workloads of one queue on one cluster that have a node each."""

COLUMNS: Final = (
    "Workloads",
    "LocalQueues",
    "ClusterQueues",
    "AdmissionChecks",
    "Placements",
    "MultiKueueConfigs",
    "Clusters",
)
WORKLOAD, LOCAL_QUEUE, CLUSTER_QUEUE, CHECK, PLACEMENT, CONFIG, CLUSTER = range(len(COLUMNS))

Look = Literal[
    "plain", "good", "bad", "missing", "listed", "draining", "selected", "unusable", "beyond", "waiting"
]
"""How a node looks: a cluster by its state, a queue or check by whether it is active."""
TOLD: Final[Mapping[State, str]] = {
    "listed": "listed",
    "draining": "draining",
    "selected": "will be listed",
    "unusable": "unusable",
    "beyond": "beyond the last seat",
    "waiting": "waits for a seat",
}
"""What a node says of a cluster's state."""
_ACTIVE: Final[Mapping[str, Look]] = {"True": "good", "False": "bad"}


@dataclass(frozen=True, slots=True)
class Node:
    """One box. `says` stands below the name; `why` is told of it on request."""

    id: str
    column: int
    kind: str
    name: str
    look: Look = "plain"
    says: str = ""
    why: str = ""
    names: tuple[str, ...] = ()
    """Of a node that counts: what is in it."""


@dataclass(frozen=True, slots=True)
class Edge:
    """`taken`: a Workload's way goes along it. `sure` False: it leads to what is not in use (yet)."""

    source: str
    target: str
    label: str = ""
    taken: bool = False
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def graph_of(branches: Iterable[Branch]) -> Graph:
    """Return what the branches look like; what two of them share is there once."""
    made = _Making()
    for branch in branches:
        _add(made, branch)
    return Graph(tuple(made.nodes.values()), tuple(made.edges.values()))


@dataclass(slots=True)
class _Making:
    """Nodes by what they stand for, edges by their ends; both in the order in which they come."""

    nodes: dict[tuple[int, str], Node] = field(default_factory=dict)
    edges: dict[tuple[str, str], Edge] = field(default_factory=dict)

    def node(self, column: int, key: str, kind: str, name: str, **rest: object) -> str:
        """Return the id of the node, which is made if it is not there."""
        found = self.nodes.get((column, key))
        if found is None:
            found = Node(f"n{len(self.nodes)}", column, kind, name, **rest)  # type: ignore[arg-type]  # as named
            self.nodes[column, key] = found
        return found.id

    def edge(self, source: str, target: str, *, label: str = "", sure: bool = True) -> None:
        self.edges.setdefault((source, target), Edge(source, target, label, sure=sure))

    def take(self, way: Sequence[str]) -> None:
        """Mark a way as one that a Workload has gone."""
        for ends in pairwise(way):
            old = self.edges.get(ends, Edge(*ends))
            self.edges[ends] = Edge(*ends, old.label, taken=True)


def _add(made: _Making, branch: Branch) -> None:
    check = made.node(
        CHECK,
        branch.name,
        "AdmissionCheck",
        branch.name,
        look=_ACTIVE.get(branch.active, "plain"),
        says=f"Active={branch.active}" + (f", {branch.reason}" if branch.reason not in ("", ACTIVE) else ""),
        why=branch.message
        + (" (the controller has not looked since it was changed)" if branch.stale else ""),
    )
    placement = _placement(made, branch)
    made.edge(check, placement)
    config = _config(made, branch)
    made.edge(placement, config, sure=branch.config != "")
    clusters = _clusters(made, branch, placement, config)
    heads = {name: _head(made, name, config) for name in branch.users} | {branch.name: check}
    ways = _queues(made, branch, heads)
    for one in _folded(branch.jobs):
        _job(made, one, ways, (check, placement, config), clusters)


def _placement(made: _Making, branch: Branch) -> str:
    there = "/" in branch.placement
    return made.node(
        PLACEMENT,
        branch.placement or f"of {branch.name}",
        "Placement",
        branch.placement or "none is named",
        look="plain" if there else "missing",
        says="" if there or not branch.placement else "is not there",
        why=branch.placement_says,
    )


def _config(made: _Making, branch: Branch) -> str:
    key = branch.config or f"of {branch.placement or branch.name}"
    listed = sum(row.state in ("listed", "draining") for row in branch.clusters)
    absent, unknown = branch.config == "", branch.config is None
    says = "nothing is listed" if absent else f"lists {count_text(listed, 'cluster')}"
    return made.node(
        CONFIG,
        key,
        "MultiKueueConfig",
        branch.config or ("none" if absent else "unknown"),
        look="missing" if absent else "plain",
        says="" if unknown else says,
    )


def _head(made: _Making, name: str, config: str) -> str:
    """Return the node of Kueue's own check, which names the config."""
    head = made.node(CHECK, name, "AdmissionCheck", name, says="Kueue's own: multikueue")
    made.edge(head, config)
    return head


# -- clusters


def _clusters(made: _Making, branch: Branch, placement: str, config: str) -> Mapping[str, str]:
    """Return the node of each cluster: the list leads to those that it has, the Placement to the others."""
    found: dict[str, str] = {}
    for rows in _shown(branch.clusters):
        first, state = rows[0], rows[0].state
        names = tuple(row.name for row in rows)
        key = f"{placement}/{first.name}" if len(rows) == 1 else f"{placement}/{state}"
        node = made.node(
            CLUSTER,
            key,
            "cluster" if len(rows) == 1 else "clusters",
            first.name if len(rows) == 1 else count_text(len(rows), "cluster"),
            look=state,
            says=_says(rows),
            why=_why(rows),
            names=names if len(rows) > 1 else (),
        )
        listed = state in ("listed", "draining")
        label = _place(first) if len(rows) == 1 else _places(rows)
        made.edge(config if listed else placement, node, label=label, sure=listed)
        found |= dict.fromkeys(names, node)
    return found


def _shown(rows: Sequence[ClusterRow]) -> list[list[ClusterRow]]:
    """Return what has a node each: beyond `CLUSTERS_SHOWN`, the largest groups of one state are folded."""
    order = list(TOLD)
    states = groupby(sorted(rows, key=lambda row: order.index(row.state)), lambda row: row.state)
    groups = [list(members) for _, members in states]
    folded: list[list[ClusterRow]] = []
    while sum(map(len, groups)) > CLUSTERS_SHOWN:
        most = max(groups, key=len)
        groups.remove(most)
        folded.append(most)
    return [[row] for group in groups for row in group] + folded


def _says(rows: Sequence[ClusterRow]) -> str:
    running, waiting = sum(row.running or 0 for row in rows), sum(row.waiting or 0 for row in rows)
    parts = [
        TOLD[rows[0].state],
        f"{running} running" if running else "",
        f"{waiting} waiting" if waiting else "",
        "not connected" if any(row.connected == "False" for row in rows) else "",
    ]
    return ", ".join(part for part in parts if part)


def _why(rows: Sequence[ClusterRow]) -> str:
    """Return all that is known of a cluster; of several, why they are what they are, most frequent first."""
    if len(rows) > 1:
        whys = Counter(row.why for row in rows if row.why)
        return "\n".join(
            [joined(row.name for row in rows), *(f"{n}: {why}" for why, n in whys.most_common(5))]
        )
    (row,) = rows
    parts = [
        row.why,
        _place(row),
        f"decision group {row.group}" if row.group else "",
        f"by {row.credential.kind} {row.credential.name}" if row.credential.kind else row.credential.problem,
        f"until {row.credential.expires:%Y-%m-%d %H:%M} UTC" if row.credential.expires else "",
        f"not connected: {row.connected_why}" if row.connected_why and row.connected != "Unknown" else "",
    ]
    return "\n".join(part for part in parts if part)


def _place(row: ClusterRow) -> str:
    """Return where a cluster stands; where nothing scores, its score is 0."""
    parts = [
        f"rank {row.rank}" if row.rank is not None else "",
        f"score {row.score}" if row.score else "",
    ]
    return " · ".join(part for part in parts if part)


def _places(rows: Sequence[ClusterRow]) -> str:
    ranks = [row.rank for row in rows if row.rank is not None]
    return f"ranks {min(ranks)} to {max(ranks)}" if ranks else ""


# -- queues and Workloads


def _queues(made: _Making, branch: Branch, heads: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Return the way from each LocalQueue, as namespace/name, to the check that its ClusterQueue lists."""
    busy = {f"{job.namespace}/{job.queue}" for job in branch.jobs}
    ways: dict[str, tuple[str, ...]] = {}
    for row in branch.queues:
        queue = _queue(made, row)
        listed = [heads[name] for name in row.lists if name in heads]
        for head in listed:
            made.edge(queue, head)
        ours = heads[branch.name]
        onward = ours if ours in listed or not listed else listed[0]
        local_queues = row.local_queues or ()
        quiet = [name for name in local_queues if name not in busy]
        counted = quiet if len(quiet) > QUEUES_SHOWN else []
        for name in local_queues:
            if name not in counted:
                local = made.node(LOCAL_QUEUE, name, "LocalQueue", name)
                made.edge(local, queue)
                ways[name] = (local, queue, onward)
        if counted:
            many = count_text(len(counted), "LocalQueue")
            key = f"others of {row.name}"
            local = made.node(
                LOCAL_QUEUE, key, "LocalQueues", many, why=joined(counted), names=tuple(counted)
            )
            made.edge(local, queue)
    return ways


def _queue(made: _Making, row: QueueRow) -> str:
    parts = (
        {"True": "active", "False": "not active"}.get(row.active, ""),
        f"{row.admitted} admitted" if row.admitted else "",
        f"{row.pending} pending" if row.pending else "",
    )
    return made.node(
        CLUSTER_QUEUE,
        row.name,
        "ClusterQueue",
        row.name,
        look=_ACTIVE.get(row.active, "plain"),
        says=", ".join(filter(None, parts)),
        why=row.why,
    )


def _of_jobs(job: Job) -> tuple[str, ...]:
    return job.state, job.namespace, job.queue, job.cluster


def _folded(jobs: Iterable[Job]) -> list[list[Job]]:
    """Return running Workloads one by one where they are few; those that wait together."""
    found: list[list[Job]] = []
    for key, members in groupby(sorted(jobs, key=_of_jobs), _of_jobs):
        together = list(members)
        few = key[0] == "running" and len(together) <= JOBS_SHOWN
        found += [[job] for job in together] if few else [together]
    return found


def _job(
    made: _Making,
    jobs: Sequence[Job],
    ways: Mapping[str, tuple[str, ...]],
    stem: tuple[str, str, str],
    clusters: Mapping[str, str],
) -> None:
    """Add a node for Workloads of one queue and cluster, and mark the way that they have gone."""
    first = jobs[0]
    one = len(jobs) == 1
    names = tuple(f"{job.namespace}/{job.name}" for job in jobs)
    gpus = sum(job.gpus for job in jobs)
    on = f"runs on {first.cluster}" if first.state == "running" else first.state
    says = ", ".join(part for part in (count_text(gpus, "GPU") if gpus else "", on) if part)
    node = made.node(
        WORKLOAD,
        names[0] if one else "/".join(_of_jobs(first)),
        "Workload" if one else "Workloads",
        names[0] if one else count_text(len(jobs), "Workload"),
        says=says,
        why="" if one else joined(names),
        names=() if one else names,
    )
    queue = f"{first.namespace}/{first.queue}"
    check, placement, config = stem
    if queue not in ways:
        local = made.node(LOCAL_QUEUE, queue, "LocalQueue", queue)
        made.edge(local, check, sure=False)
    way = ways.get(queue) or (local, check)
    made.edge(node, way[0], sure=first.state == "running")
    cluster = clusters.get(first.cluster)
    if first.state == "running" and cluster:
        through = (placement,) if way[-1] == check else ()
        made.take((node, *way, *through, config, cluster))
