"""
The page itself: its HTML, style and script are beside this file, and become one document.

It loads nothing. The Content-Security-Policy allows only its own style and script, by their hashes, and
requests to its own server.
"""

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from kubectl_placement.drawing.html_page import hash_of

_STYLE: Final = "/* style */"
_SCRIPT: Final = "/* script */"


@dataclass(frozen=True, slots=True)
class Page:
    """The document, and the policy to send with it."""

    text: str
    policy: str


def read_page() -> Page:
    """Return the page."""
    folder = files(__package__)
    text, style, *scripts = (
        (folder / name).read_text("utf-8") for name in ("page.html", "page.css", "page.js", "page_live.js")
    )
    script = "".join(scripts)
    policy = (
        f"default-src 'none'; style-src '{hash_of(style)}'; script-src '{hash_of(script)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(text.replace(_STYLE, style).replace(_SCRIPT, script), policy)
