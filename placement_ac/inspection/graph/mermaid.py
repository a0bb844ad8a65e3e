"""
A graph as Mermaid, which GitHub and GitLab draw in Markdown. Pure.

Names and messages are others' words: in a label every letter that Mermaid or HTML could take for its own is
written by its number.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from placement_ac.inspection.drawing.svg import PALETTE, clean
from placement_ac.inspection.graph.model import Graph, GraphNode, NodeStyle

SAFE: Final = frozenset(" -.,:/=+'()·…—")
"""What stands in a label as it is, beside letters and digits."""
LABEL_MAX: Final = 80
"""Letters of a line in a box; the whole is in `-o html`."""

SHAPES: Final[Mapping[NodeStyle, tuple[str, str]]] = {
    "listed": ("[", "]"),
    "draining": ("[/", "/]"),
    "selected": ("([", "])"),
    "unusable": ("{{", "}}"),
    "beyond": ("[[", "]]"),
    "waiting": ("(", ")"),
}
"""The brackets by which Mermaid knows a shape; a rectangle without."""
_COLOURS: Final[Mapping[NodeStyle, tuple[str, str, str]]] = {
    "listed": ("good", "good-line", ""),
    "draining": ("drain", "drain-line", ",stroke-dasharray:6 3"),
    "selected": ("next", "next-line", ""),
    "unusable": ("bad", "bad-line", ""),
    "beyond": ("plain", "line", ",stroke-dasharray:2 3"),
    "waiting": ("late", "late-line", ",stroke-dasharray:6 3"),
    "good": ("plain", "good-line", ""),
    "bad": ("bad", "bad-line", ",stroke-dasharray:6 3"),
    "missing": ("page", "bad-line", ",stroke-dasharray:2 4"),
}
"""Ground and outline, with text of its own colour: so it is readable on a light page and on a dark one."""


def mermaid(graph: Graph) -> str:
    """Return a flowchart from left to right; the way of Workloads that run is thick."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield "flowchart LR"
    for node in graph.nodes:
        begin, end = SHAPES.get(node.style, ("[", "]"))
        known = f":::{node.style}" if node.style in _COLOURS else ""
        yield f"    {node.id}{begin}{_label(_texts(node))}{end}{known}"
    for edge in graph.edges:
        line = "==>" if edge.on_workload_path else "-->" if edge.in_use else "-.->"
        label = f"|{_label((edge.label,))}|" if edge.label else ""
        yield f"    {edge.source} {line}{label} {edge.target}"
    for look in sorted({node.style for node in graph.nodes} & _COLOURS.keys()):
        fill, stroke, dashes = _COLOURS[look]
        colours = f"fill:{PALETTE[fill][0]},stroke:{PALETTE[stroke][0]},color:{PALETTE['ink'][0]}"
        yield f"    classDef {look} {colours}{dashes}"


def _texts(node: GraphNode) -> Iterable[str]:
    return [text for text in (node.kind, node.name, node.caption) if text]


def _label(lines: Iterable[str]) -> str:
    return '"' + "<br/>".join(_escaped(line) for line in lines) + '"'


def _escaped(text: str) -> str:
    line = " ".join(clean(text).split())
    line = line if len(line) <= LABEL_MAX else line[: LABEL_MAX - 1] + "…"
    return "".join(one if one.isalnum() or one in SAFE else f"#{ord(one)};" for one in line)
