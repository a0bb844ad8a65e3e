"""`placement-ac explain`: each step in a sentence, and the step that decides."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_placement.cli.controller_line import controller_line
from kubectl_placement.cli.explain_workload import workload_texts
from kubectl_placement.cli.hub_names import check_references, named_checks, subject_words
from kubectl_placement.cli.hub_options import (
    EXPLAIN_KINDS,
    HubSource,
    hub_options,
    may_run_again,
    read_all_namespaces,
)
from kubectl_placement.cli.missing_kinds import (
    exit_if_unreadable,
    report_missing,
    require_readable,
    require_served,
    require_settings,
)
from kubectl_placement.cli.output import emit, plain_table, safe_text
from kubectl_placement.cli.worker_options import (
    WorkerOptions,
    foreign_job_notes,
    quota_options,
    require_hub,
    with_quota,
)
from kubectl_placement.explain.explanations import (
    CheckExplanation,
    ClusterExplanation,
    ClusterSummary,
    explain_check,
    explain_cluster,
    explain_placement,
)
from kubectl_placement.explain.steps import ExplainStep, PlacementView, StepName, StepResult
from kubectl_placement.explain.subject import (
    KINDS,
    Subject,
    find_check,
    find_cluster,
    find_placement,
    find_workload,
    names_workload,
    parse_subject,
    placement_views,
)
from kubectl_placement.explain.workload import explain_workload
from kubectl_placement.hub.controller_state import ControllerState, controller_state
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.requirements import READ_KINDS, SCHEDULING_KINDS, SERVED_KINDS
from kubectl_placement.jobs.finished_jobs import warning_text
from kubectl_placement.jobs.lookup import SubjectNotFound
from kubectl_placement.jobs.worker_quota import workers_to_ask
from placement_ac.cli.documents import Form, output
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import LEASE, WORKLOAD
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.text import joined

NEEDED: Final = (*SERVED_KINDS, *SCHEDULING_KINDS)
"""The kinds that the hub must serve."""
READABLE: Final = (*READ_KINDS, *SCHEDULING_KINDS)
"""Without the right to read one of these, the explanation has gaps: exit code 1."""
WHOLE: Final = 5
"""Up to this many Placements, all steps are shown; beyond, only the step that decides."""
WHYS: Final = 5
"""Up to this many reasons of one step have a line each."""
MARKS: Final = {
    StepResult.PASSED: ("✓", "+", "green"),
    StepResult.FAILED: ("✗", "x", "red"),
    StepResult.NOTE: ("•", "-", "dim"),
    StepResult.UNKNOWN: ("?", "?", "yellow"),
}
"""The mark of each result, the one for terminals without Unicode, and the style."""


Explanations = tuple[ClusterExplanation | CheckExplanation, ...]


@click.command(
    "explain",
    cls=ReadCommand,
    epilog="Example:  placement-ac explain cluster cluster1 --check placement-demo2",
)
@click.argument("words", nargs=-1, required=True, metavar="[TYPE] NAME", shell_complete=subject_words)
@click.option(
    "--check",
    default="",
    metavar="NAME",
    callback=named_checks,
    shell_complete=check_references,
    help="Explain a cluster for this check only.",
)
@hub_options
@quota_options
@output("wide", "json", "yaml")
def command(
    words: tuple[str, ...], check: str, where: HubSource, wanted: WorkerOptions | None, form: Form
) -> None:
    """Explain why a cluster is selected or not, step by step; or all clusters of a check.

    TYPE is cluster, check, placement or workload, or the kind's name in the API; also TYPE/NAME. Of a
    workload, or of the workload of the Job NAME: to which clusters it goes, and why not to others; there, -n
    is its namespace, and with --workers the quota of the workers counts.
    """
    if len(words) > 2:  # noqa: PLR2004, RUF100  # TYPE NAME
        raise click.UsageError(f"name one object, as TYPE NAME: {' '.join(words)}")
    if names_workload(words):
        if check:
            raise click.UsageError("use --check only with a cluster")
        _explain_workload(words, where, wanted, form)
        return
    if wanted:
        raise click.UsageError("use --workers only with a workload")
    reading = read_all_namespaces(where, (*EXPLAIN_KINDS, LEASE))
    require_served(reading, NEEDED)
    require_settings(reading)
    try:
        subject, checks = explain(reading.view, words, check, where)
    except SubjectNotFound:
        require_readable(reading, KINDS.values())
        raise
    report_missing(reading)
    view, controller = reading.view, controller_state(reading.view)
    document = {"controller": controller, "subject": subject, "checks": checks}
    emit(form, document, lambda wide: (*_controller(view, controller), *_shown(subject, checks, wide)))
    exit_if_unreadable(reading, READABLE)


def _explain_workload(
    words: tuple[str, ...], where: HubSource, wanted: WorkerOptions | None, form: Form
) -> None:
    """Explain a Workload; `-n` is its namespace, and that of the Placements is the controller's."""
    require_hub(where, wanted)
    reading = read_all_namespaces(replace(where, namespace=()), (*EXPLAIN_KINDS, LEASE))
    require_served(reading, SERVED_KINDS)
    require_readable(reading, (WORKLOAD,))
    require_settings(reading)
    raw = find_workload(reading.view, parse_subject(words, reading.view).name, where.namespace)
    report_missing(reading)
    view, notes, job = reading.view, list[str](), workload_with_job(raw)
    if may_run_again(where, reading, raw):
        notes.append(warning_text("its Job", sent=bool(job.cluster)))
    if wanted:
        view = with_quota(where, view, workers_to_ask(view, job), wanted)
        notes += foreign_job_notes(where, view, raw, wanted)
    workload, controller = explain_workload(view, raw, notes), controller_state(view)
    subject = Subject("workload", workload.name, workload.namespace)
    document = {"controller": controller, "subject": subject, "workload": workload}

    def shown(wide: bool) -> Iterator[RenderableType]:
        yield from _controller(view, controller)
        yield from workload_texts(workload, view.now, wide=wide)

    emit(form, document, shown)
    exit_if_unreadable(reading, READABLE)


def explain(
    view: HubView, words: tuple[str, ...], check: str, where: HubSource
) -> tuple[Subject, Explanations]:
    """Return the object that the words name, and its explanations. Raises SubjectNotFound."""
    subject = parse_subject(words, view)
    if subject.type == "cluster":
        name = find_cluster(view, subject.name)
        cases = placement_views(view, check, where.namespace)
        return subject, tuple(explain_cluster(case, name) for case in cases)
    if check:
        raise click.UsageError("use --check only with a cluster")
    if subject.type == "check":
        return subject, (explain_check(view, find_check(view, subject.name)),)
    case = PlacementView(view, find_placement(view, subject.name, where.namespace))
    return Subject(subject.type, case.name, case.namespace), (explain_placement(case),)


# -- tables


def _controller(view: HubView, controller: ControllerState) -> Iterator[RenderableType]:
    if view.dump.knows(LEASE) or view.dump.live:
        yield controller_line(controller, view.now)
        yield Text()


def _shown(subject: Subject, checks: Explanations, wide: bool) -> Iterator[RenderableType]:
    chains = [check for check in checks if isinstance(check, ClusterExplanation)]
    if not checks:
        yield Text("No Placement could select it.")
    elif len(chains) > WHOLE and not wide:
        table = plain_table("PLACEMENT", "CHECKS", "OUTCOME", "STEP", "WHY")
        for chain in chains:
            texts = chain.placement, joined(chain.checks), chain.state, chain.step, chain.why
            table.add_row(*map(safe_text, texts))
        yield table
        yield Text(f"\nFor all steps: explain cluster {subject.name} --check NAME, or -o wide")
        return
    for number, explanation in enumerate(checks):
        if number:
            yield Text()
        yield safe_text(_title(explanation), "bold")
        yield _step_table(explanation.links, wide)
        if isinstance(explanation, CheckExplanation) and explanation.clusters:
            yield Text()
            yield _cluster_table(explanation.clusters, wide)


def _title(explanation: ClusterExplanation | CheckExplanation) -> str:
    placement = f"Placement {explanation.placement}" if explanation.placement else "no Placement"
    subject = f"{placement} (check {joined(explanation.checks)})" if explanation.checks else placement
    if isinstance(explanation, CheckExplanation):
        return subject[0].upper() + subject[1:]
    where = "" if explanation.step in (StepName.LIST, StepName.DECISION) else f", by {explanation.step}"
    return f"Cluster {explanation.cluster} for {subject}: {explanation.state}{where}"


def _step_table(links: Iterable[ExplainStep], wide: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    unicode = _encodes_marks()
    for link in links:
        mark, plain_mark, style = MARKS[link.outcome]
        table.add_row(
            Text(mark if unicode else plain_mark, style),
            Text(link.step, no_wrap=True),
            safe_text(link.sentence),
            *([safe_text(link.source)] if wide else []),
        )
    return table


def _encodes_marks() -> bool:
    """Whether the terminal's encoding has all marks."""
    try:
        "".join(mark for mark, _, _ in MARKS.values()).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _cluster_table(clusters: Iterable[ClusterSummary], wide: bool) -> Table:
    table = plain_table("CLUSTER", "OUTCOME", "STEP", "WHY")
    for names, cluster in [([row.cluster], row) for row in clusters] if wide else grouped(clusters):
        message = f"{len(names)}: {joined(names)}" if len(names) > 1 else names[0]
        table.add_row(*map(safe_text, (message, cluster.state, cluster.step, cluster.why)))
    return table


def grouped(clusters: Iterable[ClusterSummary]) -> list[tuple[list[str], ClusterSummary]]:
    """Group dropped clusters by their reason, or by their step if there are many reasons.

    A cluster that is selected or listed has a line of its own.
    """
    lines: list[tuple[list[str], ClusterSummary]] = []
    dropped: dict[str, dict[str, list[ClusterSummary]]] = {}
    for cluster in clusters:
        if cluster.state == "dropped":
            dropped.setdefault(cluster.step, {}).setdefault(cluster.why, []).append(cluster)
        else:
            lines.append(([cluster.cluster], cluster))
    for whys in dropped.values():
        groups = list(whys.values())
        if len(groups) > WHYS:
            first = groups[0][0]
            message = replace(first, why=f"{first.why}; and {len(groups) - 1} other reasons")
            lines.append(([cluster.cluster for group in groups for cluster in group], message))
        else:
            lines += [([cluster.cluster for cluster in group], group[0]) for group in groups]
    return lines
