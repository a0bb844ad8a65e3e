"""
Every change of an object: create, update, patch, apply, delete.

Runs in the hub's thread. A write is computed in full, judged, and only then
stored; a refusal (`ApiError`) leaves nothing behind. Nothing is changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement_ac.lab.hub import field_sets, managed_fields, metadata, strategies
from placement_ac.lab.hub.apply import apply
from placement_ac.lab.hub.errors import (
    StatusCause,
    already_exists,
    bad_request,
    forbidden,
    invalid,
    not_found,
    object_details,
)
from placement_ac.lab.hub.garbage_collector import GarbageCollector
from placement_ac.lab.hub.kinds import from_crd
from placement_ac.lab.hub.managed_fields import ManagedFieldsEntry
from placement_ac.lab.hub.schema import prune_and_default
from placement_ac.lab.hub.store import Record
from placement_ac.lab.hub.validate import validate
from placement_ac.lab.hub.write_request import WriteRequest, without

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement_ac.lab.hub.catalog import Catalog
    from placement_ac.lab.hub.store import Object, Store

# Kinds that may be put without saying which version is replaced. Source: AllowUnconditionalUpdate.
UNCONDITIONAL = {
    "configmaps", "events", "namespaces", "secrets", "serviceaccounts",
    "clusterrolebindings", "clusterroles", "rolebindings", "roles",
}  # fmt: skip


class Writes:
    """
    The writing verbs.

    `soon` runs a function after the present request; `confirm` raises 403 for what
    must not be stored on behalf of who asks.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        soon: Callable[[Callable[[], None]], object],
        confirm: Callable[[WriteRequest, Object, Object | None], None],
    ) -> None:
        self.store, self.catalog, self.confirm = store, catalog, confirm
        self.collector = GarbageCollector(store, catalog, soon, self._collect, self._update_owners)

    # -- the verbs: each returns the record to answer with

    def create(self, ask: WriteRequest, body: Object) -> Record:
        kind_faults = ask.check_type(body)
        obj = ask.prune_and_default(body)
        meta = metadata.new_metadata(ask.resource, obj.get("metadata") or {}, ask.namespace)
        obj = strategies.prepare(ask.resource, {**obj, "metadata": meta}, None)
        if ask.version.status and ask.resource.custom:
            obj.pop("status", None)
        self._validate(ask, meta.get("name") or "", obj, None, kind_faults)
        return self._insert(
            ask,
            obj,
            managed_fields.after_update(
                {}, ask.managed_fields_entry("Update"), *field_sets.changes(ask.version.schema, {}, obj)
            ),
        )

    def update(self, ask: WriteRequest, body: Object) -> Record:
        """PUT: the whole object, or with /status its whole status."""
        live = self._stored(ask)
        faults = ask.check_type(body)
        given = body.get("metadata") or {}
        unsaid = not given.get("resourceVersion")
        if unsaid and (ask.resource.custom or ask.resource.plural not in UNCONDITIONAL):
            message = "Invalid value: 0: must be specified for an update"
            raise invalid(
                ask.resource,
                ask.name,
                [StatusCause("FieldValueInvalid", message, "metadata.resourceVersion")],
            )
        return self._replace(ask, live, body, faults)

    def patch(self, ask: WriteRequest, change: Callable[[Object], Any]) -> Record:
        """A merge, JSON or strategic patch: `change` makes the new object from the present one."""
        live = self._stored(ask)
        body = change(live.in_version(ask.version.name))
        if not isinstance(body, dict):
            raise bad_request("the patch does not leave an object")
        return self._replace(ask, live, body, ask.check_type(body))

    def apply(self, ask: WriteRequest, config: Object) -> Record:
        """Server-side apply; creates the object (never its status alone) when it is missing."""
        ask.check_apply(config)
        given = config.get("metadata") or {}
        record = self.store.get(ask.resource, ask.key)
        ask.check_uid(record, given.get("uid"))
        ask.check_preconditions(record, given.get("uid"), given.get("resourceVersion"))
        if record is None and ask.subresource:
            raise not_found(ask.resource, ask.name)
        wanted = ask.apply_configuration(config)
        by = ask.managed_fields_entry("Apply")
        if record is None:
            return self._apply_new(ask, wanted, by)
        live = record.in_version(ask.version.name)
        bare = without_managers(live)
        merged, owners = apply(
            ask.version.schema,
            bare,
            wanted,
            managed_fields.read(live["metadata"]),
            by,
            ask.query.get("force") == "true",
        )
        return self._commit(ask, record, ask.prune_and_default(merged, bare["metadata"]), owners, [])

    def delete(self, ask: WriteRequest, options: Object) -> tuple[Record, bool]:
        """Return the record and whether it is gone; it stays, marked, while it has finalizers."""
        record = self._stored(ask)
        wanted = options.get("preconditions") or {}
        ask.check_preconditions(record, wanted.get("uid"), wanted.get("resourceVersion"))
        if ask.dry_run:
            return record, not _has_finalizers(record.obj)
        policy = options.get("propagationPolicy") or ask.query.get("propagationPolicy")
        if policy == "Orphan":
            self.collector.orphan(record)
            record = self._stored(ask)
        return self._delete(record)

    # -- the parts of a write

    def _stored(self, ask: WriteRequest) -> Record:
        record = self.store.get(ask.resource, ask.key)
        if record is None:
            raise not_found(ask.resource, ask.name)
        return record

    def _validate(
        self, ask: WriteRequest, name: str, obj: Object, live: Object | None, first: list[StatusCause]
    ) -> None:
        if first:
            raise invalid(ask.resource, name, first)
        faults = metadata.validate(ask.resource, obj["metadata"])
        if live is not None:
            faults = [*faults, *metadata.validate_update(obj["metadata"], live["metadata"])]
        faults += strategies.validate(ask.resource, obj, live)
        if causes := validate(ask.version.schema, obj, live, faults):
            raise invalid(ask.resource, name, causes)
        self.confirm(ask, obj, live)

    def _insert(self, ask: WriteRequest, obj: Object, owners: managed_fields.Managers) -> Record:
        name = obj["metadata"]["name"]
        key = (ask.namespace, name)
        self._check_namespace(ask)
        if self.store.get(ask.resource, key) is not None:
            raise already_exists(ask.resource, name)
        obj = self._stored_form(ask, with_managers(obj, owners))
        if ask.dry_run:
            return Record(ask.resource, key, obj, 0)
        record = self.store.put(ask.resource, key, obj)
        self._after(record)
        return record

    def _check_namespace(self, ask: WriteRequest) -> None:
        if not ask.namespace:
            return
        namespaces = self.catalog.kind("", "namespaces")
        assert namespaces is not None  # noqa: S101 built in, never dropped
        namespace = self.store.get(namespaces, ("", ask.namespace))
        if namespace is None:
            raise not_found(namespaces, ask.namespace)
        if namespace.obj["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {ask.namespace} because it is being terminated"
            raise forbidden(why, object_details(ask.resource, ask.name))

    def _replace(self, ask: WriteRequest, record: Record, body: Object, faults: list[StatusCause]) -> Record:
        given = body.get("metadata")
        given = given if isinstance(given, dict) else {}
        ask.check_names(given)
        ask.check_preconditions(record, given.get("uid"), given.get("resourceVersion"))
        live = record.in_version(ask.version.name)
        obj = ask.prune_and_default(body)
        if ask.is_status:
            obj = live | {"status": obj["status"]} if "status" in obj else without(live, "status")
            obj = {**obj, "metadata": live["metadata"] | _managed_fields_of(given)}
        return self._commit(ask, record, obj, None, faults)

    def _commit(
        self,
        ask: WriteRequest,
        record: Record,
        obj: Object,
        owners: managed_fields.Managers | None,
        faults: list[StatusCause],
    ) -> Record:
        """Judge and store the next version of an object; `owners` is None for an update."""
        live = record.in_version(ask.version.name)
        if ask.version.status and not ask.is_status:
            obj = without(obj, "status") | ({"status": live["status"]} if "status" in live else {})
        given = obj.get("metadata") or {}
        meta = metadata.updated_metadata(given, live["metadata"]) | ask.names
        obj = strategies.prepare(ask.resource, {**obj, "metadata": meta}, live)
        self._validate(ask, ask.name, obj, live, faults)
        bare, before = without_managers(obj), without_managers(live)
        if owners is None:
            owners = self._owners_after_update(ask, given, before, bare)
        obj = with_managers(bare, owners)
        if obj == live:
            return record
        if ask.resource.generation and _moves_generation(ask, obj, live):
            obj["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1
        obj = self._stored_form(ask, obj)
        if ask.dry_run:
            return Record(ask.resource, record.key, obj, record.rv)
        return self._put(record, obj)

    def _owners_after_update(
        self, ask: WriteRequest, given: Object, before: Object, after: Object
    ) -> managed_fields.Managers:
        entries = given.get("managedFields")
        live = self.store.get(ask.resource, ask.key)
        known = (
            managed_fields.read(given)
            if entries
            else managed_fields.read(live.obj["metadata"])
            if live
            else {}
        )
        touched, removed = field_sets.changes(ask.version.schema, before, after)
        return managed_fields.after_update(known, ask.managed_fields_entry("Update"), touched, removed)

    def _stored_form(self, ask: WriteRequest, obj: Object) -> Object:
        """The object in its kind's stored version: without a conversion only its schema differs."""
        resource = ask.resource
        if ask.version.name == resource.storage or resource.storage not in resource.versions:
            return obj
        storage = resource.versions[resource.storage]
        stored: Object = prune_and_default(storage.schema, obj, defaults=True, unknown=[])
        return stored | {"apiVersion": resource.api_version(resource.storage)}

    def _put(self, before: Record, obj: Object) -> Record:
        if before.obj["metadata"].get("deletionTimestamp") and not _has_finalizers(obj):
            last = self._remove(before)
            return Record(before.resource, before.key, obj, last.rv)
        record = self.store.put(before.resource, before.key, obj)
        self._after(record, before)
        return record

    def _after(self, record: Record, before: Record | None = None) -> None:
        self.collector.object_written(record, before)
        if strategies.is_crd(record.resource):
            self._install(record)

    def _install(self, crd: Record) -> None:
        new = from_crd(crd.obj)
        old = self.catalog.kind(new.group, new.plural)
        if old is None:
            self.store.add_kind(new)
        else:
            self.catalog.drop(old)
            self.store.replace_kind(old, new)
        self.catalog.add(new)

    def _uninstall(self, crd: Record) -> None:
        spec = crd.obj["spec"]
        resource = self.catalog.kind(spec["group"], spec["names"]["plural"])
        if resource is not None:
            objects = list(self.store.by_resource[resource].records.values())
            self.catalog.drop(resource)
            self.store.drop_kind(resource)
            for record in objects:
                self.collector.object_deleted(record)

    # -- deleting

    def _delete(self, record: Record) -> tuple[Record, bool]:
        if not _has_finalizers(record.obj):
            return self._remove(record), True
        meta = record.obj["metadata"]
        if meta.get("deletionTimestamp"):
            return record, False
        marks: Object = {"deletionTimestamp": metadata.now(), "deletionGracePeriodSeconds": 0}
        if record.resource.generation:
            marks["generation"] = meta["generation"] + 1
        obj = record.obj | {"metadata": meta | marks}
        if strategies.is_namespace(record.resource):
            obj["status"] = {"phase": "Terminating"}
            self.collector.terminate_namespace(record.key[1])
        return self.store.put(record.resource, record.key, obj), False

    def _remove(self, record: Record) -> Record:
        last = self.store.remove(record)
        if strategies.is_crd(record.resource):
            self._uninstall(record)
        self.collector.object_deleted(record)
        return last

    def _collect(self, record: Record) -> None:
        """The garbage collector's delete."""
        if self.store.by_uid.get(record.uid) is record:
            self._delete(record)

    def _update_owners(self, record: Record, obj: Object) -> None:
        """The garbage collector's update."""
        by = ManagedFieldsEntry(
            "kube-controller-manager", "Update", "", obj["apiVersion"], metadata.now(), {}
        )
        schema = record.resource.any_version.schema
        touched, removed = field_sets.changes(schema, without_managers(record.obj), without_managers(obj))
        owners = managed_fields.after_update(managed_fields.read(obj["metadata"]), by, touched, removed)
        self._put(record, with_managers(without_managers(obj), owners))

    def _apply_new(self, ask: WriteRequest, wanted: Object, by: ManagedFieldsEntry) -> Record:
        obj = ask.prune_and_default(wanted)
        meta = metadata.new_metadata(ask.resource, obj["metadata"], ask.namespace)
        obj = strategies.prepare(ask.resource, {**obj, "metadata": meta}, None)
        _, owners = apply(ask.version.schema, {}, wanted, {}, by, force=True)
        self._validate(ask, ask.name, obj, None, [])
        return self._insert(ask, obj, owners)


def _has_finalizers(obj: Object) -> bool:
    """Whether something still has to be done before the object may go."""
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        return bool((obj.get("spec") or {}).get("finalizers") or obj["metadata"].get("finalizers"))
    return bool(obj["metadata"].get("finalizers"))


def _moves_generation(ask: WriteRequest, new: Object, old: Object) -> bool:
    ignored = {"metadata", "apiVersion", "status"} if ask.version.status else {"metadata", "apiVersion"}
    return any(new.get(key) != old.get(key) for key in (new.keys() | old.keys()) - ignored)


def _managed_fields_of(given: Object) -> Object:
    return {"managedFields": given["managedFields"]} if given.get("managedFields") else {}


def without_managers(obj: Object) -> Object:
    return obj | {"metadata": without(obj["metadata"], "managedFields")}


def with_managers(obj: Object, owners: managed_fields.Managers) -> Object:
    written = managed_fields.write(owners)
    return obj | {"metadata": obj["metadata"] | ({"managedFields": written} if written else {})}
