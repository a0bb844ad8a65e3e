"""
Field ownership: read, change and write `metadata.managedFields`.

Pure: times are arguments. The key of an entry is its manager, operation, subresource and, for
updates, API version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from placement_lab.hub import field_sets
from placement_lab.hub.errors import StatusError
from placement_lab.hub.field_sets import FieldSet, difference, intersection, paths, union
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placement_lab.structural_schema.schema_node import SchemaNode

Name = tuple[str, str, str, str]  # manager, operation, subresource, API version ("" for Apply)

# Fields that no manager owns. Source: apiserver, stripMetaManager.
UNOWNED = (
    "name", "namespace", "uid", "resourceVersion",
    "creationTimestamp", "generation", "managedFields", "selfLink",
)  # fmt: skip
UNOWNED_KEYS = frozenset({".", *(f"f:{name}" for name in UNOWNED)})


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """One element of managedFields."""

    manager: str
    operation: str  # Apply or Update
    subresource: str
    api_version: str
    time: str
    fields: FieldSet

    @property
    def name(self) -> Name:
        version = "" if self.operation == "Apply" else self.api_version
        return self.manager, self.operation, self.subresource, version

    def wire(self) -> dict[str, Any]:
        entry = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields,
        }
        more = {"time": self.time, "subresource": self.subresource}
        return entry | {key: value for key, value in more.items() if value}

    def title(self) -> str:
        """Return the description of this manager in a conflict."""
        parts = [f'"{self.manager}"']
        if self.subresource:
            parts.append(f'with subresource "{self.subresource}"')
        if self.operation == "Update":
            parts.append(f"using {self.api_version}")
        return " ".join(parts)


Managers = dict[Name, ManagedFieldsEntry]


def read(metadata: dict[str, Any]) -> Managers:
    entries = (_read(entry) for entry in metadata.get("managedFields") or () if entry.get("manager"))
    return {entry.name: entry for entry in entries}


def _read(entry: dict[str, Any]) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(
        manager=entry["manager"],
        operation=entry.get("operation", "Update"),
        subresource=entry.get("subresource", ""),
        api_version=entry.get("apiVersion", ""),
        time=entry.get("time", ""),
        fields=entry.get("fieldsV1") or {},
    )


def write(managers: Managers) -> list[dict[str, Any]]:
    """Return the managedFields: Apply entries first, then Update entries, each by time."""
    ordered = sorted(
        managers.values(), key=lambda e: (e.operation != "Apply", e.time, e.manager, e.subresource)
    )
    return [entry.wire() for entry in ordered if entry.fields]


def without_unowned(fields: FieldSet | None) -> FieldSet | None:
    """Return the fields without those that no manager owns: apiVersion, kind, and server-set metadata."""
    if fields is None:
        return None
    kept = {key: below for key, below in fields.items() if key not in ("f:apiVersion", "f:kind", ".")}
    if metadata := kept.pop("f:metadata", None):
        metadata = {key: below for key, below in metadata.items() if key not in UNOWNED_KEYS}
        if metadata:
            kept["f:metadata"] = metadata
    return kept or None


def all_fields(managers: Managers) -> FieldSet | None:
    everyone: FieldSet | None = None
    for entry in managers.values():
        everyone = union(everyone, entry.fields)
    return everyone


def after_update(
    managers: Managers, by: ManagedFieldsEntry, touched: FieldSet | None, removed: FieldSet | None
) -> Managers:
    """Return the managers after an update by `by`, which now owns the `touched` fields."""
    touched = without_unowned(touched)
    rest = without_fields(managers, union(touched, removed))
    if touched is not None:
        mine = rest.get(by.name)
        fields = union(mine.fields if mine else None, touched)
        rest[by.name] = replace(by, fields=fields or {})
    return rest


def without_fields(managers: Managers, fields: FieldSet | None, but: Name | None = None) -> Managers:
    """Return the managers without `fields`, except for manager `but`; managers without fields are dropped."""
    if fields is None:
        return dict(managers)
    rest: Managers = {}
    for name, entry in managers.items():
        left = entry.fields if name == but else difference(entry.fields, fields)
        if left is entry.fields or left == entry.fields:
            rest[name] = entry
        elif left:
            rest[name] = replace(entry, fields=left)
    return rest


def conflicts(
    managers: Managers, touched: FieldSet | None, by: Name
) -> list[tuple[ManagedFieldsEntry, FieldSet]]:
    """Return the other managers that own fields which an apply by `by` would change."""
    owned = ((entry, intersection(entry.fields, touched)) for name, entry in managers.items() if name != by)
    return [(entry, fields) for entry, fields in owned if fields]


def conflict_error(owned: Iterable[tuple[ManagedFieldsEntry, FieldSet]]) -> StatusError:
    """Return the 409 of an apply without force; one cause per field."""
    causes = [
        StatusCause("FieldManagerConflict", f"conflict with {entry.title()}", path)
        for entry, fields in owned
        for path in sorted(paths(fields))
    ]
    by_manager: dict[str, list[str]] = {}
    for cause in causes:
        by_manager.setdefault(cause.message, []).append(cause.field)
    said = "\n".join(_conflict(title, fields) for title, fields in by_manager.items())
    plural = "conflict" if len(causes) == 1 else "conflicts"
    message = f"Apply failed with {len(causes)} {plural}: {said}"
    return StatusError(409, "Conflict", message, causes=causes)


def _conflict(title: str, fields: list[str]) -> str:
    if len(fields) == 1:
        return f"{title}: {fields[0]}"
    return f"{title.replace('conflict', 'conflicts', 1)}:" + "".join(f"\n- {field}" for field in fields)


def before_first_apply(schema: SchemaNode, live: dict[str, Any], api_version: str, time: str) -> Managers:
    """Return the owner of an object that nobody owns when it is first applied to: all its fields."""
    fields = without_unowned(field_sets.changes(schema, {}, live)[0])
    by = ManagedFieldsEntry("before-first-apply", "Update", "", api_version, time, fields or {})
    return {by.name: by} if fields else {}
