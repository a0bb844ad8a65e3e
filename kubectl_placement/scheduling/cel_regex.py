"""
Regular expressions as in Go: `find` and `findAll` of Kubernetes, and whether a text matches.

Pure. RE2 inside the CEL runtime, so the time is linear in the text. Its functions return what a group
catches, if there is one: so the pattern's groups become groups that catch nothing.
"""

import re
from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # its stubs are not marked as such

_ENVIRONMENT: Final = cel.NewEnv(
    config=cel.NewEnvConfigFromYaml('{"extensions": [{"name": "optional"}, {"name": "regex"}]}'),
    variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING},
)
_FIRST: Final = _ENVIRONMENT.compile('regex.extract(text, pattern).orValue("")')
_ALL: Final = _ENVIRONMENT.compile("regex.extractAll(text, pattern)")
_MATCHES: Final = _ENVIRONMENT.compile("text.matches(pattern)")
_GROUP: Final = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]|\((?:\?P?<\w+>|(?!\?))", re.DOTALL
)


def matches(text: str, pattern: str) -> bool:
    """Say whether a part of `text` matches; raise ValueError if `pattern` is none."""
    return bool(_evaluated(_MATCHES, text, pattern))


def find(text: str, pattern: str) -> str:
    """Return the first match, empty if there is none; raise ValueError if `pattern` is none."""
    return str(_evaluated(_FIRST, text, _without_groups(pattern)))


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the matches, at most `limit` unless that is negative; raise ValueError if `pattern` is none."""
    found: list[str] = _evaluated(_ALL, text, _without_groups(pattern))
    return found if limit < 0 else found[:limit]


def _evaluated(expression: cel.Expression, text: str, pattern: str) -> Any:
    value = expression.eval(data={"text": text, "pattern": pattern})
    if value.type() == cel.Type.ERROR:
        raise ValueError("no regular expression")
    return value.plain_value()


def _without_groups(pattern: str) -> str:
    return _GROUP.sub(lambda match: "(?:" if match[0][0] == "(" else match[0], pattern)
