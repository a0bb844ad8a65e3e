"""When a cluster was listed: by events, by what was seen; and an answer of Prometheus."""

import asyncio
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kubectl_placement.readers.prometheus import used_gpus
from kubectl_placement.timeline.event_history import list_events, timeline_of_events
from kubectl_placement.timeline.model import (
    Lane,
    Point,
    Span,
    Timeline,
    WorkloadRun,
    clip,
    timeline_of_states,
)
from kubectl_placement.timeline.state import RecordedState, RunningWorkload
from placement_ac.core.api.errors import ApiError
from placement_ac.core.api.list_change import ANNOTATION, ClusterChange, ListChange
from tests.support import pictures
from tests.support.driver import Object
from tests.support.http_servers import http_server
from tests.support.pictures import at

# -- events

SELECTED = ListChange("added", (ClusterChange("a", 9), ClusterChange("b", 5)))
A_ADDED = ListChange("added", (ClusterChange("a"),))
DRAINS = ListChange("draining", (ClusterChange("a", cause="not selected any more"),))
GONE = ListChange("removed", (ClusterChange("a", state="drained"),))


def event(
    reason: str, change: ListChange | None, seconds: float, again: float | None = None, **rest: Any
) -> Object:
    """An event as the controller posts it; with a message that names another cluster."""
    first, last = (at(one).isoformat() for one in (seconds, seconds if again is None else again))
    about = {"kind": "AdmissionCheck", "name": "demo"}
    return {
        "metadata": {
            "name": f"demo.{seconds}",
            "resourceVersion": str(int(seconds)),
            "annotations": {ANNOTATION: change.to_json()} if change else None,
        },
        "involvedObject": about,
        "reportingComponent": "placement-ac",
        "reason": reason,
        "message": "1 cluster more: other (score 1)",
        "firstTimestamp": first,
        "lastTimestamp": last,
        "count": 1 if again is None else 2,
    } | rest


def of_events(*events: Object, listed: tuple[str, ...] = (), **now: Any) -> dict[str, tuple[Span, ...]]:
    output = list_events("demo", events)
    found = timeline_of_events("demo", output, RecordedState(at(100), listed, **now), at(0))
    return {lane.name: lane.spans for lane in found.lanes}


def span(state: Any, begin: float, end: float, why: str = "", **known: bool) -> Span:
    return Span(state, at(begin), at(end), why=why, **known)


B_STAYS = {"b": (span("listed", 10, 100),)}
BY_EVENTS: list[Any] = [
    pytest.param(
        [
            event("ClustersSelected", SELECTED, 10),
            event("ClusterDraining", DRAINS, 40),
            event("ClusterRemoved", GONE, 60),
        ],
        ("b",),
        {"a": (span("listed", 10, 40), span("draining", 40, 60, "not selected any more; drained"))} | B_STAYS,
        id="comes-drains-goes",
    ),
    pytest.param(
        [event("ClusterRemoved", GONE, 60)],
        (),
        {"a": (span("listed", 0, 60, "drained", begin_known=False),)},
        id="was-there-before",
    ),
    pytest.param([], ("a",), {"a": (span("listed", 0, 100, begin_known=False),)}, id="no-event-of-it"),
    pytest.param(
        [event("ClustersSelected", SELECTED, 10)],
        ("b",),
        {"a": (span("listed", 10, 100, "it has left the list since", end_known=False),)} | B_STAYS,
        id="nobody-saw-it-go",
    ),
    pytest.param(
        [event("ClusterAdded", A_ADDED, 10, again=60), event("ClusterRemoved", GONE, 30)],
        ("a",),
        {"a": (span("listed", 10, 30, "drained"), span("listed", 60, 100))},
        id="counted-up",
    ),
    pytest.param(
        [event("ClustersSelected", SELECTED, 10), event("ClusterDraining", DRAINS, 40)],
        ("a", "b"),
        {"a": (span("listed", 10, 40), span("draining", 40, 100, "not selected any more"))} | B_STAYS,
        id="drains-still",
    ),
    pytest.param(
        [
            event("ClustersSelected", SELECTED, 1, reportingComponent="somebody"),
            event("ClustersSelected", SELECTED, 1, involvedObject={"kind": "AdmissionCheck", "name": "b"}),
            event("ClusterUnusable", SELECTED, 1),
            event("ClustersSelected", SELECTED, 10, firstTimestamp=None, lastTimestamp=None),
            event("ClustersSelected", SELECTED, 10, firstTimestamp=[], lastTimestamp={}, series=1, count="x"),
            event("ClustersSelected", SELECTED, 10, involvedObject=["demo"], metadata=None),
        ],
        (),
        {},
        id="of-others-or-without-a-time",
    ),
]


@pytest.mark.parametrize(("events", "listed", "lanes"), BY_EVENTS)
def test_by_events(events: list[Object], listed: tuple[str, ...], lanes: dict[str, tuple[Span, ...]]) -> None:
    assert of_events(*events, listed=listed) == lanes


def test_a_drain_begins_at_the_time_of_the_annotation() -> None:
    now = RecordedState(at(100), ("a",), ("a",))
    found = timeline_of_events("demo", [], now, at(0), leaving={"a": at(70)})
    wanted = (span("listed", 0, 70, begin_known=False), span("draining", 70, 100))
    assert [lane.spans for lane in found.lanes] == [wanted]


def test_without_a_right_to_the_list_nothing_is_said_to_have_left() -> None:
    output = list_events("demo", [event("ClusterAdded", A_ADDED, 10)])
    found = timeline_of_events("demo", output, RecordedState(at(100)), at(10), list_known=False)
    assert [lane.spans for lane in found.lanes] == [(span("listed", 10, 100, end_known=False),)]


def test_scores_of_events_are_points() -> None:
    output = list_events("demo", [event("ClustersSelected", SELECTED, 10)])
    found = timeline_of_events("demo", output, RecordedState(at(100), ("a", "b"), scores={"a": 3}), at(0))
    assert [lane.scores for lane in found.lanes] == [
        (Point(at(10), 9), Point(at(100), 3)),
        (Point(at(10), 5),),
    ]
    assert not found.exact


def test_clusters_that_an_event_only_counts_are_noted() -> None:
    output = list_events("demo", [event("ClustersSelected", replace(SELECTED, more=7), 10)])
    assert timeline_of_events("demo", output, RecordedState(at(100)), at(0)).notes == (
        "7 clusters more at 12:00:10, not named",
    )


BAD = {"annotations": {ANNOTATION: "{}"}, "name": "demo.20"}
NO_LINE = event("ClusterAdded", None, 30, message="a\nb")


def test_events_without_data_are_notes() -> None:
    old = [event("ClusterAdded", None, 10), event("ClusterRemoved", SELECTED, 20, metadata=BAD), NO_LINE]
    output = list_events("demo", [event("ClustersSelected", SELECTED, 40), *old])
    found = timeline_of_events("demo", output, RecordedState(at(100), ("a", "b")), at(10))
    assert [(lane.name, [span.begin for span in lane.spans]) for lane in found.lanes] == [
        ("a", [at(40)]),
        ("b", [at(40)]),
    ]
    assert found.notes == (
        "3 events of an older version without data",
        "12:00:10 ClusterAdded: 1 cluster more: other (score 1)",
        "12:00:20 ClusterRemoved: 1 cluster more: other (score 1)",
        "12:00:30 ClusterAdded: a b",
    )


def test_of_many_events_without_data_the_last_five_are_shown() -> None:
    output = list_events("demo", [event("ClusterAdded", None, second) for second in range(20)])
    first, *texts = timeline_of_events("demo", output, RecordedState(at(100)), at(0)).notes
    assert first == "20 events of an older version without data"
    assert [text[:8] for text in texts] == [f"12:00:{second}" for second in range(15, 20)]


def test_reasons_are_shown_once_and_never_parsed() -> None:
    cause = "unusable: no Secret (a; b), no token"
    drains = ListChange("draining", (ClusterChange("a", cause=cause, state="1 Workload runs there"),))
    gone = ListChange("removed", (ClusterChange("a", cause=cause, state="drained"),))
    found = of_events(event("ClusterDraining", drains, 10), event("ClusterRemoved", gone, 20))
    assert [one.why for one in found["a"]] == ["", f"{cause}; 1 Workload runs there; drained"]


def test_no_further_back_than_wanted() -> None:
    found = clip(pictures.rebalancing(), at(130))
    train = WorkloadRun("default/train", 8, at(130), at(200))
    assert found.lanes == (
        Lane(
            "cluster3",
            (span("draining", 130, 203), span("listed", 260, 300)),
            (Point(at(130), 10), Point(at(260), 90)),
            (train,),
        ),
        Lane("cluster2", (span("listed", 130, 260),), (Point(at(130), 80), Point(at(260), None))),
    )


# -- by what was seen


STATES = [
    RecordedState(at(0), ("a",), (), {"a": 70, "b": 30}),
    RecordedState(
        at(1.25), ("b", "a"), ("a",), {"a": 10, "b": 80}, {"ns/job": RunningWorkload(cluster="a", gpus=2)}
    ),
    RecordedState(at(9), ("b",), (), {"b": 80}),
    RecordedState(at(20), ("b",), (), {"b": 80}),
]


def test_what_was_seen_is_exact() -> None:
    a = Lane(
        "a",
        (span("listed", 0, 1.25, begin_known=False), span("draining", 1.25, 9)),
        (Point(at(0), 70), Point(at(1.25), 10), Point(at(9), None)),
        (WorkloadRun("ns/job", 2, at(1.25), at(9)),),
    )
    b = Lane("b", (span("listed", 1.25, 20),), (Point(at(0), 30), Point(at(1.25), 80)))
    wanted = Timeline("demo", at(0), at(20), (a, b), True, "what was seen")
    assert timeline_of_states("demo", STATES) == wanted


# -- Prometheus


@contextmanager
def prometheus(
    answer: Callable[[Object], tuple[int, str]], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """A server that answers a query with an HTTP code and a text."""

    def reply(request: BaseHTTPRequestHandler) -> None:
        url = urlsplit(request.path)
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        code, text = answer(asked | {"path": url.path})
        request.send_response(code)
        request.end_headers()
        request.wfile.write(text.encode())

    with http_server(reply, tls) as address:
        yield f"{'https' if tls else 'http'}://me:secret@{address}/"


def ask(url: str) -> dict[str, tuple[Point, ...]]:
    return asyncio.run(used_gpus(url, ["gpu"], at(0), at(240)))


NO_PROMETHEUS = [
    pytest.param(200, "<html>", "Prometheus does not answer: JSONDecodeError", id="html"),
    pytest.param(200, '{"data": {"result": [{"metric": {}, "values": [[1, "x"]]}]}}', "is none", id="x"),
    pytest.param(422, "parse error", "Prometheus answers 422: parse error", id="422"),
]


@pytest.mark.parametrize(("code", "text", "expected"), NO_PROMETHEUS)
def test_an_answer_that_is_not_of_prometheus_is_an_error_without_the_token(
    code: int, text: str, expected: str
) -> None:
    with (
        prometheus(lambda _: (code, text)) as url,
        pytest.raises(ApiError, match=re.escape(expected)) as raised,
    ):
        ask(url)
    assert "secret" not in str(raised.value)


def test_prometheus_does_not_answer() -> None:
    with pytest.raises(ApiError, match="Prometheus does not answer") as raised:
        ask("http://me:secret@127.0.0.1:1/")
    assert "secret" not in str(raised.value)
