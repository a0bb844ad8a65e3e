"""Reconciles the provisioned credentials of one cluster: inputs → provisioning plan → writes."""

from collections.abc import Callable, Iterable
from datetime import datetime

from placement_ac.cache.store import Cache
from placement_ac.controller.error_log import ErrorLog
from placement_ac.controller.key_memory import KeyMemories
from placement_ac.controller.workqueue import Retry
from placement_ac.controller.writer import Writer
from placement_ac.core.api.errors import ApiError, Conflict, NotLeading
from placement_ac.core.credentials.provisioning import plan_provisioning
from placement_ac.core.inputs.state import Key
from placement_ac.observability.metrics import ReconcileRun


class CredentialsReconciler:
    """Creates, renews and deletes the credentials of clusters. `clock` returns the time of day (UTC)."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        memories: KeyMemories,
        errors: ErrorLog,
        *,
        clock: Callable[[], datetime],
        add_after: Callable[[Key, float], None],
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._memories = memories
        self._errors = errors
        self._clock = clock
        self._add_after = add_after

    async def reconcile(self, key: Key, run: ReconcileRun) -> None:
        """Reconcile the credentials of a cluster. Raises Retry."""
        ages = self._memories.of(key).timer_ages(self._memories.now())
        wanted = plan_provisioning(self._cache.provisioning_inputs(key.name, self._clock(), ages))
        self._memories.keep(key, wanted.timers)
        try:
            await self._writer.execute(wanted.phases)
        except ApiError as error:
            self._errors.failed(key, error)
            if not isinstance(error, Conflict | NotLeading):
                self._requeue(self._cache.set_provisioning_error(key.name, error.message))
            raise Retry(error.retry_after) from error
        self._requeue(self._cache.set_provisioning_error(key.name, ""))
        try:
            await self._writer.execute(wanted.orphan_phases)
        except ApiError as error:
            self._errors.failed(key, error)
            raise Retry(error.retry_after) from error
        self._errors.succeeded(key)
        if wanted.phases or wanted.orphan_phases:
            run.applied()
        if wanted.recheck_after is not None:
            self._add_after(key, wanted.recheck_after)

    def _requeue(self, keys: Iterable[Key]) -> None:
        """Requeue the Placements that wait for these credentials, so that they report the error."""
        for key in keys:
            self._add_after(key, 0.0)
