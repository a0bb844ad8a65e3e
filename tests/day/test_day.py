"""
A day in virtual time: thirty of them, and that each fault is found.

`make day` plays whole days; here are six hours of the afternoon, when the fleet is full. Quarantines
and scores have a mode of their own: workers are asked all the time, so an hour takes several times the CPU of
another one. Three are played here, and `make day` alone waits until a quarantine that no job ends is over.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from placement_ac.controller import reconcile
from placement_ac.controller.recorder import Recorder
from placement_ac.core.dispatch.filters import FILTERS, Filter
from placement_ac.core.inputs.state import Plan, Snapshot
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.stats import PlacementStats, placement_stats
from tests.day.day import found_with, play_day
from tests.day.shrinking import shrink
from tests.day.trace import HOUR, Item, Job, Trouble, a_day
from tests.day.world import MODES, MORE_TROUBLES, SCORES, World
from tests.support.documents import ROOT

NOON: Final = 12.0
HOURS: Final = 6.0
SCORES_HOURS: Final = 3.0
"""In the mode with scores, where the controller reads the workers all the time."""
MINUTE: Final = 60.0
SEEDS: Final = int(os.environ.get("DAY_SEEDS", "30"))
"""How many seeds are played; CI has time for one in each mode."""


def test_the_same_seed_gives_the_same_day() -> None:
    assert a_day(1) == a_day(1)
    assert a_day(1) != a_day(2)


PLAY: Final = """
from tests.day.day import found_with, play_day
from tests.day.trace import HOUR, a_day
print("played", dict(play_day("scores", 1, a_day(1, 0.5, 12.0), HOUR / 4).world.kueue.starts))
"""


def test_the_same_seed_gives_the_same_play() -> None:
    """In each process: no order depends on the hashes of names."""
    plays = [
        subprocess.run(
            [sys.executable, "-c", PLAY],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=ROOT,
        ).stdout.rpartition("played")[2]
        for seed in "12"
    ]
    assert plays[0] == plays[1]
    assert "j0" in plays[0]


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_an_afternoon(seed: int) -> None:
    """All is well. The seeds take turns at the modes."""
    mode = tuple(MODES)[seed % len(MODES)]
    hours = SCORES_HOURS if mode == SCORES else HOURS
    items = a_day(seed, hours, NOON, more=MORE_TROUBLES.get(mode, {}))
    finding = play_day(mode, seed, items, hours * HOUR).finding
    assert not finding, f"{mode}, seed {seed}: {finding}\n{_smallest(mode, seed, items, finding)}"


def _smallest(mode: str, seed: int, items: Sequence[Item], finding: Any) -> str:
    smallest = shrink(mode, seed, items, finding, budget=30.0)
    return "\n".join(map(str, (*smallest.items, smallest.finding)))


# -- each fault is found


def job(number: int, at: float, gpus: int = 8, lasts: float = 40.0) -> Job:
    """A job of Placement research; `at` and `lasts` in minutes."""
    return Job(at * MINUTE, f"j{number}", "research", "research", gpus, lasts * MINUTE)


def research(*, full: int, more: int = 0) -> tuple[Job, ...]:
    """So many jobs of 8 GPUs at the start, and `more` ten minutes later."""
    return tuple(job(n, 1 + n / 60) for n in range(full)) + tuple(job(full + n, 10) for n in range(more))


def no_second_round(snapshot: Snapshot) -> Plan:
    """Nominate nothing more to who is nominated already."""
    wanted = plan(snapshot)
    first = tuple((one, names) for one, names in wanted.nominations if not one.nominated)
    return replace(wanted, nominations=first)


def no_withdrawal(snapshot: Snapshot) -> Plan:
    """Leave the nominations to a cluster that leaves."""
    wanted = plan(snapshot)
    more = tuple((one, names) for one, names in wanted.nominations if set(one.nominated) <= set(names))
    return replace(wanted, nominations=more)


def no_drain(snapshot: Snapshot) -> Plan:
    """Unlist a cluster at once, whatever runs there."""
    wanted = plan(snapshot)
    if wanted.config is None:
        return wanted
    staying = tuple(cluster for cluster in wanted.config.clusters if cluster not in wanted.config.draining)
    return replace(wanted, config=wanted.config._replace(clusters=staying, draining={}))


TAINT: Final = Trouble(20 * MINUTE, "taint", "a100-eu-1", 3 * HOUR)
TAINTED: Final = (*research(full=5), TAINT)


@pytest.mark.parametrize(
    ("mode", "items", "fault", "rule"),
    [
        pytest.param("dispatcher", research(full=10, more=1), no_second_round, "waits", id="no round"),
        pytest.param(
            *("dispatcher", (*research(full=10, more=4), TAINT), no_withdrawal, "leaving"), id="no withdrawal"
        ),
        pytest.param("gate", TAINTED, no_drain, "twice", id="no drain"),
    ],
)
def test_a_fault_of_the_plan_is_found(
    mode: str,
    items: tuple[Item, ...],
    fault: Callable[[Snapshot], Plan],
    rule: str,
) -> None:
    def put(patched: pytest.MonkeyPatch) -> None:
        patched.setattr(reconcile, "plan", fault)

    assert found_with(put, mode, items, 2 * HOUR, [rule]).rule == rule


def test_a_job_that_vanishes_from_its_worker_is_found() -> None:
    happen = World.happen

    def vanishes(world: World, item: Item) -> None:
        happen(world, item)
        for worker in world.kueue.workers.values() if item == items[-1] else ():
            worker.jobs.pop("j0", None)

    def put(patched: pytest.MonkeyPatch) -> None:
        patched.setattr(World, "happen", vanishes)

    items = research(full=1, more=1)
    assert found_with(put, "shared", items, HOUR, ["lost"]).rule == "lost"


FULL: Final = tuple(job(n, 1 + n / 60, lasts=240) for n in range(0, 20, 2))
"""Jobs of four hours on all clusters; those with even numbers do not say how long they run."""
FORCED: Final = (*FULL, Trouble(10 * MINUTE, "window", "a100-eu-1", 3 * HOUR, 1))
LONG_ONES: Final = (
    Trouble(1 * MINUTE, "window", "a100-eu-1", 3 * HOUR),
    *(job(n, 10 + n / 60, lasts=240) for n in range(1, 20, 2)),
)


def no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILTERS, "Maintenance", Filter(lambda *_: None))


def no_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.core.draining.leaving.is_forced_out", lambda *_: False)


@pytest.mark.parametrize(
    ("items", "fault", "rule"),
    [
        pytest.param(LONG_ONES, no_filter, "too-long", id="too long"),
        pytest.param(FORCED, no_force, "forced", id="by force"),
    ],
)
def test_a_fault_in_a_maintenance_window_is_found(
    items: tuple[Item, ...],
    fault: Callable[[pytest.MonkeyPatch], None],
    rule: str,
) -> None:
    assert found_with(fault, "dispatcher", items, 2 * HOUR, [rule]).rule == rule


def test_a_withdrawn_nomination_delays_no_round() -> None:
    """The job waits on three full clusters; one of them leaves before the round is over."""
    items = (*research(full=6), job(6, 3), Trouble(7 * MINUTE, "taint", "a100-eu-1", 0.5 * HOUR))
    assert play_day("dispatcher", 1, items, HOUR).finding is None


@pytest.mark.parametrize("mode", MODES)
def test_a_drain_that_no_metric_counts_is_found(mode: str) -> None:
    def uncounted(snapshot: Snapshot, wanted: Plan) -> PlacementStats:
        return replace(placement_stats(snapshot, wanted), draining=(), drain_states={})

    def put(patched: pytest.MonkeyPatch) -> None:
        patched.setattr(reconcile, "placement_stats", uncounted)

    assert "the metric counts 0" in found_with(put, mode, TAINTED, HOUR, ["drains"], ["drains"]).message


@pytest.mark.parametrize("rule", ["drains", "lost-clusters"])
def test_a_change_without_an_event_is_found(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    items = (*TAINTED, Trouble(40 * MINUTE, "away", "a100-eu-2", 4 * MINUTE))
    monkeypatch.setattr(Recorder, "post", lambda *_: None)
    finding = play_day("dispatcher", 1, items, HOUR, [rule]).finding
    assert finding
    assert "event" in finding.message


def test_the_smallest_trace_has_only_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recorder, "post", lambda *_: None)
    items = (*research(full=5, more=2), TAINT, Trouble(22 * MINUTE, "flip", "h100-us-2", value=5))
    finding = play_day("gate", 1, items, HOUR, ["drains"]).finding
    assert finding
    smallest = shrink("gate", 1, items, finding, budget=60.0)
    assert smallest.whole
    assert len(smallest.items) <= 3
    assert smallest.items[-1].at < finding.at
