"""One finding for one cause: those that differ only in the name of the cluster become one. Pure."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kubectl_placement.doctor.finding import Finding

ANY: Final = "CLUSTER"
"""Stands for the name of each cluster in a message and in a fix."""

_ALPHANUMERIC: Final = re.compile(r"[A-Za-z0-9]")
_GOES_ON: Final = re.compile(r"[-.]?[A-Za-z0-9]")
"""The beginning of what follows a name that is part of a longer one."""


def grouped(findings: Iterable[Finding], *, named: bool = False) -> tuple[Finding, ...]:
    """Return the findings in order; those with one cause once, with the names of all its clusters.

    `named`: a message about a single cluster begins with its name, too.
    """
    groups: dict[object, list[Finding]] = {}
    for place, finding in enumerate(findings):
        key: object = place
        if finding.cluster and finding.is_problem:
            texts = _of_any(finding.message, finding), _of_any(finding.fix, finding)
            key = (finding.check, finding.level, *texts)
        groups.setdefault(key, []).append(finding)
    return tuple(_merged(group, named) for group in groups.values())


def _of_any(text: str, finding: Finding) -> str:
    """Return a text with `ANY` for the name. A pattern for each name would take 0.2 ms to compile."""
    name, parts, done = finding.cluster, list[str](), 0
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if (at and _ALPHANUMERIC.match(text, at - 1)) or _GOES_ON.match(text, end):
            at = text.find(name, at + 1)
        else:
            parts += text[done:at], ANY
            done, at = end, text.find(name, end)
    return "".join((*parts, text[done:]))


def _merged(group: list[Finding], named: bool) -> Finding:
    first = group[0]
    names = list(dict.fromkeys(finding.cluster for finding in group))
    if len(names) == 1:
        return replace(first, message=f"{first.cluster}: {first.message}") if named else first
    abouts = {finding.about for finding in group}
    return replace(
        first,
        message=f"{', '.join(names)}: {_of_any(first.message, first)}",
        fix=_fix(group, names),
        about=first.about if len(abouts) == 1 else "",
        also_about=tuple(dict.fromkeys(finding.about for finding in group)) if len(abouts) > 1 else (),
        causes=tuple(dict.fromkeys(cause for finding in group for cause in finding.causes)),
        cluster="",
    )


def _fix(group: list[Finding], names: list[str]) -> str:
    """Return a loop over the clusters; the fixes one by one where a shell would not put the name in."""
    first = group[0]
    if "'" in first.fix or ANY not in (general := _of_any(first.fix, first)):
        return "\n".join(dict.fromkeys(finding.fix for finding in group if finding.fix))
    return f"for {ANY} in {shlex.join(names)}; do {general.replace(ANY, f'${{{ANY}}}')}; done"
