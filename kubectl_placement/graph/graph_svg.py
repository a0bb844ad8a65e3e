"""
Draw a graph. Pure.

A word, the shape of the box and its colour show the state of a cluster: never colour alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from kubectl_placement.drawing import svg
from kubectl_placement.drawing.svg import NAME_SIZE, SMALL_SIZE, TEXT_SIZE, Element, element
from kubectl_placement.graph.layout import GAP, HEIGHT, NodePlace, lay_out
from kubectl_placement.graph.model import CLUSTER, STYLES, Graph, GraphEdge, GraphNode, NodeStyle
from placement_ac.core.api.text import joined

PAD: Final = 10.0
LEGEND: Final = 40.0
SWATCH: Final = 26.0
LINE: Final = 17.0
LEAN: Final = 10.0
"""Slant of the box of a draining cluster."""
NARROWEST, WIDEST = 96.0, 230.0

STYLE: Final = svg.color_css(
    (
        *svg.TEXT_RULES,
        ".edge{fill:none;stroke:$line;stroke-width:1.3}",
        ".edge.unsure{stroke-dasharray:4 4}",
        ".edge.taken{stroke:$path;stroke-width:4}",
        *(
            f".{style} .box{{fill:${spec.fill};stroke:${spec.outline};stroke-width:1.6;"
            f"stroke-dasharray:{spec.dashes or 'none'}}}"
            for style, spec in STYLES.items()
        ),
        ".draining .box{stroke-dasharray:8 4}",  # longer: the box leans
    )
)


def draw(graph: Graph, title: str, *, alone: bool = True) -> Element:
    """Return the picture. `alone` False: it is part of a page, which has the style and shows the details."""
    labels = [svg.width_of(edge.label, SMALL_SIZE) for edge in graph.edges]
    layout = lay_out(graph, _width, max(labels, default=0.0))
    legend, width = svg.legend(_legend_marks(graph), layout.height + SWATCH / 2, PAD)
    ordered = sorted(graph.edges, key=lambda edge: edge.on_workload_path)  # bold edges on top
    return svg.picture(
        max(width + svg.MARGIN, layout.width),
        layout.height + LEGEND,
        title,
        _description(graph),
        STYLE if alone else "",
        *(_edge(edge, layout.routes[edge.source, edge.target]) for edge in ordered),
        *(_label(edge, layout.nodes[edge.target]) for edge in graph.edges if edge.label),
        *(_node(node, layout.nodes[node.id], alone=alone) for node in graph.nodes),
        legend,
    )


def _description(graph: Graph) -> str:
    """Return a description of the picture, for screen readers."""
    kinds = Counter(node.kind for node in graph.nodes)
    clusters = joined(f"{node.name} {node.caption}" for node in graph.nodes if node.column == CLUSTER)
    return f"{', '.join(f'{kind}: {n}' for kind, n in kinds.items())}. {clusters or 'No clusters'}."


def _width(node: GraphNode) -> float:
    kind, name = _titles(node)
    small, caption = svg.width_of(kind, SMALL_SIZE), svg.width_of(node.caption, TEXT_SIZE)
    widest = max(small, caption, svg.width_of(name, NAME_SIZE, bold=True))
    return min(WIDEST, max(NARROWEST, widest + 2 * _pad(node)))


def _pad(node: GraphNode) -> float:
    return PAD + (LEAN if node.style == "draining" else 0.0)


def _titles(node: GraphNode) -> tuple[str, str]:
    """Return the kind, with the namespace, and the name."""
    namespace, slash, name = node.name.partition("/")
    return (f"{node.kind} in {namespace}", name) if slash else (node.kind, node.name)


def _node(node: GraphNode, at: NodePlace, *, alone: bool) -> Element:
    whole = "\n".join(part for part in (f"{node.kind} {node.name}", node.caption, node.why) if part)
    find = " ".join((whole, *node.names))
    parts = (_box(node.style, at), *_lines(node, at))
    return svg.detailed(f"node {node.style}", "" if alone else node.id, whole, find, *parts)


def _lines(node: GraphNode, at: NodePlace) -> Iterable[Element]:
    kind, name = _titles(node)
    room = at.width - 2 * _pad(node)
    lines = [("small", svg.cut(kind, room, SMALL_SIZE)), ("name", svg.cut(name, room, NAME_SIZE, bold=True))]
    if node.caption:
        lines.append(("says", svg.cut(node.caption, room, TEXT_SIZE)))
    y = at.middle - LINE * (len(lines) - 1) / 2 + LINE / 4
    for place, (class_, text) in enumerate(lines):
        yield svg.text(class_, at.x + at.width / 2, y + place * LINE, text, text_anchor="middle")


def _box(style: NodeStyle, at: NodePlace, height: float = HEIGHT) -> Element:
    """Return the outline: each state of a cluster has a shape of its own."""
    left, top, right, bottom = at.x, at.middle - height / 2, at.right, at.middle + height / 2
    if style == "draining":  # leans
        lean = ((left + LEAN, top), (right, top), (right - LEAN, bottom), (left, bottom))
        return element("polygon", class_="box", points=_points(lean))
    if style == "unusable":  # cut corners
        eight = (
            *((left + 9, top), (right - 9, top), (right, top + 9), (right, bottom - 9)),
            *((right - 9, bottom), (left + 9, bottom), (left, bottom - 9), (left, top + 9)),
        )
        return element("polygon", class_="box", points=_points(eight))
    round_ = {"selected": height / 2, "waiting": height / 3, "beyond": 0.0}.get(style, 6.0)
    return element("rect", class_="box", x=left, y=top, width=at.width, height=height, rx=round_)


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _edge(edge: GraphEdge, route: Sequence[NodePlace]) -> Element:
    """Return a line that is curved between columns and straight within them."""
    path = [f"M{route[0].right:.1f} {route[0].middle:.1f}"]
    for place, following in pairwise(route):
        end = place.right + min(GAP, following.x - place.right)
        middle = (place.right + end) / 2
        y = following.middle
        path.append(f"C{middle:.1f} {place.middle:.1f} {middle:.1f} {y:.1f} {end:.1f} {y:.1f}")
        path.append(f"H{following.x if following is route[-1] else following.right:.1f}")
    kind = " taken" if edge.on_workload_path else "" if edge.in_use else " unsure"
    return element("path", class_=f"edge{kind}", d=" ".join(path), data_from=edge.source, data_to=edge.target)


def _label(edge: GraphEdge, target: NodePlace) -> Element:
    ends = {"data_from": edge.source, "data_to": edge.target}
    return svg.text("small", target.x - 6, target.middle - 6, edge.label, text_anchor="end", **ends)


def _legend_marks(graph: Graph) -> Iterator[tuple[str, Element, float]]:
    seen = {node.style for node in graph.nodes}
    place = NodePlace(0, -HEIGHT / 2, SWATCH * 1.6)
    for style, spec in STYLES.items():
        if style in seen and (text := spec.legend or spec.text):
            yield text, element("g", _box(style, place, SWATCH), class_=style), place.width
    if any(edge.on_workload_path for edge in graph.edges):
        yield (
            "the path of running Workloads",
            element("path", class_="edge taken", d=f"M0 0h{SWATCH}"),
            SWATCH,
        )
