"""
A graph as Mermaid, which GitHub and GitLab draw in Markdown. Pure.

Labels contain names and messages of others: characters with a meaning in Mermaid or HTML are escaped.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_placement.drawing.svg import PALETTE, clean
from kubectl_placement.graph.model import STYLES, Graph

SAFE: Final = frozenset(" -.,:/=+'()·…—")
"""Characters that need no escape in a label, beside letters and digits."""
LABEL_MAX: Final = 80
"""Characters of a line in a box; `-o html` has the full text."""


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
        spec, light = STYLES[style], {name: colors[0] for name, colors in PALETTE.items()}
        dashes = f",stroke-dasharray:{spec.dashes}" if spec.dashes else ""
        # The text colour is fixed, so a box is readable on light and dark pages.
        colors = f"fill:{light[spec.fill]},stroke:{light[spec.outline]},color:{light['ink']}"
        yield f"    classDef {style} {colors}{dashes}"


def _label(lines: Iterable[str]) -> str:
    return '"' + "<br/>".join(_escaped(line) for line in lines) + '"'


def _escaped(text: str) -> str:
    line = " ".join(clean(text).split())
    line = line if len(line) <= LABEL_MAX else line[: LABEL_MAX - 1] + "…"
    return "".join(one if one.isalnum() or one in SAFE else f"#{ord(one)};" for one in line)
