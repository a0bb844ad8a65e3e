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


def _number(data: Any) -> int | str:
    """Return a number whose zero Go leaves out of JSON; others, which are pointers, are read by `int`."""
    return int(data) or ""


def _true(data: Any) -> bool | str:
    """Return a boolean whose false Go leaves out of JSON."""
    return bool(data) or ""


def _quantity(data: Any) -> str:
    return _text(dict(_fields(data)).get(1, b""))


def _int_or_string(data: Any) -> int | str:
    parts = dict(_fields(data))
    return _text(parts.get(3, b"")) if parts.get(1) else int(parts.get(2, 0))


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


def _message(known: Message, name_of: str = "") -> Reader:
    """Return a reader of a message; one with a name refuses a field with a value that it does not know."""

    def read(data: Any) -> dict[str, Any]:
        message: dict[str, Any] = {}
        for number, value in _fields(data):
            if number not in known:
                if name_of and value:
                    raise _not_read(f"field {number} of {name_of}")
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


def _not_read(what: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", f"{what} can be read as JSON or YAML only")


TEXTS = _Map(_text)
METADATA = _message({
    1: ("name", _text), 2: ("generateName", _text), 3: ("namespace", _text), 5: ("uid", _text),
    6: ("resourceVersion", _text), 11: ("labels", TEXTS), 12: ("annotations", TEXTS),
    13: ("ownerReferences", _Many(_message({
        1: ("kind", _text), 3: ("name", _text), 4: ("uid", _text), 5: ("apiVersion", _text),
        6: ("controller", bool), 7: ("blockOwnerDeletion", bool),
    }))), 14: ("finalizers", _Many(_text)),
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
EXPRESSION = _message({1: ("key", _text), 2: ("operator", _text), 3: ("values", TEXT_LIST)})
SELECTOR = _message({1: ("matchLabels", TEXTS), 2: ("matchExpressions", _Many(EXPRESSION))}, "LabelSelector")
CONTAINER_PORT = _message({
    1: ("name", _text), 2: ("hostPort", _number), 3: ("containerPort", _number), 4: ("protocol", _text),
    5: ("hostIP", _text),
}, "ContainerPort")  # fmt: skip
VARIABLE = _message({1: ("name", _text), 2: ("value", _text)}, "EnvVar")
RESOURCES = _message(
    {1: ("limits", _Map(_quantity)), 2: ("requests", _Map(_quantity))}, "ResourceRequirements"
)
CONTAINER = _message({
    1: ("name", _text), 2: ("image", _text), 3: ("command", TEXT_LIST), 4: ("args", TEXT_LIST),
    5: ("workingDir", _text), 6: ("ports", _Many(CONTAINER_PORT)), 7: ("env", _Many(VARIABLE)),
    8: ("resources", RESOURCES), 13: ("terminationMessagePath", _text), 14: ("imagePullPolicy", _text),
    16: ("stdin", _true), 17: ("stdinOnce", _true), 18: ("tty", _true),
    20: ("terminationMessagePolicy", _text),
}, "Container")  # fmt: skip
POD = _message({
    2: ("containers", _Many(CONTAINER)), 3: ("restartPolicy", _text),
    4: ("terminationGracePeriodSeconds", int), 5: ("activeDeadlineSeconds", int), 6: ("dnsPolicy", _text),
    7: ("nodeSelector", TEXTS), 8: ("serviceAccountName", _text), 9: ("serviceAccount", _text),
    10: ("nodeName", _text), 11: ("hostNetwork", _true), 12: ("hostPID", _true), 13: ("hostIPC", _true),
    16: ("hostname", _text), 17: ("subdomain", _text), 19: ("schedulerName", _text),
    20: ("initContainers", _Many(CONTAINER)), 24: ("priorityClassName", _text),
}, "PodSpec")  # fmt: skip
TEMPLATE = _message({1: ("metadata", METADATA), 2: ("spec", POD)})
JOB = _message({
    1: ("parallelism", int), 2: ("completions", int), 3: ("activeDeadlineSeconds", int),
    4: ("selector", SELECTOR), 5: ("manualSelector", bool), 6: ("template", TEMPLATE),
    7: ("backoffLimit", int), 8: ("ttlSecondsAfterFinished", int), 9: ("completionMode", _text),
    10: ("suspend", bool), 12: ("backoffLimitPerIndex", int), 13: ("maxFailedIndexes", int),
    14: ("podReplacementPolicy", _text), 15: ("managedBy", _text),
}, "JobSpec")  # fmt: skip
ROLLING_UPDATE = _message({1: ("maxUnavailable", _int_or_string), 2: ("maxSurge", _int_or_string)})
DEPLOYMENT = _message({
    1: ("replicas", int), 2: ("selector", SELECTOR), 3: ("template", TEMPLATE),
    4: ("strategy", _message({1: ("type", _text), 2: ("rollingUpdate", ROLLING_UPDATE)})),
    5: ("minReadySeconds", _number), 6: ("revisionHistoryLimit", int), 7: ("paused", _true),
    9: ("progressDeadlineSeconds", int),
}, "DeploymentSpec")  # fmt: skip
SERVICE_PORT = _message({
    1: ("name", _text), 2: ("protocol", _text), 3: ("port", _number), 4: ("targetPort", _int_or_string),
    5: ("nodePort", _number), 6: ("appProtocol", _text),
}, "ServicePort")  # fmt: skip
SERVICE = _message({
    1: ("ports", _Many(SERVICE_PORT)), 2: ("selector", TEXTS), 3: ("clusterIP", _text), 4: ("type", _text),
    7: ("sessionAffinity", _text), 10: ("externalName", _text), 11: ("externalTrafficPolicy", _text),
    18: ("clusterIPs", TEXT_LIST),
}, "ServiceSpec")  # fmt: skip
DISRUPTIONS = _message({
    1: ("minAvailable", _int_or_string), 2: ("selector", SELECTOR), 3: ("maxUnavailable", _int_or_string),
    4: ("unhealthyPodEvictionPolicy", _text),
}, "PodDisruptionBudgetSpec")  # fmt: skip
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
    "Deployment": {2: ("spec", DEPLOYMENT)},
    "Job": {2: ("spec", JOB)},
    "PodDisruptionBudget": {2: ("spec", DISRUPTIONS)},
    "Service": {2: ("spec", SERVICE)},
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
    """Return the object; raises 415 for an unsupported kind or field, 400 for a malformed message."""
    if not data.startswith(MAGIC):
        raise bad_request("the object provided is unrecognized: no protobuf of Kubernetes")
    try:
        envelope = dict(_fields(data[len(MAGIC) :]))
        kind_of = dict(_fields(envelope[1]))
        kind, api_version = _text(kind_of[2]), _text(kind_of[1])
        if kind not in KINDS:
            raise _not_read(kind)
        fields = {1: ("metadata", METADATA), **KINDS[kind]}  # DeleteOptions have no metadata
        body: dict[str, Any] = _message(fields)(envelope.get(2, b""))
    except (KeyError, IndexError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized: {error!r}") from error
    return {"apiVersion": api_version, "kind": kind, **body}
