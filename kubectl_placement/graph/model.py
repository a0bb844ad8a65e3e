"""
The graph that `graph` draws: nodes in columns from left to right, and the edges between them.

Pure. Many nodes of a kind become one node that counts them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, Final, Literal

from kubectl_placement.status.model import LISTED_STATES, CheckStatus, ClusterRow, QueueRow, WorkloadRow
from placement_ac.core.api.constants import ACTIVE
from placement_ac.core.api.text import count_text, joined

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
    "plain",
    "good",
    "bad",
    "missing",
    "listed",
    "standby",
    "draining",
    "selected",
    "unusable",
    "beyond",
    "waiting",
]
"""The style of a node: a cluster's state, or whether a queue or check is active."""


CAPTIONS: Final[Mapping[NodeStyle, str]] = {
    "listed": "listed",
    "standby": "listed, standing by",
    "draining": "draining",
    "selected": "will be listed",
    "unusable": "unusable",
    "beyond": "beyond the last slot",
    "waiting": "waits for a slot",
}
"""The caption of each state of a cluster. Clusters of a check are in this order."""
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


def build_graph(statuses: Iterable[CheckStatus]) -> Graph:
    """Return the graph of these checks; nodes that two of them share exist once."""
    graph = _GraphBuilder()
    for check_status in statuses:
        _add_check(graph, check_status)
    return Graph(tuple(graph.nodes.values()), tuple(graph.edges.values()))


@dataclass(slots=True)
class _GraphBuilder:
    """Collects nodes by column and key, and edges by their ends, in order."""

    nodes: dict[tuple[int, str], GraphNode] = field(default_factory=dict)
    edges: dict[tuple[str, str], GraphEdge] = field(default_factory=dict)

    def node(self, column: int, *names: str, key: str = "", **rest: Any) -> str:
        """Return the id of the node, which counts several names; create it if its key is new."""
        place = column, key or names[0]
        if place not in self.nodes:
            kind = "cluster" if column == CLUSTER else COLUMNS[column].removesuffix("s")
            texts = (kind, names[0])
            if len(names) > 1:
                texts = (f"{kind}s", count_text(len(names), kind))
                rest["names"] = names
            self.nodes[place] = GraphNode(f"n{len(self.nodes)}", column, *texts, **rest)
        return self.nodes[place].id

    def edge(self, source: str, target: str, *, label: str = "", in_use: bool = True) -> None:
        self.edges.setdefault((source, target), GraphEdge(source, target, label, in_use=in_use))

    def mark_path(self, path: Sequence[str]) -> None:
        """Mark the edges of the path of a running Workload."""
        for ends in pairwise(path):
            old = self.edges.get(ends, GraphEdge(*ends))
            self.edges[ends] = GraphEdge(*ends, old.label, on_workload_path=True)


def _join_nonempty(*parts: str, between: str = ", ") -> str:
    return between.join(filter(None, parts))


def _add_check(graph: _GraphBuilder, check_status: CheckStatus) -> None:
    check = graph.node(
        CHECK,
        check_status.name,
        style=_ACTIVE.get(check_status.active, "plain"),
        caption=_join_nonempty(
            f"Active={check_status.active}", "" if check_status.reason == ACTIVE else check_status.reason
        ),
        why=check_status.message
        + (" (the controller has not reconciled it since it was changed)" if check_status.stale else ""),
    )
    placement = _placement(graph, check_status)
    graph.edge(check, placement)
    config = _config(graph, check_status)
    graph.edge(placement, config, in_use=check_status.config != "")
    clusters = _clusters(graph, check_status, placement, config)
    heads = {check_status.name: check}
    for name in check_status.users:
        heads[name] = graph.node(CHECK, name, caption="Kueue's own: multikueue")
        graph.edge(heads[name], config)
    paths = _queues(graph, check_status, heads)
    for jobs in _grouped_workloads(check_status.jobs):
        _add_workloads(graph, jobs, paths, (check, placement, config), clusters)


def _placement(graph: _GraphBuilder, check_status: CheckStatus) -> str:
    exists = check_status.placement_exists
    return graph.node(
        PLACEMENT,
        check_status.placement or "none is named",
        key=check_status.placement or f"of {check_status.name}",
        style="plain" if exists else "missing",
        caption="" if exists or not check_status.placement else "does not exist",
        why=check_status.placement_says,
    )


def _config(graph: _GraphBuilder, check_status: CheckStatus) -> str:
    listed = sum(row.state in LISTED_STATES for row in check_status.clusters)
    name, style, caption = check_status.config, "plain", f"lists {count_text(listed, 'cluster')}"
    if name == "":
        name, style, caption = "none", "missing", "nothing is listed"
    elif name is None:
        name, caption = "unknown", ""
    key = check_status.config or f"of {check_status.placement or check_status.name}"
    return graph.node(CONFIG, name, key=key, style=style, caption=caption)


# -- clusters


def _clusters(
    graph: _GraphBuilder, check_status: CheckStatus, placement: str, config: str
) -> Mapping[str, str]:
    """Return the node of each cluster; edges come from the list, or for unlisted clusters the Placement."""
    nodes: dict[str, str] = {}
    for rows in _shown(check_status.clusters):
        names, state, single = [row.name for row in rows], rows[0].state, len(rows) == 1
        node = graph.node(
            CLUSTER,
            *names,
            key=f"{placement}/{names[0] if single else state}",
            style=state,
            caption=_caption(rows),
            why=_details(rows[0]) if single else _reasons(rows),
        )
        listed = state in LISTED_STATES
        label = _rank_and_score(rows[0]) if single else _ranks(rows)
        graph.edge(config if listed else placement, node, label=label, in_use=listed)
        nodes |= dict.fromkeys(names, node)
    return nodes


def _shown(rows: Sequence[ClusterRow]) -> list[list[ClusterRow]]:
    """Return the clusters of each node: beyond `CLUSTERS_SHOWN`, the largest states have one node each."""
    groups = [[row for row in rows if row.state == state] for state in CAPTIONS]
    folded: list[list[ClusterRow]] = []
    while sum(map(len, groups)) > CLUSTERS_SHOWN:
        most = max(groups, key=len)
        groups.remove(most)
        folded.append(most)
    return [[row] for group in groups for row in group] + folded


def _caption(rows: Sequence[ClusterRow]) -> str:
    running, waiting = sum(row.running or 0 for row in rows), sum(row.waiting or 0 for row in rows)
    return _join_nonempty(
        CAPTIONS[rows[0].state],
        f"{running} running" if running else "",
        f"{waiting} waiting" if waiting else "",
        "not connected" if any(row.connected == "False" for row in rows) else "",
    )


def _reasons(rows: Sequence[ClusterRow]) -> str:
    """Return the names of several clusters, and the reasons for their state, the most frequent first."""
    whys = Counter(row.why for row in rows if row.why)
    return "\n".join([joined(row.name for row in rows), *(f"{n}: {why}" for why, n in whys.most_common(5))])


def _details(row: ClusterRow) -> str:
    return _join_nonempty(
        row.why,
        _rank_and_score(row),
        f"decision group {row.group}" if row.group else "",
        f"by {row.credential.kind} {row.credential.name}" if row.credential.kind else row.credential.problem,
        f"until {row.credential.expires:%Y-%m-%d %H:%M} UTC" if row.credential.expires else "",
        f"not connected: {row.connected_why}" if row.connected_why and row.connected != "Unknown" else "",
        between="\n",
    )


def _rank_and_score(row: ClusterRow) -> str:
    """Return rank and score of a cluster, without a score of 0."""
    rank = "" if row.rank is None else f"rank {row.rank}"
    return _join_nonempty(rank, f"score {row.score}" if row.score else "", between=" · ")


def _ranks(rows: Sequence[ClusterRow]) -> str:
    ranks = [row.rank for row in rows if row.rank is not None]
    return f"ranks {min(ranks)} to {max(ranks)}" if ranks else ""


# -- queues and Workloads


def _queues(
    graph: _GraphBuilder, check_status: CheckStatus, heads: Mapping[str, str]
) -> Mapping[str, tuple[str, ...]]:
    """Return the path from each LocalQueue, as namespace/name, to the check that its ClusterQueue lists."""
    busy = {f"{job.namespace}/{job.queue}" for job in check_status.jobs}
    paths: dict[str, tuple[str, ...]] = {}
    for row in check_status.queues:
        queue = _queue(graph, row)
        listed = [heads[name] for name in row.lists if name in heads]
        for head in listed:
            graph.edge(queue, head)
        ours = heads[check_status.name]
        onward = ours if ours in listed or not listed else listed[0]
        quiet = [name for name in row.local_queues or () if name not in busy]
        counted = quiet if len(quiet) > QUEUES_SHOWN else []
        for name in row.local_queues or ():
            if name not in counted:
                local = graph.node(LOCAL_QUEUE, name)
                graph.edge(local, queue)
                paths[name] = (local, queue, onward)
        if counted:
            local = graph.node(LOCAL_QUEUE, *counted, key=f"others of {row.name}", why=joined(counted))
            graph.edge(local, queue)
    return paths


def _queue(graph: _GraphBuilder, row: QueueRow) -> str:
    caption = _join_nonempty(
        {"True": "active", "False": "not active"}.get(row.active, ""),
        f"{row.admitted} admitted" if row.admitted else "",
        f"{row.pending} pending" if row.pending else "",
    )
    style = _ACTIVE.get(row.active, "plain")
    return graph.node(CLUSTER_QUEUE, row.name, style=style, caption=caption, why=row.why)


def _workload_group(job: WorkloadRow) -> tuple[str, ...]:
    return job.state, job.namespace, job.queue, job.cluster


def _grouped_workloads(jobs: Iterable[WorkloadRow]) -> list[list[WorkloadRow]]:
    """Return the Workloads of each node: one by one if few run in a queue and cluster, else together."""
    groups: list[list[WorkloadRow]] = []
    for key, members in groupby(sorted(jobs, key=_workload_group), _workload_group):
        together = list(members)
        few = key[0] == "running" and len(together) <= JOBS_SHOWN
        groups += [[job] for job in together] if few else [together]
    return groups


def _add_workloads(
    graph: _GraphBuilder,
    jobs: Sequence[WorkloadRow],
    paths: Mapping[str, tuple[str, ...]],
    stem: tuple[str, str, str],
    clusters: Mapping[str, str],
) -> None:
    """Add a node for Workloads of one queue and cluster, and mark their path."""
    first, single = jobs[0], len(jobs) == 1
    names = [f"{job.namespace}/{job.name}" for job in jobs]
    gpus, running = sum(job.gpus for job in jobs), first.state == "running"
    node = graph.node(
        WORKLOAD,
        *names,
        key="" if single else "/".join(_workload_group(first)),
        caption=_join_nonempty(
            count_text(gpus, "GPU") if gpus else "", f"runs on {first.cluster}" if running else first.state
        ),
        why="" if single else joined(names),
    )
    queue = f"{first.namespace}/{first.queue}"
    check, placement, config = stem
    path = paths.get(queue, ())
    if not path:
        path = graph.node(LOCAL_QUEUE, queue), check
        graph.edge(*path, in_use=False)
    graph.edge(node, path[0], in_use=running)
    if running and first.cluster in clusters:
        through = (placement,) if path[-1] == check else ()
        graph.mark_path((node, *path, *through, config, clusters[first.cluster]))
