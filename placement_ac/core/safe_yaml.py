"""
Read YAML as kubectl does, in linear time, with one error for whatever is wrong with a text.

Pure. The types are YAML 1.2's core types and the booleans of YAML 1.1, as in sigs.k8s.io/yaml: no dates, no
sexagesimal numbers. The error does not quote the text, which may contain secrets; PyYAML's own errors, and
those of Python that it lets through, do.
"""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import yaml

TOO_DEEP: Final = "it is nested too deeply"
TOO_MANY_ALIASES: Final = "write the values themselves: it has far more aliases than text"
VALUES_PER_CHARACTER: Final = 10
"""A text without aliases has less than one; with aliases a few lines can stand for billions of values."""
_QUOTE: Final = re.compile(r" '(?!<[a-z ]+>').*", re.DOTALL)
"""Matches the text that PyYAML quotes; names of its own tokens, like '<stream end>', stay."""


class NotYaml(Exception):
    """Its text says why, for a person: "it is not YAML: line 3: could not find expected ':'"."""

    @property
    def is_too_deep(self) -> bool:
        return str(self) == TOO_DEEP


class _TooManyAliases(yaml.YAMLError):
    """Merge keys copy more than the text is worth."""


class KubectlLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # whichever was built
    """Loads what kubectl loads. Merge keys (`<<`) copy at most VALUES_PER_CHARACTER of the text."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}
    bool_values: ClassVar = yaml.SafeLoader.bool_values | {"y": True, "n": False}

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self._copies_left = VALUES_PER_CHARACTER * len(text)
        self._flat: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace merge keys by what they stand for, and make every key a text, as JSON has it."""
        if id(node) in self._flat:  # the document keeps it, so its id stays its own
            return
        self._flat.add(id(node))
        merged = [value for key, value in node.value if key.tag == f"{_TAG}merge"]
        node.value = [(self._as_text(key), value) for key, value in node.value if key.tag != f"{_TAG}merge"]
        copies = [pair for value in reversed(merged) for pair in self._pairs_of(value)]
        node.value = copies + node.value  # of equal keys, the last one counts

    def _pairs_of(self, merged: yaml.Node) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        parts = merged.value if isinstance(merged, yaml.SequenceNode) else [merged]
        for part in reversed(parts):
            if not isinstance(part, yaml.MappingNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "expected a mapping for merging", part.start_mark
                )
            self.flatten_mapping(part)
            self._copies_left -= len(part.value)
            if self._copies_left < 0:
                raise _TooManyAliases
            yield from part.value

    def _as_text(self, key: yaml.Node) -> yaml.Node:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in _NO_TEXT:
            return key
        value = self.construct_object(key)
        text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        return yaml.ScalarNode(f"{_TAG}str", text, key.start_mark, key.end_mark)


_TAG: Final = "tag:yaml.org,2002:"
_NUMBER: Final = f"{_TAG}float"
_NO_TEXT: Final = frozenset(_TAG + kind for kind in ("bool", "null", "int", "float"))
_INT: Final = re.compile(r"[-+]?(?:0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=[0-9])_(?=[0-9])")
"""The only underscores that Go passes over in a number that begins with its point."""
_LONGEST_INT: Final = 70
"""Characters: 64 bits in base 2, with sign and prefix."""
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


def _number(_: object, node: yaml.ScalarNode) -> float | str:
    """Return the number, or the text if it is none: in Go, an integer has 64 bits."""
    written = node.value
    plain = _BETWEEN_DIGITS.sub("", written) if written.startswith(".") else written.replace("_", "")
    plain = re.sub("^0b([-+])", r"\g<1>0b", plain)
    if len(plain) <= _LONGEST_INT and _INT.fullmatch(plain):
        digits = plain.lstrip("+-")
        octal = digits.isdecimal() and digits.startswith("0")
        value = int(plain, 8 if octal else 0)
        if _INT_MIN <= value <= _INT_MAX:
            return value
    if _FLOAT.fullmatch(plain) and math.isfinite(number := float(plain)):
        return as_in_json(number)
    return str(node.value)


def as_in_json(number: float) -> float:
    """Return a number as Go writes it in JSON, and reads it again: 1.0 and 1e3 are integers of 64 bits."""
    return int(number) if number.is_integer() and _INT_MIN <= number < _INT_MAX else number


for _kind, _pattern, _first in (
    (
        "bool",
        r"[yYnN]|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        "yYnNtTfFoO",
    ),
    ("null", r"|~|null|Null|NULL", ["", "~", "n", "N"]),
    ("float", r"[-+.0-9][-+0-9a-fA-FxXoO_.]*", "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    KubectlLoader.add_implicit_resolver(_TAG + _kind, re.compile(rf"(?:{_pattern})\Z"), list(_first))
for _kind in ("int", "float"):
    KubectlLoader.add_constructor(_TAG + _kind, _number)
KubectlLoader.add_constructor(f"{_TAG}timestamp", yaml.SafeLoader.construct_yaml_str)


def is_text(word: str) -> bool:
    """Whether kubectl reads a word without quotes as a text."""
    readings = KubectlLoader.yaml_implicit_resolvers.get(word[:1], ())
    tag = next((tag for tag, pattern in readings if pattern.match(word)), "")
    return not tag or (tag == _NUMBER and isinstance(_number(None, yaml.ScalarNode(tag, word)), str))


def load_yaml(text: str | bytes) -> Any:
    """Return the content of the only document. Raises NotYaml."""
    with yaml_errors():
        return yaml.load(text, KubectlLoader)  # noqa: S506  # a safe loader


def first_document(text: str | bytes) -> Any:
    """Return the content of the first document; None if there is none. Raises NotYaml."""
    with yaml_errors():
        return next(yaml.load_all(text, KubectlLoader), None)  # a safe loader


def load_documents(text: str | bytes) -> list[Any]:
    """Return the content of every document. Raises NotYaml."""
    with yaml_errors():
        return list(yaml.load_all(text, KubectlLoader))


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
    if isinstance(error, _TooManyAliases):
        return TOO_MANY_ALIASES
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
