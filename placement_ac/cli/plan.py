"""`placement-ac plan`: what would these manifests change, before they are applied?"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import click
from rich.console import RenderableType
from rich.text import Text

from placement_ac.cli.hub_options import (
    Look,
    ReadingCommand,
    Where,
    look,
    look_everywhere,
    looks,
    on_hub,
    tell_missing,
)
from placement_ac.cli.output import Form, emit, harmless, output, said
from placement_ac.core.api.constants import CLUSTER_PROFILE, SECRET, WORKLOAD
from placement_ac.core.api.text import count_text, joined
from placement_ac.inspection.hub.dump import Object
from placement_ac.inspection.hub.kinds import DECIDING, MADE, QUEUES
from placement_ac.inspection.plan.plan_report import Affected, Entry, ObjectChange, PlacementPlan, WhatIf
from placement_ac.inspection.plan.what_if import what_if
from placement_ac.inspection.readers.manifests import STDIN, read

CHANGES: Final = 2
"""The exit code when something would change."""
KINDS: Final = (*DECIDING, *QUEUES, *MADE)
_DISPENSABLE: Final = (SECRET, CLUSTER_PROFILE, WORKLOAD, *QUEUES, *MADE)
"""Kinds without which one can still tell what would be decided and listed."""
_COLOURS: Final = (("@@", "cyan"), ("---", "bold"), ("+++", "bold"), ("+", "green"), ("-", "red"))


@dataclass(frozen=True, slots=True)
class Document:
    """What `-o json` prints."""

    placements: tuple[PlacementPlan, ...]
    objects: tuple[ObjectChange, ...]
    passed_over: tuple[str, ...]
    warnings: tuple[str, ...]


@click.command(
    "plan",
    cls=ReadingCommand,
    epilog="Example:  placement-ac plan -f samples/placement-demo2-2.yaml",
)
@looks
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="The manifests: a file, a folder, or - for stdin; may be given several times.",
)
@output("json", "yaml", "name")
def command(where: Where, files: tuple[str, ...], form: Form) -> None:
    """Tell what manifests would change, before they are applied.

    Exit code: 0 nothing changes, 2 something does, 1 it cannot be told.
    """
    if STDIN in files and STDIN in where.dump:
        raise click.UsageError("stdin can be read once: give one of -f and --from-dump a file")
    manifests = read(files)
    found = _looked(where, _namespaces(manifests))
    answer = what_if(found.view, manifests)
    for name in answer.passed_over:
        click.echo(f"not looked at: {harmless(name)}", err=True)
    for warning in answer.warnings:
        click.echo(f"warning: {warning}", err=True)
    document = Document(
        tuple(one.plan for one in answer.entries), answer.objects, answer.passed_over, answer.warnings
    )
    emit(form, document, lambda _: _told(answer), lambda: _names(answer))
    if answer.changed:
        click.get_current_context().exit(CHANGES)


def _namespaces(manifests: Iterable[Object]) -> list[str]:
    found = (one["metadata"].get("namespace") for one in manifests)
    return sorted({one for one in found if isinstance(one, str) and one})


def _looked(where: Where, namespaces: Collection[str]) -> Look:
    if where.dump:
        return look(where, KINDS)
    found = on_hub(where, lambda client: look_everywhere(client, where, KINDS, namespaces))
    needed = [right for right in found.dump.missing if right.kind not in _DISPENSABLE]
    tell_missing(found.dump.missing)
    if needed:
        raise click.ClickException(f"without the right to {joined(map(str, needed))} nothing can be foretold")
    return found


# -- for people


def _names(answer: WhatIf) -> Iterator[str]:
    return (f"placement/{one.plan.namespace}/{one.plan.name}" for one in answer.entries if one.changed)


def _told(answer: WhatIf) -> Iterator[RenderableType]:
    for one in answer.objects:
        if one.verb != "none":
            name = "/".join(filter(None, (one.namespace, one.name)))
            yield Text(f"{one.verb} {one.kind} {name}")
    for entry in answer.entries:
        yield Text()
        yield from _of_placement(entry)
    if not answer.changed:
        yield Text("Nothing changes.")


def _of_placement(entry: Entry) -> Iterator[RenderableType]:
    plan = entry.plan
    yield said(f"Placement {plan.namespace}/{plan.name}", "bold")
    for cluster in plan.added:
        yield said(f"  + {cluster}{_in_brackets(entry.ways.get(cluster, ''))}", "green")
    for cluster in plan.removed:
        yield said(f"  - {cluster}{_in_brackets(_leaves(entry, cluster))}", "red")
    yield from (said(f"  {line}") for line in _lines(entry))
    yield from (said(f"  warning: {one}", "yellow") for one in plan.warnings)
    for write in plan.writes:
        yield Text()
        yield said(f"{write.verb} {write.kind} {write.name}, {write.when}", "bold")
        yield from map(_coloured, write.diff.splitlines())


def _in_brackets(told: str) -> str:
    return f" ({told})" if told else ""


def _leaves(entry: Entry, cluster: str) -> str:
    jobs = [one for one in entry.plan.affected if one.cluster == cluster]
    if jobs:
        return f"drains: {', '.join(_counted(jobs))}"
    if cluster in entry.plan.draining:
        return "it stays for now: OCM cannot reach it"
    if not entry.listed:
        return ""
    return "no job is there" if entry.jobs_known else "whether jobs are there is not known"


def _counted(jobs: Sequence[Affected]) -> Iterator[str]:
    for state in ("running", "waiting"):
        of_it = [one for one in jobs if one.state == state]
        if of_it:
            gpus = sum(one.gpus for one in of_it)
            with_gpus = f" with {count_text(gpus, 'GPU')}" if gpus else ""
            yield f"{count_text(len(of_it), f'{state} Workload')}{with_gpus}"


def _lines(entry: Entry) -> Iterator[str]:
    plan = entry.plan
    what = "Kueue's list" if entry.listed else "decisions, best first (no AdmissionCheck names it)"
    yield f"{what}: {', '.join(plan.order) or 'empty'}"
    if plan.beyond:
        yield f"{len(plan.beyond)} beyond the {entry.seats} clusters that Kueue takes: {joined(plan.beyond)}"
    yield from (f"unusable: {cluster}: {why}" for cluster, why in plan.unusable.items())
    for one in plan.conditions:
        yield f"{one.type}: {one.status}, {one.reason}: {one.message}"
    for check in plan.checks:
        before = f"{check.before.status}, {check.before.reason}" if check.before else "nothing yet"
        after = f"{check.after.status}, {check.after.reason}: {check.after.message}"
        yield f"AdmissionCheck {check.name}: {before} → {after}"


def _coloured(line: str) -> Text:
    return said(line, next((colour for start, colour in _COLOURS if line.startswith(start)), ""))
