"""CRDs and their schemas: defaults, pruning, validation, and table columns."""

from collections.abc import Iterator
from typing import Any

import pytest

from placement_lab.hub import kinds, table
from placement_lab.structural_schema import rules
from placement_lab.structural_schema.rules import Violation
from placement_lab.structural_schema.schema_node import UNSET
from tests.support.hub_client import CONFIGS, CRDS, KUEUE, OCM, TABLE, Client, config, crd, spec_schema
from tests.support.real_hub import HubMaker

THINGS = "/apis/example.com/v1/namespaces/default/things"


@pytest.fixture(scope="module")
def client(a_hub: HubMaker) -> Iterator[Client]:
    with a_hub() as hub:
        yield Client(hub)


@pytest.fixture
def empty(a_hub: HubMaker) -> Iterator[Client]:
    with a_hub(crds=[]) as hub:
        yield Client(hub)


def thing(spec: Any, name: str = "a") -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def faults(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.text
    return [(c["reason"], c["field"]) for c in answer.json()["details"]["causes"]]


TEXT = {"type": "string"}
SCHEMA = spec_schema(
    text={"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
    choice={"type": "string", "enum": ["x", "y"]},
    number={"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2},
    ratio={"type": "number"},
    flag={"type": "boolean"},
    when={"type": "string", "format": "date-time"},
    amount={"x-kubernetes-int-or-string": True},
    defaulted={"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 3}}},
    nullable={"type": "string", "nullable": True},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    embedded={
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    },
    texts={"type": "object", "additionalProperties": TEXT, "maxProperties": 2, "minProperties": 1},
    names={"type": "array", "x-kubernetes-list-type": "set", "items": TEXT, "maxItems": 3, "minItems": 1},
    rows={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key"],
        "items": {
            "type": "object",
            "required": ["key"],
            "properties": {"key": TEXT, "value": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "!has(self.value) || self.value > 0"}],
        },
    },
    both={"allOf": [{"minimum": 1}, {"maximum": 5}], "not": {"enum": [3]}},
    fixed={"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "fieldPath": ".x"}]},
)


@pytest.fixture(scope="module")
def things(client: Client) -> Client:
    client.create(CRDS, crd("Thing", SCHEMA))
    return client


@pytest.mark.embedded("a real API server refuses schemas that are not structural")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"text": 1}, [("FieldValueTypeInvalid", "spec.text")]),
        ({"text": "a"}, [("FieldValueInvalid", "spec.text")]),
        ({"text": "abcde"}, [("FieldValueTooLong", "spec.text")]),
        ({"text": "AB"}, [("FieldValueInvalid", "spec.text")]),
        ({"text": "ab\n"}, [("FieldValueInvalid", "spec.text")]),
        ({"choice": "z"}, [("FieldValueNotSupported", "spec.choice")]),
        ({"number": 0}, [("FieldValueInvalid", "spec.number")]),
        ({"number": 10}, [("FieldValueInvalid", "spec.number")]),
        ({"number": 3}, [("FieldValueInvalid", "spec.number")]),
        ({"number": 2.5}, [("FieldValueTypeInvalid", "spec.number")]),
        ({"number": True}, [("FieldValueTypeInvalid", "spec.number")]),
        ({"flag": 1}, [("FieldValueTypeInvalid", "spec.flag")]),
        ({"when": "yesterday"}, [("FieldValueTypeInvalid", "spec.when")]),
        ({"when": "2026-01-01"}, [("FieldValueTypeInvalid", "spec.when")]),
        ({"amount": True}, [("FieldValueTypeInvalid", "spec.amount")]),
        ({"texts": {"a": 1}}, [("FieldValueTypeInvalid", "spec.texts.a")]),
        ({"texts": {}}, [("FieldValueInvalid", "spec.texts")]),
        ({"texts": {"a": "", "b": "", "c": ""}}, [("FieldValueTooMany", "spec.texts")]),
        ({"names": []}, [("FieldValueInvalid", "spec.names")]),
        ({"names": ["a", "b", "c", "d"]}, [("FieldValueTooMany", "spec.names")]),
        ({"names": ["a", "a"]}, [("FieldValueDuplicate", "spec.names[1]")]),
        ({"rows": [{"key": "a"}, {"key": "a"}]}, [("FieldValueDuplicate", "spec.rows[1]")]),
        ({"rows": [{"key": "a", "value": 0}]}, [("FieldValueInvalid", "spec.rows[0]")]),
        ({"rows": [{"value": 1}]}, [("FieldValueRequired", "spec.rows[0].key")]),
        ({"both": 6}, [("FieldValueInvalid", "spec.both")]),
        ("no map", [("FieldValueTypeInvalid", "spec")]),
    ],
)
def test_invalid_values_are_rejected(things: Client, spec: Any, expected: list[tuple[str, str]]) -> None:
    found = faults(things.ask("POST", THINGS, thing(spec)))
    assert [fault for fault in found if fault[1] != "<nil>"] == expected


@pytest.mark.embedded("a real API server refuses schemas that are not structural")
def test_valid_values_are_defaulted_and_pruned(things: Client) -> None:
    given = {
        "text": "abcd", "choice": "x", "number": 4.0, "ratio": 1,
        "when": "2026-01-01T00:00:00.5Z", "amount": "5%",
        "nullable": None, "flag": None, "free": {"any": {"thing": None}}, "unknown": 1,
        "both": 4,
        "embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"no": 1}, "no": 1},
        "rows": [{"key": "a", "unknown": 1}],
    }  # fmt: skip
    answer = things.ask("POST", f"{THINGS}?dryRun=All", thing(given))
    assert answer.json()["spec"] == {
        "text": "abcd", "choice": "x", "number": 4.0, "ratio": 1,
        "when": "2026-01-01T00:00:00.5Z", "amount": "5%",
        "nullable": None, "free": {"any": {"thing": None}}, "both": 4,
        "embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {}},
        "rows": [{"key": "a"}],
        "defaulted": {"size": 3},
    }  # fmt: skip
    assert 'unknown field \\"spec.rows[0].unknown\\"' in answer.headers["Warning"]
    strict = things.ask("POST", f"{THINGS}?dryRun=All&fieldValidation=Strict", thing(given))
    assert strict.status_code == 400
    silent = things.ask("POST", f"{THINGS}?dryRun=All&fieldValidation=Ignore", thing(given))
    assert "Warning" not in silent.headers


@pytest.mark.embedded("a real API server refuses schemas that are not structural")
def test_rules_see_the_old_value(things: Client) -> None:
    things.create(THINGS, thing({"fixed": "a", "rows": [{"key": "a", "value": 1}]}, "ruled"))
    change = {"spec": {"fixed": "b"}}
    answer = things.ask("PATCH", f"{THINGS}/ruled", change, Content_Type="application/merge-patch+json")
    assert faults(answer) == [("FieldValueInvalid", "spec.fixed.x")]
    rows = {"spec": {"rows": [{"key": "b"}, {"key": "a", "value": -1}]}}
    answer = things.ask("PATCH", f"{THINGS}/ruled", rows, Content_Type="application/merge-patch+json")
    assert faults(answer) == [("FieldValueInvalid", "spec.rows[1]")]


@pytest.mark.embedded("a real API server serves a CRD a moment after it was created")
def test_an_existing_error_does_not_block_another_change(empty: Client) -> None:
    empty.create(CRDS, crd("Thing", spec_schema(a=TEXT, b=TEXT)))
    empty.create(THINGS, thing({"a": "long"}))
    now = empty.get(f"{CRDS}/things.example.com")
    now["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = spec_schema(a=TEXT | {"maxLength": 1}, b=TEXT)
    empty.ok("PUT", f"{CRDS}/things.example.com", now)
    assert empty.patch(f"{THINGS}/a", {"spec": {"b": "x"}})["spec"] == {"a": "long", "b": "x"}
    answer = empty.ask(
        "PATCH", f"{THINGS}/a", {"spec": {"a": "other"}}, Content_Type="application/merge-patch+json"
    )
    assert faults(answer) == [("FieldValueTooLong", "spec.a")]


@pytest.mark.embedded("a real API server refuses it with another message")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "x.example.com"}}, "metadata.name"),
        ({"spec": {"scope": "Nowhere"}}, "spec.scope"),
        ({"spec": {"group": None}}, "spec.group"),
        ({"spec": {"versions": [{"name": "v1", "served": True, "storage": False}]}}, "spec.versions"),
        ({"spec": {"versions": [{"name": "v1", "served": True, "storage": True}]}},
         "spec.versions[0].schema.openAPIV3Schema"),
        ({"spec": {"versions": [{"name": "v1", "served": True, "storage": True,
                                 "schema": {"openAPIV3Schema": {"properties": {"a": 1}}}}]}},
         "spec.versions[0].schema.openAPIV3Schema"),
    ],
)  # fmt: skip
def test_invalid_crds_are_rejected(empty: Client, change: Any, field: str) -> None:
    definition = crd("Thing", spec_schema())
    definition = {**definition, **{k: definition[k] | v for k, v in change.items()}}
    assert field in [where for _, where in faults(empty.ask("POST", CRDS, definition))]


@pytest.mark.embedded("a real API server serves a CRD a moment after it was created")
def test_a_crd_is_served_at_once_and_deleted_with_its_objects(empty: Client) -> None:
    created = empty.create(CRDS, crd("Thing", spec_schema()))
    assert {c["type"]: c["status"] for c in created["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert created["status"]["acceptedNames"]["listKind"] == "ThingList"
    owner = empty.create(THINGS, thing({}))
    reference = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "name": "a",
        "uid": owner["metadata"]["uid"],
    }
    owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    empty.create("/api/v1/namespaces/default/secrets", owned)
    empty.delete(f"{CRDS}/things.example.com")
    assert empty.ask("GET", THINGS).status_code == 404
    assert empty.ask("GET", "/apis/example.com").status_code == 404
    assert empty.names("/api/v1/namespaces/default/secrets") == ["owned"]  # its owner's kind does not exist
    empty.create(CRDS, crd("Thing", spec_schema()))
    assert empty.names(THINGS) == []


@pytest.mark.embedded("a real API server describes more")
@pytest.mark.parametrize("name", [crd["metadata"]["name"] for crd in kinds.bundled()])
def test_every_bundled_kind_can_be_listed_and_has_a_schema(client: Client, name: str) -> None:
    resource = next(r for r in map(kinds.from_crd, kinds.bundled()) if r.full == name)
    for version in resource.versions:
        root = f"apis/{resource.group}/{version}"
        assert client.get(f"/{root}/{resource.plural}")["kind"] == resource.list_kind
        document = client.get(f"/openapi/v3/{root}")
        identities = [
            s["x-kubernetes-group-version-kind"][0]["kind"]
            for s in document["components"]["schemas"].values()
        ]
        assert resource.kind in identities


def test_the_schema_limits_the_clusters_of_a_config(client: Client) -> None:
    assert "apis/kueue.x-k8s.io/v1beta2" in client.get("/openapi/v3")["paths"]
    schemas = client.get("/openapi/v3/apis/kueue.x-k8s.io/v1beta2")["components"]["schemas"]
    found = schemas["io.x-k8s.kueue.v1beta2.MultiKueueConfig"]
    assert found["properties"]["spec"]["properties"]["clusters"]["maxItems"] == 20
    assert client.ask("GET", "/openapi/v3/apis/nobody/v1").status_code == 404
    assert client.ask("GET", "/openapi/v3/nothing").status_code == 404
    assert "io.k8s.api.core.v1.Secret" in client.get("/openapi/v3/api/v1")["components"]["schemas"]


def test_versions_in_the_order_of_preference() -> None:
    versions = ["v1alpha1", "v2", "v1beta1", "other", "v1", "v1beta2", "v11alpha2"]
    assert sorted(versions, key=kinds.priority) == [
        "v2",
        "v1",
        "v1beta2",
        "v1beta1",
        "v11alpha2",
        "v1alpha1",
        "other",
    ]


# -- tables


@pytest.mark.embedded("a real API server describes more")
def test_a_list_as_a_table(client: Client) -> None:
    path = f"{KUEUE}/multikueueclusters"
    source = {"clusterSource": {"clusterProfileRef": {"name": "x"}}}
    client.create(path, {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
                         "metadata": {"name": "a"}, "spec": source})  # fmt: skip
    found = client.ok("GET", path, Accept=TABLE)
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Connected", "Age"]
    assert found["rows"][0]["cells"][:2] == ["a", None]
    assert found["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert "object" not in client.ok("GET", f"{path}?includeObject=None", Accept=TABLE)["rows"][0]
    assert (
        client.ok("GET", f"{path}/a?includeObject=Object", Accept=TABLE)["rows"][0]["object"]["spec"]
        == source
    )


def test_metadata_alone(client: Client) -> None:
    client.create(CONFIGS, config("alone"))
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    found = client.ok("GET", CONFIGS, Accept=accept)
    assert (found["kind"], found["items"][0].keys()) == (
        "PartialObjectMetadataList",
        {"apiVersion", "kind", "metadata"},
    )


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/vnd.kubernetes.protobuf,*/*", 200),
        ("text/html", 406),
    ],
)
def test_accept_headers(client: Client, accept: str, code: int) -> None:
    assert client.ask("GET", CONFIGS, Accept=accept).status_code == code


def test_placements_in_columns(client: Client) -> None:
    body = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "p"}, "spec": {}}  # fmt: skip
    client.create(f"{OCM}/placements", body)
    satisfied = {"type": "PlacementSatisfied", "status": "False", "reason": "No", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    status = {"status": {"conditions": [satisfied], "numberOfSelectedClusters": 0}}
    client.patch(f"{OCM}/placements/p/status", status)
    assert client.ok("GET", f"{OCM}/placements", Accept=TABLE)["rows"][0]["cells"] == ["p", "False", "No", 0]


@pytest.mark.embedded("a real API server describes more")
def test_events_and_counts_in_columns(client: Client) -> None:
    path = "/api/v1/namespaces/default/events"
    client.create(path, {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "x"}})
    cells = client.ok("GET", path, Accept=TABLE)["rows"][0]["cells"]
    assert cells == ["<unknown>", None, None, "pod/x", None, None, "e"]
    secrets = "/api/v1/namespaces/default/secrets"
    client.create(secrets, {"metadata": {"name": "s"}})
    assert client.ok("GET", secrets, Accept=TABLE)["rows"][0]["cells"][:3] == ["s", "Opaque", 0]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".a.none", []),
        (".a.b.c", []),
        (".list[*].n", [1, 2]),
        (".list[1].n", [2]),
        (".list[7].n", []),
        ('.list[?(@.k=="y")].n', [2]),
        (".list[?(@.k=='x')].n", [1]),
        (".a[*]", []),
        (".x\\.y", []),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    obj = {"a": {"b": 1}, "list": [{"k": "x", "n": 1}, {"k": "y", "n": 2}]}
    assert table.find_values(path, obj) == found


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(5, "5s"), (119, "119s"), (120, "2m"), (200, "3m20s"), (3600, "60m"), (4 * 3600, "4h"),
     (5 * 3600 + 60, "5h1m"), (30 * 3600, "30h"), (50 * 3600, "2d2h"), (30 * 86400, "30d"),
     (800 * 86400, "2y70d"), (9 * 365 * 86400, "9y")],
)  # fmt: skip
def test_ages(seconds: int, shown: str) -> None:
    assert table.duration(seconds) == shown


# -- CEL


@pytest.mark.parametrize(
    ("rule", "value", "holds"),
    [
        ("self.a > 1 ? true : false", {"a": 2}, True),
        ("self.a > 1 || self.none", {"a": 2}, True),
        ("self.none || self.a > 1", {"a": 2}, True),
        ("self.none && self.a > 5", {"a": 2}, False),
        ("self.none && self.a > 1", {"a": 2}, False),
        ("self.none", {}, False),
        ("!(self.a == 1)", {"a": 2}, True),
        ("-self.a == -2 && self.a - 1 == 1 && self.a * 3 / 4 == 1 && self.a % 2 == 0", {"a": 2}, True),
        ("self.f / 2.0 == 0.5", {"f": 1.0}, True),
        ("self.a != true", {"a": 1}, True),
        ("self.a == null", {"a": None}, True),
        ("'x' in self && 2 in self.x && !(3 in self.x)", {"x": [1, 2]}, True),
        ("self.x[0] + self.x[1] == 3 && self['x'].size() == 2", {"x": [1, 2]}, True),
        ("self.all(i, i > 0) && self.exists(i, i == 2) && self.exists_one(i, i == 1)", [1, 2], True),
        ("self.x.map(i, i * 2).filter(i, i > 2) == [4]", {"x": [1, 2]}, True),
        ("self.startsWith('a') && self.endsWith('c')", "abc", True),
        ("self.contains('b') && self.matches('^a.c$')", "abc", True),
        ("size(self) == 3 && string(5) == '5' && [] == []", "abc", True),
        ("self.a", {"a": 1}, False),
        ("duration(self) > duration('1m')", "2m", True),
        ("self == 'a\\nb'", "a\nb", True),
        ("self.all(i, i.nothing())", [1], False),
        ("has(self)", {}, False),
        ("this is no rule", {}, False),
    ],
)  # fmt: skip
def test_rules(rule: str, value: Any, holds: bool) -> None:
    assert (rules.violation({"rule": rule}, value, UNSET) is None) is holds


def test_a_rule_has_its_own_message() -> None:
    assert rules.violation({"rule": "self > 1", "message": "too small"}, 1, UNSET) == Violation("too small")
    assert rules.violation({"rule": "self > 1"}, 1, UNSET) == Violation("failed rule: self > 1")
    assert rules.violation({"rule": "self == oldSelf"}, 1, UNSET) is None
