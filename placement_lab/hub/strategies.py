"""
The create and update strategies of built-in kinds, beyond their schemas. Pure.

`prepare` completes an object before `validate` checks it.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from placement_lab.hub import events, jobs, rbac_validation
from placement_lab.hub.errors import bad_request
from placement_lab.hub.kinds import object_schema
from placement_lab.hub.metadata import now
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from placement_lab.hub.kinds import ServedResource

Object = dict[str, Any]

DATA_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def prepare(resource: ServedResource, obj: Object, live: Object | None) -> Object:
    """
    Return the completed object of a built-in kind; `live` is None for a new object.

    Raises 400 for a Job that an API server could not decode.
    """
    if is_job(resource):
        return jobs.prepare(resource, obj, live)
    change = PREPARE.get(resource.plural) if not resource.custom else None
    return change(obj, live) if change else obj


def generate(resource: ServedResource, obj: Object) -> Object:
    """Return a new object with the fields that the server adds and no field manager owns.

    A built-in kind is encoded with its status, even an empty one, which clients read without a look.
    """
    if is_job(resource):
        return jobs.generate(obj)
    if is_namespace(resource):
        obj = obj | {"spec": {"finalizers": ["kubernetes"]}}
    encoded = not resource.custom and resource.any_version.status and "status" not in obj
    return obj | {"status": NEW_STATUS.get(resource.plural, {})} if encoded else obj


def unowned(resource: ServedResource, obj: Object) -> Object:
    """Return the parts that every object of a kind is encoded with, which no manager owns if they are so."""
    if resource.custom:
        return {}
    zeros = events.ZEROS if is_event(resource) else {}
    return zeros | {key: {} for key in ("spec", "status") if key in obj}


def validate(resource: ServedResource, obj: Object, live: Object | None) -> list[StatusCause]:
    if resource.group == rbac_validation.GROUP and not resource.custom:
        return list(rbac_validation.validate(resource, obj, live))
    if is_job(resource):
        return list(jobs.validate(obj, live))
    if is_event(resource):
        return list(events.validate(obj))
    if resource.plural == "leases" and not resource.custom:
        return list(_validate_lease(obj.get("spec") or {}))
    if resource.plural in ("configmaps", "secrets") and not resource.custom:
        return list(_validate_data(obj, live))
    return _validate_crd(obj) if is_crd(resource) else []


def is_job(resource: ServedResource) -> bool:
    return resource.group == "batch" and not resource.custom


def is_event(resource: ServedResource) -> bool:
    return resource.plural == "events" and not resource.custom


def is_crd(resource: ServedResource) -> bool:
    return resource.group == "apiextensions.k8s.io"


def is_namespace(resource: ServedResource) -> bool:
    return not resource.group and resource.plural == "namespaces"


def _namespace(obj: Object, _: Object | None) -> Object:
    metadata = obj["metadata"]
    labels = (metadata.get("labels") or {}) | {"kubernetes.io/metadata.name": metadata.get("name", "")}
    return obj | {"metadata": metadata | {"labels": labels}}


def _secret(obj: Object, _: Object | None) -> Object:
    plain = obj.get("stringData") or {}
    if not all(isinstance(value, str) for value in plain.values()):
        raise bad_request('Secret in version "v1" cannot be handled as a Secret: stringData is not text')
    data = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
    rest = {key: value for key, value in obj.items() if key != "stringData"}
    return _data(rest | {"data": (obj.get("data") or {}) | data}, None)


def _data(obj: Object, _: Object | None) -> Object:
    """Return a ConfigMap or a Secret without empty maps."""
    return {key: value for key, value in obj.items() if value or key not in ("data", "binaryData")}


def _validate_data(obj: Object, live: Object | None) -> Iterator[StatusCause]:
    for key in obj.get("data") or {}:
        if not DATA_KEY.fullmatch(key):
            message = f'Invalid value: "{key}": a valid config key must consist of letters and digits'
            yield StatusCause("FieldValueInvalid", message, f"data[{key}]")
    if live is None:
        return
    if obj.get("type") != live.get("type"):
        message = f'Invalid value: "{obj.get("type")}": field is immutable'
        yield StatusCause("FieldValueInvalid", message, "type")
    for key in ("immutable", "data", "binaryData"):
        if live.get("immutable") and obj.get(key) != live.get(key):
            message = "Forbidden: field is immutable when `immutable` is set"
            yield StatusCause("FieldValueForbidden", message, key)


def _lease(obj: Object, _: Object | None) -> Object:
    spec = obj.get("spec") or {}
    times = {key: spec[key] for key in ("acquireTime", "renewTime") if spec.get(key) is not None}
    times = {key: events.micro_time("Lease", value) for key, value in times.items()}
    return obj | {"spec": spec | times} if times else obj


def _pod(obj: Object, live: Object | None) -> Object:
    return obj if live else obj | {"status": {"phase": "Pending"}}


def _validate_lease(spec: Object) -> Iterator[StatusCause]:
    for key, least, words in (
        ("leaseDurationSeconds", 1, "greater than 0"),
        ("leaseTransitions", 0, "greater than or equal to 0"),
    ):
        value = spec.get(key, least)
        if isinstance(value, int) and value < least:
            yield StatusCause("FieldValueInvalid", f"Invalid value: {value}: must be {words}", f"spec.{key}")


def _crd(obj: Object, live: Object | None) -> Object:
    """Set the default names and the status: names accepted and kind established."""
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    kind = str(names.get("kind", ""))
    names = {"singular": kind.lower(), "listKind": kind + "List"} | names
    before = (obj.get("status") or {}) if live else {}
    stored = [v["name"] for v in spec.get("versions") or () if isinstance(v, dict) and v.get("storage")]
    status = {
        "acceptedNames": names,
        "storedVersions": sorted({*before.get("storedVersions", ()), *stored}),
        "conditions": before.get("conditions") or [
            _true_condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            _true_condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    }  # fmt: skip
    return obj | {"spec": spec | {"names": names}, "status": status}


def _true_condition(kind: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now()}


def _validate_crd(obj: Object) -> list[StatusCause]:
    spec = obj.get("spec") or {}
    name, versions = obj["metadata"].get("name"), spec.get("versions") or []
    wanted = f"{(spec.get('names') or {}).get('plural')}.{spec.get('group')}"
    causes = []
    if name != wanted:
        message = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        causes.append(StatusCause("FieldValueInvalid", message, "metadata.name"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        message = "Invalid value: must have exactly one version marked as storage version"
        causes.append(StatusCause("FieldValueInvalid", message, "spec.versions"))
    for i, version in enumerate(versions):
        where = f"spec.versions[{i}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not schema:
            causes.append(StatusCause("FieldValueRequired", "Required value: schemas are required", where))
        elif not _is_schema(schema):
            causes.append(StatusCause("FieldValueInvalid", "Invalid value: no structural schema", where))
    return causes


def _is_schema(document: Any) -> bool:
    try:
        object_schema(document)
    except (AttributeError, TypeError):
        return False
    return True


NEW_STATUS: dict[str, Object] = {
    "namespaces": {"phase": "Active"},
    "services": {"loadBalancer": {}},
    "poddisruptionbudgets": dict.fromkeys(
        ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
    ),
}
"""The statuses of new objects that are not empty (Kubernetes: fields without `omitempty`)."""

PREPARE: dict[str, Callable[[Object, Object | None], Object]] = {
    "namespaces": _namespace,
    "secrets": _secret,
    "configmaps": _data,
    "events": events.prepare,
    "leases": _lease,
    "pods": _pod,
    "rolebindings": rbac_validation.default_subjects,
    "clusterrolebindings": rbac_validation.default_subjects,
    "customresourcedefinitions": _crd,
}
