"""
Read JSON with objects that are nested more deeply than a parser goes.

A ClusterProfile takes any extension of its cluster, and a kube-apiserver takes 10,000 levels. One such object
must not make its whole list unreadable: what lies too deep is cut out, and the object is left out then.
"""

import re
from typing import Any, Final

import orjson

MAX_LEVELS: Final = 500
"""orjson reads 1,024; the schema of a CRD, which is the deepest object that somebody needs, has some 60."""
CUT: Final = "placement-ac: what was here is nested too deeply"
_CUT_JSON: Final = orjson.dumps(CUT)
_TOKENS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]++|[\]}]++', re.DOTALL)
"""A string, or a run of brackets: without a step back, and an unfinished string goes to the end."""


def loads(text: bytes) -> tuple[Any, bool]:
    """Return the value, and whether something was cut out of it. Raises orjson.JSONDecodeError."""
    try:
        return orjson.loads(text), False
    except orjson.JSONDecodeError as error:
        if "depth limit" not in error.msg:
            raise
    return orjson.loads(_cut(text)), True


def _cut(text: bytes) -> bytes:
    """Put a mark in the place of every list and map that lies below MAX_LEVELS."""
    parts: list[bytes] = []
    level, start = 0, 0
    for token in _TOKENS.finditer(text):
        run, first = token.end() - token.start(), token[0][0]
        if first in b"[{":
            if level <= MAX_LEVELS < level + run:
                parts += (text[start : token.start() + MAX_LEVELS - level], _CUT_JSON)
            level += run
        elif first in b"]}":
            if level - run <= MAX_LEVELS < level:
                start = token.start() + level - MAX_LEVELS
            level -= run
    return b"".join((*parts, text[start:]))


def is_cut(value: object) -> bool:
    """Whether something was cut out of a value that `loads` has returned."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict | list):
            todo += node.values() if isinstance(node, dict) else node
        elif node == CUT:
            return True
    return False


def name_of(obj: object) -> str:
    """Return namespace and name of an object of any shape; "" if it has none."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    return "/".join(part for key in ("namespace", "name") if isinstance(part := metadata.get(key), str))
