"""
Reconciles one key at a time: a Placement, a check without one, or the credentials of a cluster.

Nothing is decided before every watched kind has been listed once.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

from placement_ac.cache.store import Cache
from placement_ac.controller.error_log import ErrorLog
from placement_ac.controller.key_memory import KeyMemories
from placement_ac.controller.reconcile_credentials import CredentialsReconciler
from placement_ac.controller.reconcile_placement import PlacementReconciler
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.worker_queries import ProbeCluster, ReadCopies, WorkerQueries
from placement_ac.controller.writer import Writer
from placement_ac.core.inputs.state import Key
from placement_ac.observability.metrics import Metrics, ReconcileRun


class Reconciler:
    """Makes the hub what the cache calls for, key by key.

    `clock` gives the time of day (UTC) for conditions, `ticks` seconds that only go forward.
    `later(key, seconds)` brings a key back; `ask` asks a cluster for its copies, `examine` probes one
    (None: no cluster is probed).
    """

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        recorder: Recorder,
        *,
        read_copies: ReadCopies,
        probe: ProbeCluster | None = None,
        clock: Callable[[], datetime],
        ticks: Callable[[], float],
        add_after: Callable[[Key, float], None],
        metrics: Metrics | None = None,
    ) -> None:
        self._cache = cache
        self._recorder = recorder
        self._metrics = metrics or Metrics()
        self._memories = KeyMemories(ticks)
        self._questions = WorkerQueries(self._memories, read_copies, probe, add_after)
        errors = ErrorLog()
        self._credentials = CredentialsReconciler(
            cache, writer, self._memories, errors, clock=clock, add_after=add_after
        )
        self._placements = PlacementReconciler(
            cache,
            writer,
            recorder,
            self._memories,
            self._questions,
            errors,
            clock=clock,
            add_after=add_after,
            metrics=self._metrics,
        )

    async def reconcile(self, key: Key) -> None:
        """Bring one key in order. Raises Retry when it has to be tried again."""
        if not self._cache.complete:
            return
        with ReconcileRun(self._metrics, key, key.kind) as run:
            if key.kind == "cluster":
                await self._credentials.reconcile(key, run)
            else:
                await self._placements.reconcile(key, run)

    def forget(self) -> None:
        """Remember nothing, as after a restart, and ask no worker any more."""
        self._questions.cancel()
        self._memories.forget()

    async def close(self) -> None:
        """Post no event and ask no worker any more."""
        await self._recorder.close()
        tasks = self._questions.cancel()
        self._memories.forget()
        await asyncio.gather(*tasks, return_exceptions=True)
