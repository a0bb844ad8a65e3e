"""
Object metadata: names, uids, timestamps, finalizers.

Pure, except for random uids and generated names.
"""

from __future__ import annotations

import random
import re
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from placement_lab.hub.errors import bad_request
from placement_lab.structural_schema.schema_node import dumps
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement_lab.hub.kinds import ServedResource

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = re.compile(rf"{LABEL}(\.{LABEL})*")
DNS_LABEL = re.compile(LABEL)
PART = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
QUALIFIED = re.compile(rf"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{PART}")
LABEL_VALUE = re.compile(rf"({PART})?")
# Fields that only the server sets: an update cannot change them.
SERVER_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
MOST_ANNOTATED = 256 * 1024  # bytes
FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}
OWNER_FIELDS = {
    "apiVersion": "version must not be empty",
    "kind": "must not be empty",
    "name": "must not be empty",
    "uid": "must not be empty",
}
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # the alphabet of Kubernetes' generated names


def now() -> str:
    """Return the current time in Kubernetes' format: UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def wrong_type(given: dict[str, Any]) -> str:
    """Return the error in metadata of wrong types, such as labels that are not a map of strings, or ""."""
    for key in ("labels", "annotations"):
        pairs = given.get(key) or {}
        if not isinstance(pairs, dict) or not all(isinstance(v, str | None) for v in pairs.values()):
            return f"metadata.{key}: a map of strings is needed"
    for key in ("finalizers", "ownerReferences", "managedFields"):
        if not isinstance(given.get(key) or [], list):
            return f"metadata.{key}: a list is needed"
    for key in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if not isinstance(given.get(key) or "", str):
            return f"metadata.{key}: a string is needed"
    return ""


def new_metadata(resource: ServedResource, given: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return the metadata of a new object; raises 400 for a namespace other than the request's."""
    if given.get("namespace") not in (None, "", namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    kept = () if resource.generation else ("generation",)  # where nobody counts it, a server keeps it
    dropped = {*SERVER_FIELDS, "resourceVersion"}.difference(kept)
    metadata = {k: v for k, v in given.items() if k not in dropped and v not in (None, {}, [])}
    if not metadata.get("name") and metadata.get("generateName"):
        letters = random.choices(SUFFIX, k=5)  # noqa: S311 a name, not a secret
        metadata["name"] = metadata["generateName"] + "".join(letters)
    if namespace:
        metadata["namespace"] = namespace
    if resource.generation:
        metadata["generation"] = 1
    return metadata | {"uid": str(uuid.uuid4()), "creationTimestamp": now()}


def updated_metadata(given: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of an updated object: the client's, with server-set fields unchanged."""
    metadata = {k: v for k, v in given.items() if k not in SERVER_FIELDS and v not in (None, {}, [])}
    for key in SERVER_FIELDS:
        if key in live:
            metadata[key] = live[key]
    metadata["resourceVersion"] = live["resourceVersion"]
    return metadata


def validate(resource: ServedResource, metadata: dict[str, Any]) -> list[StatusCause]:
    """Return the errors in the name, labels and annotations of an object."""
    causes = []
    name = metadata.get("name")
    if not name:
        causes.append(
            StatusCause(
                "FieldValueRequired", "Required value: name or generateName is required", "metadata.name"
            )
        )
    prefix = metadata.get("generateName")
    if prefix and not _good_name(resource, f"{prefix}a"):
        causes.append(_invalid(prefix, "a lowercase RFC 1123 name", "metadata.generateName"))
    if name and not _good_name(resource, name):
        causes.append(
            StatusCause(
                "FieldValueInvalid", f'Invalid value: "{name}": a lowercase RFC 1123 name', "metadata.name"
            )
        )
    causes.extend(validate_labels(metadata.get("labels") or {}, "metadata.labels"))
    causes.extend(_validate_annotations(metadata.get("annotations") or {}))
    causes.extend(_validate_owners(metadata.get("ownerReferences") or []))
    for i, name in enumerate(metadata.get("finalizers") or []):
        causes.extend(_validate_finalizer(name, f"[{i}]", custom=resource.custom))
    return causes


def _invalid(value: Any, why: str, where: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f"Invalid value: {dumps(value)}: {why}", where)


def _validate_annotations(annotations: dict[str, str]) -> Iterator[StatusCause]:
    where = "metadata.annotations"
    for key in annotations:
        if not QUALIFIED.fullmatch(key.lower()):
            yield _invalid(key, "no name", where)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MOST_ANNOTATED:
        message = f"Too long: may not be more than {MOST_ANNOTATED} bytes"
        yield StatusCause("FieldValueTooLong", message, where)


def _validate_owners(owners: list[Any]) -> Iterator[StatusCause]:
    where = "metadata.ownerReferences"
    controllers = []
    for owner in owners:
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield _invalid(owner, "/v1, Kind=Event is disallowed from being an owner", where)
        for key, why in OWNER_FIELDS.items():
            if not owner.get(key):
                yield _invalid("", why, f"{where}.{key}")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        found = f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        yield _invalid(owners, f"Only one reference can have Controller set to true. {found}", where)


def _validate_finalizer(name: str, index: str, *, custom: bool) -> Iterator[StatusCause]:
    where = "metadata.finalizers"
    if not QUALIFIED.fullmatch(name):
        yield _invalid(name, "name part must consist of letters and digits", where)
    if "/" not in name and name not in FINALIZERS and not custom:
        why = "name is neither a standard finalizer name nor is it fully qualified"
        yield _invalid(name, why, where + index)


def validate_labels(labels: dict[str, str], where: str) -> Iterator[StatusCause]:
    """Yield the errors in labels; `where` is their field."""
    for key, value in labels.items():
        if not QUALIFIED.fullmatch(key) or len(key.rpartition("/")[2]) > 63:
            yield StatusCause("FieldValueInvalid", f'Invalid value: "{key}": no label name', where)
        if not LABEL_VALUE.fullmatch(value) or len(value) > 63:
            yield StatusCause("FieldValueInvalid", f'Invalid value: "{value}": no label value', where)


def _good_name(resource: ServedResource, name: str) -> bool:
    if resource.group == "rbac.authorization.k8s.io" and not resource.custom:
        return name not in (".", "..") and not set(name) & {"/", "%"}
    if resource.plural == "namespaces":
        return len(name) <= 63 and bool(DNS_LABEL.fullmatch(name))
    return len(name) <= 253 and bool(SUBDOMAIN.fullmatch(name))


def validate_update(new: dict[str, Any], live: dict[str, Any]) -> list[StatusCause]:
    """Return the errors of an update; each twice, because Kubernetes checks and reports it twice."""
    causes = []
    added = sorted(set(new.get("finalizers") or ()) - set(live.get("finalizers") or ()))
    if live.get("deletionTimestamp") and added:
        found = f"found new finalizers []string{{{', '.join(map(dumps, added))}}}"
        message = f"Forbidden: no new finalizers can be added if the object is being deleted, {found}"
        causes.append(StatusCause("FieldValueForbidden", message, "metadata.finalizers"))
    return causes * 2
