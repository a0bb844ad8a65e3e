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
_WIDE: Final = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
_FILLER: Final = "\u00af"
"""Follows each Chinese character while Mermaid measures the texts: it takes them for narrower."""
_NATURAL_WIDTH: Final = re.compile(r"max-width: ([\d.]+)px;")


@cache
def picture(source: str) -> str:
    """Return a Mermaid diagram as an HTML figure with unique ids: a page may have several."""
    name = "picture-" + hashlib.sha256(source.encode()).hexdigest()[:8]
    widened = _WIDE.sub(lambda char: char[0] + _FILLER, source)
    svg = mermaidx.render(widened, config=_CONFIG).svg().replace(_FILLER, "").replace("my-svg", name)
    width = _NATURAL_WIDTH.search(svg)
    least = f"min-width: {min(float(width[1]), 700):.0f}px; {width[0]}" if width else ""
    svg = _NATURAL_WIDTH.sub(least, svg, count=1)
    return f'<figure class="picture">{svg}</figure>'


def fence(source: str, *_: Any, **__: Any) -> str:
    """Format a fence, as pymdownx.superfences asks for it."""
    return picture(source)
