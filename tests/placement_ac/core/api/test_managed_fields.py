"""The fields of an object that a manager owns, and the nomination of clusters."""

import copy
from typing import Any

import pytest

from placement_ac.core.api.managed_fields import applied_version, nomination_body, owned_by, spec_writer

Raw = dict[str, Any]


def entry(fields: Raw, manager: str = "me", operation: str = "Apply", subresource: str = "status") -> Raw:
    body = {
        "manager": manager,
        "operation": operation,
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return body | {"subresource": subresource} if subresource else body


def owning(fields: Raw, *others: Raw, **parts: Any) -> Raw:
    return {"metadata": {"name": "w", "managedFields": [entry(fields), *others]}} | parts


A = {"name": "a", "state": "Ready"}
B = {"name": "b", "state": "Pending"}


@pytest.mark.parametrize(
    ("fields", "status", "owned"),
    [
        pytest.param({"f:x": {}}, {"x": 1, "y": 2}, {"x": 1}, id="a field"),
        pytest.param({"f:x": {}}, {"x": None}, {"x": None}, id="null"),
        pytest.param({"f:x": {}}, {"x": {"a": [1]}}, {"x": {"a": [1]}}, id="a map as a whole"),
        pytest.param({"f:x": {"f:a": {}}}, {"x": {"a": 1, "b": 2}}, {"x": {"a": 1}}, id="part of a map"),
        pytest.param({"f:x": {".": {}, "f:a": {}}}, {"x": {"b": 2}}, {"x": {}}, id="a map, its part gone"),
        pytest.param({"f:x": {"f:a": {}}}, {"x": {"b": 2}}, {}, id="the part of a map has gone"),
        pytest.param({"f:x": {}}, {"y": 2}, {}, id="a field that is not there"),
        pytest.param({"f:x": {"f:a": {}}}, {"x": "text"}, {}, id="another shape"),
        pytest.param({"f:f:x": {}}, {"f:x": 1}, {"f:x": 1}, id="a name like a key"),
        pytest.param(
            {"f:l": {'k:{"name":"b"}': {".": {}, "f:name": {}, "f:state": {}}}},
            {"l": [A, B]},
            {"l": [B]},
            id="an item with its fields",
        ),
        pytest.param(
            {"f:l": {'k:{"name":"a"}': {"f:state": {}}}},
            {"l": [{**A, "message": "m"}, B]},
            {"l": [A]},
            id="keys are always there",
        ),
        pytest.param(
            {"f:l": {'k:{"name":"b"}': {".": {}}, 'k:{"name":"a"}': {".": {}, "f:state": {}}}},
            {"l": [A, B]},
            {"l": [A, B]},
            id="in the order of the object",
        ),
        pytest.param(
            {"f:l": {'k:{"name":"c"}': {".": {}, "f:name": {}}}}, {"l": [A]}, {}, id="the item has gone"
        ),
        pytest.param(
            {"f:l": {'k:{"port":1,"tls":true}': {".": {}, "f:port": {}, "f:tls": {}}}},
            {"l": [{"port": 1, "tls": 1}, {"port": True, "tls": True}, {"port": 1, "tls": True}]},
            {"l": [{"port": 1, "tls": True}]},
            id="true is not 1",
        ),
        pytest.param({"f:s": {'v:"b"': {}, "v:2": {}}}, {"s": ["a", "b", 2]}, {"s": ["b", 2]}, id="of a set"),
        pytest.param(
            {"f:s": {'v:{"a":1}': {}}}, {"s": [{"a": 1}, {"a": 2}]}, {"s": [{"a": 1}]}, id="a value"
        ),
        pytest.param({"f:l": {"i:1": {}}}, {"l": ["a", "b", "c"]}, {"l": ["b"]}, id="by index"),
        pytest.param(
            {"f:l": {"v:}": {}, "k:7": {}, "?": {}}}, {"l": ["a", 7]}, {}, id="keys nobody can read"
        ),
    ],
)
def test_the_owned_part_of_a_status_is_taken_by_its_field_set(fields: Raw, status: Raw, owned: Raw) -> None:
    obj = owning({"f:status": fields}, status=status)
    before = copy.deepcopy(obj)
    assert owned_by(obj, "me") == ({"status": owned} if owned else {})
    assert obj == before


@pytest.mark.parametrize(
    ("value", "theirs", "owned"),
    [
        pytest.param({"a": 1}, {"f:a": {}}, {}, id="a map"),
        pytest.param([A], {'k:{"name":"a"}': {".": {}}}, [], id="a list"),
        pytest.param({"a": 1}, {}, {"a": 1}, id="both own the whole"),
        pytest.param({"a": 1}, {".": {}}, {"a": 1}, id="the others own nothing in it"),
    ],
)
def test_a_field_applied_empty_and_filled_by_others_stays_empty(value: Any, theirs: Raw, owned: Any) -> None:
    obj = owning(
        {"f:status": {"f:x": {}}}, entry({"f:status": {"f:x": theirs}}, "other"), status={"x": value}
    )
    assert owned_by(obj, "me") == {"status": {"x": owned}}


def test_only_what_this_manager_owns_in_this_way_counts() -> None:
    parts = {"apply": "a", "update": "u", "main": "m", "other": "o"}
    obj = owning(
        {"f:status": {"f:apply": {}}},
        entry({"f:status": {"f:update": {}}}, operation="Update"),
        entry({"f:status": {"f:main": {}}}, subresource=""),
        entry({"f:status": {"f:other": {}}}, "other"),
        status=parts,
    )
    assert owned_by(obj, "me") == {"status": {"apply": "a"}}
    assert owned_by(obj, "me", subresource="") == {"status": {"main": "m"}}
    assert owned_by(obj, "nobody") == {}


@pytest.mark.parametrize("metadata", [None, {}, {"managedFields": None}, {"managedFields": []}])
def test_without_managed_fields_nobody_owns_anything(metadata: Any) -> None:
    assert owned_by({"metadata": metadata, "status": {"x": 1}}, "me") == {}
    assert applied_version({"metadata": metadata}, "me") == ""


def test_the_version_in_which_a_manager_applied() -> None:
    old = entry({"f:status": {"f:x": {}}}, "kueue-admission") | {"apiVersion": "kueue.x-k8s.io/v1beta1"}
    newer = entry({"f:status": {"f:x": {}}}, "kueue-admission", operation="Update")
    assert applied_version(owning({}, newer, old), "kueue-admission") == "kueue.x-k8s.io/v1beta1"
    assert applied_version(owning({}, newer, old), "kueue-admission", "") == ""


ADMISSION = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 1}]}
WORKLOAD: Raw = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "metadata": {
        "name": "w",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"l": "1"},
        "managedFields": [
            entry(
                {
                    "f:status": {
                        "f:admission": {
                            "f:clusterQueue": {},
                            "f:podSetAssignments": {
                                'k:{"name":"main"}': {".": {}, "f:name": {}, "f:count": {}}
                            },
                        },
                        "f:nominatedClusterNames": {},
                    }
                },
                "kueue-admission",
            ),
            entry({"f:status": {"f:requeueState": {}}}, "kueue"),
        ],
    },
    "spec": {"active": True},
    "status": {
        "admission": ADMISSION,
        "nominatedClusterNames": ["old"],
        "requeueState": {"count": 1},
    },
}
IDENTITY = {"name": "w", "namespace": "ns", "uid": "u", "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("names", "body"),
    [
        pytest.param(("b", "a"), {"nominatedClusterNames": ["b", "a"]}, id="new names"),
        pytest.param((), {}, id="none"),
    ],
)
def test_a_nomination_repeats_all_that_kueue_applied(names: tuple[str, ...], body: Raw) -> None:
    before = copy.deepcopy(WORKLOAD)
    assert nomination_body(WORKLOAD, names) == {
        "metadata": IDENTITY,
        "status": {"admission": ADMISSION} | body,
    }
    assert before == WORKLOAD


def test_a_nomination_of_a_workload_on_which_kueue_applied_nothing() -> None:
    bare = WORKLOAD | {"metadata": IDENTITY}
    assert nomination_body(bare, ["a"]) == {"metadata": IDENTITY, "status": {"nominatedClusterNames": ["a"]}}


@pytest.mark.parametrize(
    ("names", "body"),
    [
        pytest.param(("a",), {"nominatedClusterNames": ["a"]}, id="new names"),
        pytest.param((), {}, id="none"),
    ],
)
def test_a_status_that_was_applied_empty_stays_owned(names: tuple[str, ...], body: Raw) -> None:
    managed = [entry({"f:status": {}}, "kueue-admission")]
    obj = WORKLOAD | {"metadata": IDENTITY | {"managedFields": managed}, "status": {"conditions": []}}
    assert nomination_body(obj, names) == {"metadata": IDENTITY, "status": body}


def test_removing_the_only_applied_names_leaves_no_empty_status() -> None:
    managed = [entry({"f:status": {"f:nominatedClusterNames": {}}}, "kueue-admission")]
    obj = WORKLOAD | {"metadata": IDENTITY | {"managedFields": managed}}
    assert nomination_body(obj, ()) == {"metadata": IDENTITY}


def at(when: str, fields: Raw, manager: str, subresource: str = "") -> Raw:
    return entry(fields, manager, "Update", subresource) | {"time": f"2026-08-01T12:00:{when}Z"}


LIST = {"f:spec": {"f:clusters": {}}}
SOURCE = {"f:spec": {"f:kubeConfig": {"f:location": {}}}}
QUOTA = {"f:spec": {"f:quotaManagement": {}, "f:clusterSource": {"f:another": {}}}}


@pytest.mark.parametrize(
    ("entries", "who"),
    [
        pytest.param([at("01", LIST, "me")], "", id="ours alone"),
        pytest.param([at("01", LIST, "me"), at("02", LIST, "edit")], "", id="the same value"),
        pytest.param([at("01", {}, "me"), at("02", LIST, "edit")], "edit", id="taken over"),
        pytest.param([at("01", LIST, "me"), at("02", SOURCE, "edit")], "edit", id="another field"),
        pytest.param([at("03", SOURCE, "edit"), at("02", LIST, "other")], "edit", id="the last of two"),
        pytest.param([at("01", LIST, "me"), at("02", QUOTA, "edit")], "", id="a field that we never write"),
        pytest.param([at("01", LIST, "me"), at("02", {"f:status": {}}, "kueue")], "", id="a status"),
        pytest.param([at("01", LIST, "me"), at("02", SOURCE, "kueue", "status")], "", id="a subresource"),
        pytest.param([at("01", LIST, "me"), {"manager": "x", "fieldsV1": None}], "", id="no fields"),
        pytest.param([], "", id="nobody"),
    ],
)
def test_who_has_changed_the_spec(entries: list[Raw], who: str) -> None:
    assert spec_writer({"metadata": {"managedFields": entries}}, "me") == who
