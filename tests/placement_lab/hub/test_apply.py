"""Server-side apply: ownership of fields, conflicts, and removal of fields that are no longer applied."""

from typing import Any

import pytest

from placement_lab.hub import field_sets
from placement_lab.hub.apply import merge
from placement_lab.structural_schema.schema_node import SchemaNode
from tests.support.hub_client import (
    CHECKS,
    CONFIGMAPS,
    CONFIGS,
    Client,
    check,
    condition,
    config,
    configmap,
    status,
)


def owners(obj: Any) -> dict[tuple[str, str, str], Any]:
    """managedFields by manager, operation and subresource."""
    entries = obj["metadata"].get("managedFields", [])
    return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}


def conflicts(answer: Any) -> list[str]:
    assert answer.status_code == 409, answer.text
    return [cause["field"] for cause in answer.json()["details"]["causes"]]


def test_an_apply_owns_its_fields(client: Client) -> None:
    reference = {"apiVersion": "x.com/v1", "kind": "X", "name": "x", "uid": "u"}
    wanted = config("a", "x", "y", labels={"l": "1"}, annotations={}, finalizers=["e.com/f"])
    wanted["metadata"]["ownerReferences"] = [reference]
    created = client.applied(f"{CONFIGS}/a", wanted, "me")
    assert owners(created) == {
        ("me", "Apply", ""): {
            "f:metadata": {
                "f:labels": {"f:l": {}},
                "f:annotations": {},
                "f:finalizers": {'v:"e.com/f"': {}},
                "f:ownerReferences": {'k:{"uid":"u"}': {}},
            },
            "f:spec": {"f:clusters": {}},
        }
    }


def test_an_update_owns_the_changed_fields(client: Client) -> None:
    client.create(f"{CHECKS}?fieldManager=maker", check("a", labels={"l": "1"}))
    client.patch(f"{CHECKS}/a/status?fieldManager=teller", {"status": {"conditions": [condition()]}})
    touched = {"f:" + key: {} for key in condition()}
    assert owners(client.get(f"{CHECKS}/a")) == {
        ("maker", "Update", ""): {
            "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            "f:spec": {".": {}, "f:controllerName": {}},
        },
        ("teller", "Update", "status"): {
            "f:status": {".": {}, "f:conditions": {".": {}, 'k:{"type":"Active"}': {".": {}, **touched}}}
        },
    }


def test_the_default_manager_is_the_user_agent(client: Client) -> None:
    client.ok("POST", CONFIGMAPS, configmap("a"), User_Agent="tool/v1 (linux)")
    assert list(owners(client.get(f"{CONFIGMAPS}/a"))) == [("tool", "Update", "")]


def test_an_update_takes_over_the_ownership(client: Client) -> None:
    client.applied(f"{CONFIGMAPS}/a", configmap("a", {"k": "1", "o": "1"}), "one")
    client.patch(f"{CONFIGMAPS}/a?fieldManager=two", {"data": {"k": "2"}})
    assert owners(client.get(f"{CONFIGMAPS}/a")) == {
        ("one", "Apply", ""): {"f:data": {"f:o": {}}},
        ("two", "Update", ""): {"f:data": {"f:k": {}}},
    }
    client.patch(f"{CONFIGMAPS}/a?fieldManager=three", {"data": None})
    assert owners(client.get(f"{CONFIGMAPS}/a")) == {}


def test_a_field_no_longer_applied_is_removed_unless_another_manager_owns_it(client: Client) -> None:
    both = configmap("a", {"mine": "1", "ours": "1"}, labels={"l": "1"})
    client.applied(f"{CONFIGMAPS}/a", both, "one")
    client.applied(f"{CONFIGMAPS}/a", configmap("a", {"ours": "1"}), "two")
    done = client.applied(f"{CONFIGMAPS}/a", configmap("a", {"new": "1"}), "one")
    assert done["data"] == {"new": "1", "ours": "1"}
    assert "labels" not in done["metadata"]


def test_removing_the_last_field_removes_its_map(client: Client) -> None:
    client.applied(f"{CONFIGMAPS}/a", configmap("a", {"k": "1"}), "one")
    bare = {key: value for key, value in configmap("a").items() if key != "data"}
    assert "data" not in client.applied(f"{CONFIGMAPS}/a", bare, "one")
    assert owners(client.get(f"{CONFIGMAPS}/a")) == {}


@pytest.mark.embedded("a real API server refuses it with another message")
def test_conflicts_name_each_field_and_its_owner(client: Client) -> None:
    client.create(f"{CONFIGMAPS}?fieldManager=maker", configmap("a", {"k": "1", "o": "1"}))
    answer = client.apply(f"{CONFIGMAPS}/a", configmap("a", {"k": "2", "o": "2", "n": "2"}))
    assert sorted(conflicts(answer)) == [".data.k", ".data.o"]
    assert 'conflicts with "maker" using v1:' in answer.json()["message"]
    client.applied(f"{CONFIGMAPS}/a", configmap("a", {"k": "1"}))  # an equal value is shared
    forced = client.applied(f"{CONFIGMAPS}/a", configmap("a", {"k": "2"}), force="true")
    assert owners(forced) == {
        ("tester", "Apply", ""): {"f:data": {"f:k": {}}},
        ("maker", "Update", ""): {"f:data": {".": {}, "f:o": {}}},
    }


def test_conditions_are_owned_separately(client: Client) -> None:
    client.create(CHECKS, check("a"))
    path = f"{CHECKS}/a/status"
    client.applied(path, status("a", condition("True", "Mine")), "one")
    client.applied(path, status("a", condition("True", "Theirs")), "two")
    taken = client.apply(path, status("a", condition("False", "Theirs")), "one")
    assert conflicts(taken) == ['.status.conditions[type="Theirs"].status']
    assert '"two" with subresource "status"' in taken.json()["message"]
    done = client.applied(path, status("a"), "one")
    assert [c["type"] for c in done["status"]["conditions"]] == ["Theirs"]


def test_a_status_cannot_be_applied_at_the_main_path_nor_a_spec_at_the_status(client: Client) -> None:
    full = check("a") | {"status": {"conditions": [condition()]}}
    assert "status" not in client.applied(f"{CHECKS}/a", full)
    live = client.applied(f"{CHECKS}/a/status", full | {"spec": {"controllerName": "other"}}, "two")
    assert live["spec"]["controllerName"] == "example.com/it"
    assert owners(live)["two", "Apply", "status"].keys() == {"f:status"}


@pytest.mark.embedded("a real API server refuses it with another message")
def test_malformed_applies_are_refused(client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a"))
    client.create(CHECKS, check("a"))
    no_maps = status("a") | {"status": {"conditions": ["no map"]}}
    applies: list[tuple[int, str, Any]] = [
        (400, f"{CONFIGMAPS}/a", "{: ]"),
        (400, f"{CONFIGMAPS}/a", configmap("a", managedFields=[{}])),
        (400, f"{CONFIGMAPS}/a", configmap("a", namespace="another")),
        (500, f"{CONFIGMAPS}/a", configmap("a", unknown="x")),
        (500, f"{CONFIGS}/a", {**config("a"), "spec": {"clusters": ["a"], "unknown": 1}}),
        (500, f"{CONFIGS}/a", {**config("a"), "spec": {"clusters": {"no": "list"}}}),
        (500, f"{CONFIGS}/a", {**config("a"), "spec": "no map"}),
        (422, f"{CONFIGS}/a", {**config("a"), "spec": {"clusters": [1]}}),
        (500, f"{CHECKS}/a/status", no_maps),
    ]
    for code, path, body in applies:
        assert client.apply(path, body).status_code == code, (path, body)
    wrong = {**config("a"), "spec": {"clusters": ["a"], "unknown": 1}}
    strict = client.apply(f"{CONFIGS}/a", wrong, fieldValidation="Strict")
    assert strict.status_code == 500
    assert strict.json()["message"].endswith(".spec.unknown: field not declared in schema")


def test_an_apply_may_be_yaml(client: Client) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
    assert client.apply(f"{CONFIGMAPS}/a", text).json()["data"] == {"k": "v"}  # type: ignore[arg-type]  # text


def test_managed_fields_can_be_rewritten_and_reset(client: Client) -> None:
    created = client.create(f"{CONFIGMAPS}?fieldManager=old", configmap("a"))
    entry = created["metadata"]["managedFields"][0] | {"manager": "new"}
    renamed = client.patch(f"{CONFIGMAPS}/a", {"metadata": {"managedFields": [entry]}})
    assert list(owners(renamed)) == [("new", "Update", "")]
    reset = client.patch(f"{CONFIGMAPS}/a", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in reset["metadata"]


# -- unit tests

LIST = SchemaNode({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ("abc", "", "abc"),
        ("", "ba", "ba"),
        ("abc", "ca", "bca"),
        ("abc", "ac", "abc"),
        ("abc", "xb", "axbc"),
        ("a", "b", "ab"),
        ("abcd", "dba", "cdba"),
    ],
)
def test_the_order_of_a_merged_list(live: str, applied: str, merged: str) -> None:
    assert "".join(merge(LIST, list(live), list(applied))) == merged


A: Any = {"f:a": {}}
AB: Any = {"f:a": {"f:b": {}}}
A_AND_AB: Any = {"f:a": {".": {}, "f:b": {}}}


def test_sets_of_fields() -> None:
    assert field_sets.union(A, AB) == A_AND_AB
    assert field_sets.union(None, A) == field_sets.union(A, None) == A
    assert field_sets.difference(A_AND_AB, A) == AB
    assert field_sets.difference(A_AND_AB, AB) == A
    assert field_sets.difference(A, A) is None
    assert field_sets.intersection(A_AND_AB, AB) == AB
    assert field_sets.intersection(A, AB) is None
    assert field_sets.intersection(None, A) is None
    assert list(field_sets.paths({'k:{"type":"x"}': {".": {}, "f:y": {}}, 'v:"z"': {}})) == [
        '[type="x"]',
        '[type="x"].y',
        '[="z"]',
    ]
