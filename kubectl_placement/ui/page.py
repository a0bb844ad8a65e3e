"""
The page itself: its HTML, style and scripts are beside this file, and become one document.

It loads nothing. The Content-Security-Policy allows only its own style and script, by their hashes, and
requests to its own server.
"""

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import orjson

from placement_ac.core.api.printable import NOT_SHOWN, visible

POLICY: Final = "<!-- policy -->\n"
DATA: Final = "<!-- data -->\n"
"""Where a file has its policy and its data; a server sends them."""
_STYLE: Final = "/* style */"
_SCRIPT: Final = "/* script */"
_SCRIPTS: Final = ("page.js", "page_drawings.js", "page_jobs.js", "page_live.js")
_ESCAPE: Final = re.compile(r"\\u[0-9a-f]{4}|\\.")
"""An escape in JSON."""


@dataclass(frozen=True, slots=True)
class Page:
    """The document, and the policy to send with it."""

    text: str
    policy: str


def read_page() -> Page:
    """Return the page for a server."""
    page = template()
    text = page.text.replace(POLICY, "").replace(DATA, "")
    return Page(text, f"{page.policy}; connect-src 'self'; frame-ancestors 'none'")


def to_json(value: object) -> bytes:
    """Return JSON in which characters that nobody sees are the text of an escape, which the page shows."""
    text = orjson.dumps(value).decode()
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: _shown(match[0], json.loads(f'"{match[0]}"')), text)
    if not (text.isascii() and text.isprintable()):
        text = NOT_SHOWN.sub(lambda match: _shown(match[0], match[0]), text)
    return text.encode()


def _shown(in_json: str, character: str) -> str:
    return visible(character).replace("\\", "\\\\") if NOT_SHOWN.fullmatch(character) else in_json


def template() -> Page:
    """Return the document with the places for a policy and for data, and the policy."""
    folder = files(__package__)
    text, style, *scripts = (
        (folder / name).read_text("utf-8") for name in ("page.html", "page.css", *_SCRIPTS)
    )
    script = "".join(scripts)
    policy = (
        f"default-src 'none'; style-src '{_hash_of(style)}'; script-src '{_hash_of(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return Page(text.replace(_STYLE, style).replace(_SCRIPT, script), policy)


def _hash_of(text: str) -> str:
    """Return the hash of a script or a style for a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
