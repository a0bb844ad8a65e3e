"""
The expected start of every job that waits on a hub, or why it is not known.

Pure.
"""

from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from placement_ac.core.expected_start.estimate import TOO_LATE, expected_starts, no_limit
from placement_ac.core.expected_start.history import RUNS_LEAST, Run
from placement_ac.core.expected_start.model import ExpectedStart, Unknown
from placement_ac.core.expected_start.world import HubQueues, PlacementInputs, prepare

TOO_FEW_RUNS: Final = f"fewer than {RUNS_LEAST} jobs of LocalQueue {{queue}} have finished"


def forecast(
    placements: Sequence[PlacementInputs],
    history: Iterable[Run],
    hub: HubQueues | None,
    now: datetime,
    wanted: Container[str] | None = None,
    spent: Callable[[], float] = no_limit,
) -> Generator[None, None, Mapping[str, ExpectedStart]]:
    """Return uid → the expected start of each job that waits; yield after each few milliseconds.

    `history`: the runs that have ended; `hub`: None if the hub's queues are not known; `wanted`: only of
    these jobs (None: of all); `spent`: see `expected_starts`.
    """
    prepared = yield from prepare(placements, history, hub, now)
    found = dict((yield from expected_starts(prepared.world, wanted, spent=spent)))
    short = sorted("/".join(queue) for queue in prepared.without_run_times)
    for uid, start in found.items():
        if start == Unknown(TOO_LATE) and short:
            found[uid] = Unknown(TOO_FEW_RUNS.format(queue=short[0]))
    unknown = prepared.unknown.items()
    return {**found, **{uid: Unknown(why) for uid, why in unknown if wanted is None or uid in wanted}}
