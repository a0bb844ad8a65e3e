"""
The defaults and the validation of Jobs (batch/v1) that submitters meet, beyond their schema. Pure.

Source: the answers of a kube-apiserver 1.36.2 in tests/placement_lab/hub/job_exchanges.jsonl. Other rules are
not checked.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from kubectl_placement.scheduling.canonical_quantities import canonical
from placement_ac.core.api.quantities import exact
from placement_lab.hub import metadata
from placement_lab.hub.errors import bad_request
from placement_lab.structural_schema.schema_node import dumps
from placement_lab.structural_schema.validation import StatusCause
from placement_lab.structural_schema.validation import validate as schema_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement_lab.hub.kinds import ServedResource

Object = dict[str, Any]

TEMPLATE: Final = "spec.template"
POD: Final = f"{TEMPLATE}.spec"
CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
NOT_NEGATIVE: Final = (
    "parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
)  # fmt: skip
IMMUTABLE: Final = (
    "completionMode",
    "selector",
    "podFailurePolicy",
    "successPolicy",
    "backoffLimitPerIndex",
    "managedBy",
)
RESTART_POLICIES: Final = ("OnFailure", "Never")
NO_LIMIT: Final = 2**31 - 1
CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
LABEL_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
MANAGER: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[^/]+")
QUANTITY: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


# -- defaults


def prepare(resource: ServedResource, job: Object, live: Object | None) -> Object:
    """Return a Job with its defaults, a new one without status; raises 400 for a value of a wrong type."""
    _check_types(resource, job)
    spec = job["spec"]
    spec = _counts(spec) | spec | {"template": _template(spec["template"])}
    return _labelled((job if live else _without(job, "status")) | {"spec": spec})


def generate(job: Object) -> Object:
    """
    Return a new Job with what the server adds, which belongs to no field manager: selector and labels.

    Its status is empty, which clients read without a look.
    """
    job = job | {"status": {}}
    spec, own = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return job
    labels = {"controller-uid": own["uid"], "job-name": own.get("name", "")}
    labels = {
        f"{prefix}{key}": value for prefix in ("", "batch.kubernetes.io/") for key, value in labels.items()
    }
    template = spec["template"]
    meta = template.get("metadata") or {}
    given = meta.get("labels") or {}
    template = template | {"metadata": meta | {"labels": labels | given}}
    selector = spec.get("selector") or {}
    matched = (selector.get("matchLabels") or {}) | {CONTROLLER_UID: own["uid"]}
    spec = spec | {"selector": selector | {"matchLabels": matched}, "template": template}
    inherits = given and own.get("labels") is given  # then `prepare` took them from the template
    return _labelled(job | {"spec": spec, "metadata": _without(own, "labels") if inherits else own})


def _check_types(resource: ServedResource, job: Object) -> None:
    """Raise the 400 of a server that cannot decode the Job."""
    [version] = resource.versions.values()
    for cause in schema_errors(version.schema, job, None, []):
        if cause.reason == "FieldValueTypeInvalid":
            raise _undecodable(str(cause))
    for _, container in _containers(job["spec"]["template"]["spec"]):
        for kind in ("requests", "limits"):
            if None in map(exact, container["resources"].get(kind, {}).values()):
                raise _undecodable(QUANTITY)


def _undecodable(why: str) -> Exception:
    return bad_request(f'Job in version "v1" cannot be handled as a Job: {why}')


def _counts(spec: Object) -> Object:
    """Return the defaults that depend on other fields; those that do not are in the schema."""
    counts: Object = {"parallelism": 1}
    if "parallelism" not in spec and "completions" not in spec:
        counts["completions"] = 1
    counts["backoffLimit"] = NO_LIMIT if "backoffLimitPerIndex" in spec else 6
    return counts | {
        "podReplacementPolicy": "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    }


def _template(template: Object) -> Object:
    pod = dict(template["spec"])
    for kind in ("initContainers", "containers"):
        if kind in pod:
            pod[kind] = [_container(container) for container in pod[kind]]
    account = pod.get("serviceAccountName") or pod.get("serviceAccount")
    if account:
        pod |= {"serviceAccountName": account, "serviceAccount": account}
    return template | {"spec": pod}


def _container(container: Object) -> Object:
    image, _, digest = container.get("image", "").partition("@")
    tag = image.rpartition("/")[2].partition(":")[2]
    policy = "IfNotPresent" if digest or tag not in ("", "latest") else "Always"
    resources = {
        kind: {name: canonical(value) for name, value in amounts.items()}
        if kind in ("requests", "limits")
        else amounts
        for kind, amounts in container["resources"].items()
    }
    return {"imagePullPolicy": policy} | container | {"resources": resources}


def _labelled(job: Object) -> Object:
    """Return the Job with its template's labels, if it has none itself."""
    labels, own = _labels(job["spec"]["template"]), job["metadata"]
    return job if own.get("labels") or not labels else job | {"metadata": own | {"labels": labels}}


# -- validation


def validate(job: Object, live: Object | None) -> Iterator[StatusCause]:
    """Yield the errors of a Job; `live` is None for a new one."""
    spec = job["spec"]
    yield from _validate_selector(job)
    for field in NOT_NEGATIVE:
        yield from _not_negative(f"spec.{field}", spec.get(field, 0))
    yield from _validate_mode(spec)
    manager = spec.get("managedBy")
    if manager is not None and not MANAGER.fullmatch(manager):
        yield _invalid(
            "spec.managedBy", dumps(manager), 'must be a domain-prefixed path (such as "acme.io/foo")'
        )
    yield from _validate_template(spec)
    if live is not None:
        yield from _validate_update(spec, live)


def _validate_selector(job: Object) -> Iterator[StatusCause]:
    spec, own = job["spec"], job["metadata"]
    selector, labels = spec.get("selector"), (spec["template"].get("metadata") or {}).get("labels") or {}
    if selector is None:
        yield _required("spec.selector")
    elif not spec.get("manualSelector"):
        generated = {CONTROLLER_UID: own["uid"]}, {"controller-uid": own["uid"]}
        if selector.get("matchExpressions") or selector.get("matchLabels") not in generated:
            yield _invalid("spec.selector", dumps(selector), "`selector` not auto-generated")
        wanted = {CONTROLLER_UID: own["uid"], "batch.kubernetes.io/job-name": own.get("name")}
        wanted |= {"controller-uid": own["uid"], "job-name": own.get("name")}
        for key, value in wanted.items():
            if labels.get(key) != value:
                yield _invalid(f"{TEMPLATE}.metadata.labels[{key}]", dumps(labels), f"must be '{value}'")
    matched = (selector or {}).get("matchLabels") or {}
    if not (matched or (selector or {}).get("matchExpressions")) or not matched.items() <= labels.items():
        why = "`selector` does not match template `labels`"
        yield _invalid(f"{TEMPLATE}.metadata.labels", dumps(labels or None), why)


def _validate_mode(spec: Object) -> Iterator[StatusCause]:
    if spec["completionMode"] == "Indexed":
        if "completions" not in spec:
            yield _required("spec.completions", "when completion mode is Indexed")
    elif (limit := spec.get("backoffLimitPerIndex")) is not None:
        yield _invalid("spec.backoffLimitPerIndex", limit, "requires indexed completion mode")


def _validate_template(spec: Object) -> Iterator[StatusCause]:
    template = spec["template"]
    pod = template["spec"]
    yield from metadata.validate_labels(_labels(template), f"{TEMPLATE}.labels")
    if not pod.get("containers"):
        yield _required(f"{POD}.containers")
    for where, container in _containers(pod):
        yield from _validate_container(where, container, pod)
    yield from _validate_restart_policy(pod["restartPolicy"], spec)


def _validate_restart_policy(policy: str, spec: Object) -> Iterator[StatusCause]:
    where, allowed = f"{POD}.restartPolicy", ", ".join(map(dumps, RESTART_POLICIES))
    if policy == "Always":  # it is the default of a Pod
        yield _required(where, f"valid values: {allowed}")
    elif policy not in RESTART_POLICIES:
        message = f"Unsupported value: {dumps(policy)}: supported values: {allowed}"
        yield StatusCause("FieldValueNotSupported", message, where)
    elif policy != "Never" and spec.get("podFailurePolicy"):
        yield _invalid(where, dumps(policy), 'only "Never" is supported when podFailurePolicy is specified')


def _validate_container(where: str, container: Object, pod: Object) -> Iterator[StatusCause]:
    name = container.get("name")
    if not name:
        yield _required(f"{where}.name")
    elif not LABEL_NAME.fullmatch(name):
        yield _invalid(f"{where}.name", dumps(name), "a lowercase RFC 1123 label")
    if not container.get("image"):
        yield _required(f"{where}.image")
    volumes = {volume.get("name") for volume in pod.get("volumes") or ()}
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            message = f"Not found: {dumps(mount.get('name'))}"
            yield StatusCause("FieldValueNotFound", message, f"{where}.volumeMounts[{i}].name")
    yield from _validate_resources(f"{where}.resources", container["resources"])


def _validate_resources(where: str, resources: Object) -> Iterator[StatusCause]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for kind, amounts in (("requests", requests), ("limits", limits)):
        for name, value in amounts.items():
            yield from _validate_amount(f"{where}.{kind}[{name}]", name, value)
    for name, value in requests.items():
        wanted, limit = exact(value) or 0, exact(limits.get(name))
        overcommitted = _is_native(name) and not name.startswith("hugepages-")
        if limit is None:
            if not overcommitted:
                yield _required(f"{where}.limits", "Limit must be set for non overcommitable resources")
        elif wanted > limit or (wanted != limit and not overcommitted):
            rule = "less than or equal to" if overcommitted else "equal to"
            why = f"must be {rule} {name} limit of {limits[name]}"
            yield _invalid(f"{where}.requests", dumps(value), why)


def _validate_amount(where: str, name: str, value: str) -> Iterator[StatusCause]:
    number = exact(value) or Fraction(0)
    if "/" not in name and name not in CONTAINER_RESOURCES and not name.startswith("hugepages-"):
        yield _invalid(where, dumps(name), "must be a standard resource type or fully qualified")
        yield _invalid(where, dumps(name), "must be a standard resource for containers")
    if number < 0:
        yield _invalid(where, dumps(value), "must be greater than or equal to 0")
    if not _is_native(name) and number.denominator != 1:
        yield _invalid(where, dumps(value), "must be an integer")


def _is_native(name: str) -> bool:
    """Return whether a resource is one of Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def _validate_update(spec: Object, live: Object) -> Iterator[StatusCause]:
    old = live["spec"]
    for field in IMMUTABLE:
        if spec.get(field) != old.get(field):
            yield _immutable(f"spec.{field}", spec.get(field))
    if spec.get("completions") != old.get("completions"):
        if spec["completionMode"] != "Indexed":
            yield _immutable("spec.completions", spec.get("completions"))
        elif spec.get("completions") != spec["parallelism"]:
            why = "can only be modified in tandem with spec.parallelism"
            yield _invalid("spec.completions", spec.get("completions"), why)
    if old["suspend"] and not (live.get("status") or {}).get("startTime"):
        if _fixed(spec["template"]["spec"]) != _fixed(old["template"]["spec"]):
            yield _immutable(POD, spec["template"]["spec"])
    elif spec["template"] != old["template"]:
        yield _immutable(TEMPLATE, spec["template"])


def _fixed(pod: Object) -> Object:
    """Return what cannot change of the Pods of a suspended Job that has not started."""
    affinity = _without(pod.get("affinity") or {}, "nodeAffinity")
    changeable = (
        "nodeSelector",
        "tolerations",
        "schedulingGates",
        "affinity",
        "initContainers",
        "containers",
    )
    containers = [_without(container, "resources") for _, container in _containers(pod)]
    return _without(pod, *changeable) | {"affinity": affinity, "containers": containers}


# -- parts


def _labels(template: Object) -> Object:
    labels: Object = (template.get("metadata") or {}).get("labels") or {}
    return labels


def _containers(pod: Object) -> Iterator[tuple[str, Object]]:
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(pod.get(kind) or ()):
            yield f"{POD}.{kind}[{i}]", container


def _without(obj: Object, *keys: str) -> Object:
    return {key: value for key, value in obj.items() if key not in keys}


def _not_negative(where: str, value: int) -> Iterator[StatusCause]:
    if value < 0:
        yield _invalid(where, value, "must be greater than or equal to 0")


def _immutable(where: str, value: Any) -> StatusCause:
    return _invalid(where, dumps(value), "field is immutable")


def _invalid(where: str, value: object, why: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f"Invalid value: {value}: {why}", where)


def _required(where: str, why: str = "") -> StatusCause:
    return StatusCause("FieldValueRequired", f"Required value: {why}" if why else "Required value", where)
