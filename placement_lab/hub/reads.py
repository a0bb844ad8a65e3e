"""
Get, list and watch: select objects in the store and render them.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from placement_lab.hub import options, selectors, table
from placement_lab.hub.errors import StatusError, bad_request
from placement_lab.hub.watch import WatchStream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placement_lab.hub.kinds import ServedResource, ServedVersion
    from placement_lab.hub.selectors import Test
    from placement_lab.hub.store import Key, Record, ResourceStore, Store

PLAIN, TABLE, METADATA = "", "Table", "PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The target and parameters of a read. `representation`: plain, Table or PartialObjectMetadata."""

    resource: ServedResource
    version: ServedVersion
    namespace: str
    query: dict[str, str]
    representation: str

    @property
    def api_version(self) -> str:
        return self.resource.api_version(self.version.name)

    def render_item(self, record: Record) -> bytes:
        """Return an item of a list: those of built-in kinds have no kind and apiVersion."""
        if self.representation == PLAIN and not self.resource.custom:
            return record.bare_json()
        return self.render(record)

    def render(self, record: Record) -> bytes:
        if self.representation == PLAIN:
            return record.json(self.version.name)
        obj = record.in_version(self.version.name)
        if self.representation == METADATA:
            return orjson.dumps(table.metadata_only(obj))
        meta = {"resourceVersion": str(record.rv)}
        return orjson.dumps(
            table.table(self.version, [obj], meta, self.query.get("includeObject", "Metadata"))
        )


def selector_of(read: ReadRequest) -> Test:
    """Return the test of the request's label and field selectors."""
    known = (*selectors.ALWAYS, *read.version.fields)
    by_label = selectors.labels(read.query.get("labelSelector", ""))
    by_field = selectors.fields(read.query.get("fieldSelector", ""), known)
    if by_label is selectors.selects_all:
        return by_field
    if by_field is selectors.selects_all:
        return by_label
    return lambda obj: by_label(obj) and by_field(obj)


def select(shelf: ResourceStore, read: ReadRequest, after: Key | None = None) -> Iterable[Record]:
    """Return the selected records of a namespace in order, starting after the key `after`."""
    selects = selector_of(read)
    name = selectors.name_in(read.query.get("fieldSelector", ""))
    if name and (read.namespace or not read.resource.namespaced):
        record = shelf.records.get((read.namespace, name))
        return [record] if record and selects(record.obj) and (after is None or record.key > after) else []
    records = shelf.between(read.namespace, after)
    return records if selects is selectors.selects_all else [r for r in records if selects(r.obj)]


def watch(shelf: ResourceStore, read: ReadRequest) -> WatchStream:
    return WatchStream(shelf, read.version, read.namespace, selector_of(read), read.render, read.query)


def list_(store: Store, read: ReadRequest) -> bytes:
    """Return a list as JSON; raises 400 for invalid parameters, 410 for a version that is too old."""
    shelf = store.by_resource[read.resource]
    rv, start = _version_and_start(store, read.query)
    records = list(_as_of(shelf, read, rv, start) if rv < shelf.last else select(shelf, read, start))
    meta: dict[str, Any] = {"resourceVersion": str(rv)}
    options.number(read.query, "timeoutSeconds")
    limit = options.number(read.query, "limit")
    if read.query.get("resourceVersion") == "0":
        limit = 0  # the watch cache answers, which knows no limit
    if 0 < limit < len(records):
        meta["continue"] = _continue_token(rv, records[limit - 1].key)
        if not read.query.get("labelSelector") and not read.query.get("fieldSelector"):
            meta["remainingItemCount"] = len(records) - limit
        records = records[:limit]
    return list_json(read, records, meta)


def list_json(read: ReadRequest, records: list[Record], meta: dict[str, Any]) -> bytes:
    if read.representation == TABLE:
        objects = (record.in_version(read.version.name) for record in records)
        return orjson.dumps(
            table.table(read.version, objects, meta, read.query.get("includeObject", "Metadata"))
        )
    kind, api_version = read.resource.list_kind, read.api_version
    if read.representation == METADATA:
        kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
    if read.resource.custom:
        meta = {"continue": ""} | meta
    head = orjson.dumps({"kind": kind, "apiVersion": api_version, "metadata": meta})
    return b'%b,"items":[%b]}' % (head[:-1], b",".join(map(read.render_item, records)))


def _as_of(shelf: ResourceStore, read: ReadRequest, rv: int, after: Key | None) -> Iterable[Record]:
    selects = selector_of(read)
    for key, record in sorted(shelf.as_of(rv).items()):
        if read.namespace in ("", key[0]) and selects(record.obj) and (after is None or key > after):
            yield record


def _version_and_start(store: Store, query: dict[str, str]) -> tuple[int, Key | None]:
    """Return the version of a list, and the key after which it continues."""
    if token := query.get("continue"):
        return _read_continue_token(token)
    try:
        version = check_version(store, query)
    except ValueError as error:
        raise bad_request(f"invalid resource version: {error}") from None
    return version if query.get(options.MATCH) == "Exact" else store.rv, None


def check_version(store: Store, query: dict[str, str]) -> int:
    """Return the version that a read asks for, or 0; raises 504 if it is not reached yet, or ValueError."""
    version = options.version(query)
    if version > store.rv:
        message = f"Timeout: Too large resource version: {version}, current: {store.rv}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise StatusError(504, "Timeout", message, details={"causes": [cause], "retryAfterSeconds": 1})
    return version


def _continue_token(rv: int, key: Key) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([rv, *key])).decode()


def _read_continue_token(token: str) -> tuple[int, Key]:
    try:
        rv, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    return rv, (namespace, name)
