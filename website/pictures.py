"""
Renders Mermaid diagrams as pictures in the page.

Mermaid draws them while the site is built: a reader's browser loads nothing from another host and runs no
script. `docs/assets/site.css` gives them the colours of the theme.
"""

import hashlib
import re
from functools import cache
from typing import Any, Final

import mermaidx  # type: ignore[import-untyped]  # it has no types

_CONFIG: Final = {"flowchart": {"wrappingWidth": 420, "rankSpacing": 36, "nodeSpacing": 32}}
_NATURAL_WIDTH: Final = re.compile(r"max-width: ([\d.]+)px;")


@cache
def picture(source: str) -> str:
    """Return a Mermaid diagram as an HTML figure with unique ids: a page may have several."""
    name = "picture-" + hashlib.sha256(source.encode()).hexdigest()[:8]
    svg = mermaidx.render(source, config=_CONFIG).svg().replace("my-svg", name)
    width = _NATURAL_WIDTH.search(svg)
    least = f"min-width: {min(float(width[1]), 700):.0f}px; {width[0]}" if width else ""
    svg = _NATURAL_WIDTH.sub(least, svg, count=1)
    return f'<figure class="picture">{svg}</figure>'


def fence(source: str, *_: Any, **__: Any) -> str:
    """Format a fence, as pymdownx.superfences asks for it."""
    return picture(source)
