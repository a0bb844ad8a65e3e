"""
The moves of the last hour, or of the cooldown: what the budget has left, and which jobs must not move again.

Pure. An annotation of the MultiKueueConfig holds them, and is written before a job is sent back. So neither a
restart nor the end of a job gives a budget back, and no move is counted too late. As a job is sent back a
little later than its move is recorded, a move counts for as much longer.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, get_args

from placement_ac.core.api.constants import BUDGET_SECONDS, MOVE_SURELY_BEGUN_SECONDS
from placement_ac.core.api.fields import format_time, parse_time
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.state import MovePolicy, Snapshot

Cause = Literal["drain", "maintenance", "quarantine", "better"]
COUNTED_SECONDS: Final = BUDGET_SECONDS + MOVE_SURELY_BEGUN_SECONDS
"""How long a budget counts a recorded move: for BUDGET_SECONDS or more after the job was sent back."""
CLOCKS_DIFFER_SECONDS: Final = 60.0
"""A move that is later than this is no replica's, and counts for nothing."""
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
"""In the order in which jobs are moved."""
WHY_EMPTIED: Final[Mapping[Cause, str]] = MappingProxyType(
    {
        "drain": "it drains",
        "maintenance": "its maintenance is announced",
        "quarantine": "jobs keep failing there",
    }
)
"""Why no job should stay on a cluster, by cause."""


class Move(NamedTuple):
    """One move of a job."""

    check: str
    uid: str
    """Of the Workload."""
    cluster: str
    """The cluster that it leaves."""
    target: str
    """The cluster that was best for it then; "": it is sent back once more, as it has left a copy."""
    cause: Cause
    at: datetime

    def __str__(self) -> str:
        """Return the entry in the annotation."""
        return f"{':'.join(self[:5])}={format_time(self.at)}"


def parse_moves(text: str) -> Iterator[Move]:
    """Yield the moves in an annotation; an entry that cannot be read is left out."""
    return filter(None, map(_parse, text.split(","))) if text else iter(())


def unreadable_moves(text: str) -> list[str]:
    """Return the entries of an annotation that cannot be read, and so count for nothing."""
    return [entry for entry in text.split(",") if _parse(entry) is None] if text else []


def _parse(entry: str) -> Move | None:
    fields, _, time = entry.partition("=")
    parts, at = fields.split(":"), parse_time(time)
    if len(parts) == 5 and at and (cause := next((c for c in CAUSES if c == parts[4]), None)):
        return Move(parts[0], parts[1], parts[2], parts[3], cause, at)
    return None


@dataclass(frozen=True)
class MoveHistory:
    """The moves that count, the latest last."""

    moves: tuple[Move, ...]
    policy: MovePolicy
    now: datetime

    def age(self, move: Move) -> float:
        return (self.now - move.at).total_seconds()

    def in_budget(self, check: str) -> list[Move]:
        """Return the moves of a check that its budget counts."""
        return [move for move in self.moves if move.check == check and self.age(move) < COUNTED_SECONDS]

    def left(self, check: str) -> int:
        """Return how many jobs of a check may still be moved in this hour."""
        return max(self.policy.per_hour - len(self.in_budget(check)), 0)

    def free_at(self, check: str) -> datetime:
        """Return when a spent budget has something left again."""
        counted = self.in_budget(check)
        return counted[len(counted) - self.policy.per_hour].at + timedelta(seconds=COUNTED_SECONDS)

    def last_of(self, check: str) -> Move | None:
        return next((move for move in reversed(self.moves) if move.check == check), None)

    def again(self, jobs: Iterable[Workload]) -> Iterator[Move]:
        """Yield the moves to record of jobs that are sent back once more, and whose last eviction was a move.

        Each counts once: an entry that is later than the eviction is of this time.
        """
        for job in jobs:
            last = next((move for move in reversed(self.moves) if move.uid == job.meta.uid), None)
            if last and job.evicted_at and last.at <= job.evicted_at:
                yield last._replace(target="", at=self.now.replace(microsecond=0))

    @cached_property
    def cooling(self) -> Mapping[str, Move]:
        """Uid of a Workload that must not be moved again yet → its last move."""
        cooldown = self.policy.cooldown + MOVE_SURELY_BEGUN_SECONDS
        return {move.uid: move for move in self.moves if self.age(move) < cooldown}

    def rests_until(self, job: Workload) -> datetime | None:
        """Return until when a job must not be moved again; None: it may be.

        The cooldown begins when Kueue has evicted it, which may be long after its move was recorded.
        """
        last = self.cooling.get(job.meta.uid)
        began = [last.at + timedelta(seconds=MOVE_SURELY_BEGUN_SECONDS)] if last else []
        began += [job.evicted_at] if job.moved and job.evicted_at else []
        until = max(began, default=self.now) + timedelta(seconds=self.policy.cooldown)
        return until if began and until > self.now else None

    def extended(self, new: Iterable[Move], alive: Collection[str]) -> str:
        """Return the annotation with new moves, without those that count for nothing any more.

        `alive`: the uids of unfinished Workloads; the cooldown of others does not matter.
        """
        kept = [
            move
            for move in self.moves
            if self.age(move) < COUNTED_SECONDS or (move.uid in alive and self.cooling.get(move.uid) == move)
        ]
        return ",".join(map(str, (*kept, *new)))


def move_history(snapshot: Snapshot) -> MoveHistory | None:
    """Return the moves that the hub knows of; None: no job is moved."""
    config, policy = snapshot.objects.config, snapshot.policy.moves
    if policy is None:
        return None
    moves = parse_moves(config.moves if config else "")
    soon = snapshot.now + timedelta(seconds=CLOCKS_DIFFER_SECONDS)
    return MoveHistory(tuple(move for move in moves if move.at <= soon), policy, snapshot.now)
