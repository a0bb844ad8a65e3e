"""
Draw a graph. Pure.

A word, the shape of the box and its colour show the state of a cluster: never colour alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from placement_ac.core.api.text import joined
from placement_ac.inspection.drawing.svg import (
    FONT,
    Element,
    color_css,
    cut,
    detailed,
    element,
    picture,
    width_of,
)
from placement_ac.inspection.graph.layout import GAP, HEIGHT, MARGIN, NodePlace, lay_out
from placement_ac.inspection.graph.model import (
    CLUSTER,
    NODE_COLORS,
    STATE_TEXTS,
    Graph,
    GraphEdge,
    GraphNode,
    NodeStyle,
)

PAD: Final = 10.0
LEGEND: Final = 40.0
SWATCH: Final = 26.0
LINE: Final = 17.0
LEAN: Final = 10.0
"""Slant of the box of a draining cluster."""
NARROWEST, WIDEST = 96.0, 230.0
KIND_SIZE, NAME_SIZE, SAYS_SIZE = 11.0, 14.0, 12.0

LEGEND_TEXTS: Final[Mapping[NodeStyle, str]] = {
    **STATE_TEXTS,
    "draining": "draining: listed until it has drained",
    "good": "active",
    "bad": "not active",
    "missing": "does not exist",
}

_DRAINING_DASHES: Final = "8 4"
"""Longer than the usual ones: the box leans."""

STYLE: Final = color_css(
    (
        f"svg text{{font-family:{FONT};fill:$ink}}",
        ".page{fill:$page}",
        f".kind{{font-size:{KIND_SIZE}px;fill:$muted}}",
        f".name{{font-size:{NAME_SIZE}px;font-weight:600}}",
        f".says{{font-size:{SAYS_SIZE}px}}",
        f"svg .label{{font-size:{KIND_SIZE}px;fill:$muted}}",
        ".edge{fill:none;stroke:$line;stroke-width:1.3}",
        ".edge.unsure{stroke-dasharray:4 4}",
        ".edge.taken{stroke:$path;stroke-width:4}",
        *(
            f".{look} .box{{fill:${fill};stroke:${line};stroke-width:1.6"
            + (f";stroke-dasharray:{_DRAINING_DASHES if look == 'draining' else dashes}" if dashes else "")
            + "}"
            for look, (fill, line, dashes) in NODE_COLORS.items()
        ),
    )
)


def draw(graph: Graph, title: str, *, alone: bool = True) -> Element:
    """Return the picture. `alone` False: it is part of a page, which has the style and shows the details."""
    labels = [width_of(edge.label, KIND_SIZE) for edge in graph.edges]
    layout = lay_out(graph, _width, max(labels, default=0.0))
    legend, width = _legend(graph, layout.height)
    ordered = sorted(graph.edges, key=lambda edge: edge.on_workload_path)  # bold edges on top
    return picture(
        max(width, layout.width),
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
    texts = (
        width_of(kind, KIND_SIZE),
        width_of(name, NAME_SIZE, bold=True),
        width_of(node.caption, SAYS_SIZE),
    )
    return min(WIDEST, max(NARROWEST, *(width + 2 * _pad(node) for width in texts)))


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
    return detailed(f"node {node.style}", "" if alone else node.id, whole, find, *parts)


def _lines(node: GraphNode, at: NodePlace) -> Iterable[Element]:
    kind, name = _titles(node)
    room = at.width - 2 * _pad(node)
    lines = [("kind", cut(kind, room, KIND_SIZE)), ("name", cut(name, room, NAME_SIZE, bold=True))]
    if node.caption:
        lines.append(("says", cut(node.caption, room, SAYS_SIZE)))
    top = at.middle - LINE * (len(lines) - 1) / 2 + LINE / 4
    for place, (what, text) in enumerate(lines):
        y = top + place * LINE
        yield element("text", class_=what, x=at.x + at.width / 2, y=y, text_anchor="middle", text=text)


def _box(look: NodeStyle, at: NodePlace, height: float = HEIGHT) -> Element:
    """Return the outline: each state of a cluster has a shape of its own."""
    left, top, right, bottom = at.x, at.middle - height / 2, at.right, at.middle + height / 2
    if look == "draining":  # leans
        lean = ((left + LEAN, top), (right, top), (right - LEAN, bottom), (left, bottom))
        return element("polygon", class_="box", points=_points(lean))
    if look == "unusable":  # cut corners
        eight = (
            *((left + 9, top), (right - 9, top), (right, top + 9), (right, bottom - 9)),
            *((right - 9, bottom), (left + 9, bottom), (left, bottom - 9), (left, top + 9)),
        )
        return element("polygon", class_="box", points=_points(eight))
    round_ = {"selected": height / 2, "waiting": height / 3, "beyond": 0.0}.get(look, 6.0)
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
    return element(
        "text",
        class_="label",
        x=target.x - 6,
        y=target.middle - 6,
        text_anchor="end",
        text=edge.label,
        data_from=edge.source,
        data_to=edge.target,
    )


def _legend(graph: Graph, top: float) -> tuple[Element, float]:
    """Return the legend of the styles in use, and its width."""
    seen = {node.style for node in graph.nodes}
    parts: list[Element] = []
    x = MARGIN
    for look, message in LEGEND_TEXTS.items():
        if look in seen:
            place = NodePlace(x, top + (SWATCH - HEIGHT) / 2, SWATCH * 1.6)
            swatch = element("g", _box(look, place, SWATCH), class_=look)
            text = element("text", class_="says", x=place.right + 8, y=top + SWATCH / 2 + 4, text=message)
            parts += [swatch, text]
            x = place.right + 8 + width_of(message, SAYS_SIZE) + PAD
    if any(edge.on_workload_path for edge in graph.edges):
        line = f"M{x:.1f} {top + SWATCH / 2:.1f}h{SWATCH:.1f}"
        message = "the path of running Workloads"
        text = element("text", class_="says", x=x + SWATCH + 8, y=top + SWATCH / 2 + 4, text=message)
        parts += [element("path", class_="edge taken", d=line), text]
        x += SWATCH + 8 + width_of(message, SAYS_SIZE) + PAD
    return element("g", *parts, class_="legend"), x + MARGIN
