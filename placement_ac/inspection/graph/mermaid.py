"""
A graph as Mermaid, which GitHub and GitLab draw in Markdown. Pure.

Labels contain names and messages of others: characters with a meaning in Mermaid or HTML are escaped.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from placement_ac.inspection.drawing.svg import PALETTE, clean
from placement_ac.inspection.graph.model import NODE_COLORS, Graph, NodeStyle

SAFE: Final = frozenset(" -.,:/=+'()·…—")
"""Characters that need no escape in a label, beside letters and digits."""
LABEL_MAX: Final = 80
"""Characters of a line in a box; `-o html` has the full text."""

SHAPES: Final[Mapping[NodeStyle, tuple[str, str]]] = {
    "listed": ("[", "]"),
    "draining": ("[/", "/]"),
    "selected": ("([", "])"),
    "unusable": ("{{", "}}"),
    "beyond": ("[[", "]]"),
    "waiting": ("(", ")"),
}
"""Mermaid's brackets for a shape; the default is a rectangle."""


def mermaid(graph: Graph) -> str:
    """Return a flowchart from left to right; the path of running Workloads is thick."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield "flowchart LR"
    for node in graph.nodes:
        begin, end = SHAPES.get(node.style, ("[", "]"))
        known = "" if node.style == "plain" else f":::{node.style}"
        texts = filter(None, (node.kind, node.name, node.caption))
        yield f"    {node.id}{begin}{_label(texts)}{end}{known}"
    for edge in graph.edges:
        line = "==>" if edge.on_workload_path else "-->" if edge.in_use else "-.->"
        label = f"|{_label((edge.label,))}|" if edge.label else ""
        yield f"    {edge.source} {line}{label} {edge.target}"
    for look in sorted({node.style for node in graph.nodes} - {"plain"}):
        fill, stroke, dashes = NODE_COLORS[look]
        # The text colour is fixed, so a box is readable on light and dark pages.
        colours = f"fill:{PALETTE[fill][0]},stroke:{PALETTE[stroke][0]},color:{PALETTE['ink'][0]}"
        yield f"    classDef {look} {colours}" + (f",stroke-dasharray:{dashes}" if dashes else "")


def _label(lines: Iterable[str]) -> str:
    return '"' + "<br/>".join(_escaped(line) for line in lines) + '"'


def _escaped(text: str) -> str:
    line = " ".join(clean(text).split())
    line = line if len(line) <= LABEL_MAX else line[: LABEL_MAX - 1] + "…"
    return "".join(one if one.isalnum() or one in SAFE else f"#{ord(one)};" for one in line)
