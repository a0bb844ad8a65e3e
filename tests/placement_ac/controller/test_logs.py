"""The log of a running controller: lines for programs, one for each change of state, and else nothing."""

import io
import json
import time
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest

from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.support.driver import NS, Controllers, Driver, eventually
from tests.support.jobs import has_quota
from tests.support.stage import shorten

OFTEN = {
    "RELIST_SECONDS": 0.3,
    "KOPF_RELIST_SECONDS": 0.3,
    "REDISCOVERY_SECONDS": 0.3,
    "HEADERS_SECONDS": 0.1,
}
"""Settings with which routine work is done more often than by default."""
PACKAGE = Path(logs.__file__).parents[1]
SECRETS = f"/api/v1/namespaces/{NS}/secrets"


class Log:
    """The lines of the controllers of one test, each read as JSON."""

    def __init__(self, level: str) -> None:
        self._file = io.StringIO()
        with redirect_stderr(self._file):
            logs.configure("json", level)

    @property
    def lines(self) -> list[dict[str, Any]]:
        whole = self._file.getvalue().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def events(self, since: int = 0) -> list[str]:
        return [line["event"] for line in self.lines[since:]]

    def await_(self, event: str, since: int = 0) -> None:
        eventually(lambda: event in self.events(since))


@pytest.fixture
def log() -> Log:
    return Log("info")


def test_each_line_is_an_object_that_says_what_and_who(admin: Driver, controllers: Controllers) -> None:
    log = Log("debug")
    admin.check("p")
    admin.select("p", "a")
    with controllers():
        eventually(lambda: admin.reason("p"), "Active")
    assert [line for line in log.lines if list(line)[:3] != ["level", "logger", "event"]] == []
    assert [line for line in log.lines if not line["timestamp"].endswith("Z")] == []
    paths = (f"{line['logger'].replace('.', '/')}.py" for line in log.lines)
    assert [path for path in paths if not (PACKAGE / path).is_file()] == []
    events = [(line["logger"], line["event"], line.get("kind")) for line in log.lines]
    assert [one for one in events if one[0] == "controller.writer"] == [
        ("controller.writer", "applied", "MultiKueueCluster"),
        ("controller.writer", "applied", "MultiKueueConfig"),
        ("controller.writer", "condition set", "AdmissionCheck"),
    ]


def test_nothing_is_logged_when_nothing_changes(
    log: Log, hub: Hub, admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, **OFTEN)
    admin.check("p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    log.await_("condition set")

    def several_lists() -> None:
        asked = len(hub.journal)
        eventually(lambda: sum(request.path == SECRETS for request in hub.journal[asked:]) > 5)

    several_lists()  # the events are posted meanwhile, beside the work
    before = len(log.lines)
    several_lists()
    assert log.events(before) == []


def test_an_outage_is_two_lines_however_many_watch(
    log: Log, hub: Hub, admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, WATCH_SECONDS=1)  # the end of a quiet watch tells that it goes on
    admin.check("p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    log.await_("condition set")
    before = len(log.lines)

    def logged() -> list[str]:
        # Events are posted beside.
        return [line["event"] for line in log.lines[before:] if line["logger"] != "controller.recorder"]

    with hub.outage():
        eventually(logged, ["the API server does not answer; trying again"])
        time.sleep(1.5)  # what is tested: several tries
    eventually(lambda: logged()[1:], ["the API server answers again"])
    hub.faults.add("GET", "/managedclusters", status=500)  # the next watch: one may not be open at the moment
    eventually(lambda: logged()[2:], ["cannot follow; trying again", "follows again"])


def test_a_write_that_is_refused_is_reported_once_and_its_end(
    log: Log, hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p", "a")
    body = {"kind": "Status", "status": "Failure", "code": 403, "message": "no rights"}
    hub.faults.add("PATCH", "/multikueueconfigs/p", status=403, body=body, times=10_000)
    controllers.start()
    tries = lambda: sum(request.path.endswith("/multikueueconfigs/p") for request in hub.journal)  # noqa: E731
    eventually(lambda: tries() > 3)
    hub.faults.clear()
    log.await_("the write has succeeded")
    assert log.events().count("the API server refused a write") == 1
    assert [line["error"] for line in log.lines if "error" in line] == [
        log.lines[-1].get("error", "no rights")
    ]


def test_a_lease_that_cannot_be_renewed_is_reported_once_and_its_end(
    log: Log, hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    controllers.start(leader_elect=True, leader_elect_lease_duration=6)
    log.await_("leading")
    before = len(log.lines)
    hub.faults.add("PUT", "/leases/", status=500, times=2)
    log.await_("the Lease can be read and written again", before)
    events = [line["event"] for line in log.lines[before:] if line["logger"] == "controller.lease"]
    assert events == [
        "the Lease cannot be read or written; trying again",
        "the Lease can be read and written again",
    ]


def test_an_object_deleted_meanwhile_is_not_logged_as_written(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    log = Log("debug")
    admin.check("p")
    admin.select("p", "a")
    has_quota(admin, "w", "p")
    hub.faults.add("PATCH", "/workloads/w/status$", status=404, times=10_000)
    controllers.start()
    log.await_("already gone")
    assert "Workload answered" not in log.events()
