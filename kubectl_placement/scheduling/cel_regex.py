"""
The functions of CEL that match regular expressions: `matches`, `find`, `findAll`.

Pure. The syntax is RE2's, as in cel-go: its time is linear in the text, which
Python's `re` does not promise. `{1000}` makes a small pattern a large program,
so the program counts, and it is bounded.
"""

from typing import Any

import re2  # type: ignore[import-untyped]  # ships no types; celpy needs it as well
from celpy.celtypes import BoolType, ListType, StringType

from kubectl_placement.scheduling.cel_budget import Budget
from kubectl_placement.scheduling.cel_functions import Function

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 17  # bytes: a program of about 5,000 instructions, compiled in some ms
_COMPILING = 1_000  # steps of a pattern's first use
_COMPILING_CHARACTER = 15
_INSTRUCTIONS = 1_000  # a step per so many instructions times characters


class Regex:
    """The functions for one evaluation, which share its budget and its compiled patterns."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._compiled: dict[str, Any] = {}

    def functions(self) -> dict[str, Function]:
        """Return them by their names in CEL."""
        return {"matches": self._matches, "find": self._find, "findAll": self._find_all}

    def _matches(self, text: Any, pattern: Any) -> BoolType:
        return BoolType(self._program(pattern, str(text)).search(str(text)) is not None)

    def _find(self, text: Any, pattern: Any) -> StringType:
        match = self._program(pattern, str(text)).search(str(text))
        return StringType(match[0] if match else "")

    def _find_all(self, text: Any, pattern: Any, limit: int = -1) -> ListType:
        where = str(text)
        program = self._program(pattern, where)
        texts: list[StringType] = []
        for match in program.finditer(where):
            if 0 <= limit <= len(texts):
                break
            texts.append(StringType(match[0]))
            self._pay(program, len(where) - match.end())
        return ListType(texts)

    def _program(self, pattern: Any, text: str) -> Any:
        """Return the compiled pattern with the search of `text` paid; raise ValueError if it is none."""
        key = str(pattern)
        if key not in self._compiled:
            self._budget.pay(_COMPILING + _COMPILING_CHARACTER * len(key))
            self._compiled[key] = _compile(key)
        program = self._compiled[key]
        if program is None:
            raise ValueError(f"{key!r} is no regular expression")
        self._pay(program, len(text))
        return program

    def _pay(self, program: Any, characters: int) -> None:
        self._budget.pay(1 + program.programsize * characters // _INSTRUCTIONS)


def _compile(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error:
        return None
