"""
Lay out a graph: columns from left to right, each node beside its targets. Pure.

An edge that crosses a column has a place of its own there, so that no line runs behind a box.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

from kubectl_placement.drawing.svg import MARGIN
from kubectl_placement.graph.model import CLUSTER, COLUMNS, Graph, GraphNode

HEIGHT: Final = 60.0
STEP: Final = 74.0
GAP: Final = 34.0
"""Space between columns; labels of edges widen it."""

Ends = tuple[str, str]
"""The nodes that an edge joins."""
Station = tuple[str, int]
"""A node or, where an edge crosses a column, a waypoint: its id, and the column."""


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
    nodes = {node.id: (node.id, node.column) for node in graph.nodes}
    chains = _chains(graph, nodes)
    points = (point for chain in chains.values() for point in chain[1:-1])
    rows = _rows(graph, [*nodes.values(), *points], chains)
    columns = _columns(graph, width_of_node, label_width)
    places = {
        station: NodePlace(columns[station[1]][0], y, columns[station[1]][1]) for station, y in rows.items()
    }
    return Layout(
        nodes={id_: places[node] for id_, node in nodes.items()},
        routes={ends: [places[station] for station in chain] for ends, chain in chains.items()},
        width=columns[-1][0] + columns[-1][1] + MARGIN,
        height=max((place.y + HEIGHT for place in places.values()), default=MARGIN) + MARGIN,
    )


def _chains(graph: Graph, nodes: Mapping[str, Station]) -> dict[Ends, list[Station]]:
    """Return the stations of each edge: its ends, and a waypoint in each column between."""
    found = {}
    for edge in graph.edges:
        begin, end = nodes[edge.source], nodes[edge.target]
        points = [(f"{edge.source}-{edge.target}", at) for at in range(begin[1] + 1, end[1])]
        found[edge.source, edge.target] = [begin, *points, end]
    return found


def _rows(
    graph: Graph, stations: Sequence[Station], chains: Mapping[Ends, Sequence[Station]]
) -> dict[Station, float]:
    """Return y of each station: as near to its targets as possible."""
    following = _next_stations(graph, chains)
    targets: dict[Station, list[Station]] = {}
    for chain in chains.values():
        targets.setdefault(chain[0], []).append(chain[-1])
    siblings = {chain[-1]: targets[chain[0]] for chain in chains.values()}
    # Clusters in the order of their edges: clusters of one Placement are adjacent.
    first = {chain[-1]: place for place, chain in reversed(list(enumerate(chains.values())))}
    clusters = sorted((one for one in stations if one[1] == CLUSTER), key=lambda one: first.get(one, 0))
    rows = {station: place * STEP for place, station in enumerate(clusters)}
    for column in reversed(range(CLUSTER)):
        members = [one for one in stations if one[1] == column]
        rows |= _spread(
            {one: _wanted_row(following.get(one, ()), siblings.get(one, ()), rows) for one in members}
        )
    top = min(rows.values(), default=0.0)
    return {station: y - top + MARGIN for station, y in rows.items()}


def _next_stations(graph: Graph, chains: Mapping[Ends, Sequence[Station]]) -> dict[Station, list[Station]]:
    """Return the next stations of each; of a node, by the edges in use if it has any."""
    found: dict[Station, dict[bool, list[Station]]] = {}
    for edge in graph.edges:
        for one, other in pairwise(chains[edge.source, edge.target]):
            found.setdefault(one, {}).setdefault(edge.in_use, []).append(other)
    return {station: others[max(others)] for station, others in found.items()}


def _wanted_row(
    targets: Sequence[Station], siblings: Sequence[Station], rows: Mapping[Station, float]
) -> float:
    """Return the wanted row: amid the targets, else above the siblings, else below all."""
    if targets:
        return fmean(rows[other] for other in targets)
    beside = [rows[other] for other in siblings if other in rows]
    return min(beside) - STEP / 2 if beside else max(rows.values(), default=0.0) + STEP


def _spread(wanted: Mapping[Station, float]) -> dict[Station, float]:
    """Return rows at least one step apart, in the order of the wanted rows and as near to them as possible.

    Pool adjacent violators (least squares): nodes that would overlap form a block around their mean.
    """
    order = sorted(wanted, key=lambda station: wanted[station])
    blocks: list[list[float]] = []
    for place, station in enumerate(order):
        blocks.append([wanted[station] - place * STEP])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    tops = [fmean(block) for block in blocks for _ in block]
    return {station: top + place * STEP for place, (station, top) in enumerate(zip(order, tops, strict=True))}


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
