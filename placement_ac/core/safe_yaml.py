"""
One error for whatever is wrong with a text that should be YAML.

Pure. The error does not quote the text, which may contain secrets; PyYAML's own errors, and those of Python
that it lets through, do.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import yaml

TOO_DEEP: Final = "it is nested too deeply"
_QUOTE: Final = re.compile(r" '(?!<[a-z ]+>').*", re.DOTALL)
"""Matches the text that PyYAML quotes; names of its own tokens, like '<stream end>', stay."""


class NotYaml(Exception):
    """Its text says why, for a person: "it is not YAML: line 3: could not find expected ':'"."""

    @property
    def is_too_deep(self) -> bool:
        return str(self) == TOO_DEEP


@contextmanager
def yaml_errors(*passed: type[Exception]) -> Iterator[None]:
    """Raise NotYaml instead of any error inside, but for those `passed`."""
    try:
        yield
    except passed:
        raise
    except Exception as error:  # PyYAML lets through whatever Python says of a tagged value, and quotes it
        raise NotYaml(yaml_problem(error)) from None


def yaml_problem(error: Exception) -> str:
    """Return why a text is not YAML, by the error of its parser, without quoting the text."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    if isinstance(error, yaml.MarkedYAMLError):
        if "nesting depth" in str(error.problem):  # PyYAML 6.0.4 or newer
            return TOO_DEEP
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        return f"it is not YAML: {line}{_QUOTE.sub('', str(error.problem))}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    if isinstance(error, yaml.YAMLError):
        return "it is not YAML: it has control characters"
    return "it is not YAML: a value is not of its type"
