"""Writes Kubernetes events: creates each one, or counts up the one that exists."""

import hashlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cachetools import LRUCache

from placement_ac.core.api.constants import EVENT, EVENTS, EVENTS_NAMESPACE, FIELD_MANAGER, Kind, Resource
from placement_ac.core.api.errors import Conflict, NotFound
from placement_ac.core.api.fields import format_time
from placement_ac.core.api.list_change import ANNOTATION
from placement_ac.core.api.objects import Meta
from placement_ac.core.plan.event_intents import PostableEvent
from placement_ac.kube.client import Client, Object

REPEAT_SECONDS: Final = 600.0
"""An event about a lasting state is posted again after this long."""
REMEMBERED: Final = 10_000
"""The most events that are remembered."""
NAME_MAX: Final = 200
"""Characters of an object's name in the name of an event on it (Kubernetes: 253 in all)."""
MESSAGE_MAX: Final = 1024
"""Kubernetes: characters in an event's message."""
RESOURCE: Final = EVENT.at("v1")
EventKey = tuple[str, str, str, str]
"""Uid of the object, reason, message, annotation."""


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An event to be posted: on which object, when it last happened, and how often."""

    post: PostableEvent
    kind: Kind
    meta: Meta
    when: datetime
    times: int = 1
    of: str = ""
    """The uid of the check in whose turn it is posted."""

    @property
    def message(self) -> str:
        return self.post.message[:MESSAGE_MAX]

    @property
    def is_warning(self) -> bool:
        return EVENTS[self.post.reason][0] == "Warning"

    @property
    def key(self) -> EventKey:
        """Equal for events that are counted as one: their annotation is the same, too."""
        return self.meta.uid, self.post.reason, self.message, self.post.data

    @property
    def name(self) -> str:
        """The same for the same event on the same object, after a restart and on other replicas."""
        digest = hashlib.sha256("\0".join(filter(None, self.key)).encode()).hexdigest()[:16]
        return f"{self.meta.name[:NAME_MAX].rstrip('-.')}.{digest}"

    @property
    def namespace(self) -> str:
        return self.meta.namespace or EVENTS_NAMESPACE


class EventWriter:
    """Creates events on one hub and counts them up."""

    def __init__(self, client: Client, resources: Mapping[Kind, Resource]) -> None:
        self._client = client
        self._resources = resources
        self._instance = socket.gethostname()
        self._counts: LRUCache[EventKey, int] = LRUCache(REMEMBERED)
        """The count of each event that this process has posted."""

    async def write(self, event: QueuedEvent) -> None:
        """Create the event, or count it up. Raises ApiError."""
        before = self._counts.pop(event.key, None)
        try:
            if before is None:
                await self._client.create(RESOURCE, self._body(event))
                self._counts[event.key] = event.times
            else:
                await self._set_count(event, before)
        except NotFound:  # it has expired
            await self._client.create(RESOURCE, self._body(event))
            self._counts[event.key] = event.times
        except Conflict:
            try:
                await self._count_up(event)
            except NotFound:  # it has expired in between
                await self._client.create(RESOURCE, self._body(event))

    async def _count_up(self, event: QueuedEvent) -> None:
        """Count up the existing event; an empty patch reads it, so that no right to get events is needed."""
        existing = await self._merge(event, {})
        last = str(existing.get("lastTimestamp") or "")
        if event.post.lasts and last > format_time(event.when - timedelta(seconds=REPEAT_SECONDS)):
            return
        before = existing.get("count")
        await self._set_count(event, before if isinstance(before, int) else 1)

    async def _set_count(self, event: QueuedEvent, before: int) -> None:
        count = before + event.times
        await self._merge(event, {"count": count, "lastTimestamp": format_time(event.when)})
        self._counts[event.key] = count

    async def _merge(self, event: QueuedEvent, patch: Object) -> Object:
        return await self._client.merge(RESOURCE, event.name, patch, namespace=event.namespace)

    def _body(self, event: QueuedEvent) -> Object:
        now = format_time(event.when)
        annotations = {"annotations": {ANNOTATION: event.post.data}} if event.post.data else {}
        return {
            "apiVersion": "v1",
            "kind": EVENT.kind,
            "metadata": {"name": event.name, "namespace": event.namespace, **annotations},
            "involvedObject": {
                "apiVersion": self._resources[event.kind].api_version,
                "kind": event.kind.kind,
                "name": event.meta.name,
                **({"namespace": event.meta.namespace} if event.meta.namespace else {}),
                "uid": event.meta.uid,
                "resourceVersion": event.meta.resource_version,
            },
            "type": EVENTS[event.post.reason][0],
            "reason": event.post.reason,
            "message": event.message,
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": event.times,
        }
