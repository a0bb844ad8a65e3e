"""`placement-ac timeline` on a hub: by the controller's events, and by what `--record` took down."""

import json
import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from placement_ac.core.api.list_change import ANNOTATION
from tests.support import commands
from tests.support.commands import Run
from tests.support.driver import SCORES, Controllers, Driver, Object, eventually

DRAINING = "placement-ac.open-cluster-management.io/draining"


@pytest.fixture
def timeline(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls `placement-ac timeline` in a folder with nothing but a kubeconfig."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: run("timeline", *words)


def spans(result: Result) -> dict[str, list[tuple[str, bool, bool]]]:
    assert result.exit_code == 0, result.output
    return {
        lane["name"]: [(span["state"], span["beginKnown"], span["endKnown"]) for span in lane["spans"]]
        for lane in json.loads(result.stdout)["lanes"]
    }


def test_by_the_events_of_the_controller(timeline: Run, admin: Driver, controllers: Controllers) -> None:
    admin.check("demo")
    admin.select("demo", ("a", 9), ("b", 5))
    controllers.start(cluster_retention=0)
    eventually(lambda: [event["reason"] for event in admin.events()], ["ClustersSelected"])
    [selected] = admin.events()  # a cluster that comes and goes within a second has no span
    eventually(lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}" > selected["firstTimestamp"], True)
    admin.decide("demo", ("b", 5))
    eventually(lambda: {event["reason"] for event in admin.events()}, {"ClustersSelected", "ClusterRemoved"})
    assert list(spans(timeline("-o", "json"))) == ["a", "b"]
    table = timeline("demo", "--output-file", "table")
    assert (table.exit_code, table.output) == (0, "")
    output = Path("table").read_text("utf-8")
    assert "its ManagedCluster is gone" in output
    assert "score" in output


EVENTS = "/api/v1/namespaces/default/events"


def change_events(admin: Driver, change: Object) -> None:
    """Merge a change into every event of the hub."""
    for event in admin.events():
        admin.ask("PATCH", f"{EVENTS}/{event['metadata']['name']}", change, "merge")


def placed_and_left(admin: Driver, controllers: Controllers) -> None:
    """Twelve clusters are listed, and the last one leaves: two events."""
    names = [f"c{number:02}" for number in range(12)]
    admin.check("demo")
    admin.select("demo", *((name, 50 - place) for place, name in enumerate(names)))
    controller = controllers.start(cluster_retention=0)
    eventually(lambda: [event["reason"] for event in admin.events()], ["ClustersSelected"])
    admin.decide("demo", *((name, 50 - place) for place, name in enumerate(names[:-1])))
    eventually(lambda: [event["reason"] for event in admin.events()], ["ClustersSelected", "ClusterRemoved"])
    controller.stop()


def test_no_message_of_an_event_is_read(
    timeline: Run, admin: Driver, controllers: Controllers, run: Run
) -> None:
    placed_and_left(admin, controllers)

    def shown() -> list[Any]:
        lanes = json.loads(timeline("-o", "json").stdout)["lanes"]
        [check] = json.loads(run("status", "-o", "json").stdout)["checks"]
        steps = run("explain", "cluster", "c11", "-o", "json").stdout
        history = [
            (lane["name"], [span["begin"] for span in lane["spans"]], lane["scores"][:1]) for lane in lanes
        ]
        return [history, check["listWrites"]["lastHour"], steps]

    before = shown()
    assert (len(before[0]), before[1]) == (12, 1), "all twelve clusters, though a message names five"
    assert [scores[0]["value"] for _, _, scores in before[0]] == [50 - place for place in range(12)]
    change_events(admin, {"message": "2 clusters more, by Placement kueue-system/demo: x (score 9); y"})
    assert shown() == before
    Path("dump.yaml").write_text(run("dump").stdout, "utf-8")
    of_dump = commands.run("timeline", "demo", "--from-dump", "dump.yaml", "-o", "json")
    assert [lane["name"] for lane in json.loads(of_dump.stdout)["lanes"]] == [name for name, *_ in before[0]]


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param(None, id="of an older version"),
        pytest.param({ANNOTATION: '{"change":"added","clusters":[{"name":7}]}'}, id="of somebody else"),
    ],
)
def test_events_of_an_older_version_are_shown_as_text(
    timeline: Run, admin: Driver, controllers: Controllers, run: Run, annotations: Object | None
) -> None:
    placed_and_left(admin, controllers)
    change_events(admin, {"metadata": {"annotations": annotations}, "message": "1 cluster more: x\x1b[31m"})
    found = json.loads(timeline("-o", "json").stdout)
    assert len(found["lanes"]) == 11, "the present list alone"
    assert {span["beginKnown"] for lane in found["lanes"] for span in lane["spans"]} == {False}
    assert [note[9:] for note in found["notes"][1:]] == [
        "ClustersSelected: 1 cluster more: x\\x1b[31m",
        "ClusterRemoved: 1 cluster more: x\\x1b[31m",
    ]
    table = timeline()
    assert table.stderr.splitlines() == found["notes"]
    assert table.stderr.count("2 events of an older version without data") == 1
    [check] = json.loads(run("status", "-o", "json").stdout)["checks"]
    assert check["listWrites"]["lastHour"] == 0


def test_without_events_it_says_so(timeline: Run, admin: Driver) -> None:
    admin.check("demo")
    admin.select("demo", "a")
    admin.cluster("demo-a")
    admin.config("demo", "demo-a")
    result = timeline()
    assert result.exit_code == 0
    assert "a        listed  before" in result.stdout
    assert "there are no events about the list" in result.stderr


def story(admin: Driver, record: Path, failures: list[BaseException]) -> None:
    """Change a list while it is recorded, one thing after the other; then press Ctrl-C."""
    config = admin.kueue("multikueueconfigs", "demo")
    score = SCORES.format("b") + "/usage"

    def lines() -> list[Any]:
        return (
            [json.loads(line) for line in record.read_text("utf-8").splitlines()] if record.exists() else []
        )

    try:
        eventually(lambda: len(lines()), 1)
        annotations = {DRAINING: "demo-a=2026-08-01T12:00:00Z"}
        change = {"metadata": {"annotations": annotations}, "spec": {"clusters": ["demo-b", "demo-a"]}}
        admin.ask("PATCH", config, change, "merge")
        eventually(lambda: lines()[-1]["draining"], ["a"])
        value = {"status": {"scores": [{"name": "gpus", "value": 42}]}}
        admin.ask("PATCH", f"{score}/status", value, "merge")
        eventually(lambda: lines()[-1]["scores"], {"b": 42})
        admin.ask("PATCH", config, {"spec": {"clusters": ["demo-b"]}}, "merge")
        eventually(lambda: lines()[-1]["listed"], ["b"])
    except BaseException as error:
        failures.append(error)
    finally:
        os.kill(os.getpid(), signal.SIGINT)


def test_states_and_scores_are_recorded_until_ctrl_c(timeline: Run, admin: Driver) -> None:
    add_on = {"resourceName": "usage", "scoreName": "gpus"}
    admin.check("demo")
    admin.placement(
        "demo",
        prioritizerPolicy={
            "mode": "Exact",
            "configurations": [{"scoreCoordinate": {"type": "AddOn", "addOn": add_on}, "weight": 1}],
        },
    )
    admin.decide("demo", "a", "b")
    admin.secrets_for("a", "b")
    admin.namespace("b")
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
    admin.ask("POST", SCORES.format("b"), kind | {"metadata": {"name": "usage"}})
    for name in ("demo-a", "demo-b"):
        admin.cluster(name)
    admin.config("demo", "demo-a")
    failures: list[BaseException] = []
    player = threading.Thread(target=story, args=(admin, Path("story.jsonl"), failures))
    player.start()
    recorded = timeline("--record", "story.jsonl")
    player.join()
    assert (recorded.exit_code, failures) == (0, [])
    assert "recording demo" in recorded.stderr
    assert spans(timeline("--from", "story.jsonl", "-o", "json")) == {
        "a": [("listed", False, True), ("draining", True, True)],
        "b": [("listed", True, True)],
    }
    again = timeline("--record", "story.jsonl")
    assert (again.exit_code, "name a new file" in again.stderr) == (1, True)


def test_a_recording_ends_by_itself(timeline: Run, admin: Driver) -> None:
    admin.check("demo")
    assert timeline("--record", "short.jsonl", "--for", "300ms").exit_code == 0
    assert timeline("--from", "short.jsonl").exit_code == 0
    assert len(Path("short.jsonl").read_text("utf-8").splitlines()) == 2


WRONG = [
    pytest.param(["nix"], 1, "there is no AdmissionCheck nix", id="check"),
    pytest.param([], 2, "name a check: demo, other", id="which"),
    pytest.param(
        ["--record", "x", "--from", "y"],
        2,
        "use --record without --from, --prometheus and --from-dump",
        id="both",
    ),
    pytest.param(["nix", "--record", "x"], 1, "there is no AdmissionCheck nix", id="no-check-to-record"),
    pytest.param(["--for", "5m"], 2, "use --for only with --record", id="for"),
    pytest.param(["--since", "yesterday"], 2, "use a duration like 90s, 5m or 1h30m", id="since"),
    pytest.param(["--from", "nix"], 1, "nix: No such file or directory", id="no-file"),
    pytest.param(
        ["--record", "no/such/file", "demo"], 1, "no/such/file: No such file or directory", id="no-folder"
    ),
]


@pytest.mark.parametrize(("words", "code", "expected"), WRONG)
def test_wrong_words(timeline: Run, admin: Driver, words: list[str], code: int, expected: str) -> None:
    admin.check("demo")
    admin.check("other")
    result = timeline(*words)
    assert (result.exit_code, expected in result.stderr) == (code, True)
    assert {path.name for path in Path().iterdir()} == {"admin"}
