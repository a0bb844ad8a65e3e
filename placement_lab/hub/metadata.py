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
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # the alphabet of Kubernetes' generated names


def now() -> str:
    """Return the current time in Kubernetes' format: UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_types(given: dict[str, Any]) -> None:
    """Raise 400 for metadata of wrong types, such as labels that are not a map of strings."""
    for key in ("labels", "annotations"):
        pairs = given.get(key) or {}
        if not isinstance(pairs, dict) or not all(isinstance(value, str | None) for value in pairs.values()):
            raise bad_request(f"metadata.{key}: a map of strings is needed")
    for key in ("finalizers", "ownerReferences", "managedFields"):
        if not isinstance(given.get(key) or [], list):
            raise bad_request(f"metadata.{key}: a list is needed")
    for key in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if not isinstance(given.get(key) or "", str):
            raise bad_request(f"metadata.{key}: a string is needed")


def new_metadata(resource: ServedResource, given: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return the metadata of a new object; raises 400 for a namespace other than the request's."""
    if given.get("namespace") not in (None, "", namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata = {
        k: v
        for k, v in given.items()
        if k not in (*SERVER_FIELDS, "resourceVersion") and v not in (None, {}, [])
    }
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
    elif not _good_name(resource, name):
        causes.append(
            StatusCause(
                "FieldValueInvalid", f'Invalid value: "{name}": a lowercase RFC 1123 name', "metadata.name"
            )
        )
    causes.extend(validate_labels(metadata.get("labels") or {}, "metadata.labels"))
    annotations = (key for key in metadata.get("annotations") or {} if not QUALIFIED.fullmatch(key.lower()))
    where = "metadata.annotations"
    causes.extend(
        StatusCause("FieldValueInvalid", f'Invalid value: "{key}": no name', where) for key in annotations
    )
    return causes


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
        message = (
            f"Forbidden: no new finalizers can be added if the object is being deleted, found new {added}"
        )
        causes.append(StatusCause("FieldValueForbidden", message, "metadata.finalizers"))
    return causes * 2
