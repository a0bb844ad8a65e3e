"""The table form of `status`: a tree with a check's Placement, clusters, queues and Workloads."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text
from rich.tree import Tree

from kubectl_placement.cli.output import age_text, plain_table, safe_text, shortened
from kubectl_placement.status.model import (
    CheckStatus,
    ClusterRow,
    HeldRow,
    ListWrites,
    QueueRow,
    UnfitRow,
    WorkloadRow,
)
from placement_ac.core.api.constants import WAITS_FOR
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.text import count_text

_COLOURS: Final = {
    "True": "green",
    "listed": "green",
    "standby": "cyan",
    "selected": "cyan",
    "waiting": "cyan",
    "draining": "yellow",
    "Unknown": "yellow",
    "beyond": "yellow",
    "unusable": "red",
    "False": "red",
}
NOT_KNOWN: Final = "?"
LONG: Final = 10 * 365 * 86400
"""Seconds; a longer time until credentials expire is not shown exactly."""
WHY_MAX: Final = 100
"""Letters of WHY in the table that is not wide: `-o wide`, `-o json` and `explain` have all."""


def tree_of(check_status: CheckStatus, now: datetime, *, wide: bool) -> Tree:
    """Return the tree of a check."""
    tree = Tree(_check(check_status), guide_style="dim")
    placement = tree.add(_placement(check_status))
    if check_status.clusters:
        placement.add(_clusters(check_status.clusters, now, wide=wide))
    for queue in check_status.queues:
        tree.add(_queue(queue))
    if check_status.jobs:
        tree.add(safe_text(_jobs(check_status.jobs)))
    for held in check_status.held:
        tree.add(safe_text(_held(held, now), "yellow"))
    for unfit in check_status.unfit:
        tree.add(safe_text(_unfit(unfit), "yellow"))
    for text in (*_elsewhere(check_status.jobs), *_waiting_for_room(check_status.jobs)):
        tree.add(safe_text(text, "yellow"))
    failures = Counter(job.failure for job in check_status.jobs if job.failure)
    for failure, number in failures.most_common():
        tree.add(safe_text(f"{count_text(number, 'job')}: {failure}", "yellow"))
    if (writes := check_status.list_writes) and (writes.last_hour or wide):
        tree.add(safe_text(_list_writes(writes, wide=wide)))
    return tree


def _check(check_status: CheckStatus) -> Text:
    message = (
        f"{check_status.reason}: {check_status.message}".strip(": ")
        or "no controller has answered this check yet"
    )
    stale = "; it has changed since and has not been answered again" if check_status.stale else ""
    name = safe_text(f"AdmissionCheck {check_status.name}", "bold")
    return Text.assemble(
        name, "  Active=", _coloured(check_status.active).rich, safe_text(f"  {message}{stale}")
    )


def _placement(check_status: CheckStatus) -> Text:
    name = f"Placement {check_status.placement}" if check_status.placement else "no Placement"
    config_name = check_status.config or NOT_KNOWN
    config = "no MultiKueueConfig" if check_status.config == "" else f"MultiKueueConfig {config_name}"
    users = f", used by {', '.join(check_status.users)}" if check_status.users else ""
    says = f"  {check_status.placement_says}" if check_status.placement_says else ""
    return Text.assemble(
        safe_text(name, "bold"), safe_text(f"  ({config}{users})"), safe_text(says, "yellow")
    )


class Cell(NamedTuple):
    """One line of text in a table, without markup or control characters.

    There are thousands of cells, and rich's Text takes ten times as long.
    """

    text: str
    style: str = ""

    @property
    def width(self) -> int:
        """Width in columns of the terminal."""
        return len(self.text) if self.text.isascii() else cell_len(self.text)

    @property
    def rich(self) -> Text:
        return Text(self.text, self.style)


_CellFunction = Callable[[ClusterRow, datetime], Cell]


def _plain(text: str) -> Cell:
    return Cell(one_line(text))


def _coloured(text: str) -> Cell:
    return Cell(one_line(text), _COLOURS.get(text, ""))


def _number(value: int | None, otherwise: str = NOT_KNOWN) -> Cell:
    return Cell(otherwise if value is None else str(value))


def _credential(row: ClusterRow, _: datetime) -> Cell:
    credential = row.credential
    if not credential.kind:
        return Cell("none" if credential.known else NOT_KNOWN)
    return _plain(credential.kind + ("" if credential.known else f" {NOT_KNOWN}"))


def _expires(row: ClusterRow, now: datetime) -> Cell:
    end = row.credential.expires
    return Cell("-") if end is None else Cell(time_left(end, now), "red" if end <= now else "")


COLUMNS: Final[dict[str, _CellFunction]] = {
    "RANK": lambda row, _: _number(row.rank, "-"),
    "CLUSTER": lambda row, _: _plain(row.name),
    "STATE": lambda row, _: _coloured(row.state),
    "SCORE": lambda row, _: _number(row.score, "-"),
    "CREDENTIAL": _credential,
    "EXPIRES": _expires,
    "CONNECTED": lambda row, _: _coloured(row.connected) if row.connected else Cell("-"),
    "RUNNING": lambda row, _: _number(row.running),
    "WAITING": lambda row, _: _number(row.waiting),
    "WHY": lambda row, _: _plain(shortened(row.why or row.credential.problem or row.connected_why, WHY_MAX)),
}
WIDE: Final[dict[str, _CellFunction]] = {
    **{name: cell for name, cell in COLUMNS.items() if name != "WHY"},
    "GROUP": lambda row, _: _number(row.group, "-"),
    "MULTIKUEUECLUSTER": lambda row, _: _plain(row.cluster_object),
    "CREDENTIAL NAME": lambda row, _: _plain(row.credential.name),
    "UNTIL": lambda row, _: _time(row.credential.expires),
    "DRAINING SINCE": lambda row, _: _time(row.draining_since),
    "WHY": lambda row, _: _plain(row.why or row.credential.problem),
    "KUEUE SAYS": lambda row, _: _plain(row.connected_why),
}
_IF_ANY: Final = ("WHY", "CREDENTIAL NAME", "DRAINING SINCE", "UNTIL", "KUEUE SAYS")
"""Columns that are left out if they are empty for all clusters."""
_SENTENCES: Final = ("WHY", "KUEUE SAYS")
"""Columns with sentences."""
_BELOW_TABLE: Final = (
    *_SENTENCES,
    "UNTIL",
    "DRAINING SINCE",
    "CREDENTIAL NAME",
    "MULTIKUEUECLUSTER",
    "GROUP",
    "CREDENTIAL",
    "EXPIRES",
    "SCORE",
    "CONNECTED",
    "WAITING",
    "RUNNING",
    "RANK",
)
"""Columns that move below the table if the terminal is too narrow, in this order."""
_NOTHING: Final = ("", "-")
_BETWEEN: Final = "  "


@dataclass(frozen=True, slots=True)
class _Grid:
    """Rows of cells by column. Columns that do not fit the terminal follow below, a line for each row.

    rich's own tables measure and wrap each cell, which takes five times as long as all else for 200 checks
    with 10 clusters: only terminals that are too narrow for the names get one.
    """

    rows: Sequence[Mapping[str, Cell]]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType | Segment]:
        widths = {name: max(len(name), *(row[name].width for row in self.rows)) for name in self.rows[0]}
        below: list[str] = []
        for name in (name for name in _BELOW_TABLE if name in widths):
            if _total(widths) <= options.max_width and not (name in _SENTENCES and below):
                break
            below.append(name)
            del widths[name]
        if _total(widths) <= options.max_width:
            yield from self._aligned(widths, console)
        else:
            table = plain_table(*widths)
            for row in self.rows:
                table.add_row(*(row[name].rich for name in widths))
            yield table
        yield from (line for row in self.rows if (line := _line_below(row, below)))

    def _aligned(self, widths: Mapping[str, int], console: Console) -> Iterator[Segment]:
        *_, last = widths
        for row in ({name: Cell(name, "bold") for name in widths}, *self.rows):
            for name, width in widths.items():
                cell = row[name]
                yield Segment(cell.text, console.get_style(cell.style))
                yield Segment("\n" if name == last else " " * (width - cell.width) + _BETWEEN)


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + len(_BETWEEN) * (len(widths) - 1)


def _line_below(row: Mapping[str, Cell], names: Iterable[str]) -> Text | None:
    """Return the line of a row below the table; None if it is empty."""
    message = [
        row[name].rich if name in _SENTENCES else Text.assemble(f"{name.lower()} ", row[name].rich)
        for name in names
        if row[name].text not in _NOTHING
    ]
    return Text.assemble(row["CLUSTER"].rich, ": ", Text("; ").join(message)) if message else None


def _clusters(rows: Iterable[ClusterRow], now: datetime, *, wide: bool) -> _Grid:
    columns = WIDE if wide else COLUMNS
    cells = [{name: cell(row, now) for name, cell in columns.items()} for row in rows]
    shown = [name for name in columns if name not in _IF_ANY or any(line[name].text for line in cells)]
    return _Grid([{name: line[name] for name in shown} for line in cells])


def _queue(queue: QueueRow) -> Text:
    lists = f"  lists {', '.join(queue.lists)}"
    names = NOT_KNOWN if queue.local_queues is None else ", ".join(queue.local_queues)
    local = f"; LocalQueues {names}" if names else "; no LocalQueue"
    counts = f"; {queue.pending} pending, {queue.admitted} admitted"
    why = f"; {queue.why}" if queue.why else ""
    name = safe_text(f"ClusterQueue {queue.name}", "bold")
    return Text.assemble(
        name, "  Active=", _coloured(queue.active).rich, safe_text(lists + local + counts + why)
    )


def _jobs(jobs: Iterable[WorkloadRow]) -> str:
    counts = Counter(job.state for job in jobs)
    gpus = sum(job.gpus for job in jobs if job.state == "running")
    running = f"{counts['running']} running" + (f" on {count_text(gpus, 'GPU')}" if gpus else "")
    return f"Workloads: {running}, {counts['waiting']} waiting, {counts['pending']} pending"


def _held(held: HeldRow, now: datetime) -> str:
    """Return how many Workloads the gate holds, for how long, and which clusters leave."""
    since = f" for {age_text((now - held.since).total_seconds())}" if held.since else ""
    verb = "leaves" if len(held.clusters) == 1 else "leave"
    removal = f"{', '.join(held.clusters)} {verb} ({held.why})"
    return f"Held by the gate{since}: {count_text(held.workloads, 'Workload')}, because {removal}"


def _unfit(unfit: UnfitRow) -> str:
    verb = "fits" if unfit.workloads == 1 else "fit"
    return f"{count_text(unfit.workloads, 'job')} {verb} no cluster: {unfit.why}"


def _elsewhere(jobs: Iterable[WorkloadRow]) -> Iterator[str]:
    """Yield the jobs that run elsewhere than Kueue's record says."""
    yield from (f"Workload {job.namespace}/{job.name} {job.elsewhere}" for job in jobs if job.elsewhere)


def _waiting_for_room(jobs: Iterable[WorkloadRow]) -> Iterator[str]:
    """Yield how many jobs wait on the same full clusters, with the text of one of them."""
    groups: dict[str, list[str]] = {}
    for job in jobs:
        if job.why.startswith(WAITS_FOR):
            groups.setdefault(job.why.partition(":")[0], []).append(job.why)
    for texts in groups.values():
        verb = "waits" if len(texts) == 1 else "wait"
        text = max(texts).removeprefix(WAITS_FOR)
        yield f"{count_text(len(texts), 'job')} {verb} for {text}"


def _list_writes(writes: ListWrites, *, wide: bool) -> str:
    """Return how often the list changed, and what a change costs; `wide`: also since it was created."""
    parts = [NOT_KNOWN if writes.last_hour is None else f"at least {writes.last_hour}"]
    if wide and writes.total:
        since = f" since {writes.since:%Y-%m-%dT%H:%M:%SZ}" if writes.since else ""
        parts.append(f"{writes.total:,} in all{since}")
    if writes.workloads is not None and writes.requests is not None:
        workloads, clusters = count_text(writes.workloads, "Workload"), count_text(writes.clusters, "cluster")
        requests = count_text(writes.requests, "request")
        parts.append(f"a change now costs {requests} to workers ({workloads} on {clusters})")
    return f"Changes of the list in the last hour, counted by events: {'; '.join(parts)}"


def _time(value: datetime | None) -> Cell:
    return Cell(f"{value:%Y-%m-%dT%H:%M:%SZ}" if value else "")


def time_left(end: datetime, now: datetime) -> str:
    """Return the time until `end` in kubectl's format of ages, as `90s` or `6d`; at most `>10y`."""
    seconds = int((end - now).total_seconds())
    if seconds > LONG:
        return ">10y"
    return age_text(seconds) if seconds > 0 else "expired"
