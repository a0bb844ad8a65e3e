"""
The words of a command line that kubectl reads and click does not: `-o=name`, `--follow=true`, and
`--context hub status`. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import click

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""The values of a flag (Go: strconv.ParseBool)."""
_OF_EACH: Final = ("--kubeconfig", "--context", "--as", "--as-group", "--as-uid", "-n", "--namespace")
"""The options before a command that are its own: kubectl has them before and behind."""


def with_command_first(words: Sequence[str]) -> list[str]:
    """Return the words with such options moved behind the command, if one follows them."""
    rest = [*words]
    while rest and rest[0].partition("=")[0] in _OF_EACH:
        del rest[: 1 if "=" in rest[0] else 2]
    moved = words[: len(words) - len(rest)]
    if not rest or rest[0].startswith("-"):
        return [*words]
    return [rest[0], *moved, *rest[1:]]


def as_click_reads(words: Iterable[str], params: Sequence[click.Parameter]) -> list[str]:
    """Return the words for a command with `params`; those behind `--` and values of options stay."""
    return [*_converted(iter(words), _by_name(params))]


def _by_name(params: Sequence[click.Parameter]) -> dict[str, click.Option]:
    options = [param for param in params if isinstance(param, click.Option)]
    return {name: option for option in options for name in option.opts}


def _converted(words: Iterator[str], options: dict[str, click.Option]) -> Iterator[str]:
    for word in words:
        if word == "--":
            yield from (word, *words)
            return
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is None or option.nargs != 1:
            yield word
        elif option.is_flag:
            yield from _flag(name, value) if equals else (word,)
        elif not equals:
            yield from (word, *islice(words, 1))
        elif name.startswith("--"):
            yield word
        else:
            yield from (name, value)


def _flag(name: str, value: str) -> tuple[str, ...]:
    if value in _FALSE:
        return ()
    return (name,) if value in _TRUE else (f"{name}={value}",)  # click objects to the latter
