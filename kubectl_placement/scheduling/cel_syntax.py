"""
CEL syntax that cel-go reads and celpy does not: optional types, quoted identifiers, trailing commas.

Pure. Source: cel-go `parser/gen/CEL.g4`. Positions stay, so that errors name the right column.
"""

import re

_OPAQUE = (
    r"//[^\n]*"
    r"|[bB]?[rR][bB]?(?:\"\"\".*?\"\"\"|'''.*?'''|\"[^\"\n]*\"|'[^'\n]*')"
    r"|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
)
"""Comments and texts, which stay as they are."""
_OPTIONAL = r"(?<=[.\[{,])(?P<space>\s*)\?"
_QUOTED = r"`[a-zA-Z0-9_.\-/ ]+`"
_TRAILING = r",(?=\s*[\]}])"
_TOKENS = re.compile(
    rf"(?:{_OPAQUE})|(?P<optional>{_OPTIONAL})|(?P<quoted>{_QUOTED})|(?P<trailing>{_TRAILING})", re.DOTALL
)


def plain_syntax(text: str) -> tuple[str, str]:
    """Return the expression in the syntax that celpy reads, and which of cel-go's extensions it uses.

    "": none, or trailing commas, without which it means the same.
    """
    kinds = {token.lastgroup for token in _TOKENS.finditer(text)}
    extension = "optional types" if "optional" in kinds else "quoted identifiers" if "quoted" in kinds else ""
    return _TOKENS.sub(_replaced, text), extension


def _replaced(match: re.Match[str]) -> str:
    if match["optional"] is not None:
        return f"{match['space']} "
    if match["quoted"] is not None:
        return "x" * len(match[0])
    return " " if match["trailing"] is not None else match[0]
