"""
One key at a time: snapshot → plan → diff → act; errors become retries or the condition `ApplyFailed`.

Nothing is decided before every watched kind has been listed once.
"""

from collections.abc import Callable
from datetime import datetime

import structlog

from placement_ac.act import Actor
from placement_ac.diff import conditions, diff
from placement_ac.errors import ApiError, Conflict, NotFound, Refused
from placement_ac.names import APPLY_FAILED
from placement_ac.plan import plan, refuse
from placement_ac.snapshot import Key, Plan, Snapshot
from placement_ac.workqueue import Retry
from placement_ac.world import World

log = structlog.get_logger(__name__)


class Reconciler:
    """Makes the hub what the world calls for, key by key.

    `clock` gives the time of day (UTC) for conditions, `ticks` seconds that only go forward.
    `later(key, seconds)` is asked to bring a key back.
    """

    def __init__(
        self,
        world: World,
        actor: Actor,
        *,
        clock: Callable[[], datetime],
        ticks: Callable[[], float],
        later: Callable[[Key, float], None],
    ) -> None:
        self._world = world
        self._actor = actor
        self._clock = clock
        self._ticks = ticks
        self._later = later
        self._pending: dict[Key, dict[str, float]] = {}

    async def reconcile(self, key: Key) -> None:
        """Bring one key in order. Raises Retry when it has to be tried again."""
        if not self._world.complete:
            return
        seen = self._snapshot(key)
        wanted = plan(seen)
        self._remember(key, wanted)
        try:
            await self._actor.act(diff(seen, wanted))
        except Refused as refused:
            await self._tell(seen, wanted, refused)
            raise Retry(refused.retry_after) from None
        except ApiError as error:
            _log(key, error)
            raise Retry(error.retry_after) from None
        if wanted.recheck_after is not None:
            self._later(key, wanted.recheck_after)

    def _snapshot(self, key: Key) -> Snapshot:
        now = self._ticks()
        ages = {cluster: now - since for cluster, since in self._pending.get(key, {}).items()}
        return self._world.snapshot(key, self._clock(), ages)

    def _remember(self, key: Key, wanted: Plan) -> None:
        known = self._pending.pop(key, {})
        if wanted.pending:
            now = self._ticks()
            self._pending[key] = {cluster: known.get(cluster, now) for cluster in wanted.pending}

    async def _tell(self, seen: Snapshot, wanted: Plan, refused: Refused) -> None:
        """Say on the checks that the API server refused a write; if it refuses that too, in the log."""
        log.warning("the API server refused a write", placement=seen.name, error=refused.message)
        verdict = refuse(APPLY_FAILED, refused.message)
        verdicts = dict.fromkeys(wanted.verdicts, verdict)
        try:
            await self._actor.act((conditions(seen, verdicts),))
        except ApiError as error:
            log.warning("the condition could not be set", placement=seen.name, error=error.message)


def _log(key: Key, error: ApiError) -> None:
    if isinstance(error, Conflict | NotFound):
        log.debug("the hub has moved on; looking again", key=key.name, error=error.message)
    else:
        log.warning("the API server is not available; trying again", key=key.name, error=error.message)
