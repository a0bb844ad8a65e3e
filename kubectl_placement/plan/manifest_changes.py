"""
Apply manifests to a dump as `kubectl apply` would to the hub: which objects it creates and changes.

Pure. Fields that a manifest does not set stay; fields that it no longer sets are removed if kubectl's
last-applied annotation lists them or, without it, if `managedFields` show that who applies the object on the
server owns them alone. A status stays, except of scores, ClusterProfiles and new clusters.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kubectl_placement.hub.dump import LAST_APPLIED, Dump, InvalidManifest, Object
from kubectl_placement.hub.dump_files import kind_of
from kubectl_placement.hub.kinds import DECISION_KINDS, QUEUE_KINDS
from placement_ac.core.api import decode
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    CLUSTER_SET,
    CONFIG_MAP,
    MANAGED_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_SCORE,
    RESOURCE_FLAVOR,
    SECRET,
    SET_BINDING,
    WORKLOAD,
    Kind,
    Resource,
)
from placement_ac.core.api.fields import Key, get_dict, get_list, get_str, get_texts, get_value, key_of
from placement_ac.core.api.managed_fields import owned_by

PLANNED_KINDS: Final = frozenset((*DECISION_KINDS, *QUEUE_KINDS)) - {WORKLOAD}
"""The kinds that a plan considers; other manifests are ignored."""
SETUP_KINDS: Final = frozenset((RESOURCE_FLAVOR, CONFIG_MAP))
"""Those that it may consider as well: workers are set up from them."""
_WRITTEN_BY_ADMINS: Final = (PLACEMENT, ADMISSION_CHECK, CLUSTER_SET)
_WITH_STATUS: Final = (PLACEMENT_SCORE, CLUSTER_PROFILE)
_NOT_CONTENT: Final = ("apiVersion", "kind", "metadata", "status", "stringData")


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """An object of the manifests, before (None: it does not exist) and after.

    `manifest`: the last one of this object.
    """

    kind: Kind
    key: Key
    before: Object | None
    after: Object
    manifest: Object

    @property
    def verb(self) -> Literal["create", "change", "none"]:
        if self.before is None:
            return "create"
        return "none" if self.after is self.before else "change"

    def __str__(self) -> str:
        return f"{self.kind.kind} {'/'.join(filter(None, self.key))}"


def planned_resources(manifests: Iterable[Object]) -> frozenset[Resource]:
    """Return the kinds that a plan considers, in the versions of the manifests; without the core group."""
    found, planned = (kind_of(manifest) for manifest in manifests), PLANNED_KINDS | SETUP_KINDS
    return frozenset(kind.at(version) for kind, version in found if kind and kind.group and kind in planned)


def apply_manifests(
    dump: Dump,
    manifests: Iterable[Object],
    namespace: str,
    considers: Callable[[Kind, Object], bool] = lambda kind, _: kind in PLANNED_KINDS,
) -> tuple[tuple[ManifestChange, ...], tuple[str, ...]]:
    """Return a change for each object that a plan `considers`, and all others, with the reason.

    Unchanged objects are included. `namespace`: the default namespace. Raises InvalidManifest, which names
    every object that no plan can be made of.
    """
    changes: dict[tuple[Kind, Key], ManifestChange] = {}
    passed_over, refused = [], []
    for manifest in manifests:
        kind, version = kind_of(manifest)
        if kind is None or not considers(kind, manifest) or "name" not in manifest["metadata"]:
            passed_over.append(_name_and_reason(manifest))
            continue
        wanted = _with_namespace(manifest, kind, namespace)
        id_ = kind, key_of(wanted)
        try:
            changes[id_] = _change(dump, wanted, manifest, version, changes.get(id_))
        except InvalidManifest as error:
            refused.append(str(error))
    if refused:
        raise InvalidManifest("\n".join(refused))
    return tuple(changes.values()), tuple(passed_over)


def _change(
    dump: Dump, wanted: Object, manifest: Object, version: str, known: ManifestChange | None
) -> ManifestChange:
    """Return the effect of a manifest. `known`: of an earlier one of this object. Raises InvalidManifest."""
    kind, key = kind_of(wanted)[0], key_of(wanted)
    assert kind  # noqa: S101  # for the type checker: only planned kinds come here
    before = known.before if known else dump.find(kind, key[1], key[0])
    there = known.after if known else before
    after = _merged(there, wanted, kind)
    if problem := next(_problems(wanted, kind, version), ""):
        raise InvalidManifest(f"{kind.kind} {'/'.join(filter(None, key))}: {problem}")
    return ManifestChange(kind, key, before, _same_if_unchanged(before, after), manifest)


def _name_and_reason(manifest: Object) -> str:
    """Return the name of an object that a plan does not consider, and why."""
    metadata = manifest["metadata"]
    if "name" not in metadata:
        return f"{manifest['kind']} {metadata['generateName']}…: its name is generated when it is created"
    return f"{manifest['kind']} {metadata['name']}: plan does not consider this kind"


def _with_namespace(manifest: Object, kind: Kind, namespace: str) -> Object:
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "namespace"}
    if kind.namespaced:
        metadata["namespace"] = manifest["metadata"].get("namespace") or namespace
    return manifest | {"metadata": metadata}


def kept_fields(change: ManifestChange, defaults: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of `spec` that stay though they are not in the manifest: it never applied them.

    Only of kinds of which an admin writes the whole `spec`, and not what the API server has set by default.
    """
    if change.before is None or change.kind not in _WRITTEN_BY_ADMINS:
        return
    last = _last_applied(change.before, change.manifest)
    there, wanted, applied = (one.get("spec") or {} for one in (change.before, change.manifest, last))
    for key, value in there.items() if isinstance(there, dict) else ():
        if key not in wanted and key not in applied and value not in (defaults.get(key), None):
            yield f"spec.{key}"


# -- as kubectl applies


def _merged(there: Object | None, wanted: Object, kind: Kind) -> Object:
    """Return the object with the manifest applied; the same object if nothing changes."""
    content = _content(wanted)
    if kind in _WITH_STATUS or (there is None and kind == MANAGED_CLUSTER):
        content |= {key: wanted[key] for key in ("status",) if wanted.get(key) is not None}
    texts = {field: _texts(wanted, field) for field in ("labels", "annotations")}
    if there is None:
        name = "/".join(filter(None, key_of(wanted)))
        fresh: Object = {"uid": f"uid of the new {kind.kind} {name}", "generation": 1}
        named = {key: value for key, value in wanted["metadata"].items() if key in ("name", "namespace")}
        given = {field: get_texts(found) for field, found in texts.items() if found}
        head = {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}
        return head | {"metadata": named | given | fresh} | content
    last = _last_applied(there, wanted)
    merged = there | {key: overlay(there.get(key), value, last.get(key)) for key, value in content.items()}
    for key in _content(last).keys() - content.keys():
        merged.pop(key, None)
    metadata = dict(there["metadata"])
    for field, wanted_texts in texts.items():
        before = metadata.get(field) or {}
        after = overlay(before, wanted_texts, _texts(last, field))
        if after != before:
            metadata[field] = after
    if merged.get("spec") != there.get("spec"):
        metadata["generation"] = int(metadata.get("generation") or 0) + 1
    merged["metadata"] = metadata
    return there if merged == there else merged


def _same_if_unchanged(before: Object | None, after: Object) -> Object:
    """Return `before` itself if a second manifest of the same object has undone the first."""
    return before if before and _less_generation(before) == _less_generation(after) else after


def _less_generation(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "generation"}
    return obj | {"metadata": metadata}


def overlay(there: Any, wanted: Any, last: Any) -> Any:
    """Return `there` with the fields of `wanted`, without the fields of `last` that are no longer wanted."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        last = last if isinstance(last, dict) else {}
        kept = {key: value for key, value in there.items() if key in wanted or key not in last}
        laid = {key: overlay(there.get(key), value, last.get(key)) for key, value in wanted.items()}
        return {key: value for key, value in (kept | laid).items() if value is not None}
    if isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        before = last if isinstance(last, list) and len(last) == len(there) else [None] * len(there)
        return [overlay(*items) for items in zip(there, wanted, before, strict=True)]
    return wanted


def _content(obj: Mapping[str, Any]) -> Object:
    """Return the fields beside metadata and status; `stringData` of a Secret as `data`."""
    content = {key: value for key, value in obj.items() if key not in _NOT_CONTENT}
    plain = obj.get("stringData")
    if isinstance(plain, dict):
        encoded = {
            key: base64.b64encode(("" if text is None else str(text)).encode()).decode()
            for key, text in plain.items()
        }
        content["data"] = (content.get("data") or {}) | encoded
    return content


def _texts(obj: Mapping[str, Any], field: str) -> dict[str, str | None]:
    """Return labels or annotations; null is "" in a new object, and removes one from an old one."""
    found = (obj.get("metadata") or {}).get(field) or {}
    return {key: value for key, value in found.items() if key != LAST_APPLIED}


def _last_applied(obj: Object, wanted: Object) -> Object:
    """Return what the manifest of before has set, as far as the object shows it; `wanted`: that of now."""
    text = (obj["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if text is None:
        return _applied_on_server(obj, wanted)
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _applied_on_server(obj: Object, wanted: Object) -> Object:
    """Return what the last server-side apply of such a manifest owns alone; {} if there was none.

    The API server removes exactly that when the same manager applies the object without it. Who applies
    other fields than the manifest is another, such as a controller.
    """
    entries = [entry for entry in get_list(obj, "metadata", "managedFields") if not entry.get("subresource")]
    appliers = [
        entry
        for entry in entries
        if entry.get("operation") == "Apply"
        and get_dict(entry, "fieldsV1", "f:spec").keys() & {f"f:{key}" for key in get_dict(wanted, "spec")}
    ]
    if not appliers:
        return {}
    last = max(appliers, key=lambda entry: get_str(entry, "time"))
    others = [get_dict(entry, "fieldsV1") for entry in entries if entry is not last]
    own = owned_by(obj, get_str(last, "manager"), "")
    return {key: _alone(value, [get_dict(one, f"f:{key}") for one in others]) for key, value in own.items()}


def _alone(value: Any, others: Iterable[Mapping[str, Any]]) -> Any:
    """Return a part of an object without the fields in it that others own as well."""
    if not isinstance(value, dict):
        return value
    alone = {}
    for key, inner in value.items():
        shared = [get_dict(one, f"f:{key}") for one in others if f"f:{key}" in one]
        if not shared:
            alone[key] = inner
        elif isinstance(inner, dict) and (left := _alone(inner, shared)):
            alone[key] = left
    return alone


# -- objects that no plan can be made of


def _problems(obj: Object, kind: Kind, version: str) -> Iterator[str]:
    if version not in kind.versions:
        best = kind.at(kind.versions[0]).api_version
        yield f"write apiVersion {best}: {obj['apiVersion']} is unknown"
    for path, what in _SHAPES.get(kind, {"spec": _OBJECT}).items():
        found = get_value(obj, *path.split("."))
        if found is not None and not what.holds(found):
            yield f"{what.fix}: {path} is not {what.description}"
    if kind in _PARSERS and (problem := _PARSERS[kind](obj)):
        yield f"see `kubectl explain {kind.plural}.{problem.split(':')[0]}`: {problem}"
    name = obj["metadata"]["name"]
    if kind == SET_BINDING and get_value(obj, "spec", "clusterSet") != name:
        yield f"write spec.clusterSet {name}: OCM requires the binding's own name"


@dataclass(frozen=True, slots=True)
class _FieldShape:
    holds: Callable[[Any], bool]
    description: str
    fix: str


def _list_of(kind: type) -> Callable[[Any], bool]:
    return lambda many: isinstance(many, list) and all(isinstance(one, kind) for one in many)


_OBJECT: Final = _FieldShape(lambda one: isinstance(one, dict), "an object", "write fields and values")
_OBJECTS: Final = _FieldShape(_list_of(dict), "a list of objects", "begin each with '-'")
_WORDS: Final = _FieldShape(_list_of(str), "a list of names", "write one after '-' on each line")
_NUMBER: Final = _FieldShape(
    lambda one: isinstance(one, int) and not isinstance(one, bool) and one >= 0,
    "a whole number",
    "write one from 0 on, without quotes",
)
_TEXT: Final = _FieldShape(lambda one: isinstance(one, str), "text", "put it in quotes")

_SHAPES: Final[Mapping[Kind, Mapping[str, _FieldShape]]] = {
    PLACEMENT: {
        "spec": _OBJECT,
        "spec.clusterSets": _WORDS,
        "spec.numberOfClusters": _NUMBER,
        "spec.predicates": _OBJECTS,
        "spec.prioritizerPolicy": _OBJECT,
        "spec.prioritizerPolicy.configurations": _OBJECTS,
        "spec.tolerations": _OBJECTS,
        "spec.spreadPolicy": _OBJECT,
        "spec.decisionStrategy": _OBJECT,
        "spec.decisionStrategy.groupStrategy": _OBJECT,
        "spec.decisionStrategy.groupStrategy.decisionGroups": _OBJECTS,
    },
    MANAGED_CLUSTER: {"spec": _OBJECT, "spec.taints": _OBJECTS, "status": _OBJECT},
    CLUSTER_SET: {"spec": _OBJECT, "spec.clusterSelector": _OBJECT},
    ADMISSION_CHECK: {"spec": _OBJECT, "spec.controllerName": _TEXT, "spec.parameters": _OBJECT},
    SECRET: {"data": _OBJECT, "stringData": _OBJECT},
    PLACEMENT_SCORE: {"status": _OBJECT, "status.scores": _OBJECTS},
    MULTIKUEUE_CONFIG: {"spec": _OBJECT, "spec.clusters": _WORDS},
}
"""By path, the shape that a value must have."""
_PARSERS: Final[Mapping[Kind, Callable[[Object], str]]] = {
    PLACEMENT: lambda obj: decode.placement(_without_status(obj)).problem,
    ADMISSION_CHECK: lambda obj: decode.check(_without_status(obj)).problem,
    CLUSTER_PROFILE: lambda obj: decode.cluster_profile(obj).problem,
    PLACEMENT_SCORE: lambda obj: decode.scores(obj).problem,
}


def _without_status(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key != "status"}
