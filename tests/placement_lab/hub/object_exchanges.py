"""
Requests of every kind, and the answers of a real kube-apiserver to them (`object_exchanges.jsonl`).

They build on those before them. `record` tells how they are recorded; paths and bodies may quote an earlier
answer: {uid:STEP} and {version:STEP} are the uid and the resourceVersion of the object in the answer of STEP.
"""

from typing import Any, Final

from tests.support.crds import all_strict_crds, plain_crd
from tests.support.exchanges import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, YAML, Step

Object = dict[str, Any]

NAMESPACE: Final = "/api/v1/namespaces/exchanges"
CONFIGMAPS: Final = f"{NAMESPACE}/configmaps"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/exchanges/leases"
EVENTS: Final = f"{NAMESPACE}/events"
NEW_EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/exchanges/events"
THINGS: Final = "/apis/exchanges.example.com/v1/things"
KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS: Final = f"{KUEUE}/namespaces/exchanges/workloads"
OCM: Final = "/apis/cluster.open-cluster-management.io"
CLUSTERS: Final = f"{OCM}/v1/managedclusters"
PLACEMENTS: Final = f"{OCM}/v1beta1/namespaces/exchanges/placements"
DECISIONS: Final = f"{OCM}/v1beta1/namespaces/exchanges/placementdecisions"
OURS: Final = "fieldManager=placement-ac"
ANOTHER_UID: Final = "00000000-0000-0000-0000-000000000000"

FORMATS: Final = (
    "bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "duration", "email", "hexcolor",
    "hostname", "ipv4", "ipv6", "isbn", "k8s-long-name", "k8s-short-name", "mac", "password", "rgbcolor",
    "ssn", "unknown", "uri", "uuid", "uuid4",
)  # fmt: skip


def _fields() -> Object:
    text, integer = {"type": "string"}, {"type": "integer"}
    named = {"type": "object", "required": ["name"], "properties": {"name": text, "value": text}}
    return {
        **{name: {"type": "string", "format": name} for name in FORMATS},
        "integer": integer,
        "int32": integer | {"format": "int32"},
        "int64": integer | {"format": "int64"},
        "number": {"type": "number"},
        "above": integer | {"minimum": 0, "exclusiveMinimum": True},
        "below": integer | {"maximum": 10, "exclusiveMaximum": True},
        "between": integer | {"minimum": 1, "maximum": 9},
        "tenths": {"type": "number", "multipleOf": 0.1},
        "threes": integer | {"multipleOf": 3},
        "either": {"x-kubernetes-int-or-string": True},
        "text": text | {"minLength": 2, "maxLength": 4, "pattern": "^[a-zä]*$"},
        "choice": text | {"enum": ["a", "b"]},
        "flag": {"type": "boolean"},
        "nullable": text | {"nullable": True},
        "defaulted": text | {"default": "here"},
        "list": {"type": "array", "items": text, "minItems": 1, "maxItems": 2},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "items": {
            "type": "array",
            "items": named,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "pairs": {"type": "object", "additionalProperties": text, "maxProperties": 2},
        "fixed": text | {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "one": {
            "type": "object",
            "properties": {"a": text, "b": text},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        "some": integer | {"anyOf": [{"minimum": 5}, {"maximum": 1}]},
        "all": integer | {"allOf": [{"minimum": 1}, {"maximum": 5}]},
        "not": integer | {"not": {"minimum": 5}},
        "needs": {"type": "object", "required": ["a"], "properties": {"a": text, "b": text}},
    }


def thing_crd() -> Object:
    """Return the CRD of a cluster-scoped kind with a field for each keyword and format of schemas."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": _fields()},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    crd = plain_crd("exchanges.example.com", "Thing", schema=schema, scope="Cluster")
    crd["spec"]["versions"][0]["subresources"] = {"status": {}}
    return crd


def crds() -> list[Object]:
    """Return the CRDs that the requests need."""
    return [*all_strict_crds(), thing_crd()]


def thing(name: str, metadata: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "exchanges.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name} | (metadata or {}),
        "spec": spec,
    }


def named(api_version: str, kind: str, name: str, metadata: Object | None = None, **parts: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name} | (metadata or {}),
        **parts,
    }


def configmap(name: str, metadata: Object | None = None, **data: str) -> Object:
    return named("v1", "ConfigMap", name, metadata, data=data)


def lease(name: str, metadata: Object | None = None, **spec: Any) -> Object:
    return named("coordination.k8s.io/v1", "Lease", name, metadata, spec=spec)


def event(name: str, **parts: Any) -> Object:
    about = {"kind": "ConfigMap", "namespace": "exchanges", "name": "plain"}
    given: Object = {"involvedObject": about, "reason": "Seen", "type": "Normal"}
    return named("v1", "Event", name, **(given | parts))


def new_event(name: str, **parts: Any) -> Object:
    given: Object = {
        "regarding": {"kind": "ConfigMap", "namespace": "exchanges", "name": "plain"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/it",
        "reportingInstance": "it-0",
        "action": "Look",
        "reason": "Seen",
        "type": "Normal",
    }
    return named("events.k8s.io/v1", "Event", name, **(given | parts))


def workload(name: str, metadata: Object | None = None, **spec: Any) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
    sets = [{"name": "main", "count": 1, "template": {"spec": pod}}]
    given = {"queueName": "q", "podSets": sets} | spec
    return named("kueue.x-k8s.io/v1beta2", "Workload", name, metadata, spec=given)


def condition(**fields: Any) -> Object:
    return {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "2 clusters",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    } | fields


def owner(name: str, uid: str, **fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid} | fields


def check(name: str, metadata: Object | None = None, **spec: Any) -> Object:
    given = {"controllerName": "open-cluster-management.io/placement"} | spec
    return named("kueue.x-k8s.io/v1beta2", "AdmissionCheck", name, metadata, spec=given)


def check_status(name: str, *conditions: Object, **metadata: Any) -> Object:
    return named(
        "kueue.x-k8s.io/v1beta2", "AdmissionCheck", name, metadata, status={"conditions": list(conditions)}
    )


def config(name: str, *clusters: str, **metadata: Any) -> Object:
    return named(
        "kueue.x-k8s.io/v1beta2", "MultiKueueConfig", name, metadata, spec={"clusters": list(clusters)}
    )


def states(name: str, **metadata: Any) -> Object:
    """Return the controller's answer to a Workload: its entry of the admission checks."""
    state = {"name": "ours", "state": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "ok"}
    return named("kueue.x-k8s.io/v1beta2", "Workload", name, metadata, status={"admissionChecks": [state]})


def nominated(name: str, *clusters: str, **metadata: Any) -> Object:
    return named(
        "kueue.x-k8s.io/v1beta2", "Workload", name, metadata, status={"nominatedClusterNames": list(clusters)}
    )


def get(name: str, path: str) -> Step:
    return Step(name, "GET", path)


def post(name: str, path: str, body: Any, kind: str = JSON) -> Step:
    return Step(name, "POST", path, body, kind)


def put(name: str, path: str, body: Any, kind: str = JSON) -> Step:
    return Step(name, "PUT", path, body, kind)


def patch(name: str, path: str, body: Any, kind: str = MERGE) -> Step:
    return Step(name, "PATCH", path, body, kind)


def apply(name: str, path: str, body: Any, query: str = OURS) -> Step:
    return Step(name, "PATCH", f"{path}?{query}", body, APPLY)


def operations(name: str, *steps: Object, path: str = "/operations") -> Step:
    """A JSON patch that is not stored."""
    return Step(name, "PATCH", f"{THINGS}{path}?dryRun=All", list(steps), JSON_PATCH)


def op(kind: str, path: str, *value: Any, **fields: Any) -> Object:
    return {"op": kind, "path": path} | ({"value": value[0]} if value else {}) | fields


def delete(name: str, path: str, **options: Any) -> Step:
    given = {"apiVersion": "v1", "kind": "DeleteOptions"} | options if options else None
    return Step(name, "DELETE", path, given)


def tried(name: str, **spec: Any) -> Step:
    """Create a Thing that is not stored."""
    return post(name, f"{THINGS}?dryRun=All", thing("tried", **spec))


def with_metadata(step: str, /, **metadata: Any) -> Step:
    return post(step, f"{CONFIGMAPS}?dryRun=All", configmap("tried", metadata))


VALUES: Final[tuple[Step, ...]] = (
    tried("integer-largest", integer=2**63 - 1),
    tried("integer-over", integer=2**63),
    tried("integer-under", integer=-(2**63) - 1),
    tried("integer-exponent-float", integer=1e3),
    tried("integer-whole-float", integer=1.0),
    tried("integer-half", integer=1.5),
    tried("integer-text", integer="1"),
    tried("integer-flag", integer=True),
    tried("int32-largest", int32=2**31 - 1),
    tried("int32-over", int32=3_000_000_000),
    tried("int32-under", int32=-(2**31) - 1),
    tried("int64-over", int64=2**63),
    tried("int64-whole-float", int64=2.0),
    tried("number-integer", number=1),
    tried("number-text", number="1.5"),
    tried("exclusive-minimum", above=0),
    tried("exclusive-minimum-above", above=1),
    tried("exclusive-maximum", below=10),
    tried("minimum", between=0),
    tried("maximum", between=10),
    tried("multiple-of-tenth", tenths=0.3),
    tried("multiple-of-tenth-seven", tenths=0.7),
    tried("multiple-of-tenth-not", tenths=0.25),
    tried("multiple-of-three", threes=6),
    tried("multiple-of-three-not", threes=7),
    tried("either-integer", either=1),
    tried("either-text", either="1"),
    tried("either-whole-float", either=1.0),
    tried("either-half", either=1.5),
    tried("either-flag", either=True),
    tried("text-short", text="a"),
    tried("text-long", text="abcde"),
    tried("text-long-in-bytes", text="ääää"),
    tried("text-pattern", text="ABC"),
    tried("text-number", text=5),
    tried("choice", choice="c"),
    tried("flag-text", flag="true"),
    tried("null", text=None),
    tried("nullable-null", nullable=None),
    tried("defaulted-null", defaulted=None),
    tried("list-empty", list=[]),
    tried("list-long", list=["a", "b", "c"]),
    tried("list-null-item", list=["a", None]),
    tried("list-text", list="a"),
    tried("set-twice", set=["a", "b", "a"]),
    tried("items-twice", items=[{"name": "a"}, {"name": "b"}, {"name": "a"}]),
    tried("items-without-key", items=[{"value": "a"}]),
    tried("pairs-many", pairs={"a": "1", "b": "2", "c": "3"}),
    tried("pairs-number", pairs={"a": 1}),
    tried("pairs-null", pairs={"a": None}),
    tried("any-of", some=7),
    tried("any-of-none", some=3),
    tried("all-of-not", all=6),
    tried("not-not", **{"not": 6}),
    tried("one-of-none", one={}),
    tried("one-of-both", one={"a": "1", "b": "2"}),
    tried("required", needs={"b": "1"}),
    tried("several", needs={}, int32="x", choice="z", list=[]),
    tried("duration", duration="1h30m"),
    tried("duration-iso", duration="PT1H"),
    tried("duration-days", duration="1 day"),
    tried("duration-number", duration="15"),
    tried("date", date="2026-02-28"),
    tried("date-not", date="2026-02-30"),
    tried("date-with-time", date="2026-02-28T00:00:00Z"),
    tried("time", **{"date-time": "2026-01-01T00:00:00Z"}),
    tried("time-fraction", **{"date-time": "2026-01-01T00:00:00.123456+01:00"}),
    tried("time-without-zone", **{"date-time": "2026-01-01T00:00:00"}),
    tried("time-with-blank", **{"date-time": "2026-01-01 00:00:00Z"}),
    tried("time-small-letters", **{"date-time": "2026-01-01t00:00:00z"}),
    tried("uri", uri="https://example.com/a"),
    tried("uri-relative", uri="example"),
    tried("uri-absolute-path", uri="/a"),
    tried("hostname", hostname="a.example.com"),
    tried("hostname-not", hostname="-a"),
    tried("ipv4", ipv4="10.0.0.1"),
    tried("ipv4-is-six", ipv4="::1"),
    tried("ipv4-leading-zero", ipv4="10.0.0.01"),
    tried("ipv6", ipv6="fd00::1"),
    tried("ipv6-is-four", ipv6="10.0.0.1"),
    tried("cidr", cidr="10.0.0.0/24"),
    tried("cidr-host-bits", cidr="10.0.0.1/24"),
    tried("cidr-not", cidr="10.0.0.0"),
    tried("mac", mac="00:11:22:33:44:55"),
    tried("mac-not", mac="00:11"),
    tried("uuid", uuid="3f8c5f0e-8a5d-4c1b-9f4e-1a2b3c4d5e6f"),
    tried("uuid-not", uuid="3f8c5f0e"),
    tried("uuid4-of-one", uuid4="3f8c5f0e-8a5d-1c1b-9f4e-1a2b3c4d5e6f"),
    tried("email", email="a@example.com"),
    tried("email-not", email="a"),
    tried("byte", byte="aGVsbG8="),
    tried("byte-not", byte="?"),
    tried("password", password="any thing"),
    tried("short-name", **{"k8s-short-name": "a-b"}),
    tried("short-name-not", **{"k8s-short-name": "A.b"}),
    tried("long-name", **{"k8s-long-name": "a.b-c"}),
    tried("long-name-not", **{"k8s-long-name": "A_b"}),
    tried("hexcolor-not", hexcolor="blue"),
    tried("rgbcolor-not", rgbcolor="blue"),
    tried("ssn-not", ssn="1"),
    tried("isbn-not", isbn="1"),
    tried("creditcard-not", creditcard="1"),
    tried("bsonobjectid-not", bsonobjectid="1"),
    tried("format-unknown", unknown="any thing"),
    tried("unknown-field", other=1),
    post("unknown-field-strict", f"{THINGS}?dryRun=All&fieldValidation=Strict", thing("tried", other=1)),
    post("unknown-field-ignored", f"{THINGS}?dryRun=All&fieldValidation=Ignore", thing("tried", other=1)),
    post("field-validation-unknown", f"{THINGS}?dryRun=All&fieldValidation=Maybe", thing("tried")),
    post("thing-without-version", THINGS, {"kind": "Thing", "metadata": {"name": "x"}}),
)

METADATA: Final[tuple[Step, ...]] = (
    post("plain", CONFIGMAPS, configmap("plain", a="1")),
    post("plain-again", CONFIGMAPS, configmap("plain", a="1")),
    with_metadata("name-bad", name="Not_A_Name"),
    with_metadata("name-long", name="x" * 254),
    with_metadata("name-empty", name=""),
    with_metadata("name-number", name=5),
    with_metadata("generate-name-bad", name="", generateName="Not_"),
    with_metadata("label-key", labels={"a b": "c"}),
    with_metadata("label-key-prefix", labels={"A.b/c": "d"}),
    with_metadata("label-key-two-slashes", labels={"a/b/c": "d"}),
    with_metadata("label-key-long", labels={"x" * 64: "d"}),
    with_metadata("label-value", labels={"a": "b c"}),
    with_metadata("label-value-long", labels={"a": "x" * 64}),
    with_metadata("label-number", labels={"a": 1}),
    with_metadata("label-null", labels={"a": None}),
    with_metadata("annotation-key", annotations={"a b": "c"}),
    with_metadata("annotation-key-capital", annotations={"A.B/C": "d"}),
    with_metadata("annotation-null", annotations={"a": None}),
    with_metadata("annotations-large", annotations={"a": "x" * 2**18}),
    with_metadata("finalizer-bad", finalizers=["a b"]),
    with_metadata("finalizer-plain", finalizers=["mine"]),
    with_metadata("owner", ownerReferences=[owner("o", ANOTHER_UID)]),
    with_metadata("owner-without-uid", ownerReferences=[owner("o", "")]),
    with_metadata("owner-without-version", ownerReferences=[owner("o", ANOTHER_UID, apiVersion="")]),
    with_metadata("owner-is-event", ownerReferences=[owner("o", ANOTHER_UID, kind="Event")]),
    with_metadata(
        "owners-control-both",
        ownerReferences=[owner("o", ANOTHER_UID, controller=True), owner("p", "2", controller=True)],
    ),
    with_metadata("version-given", resourceVersion="5"),
    with_metadata("version-zero", resourceVersion="0"),
    with_metadata("version-text", resourceVersion="abc"),
    with_metadata("uid-given", uid="mine"),
    with_metadata("namespace-other", namespace="default"),
    with_metadata("managed-fields-empty", managedFields=[]),
    with_metadata("generation-given", generation=7),
    with_metadata("unknown", colour="red"),
    post("thing-label-number", f"{THINGS}?dryRun=All", thing("tried", {"labels": {"a": 1}})),
    post("thing-label-null", f"{THINGS}?dryRun=All", thing("tried", {"labels": {"a": None}})),
    post("thing-name-bad", f"{THINGS}?dryRun=All", thing("Not_A_Name")),
    post("thing-version-given", f"{THINGS}?dryRun=All", thing("tried", {"resourceVersion": "5"})),
    post("thing-metadata-unknown", f"{THINGS}?dryRun=All", thing("tried", {"colour": "red"})),
    post("thing-without-kind", THINGS, {"apiVersion": "exchanges.example.com/v1", "metadata": {"name": "x"}}),
    post("thing-other-kind", THINGS, thing("x") | {"kind": "Other"}),
    post("thing-other-version", THINGS, {"apiVersion": "exchanges.example.com/v2", "kind": "Thing"}),
    post("thing-finalizer", f"{THINGS}?dryRun=All", thing("tried", {"finalizers": ["mine"]})),
    post("without-kind", f"{CONFIGMAPS}?dryRun=All", {"metadata": {"name": "x"}}),
    post("other-kind", CONFIGMAPS, configmap("x") | {"kind": "Secret"}),
    post("data-number", CONFIGMAPS, configmap("x") | {"data": {"a": 1}}),
    post("data-null", f"{CONFIGMAPS}?dryRun=All", configmap("x") | {"data": {"a": None}}),
    post("data-key", f"{CONFIGMAPS}?dryRun=All", configmap("x") | {"data": {"a b": "1"}}),
    post("post-to-name", f"{CONFIGMAPS}/plain", configmap("plain")),
    post("in-missing-namespace", "/api/v1/namespaces/nowhere/configmaps", configmap("x")),
    post("manager-long", f"{CONFIGMAPS}?fieldManager={'x' * 129}", configmap("x")),
    post("manager-unprintable", f"{CONFIGMAPS}?fieldManager=a%07", configmap("x")),
    post("dry-run-unknown", f"{CONFIGMAPS}?dryRun=Some", configmap("x")),
)

APPLIES: Final[tuple[Step, ...]] = (
    apply("apply", f"{THINGS}/applied", thing("applied", text="ab", set=["b", "a"])),
    apply("apply-same", f"{THINGS}/applied", thing("applied", text="ab", set=["b", "a"])),
    apply("apply-set-in-other-order", f"{THINGS}/applied", thing("applied", text="ab", set=["a", "b"])),
    apply("apply-set-adds", f"{THINGS}/applied", thing("applied", set=["c"]), "fieldManager=other"),
    apply("apply-set-drops", f"{THINGS}/applied", thing("applied", text="ab", set=["b"])),
    apply("apply-items", f"{THINGS}/items", thing("items", items=[{"name": "a"}, {"name": "b"}])),
    apply(
        "apply-items-in-other-order", f"{THINGS}/items", thing("items", items=[{"name": "b"}, {"name": "a"}])
    ),
    apply(
        "apply-items-of-two", f"{THINGS}/items", thing("items", items=[{"name": "c"}]), "fieldManager=other"
    ),
    apply("apply-items-twice", f"{THINGS}/items", thing("items", items=[{"name": "a"}, {"name": "a"}])),
    apply("apply-set-twice", f"{THINGS}/applied", thing("applied", set=["a", "a"])),
    apply("apply-null", f"{THINGS}/applied", thing("applied", text=None)),
    apply("apply-null-label", f"{THINGS}/applied", thing("applied", {"labels": {"a": None}})),
    apply("apply-nullable-null", f"{THINGS}/nullable", thing("nullable", nullable=None)),
    apply("apply-whole-float", f"{THINGS}/floats", thing("floats", integer=1.0, either=1)),
    apply("apply-wrong-type", f"{THINGS}/applied", thing("applied", integer="1")),
    apply("apply-list-as-text", f"{THINGS}/applied", thing("applied", set="a")),
    apply("apply-unknown", f"{THINGS}/applied", thing("applied", other=1)),
    apply(
        "apply-unknown-ignored",
        f"{THINGS}/applied",
        thing("applied", other=1),
        f"{OURS}&fieldValidation=Ignore",
    ),
    apply(
        "apply-unknown-strict",
        f"{THINGS}/applied",
        thing("applied", other=1),
        f"{OURS}&fieldValidation=Strict",
    ),
    apply("apply-other-kind", f"{THINGS}/applied", thing("applied") | {"kind": "Other"}),
    apply("apply-without-kind", f"{THINGS}/applied", {"apiVersion": "exchanges.example.com/v1"}),
    apply(
        "apply-other-version",
        f"{THINGS}/applied",
        thing("applied") | {"apiVersion": "exchanges.example.com/v2"},
    ),
    apply("apply-without-name", f"{THINGS}/applied", thing("") | {"metadata": {}}),
    apply(
        "apply-without-metadata",
        f"{THINGS}/applied",
        {"apiVersion": "exchanges.example.com/v1", "kind": "Thing"},
    ),
    apply("apply-other-name", f"{THINGS}/applied", thing("other")),
    apply("apply-managed-fields-empty", f"{THINGS}/applied", thing("applied", {"managedFields": []})),
    apply(
        "apply-managed-fields", f"{THINGS}/applied", thing("applied", {"managedFields": [{"manager": "a"}]})
    ),
    apply("apply-without-manager", f"{THINGS}/applied", thing("applied"), ""),
    apply("apply-manager-long", f"{THINGS}/applied", thing("applied"), f"fieldManager={'x' * 129}"),
    apply(
        "apply-new-with-version", f"{THINGS}/with-version", thing("with-version", {"resourceVersion": "5"})
    ),
    apply("apply-new-with-uid", f"{THINGS}/with-uid", thing("with-uid", {"uid": ANOTHER_UID})),
    apply(
        "apply-version-stale", f"{THINGS}/applied", thing("applied", {"resourceVersion": "{version:apply}"})
    ),
    apply("apply-uid", f"{THINGS}/applied", thing("applied", {"uid": "{uid:apply}"}, text="ab", set=["b"])),
    apply("apply-uid-other", f"{THINGS}/applied", thing("applied", {"uid": ANOTHER_UID}, text="ab")),
    post("by-hand", THINGS, thing("by-hand", text="ab", choice="a")),
    apply("apply-conflict", f"{THINGS}/by-hand", thing("by-hand", text="cd", choice="b")),
    apply("apply-force-true", f"{THINGS}/by-hand", thing("by-hand", text="cd"), f"{OURS}&force=true"),
    apply(
        "apply-force-capital", f"{THINGS}/by-hand", thing("by-hand", choice="b"), "fieldManager=b&force=True"
    ),
    apply("apply-force-one", f"{THINGS}/by-hand", thing("by-hand", choice="a"), "fieldManager=c&force=1"),
    apply(
        "apply-force-unknown", f"{THINGS}/by-hand", thing("by-hand", choice="b"), "fieldManager=d&force=yes"
    ),
    apply(
        "apply-force-false", f"{THINGS}/by-hand", thing("by-hand", choice="b"), "fieldManager=e&force=false"
    ),
    patch("force-for-merge", f"{THINGS}/by-hand?force=true", {"spec": {"choice": "a"}}),
    post("unmanaged", THINGS, thing("unmanaged", text="ab")),
    patch("unmanaged-fields", f"{THINGS}/unmanaged", {"metadata": {"managedFields": [{}]}}),
    apply("apply-over-unmanaged", f"{THINGS}/unmanaged", thing("unmanaged", text="cd")),
    apply("apply-agrees-with-unmanaged", f"{THINGS}/unmanaged", thing("unmanaged", text="ab")),
    apply("apply-status-of-missing", f"{THINGS}/missing/status", thing("missing") | {"status": {"a": 1}}),
    apply("apply-status", f"{THINGS}/applied/status", {**thing("applied"), "status": {"a": 1}}),
    apply(
        "apply-text",
        f"{THINGS}/applied",
        "apiVersion: exchanges.example.com/v1\nkind: Thing\nmetadata:\n  name: applied\n",
    ),
    apply("apply-not-yaml", f"{THINGS}/applied", "{a"),
    apply("apply-configmap", f"{CONFIGMAPS}/applied", configmap("applied", a="1")),
    apply("apply-configmap-null", f"{CONFIGMAPS}/applied", configmap("applied") | {"data": {"a": None}}),
    apply("apply-configmap-number", f"{CONFIGMAPS}/applied", configmap("applied") | {"data": {"a": 1}}),
    apply("apply-configmap-unknown", f"{CONFIGMAPS}/applied", configmap("applied") | {"other": 1}),
    apply("apply-configmap-other-kind", f"{CONFIGMAPS}/applied", configmap("applied") | {"kind": "Secret"}),
)

PATCHES: Final[tuple[Step, ...]] = (
    post(
        "operations",
        THINGS,
        thing("operations", text="ab", set=["a", "b", "c"], items=[{"name": "a", "value": "1"}]),
    ),
    operations("replace", op("replace", "/spec/text", "cd")),
    operations("replace-missing", op("replace", "/spec/choice", "a")),
    operations("replace-in-missing", op("replace", "/spec/needs/a", "a")),
    operations("replace-item", op("replace", "/spec/set/1", "z")),
    operations("replace-item-missing", op("replace", "/spec/set/7", "z")),
    operations("add", op("add", "/spec/choice", "a")),
    operations("add-end", op("add", "/spec/set/-", "z")),
    operations("add-minus-one", op("add", "/spec/set/-1", "z")),
    operations("add-beyond", op("add", "/spec/set/9", "z")),
    operations("add-in-missing", op("add", "/spec/needs/a", "a")),
    operations("remove", op("remove", "/spec/text")),
    operations("remove-missing", op("remove", "/spec/choice")),
    operations("remove-minus-one", op("remove", "/spec/set/-1")),
    operations("remove-item-missing", op("remove", "/spec/set/7")),
    operations("test", op("test", "/spec/text", "ab")),
    operations("test-differs", op("test", "/spec/text", "cd")),
    operations("test-missing-null", op("test", "/spec/choice", None)),
    operations("test-missing", op("test", "/spec/choice", "a")),
    operations("test-without-value", op("test", "/spec/choice")),
    operations("test-minus-one", op("test", "/spec/set/-1", "c")),
    operations("move", op("move", "/spec/choice", **{"from": "/spec/text"})),
    operations("copy", op("copy", "/spec/nullable", **{"from": "/spec/text"})),
    operations("copy-missing", op("copy", "/spec/nullable", **{"from": "/spec/choice"})),
    operations("operation-unknown", op("swap", "/spec/text", "a")),
    operations("path-without-slash", op("add", "spec/text", "a")),
    operations("path-missing", {"op": "add", "value": "a"}),
    operations("result-invalid", op("add", "/spec/int32", 3_000_000_000)),
    patch("operations-no-list", f"{THINGS}/operations", {"op": "add"}, JSON_PATCH),
    patch("operations-no-map", f"{THINGS}/operations", [1], JSON_PATCH),
    patch("operations-not-json", f"{THINGS}/operations", "[", JSON_PATCH),
    patch("merge-null", f"{THINGS}/operations?dryRun=All", {"spec": {"text": None}}),
    patch("merge-set-in-other-order", f"{THINGS}/operations?dryRun=All", {"spec": {"set": ["c", "b", "a"]}}),
    patch("merge-unknown", f"{THINGS}/operations?dryRun=All", {"spec": {"other": 1}}),
    patch(
        "merge-unknown-strict",
        f"{THINGS}/operations?dryRun=All&fieldValidation=Strict",
        {"spec": {"other": 1}},
    ),
    patch("merge-name", f"{THINGS}/operations", {"metadata": {"name": "other"}}),
    patch("merge-version-stale", f"{THINGS}/by-hand", {"metadata": {"resourceVersion": "{version:by-hand}"}}),
    patch("merge-uid-other", f"{THINGS}/operations", {"metadata": {"uid": ANOTHER_UID}}),
    patch("merge-list", f"{THINGS}/operations", ["a"]),
    patch("merge-not-json", f"{THINGS}/operations", "{a"),
    patch("merge-missing", f"{THINGS}/missing", {"spec": {"text": "ab"}}),
    patch("merge-generation", f"{THINGS}/operations?dryRun=All", {"metadata": {"generation": 9}}),
    patch("strategic-custom", f"{THINGS}/operations", {"spec": {"text": "cd"}}, STRATEGIC),
    patch("strategic", f"{CONFIGMAPS}/plain", {"data": {"b": "2"}}, STRATEGIC),
    patch("strategic-null", f"{CONFIGMAPS}/plain", {"data": {"b": None}}, STRATEGIC),
    patch(
        "strategic-finalizers",
        f"{CONFIGMAPS}/plain?dryRun=All",
        {"metadata": {"finalizers": ["a.b/c"]}},
        STRATEGIC,
    ),
    patch("patch-json-type", f"{CONFIGMAPS}/plain", {"data": {"b": "2"}}, JSON),
    patch("patch-unknown-type", f"{CONFIGMAPS}/plain", {"data": {"b": "2"}}, "text/plain"),
    put(
        "put",
        f"{THINGS}/by-hand",
        thing("by-hand", {"resourceVersion": "{version:apply-force-unknown}"}, text="cd"),
    ),
    put("put-without-version", f"{THINGS}/by-hand", thing("by-hand")),
    put("put-without-name", f"{CONFIGMAPS}/plain", configmap("") | {"metadata": {}}),
    put("put-thing-without-name", f"{THINGS}/by-hand", thing("") | {"metadata": {}}),
    put("put-other-name", f"{CONFIGMAPS}/plain", configmap("other")),
    put("put-other-namespace", f"{CONFIGMAPS}/plain", configmap("plain", {"namespace": "default"})),
    put("put-missing", f"{CONFIGMAPS}/missing", configmap("missing")),
    put("put-collection", CONFIGMAPS, configmap("plain")),
    put(
        "put-fixed",
        f"{THINGS}/operations",
        thing("operations", {"resourceVersion": "{version:operations}"}, fixed="a", set=["c", "a", "b"]),
    ),
    patch("merge-fixed", f"{THINGS}/operations", {"spec": {"fixed": "b"}}),
)

READS: Final[tuple[Step, ...]] = (
    get("get", f"{CONFIGMAPS}/plain"),
    get("get-missing", f"{CONFIGMAPS}/missing"),
    get("get-missing-thing", f"{THINGS}/missing"),
    get("get-missing-kind", "/apis/exchanges.example.com/v1/others"),
    get("get-missing-group", "/apis/others.example.com/v1/things"),
    get("get-at-future", f"{CONFIGMAPS}/plain?resourceVersion=999999999"),
    get("get-at-text", f"{CONFIGMAPS}/plain?resourceVersion=abc"),
    get("list", f"{CONFIGMAPS}?fieldSelector=metadata.name%3Dplain"),
    get("list-field-comma", f"{CONFIGMAPS}?fieldSelector=metadata.name%3Dplain,"),
    get("list-field-two-commas", f"{CONFIGMAPS}?fieldSelector=,metadata.name%3Dplain,,"),
    get("list-field-not", f"{CONFIGMAPS}?fieldSelector=metadata.name!%3Dplain"),
    get("list-field-unknown", f"{CONFIGMAPS}?fieldSelector=data.a%3D1"),
    get("list-field-unknown-thing", f"{THINGS}?fieldSelector=spec.text%3Dab"),
    get("list-field-bad", f"{CONFIGMAPS}?fieldSelector=metadata.name"),
    get("list-label-bad", f"{CONFIGMAPS}?labelSelector=a%3D%3D%3Db"),
    get("list-label-bad-key", f"{CONFIGMAPS}?labelSelector=a%20b"),
    get("list-label-bad-value", f"{CONFIGMAPS}?labelSelector=a%3Db%20c"),
    get("list-label-comma", f"{CONFIGMAPS}?labelSelector=a%3Db,"),
    get("list-limit-text", f"{CONFIGMAPS}?limit=abc"),
    get("list-limit-negative", f"{CONFIGMAPS}?limit=-1"),
    get("list-limit", f"{CONFIGMAPS}?limit=1"),
    get("list-limit-at-zero", f"{CONFIGMAPS}?limit=1&resourceVersion=0"),
    get("list-continue-bad", f"{CONFIGMAPS}?continue=abc"),
    get("list-at-text", f"{CONFIGMAPS}?resourceVersion=abc"),
    get("list-at-future", f"{CONFIGMAPS}?resourceVersion=999999999"),
    get("list-exact-without-version", f"{CONFIGMAPS}?resourceVersionMatch=Exact"),
    get("list-exact-zero", f"{CONFIGMAPS}?resourceVersionMatch=Exact&resourceVersion=0"),
    get("list-match-unknown", f"{CONFIGMAPS}?resourceVersionMatch=Maybe&resourceVersion=1"),
    get("list-match-without-version", f"{CONFIGMAPS}?resourceVersionMatch=NotOlderThan"),
    get("list-initial-events", f"{CONFIGMAPS}?sendInitialEvents=true"),
    get("list-timeout-text", f"{CONFIGMAPS}?timeoutSeconds=abc"),
    get(
        "watch-flag-capital", f"{CONFIGMAPS}?watch=True&fieldSelector=metadata.name%3Dplain&timeoutSeconds=1"
    ),
    get("watch-flag-one", f"{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Dplain&timeoutSeconds=1"),
    get("watch-flag-empty", f"{CONFIGMAPS}?watch&fieldSelector=metadata.name%3Dplain&timeoutSeconds=1"),
    get("watch-flag-zero", f"{CONFIGMAPS}?watch=0&fieldSelector=metadata.name%3Dplain"),
    get("watch-flag-false", f"{CONFIGMAPS}?watch=False&fieldSelector=metadata.name%3Dplain"),
    get(
        "watch-flag-unknown", f"{CONFIGMAPS}?watch=maybe&fieldSelector=metadata.name%3Dplain&timeoutSeconds=1"
    ),
    get("watch-one", f"{CONFIGMAPS}/plain?watch=true&timeoutSeconds=1"),
    get("watch-at-text", f"{CONFIGMAPS}?watch=true&resourceVersion=abc&timeoutSeconds=1"),
    get(
        "watch-match-without-initial",
        f"{CONFIGMAPS}?watch=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
    ),
    get("watch-initial-without-match", f"{CONFIGMAPS}?watch=true&sendInitialEvents=true&timeoutSeconds=1"),
    get(
        "watch-initial",
        f"{CONFIGMAPS}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        "&fieldSelector=metadata.name%3Dplain&timeoutSeconds=1",
    ),
    get(
        "watch-initial-false",
        f"{CONFIGMAPS}?watch=true&sendInitialEvents=false&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        "&fieldSelector=metadata.name%3Dplain&timeoutSeconds=1",
    ),
    get(
        "watch-initial-false-without-match",
        f"{CONFIGMAPS}?watch=true&sendInitialEvents=false&timeoutSeconds=1",
    ),
    get("watch-timeout-text", f"{CONFIGMAPS}?watch=true&timeoutSeconds=abc"),
    get("watch-things", f"{THINGS}?watch=True&fieldSelector=metadata.name%3Dapplied,&timeoutSeconds=1"),
    Step("accept-unknown", "GET", f"{CONFIGMAPS}/plain", accept="text/html"),
    Step("accept-yaml", "GET", f"{CONFIGMAPS}/plain", accept=YAML),
    Step("accept-yaml-list", "GET", f"{CONFIGMAPS}?fieldSelector=metadata.name%3Dplain", accept=YAML),
    Step("accept-yaml-thing", "GET", f"{THINGS}/floats", accept=YAML),
    Step("accept-any-text", "GET", f"{CONFIGMAPS}/plain", accept="text/html, */*;q=0.1"),
    Step("accept-yaml-error", "GET", f"{CONFIGMAPS}/missing", accept=YAML),
)

BODIES: Final[tuple[Step, ...]] = (
    post(
        "yaml",
        f"{CONFIGMAPS}?dryRun=All",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n",
        YAML,
    ),
    post(
        "yaml-thing",
        f"{THINGS}?dryRun=All",
        "apiVersion: exchanges.example.com/v1\nkind: Thing\nmetadata: {name: x}\n",
        YAML,
    ),
    post("yaml-bad", CONFIGMAPS, "{a", YAML),
    post(
        "yaml-unknown-strict",
        f"{CONFIGMAPS}?fieldValidation=Strict",
        "metadata: {name: x}\ncolour: red\n",
        YAML,
    ),
    post("type-unknown", CONFIGMAPS, configmap("x"), "text/plain"),
    post("type-unknown-thing", THINGS, thing("x"), "text/plain"),
    post("type-form", CONFIGMAPS, configmap("x"), "application/x-www-form-urlencoded"),
    post("type-missing", f"{CONFIGMAPS}?dryRun=All", configmap("x"), ""),
    post("type-with-charset", f"{CONFIGMAPS}?dryRun=All", configmap("x"), "application/json; charset=utf-8"),
    post("not-json", CONFIGMAPS, "}{"),
    post("not-json-thing", THINGS, "}{"),
    post("json-list", CONFIGMAPS, ["a"]),
    post("json-null", CONFIGMAPS, "null"),
    post("json-empty", CONFIGMAPS, ""),
    post("json-empty-map", CONFIGMAPS, {}),
    post("json-more", f"{CONFIGMAPS}?dryRun=All", '{"metadata":{"name":"x"}} x'),
    put("put-type-unknown", f"{CONFIGMAPS}/plain", configmap("plain"), "text/plain"),
    Step("delete-type-unknown", "DELETE", f"{CONFIGMAPS}/plain", {"kind": "DeleteOptions"}, "text/plain"),
)

BUILT_IN: Final[tuple[Step, ...]] = (
    post(
        "lease",
        LEASES,
        lease("lease", holderIdentity="a", leaseDurationSeconds=15, renewTime="2026-01-01T00:00:00.000000Z"),
    ),
    post("lease-time-seconds", f"{LEASES}?dryRun=All", lease("x", renewTime="2026-01-01T00:00:00Z")),
    post("lease-time-three-digits", f"{LEASES}?dryRun=All", lease("x", renewTime="2026-01-01T00:00:00.000Z")),
    post(
        "lease-time-nine-digits",
        f"{LEASES}?dryRun=All",
        lease("x", renewTime="2026-01-01T00:00:00.000000000Z"),
    ),
    post(
        "lease-time-offset", f"{LEASES}?dryRun=All", lease("x", renewTime="2026-01-01T01:00:00.000000+01:00")
    ),
    post("lease-time-text", f"{LEASES}?dryRun=All", lease("x", acquireTime="now")),
    post("lease-duration-zero", f"{LEASES}?dryRun=All", lease("x", leaseDurationSeconds=0)),
    post("lease-transitions-negative", f"{LEASES}?dryRun=All", lease("x", leaseTransitions=-1)),
    post("lease-holder-empty", f"{LEASES}?dryRun=All", lease("x", holderIdentity="")),
    put("put-creates-lease", f"{LEASES}/by-put", lease("by-put", holderIdentity="a")),
    put("put-lease-without-version", f"{LEASES}/by-put", lease("by-put", holderIdentity="b")),
    put(
        "put-lease",
        f"{LEASES}/by-put",
        lease("by-put", {"resourceVersion": "{version:put-creates-lease}"}, holderIdentity="b"),
    ),
    put(
        "put-lease-stale",
        f"{LEASES}/by-put",
        lease("by-put", {"resourceVersion": "{version:put-creates-lease}"}, holderIdentity="c"),
    ),
    put("put-creates-with-version", f"{LEASES}/by-put-2", lease("by-put-2", {"resourceVersion": "5"})),
    put("put-creates-with-uid", f"{LEASES}/by-put-3", lease("by-put-3", {"uid": ANOTHER_UID})),
    post("event", EVENTS, event("event", message="a")),
    post("event-with-time", f"{EVENTS}?dryRun=All", event("x", eventTime="2026-01-01T00:00:00.000000Z")),
    post(
        "event-with-reporting",
        f"{EVENTS}?dryRun=All",
        event(
            "x",
            eventTime="2026-01-01T00:00:00.000000Z",
            reportingComponent="a.b/c",
            reportingInstance="i",
            action="Look",
        ),
    ),
    post(
        "event-without-type",
        f"{EVENTS}?dryRun=All",
        event(
            "x",
            eventTime="2026-01-01T00:00:00.000000Z",
            reportingComponent="a.b/c",
            reportingInstance="i",
            action="Look",
            type="",
            reason="",
        ),
    ),
    post("event-time-seconds", f"{EVENTS}?dryRun=All", event("x", eventTime="2026-01-01T00:00:00Z")),
    post(
        "event-other-namespace",
        f"{EVENTS}?dryRun=All",
        event("x", involvedObject={"kind": "Pod", "namespace": "default", "name": "p"}),
    ),
    post(
        "event-of-cluster", f"{EVENTS}?dryRun=All", event("x", involvedObject={"kind": "Node", "name": "n"})
    ),
    post("event-type-other", f"{EVENTS}?dryRun=All", event("x", type="Bad")),
    patch("event-patch", f"{EVENTS}/event", {"count": 2}),
    get("event-as-new", f"{NEW_EVENTS}/event"),
    post("new-event", f"{NEW_EVENTS}?dryRun=All", new_event("x", note="a")),
    get("list-new-events", f"{NEW_EVENTS}?fieldSelector=metadata.name%3Devent"),
    get(
        "list-events-by-field",
        f"{EVENTS}?fieldSelector=involvedObject.kind%3DConfigMap,reason%3DSeen&limit=1",
    ),
    post("secret", f"{NAMESPACE}/secrets", named("v1", "Secret", "secret", stringData={"a": "b"})),
    post("secret-bad-base64", f"{NAMESPACE}/secrets", named("v1", "Secret", "x", data={"a": "?"})),
    post("secret-number", f"{NAMESPACE}/secrets", named("v1", "Secret", "x", stringData={"a": 1})),
    post("secret-key", f"{NAMESPACE}/secrets", named("v1", "Secret", "x", stringData={"a b": "c"})),
    patch("secret-type", f"{NAMESPACE}/secrets/secret", {"type": "other"}),
    post("immutable", CONFIGMAPS, configmap("immutable", a="1") | {"immutable": True}),
    patch("immutable-data", f"{CONFIGMAPS}/immutable", {"data": {"a": "2"}}),
    patch("immutable-label", f"{CONFIGMAPS}/immutable", {"metadata": {"labels": {"a": "b"}}}),
    patch("immutable-undone", f"{CONFIGMAPS}/immutable", {"immutable": False}),
    post("namespace-bad", "/api/v1/namespaces", named("v1", "Namespace", "a.b")),
    patch("namespace-label", NAMESPACE, {"metadata": {"labels": {"a": "b"}}}),
    post("account", f"{NAMESPACE}/serviceaccounts", named("v1", "ServiceAccount", "account")),
    put("put-creates-configmap-not", f"{CONFIGMAPS}/by-put", configmap("by-put")),
)

DELETES: Final[tuple[Step, ...]] = (
    delete("delete-uid-other", f"{CONFIGMAPS}/plain", preconditions={"uid": ANOTHER_UID}),
    delete("delete-version-stale", f"{CONFIGMAPS}/plain", preconditions={"resourceVersion": "1"}),
    delete("delete-policy-unknown", f"{CONFIGMAPS}/plain", propagationPolicy="Sometimes"),
    delete("delete-policy-in-query-unknown", f"{CONFIGMAPS}/plain?propagationPolicy=Sometimes"),
    delete(
        "delete-policy-and-orphan", f"{CONFIGMAPS}/plain", propagationPolicy="Orphan", orphanDependents=True
    ),
    delete("delete-grace-negative", f"{CONFIGMAPS}/plain", gracePeriodSeconds=-5, dryRun=["All"]),
    delete("delete-dry-run-unknown", f"{CONFIGMAPS}/plain", dryRun=["Some"]),
    delete("delete-dry-run-in-query-unknown", f"{CONFIGMAPS}/plain?dryRun=Some"),
    delete("delete-dry-run", f"{CONFIGMAPS}/plain", dryRun=["All"]),
    delete("delete-dry-run-in-query", f"{CONFIGMAPS}/plain?dryRun=All"),
    Step("delete-other-kind", "DELETE", f"{CONFIGMAPS}/plain", configmap("plain")),
    Step("delete-not-json", "DELETE", f"{CONFIGMAPS}/plain", "{a"),
    delete("delete-thing", f"{THINGS}/floats"),
    delete("delete-thing-again", f"{THINGS}/floats"),
    patch("finalizer", f"{CONFIGMAPS}/plain", {"metadata": {"finalizers": ["a.example.com/b"]}}),
    delete("delete-with-finalizer", f"{CONFIGMAPS}/plain"),
    patch(
        "finalizer-late",
        f"{CONFIGMAPS}/plain",
        {"metadata": {"finalizers": ["a.example.com/b", "a.example.com/c"]}},
    ),
    patch("finalizer-gone", f"{CONFIGMAPS}/plain", {"metadata": {"finalizers": None}}),
    get("deleted", f"{CONFIGMAPS}/plain"),
    post("foreground", CONFIGMAPS, configmap("foreground")),
    patch("untracked", f"{CONFIGMAPS}/foreground", {"data": {"a": "1"}}),
    delete("delete-parameters-beside-body", f"{CONFIGMAPS}/foreground?dryRun=All", kind="DeleteOptions"),
    delete("delete-collection", f"{THINGS}?labelSelector=none%3Dhere"),
    delete("delete-collection-bad-label", f"{THINGS}?labelSelector=a%3D%3D%3Db"),
)

STORIES: Final[tuple[Step, ...]] = (
    # -- what an admin and OCM make
    post(
        "cluster",
        CLUSTERS,
        named(
            "cluster.open-cluster-management.io/v1", "ManagedCluster", "one", spec={"hubAcceptsClient": True}
        ),
    ),
    post(
        "cluster-unknown",
        f"{CLUSTERS}?dryRun=All",
        named("cluster.open-cluster-management.io/v1", "ManagedCluster", "x", spec={"accepted": True}),
    ),
    post(
        "cluster-wrong-type",
        f"{CLUSTERS}?dryRun=All",
        named(
            "cluster.open-cluster-management.io/v1", "ManagedCluster", "x", spec={"hubAcceptsClient": "yes"}
        ),
    ),
    patch("cluster-taint", f"{CLUSTERS}/one", {"spec": {"taints": [{"key": "a", "effect": "NoSelect"}]}}),
    patch(
        "cluster-taint-effect",
        f"{CLUSTERS}/one",
        {"spec": {"taints": [{"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]}},
    ),
    patch(
        "cluster-taint-time",
        f"{CLUSTERS}/one",
        {"spec": {"taints": [{"key": "a", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]}},
    ),
    patch("cluster-label", f"{CLUSTERS}/one", {"metadata": {"labels": {"gpu": "a100"}}}),
    patch(
        "cluster-condition",
        f"{CLUSTERS}/one/status",
        {"status": {"conditions": [condition(type="ManagedClusterConditionAvailable")]}},
    ),
    post(
        "placement",
        PLACEMENTS,
        named(
            "cluster.open-cluster-management.io/v1beta1", "Placement", "placed", spec={"numberOfClusters": 2}
        ),
    ),
    post(
        "placement-unknown",
        f"{PLACEMENTS}?dryRun=All",
        named("cluster.open-cluster-management.io/v1beta1", "Placement", "x", spec={"clusters": 2}),
    ),
    post(
        "placement-unknown-strict",
        f"{PLACEMENTS}?fieldValidation=Strict",
        named("cluster.open-cluster-management.io/v1beta1", "Placement", "x", spec={"clusters": 2}),
    ),
    post(
        "placement-whole-float",
        f"{PLACEMENTS}?dryRun=All",
        named("cluster.open-cluster-management.io/v1beta1", "Placement", "x", spec={"numberOfClusters": 1.0}),
    ),
    post(
        "placement-large",
        f"{PLACEMENTS}?dryRun=All",
        named(
            "cluster.open-cluster-management.io/v1beta1",
            "Placement",
            "x",
            spec={"numberOfClusters": 3_000_000_000},
        ),
    ),
    post(
        "decision",
        DECISIONS,
        named(
            "cluster.open-cluster-management.io/v1beta1",
            "PlacementDecision",
            "placed-decision-1",
            {"labels": {"cluster.open-cluster-management.io/placement": "placed"}},
        ),
    ),
    patch(
        "decision-status",
        f"{DECISIONS}/placed-decision-1/status",
        {"status": {"decisions": [{"clusterName": "one", "reason": ""}]}},
    ),
    patch(
        "decision-status-without-reason",
        f"{DECISIONS}/placed-decision-1/status",
        {"status": {"decisions": [{"clusterName": "one"}]}},
    ),
    # -- what the controller writes
    post(
        "check",
        f"{KUEUE}/admissionchecks",
        check(
            "ours",
            parameters={
                "apiGroup": "cluster.open-cluster-management.io",
                "kind": "Placement",
                "name": "placed",
            },
        ),
    ),
    patch("check-controller", f"{KUEUE}/admissionchecks/ours", {"spec": {"controllerName": "other"}}),
    post(
        "check-parameters-name",
        f"{KUEUE}/admissionchecks?dryRun=All",
        check("x", parameters={"apiGroup": "a", "kind": "Placement", "name": "x" * 64}),
    ),
    post(
        "check-parameters-part", f"{KUEUE}/admissionchecks?dryRun=All", check("x", parameters={"name": "x"})
    ),
    apply("condition", f"{KUEUE}/admissionchecks/ours/status", check_status("ours", condition())),
    apply("condition-again", f"{KUEUE}/admissionchecks/ours/status", check_status("ours", condition())),
    apply(
        "condition-other-uid",
        f"{KUEUE}/admissionchecks/ours/status",
        check_status("ours", condition(), uid=ANOTHER_UID),
    ),
    apply(
        "condition-stale",
        f"{KUEUE}/admissionchecks/ours/status",
        check_status("ours", condition(), resourceVersion="{version:check}"),
    ),
    apply(
        "condition-time-missing",
        f"{KUEUE}/admissionchecks/ours/status",
        check_status("ours", {"type": "Active", "status": "True"}),
    ),
    apply(
        "condition-time-bad",
        f"{KUEUE}/admissionchecks/ours/status",
        check_status("ours", condition(lastTransitionTime="now")),
    ),
    apply(
        "condition-reason-bad",
        f"{KUEUE}/admissionchecks/ours/status",
        check_status("ours", condition(reason="No Reason")),
    ),
    apply(
        "condition-status-bad",
        f"{KUEUE}/admissionchecks/ours/status",
        check_status("ours", condition(status="Maybe")),
    ),
    apply(
        "condition-of-missing",
        f"{KUEUE}/admissionchecks/missing/status",
        check_status("missing", condition()),
    ),
    patch(
        "condition-other-uid-merge",
        f"{KUEUE}/admissionchecks/ours/status",
        {"metadata": {"uid": ANOTHER_UID}, "status": {"conditions": [condition(message="b")]}},
    ),
    apply(
        "config",
        f"{KUEUE}/multikueueconfigs/placed",
        config(
            "placed",
            "placed-one",
            ownerReferences=[
                owner("ours", "{uid:check}", apiVersion="kueue.x-k8s.io/v1beta2", kind="AdmissionCheck")
            ],
        ),
    ),
    apply(
        "config-reordered", f"{KUEUE}/multikueueconfigs/placed", config("placed", "placed-two", "placed-one")
    ),
    apply("config-twice", f"{KUEUE}/multikueueconfigs/placed", config("placed", "placed-one", "placed-one")),
    apply("config-empty", f"{KUEUE}/multikueueconfigs/placed", config("placed")),
    apply(
        "config-many", f"{KUEUE}/multikueueconfigs/placed", config("placed", *(f"c{n}" for n in range(21)))
    ),
    apply(
        "config-version-stale",
        f"{KUEUE}/multikueueconfigs/placed",
        config("placed", "a", resourceVersion="{version:config}"),
    ),
    apply(
        "cluster-of-kueue",
        f"{KUEUE}/multikueueclusters/placed-one",
        named(
            "kueue.x-k8s.io/v1beta2",
            "MultiKueueCluster",
            "placed-one",
            spec={"clusterSource": {"kubeConfig": {"location": "secret"}}},
        ),
    ),
    apply(
        "cluster-of-kueue-both",
        f"{KUEUE}/multikueueclusters/placed-one",
        named(
            "kueue.x-k8s.io/v1beta2",
            "MultiKueueCluster",
            "placed-one",
            spec={
                "clusterSource": {"kubeConfig": {"location": "secret"}, "clusterProfileRef": {"name": "one"}}
            },
        ),
    ),
    apply(
        "cluster-of-kueue-none",
        f"{KUEUE}/multikueueclusters/placed-one",
        named("kueue.x-k8s.io/v1beta2", "MultiKueueCluster", "placed-one", spec={"clusterSource": {}}),
    ),
    get("cluster-of-kueue-old-version", "/apis/kueue.x-k8s.io/v1beta1/multikueueclusters/placed-one"),
    delete("delete-config-uid", f"{KUEUE}/multikueueconfigs/placed", preconditions={"uid": "{uid:config}"}),
    # -- Workloads
    post("workload", WORKLOADS, workload("job")),
    post("workload-without-pod-sets", f"{WORKLOADS}?dryRun=All", workload("x", podSets=[])),
    post("workload-priority", f"{WORKLOADS}?dryRun=All", workload("x", priority=3_000_000_000)),
    apply("state", f"{WORKLOADS}/job/status", states("job"), f"{OURS}&force=true"),
    apply("state-other-uid", f"{WORKLOADS}/job/status", states("job", uid=ANOTHER_UID), f"{OURS}&force=true"),
    apply(
        "state-stale",
        f"{WORKLOADS}/job/status",
        states("job", resourceVersion="{version:workload}"),
        f"{OURS}&force=true",
    ),
    apply(
        "state-stale-and-other-uid",
        f"{WORKLOADS}/job/status",
        states("job", resourceVersion="{version:workload}", uid=ANOTHER_UID),
        f"{OURS}&force=true",
    ),
    apply(
        "state-current-and-other-uid",
        f"{WORKLOADS}/job/status",
        states("job", resourceVersion="{version:state}", uid=ANOTHER_UID),
        f"{OURS}&force=true",
    ),
    apply("state-of-missing", f"{WORKLOADS}/missing/status", states("missing"), f"{OURS}&force=true"),
    apply(
        "state-unknown-value",
        f"{WORKLOADS}/job/status",
        named(
            "kueue.x-k8s.io/v1beta2",
            "Workload",
            "job",
            status={
                "admissionChecks": [
                    {
                        "name": "ours",
                        "state": "Done",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                        "message": "",
                    }
                ]
            },
        ),
        f"{OURS}&force=true",
    ),
    apply(
        "nominate",
        f"{WORKLOADS}/job/status",
        nominated("job", "placed-one"),
        "fieldManager=kueue-admission&force=true",
    ),
    apply("nominate-other", f"{WORKLOADS}/job/status", nominated("job", "placed-two"), "fieldManager=kueue"),
    patch(
        "placed",
        f"{WORKLOADS}/job/status",
        {"status": {"clusterName": "placed-one", "nominatedClusterNames": None}},
    ),
    apply(
        "nominate-placed",
        f"{WORKLOADS}/job/status",
        nominated("job", "placed-two"),
        "fieldManager=kueue-admission&force=true",
    ),
    patch("placed-elsewhere", f"{WORKLOADS}/job/status", {"status": {"clusterName": "placed-two"}}),
    patch("workload-status-by-main", f"{WORKLOADS}/job", {"status": {"clusterName": "other"}}),
    patch("workload-inactive", f"{WORKLOADS}/job", {"spec": {"active": False}}),
    get("workloads", f"{WORKLOADS}?fieldSelector=metadata.name%3Djob"),
    delete("delete-workload-uid-other", f"{WORKLOADS}/job", preconditions={"uid": ANOTHER_UID}),
    delete("delete-workload", f"{WORKLOADS}/job", propagationPolicy="Background"),
)

STEPS: Final[tuple[Step, ...]] = (
    post("namespace", "/api/v1/namespaces", named("v1", "Namespace", "exchanges")),
    *VALUES,
    *METADATA,
    *APPLIES,
    *PATCHES,
    *READS,
    *BODIES,
    *BUILT_IN,
    *DELETES,
    *STORIES,
)
