"""
Read the objects of `core.api.objects` from JSON.

No I/O, no clock. A shape that does not fit is reported in `problem` (field and
reason); nothing raises, so that one bad object cannot stop the others.
"""

import base64
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any, Final
from weakref import WeakValueDictionary

from placement_ac.core.api import constants, objects, schemas
from placement_ac.core.api.constants import (
    ANNOTATION_DELETE_UNKNOWN,
    ANNOTATION_DRAINING,
    ANNOTATION_MAINTENANCE,
    ANNOTATION_SECOND_NAMES,
    AUTHORITY_KEY,
    CLAIM_ID,
    CONDITION_ACTIVE,
    CONSUMER,
    DONE,
    FIELD_MANAGER,
    KUBECONFIG_KEY,
    LABEL_CLUSTER,
    LABEL_CLUSTER_SET,
    LABEL_MANAGER,
    MOVED_FROM,
    OCM_MANAGER,
    SENT_AGAIN,
    SENT_BACK,
    TAINT_UNREACHABLE,
    TOKEN_KEY,
)
from placement_ac.core.api.fields import (
    Obj,
    get_dict,
    get_int,
    get_list,
    get_str,
    get_strs,
    get_texts,
    get_value,
    parse_time,
)
from placement_ac.core.api.job_spec import NAME_CHARS_MAX, job_spec, label_values, owner_of
from placement_ac.core.api.label_selector import CLAIM
from placement_ac.core.api.managed_fields import spec_writer
from placement_ac.core.api.quantities import milli
from placement_ac.core.api.shapes import validate
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.servers import endpoints
from placement_ac.core.kubeconfig.source import Unusable, UsableByKueueOnly


def _constants(prefix: str) -> tuple[str, ...]:
    values = (value for name, value in vars(constants).items() if name.startswith(prefix))
    return tuple(value for value in values if isinstance(value, str))


READ_LABELS: Final = _constants("LABEL_")
READ_ANNOTATIONS: Final = _constants("ANNOTATION_")
"""Only these are kept of an object: a cluster's agent may write a megabyte of others."""
KEPT_BYTES: Final = 200_000
"""About the most that is kept of an object of which a part that others write without a limit is kept."""
ENTRY_BYTES: Final = 100
"""The bytes that an entry of a mapping takes besides its text."""
_MAINTENANCE_CHARS: Final = 100
"""A cluster's agent may write anything; a time is shorter."""
_CLAIM_CHARS: Final = 1024
"""OCM: `maxLength` of the value of a claim."""
_SENT_BACK = re.compile("|".join(text.format(r"(\S+)") for text in (SENT_BACK, SENT_AGAIN, MOVED_FROM)))
_NO_AMOUNTS: Final[Mapping[str, int]] = {}
_NOTHING: Final[Mapping[str, str]] = {}
"""Shared by all objects that have no labels, no annotations, or none that anybody reads."""


class _Owners(dict[str, str]):
    """uid → name of the AdmissionChecks that own an object. Equal ones are one object."""

    __slots__ = ("__weakref__",)


# Equal owners and applied fields are kept once, as long as an object has them: the MultiKueueClusters of a
# check have the same, and with 1,000 checks of 20 clusters this saves 20 MB.
_OWNERS: Final = WeakValueDictionary[tuple[tuple[str, str], ...], _Owners]()
_APPLIED: Final = WeakValueDictionary[tuple[object, ...], objects.AppliedFields]()


def version_of(raw: Obj) -> objects.ObjectVersion:
    m = raw.get("metadata") or {}
    version = m.get("resourceVersion") or ""
    return objects.ObjectVersion(
        m.get("namespace") or "", m.get("name", ""), m.get("uid") or "", str(version)
    )


def meta_of(raw: Obj) -> objects.Meta:
    """Read `metadata`; fields that the API server fills in may be missing, those that are there are valid."""
    m = raw.get("metadata") or {}
    return objects.Meta(
        name=m.get("name", ""),
        namespace=m.get("namespace") or "",
        uid=m.get("uid") or "",
        resource_version=str(m.get("resourceVersion") or ""),
        generation=m.get("generation") or 0,
        labels=_those(READ_LABELS, m.get("labels")),
        annotations=_those(READ_ANNOTATIONS, m.get("annotations")),
        deleting=bool(m.get("deletionTimestamp")),
    )


def _those(keys: tuple[str, ...], pairs: Mapping[str, str | None] | None) -> Mapping[str, str]:
    """Return those that somebody reads: an object may have a megabyte of others. Null is "", as in Go."""
    return {key: pairs[key] or "" for key in keys if key in pairs} or _NOTHING if pairs else _NOTHING


def check(raw: Obj) -> objects.Check:
    spec, problem = validate(schemas.CheckSpec, raw, "spec")
    # A broken `parameters` must not hide whose check it is.
    controller = spec.controller_name if spec else get_str(raw, "spec", "controllerName")
    return objects.Check(meta_of(raw), controller, spec.parameters if spec else None, active_of(raw), problem)


def active_of(raw: Obj) -> schemas.Condition | None:
    return _condition_of(raw, CONDITION_ACTIVE)


def _condition_of(raw: Obj, type_: str) -> schemas.Condition | None:
    """Return a condition, whatever the others look like: we must not write the same again."""
    for entry in get_list(raw, "status", "conditions"):
        if entry.get("type") == type_:
            return validate(schemas.Condition, {"condition": entry}, "condition")[0]
    return None


def capacity_provider(raw: Obj) -> objects.CapacityProvider:
    spec, problem = validate(schemas.CapacityProviderSpec, raw, "spec")
    capacity = get_value(raw, "status", "capacity")
    flavors = get_list(raw, "status", "capacity", "flavors")
    return objects.CapacityProvider(
        meta_of(raw),
        spec.controller_name if spec else get_str(raw, "spec", "controllerName"),
        spec.parameters if spec else None,
        tuple(flavor.name for flavor in spec.orchestrated_flavors) if spec else (),
        {get_str(one, "name"): get_dict(one, "resources") for one in flavors} if capacity else None,
        _condition_of(raw, constants.CONDITION_CAPACITY),
        problem,
    )


def placement(raw: Obj) -> objects.Placement:
    spec, bad_spec = validate(schemas.PlacementSpec, raw, "spec")
    status, bad_status = validate(schemas.PlacementStatus, raw, "status")
    selected = (status.number_of_selected_clusters or 0) if status and raw.get("status") else None
    return objects.Placement(
        meta=meta_of(raw),
        prioritizers=_add_ons(spec.prioritizer_policy) if spec and spec.prioritizer_policy else (),
        selected=selected,
        groups=status.decision_groups if status else (),
        conditions=status.conditions if status else (),
        problem=bad_spec or bad_status,
        created=created_at(raw),
        grouped=bool(spec and spec.decision_strategy),
        cluster_sets=spec.cluster_sets if spec else (),
        number_of_clusters=get_int(raw, "spec", "numberOfClusters"),
        has_predicates=bool(get_list(raw, "spec", "predicates")),
    )


def _add_ons(policy: schemas.PrioritizerPolicy) -> tuple[objects.AddOnPrioritizer, ...]:
    return tuple(
        objects.AddOnPrioritizer(add_on.resource_name, add_on.score_name, entry.weight)
        for entry in policy.configurations
        if entry.weight and entry.score_coordinate and (add_on := entry.score_coordinate.add_on)
    )


def created_at(raw: Obj) -> datetime | None:
    return parse_time(str((raw.get("metadata") or {}).get("creationTimestamp")))


def cluster_profile(raw: Obj) -> objects.ClusterProfile:
    meta = meta_of(raw)
    status, problem = validate(schemas.ProfileStatus, raw, "status")
    refs = [c.access_ref for c in status.credentials if c.consumer == CONSUMER] if status else []
    providers = (*status.credential_providers, *status.access_providers) if status else ()
    secrets = tuple(objects.SecretRef(ref.kind, ref.namespace or meta.namespace, ref.name) for ref in refs)
    servers = {provider.name: endpoints(provider.cluster) for provider in providers if provider.name}
    texts = (*(text for ref in refs for text in (ref.kind, ref.namespace, ref.name)), *servers)
    if not _is_small(chain(texts, *(server.values() for server in servers.values()))):
        secrets, servers = (), {}
        problem = (
            f"status: report fewer credentials and accessProviders: at most {KEPT_BYTES:,} bytes are read"
        )
    return objects.ClusterProfile(
        meta=meta,
        cluster=meta.labels.get(LABEL_CLUSTER) or _named_by_ocm(meta),
        secrets=secrets,
        providers=servers,
        problem=problem,
    )


def _named_by_ocm(meta: objects.Meta) -> str:
    """Return the name of a ClusterProfile if OCM made it: other managers do not use the cluster's name."""
    return meta.name if meta.labels.get(LABEL_MANAGER, OCM_MANAGER) == OCM_MANAGER else ""


def secret(raw: Obj) -> objects.Secret:
    text = _kubeconfig(raw.get("data"))
    access = read_kubeconfig(text) if isinstance(text, bytes) else Unusable(text)
    digest = digest_of(text) if isinstance(text, bytes) else ""
    bare = objects.Secret(meta_of(raw), _owners(raw), _NOTHING, _applied_fields_of(raw), digest=digest)
    if isinstance(access, UsableByKueueOnly):
        access = access.access
    if isinstance(access, Unusable):
        return replace(bare, problem=access.why)
    return replace(bare, expires=access.expires, issued=access.issued, expires_what=access.expires_what)


def _kubeconfig(data: object) -> bytes | str:
    """Return the content of the key that Kueue reads, or what must change there, and why."""
    encoded: Any = get_value(data, KUBECONFIG_KEY)
    if encoded is None:
        return f"add key {KUBECONFIG_KEY}: it is missing"
    if not encoded:
        return f"put a kubeconfig under key {KUBECONFIG_KEY}: it is empty"
    try:
        return base64.b64decode(encoded, validate=True)
    except (ValueError, TypeError):
        return f"encode key {KUBECONFIG_KEY} in base64: it is not base64"


def digest_of(kubeconfig: bytes) -> str:
    return hashlib.sha256(kubeconfig).hexdigest()


def account_token(raw: Obj) -> objects.AccountToken:
    meta, data = meta_of(raw), get_dict(raw, "data")
    try:
        token = base64.b64decode(data.get(TOKEN_KEY) or "", validate=True).decode("ascii")
        authority = base64.b64decode(data.get(AUTHORITY_KEY) or "", validate=True)
    except (ValueError, TypeError):
        return objects.AccountToken(meta, problem="is not base64 of a token and a certificate")
    missing = [key for key, value in ((TOKEN_KEY, token), (AUTHORITY_KEY, authority)) if not value]
    return objects.AccountToken(meta, token, authority, f"has no {missing[0]}" if missing else "")


def scores(raw: Obj) -> objects.Scores:
    status, problem = validate(schemas.ScoreStatus, raw, "status")
    values = {entry.name: entry.value for entry in status.scores} if status else {}
    if not _is_small(values):
        values, problem = {}, f"status.scores: report fewer: at most {KEPT_BYTES:,} bytes are read"
    meta, valid_until = meta_of(raw), status.valid_until if status else None
    written = None
    if meta.name == constants.SCORES_NAME:
        written = objects.WritableObject(meta, _owners(raw), _NOTHING, _applied_fields_of(raw))
    return objects.Scores(meta, values, valid_until, problem, written)


def _is_small(texts: Iterable[str]) -> bool:
    """Whether a mapping with these keys takes at most KEPT_BYTES."""
    return sum(ENTRY_BYTES + len(text) for text in texts) <= KEPT_BYTES


def kueue_object(raw: Obj) -> objects.KueueObject:
    active = active_of(raw)
    return objects.KueueObject(
        meta=meta_of(raw),
        owners=_owners(raw),
        spec=get_dict(raw, "spec"),
        applied_fields=_applied_fields_of(raw),
        active=active.status == "True" if active else None,
        active_since=parse_time(active.last_transition_time) if active else None,
        active_reason=active.reason if active else "",
    )


def checks_listed(queue: Obj) -> frozenset[str]:
    """Return the AdmissionChecks that a ClusterQueue lists, in either of Kueue's two fields."""
    rules = get_list(queue, "spec", "admissionChecksStrategy", "admissionChecks")
    named = [rule["name"] for rule in rules if isinstance(rule.get("name"), str)]
    return frozenset((*get_strs(queue, "spec", "admissionChecks"), *named))


def flavors_left_out(queue: Obj) -> dict[str, tuple[str, ...]]:
    """Return the checks with `onFlavors` → the ResourceFlavors of the ClusterQueue that each leaves out.

    A check without `onFlavors` applies to all, and is not in it.
    """
    groups = get_list(queue, "spec", "resourceGroups")
    used = [get_str(flavor, "name") for group in groups for flavor in get_list(group, "flavors")]
    return {
        get_str(rule, "name"): tuple(name for name in used if name not in on)
        for rule in get_list(queue, "spec", "admissionChecksStrategy", "admissionChecks")
        if (on := get_strs(rule, "onFlavors"))
    }


def _owners(raw: Obj) -> Mapping[str, str]:
    owners = (raw.get("metadata") or {}).get("ownerReferences")
    if not owners:
        return _NOTHING
    checks = tuple((o["uid"], o["name"]) for o in owners if o.get("kind") == "AdmissionCheck")
    return _OWNERS.setdefault(checks, _Owners(checks))


def provisioned_object(raw: Obj) -> objects.ProvisionedObject:
    status, problem = validate(schemas.Conditions, raw, "status")
    conditions = status.conditions if status else ()
    # The first line of each message: the rest of OCM's is advice where to look.
    failed = [(c.reason, c.message.partition("\n")[0]) for c in conditions if c.status == "False"]
    failures = [f"{reason}: {message}".rstrip(": ") for reason, message in failed]
    done = any(c.type in DONE and c.status == "True" for c in conditions)
    spec, owned = get_dict(raw, "spec"), _applied_fields_of(raw)
    return objects.ProvisionedObject(
        meta_of(raw), _owners(raw), spec, owned, done, "; ".join(failures) or problem
    )


def workload(raw: Obj) -> objects.Workload:
    status, _ = validate(schemas.WorkloadStatus, raw, "status")
    status = status or _readable(raw)
    conditions = {condition.type: condition.status == "True" for condition in status.conditions}
    times = {condition.type: condition.last_transition_time for condition in status.conditions}
    has_quota = conditions.get("QuotaReserved", False)
    evicted = next((condition for condition in status.conditions if condition.type == "Evicted"), None)
    sent_back = _SENT_BACK.search(evicted.message) if evicted else None
    meta = meta_of(raw)
    return objects.Workload(
        meta=meta._replace(labels=_NOTHING, annotations=_NOTHING, generation=0),
        check_states=tuple(
            objects.AdmissionCheckState(
                sys.intern(entry.name), entry.state, entry.message, parse_time(entry.last_transition_time)
            )
            for entry in status.admission_checks
        ),
        has_quota=has_quota,
        cluster=sys.intern(status.cluster_name or ""),
        nominated=tuple(map(sys.intern, status.nominated_cluster_names)),
        active=get_value(raw, "spec", "active") is not False,
        finished=conditions.get("Finished", False),
        sent_back_from=sys.intern(sent_back[sent_back.lastindex or 1]) if sent_back else "",
        evicted_at=parse_time(evicted.last_transition_time) if evicted else None,
        quota_since=parse_time(times["QuotaReserved"]) if has_quota else None,
    )


def workload_with_job(raw: Obj) -> objects.Workload:
    """Read one with what it asks of a cluster, and since when it is nominated."""
    read, job = workload(raw), job_spec(raw)
    return replace(
        read,
        job=job,
        label_values=() if read.finished else label_values(raw, job),
        job_name="" if read.finished or read.cluster else _job_name(raw),
        nominated_since=_nominated_since(raw),
    )


def _job_name(raw: Obj) -> str:
    """Return the name of its job; "": none, or one that is longer than Kubernetes allows."""
    name = get_str(owner_of(raw), "name")
    return name if len(name) <= NAME_CHARS_MAX else ""


def workload_with_identity(raw: Obj) -> objects.Workload:
    """Read one with the wishes of its job, and with what is the same when its owner submits the job again.

    That is the namespace and the Pods' specs: names and labels differ from Job to Job.
    """
    podsets = get_list(raw, "spec", "podSets")
    specs = [get_dict(podset, "template", "spec") for podset in podsets]
    digest = hashlib.sha256(json.dumps(specs, sort_keys=True).encode()).hexdigest()[:16]
    return replace(
        workload_with_job(raw),
        same_job=f"{get_str(raw, 'metadata', 'namespace')}/{digest}",
    )


def _nominated_since(raw: Obj) -> datetime | None:
    """Return when a nomination was last written: the time of the manager that both dispatchers use."""
    if not get_value(raw, "status", "nominatedClusterNames"):
        return None
    for entry in get_list(raw, "metadata", "managedFields"):
        fields = get_dict(entry, "fieldsV1", "f:status")
        if entry.get("manager") == constants.KUEUE_ADMISSION and "f:nominatedClusterNames" in fields:
            return parse_time(get_str(entry, "time"))
    return None


def _readable(raw: Obj) -> schemas.WorkloadStatus:
    """Return the readable parts of a status that does not fit as a whole: above all, where it runs."""
    status = get_dict(raw, "status")
    fields = ("conditions", "admissionChecks", "clusterName", "nominatedClusterNames")
    parts = {key: status[key] for key in fields if key in status}
    good = {
        key: part
        for key, part in parts.items()
        if validate(schemas.WorkloadStatus, {"status": {key: part}}, "status")[0]
    }
    return schemas.WorkloadStatus.model_validate(good)


def managed_cluster(
    raw: Obj, *, with_server: bool = True, with_labels: bool = True, with_allocatable: bool = False
) -> objects.ManagedCluster:
    """Read one; without what nothing needs: the CA of its API server is most of it."""
    spec, _ = validate(schemas.ManagedClusterSpec, raw, "spec")
    taints = spec.taints if spec else ()
    configs = spec.managed_cluster_client_configs if spec and with_server else ()
    first = configs[0] if configs else schemas.ManagedClusterClientConfig()
    meta = meta_of(raw)
    return objects.ManagedCluster(
        meta=meta._replace(labels=_NOTHING, annotations=_NOTHING),
        cluster_set=sys.intern(meta.labels.get(LABEL_CLUSTER_SET, "")),
        unreachable=any(taint.key == TAINT_UNREACHABLE for taint in taints),
        server=first.url,
        authority=first.ca_bundle or "",
        labels=dispatch_labels(raw) if with_labels else _NOTHING,
        taints=tuple(objects.ClusterTaint(taint.key, taint.value, taint.effect) for taint in taints)
        if with_labels
        else (),
        maintenance=meta.annotations.get(ANNOTATION_MAINTENANCE, "")[:_MAINTENANCE_CHARS],
        deletes_unknown_copies=meta.annotations.get(ANNOTATION_DELETE_UNKNOWN) == "true",
        claim=_claim_of(raw),
        created=created_at(raw),
        allocatable=_allocatable(raw) if with_allocatable else _NO_AMOUNTS,
    )


def _claim_of(raw: Obj) -> str:
    """Return the value of the claim that tells a cluster from others; "": none, or one that is too long."""
    claims = get_list(raw, "status", "clusterClaims")
    value = next((get_str(claim, "value") for claim in claims if claim.get("name") == CLAIM_ID), "")
    return value if len(value) <= _CLAIM_CHARS else ""


def _allocatable(raw: Obj) -> Mapping[str, int]:
    """Return resource → thousandths; of more than KEPT_BYTES, none: an agent may report anything."""
    reported = get_dict(raw, "status", "allocatable")
    found = {name: amount for name, value in reported.items() if (amount := milli(value)) is not None}
    return {name: max(amount, 0) for name, amount in found.items()} if _is_small(found) else _NO_AMOUNTS


def dispatch_labels(raw: Obj) -> dict[str, str]:
    """Return the labels of a ManagedCluster and, with the prefix `claim:`, its ClusterClaims.

    Of more than KEPT_BYTES, the first are returned: an agent may report any number of claims.
    """
    claims = get_list(raw, "status", "clusterClaims")
    claimed = ((f"{CLAIM}{claim.get('name')}", claim.get("value")) for claim in claims)
    own = get_texts(raw, "metadata", "labels")
    labels: dict[str, str] = {}
    left = KEPT_BYTES
    for key, value in (*own.items(), *claimed):
        left -= ENTRY_BYTES + len(key) + len(value) if isinstance(value, str) else 0
        if left < 0:
            break
        if isinstance(value, str):
            labels[key] = value
    return labels


def hub_queue(raw: Obj) -> objects.HubQueue:
    return objects.HubQueue(meta_of(raw), get_dict(raw, "spec"), checks_listed(raw))


def template_text(raw: Obj) -> objects.TemplateText:
    text = get_dict(raw, "data").get(constants.TEMPLATE_KEY)
    return objects.TemplateText(meta_of(raw), text if isinstance(text, str) else None)


def manifest_work(raw: Obj) -> objects.ManifestWork:
    reports = get_list(raw, "status", "resourceStatus", "manifests")
    conditions = get_list(raw, "status", "conditions")
    seen = (get_int(one, "observedGeneration") for one in conditions if one.get("type") == "Applied")
    return objects.ManifestWork(
        meta=meta_of(raw),
        owners=_owners(raw),
        spec=written_spec(constants.MANIFEST_WORK, raw),
        applied_fields=_applied_fields_of(raw),
        created=created_at(raw),
        added=_added(meta_of(raw).annotations.get(constants.ANNOTATION_SINCE, "")),
        states={
            _manifest_key(get_dict(report, "resourceMeta")): _manifest_state(report) for report in reports
        },
        applied_generation=next(filter(None, seen), 0),
    )


def _added(text: str) -> dict[objects.ManifestKey, datetime]:
    entries = (entry.partition("=") for entry in text.split(","))
    parsed = ((name.partition("/"), parse_time(since)) for name, _, since in entries)
    return {(constants.LOCAL_QUEUE.kind, name[0], name[2]): since for name, since in parsed if since}


def written_spec(kind: constants.Kind, raw: Obj) -> Obj:
    """Return the `spec` of an object of ours, without a default that only newer CRDs set inside a list."""
    spec = get_dict(raw, "spec")
    if kind is not constants.MANIFEST_WORK:
        return spec
    configs = [
        {key: value for key, value in config.items() if (key, value) != ("feedbackScrapeType", "Poll")}
        for config in get_list(spec, "manifestConfigs")
    ]
    return {**spec, "manifestConfigs": configs} if configs else spec


def _manifest_key(meta: Obj) -> objects.ManifestKey:
    return get_str(meta, "kind"), get_str(meta, "namespace"), get_str(meta, "name")


def _manifest_state(report: Obj) -> objects.ManifestState:
    conditions = {get_str(one, "type"): one for one in get_list(report, "conditions")}
    values: dict[str, str | int] = {}
    for value in get_list(report, "statusFeedback", "values"):
        found = get_dict(value, "fieldValue")
        for field in ("string", "integer"):
            if isinstance(found.get(field), str | int):
                values[get_str(value, "name")] = found[field]
    return objects.ManifestState(
        applied=_is_true(conditions.get("Applied")),
        message=get_str(conditions.get("Applied"), "message"),
        available=_is_true(conditions.get("Available")),
        values=values,
    )


def _is_true(condition: Obj | None) -> bool | None:
    return {"True": True, "False": False}.get(get_str(condition, "status"))


def _applied_fields_of(raw: Obj) -> objects.AppliedFields:
    entries = (raw.get("metadata") or {}).get("managedFields") or ()
    for entry in entries:
        is_ours = entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply"
        if is_ours and not entry.get("subresource"):
            applied = entry.get("fieldsV1") or {}
            fields = applied.get("f:metadata") or {}
            annotations = fields.get("f:annotations") or ()
            return _applied_fields(
                tuple(fields.get("f:labels") or ()),
                tuple(fields.get("f:ownerReferences") or ()),
                draining=f"f:{ANNOTATION_DRAINING}" in annotations,
                clusters="f:clusters" in (applied.get("f:spec") or ()),
                changed_by=spec_writer(raw, FIELD_MANAGER) if len(entries) > 1 else "",
                second_names=f"f:{ANNOTATION_SECOND_NAMES}" in annotations,
            )
    return _NOT_APPLIED


def _applied_fields(
    labels: tuple[str, ...],
    owners: tuple[str, ...],
    *,
    draining: bool,
    clusters: bool,
    changed_by: str,
    second_names: bool,
) -> objects.AppliedFields:
    """Return what the keys of fieldsV1 mean."""
    key = labels, owners, draining, clusters, changed_by, second_names
    if known := _APPLIED.get(key):
        return known
    named = frozenset(key[2:] for key in labels if key.startswith("f:"))
    # Owners have keys like `k:{"uid":"…"}`.
    uids = frozenset(str(json.loads(key[2:]).get("uid", "")) for key in owners if key.startswith("k:"))
    fields = objects.AppliedFields(True, named, uids, draining, clusters, changed_by, second_names)
    return _APPLIED.setdefault(key, fields)


_NOT_APPLIED: Final = objects.AppliedFields()
