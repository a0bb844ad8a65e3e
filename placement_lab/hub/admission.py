"""
Admission webhooks of the embedded hub: functions of this process that complete new objects and refuse writes.

Runs in the hub's thread. Writes of a status, and of other subresources, are not reviewed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placement_lab.hub.errors import forbidden, object_details

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement_lab.hub.catalog import Catalog
    from placement_lab.hub.store import Store
    from placement_lab.hub.write_request import WriteRequest

    Object = dict[str, Any]
    Find = Callable[[str, str, str], Object | None]
    """(plural, namespace, name) → the object of Kueue's group that the hub stores, None if there is none."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """
    A webhook for the objects of one kind, of which `plural` is the name in paths.

    `default` returns a new object, completed; `refusal` returns why an object that is created (`live` is
    None) or updated is not stored, None if it is. `name`: the one in messages. `group`: that of the objects
    which `default` may find.
    """

    name: str
    plural: str
    group: str
    default: Callable[[Object, Find], Object]
    refusal: Callable[[Object, Object | None], str | None]


class Admission:
    """The webhooks of a hub, in the order in which they were added."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self.store, self.catalog = store, catalog
        self.webhooks: list[Webhook] = []

    def default(self, request: WriteRequest, obj: Object) -> Object:
        """Return a new object after all webhooks for its kind."""
        for webhook in self._of(request):
            obj = webhook.default(obj, self._finder(webhook.group))
        return obj

    def review(self, request: WriteRequest, obj: Object, live: Object | None) -> None:
        """Raise 403 if a webhook refuses the object, or its change."""
        for webhook in self._of(request):
            if why := webhook.refusal(obj, live):
                name = obj["metadata"].get("name") or ""
                message = f'admission webhook "{webhook.name}" denied the request: {why}'
                raise forbidden(message, object_details(request.resource, name))

    def _of(self, request: WriteRequest) -> list[Webhook]:
        reviewed = [it for it in self.webhooks if it.plural == request.resource.plural]
        return [] if request.subresource else reviewed

    def _finder(self, group: str) -> Find:
        def find(plural: str, namespace: str, name: str) -> Object | None:
            kind = self.catalog.kind(group, plural)
            record = self.store.get(kind, (namespace, name)) if kind else None
            return record.obj if record else None

        return find
