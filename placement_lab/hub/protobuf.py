"""
Decode Kubernetes' protobuf, which kubectl and Helm use to create and delete objects of built-in kinds.

Pure: bytes in, a plain object out. Responses are always JSON, which every client accepts.
The field numbers are those of the generated.proto files of k8s.io/api.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from placement_lab.hub.errors import StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Reader = Callable[[Any], Any]
    Message = dict[int, tuple[str, Reader]]

MAGIC = b"k8s\0"
CONTENT_TYPE = "application/vnd.kubernetes.protobuf"


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the (number, value) pairs of a message; a value is an int or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
        elif kind == 2:
            size, at = _varint(data, at)
            yield number, data[at : at + size]
            at += size
        else:
            at += 8 if kind == 1 else 4


def _text(data: Any) -> str:
    return bytes(data).decode()


def _base64(data: Any) -> str:
    return base64.b64encode(data).decode()


class _Map:
    """A map field: each occurrence is one entry."""

    def __init__(self, value: Reader) -> None:
        self.value = value

    def __call__(self, data: Any) -> dict[str, Any]:
        entry = dict(_fields(data))
        return {_text(entry.get(1, b"")): self.value(entry.get(2, b""))}


class _Many:
    """A repeated field."""

    def __init__(self, one: Reader) -> None:
        self.one = one

    def __call__(self, data: Any) -> list[Any]:
        return [self.one(data)]


def _message(known: Message) -> Reader:
    def read(data: Any) -> dict[str, Any]:
        message: dict[str, Any] = {}
        for number, value in _fields(data):
            if number not in known:
                continue
            name, reader = known[number]
            new = reader(value)
            if isinstance(reader, _Many):
                new = [*message.get(name, ()), *new]
            elif isinstance(reader, _Map):
                new = message.get(name, {}) | new
            if new not in ("", {}):
                message[name] = new
        return message

    return read


TEXTS = _Map(_text)
METADATA = _message({
    1: ("name", _text), 2: ("generateName", _text), 3: ("namespace", _text), 5: ("uid", _text),
    6: ("resourceVersion", _text), 11: ("labels", TEXTS), 12: ("annotations", TEXTS),
    14: ("finalizers", _Many(_text)),
})  # fmt: skip
ATTRIBUTES = _message({
    1: ("namespace", _text), 2: ("verb", _text), 3: ("group", _text), 4: ("version", _text),
    5: ("resource", _text), 6: ("subresource", _text), 7: ("name", _text),
})  # fmt: skip
REVIEW = _message(
    {
        1: ("resourceAttributes", ATTRIBUTES),
        2: ("nonResourceAttributes", _message({1: ("path", _text), 2: ("verb", _text)})),
    }
)
TEXT_LIST = _Many(_text)
RULES = _Many(_message({
    1: ("verbs", TEXT_LIST), 2: ("apiGroups", TEXT_LIST), 3: ("resources", TEXT_LIST),
    4: ("resourceNames", TEXT_LIST), 5: ("nonResourceURLs", TEXT_LIST),
}))  # fmt: skip
SUBJECT = _message({1: ("kind", _text), 2: ("apiGroup", _text), 3: ("name", _text), 4: ("namespace", _text)})
ROLE_REF = _message({1: ("apiGroup", _text), 2: ("kind", _text), 3: ("name", _text)})
BINDING: Message = {2: ("subjects", _Many(SUBJECT)), 3: ("roleRef", ROLE_REF)}
KINDS: dict[str, Message] = {
    "DeleteOptions": {
        1: ("gracePeriodSeconds", int),
        2: ("preconditions", _message({1: ("uid", _text), 2: ("resourceVersion", _text)})),
        3: ("orphanDependents", bool),
        4: ("propagationPolicy", _text),
        5: ("dryRun", TEXT_LIST),
    },
    "Namespace": {},
    "ServiceAccount": {},
    "ConfigMap": {2: ("data", TEXTS), 3: ("binaryData", _Map(_base64)), 4: ("immutable", bool)},
    "Secret": {
        2: ("data", _Map(_base64)),
        3: ("type", _text),
        4: ("stringData", TEXTS),
        5: ("immutable", bool),
    },
    "SelfSubjectAccessReview": {2: ("spec", REVIEW)},
    "SelfSubjectReview": {},
    "SelfSubjectRulesReview": {2: ("spec", _message({1: ("namespace", _text)}))},
    "TokenRequest": {2: ("spec", _message({1: ("audiences", TEXT_LIST), 4: ("expirationSeconds", int)}))},
    "Role": {2: ("rules", RULES)},
    "ClusterRole": {2: ("rules", RULES)},
    "RoleBinding": BINDING,
    "ClusterRoleBinding": BINDING,
}


def decode(data: bytes) -> dict[str, Any]:
    """Return the object; raises 415 for an unsupported kind, 400 for a malformed message."""
    if not data.startswith(MAGIC):
        raise bad_request("the object provided is unrecognized: no protobuf of Kubernetes")
    try:
        envelope = dict(_fields(data[len(MAGIC) :]))
        kind_of = dict(_fields(envelope[1]))
        kind, api_version = _text(kind_of[2]), _text(kind_of[1])
        if kind not in KINDS:
            raise StatusError(415, "UnsupportedMediaType", f"{kind} can be read as JSON or YAML only")
        fields = {1: ("metadata", METADATA), **KINDS[kind]}  # DeleteOptions have no metadata
        body: dict[str, Any] = _message(fields)(envelope.get(2, b""))
    except (KeyError, IndexError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized: {error!r}") from error
    return {"apiVersion": api_version, "kind": kind, **body}
