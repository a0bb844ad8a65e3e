"""
Server-side apply: merge one manager's configuration into an object.

Pure: live object and configuration in, new object and new managers out. A field that the manager
applied before, no longer applies, and no other manager owns is removed.
Source of the rules: structured-merge-diff, as described in Kubernetes' documentation.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placement_lab.hub import field_sets, managed_fields
from placement_lab.structural_schema.schema_node import ANYTHING, SchemaNode

if TYPE_CHECKING:
    from placement_lab.hub.field_sets import FieldSet
    from placement_lab.hub.managed_fields import ManagedFieldsEntry, Managers


def apply(
    node: SchemaNode,
    live: dict[str, Any],
    config: dict[str, Any],
    owners: Managers,
    by: ManagedFieldsEntry,
    force: bool,
) -> tuple[dict[str, Any], Managers]:
    """
    Return the object and the managers after `by` applied `config` to `live`.

    Raises 409 with one cause for each field that another manager owns and this apply would
    change, unless `force`; UntypedError if the configuration has types that the schema does not allow.
    """
    wanted = managed_fields.without_unowned(field_sets.fields_applied(node, config))
    last = owners.get(by.name)
    others = {name: entry for name, entry in owners.items() if name != by.name}
    mine = {} if wanted is None else {by.name: _with_stable_time(last, by, wanted)}
    merged = merge(node, live, config)
    if last is not None and last.fields != wanted:  # otherwise no field can be removed
        merged = prune(node, merged, last.fields, managed_fields.all_fields(others | mine))
    if merged is live and last is None and wanted is not None:  # an entry that changes nothing has no time
        mine = {by.name: replace(by, fields=wanted, time="")}
    touched, removed = field_sets.changes(node, live, merged)
    touched = managed_fields.without_unowned(touched)
    if conflicts := managed_fields.conflicts(others, touched, by.name):
        if not force:
            raise managed_fields.conflict_error(conflicts)
        others = managed_fields.without_fields(others, touched)
    return merged, managed_fields.without_fields(others, removed) | mine


def _with_stable_time(
    last: ManagedFieldsEntry | None, by: ManagedFieldsEntry, wanted: FieldSet
) -> ManagedFieldsEntry:
    """Return the previous entry if nothing but the time differs, so that no write is needed."""
    new = replace(by, fields=wanted)
    if last is not None and (last.fields, last.api_version) == (wanted, by.api_version):
        return last
    return new


def merge(node: SchemaNode, live: Any, config: Any) -> Any:
    """
    Merge a configuration into a live value: maps and map lists by key, sets by union; others are replaced.

    Returns the live value itself if nothing changes, so that callers can compare by identity.
    """
    if _is_same_json(live, config):
        return live
    if type(live) is not type(config) or not field_sets.granular(node, config):
        return config
    if isinstance(config, list):
        return _merge_list(node, live, config)
    changed = {}
    for key, value in config.items():
        new = merge(node.child(key) or ANYTHING, live[key], value) if key in live else value
        if key not in live or new is not live[key]:
            changed[key] = new
    return live | changed if changed else live


def _is_same_json(a: Any, b: Any) -> bool:
    """Return whether two values are the same JSON (in Python, 1 == 1.0 == True)."""
    if type(a) is not type(b) or a != b:
        return False
    if isinstance(a, dict):
        return all(_is_same_json(value, b[key]) for key, value in a.items())
    return not isinstance(a, list) or all(map(_is_same_json, a, b))


def _merge_list(node: SchemaNode, live: list[Any], config: list[Any]) -> list[Any]:
    """Merge lists: items of the configuration take its order; other live items keep their positions."""
    mine = field_sets.items_of(node, config, ())
    theirs = {node.element(item): item for item in live}
    left, right = deque(theirs), deque(mine)
    shared = deque(key for key in mine if key in theirs)
    merged: list[Any] = []
    while left or right:
        if left and left[0] not in mine:
            merged.append(theirs[left.popleft()])
        elif left and (not shared or left[0] != shared[0]):
            left.popleft()  # it is placed where the configuration has it
        else:
            key = right.popleft()
            if shared and key == shared[0]:
                shared.popleft()
            if left and key == left[0]:
                left.popleft()
            merged.append(merge(node.items, theirs[key], mine[key]) if key in theirs else mine[key])
    return merged


def prune(node: SchemaNode, value: Any, last: FieldSet, keep: FieldSet | None) -> Any:
    """
    Return `value` without the fields that are in `last` and not in `keep`.

    A property goes as a whole, with its defaults, if nobody keeps a field in it.
    """
    if not field_sets.granular(node, value):
        return value
    if isinstance(value, list):
        return _prune_list(node, value, last, keep or {})
    pruned = {}
    for key, child_value in value.items():
        claimed = last.get("f:" + key)
        kept = (keep or {}).get("f:" + key)
        if claimed is None:
            pruned[key] = child_value
        elif kept is not None:
            pruned[key] = prune(node.child(key) or ANYTHING, child_value, claimed, kept)
        elif key not in node.properties and not field_sets.is_member(claimed):
            below = prune(node.child(key) or ANYTHING, child_value, claimed, None)
            if below or not child_value:
                pruned[key] = below
    return pruned


def _prune_list(node: SchemaNode, value: list[Any], last: FieldSet, keep: FieldSet) -> list[Any]:
    pruned = []
    for item in value:
        key = node.element(item)
        if key not in last:
            pruned.append(item)
        elif key in keep:
            pruned.append(prune(node.items, item, last[key], keep[key]) if node.list_type == "map" else item)
    return pruned
