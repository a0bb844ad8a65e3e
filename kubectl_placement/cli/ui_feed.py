"""
The content of the page of `placement-ac ui`, as JSON that follows the hub.

Readings come from the event loop; statuses, timelines and explanations are computed in one thread, which owns
it, so that requests are answered meanwhile.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click

from kubectl_placement.cli.controller_line import controller_line
from kubectl_placement.cli.explain import grouped
from kubectl_placement.cli.hub_options import (
    ALL_NAMESPACES_KINDS,
    STATUS_KINDS,
    HubReading,
    HubSource,
    watch_hub,
    with_all_namespaces,
)
from kubectl_placement.cli.missing_kinds import missing_line
from kubectl_placement.cli.ui_day import LastDay
from kubectl_placement.cli.ui_reads import SharedReads
from kubectl_placement.explain.explanations import (
    CheckExplanation,
    ClusterExplanation,
    explain_check,
    explain_cluster,
)
from kubectl_placement.explain.subject import find_check, find_cluster, placement_views
from kubectl_placement.explain.workload import explain_workload
from kubectl_placement.graph.model import build_graph
from kubectl_placement.hub.controller_state import controller_state, lease_key
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import ALL_KINDS
from kubectl_placement.jobs.lookup import find_workloads
from kubectl_placement.readers.capacity_reader import read_published
from kubectl_placement.story.lines import job_lines
from kubectl_placement.story.tell import tell_story
from kubectl_placement.timeline.event_history import latest_time
from kubectl_placement.ui.capacity_bars import capacity_bars
from kubectl_placement.ui.live_status import LiveStatus
from kubectl_placement.ui.page import to_json
from kubectl_placement.ui.summary import summarize
from placement_ac.cli.documents import plain
from placement_ac.core.api.constants import (
    CLUSTER_SET,
    EVENT,
    EVENTS_NAMESPACE,
    LEASE,
    SET_BINDING,
    WORKLOAD,
)
from placement_ac.core.api.errors import PlacementAcError, error_place
from placement_ac.kube.client import Client

T = TypeVar("T")
KINDS: Final = (*STATUS_KINDS, CLUSTER_SET, SET_BINDING, EVENT, LEASE)
PAUSE_SECONDS: Final = 0.05
"""Delay after a change, so that changes made together are shown together."""
RETRY_SECONDS: Final = 5.0
"""Delay before the hub is read anew after it has not answered, or has taken a right away."""
SHARED_SECONDS: Final = 0.5
"""Explanations read the Placements and decisions of all namespaces once in this time, for all pages."""
CAPACITY_SECONDS: Final = 10.0
"""How often the published capacity is read; the controller writes it at most once a minute."""
NOT_HERE: Final = "its Pods are not read here: `kubectl placement job` shows them"
EVENTS_NOT_HERE: Final = "events in its namespace are not read here: `kubectl placement job` shows them"
REFRESH_SECONDS: Final = 1.0
"""How often old statuses are looked for."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON text, and the revision in which it came to be."""

    revision: int
    text: bytes


@dataclass(slots=True)
class Feed:
    """The documents of all checks, by name. An event loop owns it."""

    where: HubSource
    prometheus: str = ""
    """The URL of a Prometheus, for the last day of GPUs; "": there is none."""
    revision: int = 0
    """Grows with each change; 0: the hub has not been read."""
    hub: Document = Document(0, b"{}")
    """The server, the controller, missing rights, and what is wrong with the connection."""
    capacity: Document = Document(0, b"{}")
    """The GPUs of the clusters; of revision 0: the controller has published none."""
    summaries: dict[str, Document] = field(default_factory=dict)
    details: dict[str, Document] = field(default_factory=dict)
    _live: LiveStatus = field(default_factory=LiveStatus)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "ui"))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _drawings: dict[str, tuple[int, Sequence[tuple[str, bytes]]]] = field(default_factory=dict)
    """By check: the revision in which they came to be, and its drawings."""
    _reading: HubReading | None = None
    _reads: SharedReads[HubReading] | None = None
    """Readings of what no watch follows; None for a dump."""
    _problem: str = ""
    _at: datetime | None = None
    """The time of a dump's objects."""

    # -- what is shown

    async def next_revision(self, after: int) -> int:
        """Return the revision once there is one after `after`."""
        while self.revision <= after:
            await self._changed.wait()
        return self.revision

    async def drawings(self, check: str) -> Sequence[tuple[str, bytes]]:
        """Return the graph and the last hour of a check, each with its name. Raises KeyError."""
        wanted = self.details[check].revision
        known = self._drawings.get(check)
        if known is None or known[0] != wanted:
            known = self._drawings[check] = wanted, await self._in_thread(lambda: self._drawn(check))
        return known[1]

    async def explain(self, check: str, cluster: str) -> bytes:
        """Return the explanation of a check, or of one of its clusters. Raises PlacementAcError."""
        reading = self._reading
        if self._reads is not None:
            reading = await self._reads.get()
        return await self._in_thread(lambda: _explanation(self._live.view, reading, check, cluster))

    async def jobs(self) -> bytes:
        """Return the list of jobs."""
        return await self._in_thread(lambda: to_json({"jobs": plain(job_lines(self._live.view))}))

    async def job(self, namespace: str, workload: str) -> bytes:
        """Return the story of the job of a Workload. Raises SubjectNotFound."""
        return await self._in_thread(lambda: _story(self._live.view, namespace, workload))

    # -- what is read

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def follow(self, client: Client, first: Callable[[HubReading], None]) -> None:
        """Follow the hub until cancelled. `first` gets the first reading, and may raise.

        Raises PlacementAcError if the hub cannot be read at first; later that is shown, and tried again.
        """
        self._reads = SharedReads(lambda: self._read_all_namespaces(client), SHARED_SECONDS)
        parts = (self._follow(client, first), self._refresh(), self._follow_capacity(client))
        tasks = [asyncio.create_task(work) for work in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow_capacity(self, client: Client) -> None:
        """Read the published capacity now and then; without the right to it, the page has none."""
        day, reported = LastDay(self.prometheus), ""
        while True:
            if self._reading is not None:
                try:
                    with suppress(PlacementAcError):
                        await self._read_capacity(client, self._reading, day)
                except Exception as error:  # whatever it is, the rest of the page goes on
                    if reported != (reported := error_place(error)):
                        click.echo(f"cannot show the GPUs of clusters anew: {reported}", err=True)
            await asyncio.sleep(CAPACITY_SECONDS if self.revision else REFRESH_SECONDS)

    async def _read_capacity(self, client: Client, reading: HubReading, day: LastDay) -> None:
        report = await read_published(client, lease_key(reading.view.settings)[0], queues=False)
        bars = capacity_bars(report, await day.used(report.gpus))
        document = {"clusters": plain(bars), "dayProblem": day.problem}
        text = to_json(document | {"day": plain(day.span) if day.span else None})
        if text != self.capacity.text:
            self.capacity = Document(self.revision + 1, text)
            self._changes()

    async def _read_all_namespaces(self, client: Client) -> HubReading:
        assert self._reading is not None  # noqa: S101  # served only after the first reading
        return await with_all_namespaces(client, self._reading, self.where.namespace)

    async def _refresh(self) -> None:
        """Have old statuses computed again, some at a time."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            if self.revision and not self._problem:
                documents = await self._in_thread(self._refreshed)
                if documents is not None:
                    self._publish(documents)

    def _refreshed(self) -> "_Documents | None":
        names = self._live.refresh(datetime.now(UTC))
        return self._documents(names) if names else None

    async def _follow(self, client: Client, first: Callable[[HubReading], None]) -> None:
        while True:
            try:
                async with aclosing(watch_hub(client, self.where, KINDS, PAUSE_SECONDS)) as readings:
                    async for reading in readings:
                        if not self.revision:
                            first(reading)
                        await self.take(reading)
            except PlacementAcError as error:
                if not self.revision:
                    raise
                self._problem = str(error)
                self._publish(await self._in_thread(lambda: self._documents(())))
            await asyncio.sleep(RETRY_SECONDS)

    async def take(self, reading: HubReading) -> None:
        """Take in a reading of the hub."""
        self._problem, self._reading = "", reading
        self._publish(await self._in_thread(lambda: self._update(reading)))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _drawn(self, check: str) -> Sequence[tuple[str, bytes]]:
        live = self._live
        graph = to_json(plain(build_graph([live.statuses[check]])))
        timeline = live.timeline(check, self._at or datetime.now(UTC))
        more = {"exactFrom": plain(live.exact_since(check)), "live": self._at is None}
        return ("graph", graph), ("timeline", to_json(plain(timeline) | more))

    def _update(self, reading: HubReading) -> "_Documents":
        if not reading.dump.live:
            objects = (obj for kind in ALL_KINDS for obj in reading.dump.of(kind))
            self._at = latest_time(objects) or reading.view.now
        return self._documents(self._live.update(reading.view, self._at))

    def _documents(self, changed: Collection[str]) -> "_Documents":
        live, reading = self._live, self._reading
        statuses = {name: live.statuses[name] for name in changed if name in live.statuses}
        hub = _hub_document(reading, self._problem) if reading else b"{}"
        return _Documents(
            hub,
            {name: to_json(plain(summarize(status))) for name, status in statuses.items()},
            {
                name: to_json(
                    {
                        "status": plain(status),
                        "slots": plain(live.slots(name)),
                        "changedAt": plain(live.changed_at(name)),
                    }
                )
                for name, status in statuses.items()
            },
            frozenset(live.statuses),
        )

    def _publish(self, new: "_Documents") -> None:
        now = self.revision + 1
        if self.hub.text != new.hub:
            self.hub = Document(now, new.hub)
        for known, texts in ((self.summaries, new.summaries), (self.details, new.details)):
            for name in known.keys() - new.names:
                del known[name]
            for name, text in texts.items():
                if name not in known or known[name].text != text:
                    known[name] = Document(now, text)
        self._changes()

    def _changes(self) -> None:
        """Begin the next revision."""
        self.revision += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


@dataclass(frozen=True, slots=True)
class _Documents:
    """The changes, and the names of all checks."""

    hub: bytes
    summaries: Mapping[str, bytes]
    details: Mapping[str, bytes]
    names: frozenset[str]


def _hub_document(reading: HubReading, problem: str) -> bytes:
    """Return the document of the hub; a renewal of the Lease does not change it."""
    view = reading.view
    state = controller_state(view)
    known = view.dump.knows(LEASE) or view.dump.live
    line = controller_line(state, view.now, renewed=False).plain if known else ""
    return to_json(
        {
            "server": view.dump.server,
            "live": view.dump.live,
            "controller": {"line": line, "running": state.running if known else None},
            "missing": missing_line(reading),
            "problem": problem,
        }
    )


def _story(view: HubView, namespace: str, workload: str) -> bytes:
    raw = find_workloads(view.dump.of(WORKLOAD), (WORKLOAD.plural, workload), namespace)
    explanation = None if view.dump.missing else explain_workload(view, raw)
    notes = [NOT_HERE] if namespace == EVENTS_NAMESPACE else [NOT_HERE, EVENTS_NOT_HERE]
    return to_json(plain(tell_story(view, raw, None, explanation, notes)))


def _explanation(view: HubView, reading: HubReading | None, check: str, cluster: str) -> bytes:
    """Return the explanation by the view, with the Placements and decisions of `found`, which has more."""
    if reading is not None:
        more = {kind: reading.dump.of(kind) for kind in ALL_NAMESPACES_KINDS}
        whole = replace(view, dump=replace(view.dump.with_objects(more), missing=reading.dump.missing))
        vars(whole).update({"cache": view.cache, "facts": view.facts})
        view = whole
    if cluster:
        [case] = placement_views(view, check, ())
        explanation = explain_cluster(case, find_cluster(view, cluster))
        return to_json(
            plain(
                {
                    "kind": "cluster",
                    **_head(explanation),
                    "cluster": explanation.cluster,
                    "state": explanation.state,
                    "step": explanation.step,
                }
            )
        )
    whole_check = explain_check(view, find_check(view, check))
    clusters = [
        {"names": names, "state": like.state, "step": like.step, "why": like.why}
        for names, like in grouped(whole_check.clusters)
    ]
    return to_json(plain({"kind": "check", **_head(whole_check), "clusters": clusters}))


def _head(explanation: CheckExplanation | ClusterExplanation) -> dict[str, Any]:
    return {"placement": explanation.placement, "checks": explanation.checks, "links": explanation.links}
