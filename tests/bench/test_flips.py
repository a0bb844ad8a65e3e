"""The rows and figures of the flips bench, and a tiny run of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.flips import FLAPPING, Row, figures, rows, table
from bench.jobs_scene import OURS
from placement_lab.standins.fleet import JobCounter
from tests.support.scored_jobs import Ledger, arrivals, percentiles

ROOT = Path(__file__).resolve().parents[2]
NO_REQUESTS = {"listChanges": 0, "listWrites": 0, "workloadWrites": 0, "copiesRead": 0}
JOB = {"metadata": {"name": "a", "uid": "1"}, "spec": {"suspend": False}, "status": {}}


def test_each_dispatcher_has_a_row_without_and_one_with_flips() -> None:
    found = [
        (row.dispatcher, row.running, row.flips, row.gap) for row in rows(["AllAtOnce", OURS], [10], 120)
    ]
    assert found == [
        ("AllAtOnce", 10, 0, 10.0),
        ("AllAtOnce", 10, 12, 10.0),
        (OURS, 10, 0, 10.0),
        (OURS, 10, 100, 1.2),
    ]


def test_flapping_flips_every_two_seconds_while_kueue_takes_four_for_a_placement() -> None:
    [row] = rows([FLAPPING], [10, 200], 120)
    assert (row.dispatcher, row.flips, row.gap, row.placement_seconds) == ("AllAtOnce", 60, 2.0, 4.0)
    assert (min(row.flip_times()), max(row.flip_times())) == (2.0, 120.0)


def test_the_jobs_of_a_seed_are_the_same_in_every_row() -> None:
    assert arrivals(120.0, 0.3, seed=1) == arrivals(120.0, 0.3, seed=1) != arrivals(120.0, 0.3, seed=2)


def test_percentiles_of_sorted_seconds() -> None:
    assert percentiles([float(number) for number in range(10)]) == {"p50": 5.0, "p90": 9.0, "max": 9.0}
    assert percentiles([]) is None


def test_jobs_that_have_not_started_or_were_interrupted_are_reported() -> None:
    counter = JobCounter()
    counter.record("worker1", "a", JOB)
    started = counter.first_start_of("a") or 0.0
    ledger = Ledger(counter, ["gone"], created={"a": started - 1, "b": started}, lasts={"a": 1.0, "b": 1.0})
    ledger.wait("worker1", 0.5)
    found = figures(Row("AllAtOnce", 0, 1), ledger, NO_REQUESTS, started)
    assert found["toStart"] == {"p50": 1.0, "p90": 1.0, "max": 1.0}
    assert (found["notStarted"], found["unfinished"], found["longestWaitWithQuota"]) == (1, 2, 0.5)
    assert found["interrupted"] == 1
    assert found["lastStartAfterLastFlip"] is None
    assert found["kueue"] == "0.20"
    assert "Kueue 0.20, AllAtOnce, 0 running, 1 flips" in table([found])


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_tiny_run_loses_no_job_and_writes_its_figures(tmp_path: Path) -> None:
    output = tmp_path / "flips.json"
    words = "--rows placement-ac --running 3 --seconds 6 --flips 2 --gap 2 --rate 1 --parallel 2 --kueue 0.19"
    command = [sys.executable, "-m", "bench.flips", *words.split(), "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    still, flipped = json.loads(output.read_text())["rows"]
    assert (still["flips"], flipped["flips"]) == (0, 2)
    assert still["jobs"] == flipped["jobs"] > 0
    for row in (still, flipped):
        assert (row["unfinished"], row["interrupted"], row["ranTwice"], row["startedAgain"]) == (0, 0, 0, 0)
        assert row["listChanges"] == 0, "with our dispatcher a flip among listed clusters changes no list"
        assert row["kueue"] == "0.19"
    assert "| Kueue 0.19, placement-ac, 3 running |" in done.stdout
