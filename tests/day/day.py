"""Play a day, or a part of it."""

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import pytest

from tests.day.agreement import Agreement
from tests.day.check_conditions import CheckConditions
from tests.day.maintenance_rules import MaintenanceRules
from tests.day.quarantine_rules import QuarantineRules
from tests.day.rules import Finding, Rules
from tests.day.score_rules import ScoreRules
from tests.day.setup_rules import SetupRules
from tests.day.trace import Item
from tests.day.world import World
from tests.support.virtual.loop import play


@dataclass(frozen=True, slots=True)
class Played:
    """A day that was played: the first finding (None: all was well), and the world at its end."""

    finding: Finding | None
    world: World


def play_day(
    mode: str, seed: int, items: Sequence[Item], seconds: float, rules: Collection[str] = ()
) -> Played:
    """Play `items` for so many virtual seconds, or until a rule of `rules` (empty: any) does not hold."""
    random.seed(seed)  # the backoff of the queue
    world = World(mode, seed)
    findings: list[Finding] = []

    async def story() -> None:
        over = asyncio.get_running_loop().create_future()

        def report(finding: Finding) -> None:
            findings.append(finding)
            if not over.done():
                over.set_result(None)

        world.start()
        watching = Rules(world, report, rules)
        Agreement(watching)
        MaintenanceRules(watching)
        if world.bare:
            SetupRules(watching, world.bare)
        if world.scored:
            ScoreRules(watching)
            watching.conditions = CheckConditions(world)
            QuarantineRules(watching, world.scored, watching.conditions)

        def happens(item: Item) -> None:
            watching.happened += 1
            world.happen(item)

        for item in items:
            world.kueue.later(item.at, partial(happens, item))
        await asyncio.wait([over], timeout=seconds)

    play(world.kueue, story())
    return Played(findings[0] if findings else None, world)


def found_with(
    fault: Callable[[pytest.MonkeyPatch], None],
    mode: str,
    items: Sequence[Item],
    seconds: float,
    rules: Collection[str],
    without: Collection[str] = (),
) -> Finding:
    """
    Return what `rules` find in a play with a fault.

    In one without it, nothing is found by `without` (empty: any rule) until a minute later.
    """
    with pytest.MonkeyPatch.context() as patched:
        fault(patched)
        finding = play_day(mode, 1, items, seconds, rules).finding
    assert finding, f"{', '.join(rules)} find nothing"
    sound = play_day(mode, 1, items, finding.at + 60.0, without).finding
    assert sound is None, f"without the fault: {sound}"
    return finding
