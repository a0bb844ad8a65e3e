"""Watches: their events, selectors, start versions and ends."""

import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from placement_lab.hub import watch
from tests.support.driver import eventually
from tests.support.hub_client import (
    CONFIGMAPS,
    CONFIGS,
    CRDS,
    TABLE,
    Client,
    Watching,
    config,
    configmap,
    crd,
    spec_schema,
)
from tests.support.real_hub import HubMaker


@pytest.fixture
def brief(a_hub: HubMaker) -> Iterator[Client]:
    """A client of a hub that keeps 20 changes of each kind."""
    with a_hub(history=20) as hub:
        yield Client(hub)


def test_the_bytes_of_watches_are_counted(client: Client) -> None:
    with Watching(client, CONFIGS) as seen:
        client.create(CONFIGS, config("a"))
        seen.until(("ADDED", "a"))
        [((_, plural), first)] = client.hub.watched.items()
        client.create(CONFIGS, config("b"))
        seen.until(("ADDED", "a"), ("ADDED", "b"))
        [second] = client.hub.watched.values()
    assert plural == "multikueueconfigs"
    assert 1.5 < second / first < 2.5


@pytest.mark.embedded("a real API server sends the old object when it leaves a selection")
def test_selected_objects_are_added_and_deleted(client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a"))
    with Watching(client, CONFIGMAPS, labelSelector="in=yes") as seen:
        for value in ("yes", "no"):
            client.patch(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"in": value}}})
        client.delete(f"{CONFIGMAPS}/a")
        client.create(CONFIGMAPS, configmap("b", labels={"in": "yes"}))
        seen.until(("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b"))
    assert seen.seen[1]["object"]["metadata"]["labels"] == {"in": "no"}


@pytest.mark.embedded("an API server keeps its history for minutes, not for a number of changes")
def test_a_version_that_is_too_old_gets_an_error_event(brief: Client) -> None:
    brief.create(CONFIGS, config("a"))
    since = brief.version(CONFIGS)
    for number in range(21):
        brief.patch(f"{CONFIGS}/a", {"spec": {"clusters": [f"c{number}"]}})
    with Watching(brief, CONFIGS, resourceVersion=since) as seen:
        assert seen.ended()
    assert [(e["type"], e["object"]["code"], e["object"]["reason"]) for e in seen.seen] == [
        ("ERROR", 410, "Expired")
    ]


def test_a_version_without_history_gets_410(client: Client) -> None:
    since = client.version(CONFIGS)
    client.hub.forget_history()
    with Watching(client, CONFIGS, resourceVersion=since) as seen:
        assert seen.ended()
    assert seen.seen[0]["object"]["code"] == 410
    with Watching(client, CONFIGS, resourceVersion=client.version(CONFIGS)) as seen:
        client.create(CONFIGS, config("a"))
        seen.until(("ADDED", "a"))


def test_initial_events_end_with_a_bookmark(client: Client) -> None:
    client.create(CONFIGS, config("a"))
    query = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    with Watching(client, CONFIGS, **query, resourceVersion="0") as seen:
        seen.until(("ADDED", "a"), ("BOOKMARK", ""))
    metadata = seen.seen[1]["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert metadata["resourceVersion"] == client.version(CONFIGS)


@pytest.mark.embedded("an API server sends a bookmark once a minute")
def test_bookmarks_are_sent_regularly(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_EVERY", 0.1)
    since = client.version(CONFIGS)
    with Watching(client, CONFIGS, allowWatchBookmarks="true", resourceVersion=since) as seen:
        client.create(CONFIGMAPS, configmap("elsewhere"))
        eventually(lambda: ("BOOKMARK", "") in seen.events, True)
        eventually(lambda: int(seen.seen[-1]["object"]["metadata"]["resourceVersion"]) > int(since), True)


@pytest.mark.embedded("nobody can look into the loop of an API server in another process")
@pytest.mark.parametrize(("bookmarks", "hangs"), [("false", False), ("true", True)])
def test_an_idle_watch_does_no_work(
    client: Client, monkeypatch: pytest.MonkeyPatch, bookmarks: str, hangs: bool
) -> None:
    looks: list[float] = []
    flush = watch.WatchStream.flush

    async def counted(self: watch.WatchStream, send: Callable[[bytes], Awaitable[None]]) -> None:
        looks.append(time.monotonic())
        await flush(self, send)

    monkeypatch.setattr(watch.WatchStream, "flush", counted)
    monkeypatch.setattr(watch, "BOOKMARK_EVERY", 0.1)
    with Watching(client, CONFIGS, allowWatchBookmarks=bookmarks, resourceVersion=client.version(CONFIGS)):
        if hangs:
            client.hub.drop_watches("hang")
        time.sleep(0.5)  # no event to wait for: nothing may happen for the time of five bookmarks
    assert 1 <= len(looks) < 20, "it looped without pause"


@pytest.mark.embedded("a real API server serves a CRD a moment after it was created")
def test_the_watches_of_a_deleted_kind_end(client: Client) -> None:
    client.create(CRDS, crd("Thing", spec_schema()))
    things = "/apis/example.com/v1/namespaces/default/things"
    client.create(things, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}})
    with Watching(client, things) as seen:
        client.delete(f"{CRDS}/things.example.com")
        assert seen.ended()
    assert seen.events == [("ADDED", "a"), ("DELETED", "a")]
    assert client.ask("GET", things).status_code == 404


def test_a_watch_as_a_table(client: Client) -> None:
    client.create(CONFIGS, config("a"))
    answer = client.ask("GET", f"{CONFIGS}?watch=true&timeoutSeconds=1&includeObject=Object", Accept=TABLE)
    assert '"kind":"Table"' in answer.text
    assert '"cells":["a","' in answer.text


@pytest.mark.parametrize(
    ("how", "codes", "broken"),
    [
        ("close", [], ""),
        ("garbage", [], "JSONDecodeError"),
        ("error-410", [410], ""),
        ("error-500", [500], ""),
    ],
)
def test_watches_can_be_dropped(client: Client, how: str, codes: list[int], broken: str) -> None:
    with Watching(client, CONFIGS) as seen, Watching(client, CONFIGMAPS) as other:
        eventually(lambda: len(client.hub.journal), 2)
        client.hub.drop_watches(how, "multikueueconfigs")  # type: ignore[arg-type]  # from the table
        assert seen.ended()
        assert [event["object"]["code"] for event in seen.seen] == codes
        assert seen.broken == broken
        client.create(CONFIGMAPS, configmap("a"))
        other.until(("ADDED", "a"))


def test_a_watch_can_hang(client: Client) -> None:
    with Watching(client, CONFIGS, timeoutSeconds="2") as seen:
        eventually(lambda: len(client.hub.journal), 1)
        client.hub.drop_watches("hang")
        client.create(CONFIGS, config("a"))
        assert seen.ended()
    assert seen.seen == []


def test_a_watch_can_be_sent_old_events_again(client: Client) -> None:
    with Watching(client, CONFIGS, resourceVersion=client.version(CONFIGS)) as seen:
        client.create(CONFIGS, config("a"))
        client.delete(f"{CONFIGS}/a")
        seen.until(("ADDED", "a"), ("DELETED", "a"))
        client.hub.repeat_history(random.Random(1), agent="nobody")
        client.hub.repeat_history(random.Random(1))
        eventually(lambda: sorted(seen.events), [("ADDED", "a")] * 3 + [("DELETED", "a")] * 3)


def test_a_disconnected_client_is_removed(client: Client) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(Watching(client, CONFIGS))
        eventually(lambda: client.hub.watchers("multikueueconfigs"), 3)
    client.create(CONFIGS, config("a"))
    client.create(CONFIGS, config("b"))
    eventually(lambda: client.hub.watchers("multikueueconfigs"), 0)


def test_a_watch_from_a_version_sends_later_events(client: Client) -> None:
    client.create(CONFIGS, config("a"))
    since = client.version(CONFIGS)
    client.create(CONFIGS, config("b"))
    with Watching(client, CONFIGS, resourceVersion=since) as seen:
        seen.until(("ADDED", "b"))


def test_a_watch_of_one_namespace_gets_no_other_events(client: Client) -> None:
    with Watching(client, CONFIGMAPS) as seen:
        client.create(CONFIGMAPS.replace("default", "kube-system"), configmap("there"))
        client.create(CONFIGMAPS, configmap("here"))
        seen.until(("ADDED", "here"))


def test_initial_events_need_a_match(client: Client) -> None:
    assert client.ask("GET", f"{CONFIGS}?watch=true&sendInitialEvents=true").status_code == 422


def test_a_watch_ends_after_its_timeout(client: Client) -> None:
    with Watching(client, CONFIGS, timeoutSeconds="1") as seen:
        assert seen.ended()
    assert (seen.seen, seen.broken) == ([], "")
