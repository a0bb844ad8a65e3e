"""
Show characters that control a terminal, or that nobody sees. Pure.

Others write names, labels and messages. A terminal obeys their control characters (C0, C1), bidi overrides
change the order in which a line is read, and characters without width hide in a name.
"""

import re
from typing import Final

_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Unicode: format characters, separators of lines, and letters without a glyph."""
_CONTROLS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""All but the tab and the line feed."""
NOT_SHOWN: Final = re.compile(f"[{_CONTROLS}{_INVISIBLE}\ud800-\udfff]")
"""A character that `visible` replaces; surrogates cannot be encoded."""
_BREAKS: Final = re.compile(r"(\r?\n|\t)+")


def visible(text: str) -> str:
    """Return a text with escapes for such characters, as Python and YAML write them: `\\x1b`, `\\u202e`."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text  # the usual case: ten times as fast
    return NOT_SHOWN.sub(lambda match: _escaped(ord(match[0])), text)


def one_line(text: str) -> str:
    """Return an untrusted text on one line, with such characters as escapes."""
    return visible(_BREAKS.sub(" ", text))


def _escaped(code: int) -> str:
    if code <= 0xFF:  # noqa: PLR2004, RUF100  # two hex digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004, RUF100  # four or eight
