"""Play a day in virtual time: `make day SEED=1 HOURS=24`."""

import argparse
import logging
import sys
import time

import structlog

from tests.day.day import Played, play_day
from tests.day.rules import NAMES
from tests.day.shrinking import shrink
from tests.day.trace import HOUR, Item, a_day
from tests.day.world import MODES, MORE_TROUBLES, NIGHT_HOURS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.day", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="so many days, from --seed on")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--begins", type=float, default=0.0, help="the hour of the day at the start")
    parser.add_argument(
        "--mode", choices=tuple(MODES), action="append", help="default: all, one after the other"
    )
    parser.add_argument(
        "--rule", action="append", choices=NAMES, help="watch this rule only; may be repeated"
    )
    parser.add_argument(
        "--without", action="append", choices=NAMES, default=[], help="do not watch this rule"
    )
    parser.add_argument(
        "--shrink", type=float, default=120.0, help="CPU seconds for the search of a smaller trace"
    )
    args = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    rules = [name for name in args.rule or NAMES if name not in args.without]
    failed = False
    for seed in range(args.seed, args.seed + args.seeds):
        for mode in args.mode or MODES:
            items = a_day(seed, args.hours, args.begins, more=MORE_TROUBLES.get(mode, {}))
            played = _play(mode, seed, items, args.hours, rules)
            if played.finding:
                failed = True
                if args.shrink:
                    _print_smallest(mode, seed, items, played, args.shrink)
    return int(failed)


def _play(mode: str, seed: int, items: tuple[Item, ...], hours: float, rules: list[str]) -> Played:
    began = time.process_time()
    played = play_day(mode, seed, items, (hours + NIGHT_HOURS.get(mode, 0.0)) * HOUR, rules)
    took = time.process_time() - began
    result = played.finding or "all is well"
    _say(f"seed {seed}, {mode}: {hours:g} h, {len(items)} jobs and troubles, {took:.1f} s of CPU: {result}")
    return played


def _print_smallest(mode: str, seed: int, items: tuple[Item, ...], played: Played, budget: float) -> None:
    assert played.finding
    smallest = shrink(mode, seed, items, played.finding, budget)
    _say(
        "The smallest trace that shows it:"
        if smallest.whole
        else "A smaller trace that shows it (time was over):"
    )
    for item in smallest.items:
        _say(f"  {item}")
    _say(f"  {smallest.finding}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
