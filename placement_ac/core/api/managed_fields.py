"""
Extract the fields of an API object that one field manager owns, as client-go's ExtractInto does.

Pure, and without a schema: `metadata.managedFields` itself shows which lists have keys. The same manager
may apply the result again, and nothing changes; arguments are never changed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from placement_ac.core.api.constants import KUEUE_ADMISSION

Body = dict[str, Any]
Fields = Mapping[str, Any]
"""A set of fields, as `fieldsV1` has it: `f:<name>`, `k:<keys>`, `v:<value>`, `i:<index>` lead on."""

_NOTHING: Final = object()
"""Nothing of a value is owned, unlike an owned null or an owned empty map."""
_NO_WHOLES: Final[Fields] = {f"f:{part}": {"f:": {}} for part in ("metadata", "spec", "status")}
"""In every kind of object the parts of these are owned one by one: who owns one of them applied it empty."""


def owned_by(obj: Mapping[str, Any], manager: str, subresource: str = "status") -> Body:
    """Return the part of `obj` that `manager` has applied on `subresource`; {} when it has applied nothing.

    Its parts are those of `obj`, not copies. Fields that the object does not have are left out, as
    when it was read in another version than the manager writes: see `applied_version`.
    """
    own: Fields = {}  # one entry, whatever the version
    others = [_NO_WHOLES]
    for entry in _entries(obj):
        fields = entry.get("fieldsV1") or {}
        if _name(entry) == (manager, "Apply", subresource):
            own = fields
        else:
            others.append(fields)
    part = _part(obj, own, others) if own else _NOTHING
    return part if isinstance(part, dict) else {}


def applied_version(obj: Mapping[str, Any], manager: str, subresource: str = "status") -> str:
    """Return the apiVersion in which `manager` applied on `subresource`; "" when it never did.

    The names of its fields are those of that version: the object must be read, and applied, in it.
    """
    name = (manager, "Apply", subresource)
    return next((str(entry.get("apiVersion", "")) for entry in _entries(obj) if _name(entry) == name), "")


def nomination_body(obj: Mapping[str, Any], names: Sequence[str]) -> Body:
    """Return the body that `kueue-admission` must apply to a Workload's status to nominate `names`.

    It has all that this manager owns already: without that, Kueue's admission is gone for a moment. It
    has the resourceVersion that was read: without that, a placement in between is lost.
    """
    metadata = obj["metadata"]
    identity = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    body = owned_by(obj, KUEUE_ADMISSION)
    owned = body.pop("status", None)
    status = {key: part for key, part in (owned or {}).items() if key != "nominatedClusterNames"}
    if names:
        status["nominatedClusterNames"] = list(names)
    body["metadata"] = body.get("metadata", {}) | identity
    return body | {"status": status} if status or owned == {} else body


_WRITTEN: Final = (
    ("f:clusters",),
    ("f:kubeConfig",),
    ("f:clusterSource", "f:kubeConfig"),
    ("f:clusterSource", "f:clusterProfileRef"),
)
"""The fields of `spec` that we write in a MultiKueueConfig or MultiKueueCluster; all others are others'."""


def spec_writer(obj: Mapping[str, Any], owner: str) -> str:
    """Return who has set fields of `spec` that `owner` writes, but does not own; "" if nobody has.

    Of several, it is the last.
    """
    entries = [entry for entry in _entries(obj) if not entry.get("subresource")]
    own = {path for entry in entries if entry.get("manager") == owner for path in _spec_paths(entry)}
    others = [entry for entry in entries if entry.get("manager") != owner and set(_spec_paths(entry)) - own]
    return str(max(others, key=lambda entry: str(entry.get("time", "")), default={}).get("manager", ""))


def _spec_paths(entry: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the fields of `spec` that an entry owns."""
    pending: list[tuple[tuple[str, ...], Any]] = [((), (entry.get("fieldsV1") or {}).get("f:spec") or {})]
    while pending:
        path, fields = pending.pop()
        below = [key for key in fields or () if key != "."]
        if not below and any(path[: len(written)] == written for written in _WRITTEN):
            yield path
        pending += [((*path, key), fields[key]) for key in below]


def last_writer(obj: Mapping[str, Any], after: str, subresource: str = "") -> str:
    """Return the field manager that wrote last, by the times in `managedFields`; "" if none is known.

    They are of whole seconds: of several that wrote in the same second, it is not the manager `after`.
    """
    entries = [entry for entry in _entries(obj) if entry.get("subresource", "") == subresource]
    last = max(
        entries, key=lambda entry: (str(entry.get("time", "")), entry.get("manager") != after), default={}
    )
    return str(last.get("manager", ""))


def _entries(obj: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (obj.get("metadata") or {}).get("managedFields") or ()


def _name(entry: Mapping[str, Any]) -> tuple[object, object, object]:
    return entry.get("manager"), entry.get("operation"), entry.get("subresource", "")


def _below(sets: Iterable[Fields], key: str) -> list[Fields]:
    return [fields[key] for fields in sets if key in fields]


def _part(value: Any, own: Fields, others: Sequence[Fields]) -> Any:
    """Return what is `own` of `value`; `others` is what everybody else owns there."""
    keys = [key for key in own if key != "."]
    if not keys:
        return _all_of_it(value, others)
    if isinstance(value, dict):
        part: Any = _part_of_map(value, keys, own, others)
    elif isinstance(value, list):
        part = [item for item in _part_of_list(value, keys, own, others) if item is not _NOTHING]
    else:
        return _NOTHING
    return part if part or "." in own else _NOTHING


def _all_of_it(value: Any, others: Sequence[Fields]) -> Any:
    """Return a value that is owned as a whole.

    A map or list of which others own parts was not: it was applied empty.
    """
    shared = any(key != "." for fields in others for key in fields)
    return type(value)() if shared and isinstance(value, (dict, list)) else value


def _part_of_map(
    value: Mapping[str, Any], keys: Iterable[str], own: Fields, others: Sequence[Fields]
) -> Body:
    parts = {
        key[2:]: _part(value[key[2:]], own[key], _below(others, key))
        for key in keys
        if key.startswith("f:") and key[2:] in value
    }
    return {name: part for name, part in parts.items() if part is not _NOTHING}


def _part_of_list(
    items: Sequence[Any], keys: Iterable[str], own: Fields, others: Sequence[Fields]
) -> Iterator[Any]:
    """Yield the owned parts of the items, in the order of the items."""
    wanted = [(key, _read(key)) for key in keys]
    for index, item in enumerate(items):
        for key, selector in wanted:
            if _selects(key[:2], selector, index, item):
                yield _part_of_item(item, key, selector, own[key], _below(others, key))
                break


def _read(key: str) -> Any:
    try:
        return json.loads(key[2:]) if key[:2] in ("k:", "v:", "i:") else _NOTHING
    except ValueError:
        return _NOTHING


def _selects(form: str, selector: Any, index: int, item: Any) -> bool:
    if form == "k:":
        keyed = isinstance(selector, dict) and isinstance(item, dict)
        return keyed and all(name in item and _same(item[name], key) for name, key in selector.items())
    return _same(index if form == "i:" else item, selector)


def _part_of_item(item: Any, key: str, selector: Any, own: Fields, others: Sequence[Fields]) -> Any:
    if not key.startswith("k:"):
        return item
    part = _part(item, own, others)
    return part if part is _NOTHING else selector | part


def _same(value: Any, other: Any) -> bool:
    """JSON knows true from 1; Python does not."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)
