"""
A write request: its target, user and parameters, and the checks of its body.

Pure; does not read the store. Raises `StatusError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement_lab.hub import metadata, strategies
from placement_lab.hub.errors import (
    StatusError,
    UnknownFieldsError,
    bad_request,
    conflict,
    internal,
    invalid,
    object_details,
)
from placement_lab.hub.managed_fields import ManagedFieldsEntry
from placement_lab.structural_schema.schema_node import prune_and_default
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from placement_lab.hub.kinds import ServedResource, ServedVersion
    from placement_lab.hub.store import Key, Object, Record
    from placement_lab.hub.users import UserInfo

# Built-in kinds that no update changes without a resourceVersion. Seen on a kube-apiserver 1.36.2.
NEED_VERSION = {"customresourcedefinitions", "leases", "poddisruptionbudgets"}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The target, the user and the parameters of a write (`query`: the last value of each parameter)."""

    resource: ServedResource
    version: ServedVersion
    namespace: str
    name: str
    subresource: str
    query: dict[str, str]
    user: UserInfo
    user_agent: str
    warnings: list[str]

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def names(self) -> Object:
        return {"name": self.name, "namespace": self.namespace} if self.namespace else {"name": self.name}

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"

    @property
    def is_status(self) -> bool:
        return self.subresource == "status"

    def managed_fields_entry(self, operation: str) -> ManagedFieldsEntry:
        manager = self.query.get("fieldManager") or self.user_agent.partition("/")[0] or "unknown"
        api_version = self.resource.api_version(self.version.name)
        return ManagedFieldsEntry(manager, operation, self.subresource, api_version, metadata.now(), {})

    def check_type(self, body: Object) -> list[StatusCause]:
        """Return the errors in `kind`; raises 400 for a wrong apiVersion, malformed metadata, or a wrong
        `kind` of a built-in resource."""
        self._check_metadata(body)
        wanted = self.resource.api_version(self.version.name)
        version = body.get("apiVersion") or ("" if self.resource.custom else wanted)
        kind = body.get("kind") or ("" if self.resource.custom else self.resource.kind)
        if version != wanted:
            message = (
                f"the API version in the data ({version}) does not match the expected API version ({wanted})"
            )
            raise bad_request(message)
        if not kind:
            what = f"the object provided is unrecognized (must be of type {self.resource.kind})"
            raise bad_request(f"{what}: Object 'Kind' is missing")
        if kind == self.resource.kind:
            return []
        if not self.resource.custom:
            raise bad_request(
                f'{kind} in version "{self.version.name}" cannot be handled as a {self.resource.kind}'
            )
        return [
            StatusCause("FieldValueInvalid", f'Invalid value: "{kind}": must be {self.resource.kind}', "kind")
        ]

    def _check_metadata(self, body: Object) -> None:
        if why := metadata.wrong_type(body.get("metadata") or {}):
            raise self.undecodable(why)

    def prune_and_default(
        self, body: Object, stored: Object | None = None, *, keep_nulls: bool = False
    ) -> Object:
        """
        Drop unknown fields and set defaults; raises 400 for unknown fields if fieldValidation=Strict.

        If the body's metadata is `stored`, it is not processed again. `keep_nulls`: as for an applied one.
        """
        unknown: list[str] = []
        is_stored = stored is not None and body.get("metadata") is stored
        rest = without(body, "metadata") if is_stored else body
        obj: Object = prune_and_default(
            self.version.schema, rest, defaults=True, unknown=unknown, keep_nulls=keep_nulls
        )
        if is_stored:
            obj = obj | {"metadata": stored}
        self.report_unknown_fields(unknown)
        identity = {"apiVersion": self.resource.api_version(self.version.name), "kind": self.resource.kind}
        return obj | identity if not self.resource.custom else obj

    def report_unknown_fields(self, unknown: list[str]) -> None:
        messages = [f'unknown field "{path}"' for path in unknown]
        mode = self.query.get("fieldValidation", "Warn")
        if messages and mode == "Strict":
            raise UnknownFieldsError(self._cannot(), f"strict decoding error: {', '.join(messages)}")
        if mode == "Warn":
            self.warnings.extend(messages)

    def undecodable(self, why: str) -> StatusError:
        return bad_request(f"{self._cannot()}: {why}")

    def _cannot(self) -> str:
        kind = self.resource.kind
        return f'{kind} in version "{self.version.name}" cannot be handled as a {kind}'

    def check_named(self, given: Object) -> None:
        """Raise 400 for a replacement without a name."""
        if not given.get("name"):
            what = f"the name of the object ({self.name} based on URL)"
            raise bad_request(f"{what} was undeterminable: name must be provided")

    def check_names(self, given: Object) -> None:
        name, namespace = given.get("name") or self.name, given.get("namespace") or self.namespace
        if name != self.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({self.name})"
            )
        if namespace != self.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )

    def check_preconditions(self, record: Record | None, uid: str | None, version: str | None) -> None:
        """Raise 409 unless the object has the uid and resourceVersion that the client expects."""
        if uid and (record is None or record.uid != uid):
            there = record.uid if record else ""
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {there}"
            raise conflict(self.resource, self.name, why)
        if version and (record is None or str(record.rv) != version):
            raise conflict(self.resource, self.name)

    def check_deletion(self, record: Record, expected: Object) -> None:
        """Raise 409 unless the object has the uid and resourceVersion of a deletion's preconditions."""
        uid, version = expected.get("uid"), expected.get("resourceVersion")
        if uid not in (None, record.uid):
            raise self._differs("UID", uid, record.uid, "deleted and then recreated")
        if version not in (None, str(record.rv)):
            raise self._differs("ResourceVersion", version, str(record.rv), "modified")

    def _differs(self, what: str, wanted: str, there: str, cause: str) -> StatusError:
        kind, group = self.resource.kind, self.resource.group
        full = f"{kind}.{group}" if group else kind
        why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({there})"
        message = f'Operation cannot be fulfilled on {full} "{self.name}": {why}'
        details = object_details(self.resource, self.name) | {"kind": kind}
        return StatusError(409, "Conflict", f"{message}. The object might have been {cause}", details=details)

    def check_current(self, record: Record, given: Object) -> None:
        """
        Raise 409 if the new metadata has another resourceVersion than the object, 422 if it has another uid.

        A custom resource's /status ignores the uid, as Kubernetes does. Without a resourceVersion it is a
        422 for kinds that need one.
        """
        version = given.get("resourceVersion") or "0"
        if version != "0":
            self.check_preconditions(record, None, version)
        elif self.resource.custom or self.resource.plural in NEED_VERSION:
            cause = StatusCause(
                "FieldValueInvalid",
                "Invalid value: 0: must be specified for an update",
                "metadata.resourceVersion",
            )  # the storage answers so, which knows no kind
            raise invalid(self.resource, self.name, [cause], kind=self.resource.plural)
        uid = given.get("uid") or record.uid
        if uid != record.uid and not (self.is_status and self.resource.custom):
            message = f'Invalid value: "{uid}": field is immutable'
            cause = StatusCause("FieldValueInvalid", message, "metadata.uid")
            raise invalid(self.resource, self.name, [cause] * (2 if self.resource.custom else 1))

    def check_apply(self, config: Object) -> None:
        """Raise 400 for a configuration of another kind, or of another object than the request's."""
        kind, version = config.get("kind") or "", config.get("apiVersion") or "/"
        if (kind, version) != (self.resource.kind, self.resource.api_version(self.version.name)):
            raise bad_request(f"invalid object type: {_grouped(version)}, Kind={kind}")
        self._check_metadata(config)
        given = config.get("metadata") or {}
        if given.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        self.check_names(given)

    def untyped(self, config: Object, why: object) -> StatusError:
        """Return the 500 for an applied configuration that the schema does not allow, as Kubernetes does."""
        version = _grouped(self.resource.api_version(self.version.name))
        given = config.get("metadata") or {}
        what = (
            f"{given.get('namespace') or ''}/{given.get('name') or ''}; {version}, Kind={self.resource.kind}"
        )
        return internal(f"failed to create typed patch object ({what}): {why}")

    def apply_configuration(self, config: Object) -> Object:
        """Return the part of `config` to apply; raises 500 for an unknown field, as Kubernetes does."""
        given = {k: v for k, v in (config.get("metadata") or {}).items() if v is not None}
        for key in (*metadata.SERVER_FIELDS, "resourceVersion"):
            given.pop(key, None)
        wanted = {**config, "metadata": given | {"name": self.name}}
        if self.namespace:
            wanted["metadata"]["namespace"] = self.namespace
        if self.is_status:
            wanted = {key: value for key, value in wanted.items() if key in ("apiVersion", "kind", "status")}
        elif self.version.status:
            wanted = without(wanted, "status")
        unknown: list[str] = []
        wanted = prune_and_default(
            self.version.schema, wanted, defaults=False, unknown=unknown, keep_nulls=self.resource.custom
        )
        if unknown:
            raise self.untyped(config, f".{unknown[0]}: field not declared in schema")
        return (
            strategies.prepare(self.resource, wanted, wanted) if self.resource.plural == "secrets" else wanted
        )


def _grouped(api_version: str) -> str:
    """Return an API version with a slash, as Kubernetes writes the core group's: /v1."""
    return api_version if "/" in api_version else f"/{api_version}"


def without(obj: Object, key: str) -> Object:
    return {k: v for k, v in obj.items() if k != key}
