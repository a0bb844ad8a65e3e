"""`drain` as an admin types it: announce maintenance, cancel it, ask whether the cluster can be rebooted."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from kubectl_placement.cli.drain import time_by
from placement_ac.core.api.constants import ANNOTATION_MAINTENANCE, LABEL_ORIGIN
from tests.support import commands
from tests.support.driver import Controllers, Driver
from tests.support.jobs import MANAGED, WORKLOADS, Stage, dispatched, has_quota, managed, open_stage, soon


@pytest.fixture
def kubeconfig(controllers: Controllers) -> str:
    return str(controllers.kubeconfig)


def drain(*words: str, kubeconfig: str, settings: Path | None = None) -> Any:
    config = () if settings is None else ("--settings", str(settings))
    return commands.run("drain", *words, "--kubeconfig", kubeconfig, *config)


def annotation(admin: Driver, cluster: str = "a") -> str | None:
    metadata = admin.ask("GET", f"{MANAGED}/{cluster}")["metadata"]
    value = metadata.get("annotations", {}).get(ANNOTATION_MAINTENANCE)
    return None if value is None else str(value)


# -- the annotation


def test_in_two_hours_by_force_and_cancelled(admin: Driver, kubeconfig: str) -> None:
    managed(admin, "a")
    before = datetime.now(UTC)
    done = drain("a", "--in", "2h", "--force", kubeconfig=kubeconfig)
    assert (done.exit_code, done.stderr.startswith("Hub: ")) == (0, True), done.output
    assert done.stdout.startswith("managedcluster.cluster.open-cluster-management.io/a in maintenance from ")
    assert done.stdout.endswith("; jobs that still run there then are sent back\n")
    text, force = (annotation(admin) or "").split(",")
    starts = datetime.fromisoformat(text)
    assert (force, text[-1]) == ("force", "Z")
    assert timedelta(minutes=119) < starts - before < timedelta(minutes=121)
    cancelled = drain("a", "--cancel", kubeconfig=kubeconfig)
    assert (
        cancelled.stdout == "managedcluster.cluster.open-cluster-management.io/a no longer in maintenance\n"
    )
    assert annotation(admin) is None


def test_a_cluster_by_type_and_name(admin: Driver, kubeconfig: str) -> None:
    managed(admin, "a")
    for word in ("managedcluster.cluster.open-cluster-management.io/a", "mcl/a", "cluster/a"):
        assert drain(word, "--in", "0s", kubeconfig=kubeconfig).exit_code == 0
        assert annotation(admin)
        assert drain("a", "--cancel", kubeconfig=kubeconfig).exit_code == 0
    other = drain("node/a", "--in", "0s", kubeconfig=kubeconfig)
    assert other.exit_code == 2
    assert "'node/a' is not the name of a ManagedCluster" in other.stderr
    assert annotation(admin) is None


NEW_YORK = timedelta(hours=-5)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("18:00", "2026-11-26T23:00:00+00:00", id="today"),
        pytest.param("18:00:30", "2026-11-26T23:00:30+00:00", id="with seconds"),
        pytest.param("12:00", "2026-11-27T17:00:00+00:00", id="now is tomorrow"),
        pytest.param("06:30", "2026-11-27T11:30:00+00:00", id="tomorrow"),
        pytest.param("2026-11-26T18:00", "2026-11-26T23:00:00+00:00", id="local time"),
        pytest.param("2026-11-26T18:00:00Z", "2026-11-26T18:00:00+00:00", id="UTC"),
    ],
)
def test_the_time_that_by_names(text: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with local_time("America/New_York", monkeypatch):
        noon = datetime.fromisoformat("2026-11-26T12:00").astimezone()
        assert noon.utcoffset() == NEW_YORK
        assert time_by(text, noon).isoformat() == wanted


def test_the_next_hour_is_that_of_the_clock_on_a_day_that_has_25_hours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with local_time("America/New_York", monkeypatch):
        evening = datetime.fromisoformat("2026-10-31T20:00").astimezone()
        assert time_by("18:00", evening).isoformat() == "2026-11-01T23:00:00+00:00"


class local_time:  # noqa: N801  # used like a function
    """The time zone of this process for a while."""

    def __init__(self, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._zone, self._monkeypatch = zone, monkeypatch

    def __enter__(self) -> None:
        self._monkeypatch.setenv("TZ", self._zone)
        time.tzset()

    def __exit__(self, *_: object) -> None:
        self._monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("tonight", "use a time like 18:00 or 2026-11-26T18:00:00Z", id="a word"),
        pytest.param("25:00", "use a time like 18:00 or 2026-11-26T18:00:00Z", id="no hour"),
        pytest.param("20261126", "use a time like 18:00 or 2026-11-26T18:00:00Z", id="a date alone"),
        pytest.param("18:00Z", "use a time like 18:00 or 2026-11-26T18:00:00Z", id="an hour of a zone"),
        pytest.param("0001-01-01T00:00:00+14:00", "use a time like", id="no year"),
        pytest.param("2026-01-01T00:00:00Z", "use --in 0s for a maintenance that begins now", id="past"),
    ],
)
def test_another_time_is_refused(text: str, problem: str) -> None:
    with pytest.raises(click.BadParameter, match=problem):
        time_by(text, datetime(2026, 11, 26, 12, tzinfo=UTC))


WRONG_WORDS = (
    ("", "use one of --by, --in, --cancel and --status"),
    ("--in 1h --cancel", "use one of --by, --in, --cancel and --status"),
    ("--cancel --force", "use --force with --by or --in"),
    ("--in soon", "use a duration like 90s, 5m or 1h30m"),
    ("--in 99999999h", "use a shorter duration"),
)


def test_wrong_words(kubeconfig: str) -> None:
    for words, problem in WRONG_WORDS:
        done = drain("a", *words.split(), kubeconfig=kubeconfig)
        assert (done.exit_code, problem in done.stderr) == (2, True), done.output


def test_a_cluster_that_does_not_exist(admin: Driver, kubeconfig: str, tmp_path: Path) -> None:
    managed(admin, "cluster1")
    (tmp_path / "defaults").touch()
    for words in (("--in", "1h"), ("--cancel",), ("--status",)):
        done = drain("cluster2", *words, kubeconfig=kubeconfig, settings=tmp_path / "defaults")
        assert done.exit_code == 1
        message = 'Error: managedclusters.cluster.open-cluster-management.io "cluster2" not found'
        assert done.stderr.splitlines()[-1].startswith(message)


# -- can it be rebooted


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text("dispatch: {enabled: true}\n")
    return path


@pytest.fixture
def stage(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    """With our dispatcher, which prefers a; a cluster without jobs stays listed."""
    with dispatched(admin, controllers, ["a", "b"], controller={"unlist_after": 3600}) as opened:
        yield opened


def answer(stage: Stage, settings: Path, cluster: str = "a") -> dict[str, Any]:
    kubeconfig = str(stage.controllers.kubeconfig)
    done = drain(cluster, "--status", "-o", "json", kubeconfig=kubeconfig, settings=settings)
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.exit_code == (0 if found["reboot"] else 1), done.output
    return found


def test_can_i_reboot_it_now(stage: Stage, settings: Path) -> None:
    kubeconfig = str(stage.controllers.kubeconfig)
    assert answer(stage, settings)["why"] == [
        (
            "kubectl placement drain a --in 0s closes it now: no maintenance is announced, and jobs may "
            "come: Placement p selects it"
        )
    ]
    stage.submit("runs")
    stage.until_runs("runs", "a")
    assert drain("a", "--in", "0s", kubeconfig=kubeconfig).exit_code == 0
    assert "ask again in 5 s: its maintenance has just begun" in answer(stage, settings)["why"]
    soon(lambda: answer(stage, settings)["why"], [])
    [job] = answer(stage, settings)["jobs"]
    name = stage.workload("runs")["metadata"]["name"]
    assert (job["namespace"], job["name"], job["state"]) == ("default", name, "running")
    assert datetime.fromisoformat(job["since"]) <= datetime.now(UTC)
    shown = drain("a", "--status", kubeconfig=kubeconfig, settings=settings)
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (1, "no: 1 job is on a")
    assert f"default/{name}" in shown.stdout
    stage.finish("runs")
    soon(lambda: answer(stage, settings)["reboot"])
    shown = drain("a", "--status", kubeconfig=kubeconfig, settings=settings)
    assert (shown.exit_code, shown.stdout) == (0, "yes: no job is on a, and none is sent there\n")
    assert stage.fleet.counter.running("runs") == []
    for words in (("status", "p", "-o", "wide"), ("explain", "cluster/a")):
        shown = commands.run(*words, "--kubeconfig", kubeconfig, "--settings", str(settings))
        assert "in maintenance since " in shown.stdout


def test_a_copy_that_the_hub_does_not_know_of_counts_and_no_answer_is_no_yes(
    stage: Stage, settings: Path
) -> None:
    """Kueue records an admission a second late: until then, only the worker knows."""
    stage.announce("a", "2026-01-01T00:00:00Z")
    soon(lambda: answer(stage, settings)["reboot"])
    worker = Driver(stage.fleet.hubs["a"])
    has_quota(worker, "lost")
    label = {"metadata": {"labels": {LABEL_ORIGIN: "multikueue"}}}
    worker.ask("PATCH", f"{WORKLOADS}/lost", label, "merge")
    soon(lambda: [job["state"] for job in answer(stage, settings)["jobs"]], ["unrecorded"])
    worker.ask("DELETE", f"{WORKLOADS}/lost")
    soon(lambda: answer(stage, settings)["reboot"])
    stage.fleet.kill("a")
    found = answer(stage, settings)
    assert (found["reboot"], found["jobs"]) == (False, [])
    assert found["why"][0].startswith("which copies the worker holds is unknown: MultiKueueCluster p-a: ")


def test_with_kueues_dispatcher_it_must_have_left_the_list(
    admin: Driver, controllers: Controllers, tmp_path: Path
) -> None:
    (tmp_path / "defaults").touch()
    with open_stage(admin, controllers, ["a", "b"]) as stage:
        stage.select("a", "b")
        controllers.start()
        soon(stage.connected, 2)
        stage.submit("runs")
        soon(lambda: stage.placed("runs"))
        busy = stage.placed("runs").removeprefix("p-")
        stage.announce(busy, "2026-01-01T00:00:00Z")
        found = answer(stage, tmp_path / "defaults", busy)
        assert found["why"] == ["wait until it is no longer listed: MultiKueueConfig p lists it"]
        stage.finish("runs")
        soon(lambda: answer(stage, tmp_path / "defaults", busy)["reboot"])
        assert busy not in stage.listed()


def test_a_cluster_that_nobody_uses_and_one_with_a_wrong_annotation(
    admin: Driver, controllers: Controllers, tmp_path: Path
) -> None:
    (tmp_path / "defaults").touch()
    with open_stage(admin, controllers, ["a"]) as stage:
        managed(admin, "unused")
        found = answer(stage, tmp_path / "defaults", "unused")
        assert (found["reboot"], found["maintenance"], found["why"]) == (True, None, [])
        stage.announce("a", "tonight")
        found = answer(stage, tmp_path / "defaults")
        assert found["why"][0].startswith(f"correct the annotation {ANNOTATION_MAINTENANCE}: ")
