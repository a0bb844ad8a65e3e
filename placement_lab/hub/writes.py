"""
Create, update, patch, apply and delete objects.

Runs in the hub's thread. A write is computed and validated before it is stored; after a `StatusError`
the store is unchanged. Objects are never changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement_lab.hub import field_sets, managed_fields, metadata, options, strategies
from placement_lab.hub.admission import Admission
from placement_lab.hub.apply import apply
from placement_lab.hub.errors import (
    UnknownFieldsError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    internal,
    invalid,
    invalid_patch,
    not_found,
    object_details,
)
from placement_lab.hub.garbage_collector import GarbageCollector
from placement_lab.hub.kinds import from_crd
from placement_lab.hub.managed_fields import ManagedFieldsEntry
from placement_lab.hub.store import Record
from placement_lab.hub.write_request import WriteRequest, without
from placement_lab.structural_schema.schema_node import dumps, prune_and_default
from placement_lab.structural_schema.validation import StatusCause, validate

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement_lab.hub.catalog import Catalog
    from placement_lab.hub.store import Object, Store

# Built-in kinds that a PUT creates. Seen on a kube-apiserver 1.36.2.
CREATED_BY_PUT = {
    "events", "leases", "services", "clusterrolebindings", "clusterroles", "rolebindings", "roles",
}  # fmt: skip
WRONG_TYPE = "FieldValueTypeInvalid"  # which a server cannot even decode in a built-in kind
# The propagationPolicy of a deletion that names none, if not Background, which kubectl always sends. Seen on
# a kube-apiserver 1.36.2: it gives a Job of batch/v1 the finalizer `orphan`.
DEFAULT_POLICIES = {"jobs.batch": "Orphan"}


class Writes:
    """
    The write verbs.

    `soon` schedules a function after the current request; `confirm` raises 403 if the user may not
    store the object.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        soon: Callable[[Callable[[], None]], object],
        confirm: Callable[[WriteRequest, Object, Object | None], None],
    ) -> None:
        self.store, self.catalog, self.confirm = store, catalog, confirm
        self.admission = Admission(store, catalog)
        self.collector = GarbageCollector(store, catalog, soon, self._collect, self._update_owners)

    # -- the verbs: each returns the record for the response

    def create(self, request: WriteRequest, body: Object) -> Record:
        kind_errors = request.check_type(body)
        if ((body.get("metadata") or {}).get("resourceVersion") or "0") != "0" and not request.dry_run:
            raise internal("resourceVersion should not be set on objects to be created")
        obj = request.prune_and_default(body)
        meta = metadata.new_metadata(request.resource, obj.get("metadata") or {}, request.namespace)
        if request.dry_run and (obj.get("metadata") or {}).get("resourceVersion"):
            meta["resourceVersion"] = obj["metadata"]["resourceVersion"]  # nothing looks at it
        obj = strategies.prepare(request.resource, {**obj, "metadata": meta}, None)
        obj = self.admission.default(request, obj)
        if request.version.status and request.resource.custom:
            obj.pop("status", None)
        new = strategies.generate(request.resource, obj)
        self._validate(request, meta.get("name") or "", new, None, kind_errors)
        return self._insert(
            request,
            new,
            managed_fields.after_update(
                {},
                request.managed_fields_entry("Update"),
                *field_sets.changes(request.version.schema, strategies.unowned(request.resource, obj), obj),
            ),
        )

    def update(self, request: WriteRequest, body: Object) -> Record:
        """Replace the object, or with /status its status (PUT)."""
        live = self._stored(request)
        errors = request.check_type(body)
        request.check_named(body.get("metadata") or {})
        request.check_preconditions(live, (body.get("metadata") or {}).get("uid"), None)
        return self._replace(request, live, body, errors)

    def creates_by_put(self, request: WriteRequest) -> bool:
        """Return whether a PUT creates the object: it is missing, and Kubernetes creates its kind so."""
        resource = request.resource
        may = not resource.custom and not request.subresource and resource.plural in CREATED_BY_PUT
        return may and self.store.get(resource, request.key) is None

    def create_by_put(self, request: WriteRequest, body: Object) -> Record:
        """Create a missing object (PUT). A resourceVersion is ignored, and a uid is a conflict."""
        given = body.get("metadata") or {}
        request.check_named(given)
        request.check_preconditions(None, given.get("uid"), None)
        request.check_names(given)
        return self.create(request, body | {"metadata": without(given, "resourceVersion") | request.names})

    def patch(self, request: WriteRequest, change: Callable[[Object], Any]) -> Record:
        """Patch the object: `change` returns the new object for the current one."""
        live = self._stored(request)
        body = change(live.in_version(request.version.name))
        if not isinstance(body, dict):
            raise bad_request("the patch does not leave an object")
        try:
            return self._replace(request, live, body, request.check_type(body))
        except UnknownFieldsError as error:
            message = f"Invalid value: {dumps(dumps(body))}: {error.why}"
            raise invalid_patch(StatusCause("FieldValueInvalid", message, "patch")) from None

    def apply(self, request: WriteRequest, config: Object) -> Record:
        """Apply a configuration; creates a missing object, but not through a subresource."""
        request.check_apply(config)
        given = config.get("metadata") or {}
        record = self.store.get(request.resource, request.key)
        if record is None and request.subresource:
            raise not_found(request.resource, request.name)
        if record is not None:
            request.check_current(record, {"resourceVersion": str(record.rv)} | given)
        elif uid := given.get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(request.resource, request.name, why)
        wanted = request.apply_configuration(config)
        by = request.managed_fields_entry("Apply")
        try:
            return self._apply(request, record, wanted, by)
        except field_sets.UntypedError as error:
            raise request.untyped(config, error) from None

    def _apply(
        self, request: WriteRequest, record: Record | None, wanted: Object, by: ManagedFieldsEntry
    ) -> Record:
        if record is None:
            return self._apply_new(request, wanted, by)
        schema = request.version.schema
        live = record.in_version(request.version.name)
        bare = without_managers(live)
        owners = managed_fields.read(live["metadata"])
        if not owners:
            owners = managed_fields.before_first_apply(schema, bare, by.api_version, by.time)
        force = options.flag(request.query, "force") or False
        merged, owners = apply(schema, bare, wanted, owners, by, force)
        obj = request.prune_and_default(merged, bare["metadata"], keep_nulls=request.resource.custom)
        return self._commit(request, record, obj, owners, [])

    def delete(self, request: WriteRequest, wanted: Object) -> tuple[Record, bool]:
        """
        Delete an object; returns the record and whether it is gone: False if it has finalizers.

        `wanted`: the DeleteOptions.
        """
        record = self._stored(request)
        request.check_deletion(record, wanted.get("preconditions") or {})
        if wanted.get("dryRun"):
            return record, not _has_finalizers(record.obj)
        policy = wanted.get("propagationPolicy")
        if (policy or DEFAULT_POLICIES.get(request.resource.full)) == "Orphan":
            self.collector.orphan(record)
            record = self._stored(request)
        return self._delete(record)

    # -- the parts of a write

    def _stored(self, request: WriteRequest) -> Record:
        record = self.store.get(request.resource, request.key)
        if record is None:
            raise not_found(request.resource, request.name)
        return record

    def _validate(
        self, request: WriteRequest, name: str, obj: Object, live: Object | None, first: list[StatusCause]
    ) -> None:
        if first:
            raise invalid(request.resource, name, first, kind=obj["kind"])
        errors = metadata.validate(request.resource, obj["metadata"])
        if live is not None:
            errors = [*errors, *metadata.validate_update(obj["metadata"], live["metadata"])]
        errors += strategies.validate(request.resource, obj, live)
        causes = validate(request.version.schema, obj, live, errors)
        if not request.resource.custom and (wrong := [c for c in causes if c.reason == WRONG_TYPE]):
            raise request.undecodable(str(wrong[0]))
        if causes:
            raise invalid(request.resource, name, causes)
        self.confirm(request, obj, live)
        self.admission.review(request, obj, live)

    def _insert(self, request: WriteRequest, obj: Object, owners: managed_fields.Managers) -> Record:
        name = obj["metadata"]["name"]
        key = (request.namespace, name)
        self._check_namespace(request)
        if self.store.get(request.resource, key) is not None:
            raise already_exists(request.resource, name)
        obj = self._stored_form(request, with_managers(obj, owners))
        if request.dry_run:
            return Record(request.resource, key, obj, 0)
        record = self.store.put(request.resource, key, obj)
        self._after(record)
        return record

    def _check_namespace(self, request: WriteRequest) -> None:
        if not request.namespace:
            return
        namespaces = self.catalog.kind("", "namespaces")
        assert namespaces is not None  # noqa: S101 built in, never dropped
        namespace = self.store.get(namespaces, ("", request.namespace))
        if namespace is None:
            raise not_found(namespaces, request.namespace)
        if namespace.obj["metadata"].get("deletionTimestamp"):
            where = f"namespace {request.namespace}"
            why = f"unable to create new content in {where} because it is being terminated"
            raise forbidden(why, object_details(request.resource, request.name))

    def _replace(
        self, request: WriteRequest, record: Record, body: Object, errors: list[StatusCause]
    ) -> Record:
        given = body.get("metadata")
        given = given if isinstance(given, dict) else {}
        request.check_names(given)
        request.check_current(record, given)
        live = record.in_version(request.version.name)
        obj = request.prune_and_default(body)
        if request.is_status:
            obj = live | {"status": obj["status"]} if "status" in obj else without(live, "status")
            obj = {**obj, "metadata": live["metadata"] | _managed_fields_of(given)}
        return self._commit(request, record, obj, None, errors)

    def _commit(
        self,
        request: WriteRequest,
        record: Record,
        obj: Object,
        owners: managed_fields.Managers | None,
        errors: list[StatusCause],
    ) -> Record:
        """Validate and store the next revision of an object; `owners` is None for an update."""
        live = record.in_version(request.version.name)
        if request.version.status and not request.is_status:
            obj = without(obj, "status") | ({"status": live["status"]} if "status" in live else {})
        given = obj.get("metadata") or {}
        meta = metadata.updated_metadata(given, live["metadata"]) | request.names
        obj = strategies.prepare(request.resource, {**obj, "metadata": meta}, live)
        self._validate(request, request.name, obj, live, errors)
        bare, before = without_managers(obj), without_managers(live)
        if owners is None:
            owners = self._owners_after_update(request, given, before, bare)
        obj = with_managers(bare, owners)
        if obj == live:
            return record
        if request.resource.generation and _moves_generation(request, obj, live):
            obj["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1
        obj = self._stored_form(request, obj)
        if request.dry_run:
            return Record(request.resource, record.key, obj, record.rv)
        return self._put(record, obj)

    def _owners_after_update(
        self, request: WriteRequest, given: Object, before: Object, after: Object
    ) -> managed_fields.Managers:
        entries = given.get("managedFields")
        live = self.store.get(request.resource, request.key)
        stored = managed_fields.read(live.obj["metadata"]) if live else {}
        known = managed_fields.read(given) if entries else stored
        if not known:
            return {}  # nobody owns an object whose owners were removed, until it is applied to
        touched, removed = field_sets.changes(request.version.schema, before, after)
        return managed_fields.after_update(known, request.managed_fields_entry("Update"), touched, removed)

    def _stored_form(self, request: WriteRequest, obj: Object) -> Object:
        """Return the object in the storage version: there is no conversion, only the schema differs."""
        resource = request.resource
        if request.version.name == resource.storage or resource.storage not in resource.versions:
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
        """Delete an object for the garbage collector."""
        if self.store.by_uid.get(record.uid) is record:
            self._delete(record)

    def _update_owners(self, record: Record, obj: Object) -> None:
        """Update the owners of an object for the garbage collector."""
        by = ManagedFieldsEntry(
            "kube-controller-manager", "Update", "", obj["apiVersion"], metadata.now(), {}
        )
        schema = record.resource.any_version.schema
        touched, removed = field_sets.changes(schema, without_managers(record.obj), without_managers(obj))
        owners = managed_fields.after_update(managed_fields.read(obj["metadata"]), by, touched, removed)
        self._put(record, with_managers(without_managers(obj), owners))

    def _apply_new(self, request: WriteRequest, wanted: Object, by: ManagedFieldsEntry) -> Record:
        obj = request.prune_and_default(wanted, keep_nulls=request.resource.custom)
        meta = metadata.new_metadata(request.resource, obj["metadata"], request.namespace)
        obj = strategies.prepare(request.resource, {**obj, "metadata": meta}, None)
        obj = strategies.generate(request.resource, self.admission.default(request, obj))
        _, owners = apply(request.version.schema, {}, wanted, {}, by, force=True)
        self._validate(request, request.name, obj, None, [])
        return self._insert(request, obj, owners)


def _has_finalizers(obj: Object) -> bool:
    """Return whether finalizers prevent the deletion of the object."""
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        return bool((obj.get("spec") or {}).get("finalizers") or obj["metadata"].get("finalizers"))
    return bool(obj["metadata"].get("finalizers"))


def _moves_generation(request: WriteRequest, new: Object, old: Object) -> bool:
    ignored = {"metadata", "apiVersion", "status"} if request.version.status else {"metadata", "apiVersion"}
    return any(new.get(key) != old.get(key) for key in (new.keys() | old.keys()) - ignored)


def _managed_fields_of(given: Object) -> Object:
    return {"managedFields": given["managedFields"]} if given.get("managedFields") else {}


def without_managers(obj: Object) -> Object:
    return obj | {"metadata": without(obj["metadata"], "managedFields")}


def with_managers(obj: Object, owners: managed_fields.Managers) -> Object:
    written = managed_fields.write(owners)
    return obj | {"metadata": obj["metadata"] | ({"managedFields": written} if written else {})}
