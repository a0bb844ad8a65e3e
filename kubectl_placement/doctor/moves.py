"""The rule for moves: movable jobs are moved, the budget has some left, and its record can be read. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kubectl_placement.doctor.commands import HUB
from kubectl_placement.doctor.finding import Finding, Level, ok, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from placement_ac.core.api.constants import ADMISSION_CHECK, ANNOTATION_MOVES, MULTIKUEUE_CONFIG, WORKLOAD
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.text import count_text, joined, shortened
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.moves.history import move_history, parse_moves, unreadable_moves

NAMED: Final = 3
"""So many jobs are named."""
WHICH: Final = "kubectl placement plan --moves --workers"


@hub_rule(
    "moves",
    "the controller moves jobs if some may be moved (`--moves`), the budget of this hour has some left, and"
    " the record of moves can be read",
    f"kubectl set env -n CONTROLLER deployment/NAME PLACEMENT_AC_MOVES=true; {WHICH}",
    ADMISSION_CHECK,
    # A dump without any Workload may be complete.
    unknown=lambda setup: setup.unknown(WORKLOAD) if setup.dump.live else (),
)
def moves(setup: HubSetup) -> Iterator[Finding]:
    snapshots = [setup.view.snapshot(placement) for placement in setup.checks_by_placement]
    if not setup.settings.moves:
        if jobs := sorted(_movable(setup, snapshots)):
            message = f"{count_text(len(jobs), 'job')} may be moved ({joined(jobs, shown=NAMED)})"
            fix = setup.set_setting("moves", "true")
            failure = setup.settings_failure(f"{message}, and the controller runs without --moves", fix)
            yield replace(failure, level=Level.WARN)
        yield ok("no job says that it may be moved, and none is: --moves is off")
        return
    for snapshot in snapshots:
        yield from _record(snapshot)
        yield from _budget(snapshot)
    yield ok("the budget of moves has some left for each check")


def _movable(setup: HubSetup, snapshots: list[Snapshot]) -> Iterator[str]:
    """Yield the unfinished jobs that say that they may be moved; without the setting, nobody reads that."""
    for workload in (workload for snapshot in snapshots for workload in snapshot.workloads):
        if workload_with_job(setup.dump.by_key(WORKLOAD)[workload.meta.id]).movable:
            yield workload.label


def _record(snapshot: Snapshot) -> Iterator[Finding]:
    text = snapshot.objects.config.moves if snapshot.objects.config else ""
    if wrong := unreadable_moves(text):
        readable = ",".join(map(str, parse_moves(text)))
        change = (f"{ANNOTATION_MOVES}={readable}", "--overwrite") if readable else (f"{ANNOTATION_MOVES}-",)
        fix = HUB.run("annotate", str(MULTIKUEUE_CONFIG), snapshot.name, *change)
        message = (
            f"the annotation {ANNOTATION_MOVES} of {MULTIKUEUE_CONFIG.kind} {snapshot.name} has "
            f"entries that cannot be read, such as {shortened(wrong[0])!r}: "
            "the budget does not count them"
        )
        yield warn(message, fix)


def _budget(snapshot: Snapshot) -> Iterator[Finding]:
    history = move_history(snapshot)
    for check in snapshot.checks.ours if history else ():
        name = check.meta.name
        if history and not history.left(name):
            again = f"the next one at {history.free_at(name):%H:%M:%SZ}"
            message = f"check {name} has used up its {history.policy.per_hour} moves of this hour: {again}"
            yield warn(f"{message}; if that lasts, see why so many jobs are to move", WHICH)


RULES: Final = (moves,)
