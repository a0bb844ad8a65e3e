"""`placement-ac timeline`: when each cluster of a check was listed, and its score."""

import asyncio
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, get_args

import click
from rich.table import Table

from kubectl_placement.cli.console import ShownConsole
from kubectl_placement.cli.graph import output_file_option, write
from kubectl_placement.cli.hub_names import check_references, named_checks
from kubectl_placement.cli.hub_options import HubSource, hub_options, read_once
from kubectl_placement.cli.missing_kinds import report_missing
from kubectl_placement.cli.output import emit, plain_table, safe_text
from kubectl_placement.cli.page_files import timeline_file
from kubectl_placement.cli.timeline_recorder import chosen_check, record_to_file, status_of_check
from kubectl_placement.hub.dump import InvalidManifest
from kubectl_placement.hub.kinds import ALL_KINDS
from kubectl_placement.readers.prometheus import cluster_counts
from kubectl_placement.timeline import model
from kubectl_placement.timeline.event_history import latest_time, list_events, timeline_of_events
from kubectl_placement.timeline.recording import RecordedState, current_state, read_recording
from placement_ac.cli.documents import PLAIN_WIDTH, in_json, output, plain
from placement_ac.cli.login_options import FILE, duration
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import EVENT, MULTIKUEUE_CONFIG
from placement_ac.core.inputs.kinds import WATCHED_KINDS

KINDS: Final = (*WATCHED_KINDS, EVENT)
HOUR: Final = timedelta(hours=1)
"""How far back the timeline begins without events and `--since`."""
Form = Literal["table", "html", "json"]
HEADS: Final = ("Cluster", "State", "From", "To", "Detail")


@click.command(
    "timeline",
    cls=ReadCommand,
    epilog="Example:  placement-ac timeline placement-demo2 -o html --output-file timeline.html",
)
@click.argument("check", required=False, callback=named_checks, shell_complete=check_references)
@hub_options
@output(*get_args(Form), default="table", message="A table, a self-contained page, or JSON.")
@output_file_option
@click.option("--since", type=duration, help="Begin this long ago.  [default: at the first event]")
@click.option(
    "--prometheus", metavar="URL", help="Also show how many clusters were listed, from the metrics."
)
@click.option(
    "--record", type=click.Path(path_type=Path), help="Watch the hub, and record changes in this file."
)
@click.option("--for", "lasts", type=duration, help="Record for this long.  [default: until Ctrl-C]")
@click.option("--from", "source", type=FILE, help="Show the recording in this file.")
def command(
    where: HubSource,
    check: str | None,
    form: Form,
    output_file: Path | None,
    since: timedelta | None,
    prometheus: str | None,
    record: Path | None,
    lasts: timedelta | None,
    source: Path | None,
) -> None:
    """Show when each cluster of a check was listed, and its score.

    The default source is the controller's events: times in seconds, and scores when a cluster was added. A
    recording made with --record is exact and includes Workloads. CHECK may be omitted if there is only one.
    """
    if record and (source or prometheus or where.dump_files):
        raise click.UsageError("use --record without --from, --prometheus and --from-dump")
    if lasts and not record:
        raise click.UsageError("use --for only with --record")
    if record:
        record_to_file(where, check, record, lasts)
        return
    timeline = _from_file(source, check) if source else _from_hub(where, check, since)
    if since:
        timeline = model.clip(timeline, _before(timeline.end, since))
    if prometheus:
        counts = asyncio.run(cluster_counts(prometheus, timeline.check, timeline.begin, timeline.end))
        timeline = model.with_counts(timeline, counts)
    _show(timeline, form, output_file)


# -- sources


def _from_file(source: Path, check: str | None) -> model.Timeline:
    try:
        text = source.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidManifest(f"{source}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    name, states = read_recording(text.splitlines(), str(source))
    if check not in (None, name):
        raise click.ClickException(f"name the check {name}: {source} is its recording")
    return model.timeline_of_states(name, states)


def _from_hub(where: HubSource, check: str | None, since: timedelta | None) -> model.Timeline:
    reading = read_once(where, KINDS)
    name = chosen_check(reading, check)
    report_missing(reading)
    events = list_events(name, reading.dump.of(EVENT))
    check_status = status_of_check(reading, name)
    now = current_state(reading.view, check_status) if check_status else RecordedState(reading.view.now)
    if not reading.dump.live:
        latest = latest_time(obj for kind in ALL_KINDS for obj in reading.dump.of(kind))
        now = replace(now, time=latest or now.time)
    clusters = check_status.clusters if check_status else ()
    leaving = {row.name: row.draining_since for row in clusters if row.draining_since}
    begin = events[0].at if events else _before(now.time, since or HOUR)
    unlisted = reading.dump.why_unknown(MULTIKUEUE_CONFIG)
    timeline = timeline_of_events(name, events, now, begin, leaving=leaving, list_known=not unlisted)
    unknown = reading.dump.why_unknown(EVENT) or ("" if events else "there are no events about the list")
    return replace(timeline, notes=(*timeline.notes, *filter(None, (unknown, unlisted))))


def _before(at: datetime, how_long: timedelta) -> datetime:
    try:
        return at - how_long
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _show(timeline: model.Timeline, form: Form, output_file: Path | None) -> None:
    if form in ("table", "json") and output_file is None:
        emit(form, timeline, lambda _: [_table(timeline)])
    else:
        write(text_of(timeline, form), output_file)
    if form == "table":
        for note in timeline.notes:
            click.echo(note, err=True)


def text_of(timeline: model.Timeline, form: Form) -> str:
    """Return the timeline as the text of a file."""
    if form == "html":
        return timeline_file(timeline)
    if form == "json":
        return in_json(json.dumps(plain(timeline), indent=2, ensure_ascii=False)) + "\n"
    text = io.StringIO()
    ShownConsole(file=text, width=PLAIN_WIDTH).print(_table(timeline))
    return text.getvalue()


def rows(lane: model.Lane, end: datetime) -> list[tuple[str, ...]]:
    """Return spans, scores and Workloads of a lane by time; those that last until `end` are open."""
    lines: list[tuple[datetime, str, str, str, str]] = []
    for span in lane.spans:
        until = _until(span.end, end) if span.end_known else "?"
        begin = _time(span.begin) if span.begin_known else f"before {_time(span.begin)}"
        lines.append((span.begin, span.state, begin, until, span.why))
    for point in lane.scores:
        value = "none" if point.value is None else str(point.value)
        lines.append((point.at, "how many" if lane.measure else "score", _time(point.at), "", value))
    lines += [(run.begin, "runs", _time(run.begin), _until(run.end, end), run.name) for run in lane.runs]
    return [(lane.name, *texts) for _, *texts in sorted(lines, key=lambda row: row[0])]


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _until(at: datetime, end: datetime) -> str:
    return _time(at) if at < end else "goes on"


def _table(timeline: model.Timeline) -> Table:
    table = plain_table(*(head.upper() for head in HEADS))
    for lane in timeline.lanes:
        for row in rows(lane, timeline.end):
            table.add_row(*map(safe_text, row))
    return table
