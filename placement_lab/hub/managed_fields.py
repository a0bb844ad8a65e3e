"""
Field ownership: read, change and write `metadata.managedFields`.

Pure: times are arguments. The key of an entry is its manager, operation, subresource and, for
updates, API version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from placement_lab.hub.errors import StatusError
from placement_lab.hub.field_sets import FieldSet, difference, intersection, paths, union
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from collections.abc import Iterable

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
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields,
        }
        return entry | {"subresource": self.subresource} if self.subresource else entry

    def title(self) -> str:
        """Return the description of this manager in a conflict."""
        parts = [f'"{self.manager}"']
        if self.subresource:
            parts.append(f'with subresource "{self.subresource}"')
        parts.append(f"using {self.api_version}")
        if self.operation == "Update":
            parts.append(f"at {self.time}")
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
        for path in paths(fields)
    ]
    lines = "".join(f"\n- {cause.message}: {cause.field}" for cause in causes)
    plural = "conflict" if len(causes) == 1 else "conflicts"
    message = f"Apply failed with {len(causes)} {plural}:{lines}"
    return StatusError(409, "Conflict", message, causes=causes)
