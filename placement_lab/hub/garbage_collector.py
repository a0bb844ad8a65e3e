"""
Delete dependents of deleted owners, and the content of deleted namespaces.

Runs in the hub's thread, right after the request that caused it. Owners are identified by uid, as
in Kubernetes' garbage collector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement_lab.hub.catalog import Catalog
    from placement_lab.hub.store import Record, Store


class GarbageCollector:
    """`soon` schedules a function; `delete` and `replace` are the ordinary writes."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        soon: Callable[[Callable[[], None]], object],
        delete: Callable[[Record], None],
        replace: Callable[[Record, dict[str, Any]], None],
    ) -> None:
        self.store, self.catalog = store, catalog
        self.soon, self.delete, self.replace = soon, delete, replace

    def object_written(self, record: Record, before: Record | None = None) -> None:
        """Check the owners of a written object, unless they are the same as before."""
        owners = record.obj["metadata"].get("ownerReferences")
        if owners and not (before and before.obj["metadata"].get("ownerReferences") == owners):
            self.soon(lambda: self._collect(record.uid))

    def object_deleted(self, record: Record) -> None:
        """Check the dependents of a deleted object, and its namespace if that is terminating."""
        for uid in sorted(self.store.dependents.get(record.uid, ())):
            self.soon(lambda uid=uid: self._collect(uid))  # type: ignore[misc]  # mypy sees no default argument
        namespace = record.key[0]
        if namespace:
            self.soon(lambda: self._finalize_if_empty(namespace))

    def orphan(self, record: Record) -> None:
        """Remove an owner from its dependents, before it is deleted with propagationPolicy=Orphan."""
        for uid in sorted(self.store.dependents.get(record.uid, ())):
            dependent = self.store.by_uid[uid]
            owners = dependent.obj["metadata"]["ownerReferences"]
            self._set_owners(dependent, [owner for owner in owners if owner["uid"] != record.uid])

    def _collect(self, uid: str) -> None:
        record = self.store.by_uid.get(uid)
        if record is None:
            return
        owners = record.obj["metadata"].get("ownerReferences") or []
        there = [owner for owner in owners if not self._is_gone(owner, record)]
        if owners and not there:
            self.delete(record)
        elif len(there) < len(owners):
            self._set_owners(record, there)

    def _is_gone(self, reference: dict[str, Any], dependent: Record) -> bool:
        """Return whether an owner is deleted; False if its kind is not served or cannot be an owner."""
        group = reference["apiVersion"].rpartition("/")[0]
        resource = self.catalog.by_kind(group, reference["kind"])
        if resource is None or (resource.namespaced and not dependent.key[0]):
            return False
        owner = self.store.by_uid.get(reference["uid"])
        namespace = dependent.key[0] if resource.namespaced else ""
        return owner is None or owner.resource is not resource or owner.key != (namespace, reference["name"])

    def _set_owners(self, record: Record, owners: list[dict[str, Any]]) -> None:
        metadata = {k: v for k, v in record.obj["metadata"].items() if k != "ownerReferences"}
        if owners:
            metadata["ownerReferences"] = owners
        self.replace(record, record.obj | {"metadata": metadata})

    def terminate_namespace(self, name: str) -> None:
        """Delete the content of a terminating namespace, then the namespace."""
        self.soon(lambda: self._delete_content(name))

    def _delete_content(self, name: str) -> None:
        for shelf in tuple(self.store.by_resource.values()):
            for record in list(shelf.between(name)) if shelf.resource.namespaced else ():
                self.delete(record)
        self._finalize_if_empty(name)

    def _finalize_if_empty(self, name: str) -> None:
        resource = self.catalog.kind("", "namespaces")
        record = self.store.get(resource, ("", name)) if resource else None
        if record is None or not record.obj["metadata"].get("deletionTimestamp"):
            return
        shelves = (shelf for shelf in self.store.by_resource.values() if shelf.resource.namespaced)
        if not any(list(shelf.between(name)) for shelf in shelves):
            spec = {k: v for k, v in record.obj["spec"].items() if k != "finalizers"}
            self.replace(record, record.obj | {"spec": spec})
