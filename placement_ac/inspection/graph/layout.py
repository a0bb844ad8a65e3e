"""
Lay out a graph: columns from left to right, each node beside its targets. Pure.

An edge that crosses a column has a place of its own there, so that no line runs behind a box.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

from placement_ac.inspection.drawing.svg import MARGIN
from placement_ac.inspection.graph.model import CLUSTER, COLUMNS, Graph, GraphNode

HEIGHT: Final = 60.0
STEP: Final = 74.0
GAP: Final = 34.0
"""Space between columns; labels of edges widen it."""

Ends = tuple[str, str]
"""The nodes that an edge joins."""


@dataclass(frozen=True, slots=True)
class NodePlace:
    """The place of a node, or of an edge that crosses a column; x and y of the upper left corner."""

    x: float
    y: float
    width: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def middle(self) -> float:
        return self.y + HEIGHT / 2


@dataclass(frozen=True, slots=True)
class Layout:
    """`routes`: the places of each edge, its ends included."""

    nodes: Mapping[str, NodePlace]
    routes: Mapping[Ends, Sequence[NodePlace]]
    width: float
    height: float


def lay_out(graph: Graph, width_of_node: Callable[[GraphNode], float], label_width: float) -> Layout:
    """Return the layout. `label_width`: space for labels before the clusters."""
    chains = _chains(graph)
    rows = _rows(graph, chains)
    columns = _columns(graph, width_of_node, label_width)
    places = {
        id_: NodePlace(columns[at][0], rows[id_], columns[at][1]) for id_, at in _stations(graph, chains)
    }
    return Layout(
        nodes={node.id: places[node.id] for node in graph.nodes},
        routes={ends: [places[station] for station in chain] for ends, chain in chains.items()},
        width=columns[-1][0] + columns[-1][1] + MARGIN,
        height=max((place.y + HEIGHT for place in places.values()), default=MARGIN) + MARGIN,
    )


def _chains(graph: Graph) -> dict[Ends, list[str]]:
    """Return the stations of each edge: its ends, and a waypoint in each column between."""
    column = {node.id: node.column for node in graph.nodes}
    return {
        (edge.source, edge.target): [
            edge.source,
            *(
                f"{edge.source}-{edge.target}@{at}"
                for at in range(column[edge.source] + 1, column[edge.target])
            ),
            edge.target,
        ]
        for edge in graph.edges
    }


def _stations(graph: Graph, chains: Mapping[Ends, Sequence[str]]) -> list[tuple[str, int]]:
    """Return nodes and waypoints, each with its column."""
    points = [point for chain in chains.values() for point in chain[1:-1]]
    return [
        *((node.id, node.column) for node in graph.nodes),
        *((point, int(point.rpartition("@")[2])) for point in points),
    ]


def _rows(graph: Graph, chains: Mapping[Ends, Sequence[str]]) -> dict[str, float]:
    """Return y of each station: as near to its targets as possible."""
    members: list[list[str]] = [[] for _ in COLUMNS]
    for station, column in _stations(graph, chains):
        members[column].append(station)
    leads = _next_stations(graph, chains)
    beside = _siblings(graph)
    rows = {id_: place * STEP for place, id_ in enumerate(_by_fleet(graph, members[CLUSTER]))}
    for column in reversed(range(CLUSTER)):
        wishes = {id_: _wanted_row(leads.get(id_, ()), beside.get(id_, ()), rows) for id_ in members[column]}
        rows |= _spread(wishes)
    top = min(rows.values(), default=0.0)
    return {id_: y - top + MARGIN for id_, y in rows.items()}


def _next_stations(graph: Graph, chains: Mapping[Ends, Sequence[str]]) -> dict[str, list[str]]:
    """Return the next stations of each; of a node, by the edges in use if it has any."""
    found: dict[str, list[str]] = {}
    for sure in (True, False):
        more: dict[str, list[str]] = {}
        for edge in graph.edges:
            chain = chains[edge.source, edge.target]
            for one, other in pairwise(chain) if edge.in_use is sure else ():
                more.setdefault(one, []).append(other)
        found = more | found
    return found


def _by_fleet(graph: Graph, clusters: Sequence[str]) -> list[str]:
    """Return the clusters in the order of their edges: clusters of one Placement are adjacent."""
    first: dict[str, int] = {}
    for place, edge in enumerate(graph.edges):
        first.setdefault(edge.target, place)
    return sorted(clusters, key=lambda id_: first.get(id_, 0))


def _siblings(graph: Graph) -> dict[str, list[str]]:
    """Return the siblings of each node: the targets of the same source."""
    leads: dict[str, list[str]] = {}
    for edge in graph.edges:
        leads.setdefault(edge.source, []).append(edge.target)
    return {edge.target: leads[edge.source] for edge in graph.edges}


def _wanted_row(leads: Sequence[str], beside: Sequence[str], rows: Mapping[str, float]) -> float:
    """Return the wanted row: amid the targets, else above the siblings, else below all."""
    if leads:
        return fmean(rows[other] for other in leads)
    brothers = [rows[other] for other in beside if other in rows]
    return min(brothers) - STEP / 2 if brothers else max(rows.values(), default=0.0) + STEP


def _spread(wishes: Mapping[str, float]) -> dict[str, float]:
    """Return rows at least one step apart, in the order of the wanted rows and as near to them as possible.

    Pool adjacent violators (least squares): nodes that would overlap form a block around their mean.
    """
    order = sorted(wishes, key=lambda id_: wishes[id_])
    blocks: list[list[float]] = []
    for place, id_ in enumerate(order):
        blocks.append([wishes[id_] - place * STEP])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    tops = [fmean(block) for block in blocks for _ in block]
    return {id_: top + place * STEP for place, (id_, top) in enumerate(zip(order, tops, strict=True))}


def _columns(
    graph: Graph, width_of_node: Callable[[GraphNode], float], label_width: float
) -> list[tuple[float, float]]:
    """Return x and width of each column; an empty one has width 0."""
    found: list[tuple[float, float]] = []
    x = MARGIN
    for column in range(len(COLUMNS)):
        widths = [width_of_node(node) for node in graph.nodes if node.column == column]
        x += label_width if column == CLUSTER else 0.0
        found.append((x, max(widths, default=0.0)))
        x += max(widths) + GAP if widths else 0.0
    return found
