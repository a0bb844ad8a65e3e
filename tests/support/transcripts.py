"""The commands in the fenced blocks of a page, with the output that the page shows. Pure."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_FENCE: Final = re.compile(r"^ *```(bash|console)?.*?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_HERE: Final = re.compile(r"<<'?(\w+)'?")
PROMPT: Final = "$ "


class Shown(NamedTuple):
    """A command of a page. `output`: what the page shows below it; None if it shows none."""

    command: str
    output: str | None


class Fragment(NamedTuple):
    """Output that is shown without a command."""

    output: str


def shown_on(text: str) -> list[Shown | Fragment]:
    """Return the commands and the fragments of a page in their order."""
    found = list[Shown | Fragment]()
    for language, block in _FENCE.findall(text):
        if language == "bash":
            found += [Shown(command, None) for command in _commands(_dedented(block))]
        elif language == "console":
            found += _console(_dedented(block))
    return found


def _dedented(block: str) -> list[str]:
    lines = block.splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]


def _commands(lines: list[str]) -> Iterator[str]:
    """Yield each command: with the lines that continue it, and without comments."""
    command, end = list[str](), ""
    for line in lines:
        command.append(line if end else re.sub(r"(^|\s+)#\s.*$", "", line).rstrip())
        if not end and (here := _HERE.search(line)):
            end = here[1]
        elif line == end:
            end = ""
        if not end and not command[-1].endswith(("\\", "|")):
            if command[-1]:
                yield "\n".join(command)
            command = []


def _console(lines: list[str]) -> Iterator[Shown | Fragment]:
    """Yield each command with its output; a block without a command is a fragment."""
    starts = [number for number, line in enumerate(lines) if line.startswith(PROMPT)]
    if not starts or starts[0] != 0:
        yield Fragment("\n".join(lines))
        return
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        last = next(number for number in range(start, end) if not lines[number].endswith(("\\", "|")))
        command = "\n".join(lines[start : last + 1]).removeprefix(PROMPT)
        yield Shown(command, "\n".join(lines[last + 1 : end]))
