"""
Post Kubernetes events on AdmissionChecks; the same one not again within ten minutes.

An event is a courtesy: one that cannot be posted is logged, and never in the way.
"""

import uuid
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

import structlog
from cachetools import TTLCache

from placement_ac.errors import ApiError, NotLeading
from placement_ac.kube import Client, Object
from placement_ac.model import Check
from placement_ac.names import ADMISSION_CHECK, EVENT, FIELD_MANAGER, Resource
from placement_ac.snapshot import Notice

log = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 600.0
REMEMBERED: Final = 10_000
NAMESPACE: Final = "default"
"""Kubernetes: where events on cluster-scoped objects are."""
MESSAGE_MAX: Final = 1024
"""Kubernetes: characters in an event's message."""


class Events:
    """Posts notices; `clock` gives the time of day (UTC)."""

    def __init__(self, client: Client, checks: Resource, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._checks = checks
        self._clock = clock
        self._told: TTLCache[tuple[str, Notice], bool] = TTLCache(REMEMBERED, AGAIN_SECONDS)

    async def post(self, notices: Iterable[Notice], checks: Iterable[Check]) -> None:
        """Post each notice on each check, if that has not been done lately."""
        for check in checks:
            for notice in notices:
                if (check.meta.uid, notice) not in self._told:
                    self._told[check.meta.uid, notice] = True
                    await self._post(notice, check)

    async def _post(self, notice: Notice, check: Check) -> None:
        log.info("event", check=check.meta.name, reason=notice.reason, message=notice.message)
        try:
            await self._client.create(EVENT.at("v1"), self._event(notice, check))
        except NotLeading:
            log.debug("not posted, as another one leads", reason=notice.reason)
        except ApiError as error:
            log.warning("an event could not be posted", reason=notice.reason, error=error.message)

    def _event(self, notice: Notice, check: Check) -> Object:
        now = self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": EVENT.kind,
            "metadata": {"name": f"{check.meta.name}.{uuid.uuid4().hex[:16]}", "namespace": NAMESPACE},
            "involvedObject": {
                "apiVersion": self._checks.api_version,
                "kind": ADMISSION_CHECK.kind,
                "name": check.meta.name,
                "uid": check.meta.uid,
                "resourceVersion": check.meta.resource_version,
            },
            "type": "Warning" if notice.warning else "Normal",
            "reason": notice.reason,
            "message": notice.message[:MESSAGE_MAX],
            "source": {"component": FIELD_MANAGER},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
