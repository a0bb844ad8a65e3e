"""
Defaulting and validation of roles and bindings beyond their schemas. Pure.

Source: Kubernetes, pkg/apis/rbac/validation and pkg/apis/rbac/v1/defaults.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement_lab.hub import selectors
from placement_lab.structural_schema.schema_node import dumps
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement_lab.hub.kinds import ServedResource
    from placement_lab.hub.selectors import Test

Object = dict[str, Any]

GROUP = "rbac.authorization.k8s.io"
SUBJECTS = ("ServiceAccount", "User", "Group")
OPERATORS = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}


def default_subjects(binding: Object, _: Object | None = None) -> Object:
    """Set the default apiGroup of User and Group subjects."""
    subjects = binding.get("subjects")
    if not isinstance(subjects, list):
        return binding
    return binding | {"subjects": [_with_api_group(subject) for subject in subjects]}


def _with_api_group(subject: Any) -> Any:
    if isinstance(subject, dict) and subject.get("kind") in ("User", "Group"):
        return {**subject, "apiGroup": subject.get("apiGroup") or GROUP}
    return subject


def validate(resource: ServedResource, obj: Object, live: Object | None) -> Iterator[StatusCause]:
    """Yield the errors in a role or binding; wrong types are left to the schema."""
    for i, rule in enumerate(_maps(obj.get("rules"))):
        yield from _validate_rule(rule, resource.namespaced, f"rules[{i}]")
    if resource.kind.endswith("Binding"):
        yield from _validate_role_ref(obj.get("roleRef"), resource.namespaced)
        for i, subject in enumerate(_maps(obj.get("subjects"))):
            yield from _validate_subject(subject, resource.namespaced, f"subjects[{i}]")
        if live is not None and obj.get("roleRef") != live["roleRef"]:
            message = f"Invalid value: {dumps(obj.get('roleRef'))}: cannot change roleRef"
            yield StatusCause("FieldValueInvalid", message, "roleRef")


def _validate_rule(rule: Object, namespaced: bool, where: str) -> Iterator[StatusCause]:
    if not rule.get("verbs"):
        yield _required(f"{where}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield _invalid(f"{where}.nonResourceURLs", urls, why)
        if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield _invalid(f"{where}.nonResourceURLs", urls, why)
        return
    if not rule.get("apiGroups"):
        yield _required(f"{where}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield _required(f"{where}.resources", "resource rules must supply at least one resource")


def _validate_role_ref(reference: Any, namespaced: bool) -> Iterator[StatusCause]:
    given = reference if isinstance(reference, dict) else {}
    if given.get("apiGroup", GROUP) != GROUP:
        yield _unsupported("roleRef.apiGroup", given["apiGroup"], (GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if given.get("kind") not in kinds:
        yield _unsupported("roleRef.kind", given.get("kind", ""), kinds)
    if not given.get("name"):
        yield _required("roleRef.name")


def _validate_subject(subject: Object, namespaced: bool, where: str) -> Iterator[StatusCause]:
    if not subject.get("name"):
        yield _required(f"{where}.name")
    kind, group = subject.get("kind", ""), subject.get("apiGroup", "")
    if kind not in SUBJECTS:
        yield _unsupported(f"{where}.kind", kind, SUBJECTS)
        return
    wanted = "" if kind == "ServiceAccount" else GROUP
    if group != wanted:
        yield _unsupported(f"{where}.apiGroup", group, (wanted,))
    if kind == "ServiceAccount" and not namespaced and not subject.get("namespace"):
        yield _required(f"{where}.namespace")


def _maps(values: Any) -> list[Object]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _required(where: str, why: str = "") -> StatusCause:
    return StatusCause("FieldValueRequired", f"Required value: {why}" if why else "Required value", where)


def _invalid(where: str, value: Any, why: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f"Invalid value: {dumps(value)}: {why}", where)


def _unsupported(where: str, value: Any, supported: tuple[str, ...]) -> StatusCause:
    listed = ", ".join(dumps(value) for value in supported)
    message = f"Unsupported value: {dumps(value)}: supported values: {listed}"
    return StatusCause("FieldValueNotSupported", message, where)


def selector(document: Object) -> Test:
    """Return a test of an object's labels by a LabelSelector."""
    pairs = (f"{key}={value}" for key, value in (document.get("matchLabels") or {}).items())
    wishes = (
        OPERATORS[wish["operator"]].format(wish["key"], ",".join(wish.get("values") or ()))
        for wish in document.get("matchExpressions") or ()
    )
    return selectors.labels(",".join([*pairs, *wishes]))
