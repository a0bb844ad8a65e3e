"""
The errors of the hub: each becomes a Kubernetes `Status`.

`api` turns a `StatusError` into a response. Reasons and codes are those of Kubernetes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placement_lab.hub.kinds import ServedResource
    from placement_lab.structural_schema.validation import StatusCause

STALE = "the object has been modified; please apply your changes to the latest version and try again"


class StatusError(Exception):
    """A failed request, with the HTTP code, reason, causes and details of its Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        causes: Iterable[StatusCause] = (),
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.causes, self.details = tuple(causes), details or {}

    def status(self) -> dict[str, Any]:
        """Return the `Status` object."""
        details = dict(self.details)
        if self.causes:
            details["causes"] = [cause.wire() for cause in self.causes]
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        }
        return {key: value for key, value in status.items() if value or key in ("metadata", "code")}


def object_details(resource: ServedResource, name: str) -> dict[str, Any]:
    """Return the details of a Status: group, kind (its plural, as in Kubernetes) and name."""
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: ServedResource, name: str) -> StatusError:
    return StatusError(
        404, "NotFound", f'{resource.full} "{name}" not found', details=object_details(resource, name)
    )


def already_exists(resource: ServedResource, name: str) -> StatusError:
    message = f'{resource.full} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=object_details(resource, name))


def conflict(resource: ServedResource, name: str, why: str = STALE) -> StatusError:
    message = f'Operation cannot be fulfilled on {resource.full} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=object_details(resource, name))


def invalid(
    resource: ServedResource, name: str, causes: Iterable[StatusCause], *, kind: str = ""
) -> StatusError:
    """Return the 422 for an object that violates its schema or a rule."""
    return _invalid(resource.group, kind or resource.kind, name, tuple(causes))


def invalid_options(kind: str, causes: Iterable[StatusCause]) -> StatusError:
    """Return the 422 for the parameters of a request; `kind` such as ListOptions."""
    return _invalid("meta.k8s.io", kind, "", tuple(causes))


def _invalid(group: str, kind: str, name: str, causes: tuple[StatusCause, ...]) -> StatusError:
    errors = ", ".join(map(str, causes))
    full = f"{kind}.{group}" if group else kind
    message = f'{full} "{name}" is invalid: {f"[{errors}]" if len(causes) > 1 else errors}'
    details = {"name": name, "group": group, "kind": kind}
    given = {key: value for key, value in details.items() if value}
    return StatusError(422, "Invalid", message, causes=causes, details=given)


class UnknownFieldsError(StatusError):
    """The 400 for unknown fields with fieldValidation=Strict; `why` names them."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(400, "BadRequest", f"{what}: {why}")
        self.why = why


def invalid_patch(cause: StatusCause) -> StatusError:
    """Return the 422 for a patch whose result cannot be decoded; it names no object."""
    return _invalid("", "", "", (cause,))


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(message: str, details: dict[str, Any] | None = None) -> StatusError:
    return StatusError(403, "Forbidden", message, details=details)


def gone(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def internal(message: str) -> StatusError:
    """Return the 500 without a reason that Kubernetes sends for an object that it cannot decode, or store."""
    return StatusError(500, "", message)
