"""
Reconciles one key at a time: a Placement, a check without one, or the credentials of a cluster.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

from placement_ac.cache.store import Cache
from placement_ac.controller.background_queries import BackgroundQueries, ProbeCluster, ReadCopies
from placement_ac.controller.error_log import ErrorLog
from placement_ac.controller.key_memory import KeyMemories
from placement_ac.controller.reconcile_credentials import CredentialsReconciler
from placement_ac.controller.reconcile_placement import PlacementReconciler
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.writer import Writer
from placement_ac.core.inputs.state import Key
from placement_ac.observability.metrics import Metrics, ReconcileRun


class Reconciler:
    """Dispatches each key to the reconciler of its kind.

    `clock` returns the time of day (UTC) for conditions, `monotonic` seconds of a monotonic clock.
    `add_after(key, seconds)` requeues a key; `read_copies` reads a cluster's copies, `probe` probes a cluster
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
        monotonic: Callable[[], float],
        add_after: Callable[[Key, float], None],
        metrics: Metrics | None = None,
    ) -> None:
        self._cache = cache
        self._recorder = recorder
        self._metrics = metrics or Metrics()
        self._memories = KeyMemories(monotonic)
        self._queries = BackgroundQueries(self._memories, read_copies, probe, add_after)
        errors = ErrorLog()
        self._credentials = CredentialsReconciler(
            cache, writer, self._memories, errors, clock=clock, add_after=add_after
        )
        self._placements = PlacementReconciler(
            cache,
            writer,
            recorder,
            self._memories,
            self._queries,
            errors,
            clock=clock,
            add_after=add_after,
            metrics=self._metrics,
        )

    async def reconcile(self, key: Key) -> None:
        """Reconcile one key; nothing happens until the cache is complete. Raises Retry."""
        if not self._cache.has_synced:
            return
        with ReconcileRun(self._metrics, key, key.kind) as run:
            if key.kind == "cluster":
                await self._credentials.reconcile(key, run)
            else:
                await self._placements.reconcile(key, run)

    def reset(self) -> None:
        """Forget everything, as after a restart, and cancel the queries."""
        self._queries.cancel()
        self._memories.clear()

    async def close(self) -> None:
        """Stop to post events and to query workers."""
        await self._recorder.close()
        tasks = self._queries.cancel()
        self._memories.clear()
        await asyncio.gather(*tasks, return_exceptions=True)
