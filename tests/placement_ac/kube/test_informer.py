"""Workloads are followed by a paged list and a watch: whatever happens, the world becomes right."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.core.api.constants import ADMISSION_CHECK, PLACEMENT_DECISION, WORKLOAD, token_kind
from placement_ac.core.api.errors import Gone, Malformed, Unavailable
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.state import Key
from placement_ac.kube.client import Client
from placement_ac.kube.informer import PAUSE_SECONDS, UNREACHABLE_PAUSE_SECONDS, Informer
from placement_ac.kube.login import Login
from placement_ac.observability.health import Health
from placement_lab.hub import Hub
from tests.support.builders import NOW, PROVISIONING, authority, check, decision, encoded
from tests.support.crds import strict_crds
from tests.support.driver import CORE, NS, Driver

RESOURCE = WORKLOAD.at("v1beta2")
PATH = RESOURCE.path()
P, Q = Key("placement", "p"), Key("placement", "q")
DEADLINE_SECONDS = 8.0


class Workloads:
    """Kueue and its users by hand."""

    def __init__(self, admin: Driver) -> None:
        self.admin = admin

    def make(self, name: str, *checks: str, state: str = "Pending", **status: Any) -> None:
        body = {"apiVersion": RESOURCE.api_version, "kind": "Workload", "metadata": {"name": name}}
        self.admin.ask("POST", RESOURCE.path(NS), body | {"spec": {"queueName": "q"}})
        if checks:
            self.says(name, *checks, state=state, **status)

    def says(self, name: str, *checks: str, state: str = "Pending", **status: Any) -> None:
        answers = [
            {"name": of, "state": state, "message": "", "lastTransitionTime": "2026-08-01T12:00:00Z"}
            for of in checks
        ]
        self.patch(name, {"status": {"admissionChecks": answers} | status}, "status")

    def finish(self, name: str) -> None:
        condition = {
            "type": "Finished",
            "status": "True",
            "reason": "Succeeded",
            "message": "",
            "lastTransitionTime": "2026-08-01T12:00:00Z",
        }
        self.patch(name, {"status": {"conditions": [condition]}}, "status")

    def patch(self, name: str, patch: dict[str, Any], subresource: str = "") -> None:
        self.admin.ask("PATCH", RESOURCE.path(NS, name, subresource), patch, "merge")

    def delete(self, *names: str) -> None:
        for name in names:
            self.admin.ask("DELETE", RESOURCE.path(NS, name))


@pytest.fixture
def workloads(admin: Driver) -> Workloads:
    return Workloads(admin)


class Rig:
    """A feed on a hub, in a world in which everything else has been listed: checks `p` and `q` are ours."""

    def __init__(self, client: Client) -> None:
        self.world = Cache()
        for kind in WATCHED_KINDS:
            checks = [check("p", "p"), check("q", "q")] if kind is ADMISSION_CHECK else []
            if kind is not WORKLOAD:
                self.world.replace(kind, checks, "1")
        self.touched: list[set[Key]] = []
        health = Health().begin_session(["workloads"])["workloads"]
        self.feed = Informer(
            client, RESOURCE, "", self.world, health, enqueue=self._touch, enqueue_after_list=self._touch
        )

    def _touch(self, keys: Any) -> None:
        if keys and self.world.has_synced:
            self.touched.append(set(keys))

    def holds(self, *names: str) -> bool:
        return all(self.world.holds(WORKLOAD, (NS, name)) for name in names)

    def lacks(self, *names: str) -> bool:
        return not any(self.world.holds(WORKLOAD, (NS, name)) for name in names)


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not reached():  # noqa: ASYNC110  # what is waited for is plain state, nobody sets an Event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def following(kubeconfig: Path, of: Callable[[Client], Any] | None = None) -> AsyncIterator[Any]:
    """Run an informer on a hub; `of`: its rig, of Workloads if none is named."""
    async with Client(Login(kubeconfig)) as client:
        rig = (of or Rig)(client)
        parts = [asyncio.create_task(part) for part in rig.feed.tasks()]
        try:
            yield rig
        finally:
            for part in parts:
                part.cancel()
            ends = await asyncio.gather(*parts, return_exceptions=True)
            assert [end for end in ends if not isinstance(end, asyncio.CancelledError)] == []


Follow = Callable[[], AbstractAsyncContextManager[Rig]]


@pytest.fixture
def follow(hub: Hub, tmp_path: Path) -> Follow:
    """Runs an informer on the hub."""
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    return lambda: following(tmp_path / "kubeconfig")


def lists(hub: Hub) -> int:
    """How often a list was begun."""
    return sum(
        r.path == PATH and "watch" not in r.query and "continue" not in r.query
        for r in hub.journal
        if r.method == "GET"
    )


# -- what the world comes to know


async def test_workloads_come_change_and_go(workloads: Workloads, follow: Follow) -> None:
    workloads.make("a", "p")
    async with follow() as rig:
        await until(lambda: rig.holds("a"))
        workloads.make("b", "q")
        await until(lambda: rig.holds("b"))
        workloads.says("a", "p", state="Ready")
        await until(lambda: rig.touched[-1:] == [{P}])
        workloads.finish("a")
        await until(lambda: rig.lacks("a"))
        workloads.delete("b")
        await until(lambda: rig.lacks("b"))
        assert rig.touched[1:] == [{Q}, {P}, {P}, {Q}]


async def test_only_unfinished_workloads_with_checks_are_kept(
    workloads: Workloads, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.kube.reflector.PAGE_SIZE", 2)
    workloads.make("ours", "p")
    workloads.make("theirs", "another")
    workloads.make("unchecked")
    for name in ("finished", "done"):
        workloads.make(name, "p")
        workloads.finish(name)
    async with follow() as rig:
        await until(lambda: rig.world.has_synced)
        assert rig.holds("ours", "theirs")
        assert rig.lacks("finished", "unchecked", "done")


async def test_a_change_of_fields_that_are_not_read_touches_no_key(
    workloads: Workloads, follow: Follow
) -> None:
    workloads.make("a", "p")
    async with follow() as rig:
        await until(lambda: rig.world.has_synced)
        before = list(rig.touched)
        workloads.patch("a", {"metadata": {"labels": {"x": "y"}}})
        workloads.make("unchecked")
        workloads.make("theirs", "another")
        workloads.finish("unchecked")
        workloads.delete("unchecked", "theirs")
        workloads.make("last", "q")
        await until(lambda: rig.holds("last"))
        assert rig.touched == [*before, {Q}]


async def test_a_workload_that_loses_its_checks_and_gets_them_again_is_seen(
    workloads: Workloads, follow: Follow
) -> None:
    workloads.make("a", "p")
    async with follow() as rig:
        await until(lambda: rig.world.has_synced)
        workloads.says("a")
        await until(lambda: len(rig.touched) == 2)
        workloads.says("a", "q")
        await until(lambda: len(rig.touched) == 3)
        assert rig.touched[1:] == [{P}, {Q}]


# -- the list


async def test_nothing_is_complete_before_the_list_is_and_then_all_is_looked_at(
    hub: Hub, workloads: Workloads, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.kube.reflector.PAGE_SIZE", 1)
    workloads.make("a", "p")
    workloads.make("b", "p")
    hub.faults.add("GET", "workloads", delay=0)
    hub.faults.add("GET", "workloads", status=503, times=2)
    async with follow() as rig:
        await until(lambda: rig.holds("a"))
        assert not rig.world.has_synced
        await until(lambda: rig.world.has_synced)
        assert rig.touched == [{P, Q}]


async def test_the_next_page_is_as_long_as_the_size_of_the_objects_allows(
    hub: Hub, workloads: Workloads, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones come first."""
    monkeypatch.setattr("placement_ac.kube.client.PAGE_BYTES", 1_000_000)
    monkeypatch.setattr("placement_ac.kube.client.MAX_PAGE_BYTES", 2_000_000)
    for number, size in enumerate([10] * 20 + [200_000] * 12):
        workloads.make(f"w{number:02}", "p")
        workloads.patch(f"w{number:02}", {"metadata": {"annotations": {"note": "x" * size}}})
    async with follow() as rig:
        await until(lambda: rig.world.has_synced)
    asked = [r.query["limit"] for r in hub.journal if r.path == PATH and "limit" in r.query]
    assert asked == ["20", "200", "50", "12", "3", "4", "4", "4"]


async def test_a_page_that_expired_makes_what_came_before_forgotten(
    hub: Hub, workloads: Workloads, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.kube.reflector.PAGE_SIZE", 2)
    for name in "abcd":
        workloads.make(name, "p")
    hub.faults.add("GET", "workloads", delay=0)
    hub.faults.add("GET", "workloads", delay=0.5, status=410)
    async with follow() as rig:
        await until(lambda: rig.holds("a", "b"))
        workloads.delete("a")
        await until(lambda: rig.world.has_synced)
        assert rig.holds("b", "c", "d")
        assert rig.lacks("a")
    assert lists(hub) == 2


async def test_a_slow_relist_finds_what_the_watch_missed_and_looks_at_everything(
    hub: Hub, workloads: Workloads, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.kube.informer.RELIST_SECONDS", 0.3)
    workloads.make("a", "p")
    async with follow() as rig:
        await until(lambda: rig.world.has_synced and _watched(hub))
        hub.drop_watches("hang")
        workloads.delete("a")
        workloads.make("b", "q")
        await until(lambda: rig.holds("b") and rig.lacks("a"))
        await until(lambda: rig.touched[-1] == {P, Q})
        assert lists(hub) > 1


async def test_a_relist_that_fails_is_made_up_for(
    hub: Hub, workloads: Workloads, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.kube.informer.RELIST_SECONDS", 1.0)
    async with follow() as rig:
        await until(lambda: rig.world.has_synced and _watched(hub))
        hub.faults.add("GET", "workloads", status=503, delay=0.3)
        await until(lambda: hub.faults.all_met)
        monkeypatch.setattr("placement_ac.kube.informer.RELIST_SECONDS", 600.0)
        await until(lambda: hub.journal[-1].status == 503)
        hub.drop_watches("close")
        await until(lambda: lists(hub) == 3)
        workloads.make("b", "p")
        await until(lambda: rig.holds("b"))


async def test_a_list_that_comes_late_takes_nothing_back(
    hub: Hub, workloads: Workloads, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch is forgotten, and so all is listed anew, while the slow relist waits for its answer."""
    monkeypatch.setattr("placement_ac.kube.informer.RELIST_SECONDS", 0.5)
    workloads.make("a", "p")
    async with follow() as rig:
        await until(lambda: rig.world.has_synced and _watched(hub))
        hub.faults.add("GET", "workloads", delay=1.0, after=True)
        await until(lambda: hub.faults.all_met)
        monkeypatch.setattr("placement_ac.kube.informer.RELIST_SECONDS", 600.0)
        workloads.make("b", "p")
        hub.drop_watches("error-410")
        await until(lambda: rig.holds("b"))
        await until(lambda: lists(hub) == 3)
        await asyncio.sleep(0.2)  # what came is taken in
        assert rig.holds("a", "b")
        assert rig.world.has_synced


# -- the watch


@pytest.mark.parametrize(
    ("how", "begun"),
    [
        pytest.param("close", 1, id="closed"),
        pytest.param("error-500", 1, id="500"),
        pytest.param("error-410", 2, id="410 Gone"),
        pytest.param("garbage", 2, id="garbage"),
    ],
)
async def test_a_watch_that_ends_is_continued_or_all_is_listed_anew(
    hub: Hub, workloads: Workloads, follow: Follow, how: Any, begun: int
) -> None:
    workloads.make("a", "p")
    async with follow() as rig:
        await until(lambda: rig.world.has_synced and _watched(hub))
        hub.drop_watches(how)
        workloads.delete("a")
        workloads.make("b", "p")
        await until(lambda: rig.holds("b") and rig.lacks("a"))
    assert lists(hub) == begun


def _watched(hub: Hub) -> bool:
    return any(r.path == PATH and "watch" in r.query for r in hub.journal)


async def test_an_object_that_vanished_in_a_gap_is_noticed(
    hub: Hub, workloads: Workloads, follow: Follow
) -> None:
    workloads.make("a", "p")
    workloads.make("b", "p")
    async with follow() as rig:
        await until(lambda: rig.holds("a", "b") and _watched(hub))
        hub.drop_watches("hang")
        workloads.delete("a")
        hub.forget_history()
        hub.drop_watches("error-410")
        await until(lambda: rig.lacks("a"))
        assert rig.holds("b")
        assert rig.touched[-1] == {P}


async def test_a_watch_that_hangs_is_noticed_and_continued(
    hub: Hub, workloads: Workloads, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.kube.client.WATCH_IDLE_SECONDS", 0.5)
    async with follow() as rig:
        await until(lambda: rig.world.has_synced and _watched(hub))
        hub.drop_watches("hang")
        workloads.make("a", "p")
        await until(lambda: rig.holds("a"))
    assert lists(hub) == 1


async def test_an_outage_is_lived_through(hub: Hub, workloads: Workloads, follow: Follow) -> None:
    async with follow() as rig:
        await until(lambda: rig.world.has_synced and _watched(hub))
        with hub.outage():
            await asyncio.sleep(1)  # what is tested: it must not give up
        workloads.make("a", "p")
        await until(lambda: rig.holds("a"))
    assert lists(hub) == 1


async def test_retry_after_is_obeyed(hub: Hub, workloads: Workloads, follow: Follow) -> None:
    hub.faults.add("GET", "workloads", status=429, headers={"Retry-After": "1"})
    async with follow() as rig:
        await until(lambda: rig.world.has_synced)
    refused, served = [r for r in hub.journal if r.path == PATH and "limit" in r.query]
    assert (refused.status, served.status) == (429, 200)
    assert served.at - refused.at >= 1.0


async def test_a_hub_that_was_restored_begins_its_history_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its versions are lower than those known: a watch from there stays silent, only a list can tell."""
    monkeypatch.setattr("placement_ac.kube.client.WATCH_SECONDS", 1)
    monkeypatch.setattr("placement_ac.kube.informer.RELIST_SECONDS", 0.5)

    first = Hub(crds=strict_crds()).start()
    port = first.port
    config = first.kubeconfig()
    config["clusters"][0]["cluster"] = {"server": first.url}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    with Driver(first) as admin:
        for number in range(50):
            admin.namespace(f"more-{number}")
        admin.namespace(NS)
        Workloads(admin).make("before", "p")
    async with following(tmp_path / "kubeconfig") as rig:
        await until(lambda: rig.holds("before"))
        first.stop()
        with Hub(port=port, token=first.token, crds=strict_crds()) as second, Driver(second) as admin:
            admin.namespace(NS)
            Workloads(admin).make("after", "q")
            await until(lambda: rig.holds("after") and rig.lacks("before") and rig.world.has_synced)
            begun = lists(second)
            await until(lambda: lists(second) > begun and rig.world.has_synced)
            monkeypatch.setattr("placement_ac.kube.informer.RELIST_SECONDS", 600.0)
            Workloads(admin).make("later", "q")
            await until(lambda: rig.holds("later"))


# -- what a watch tells


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param({"hang_up": True, "times": 9}, Unavailable, id="connection cut"),
        pytest.param({"status": 200, "body": "{"}, None, id="a torn line"),
        pytest.param({"status": 200, "body": "{}\n"}, Malformed, id="no event"),
        pytest.param({"status": 200, "body": '{"type":"ADDED","object":{}}\n'}, Malformed, id="no metadata"),
        pytest.param({"status": 200, "body": '{"type":"ERROR","object":{}}\n'}, Unavailable, id="no code"),
        pytest.param(
            {"status": 200, "body": '{"type":"ERROR","object":{"code":"x"}}\n'}, Malformed, id="a bad code"
        ),
        pytest.param(
            {"status": 200, "body": '{"type":"ERROR","object":{"code":410}}\n'}, Gone, id="410 event"
        ),
    ],
)
async def test_a_watch_raises_nothing_but_api_errors(
    hub: Hub, tmp_path: Path, answer: dict[str, Any], error: type[Exception] | None
) -> None:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    hub.faults.add("GET", "workloads", **answer)

    async def watch() -> list[Any]:
        async with Client(Login(tmp_path / "kubeconfig")) as client:
            return [event async for event in client.watch(RESOURCE, "1")]

    if error is None:
        assert await watch() == []
    else:
        with pytest.raises(error) as caught:
            await watch()
        assert type(caught.value) is error


async def test_a_watch_yields_objects_of_any_size_and_bookmarks(hub: Hub, tmp_path: Path) -> None:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    big = {"metadata": {"name": "big", "annotations": {"x": "y" * 300_000}}}
    mark = {"metadata": {"resourceVersion": "7"}}
    lines = [{"type": "ADDED", "object": big}, {"type": "BOOKMARK", "object": mark}]
    hub.faults.add("GET", "workloads", status=200, body="".join(json.dumps(line) + "\n" for line in lines))

    async def watch() -> list[Any]:
        async with Client(Login(tmp_path / "kubeconfig")) as client:
            return [event async for event in client.watch(RESOURCE, "1")]

    assert await watch() == [("ADDED", big), ("BOOKMARK", mark)]


# -- the Secrets in which OCM reports tokens

TOKENS = token_kind("placement-ac")


class Tokens:
    """OCM by hand: Secrets of one name in any namespace, and others."""

    def __init__(self, admin: Driver) -> None:
        self.admin = admin

    def report(self, cluster: str, text: str, name: str = "placement-ac") -> None:
        self.admin.namespace(cluster)
        data = {"token": encoded(text), "ca.crt": encoded(authority())}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
        path = f"{CORE}/namespaces/{cluster}/secrets"
        if self.admin.get(f"{path}/{name}"):
            self.admin.ask("PATCH", f"{path}/{name}", {"data": data}, "merge")
        else:
            self.admin.ask("POST", path, body)

    def delete(self, cluster: str) -> None:
        self.admin.ask("DELETE", f"{CORE}/namespaces/{cluster}/secrets/placement-ac")


async def test_a_hub_that_is_back_is_asked_soon_but_not_hammered(follow: Follow) -> None:
    async with follow() as rig:
        away, gone = Unavailable("no answer"), Gone("too old", status=410)
        pauses = [rig.feed.pause_after(error) for error in (*[away] * 6, *[gone] * 6)]
        assert pauses == [0.2, *[UNREACHABLE_PAUSE_SECONDS] * 5, *PAUSE_SECONDS, PAUSE_SECONDS[-1]]


class TokenRig:
    """A feed of tokens in a world in which everything else has been listed; p selects clusters a and b."""

    def __init__(self, client: Client) -> None:
        self.world = Cache(provisioning=PROVISIONING)
        raws = {ADMISSION_CHECK: [check("p", "p")], PLACEMENT_DECISION: [decision("a", "b", of="p")]}
        for kind in kinds_for(PROVISIONING):
            if kind != TOKENS:
                self.world.replace(kind, raws.get(kind, []), "1")
        self.touched: list[set[Key]] = []
        health = Health().begin_session(["tokens"])["tokens"]
        self.feed = Informer(
            client,
            TOKENS.at("v1"),
            "",
            self.world,
            health,
            enqueue=self._touch,
            enqueue_after_list=self._touch,
        )

    def _touch(self, keys: Any) -> None:
        if keys and self.world.has_synced:
            self.touched.append({key for key in keys if key.kind == "cluster"})

    def tokens(self) -> dict[str, str]:
        found = {cluster: self.world.provisioning_inputs(cluster, NOW).objects.token for cluster in "abc"}
        return {cluster: token.token for cluster, token in found.items() if token}


async def test_tokens_come_change_and_go_and_no_other_secret_is_asked_for(
    hub: Hub, admin: Driver, tmp_path: Path
) -> None:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    ocm = Tokens(admin)

    ocm.report("a", "one")
    ocm.report("a", "noise", "default-token")
    async with following(tmp_path / "kubeconfig", TokenRig) as rig:
        await until(lambda: rig.world.has_synced)
        assert rig.tokens() == {"a": "one"}
        ocm.report("b", "two")
        ocm.report("b", "noise", "another")
        await until(lambda: rig.tokens() == {"a": "one", "b": "two"})
        ocm.report("a", "one more")
        await until(lambda: rig.tokens() == {"a": "one more", "b": "two"})
        ocm.delete("b")
        await until(lambda: rig.tokens() == {"a": "one more"})
        hub.drop_watches()
        ocm.report("c", "three")
        await until(lambda: rig.tokens() == {"a": "one more", "c": "three"})
        keys = [sorted(key.name for key in keys) for keys in rig.touched[-4:]]
        assert keys == [["b"], ["a"], ["b"], ["c"]]
    asked = [r.query.get("fieldSelector") for r in hub.journal if r.path == TOKENS.at("v1").path()]
    assert set(asked) == {"metadata.name=placement-ac"}
