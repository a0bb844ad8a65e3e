"""
Parse the answers of an API server: objects, events of a watch, and errors, as ApiErrors.

Pure. Errors quote only the message of a Status object.
"""

from itertools import compress
from typing import Any

import orjson

from placement_ac.core.api.errors import ApiError, Conflict, Gone, Malformed, NotFound, Refused, Unavailable
from placement_ac.kube.deep_json import MAX_LEVELS, is_cut, loads, name_of

Body = dict[str, Any]

MAX_RETRY_AFTER_SECONDS = 60.0
"""The longest `Retry-After` that is honoured: the reason for "in an hour" may be over long before."""


REASONS = {
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
}
"""The reasons that are quoted (metav1.StatusReason): an admission webhook may put anything there."""


SKIPPED = "skipped"
"""A field that no list of an API server has."""


def object_of(status: int, text: bytes, request: str, retry_after: str | None = None) -> Body:
    """Return the JSON object in an answer. Raises ApiError for an error status, or if there is none.

    Of a list, objects that are nested too deeply are left out, and SKIPPED holds their names.
    """
    try:
        value, has_cuts = loads(text)
    except orjson.JSONDecodeError:
        value, has_cuts = None, False
    if status >= 400:
        raise error_of(status, value, request, retry_after)
    if not isinstance(value, dict):
        raise Unavailable(f"{request}: the answer is no JSON object", status=status)
    value.pop(SKIPPED, None)  # a worker may answer anything
    if has_cuts:
        if not isinstance(items := value.get("items"), list):
            raise Malformed(f"{request}: the object is nested more than {MAX_LEVELS} levels deep")
        whole = [not is_cut(item) for item in items]
        value["items"] = list(compress(items, whole))
        value[SKIPPED] = [name_of(item) for item, is_whole in zip(items, whole, strict=True) if not is_whole]
    return value


def event_of(line: bytes, request: str) -> tuple[str, Body]:
    """Return type and object of a line of a watch. Raises Malformed for any other line, ApiError for ERROR.

    The type is SKIPPED for an object that is nested too deeply.
    """
    try:
        event, has_cuts = loads(line)
        change, item = str(event["type"]), event["object"]
        code = int(item.get("code") or 500) if change == "ERROR" else 0
        is_event = bool(code) or isinstance(item["metadata"], dict)
    except (ValueError, TypeError, LookupError, AttributeError):
        is_event = False
    if not is_event:
        raise Malformed(f"{request}: a line is no event")
    if code:
        raise error_of(code, item, request)
    return SKIPPED if has_cuts else change, item


def error_of(status: int, value: object, request: str, retry_after: str | None = None) -> ApiError:
    """Return the error for an answer; `value`: its Status object, if it is one."""
    status_object = value if isinstance(value, dict) else {}
    message = str(status_object.get("message") or f"{request}: HTTP {status}")
    given = status_object.get("reason")
    reason = given if isinstance(given, str) and given in REASONS else ""
    wait = _seconds(retry_after)
    kind = _ERROR_CLASSES.get(status) or (Unavailable if status >= 500 else Refused)
    if _is_another(status_object):
        kind = Conflict
    return kind(message, status=status, reason=reason, retry_after=wait)


def _is_another(status_object: dict[Any, Any]) -> bool:
    """Whether the object to be written is not the one that was seen.

    A kube-apiserver (seen: 1.36.2) answers 422, `metadata.uid: field is immutable`, if it was recreated, 409
    if it is gone, and 422, `metadata.resourceVersion: must be specified`, if it was to be created and exists.
    """
    details = status_object.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    entries = causes if isinstance(causes, list) else []
    fields = ("metadata.uid", "metadata.resourceVersion")
    return any(isinstance(cause, dict) and cause.get("field") in fields for cause in entries)


_ERROR_CLASSES: dict[int, type[ApiError]] = {
    401: Unavailable,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    410: Gone,
    429: Unavailable,
}


def _seconds(retry_after: str | None) -> float | None:
    try:
        return min(max(0.0, float(retry_after)), MAX_RETRY_AFTER_SECONDS) if retry_after else None
    except ValueError:
        return None
