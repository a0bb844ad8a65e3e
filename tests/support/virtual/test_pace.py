"""The cost of a write of a list on the virtual Kueue (flips.md)."""

import pytest

from placement_lab.standins.multikueue import PACES, KueueSettings
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.kueues import ALL, ONLY_MULTIKUEUE, kueue, submitted


def throttled(running: int, pace: str = "0.19") -> VirtualKueue:
    """A hub with that many running jobs, on all workers, and MultiKueue at rest."""
    at = kueue(1, slots=running, settings=KueueSettings(pace=PACES[pace]))
    for number in range(running):
        at.submit(f"running-{number}", ONLY_MULTIKUEUE)
    at.until(lambda: all(at.placed(f"running-{number}") for number in range(running)))
    at.advance(60)
    at.throttled = True
    return at


def seconds_to_place(at: VirtualKueue) -> float:
    return submitted(at).until(lambda: bool(at.placed("b1")), limit=120)


@pytest.mark.parametrize(("running", "pace"), [(60, "0.19"), (30, "0.19 without groupKindConcurrency")])
def test_a_list_write_delays_a_placement_by_a_fifth_of_a_second_for_each_workload(
    running: int, pace: str
) -> None:
    at = throttled(running, pace)
    at.set_config(ALL[::-1])
    at.advance(0.5)
    delay = seconds_to_place(at)
    assert running / 5 - 3 < delay < running / 5 + 3


def test_a_list_write_hardly_delays_a_placement_on_kueue_0_20() -> None:
    at = throttled(60, "0.20")
    at.set_config(ALL[::-1])
    at.advance(0.5)
    assert seconds_to_place(at) < 3
