"""
The graph that `graph` draws: nodes in columns from left to right, and the edges between them.

Pure. The columns: Workloads, LocalQueues, ClusterQueues, AdmissionChecks, Placements, MultiKueueConfigs,
clusters. Many nodes of a kind become one node that counts them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Final, Literal

from placement_ac.core.api.constants import ACTIVE
from placement_ac.core.api.text import count_text, joined
from placement_ac.inspection.status.model import CheckStatus, ClusterRow, QueueRow, WorkloadRow

CLUSTERS_SHOWN: Final = 40
"""Clusters of a check with a node each; beyond, one node counts the clusters of a state."""
QUEUES_SHOWN: Final = 12
"""LocalQueues of a ClusterQueue with a node each, beside those with Workloads of the check."""
JOBS_SHOWN: Final = 5
"""Workloads of one queue on one cluster with a node each."""

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

NodeStyle = Literal[
    "plain", "good", "bad", "missing", "listed", "draining", "selected", "unusable", "beyond", "waiting"
]
"""The style of a node: a cluster's state, or whether a queue or check is active."""
STATE_TEXTS: Final[Mapping[NodeStyle, str]] = {
    "listed": "listed",
    "draining": "draining",
    "selected": "will be listed",
    "unusable": "unusable",
    "beyond": "beyond the last slot",
    "waiting": "waits for a slot",
}
"""The caption of a cluster's state."""
NODE_COLORS: Final[Mapping[NodeStyle, tuple[str, str, str]]] = {
    "plain": ("plain", "line", ""),
    "good": ("plain", "good-line", ""),
    "bad": ("bad", "bad-line", "6 3"),
    "missing": ("page", "bad-line", "2 4"),
    "listed": ("good", "good-line", ""),
    "draining": ("drain", "drain-line", "6 3"),
    "selected": ("next", "next-line", ""),
    "unusable": ("bad", "bad-line", ""),
    "beyond": ("plain", "line", "2 3"),
    "waiting": ("late", "late-line", "6 3"),
}
"""Fill and outline, as names of the palette, and the dashes of the outline."""
_ACTIVE: Final[Mapping[str, NodeStyle]] = {"True": "good", "False": "bad"}


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One box. `caption`: the line below the name. `why`: the details in the tooltip."""

    id: str
    column: int
    kind: str
    name: str
    style: NodeStyle = "plain"
    caption: str = ""
    why: str = ""
    names: tuple[str, ...] = ()
    """The names that a counting node contains."""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """`on_workload_path`: a running Workload uses it. `in_use` False: its target is not in use."""

    source: str
    target: str
    label: str = ""
    on_workload_path: bool = False
    in_use: bool = True


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def build_graph(branches: Iterable[CheckStatus]) -> Graph:
    """Return the graph of these checks; nodes that two of them share exist once."""
    graph = _GraphBuilder()
    for branch in branches:
        _add_check(graph, branch)
    return Graph(tuple(graph.nodes.values()), tuple(graph.edges.values()))


@dataclass(slots=True)
class _GraphBuilder:
    """Collects nodes by column and key, and edges by their ends, in order."""

    nodes: dict[tuple[int, str], GraphNode] = field(default_factory=dict)
    edges: dict[tuple[str, str], GraphEdge] = field(default_factory=dict)

    def node(self, column: int, key: str, kind: str, name: str, **rest: object) -> str:
        """Return the id of the node; create it if it does not exist."""
        found = self.nodes.get((column, key))
        if found is None:
            found = GraphNode(f"n{len(self.nodes)}", column, kind, name, **rest)  # type: ignore[arg-type]  # as named
            self.nodes[column, key] = found
        return found.id

    def edge(self, source: str, target: str, *, label: str = "", in_use: bool = True) -> None:
        self.edges.setdefault((source, target), GraphEdge(source, target, label, in_use=in_use))

    def mark_path(self, path: Sequence[str]) -> None:
        """Mark the edges of the path of a running Workload."""
        for ends in pairwise(path):
            old = self.edges.get(ends, GraphEdge(*ends))
            self.edges[ends] = GraphEdge(*ends, old.label, on_workload_path=True)


def _add_check(graph: _GraphBuilder, branch: CheckStatus) -> None:
    check = graph.node(
        CHECK,
        branch.name,
        "AdmissionCheck",
        branch.name,
        style=_ACTIVE.get(branch.active, "plain"),
        caption=f"Active={branch.active}"
        + (f", {branch.reason}" if branch.reason not in ("", ACTIVE) else ""),
        why=branch.message
        + (" (the controller has not reconciled it since it was changed)" if branch.stale else ""),
    )
    placement = _placement(graph, branch)
    graph.edge(check, placement)
    config = _config(graph, branch)
    graph.edge(placement, config, in_use=branch.config != "")
    clusters = _clusters(graph, branch, placement, config)
    heads = {name: _multikueue_check(graph, name, config) for name in branch.users} | {branch.name: check}
    paths = _queues(graph, branch, heads)
    for one in _grouped_workloads(branch.jobs):
        _add_workloads(graph, one, paths, (check, placement, config), clusters)


def _placement(graph: _GraphBuilder, branch: CheckStatus) -> str:
    there = "/" in branch.placement
    return graph.node(
        PLACEMENT,
        branch.placement or f"of {branch.name}",
        "Placement",
        branch.placement or "none is named",
        style="plain" if there else "missing",
        caption="" if there or not branch.placement else "is not there",
        why=branch.placement_says,
    )


def _config(graph: _GraphBuilder, branch: CheckStatus) -> str:
    key = branch.config or f"of {branch.placement or branch.name}"
    listed = sum(row.state in ("listed", "draining") for row in branch.clusters)
    absent, unknown = branch.config == "", branch.config is None
    says = "nothing is listed" if absent else f"lists {count_text(listed, 'cluster')}"
    return graph.node(
        CONFIG,
        key,
        "MultiKueueConfig",
        branch.config or ("none" if absent else "unknown"),
        style="missing" if absent else "plain",
        caption="" if unknown else says,
    )


def _multikueue_check(graph: _GraphBuilder, name: str, config: str) -> str:
    """Return the node of Kueue's own multikueue check, which names the config."""
    head = graph.node(CHECK, name, "AdmissionCheck", name, caption="Kueue's own: multikueue")
    graph.edge(head, config)
    return head


# -- clusters


def _clusters(graph: _GraphBuilder, branch: CheckStatus, placement: str, config: str) -> Mapping[str, str]:
    """Return the node of each cluster; edges come from the list, or for unlisted clusters the Placement."""
    found: dict[str, str] = {}
    for rows in _shown(branch.clusters):
        first, state = rows[0], rows[0].state
        names = tuple(row.name for row in rows)
        key = f"{placement}/{first.name}" if len(rows) == 1 else f"{placement}/{state}"
        node = graph.node(
            CLUSTER,
            key,
            "cluster" if len(rows) == 1 else "clusters",
            first.name if len(rows) == 1 else count_text(len(rows), "cluster"),
            style=state,
            caption=_caption(rows),
            why=_why(rows),
            names=names if len(rows) > 1 else (),
        )
        listed = state in ("listed", "draining")
        label = _rank_and_score(first) if len(rows) == 1 else _ranks(rows)
        graph.edge(config if listed else placement, node, label=label, in_use=listed)
        found |= dict.fromkeys(names, node)
    return found


def _shown(rows: Sequence[ClusterRow]) -> list[list[ClusterRow]]:
    """Return the clusters of each node: beyond `CLUSTERS_SHOWN`, the largest states have one node each."""
    order = list(STATE_TEXTS)
    states = groupby(sorted(rows, key=lambda row: order.index(row.state)), lambda row: row.state)
    groups = [list(members) for _, members in states]
    folded: list[list[ClusterRow]] = []
    while sum(map(len, groups)) > CLUSTERS_SHOWN:
        most = max(groups, key=len)
        groups.remove(most)
        folded.append(most)
    return [[row] for group in groups for row in group] + folded


def _caption(rows: Sequence[ClusterRow]) -> str:
    running, waiting = sum(row.running or 0 for row in rows), sum(row.waiting or 0 for row in rows)
    parts = [
        STATE_TEXTS[rows[0].state],
        f"{running} running" if running else "",
        f"{waiting} waiting" if waiting else "",
        "not connected" if any(row.connected == "False" for row in rows) else "",
    ]
    return ", ".join(part for part in parts if part)


def _why(rows: Sequence[ClusterRow]) -> str:
    """Return the details of a cluster; of several, their reasons, the most frequent first."""
    if len(rows) > 1:
        whys = Counter(row.why for row in rows if row.why)
        return "\n".join(
            [joined(row.name for row in rows), *(f"{n}: {why}" for why, n in whys.most_common(5))]
        )
    (row,) = rows
    parts = [
        row.why,
        _rank_and_score(row),
        f"decision group {row.group}" if row.group else "",
        f"by {row.credential.kind} {row.credential.name}" if row.credential.kind else row.credential.problem,
        f"until {row.credential.expires:%Y-%m-%d %H:%M} UTC" if row.credential.expires else "",
        f"not connected: {row.connected_why}" if row.connected_why and row.connected != "Unknown" else "",
    ]
    return "\n".join(part for part in parts if part)


def _rank_and_score(row: ClusterRow) -> str:
    """Return rank and score of a cluster, without a score of 0."""
    parts = [
        f"rank {row.rank}" if row.rank is not None else "",
        f"score {row.score}" if row.score else "",
    ]
    return " · ".join(part for part in parts if part)


def _ranks(rows: Sequence[ClusterRow]) -> str:
    ranks = [row.rank for row in rows if row.rank is not None]
    return f"ranks {min(ranks)} to {max(ranks)}" if ranks else ""


# -- queues and Workloads


def _queues(
    graph: _GraphBuilder, branch: CheckStatus, heads: Mapping[str, str]
) -> Mapping[str, tuple[str, ...]]:
    """Return the path from each LocalQueue, as namespace/name, to the check that its ClusterQueue lists."""
    busy = {f"{job.namespace}/{job.queue}" for job in branch.jobs}
    paths: dict[str, tuple[str, ...]] = {}
    for row in branch.queues:
        queue = _queue(graph, row)
        listed = [heads[name] for name in row.lists if name in heads]
        for head in listed:
            graph.edge(queue, head)
        ours = heads[branch.name]
        onward = ours if ours in listed or not listed else listed[0]
        local_queues = row.local_queues or ()
        quiet = [name for name in local_queues if name not in busy]
        counted = quiet if len(quiet) > QUEUES_SHOWN else []
        for name in local_queues:
            if name not in counted:
                local = graph.node(LOCAL_QUEUE, name, "LocalQueue", name)
                graph.edge(local, queue)
                paths[name] = (local, queue, onward)
        if counted:
            many = count_text(len(counted), "LocalQueue")
            key = f"others of {row.name}"
            local = graph.node(
                LOCAL_QUEUE, key, "LocalQueues", many, why=joined(counted), names=tuple(counted)
            )
            graph.edge(local, queue)
    return paths


def _queue(graph: _GraphBuilder, row: QueueRow) -> str:
    parts = (
        {"True": "active", "False": "not active"}.get(row.active, ""),
        f"{row.admitted} admitted" if row.admitted else "",
        f"{row.pending} pending" if row.pending else "",
    )
    return graph.node(
        CLUSTER_QUEUE,
        row.name,
        "ClusterQueue",
        row.name,
        style=_ACTIVE.get(row.active, "plain"),
        caption=", ".join(filter(None, parts)),
        why=row.why,
    )


def _workload_group(job: WorkloadRow) -> tuple[str, ...]:
    return job.state, job.namespace, job.queue, job.cluster


def _grouped_workloads(jobs: Iterable[WorkloadRow]) -> list[list[WorkloadRow]]:
    """Return the Workloads of each node: one by one if few run in a queue and cluster, else together."""
    found: list[list[WorkloadRow]] = []
    for key, members in groupby(sorted(jobs, key=_workload_group), _workload_group):
        together = list(members)
        few = key[0] == "running" and len(together) <= JOBS_SHOWN
        found += [[job] for job in together] if few else [together]
    return found


def _add_workloads(
    graph: _GraphBuilder,
    jobs: Sequence[WorkloadRow],
    paths: Mapping[str, tuple[str, ...]],
    stem: tuple[str, str, str],
    clusters: Mapping[str, str],
) -> None:
    """Add a node for Workloads of one queue and cluster, and mark their path."""
    first = jobs[0]
    one = len(jobs) == 1
    names = tuple(f"{job.namespace}/{job.name}" for job in jobs)
    gpus = sum(job.gpus for job in jobs)
    on = f"runs on {first.cluster}" if first.state == "running" else first.state
    says = ", ".join(part for part in (count_text(gpus, "GPU") if gpus else "", on) if part)
    node = graph.node(
        WORKLOAD,
        names[0] if one else "/".join(_workload_group(first)),
        "Workload" if one else "Workloads",
        names[0] if one else count_text(len(jobs), "Workload"),
        caption=says,
        why="" if one else joined(names),
        names=() if one else names,
    )
    queue = f"{first.namespace}/{first.queue}"
    check, placement, config = stem
    if queue not in paths:
        local = graph.node(LOCAL_QUEUE, queue, "LocalQueue", queue)
        graph.edge(local, check, in_use=False)
    path = paths.get(queue) or (local, check)
    graph.edge(node, path[0], in_use=first.state == "running")
    cluster = clusters.get(first.cluster)
    if first.state == "running" and cluster:
        through = (placement,) if path[-1] == check else ()
        graph.mark_path((node, *path, *through, config, cluster))
