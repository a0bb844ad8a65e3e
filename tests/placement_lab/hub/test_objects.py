"""Create, read, update and delete objects on the hub."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.support.driver import eventually
from tests.support.hub_client import (
    CHECKS,
    CONFIGMAPS,
    CONFIGS,
    KUEUE,
    Client,
    check,
    condition,
    config,
    configmap,
    owner,
    status,
)

F = "/metadata/finalizers"


def causes(answer: Any) -> list[tuple[str, str]]:
    found = answer.json().get("details", {}).get("causes", [])
    return [(cause["reason"], cause["field"]) for cause in found]


def test_an_object_gets_a_uid_a_time_a_version_and_a_generation(client: Client) -> None:
    created = client.create(CONFIGS, config("a"))
    assert set(created["metadata"]) == {
        "name",
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "generation",
        "managedFields",
    }
    assert client.get(f"{CONFIGS}/a") == created


JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.mark.embedded("a real API server refuses it with another message")
@pytest.mark.parametrize(
    ("path", "body", "code", "reason"),
    [
        (CONFIGS, "[1]", 400, "BadRequest"),
        (CONFIGS, {**config("x"), "metadata": {"name": "x", "labels": "no"}}, 400, "BadRequest"),
        (CONFIGS, {**config("x"), "metadata": {"name": "x", "labels": {"a": 1}}}, 400, "BadRequest"),
        (CONFIGS, {**config("x"), "metadata": {"name": "x", "finalizers": "no"}}, 400, "BadRequest"),
        (CONFIGS, {**config("x"), "metadata": {"name": 5}}, 400, "BadRequest"),
        (CONFIGS, {**config("x"), "metadata": 5}, 400, "BadRequest"),
        (CONFIGS, {**config("x"), "apiVersion": "v1"}, 400, "BadRequest"),
        (CONFIGMAPS, {**configmap("x"), "kind": "Secret"}, 400, "BadRequest"),
        (CONFIGMAPS, configmap("x", namespace="other"), 400, "BadRequest"),
        ("/api/v1/configmaps", configmap("x"), 400, "BadRequest"),
        (CONFIGS, config("x", labels={"-": "v"}), 422, "Invalid"),
        (CONFIGS, config("x", labels={"a": "no value"}), 422, "Invalid"),
        (CONFIGS, config("x", annotations={"no name": "v"}), 422, "Invalid"),
        (f"{CONFIGS}?dryRun=Some", config("x"), 400, "BadRequest"),
        ("/api/v1/namespaces/kube-system/status", {}, 405, "MethodNotAllowed"),
    ],
)
def test_a_body_that_is_not_an_object_is_rejected(
    client: Client, path: str, body: Any, code: int, reason: str
) -> None:
    answer = client.ask("POST", path, body)
    assert (answer.status_code, answer.json()["reason"]) == (code, reason)


@pytest.mark.embedded("a real API server refuses it with another message")
@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/apis/kueue.x-k8s.io/v9/multikueueconfigs", 404),
        ("GET", f"{CONFIGS}/a/b/c", 404),
        ("GET", f"{KUEUE}/namespaces/default/multikueueconfigs", 404),
        ("GET", f"{CONFIGS}/a/scale", 404),
        ("POST", "/healthz", 404),
        ("POST", f"{CONFIGS}/a", 405),
        ("DELETE", "/api/v1/namespaces", 405),
    ],
)
def test_unknown_paths_are_not_found(client: Client, method: str, path: str, code: int) -> None:
    assert client.ask(method, path, {} if method == "POST" else None).status_code == code


def test_an_update_needs_the_version_it_replaces(client: Client) -> None:
    created = client.create(CONFIGS, config("a"))
    unsaid = client.ask("PUT", f"{CONFIGS}/a", config("a", "b"))
    assert causes(unsaid) == [("FieldValueInvalid", "metadata.resourceVersion")]
    done = client.ok("PUT", f"{CONFIGS}/a", {**created, "spec": {"clusters": ["b"]}})
    assert (done["spec"], done["metadata"]["generation"]) == ({"clusters": ["b"]}, 2)
    assert client.ask("PUT", f"{CONFIGS}/a", created).status_code == 409


def test_the_names_in_a_put_must_match_its_path(client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a"))
    assert client.ask("PUT", f"{CONFIGMAPS}/a", configmap("b")).status_code == 400
    assert client.ask("PUT", f"{CONFIGMAPS}/a", configmap("a", namespace="other")).status_code == 400
    assert client.ask("PUT", f"{CONFIGMAPS}/a", configmap("a", uid="other")).status_code == 409
    assert client.ask("PUT", f"{CONFIGMAPS}/b", configmap("b")).status_code == 404


def test_server_set_fields_cannot_be_changed(client: Client) -> None:
    created = client.create(CONFIGS, config("a"))
    meta = created["metadata"] | {"generation": 9, "creationTimestamp": "2020-01-01T00:00:00Z"}
    assert client.ok("PUT", f"{CONFIGS}/a", {**created, "metadata": meta}) == created


def test_a_write_without_changes_keeps_the_version(client: Client) -> None:
    created = client.create(CONFIGS, config("a", labels={"x": "y"}))
    assert client.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"x": "y"}}}) == created
    assert client.ok("PUT", f"{CONFIGS}/a", created) == created


def test_a_dry_run_changes_nothing(client: Client) -> None:
    client.create(f"{CONFIGS}?dryRun=All", config("a"))
    assert client.names(CONFIGS) == []
    created = client.create(CONFIGS, config("a"))
    client.patch(f"{CONFIGS}/a?dryRun=All", {"spec": {"clusters": ["b"]}})
    assert client.delete(f"{CONFIGS}/a?dryRun=All")["status"] == "Success"
    assert client.get(f"{CONFIGS}/a") == created


def test_a_status_is_written_only_through_its_subresource(client: Client) -> None:
    client.create(CHECKS, check("a") | {"status": {"conditions": [condition()]}})
    assert "status" not in client.get(f"{CHECKS}/a")
    live = client.get(f"{CHECKS}/a")
    body = {**live, "spec": {"controllerName": "x"}, "status": {"conditions": [condition()]}}
    body["metadata"] = live["metadata"] | {"labels": {"not": "kept"}}
    done = client.ok("PUT", f"{CHECKS}/a/status", body)
    assert (done["spec"], done["status"]) == (live["spec"], {"conditions": [condition()]})
    assert "labels" not in done["metadata"]
    assert done["metadata"]["generation"] == 1
    assert client.patch(f"{CHECKS}/a", {"status": None})["status"] == done["status"]
    assert "status" not in client.patch(f"{CHECKS}/a/status", {"status": None})


@pytest.mark.embedded("a real API server refuses it with another message")
@pytest.mark.parametrize(
    ("kind", "patch", "expected"),
    [
        ("merge", {"data": {"k": None, "n": "1"}}, {"n": "1", "o": "w"}),
        ("merge", {"data": None}, None),
        ("json", [{"op": "add", "path": "/data/a~1b", "value": "1"}], {"k": "v", "o": "w", "a/b": "1"}),
        ("json", [{"op": "remove", "path": "/data/k"}], {"o": "w"}),
        ("json", [{"op": "replace", "path": "/data/k", "value": "z"}], {"k": "z", "o": "w"}),
        ("json", [{"op": "move", "from": "/data/k", "path": "/data/m"}], {"m": "v", "o": "w"}),
        ("json", [{"op": "copy", "from": "/data/k", "path": "/data/m"}], {"k": "v", "o": "w", "m": "v"}),
        ("json", [{"op": "test", "path": "/data/k", "value": "v"}], {"k": "v", "o": "w"}),
        ("strategic", {"data": {"k": None}}, {"o": "w"}),
        ("strategic", {"data": {"$patch": "replace", "z": "1"}}, {"z": "1"}),
        ("strategic", {"data": {"$retainKeys": ["k", "z"], "z": "1"}}, {"k": "v", "z": "1"}),
    ],
)
def test_patches(client: Client, kind: str, patch: Any, expected: Any) -> None:
    client.create(CONFIGMAPS, configmap("a", {"k": "v", "o": "w"}))
    assert client.patch(f"{CONFIGMAPS}/a", patch, kind).get("data") == expected


@pytest.mark.parametrize(
    ("start", "operations", "expected"),
    [
        (["x"], [{"op": "add", "path": f"{F}/-", "value": "e.com/y"}], ["e.com/x", "e.com/y"]),
        (["x"], [{"op": "add", "path": f"{F}/0", "value": "e.com/y"}], ["e.com/y", "e.com/x"]),
        (["x", "y"], [{"op": "remove", "path": f"{F}/0"}], ["e.com/y"]),
        (["x", "y"], [{"op": "replace", "path": f"{F}/1", "value": "e.com/z"}],
         ["e.com/x", "e.com/z"]),
    ],
)  # fmt: skip
def test_json_patches_of_lists(
    client: Client, start: list[str], operations: Any, expected: list[str]
) -> None:
    client.create(CONFIGMAPS, configmap("a", finalizers=[f"e.com/{name}" for name in start]))
    assert client.patch(f"{CONFIGMAPS}/a", operations, "json")["metadata"]["finalizers"] == expected


@pytest.mark.embedded("a real API server refuses it with another message")
@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ({}, 400),
        ([1], 400),
        ([{"op": "jump", "path": "/data"}], 400),
        ([{"op": "replace", "path": "", "value": 1}], 400),
        ([{"op": "remove", "path": "/data/none"}], 422),
        ([{"op": "remove", "path": "data"}], 422),
        ([{"op": "remove", "path": "/metadata/managedFields/9"}], 422),
        ([{"op": "replace", "path": "/data/none/x", "value": 1}], 422),
    ],
)
def test_json_patches_that_do_not_apply(client: Client, operations: Any, code: int) -> None:
    client.create(CONFIGMAPS, configmap("a"))
    answer = client.ask("PATCH", f"{CONFIGMAPS}/a", operations, Content_Type="application/json-patch+json")
    assert answer.status_code == code


def test_a_strategic_patch_merges_lists_by_their_keys(client: Client) -> None:
    owners = [{"apiVersion": "v1", "kind": "Unserved", "name": name, "uid": name} for name in "ab"]
    client.create(CONFIGMAPS, configmap("a", ownerReferences=owners, finalizers=["e.com/x"]))
    change = {
        "metadata": {
            "ownerReferences": [{"uid": "a", "$patch": "delete"}, {"uid": "b", "controller": True}],
            "$deleteFromPrimitiveList/finalizers": ["e.com/x"],
            "$setElementOrder/ownerReferences": [{"uid": "b"}],
        }
    }
    done = client.patch(f"{CONFIGMAPS}/a", change, "strategic")["metadata"]
    assert done["ownerReferences"] == [{**owners[1], "controller": True}]
    assert "finalizers" not in done
    more = {"metadata": {"finalizers": ["e.com/y"]}}
    assert client.patch(f"{CONFIGMAPS}/a", more, "strategic")["metadata"]["finalizers"] == ["e.com/y"]
    fresh = {"metadata": {"ownerReferences": [{"$patch": "replace"}, owners[0]]}}
    assert client.patch(f"{CONFIGMAPS}/a", fresh, "strategic")["metadata"]["ownerReferences"] == owners[:1]
    order = {"metadata": {"ownerReferences": [owners[1]], "$setElementOrder/ownerReferences": [{"uid": "b"}]}}
    ordered = client.patch(f"{CONFIGMAPS}/a", order, "strategic")["metadata"]["ownerReferences"]
    assert ordered == [owners[1], owners[0]]


def test_an_unknown_kind_of_patch_is_refused(client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a"))
    assert client.ask("PATCH", f"{CONFIGMAPS}/a", {}).status_code == 415
    cbor = client.ask("PUT", f"{CONFIGMAPS}/a", b"\xa0", Content_Type="application/cbor")
    assert cbor.status_code == 415


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", ["one", "three", "two"]),
        ("tier=a", ["one"]),
        ("tier==a", ["one"]),
        ("tier!=a", ["three", "two"]),
        ("tier in (a, b)", ["one", "two"]),
        ("tier notin (a)", ["three", "two"]),
        ("tier", ["one", "two"]),
        ("!tier", ["three"]),
        ("rank>1,tier", ["two"]),
        ("rank<2", ["one"]),
        ("example.com/x=y", ["three"]),
    ],
)
def test_label_selectors(client: Client, selector: str, expected: list[str]) -> None:
    labels = {"one": {"tier": "a", "rank": "1"}, "two": {"tier": "b", "rank": "2"}}
    for name in ("one", "two", "three"):
        client.create(
            CONFIGMAPS, configmap(name, labels=labels.get(name, {"example.com/x": "y", "rank": "z"}))
        )
    assert client.names(f"{CONFIGMAPS}?labelSelector={quote(selector)}") == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name=none", []),
        ("metadata.name!=a", ["b"]),
        ("metadata.namespace=default", ["a", "b"]),
        ("metadata.name=a,metadata.namespace=other", []),
    ],
)
def test_field_selectors(client: Client, selector: str, expected: list[str]) -> None:
    for name in ("a", "b"):
        client.create(CONFIGMAPS, configmap(name, labels={"x": "y"}))
    assert client.names(f"{CONFIGMAPS}?fieldSelector={quote(selector)}&labelSelector=x") == expected


@pytest.mark.embedded("a real API server refuses it with another message")
@pytest.mark.parametrize("query", ["fieldSelector=spec.x=1", "fieldSelector=x", "resourceVersion=x",
                                   "continue=x", "resourceVersionMatch=Exact"])  # fmt: skip
def test_invalid_lists_are_rejected(client: Client, query: str) -> None:
    assert client.ask("GET", f"{CONFIGS}?{query}").status_code == 400


def test_events_can_be_selected_by_their_object(client: Client) -> None:
    path = "/api/v1/namespaces/default/events"
    for name in ("a", "b"):
        event = {
            "metadata": {"name": name},
            "involvedObject": {"kind": "X", "name": name},
            "source": {"component": "c"},
        }
        client.create(path, event)
    assert client.names(f"{path}?fieldSelector=involvedObject.name=b,involvedObject.uid=,source=c") == ["b"]


def test_a_list_continues_at_the_same_version(client: Client) -> None:
    for name in "abcd":
        client.create(CONFIGMAPS, configmap(name))
    first = client.get(f"{CONFIGMAPS}?limit=2")
    assert first["metadata"]["remainingItemCount"] == 2
    client.delete(f"{CONFIGMAPS}/c")
    client.patch(f"{CONFIGMAPS}/d", {"data": {"new": "1"}})
    client.create(CONFIGMAPS, configmap("e"))
    rest = client.get(f"{CONFIGMAPS}?limit=2&continue={first['metadata']['continue']}")
    assert [(i["metadata"]["name"], i["data"]) for i in rest["items"]] == [
        ("c", {"k": "v"}),
        ("d", {"k": "v"}),
    ]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in rest["metadata"]


def test_a_list_of_an_exact_version(client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a"))
    then = client.version(CONFIGMAPS)
    client.create(CONFIGMAPS, configmap("b"))
    exact = f"{CONFIGMAPS}?resourceVersion={then}&resourceVersionMatch=Exact"
    assert client.names(exact) == ["a"]
    client.hub.forget_history()
    assert client.ask("GET", exact).status_code == 410
    assert client.ask("GET", f"{CONFIGMAPS}?resourceVersion=99999").status_code == 504
    assert client.names(f"{CONFIGMAPS}?resourceVersion=0") == ["a", "b"]


def test_an_object_with_a_finalizer_is_not_deleted(client: Client) -> None:
    client.create(CONFIGS, config("a", finalizers=["e.com/x"]))
    marked = client.delete(f"{CONFIGS}/a")
    assert (marked["metadata"]["generation"], "deletionTimestamp" in marked["metadata"]) == (2, True)
    assert client.delete(f"{CONFIGS}/a") == marked
    client.patch(f"{CONFIGS}/a", {"metadata": {"finalizers": None}})
    assert client.names(CONFIGS) == []


def test_deleting_many_by_label(client: Client) -> None:
    for name, tier in (("a", "x"), ("b", "y"), ("c", "x")):
        client.create(CONFIGMAPS, configmap(name, labels={"tier": tier}))
    assert len(client.delete(f"{CONFIGMAPS}?labelSelector=tier=x")["items"]) == 2
    assert client.names(CONFIGMAPS) == ["b"]


# -- garbage collection


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_a_dependent_is_deleted_with_its_last_owner(client: Client) -> None:
    first, second = (client.create(CHECKS, check(name)) for name in ("one", "two"))
    client.create(CONFIGS, config("a", ownerReferences=[owner(first), owner(second)]))
    client.delete(f"{CHECKS}/one")
    eventually(lambda: client.get(f"{CONFIGS}/a")["metadata"]["ownerReferences"], [owner(second)])
    client.delete(f"{CHECKS}/two")
    eventually(lambda: client.names(CONFIGS), [])


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_an_object_with_a_deleted_owner_is_deleted(client: Client) -> None:
    created = client.create(CHECKS, check("one"))
    client.create(CONFIGS, config("a", ownerReferences=[owner(created)]))
    client.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"x": "y"}}})
    gone = {**owner(created), "name": "two", "uid": "another"}
    client.patch(f"{CONFIGS}/a", {"metadata": {"ownerReferences": [gone]}})
    eventually(lambda: client.names(CONFIGS), [])


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_owners_are_identified_by_uid(client: Client) -> None:
    created = client.create(CHECKS, check("one"))
    client.create(CONFIGS, config("a", ownerReferences=[{**owner(created), "uid": "another"}]))
    eventually(lambda: client.names(CONFIGS), [])


def test_an_owner_of_an_unknown_kind_is_ignored(client: Client) -> None:
    reference = {"apiVersion": "nobody.com/v1", "kind": "Nothing", "name": "x", "uid": "x"}
    client.create(CONFIGS, config("a", ownerReferences=[reference]))
    namespaced = {"apiVersion": "v1", "kind": "Secret", "name": "x", "uid": "y"}
    client.create(CONFIGS, config("b", ownerReferences=[namespaced]))
    client.create(CHECKS, check("later"))
    assert client.names(CONFIGS) == ["a", "b"]


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_owners_across_scopes(client: Client) -> None:
    created = client.create(CHECKS, check("one"))
    client.create(CONFIGMAPS, configmap("a", ownerReferences=[owner(created)]))
    inner = client.get(f"{CONFIGMAPS}/a")
    client.create(CONFIGMAPS, configmap("b", ownerReferences=[owner(inner)]))
    client.delete(f"{CHECKS}/one")
    eventually(lambda: client.names(CONFIGMAPS), [])


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_a_finalizer_delays_garbage_collection(client: Client) -> None:
    created = client.create(CHECKS, check("one"))
    client.create(CONFIGS, config("a", ownerReferences=[owner(created)], finalizers=["e.com/x"]))
    client.delete(f"{CHECKS}/one")
    eventually(lambda: "deletionTimestamp" in client.get(f"{CONFIGS}/a")["metadata"], True)


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_orphaned_dependents_stay(client: Client) -> None:
    created = client.create(CHECKS, check("one"))
    client.create(CONFIGS, config("a", ownerReferences=[owner(created)]))
    client.delete(f"{CHECKS}/one", {"propagationPolicy": "Orphan"})
    client.create(CHECKS, check("later"))
    assert "ownerReferences" not in client.get(f"{CONFIGS}/a")["metadata"]


@pytest.mark.embedded("a bare API server has no garbage collector")
@pytest.mark.parametrize(("policy", "stays"), [("", True), ("Background", False)])
def test_what_a_job_owns_stays_unless_its_deletion_says_otherwise(
    client: Client, policy: str, stays: bool
) -> None:
    """kubectl sends Background; Kubernetes' Python client sends no policy by default."""
    job = {"metadata": {"name": "train"}, "spec": {"template": {"spec": {"restartPolicy": "Never"}}}}
    created = client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job"} | job)
    client.create(CONFIGMAPS, configmap("a", ownerReferences=[owner(created)]))
    client.delete(f"{JOBS}/train", {"propagationPolicy": policy} if policy else None)
    client.create(CHECKS, check("later"))
    eventually(lambda: client.names(CONFIGMAPS), ["a"] if stays else [])


@pytest.mark.embedded("a bare API server has no namespace controller")
def test_deleting_a_namespace_deletes_its_content(client: Client) -> None:
    client.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    path = CONFIGMAPS.replace("default", "n")
    client.create(path, configmap("a"))
    client.create(path, configmap("held", finalizers=["e.com/x"]))
    assert client.delete("/api/v1/namespaces/n")["status"]["phase"] == "Terminating"
    eventually(lambda: client.names(path), ["held"])
    assert client.ask("POST", path, configmap("late")).status_code == 403
    assert client.names("/api/v1/namespaces?fieldSelector=status.phase=Terminating") == ["n"]
    client.patch(f"{path}/held", {"metadata": {"finalizers": None}})
    eventually(lambda: client.ask("GET", "/api/v1/namespaces/n").status_code, 404)


@pytest.mark.embedded("a bare API server has no namespace controller")
def test_an_empty_namespace_is_deleted_at_once(client: Client) -> None:
    client.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    client.delete("/api/v1/namespaces/n")
    eventually(lambda: client.ask("GET", "/api/v1/namespaces/n").status_code, 404)


@pytest.mark.embedded("a real API server refuses it with another message")
def test_a_secrets_plain_text_becomes_data(client: Client) -> None:
    path = "/api/v1/namespaces/default/secrets"
    created = client.create(
        path, {"metadata": {"name": "s"}, "stringData": {"k": "v"}, "data": {"o": "bw=="}}
    )
    assert (created["data"], created["type"], "stringData" in created) == (
        {"k": "dg==", "o": "bw=="},
        "Opaque",
        False,
    )
    bad = client.ask("POST", path, {"metadata": {"name": "t"}, "data": {"k": "no base64!"}})
    assert causes(bad) == [("FieldValueInvalid", "data.k")]
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "u"}, "stringData": {"k": "v"}}
    applied = client.applied(f"{path}/u", body)
    assert applied["data"] == {"k": "dg=="}
    assert applied["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {"f:k": {}}}


def test_a_new_pod_is_pending_until_a_kubelet_says_more(client: Client) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    created = client.create(pods, pod | {"status": {"phase": "Running"}})
    assert created["status"]["phase"] == "Pending"
    client.patch(f"{pods}/p/status", {"status": {"phase": "Succeeded"}})
    changed = client.patch(f"{pods}/p", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}})
    assert changed["status"]["phase"] == "Succeeded"


def test_several_versions_are_served(client: Client) -> None:
    client.create(CHECKS, check("a"))
    old = client.ask("GET", CHECKS.replace("v1beta2", "v1beta1"))
    assert old.json()["items"][0]["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert old.headers["Warning"] == '299 - "This version is deprecated. Use v1beta2 instead."'


def test_a_status_can_be_read(client: Client) -> None:
    client.create(CHECKS, check("a"))
    client.applied(f"{CHECKS}/a/status", status("a", condition()))
    assert client.get(f"{CHECKS}/a/status") == client.get(f"{CHECKS}/a")
