"""
The validation of Events, beyond their schema. Pure.

Source: the answers of a kube-apiserver 1.36.2 in tests/placement_lab/hub/object_exchanges.jsonl.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from placement_lab.hub.errors import bad_request
from placement_lab.hub.metadata import QUALIFIED
from placement_lab.structural_schema.schema_node import dumps
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

ZEROS: Final[Object] = {
    "eventTime": None,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "source": {},
    "reportingComponent": "",
    "reportingInstance": "",
}
"""The fields that every Event is encoded with."""
MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
NAMED_SO: Final = (("reportingInstance", 128), ("action", 128), ("reason", 128))
LONGEST_MESSAGE: Final = 1024


def micro_time(kind: str, text: Any) -> str:
    """Return a time as it is stored, in UTC; raises 400 unless it has six digits of a second."""
    if isinstance(text, str) and MICRO_TIME.fullmatch(text):
        with contextlib.suppress(ValueError):  # there is no such day or hour
            return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    why = f"parsing time {dumps(text)} as a time with microseconds"
    raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {why}')


def prepare(event: Object, _: Object | None) -> Object:
    time = event.get("eventTime")
    return event if time is None else event | {"eventTime": micro_time("Event", time)}


def validate(event: Object) -> Iterator[StatusCause]:
    """Yield the errors of an Event; one with an `eventTime` must name its reporter and its action."""
    involved = event["involvedObject"].get("namespace") or ""
    if involved != event["metadata"]["namespace"] and (
        involved or event["metadata"]["namespace"] != "default"
    ):
        yield _invalid("involvedObject.namespace", involved, "does not match event.namespace")
    if event.get("eventTime") is None:
        return
    reporter = event.get("reportingComponent") or ""
    if not reporter:
        yield _required("reportingComponent")
    if not QUALIFIED.fullmatch(reporter):
        yield _invalid("reportingComponent", reporter, "name part must be non-empty")
    for field, longest in NAMED_SO:
        value = event.get(field) or ""
        if not value:
            yield _required(field)
        if len(value) > longest:
            yield _invalid(field, "", f"can have at most {longest} characters")
    if len(event.get("message") or "") > LONGEST_MESSAGE:
        yield _invalid("message", "", f"can have at most {LONGEST_MESSAGE} characters")


def _required(field: str) -> StatusCause:
    return StatusCause("FieldValueRequired", "Required value", field)


def _invalid(field: str, value: str, why: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f"Invalid value: {dumps(value)}: {why}", field)
