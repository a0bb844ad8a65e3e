"""
A graph as Mermaid, which GitHub and GitLab draw in Markdown. Pure.

Labels contain names and messages of others: characters with a meaning in Mermaid or HTML are escaped.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_placement.graph.model import Graph, NodeStyle
from placement_ac.core.api.printable import visible


@dataclass(frozen=True, slots=True)
class StyleSpec:
    """How a style is drawn: the colours of the box, the dashes of its outline, and Mermaid's shape."""

    fill: str
    outline: str
    dashes: str = ""
    brackets: tuple[str, str] = ("[", "]")


STYLES: Final[Mapping[NodeStyle, StyleSpec]] = {
    "plain": StyleSpec("#f6f8fa", "#8c959f"),
    "listed": StyleSpec("#dafbe1", "#1a7f37"),
    "standby": StyleSpec("#f6f8fa", "#1a7f37", "6 3"),
    "draining": StyleSpec("#fff8c5", "#9a6700", "6 3", ("[/", "/]")),
    "selected": StyleSpec("#ddf4ff", "#0969da", brackets=("([", "])")),
    "unusable": StyleSpec("#ffebe9", "#cf222e", brackets=("{{", "}}")),
    "beyond": StyleSpec("#f6f8fa", "#8c959f", "2 3", ("[[", "]]")),
    "waiting": StyleSpec("#fbefff", "#8250df", "6 3", ("(", ")")),
    "good": StyleSpec("#f6f8fa", "#1a7f37"),
    "bad": StyleSpec("#ffebe9", "#cf222e", "6 3"),
    "missing": StyleSpec("#ffffff", "#cf222e", "2 4"),
}
INK: Final = "#1f2328"
"""The colour of the text is fixed, so a box is readable on light and dark pages."""
SAFE: Final = frozenset(" -.,:/=+'()·…—")
"""Characters that need no escape in a label, beside letters and digits."""
LABEL_MAX: Final = 80
"""Characters of a line in a box."""


def mermaid(graph: Graph) -> str:
    """Return a flowchart from left to right; the path of running Workloads is thick."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield "flowchart LR"
    for node in graph.nodes:
        begin, end = STYLES[node.style].brackets
        known = "" if node.style == "plain" else f":::{node.style}"
        texts = filter(None, (node.kind, node.name, node.caption))
        yield f"    {node.id}{begin}{_label(texts)}{end}{known}"
    for edge in graph.edges:
        line = "==>" if edge.on_workload_path else "-->" if edge.in_use else "-.->"
        label = f"|{_label((edge.label,))}|" if edge.label else ""
        yield f"    {edge.source} {line}{label} {edge.target}"
    for style in sorted({node.style for node in graph.nodes} - {"plain"}):
        spec = STYLES[style]
        dashes = f",stroke-dasharray:{spec.dashes}" if spec.dashes else ""
        colors = f"fill:{spec.fill},stroke:{spec.outline},color:{INK}"
        yield f"    classDef {style} {colors}{dashes}"


def _label(lines: Iterable[str]) -> str:
    return '"' + "<br/>".join(_escaped(line) for line in lines) + '"'


def _escaped(text: str) -> str:
    line = " ".join(visible(text).split())
    line = line if len(line) <= LABEL_MAX else line[: LABEL_MAX - 1] + "…"
    return "".join(char if char.isalnum() or char in SAFE else f"#{ord(char)};" for char in line)
