"""
The parameters of requests: flags, numbers, and what a server refuses of them. Pure.

Source: the answers of a kube-apiserver 1.36.2 in tests/placement_lab/hub/object_exchanges.jsonl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement_lab.hub.errors import bad_request, invalid_options
from placement_lab.structural_schema.schema_node import dumps
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Query = Mapping[str, str]

LONGEST_MANAGER = 128  # bytes
MATCH = "resourceVersionMatch"


def flag(query: Query, name: str) -> bool | None:
    """Return a flag, None if it is not given: any text but `false` in any case, and `0`, is true."""
    return query[name].lower() not in ("false", "0") if name in query else None


def number(query: Query, name: str) -> int:
    """Return a number, 0 if it is not given; raises 400 for another text."""
    text = query.get(name) or "0"
    try:
        return int(text)
    except ValueError:
        raise bad_request(f"strconv.ParseInt: parsing {dumps(text)}: invalid syntax") from None


def version(query: Query) -> int:
    """Return the resourceVersion, 0 if it is not given; raises ValueError, as a server words it."""
    text = query.get("resourceVersion") or "0"
    if not text.isdecimal():
        parsing = f"strconv.ParseUint: parsing {dumps(text)}: invalid syntax"
        raise ValueError(f"resourceVersion: Invalid value: {dumps(text)}: {parsing}")
    return int(text)


def check_write(query: Query, kind: str, *, applies: bool = False) -> None:
    """Raise 422 for parameters of a write that its options forbid; `kind`: such as PatchOptions."""
    if causes := list(_write(query, kind, applies)):
        raise invalid_options(kind, causes)


def _write(query: Query, kind: str, applies: bool) -> Iterator[StatusCause]:
    manager = query.get("fieldManager", "")
    if applies and not manager:
        yield StatusCause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
    if kind == "PatchOptions" and not applies and "force" in query:
        yield _forbidden("force", "may not be specified for non-apply patch")
    if len(manager.encode()) > LONGEST_MANAGER:
        message = f"Too long: may not be more than {LONGEST_MANAGER} bytes"
        yield StatusCause("FieldValueTooLong", message, "fieldManager")
    for at, letter in enumerate(manager):
        if not letter.isprintable():
            why = f"invalid character U+{ord(letter):04X} (at position {at})"
            yield _invalid("fieldManager", _quoted(manager), why)
    yield from _dry_run([query["dryRun"]] if query.get("dryRun") else [])
    yield from _one_of("fieldValidation", query.get("fieldValidation", ""), ("", "Ignore", "Strict", "Warn"))


def check_delete(options: Mapping[str, Any]) -> None:
    """Raise 422 for options of a deletion (DeleteOptions) that are forbidden."""
    policy = options.get("propagationPolicy")
    causes = list(_dry_run(options.get("dryRun") or []))
    if policy is not None and options.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(_invalid("propagationPolicy", dumps(policy), why))
    elif policy is not None:
        causes += _one_of("propagationPolicy", policy, ("Foreground", "Background", "Orphan"), '"nil"')
    if causes:
        raise invalid_options("DeleteOptions", causes)


def check_list(query: Query) -> None:
    """Raise 422 for parameters of a list or a watch that exclude each other."""
    if causes := list(_watch(query) if flag(query, "watch") else _list(query)):
        raise invalid_options("ListOptions", causes)


def _list(query: Query) -> Iterator[StatusCause]:
    match, version = query.get(MATCH, ""), query.get("resourceVersion", "")
    if "sendInitialEvents" in query:
        yield _forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if not match:
        return
    if not version:
        yield _forbidden(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided")
    if query.get("continue"):
        yield _forbidden(MATCH, f"{MATCH} is forbidden when continue is provided")
    yield from _one_of(MATCH, match, ("Exact", "NotOlderThan", ""))
    if match == "Exact" and version == "0":
        yield _forbidden(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"')


def _watch(query: Query) -> Iterator[StatusCause]:
    match = query.get(MATCH, "")
    if "sendInitialEvents" in query:
        if match != "NotOlderThan":
            yield _forbidden(MATCH, f"sendInitialEvents requires setting {MATCH} to NotOlderThan")
    elif match:
        yield _forbidden(MATCH, f"{MATCH} is forbidden for watch unless sendInitialEvents is provided")


def _dry_run(given: list[str]) -> Iterator[StatusCause]:
    if set(given) - {"All"}:
        message = f'Unsupported value: {dumps(given)}: supported values: "All"'
        yield StatusCause("FieldValueNotSupported", message, "dryRun")


def _one_of(field: str, value: str, allowed: tuple[str, ...], *more: str) -> Iterator[StatusCause]:
    if value not in allowed:
        listed = ", ".join([*map(dumps, allowed), *more])
        message = f"Unsupported value: {dumps(value)}: supported values: {listed}"
        yield StatusCause("FieldValueNotSupported", message, field)


def _forbidden(field: str, why: str) -> StatusCause:
    return StatusCause("FieldValueForbidden", f"Forbidden: {why}", field)


def _invalid(field: str, value: str, why: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f"Invalid value: {value}: {why}", field)


def _quoted(text: str) -> str:
    """Return a text in quotes, as Go writes it: with \\a for a bell."""
    return dumps(text).replace("\\u0007", "\\a")
