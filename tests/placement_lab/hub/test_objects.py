"""
Create, read, update and delete objects on the hub.

`tests/published/test_hub_replay.py` compares its answers with those of a real API server; these tests are of
what the recorded requests do not ask.
"""

import json
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest

from placement_lab.hub import options
from placement_lab.hub.errors import StatusError
from placement_lab.hub.patch import json_patch, merge_patch, strategic_patch
from placement_lab.structural_schema.schema_node import ANYTHING
from tests.placement_lab.hub.job_exchanges import JOBS, job
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
)

SPACES = "/api/v1/namespaces"
SECRETS = f"{SPACES}/default/secrets"


def causes(answer: Any) -> list[tuple[str, str]]:
    found = answer.json().get("details", {}).get("causes", [])
    return [(cause["reason"], cause["field"]) for cause in found]


@pytest.mark.embedded("a real API server refuses it with another message")
def test_bad_requests_are_refused(client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a"))
    no_map = {**config("x"), "metadata": {"name": "x", "labels": "no"}}
    requests: list[tuple[int, str, str, Any]] = [
        (400, "POST", CONFIGS, "[1]"),
        (400, "POST", CONFIGS, no_map),
        (400, "POST", CONFIGS, config("x", labels={"a": 1})),
        (400, "POST", CONFIGS, config("x", finalizers="no")),
        (400, "POST", CONFIGS, {**config("x"), "metadata": {"name": 5}}),
        (400, "POST", CONFIGS, {**config("x"), "metadata": 5}),
        (400, "POST", CONFIGS, {**config("x"), "apiVersion": "v1"}),
        (400, "POST", CONFIGMAPS, {**configmap("x"), "kind": "Secret"}),
        (400, "POST", CONFIGMAPS, configmap("x", namespace="other")),
        (400, "POST", "/api/v1/configmaps", configmap("x")),
        (422, "POST", f"{CONFIGS}?dryRun=Some", config("x")),
        (413, "POST", CONFIGMAPS, configmap("x", {"k": "x" * 4 * 2**20})),
        (422, "POST", CONFIGS, config("x", labels={"-": "v"})),
        (422, "POST", CONFIGS, config("x", labels={"a": "no value"})),
        (422, "POST", CONFIGS, config("x", annotations={"no name": "v"})),
        (405, "POST", f"{SPACES}/kube-system/status", {}),
        (405, "POST", f"{CONFIGS}/a", {}),
        (405, "DELETE", SPACES, None),
        (404, "POST", "/healthz", {}),
        (404, "GET", "/nothing", None),
        (404, "GET", "/apis/kueue.x-k8s.io/v9/multikueueconfigs", None),
        (404, "GET", f"{CONFIGS}/a/b/c", None),
        (404, "GET", f"{KUEUE}/namespaces/default/multikueueconfigs", None),
        (404, "GET", f"{CONFIGS}/a/scale", None),
        *((400, "GET", f"{CONFIGS}?{query}", None) for query in (
            "fieldSelector=spec.x=1", "fieldSelector=x", "resourceVersion=x", "continue=x",
        )),
        (422, "GET", f"{CONFIGS}?resourceVersionMatch=Exact", None),
        (400, "PUT", f"{CONFIGMAPS}/a", configmap("b")),
        (400, "PUT", f"{CONFIGMAPS}/a", configmap("a", namespace="other")),
        (409, "PUT", f"{CONFIGMAPS}/a", configmap("a", uid="other")),
        (404, "PUT", f"{CONFIGMAPS}/b", configmap("b")),
        (415, "PATCH", f"{CONFIGMAPS}/a", {}),
    ]  # fmt: skip
    for code, method, path, body in requests:
        assert client.ask(method, path, body).status_code == code, (method, path, str(body)[:200])
    cbor = client.ask("PUT", f"{CONFIGMAPS}/a", b"\xa0", Content_Type="application/cbor")
    assert cbor.status_code == 415


def test_a_body_may_have_three_megabytes(client: Client) -> None:
    """The hub refused one of more than 1 MiB."""
    body = json.dumps(configmap("large"))
    assert client.ask("POST", CONFIGMAPS, body.ljust(3 * 2**20)).status_code == 201
    refused = client.ask("POST", CONFIGMAPS, body.ljust(3 * 2**20 + 1))
    assert (refused.status_code, refused.json()["reason"]) == (413, "RequestEntityTooLarge")


def test_an_object_may_have_one_and_a_half_megabytes(client: Client) -> None:
    """As etcd takes it; the request may be larger."""
    before = client.create(CONFIGMAPS, configmap("large", {"k": "x" * (3 * 2**19 - 1000)}))
    for method, path, content in (
        ("POST", CONFIGMAPS, configmap("larger", {"k": "x" * 3 * 2**19})),
        ("PUT", f"{CONFIGMAPS}/large", before | {"data": {"k": "x" * 3 * 2**19}}),
    ):
        refused = client.ask(method, path, content)
        assert (refused.status_code, refused.json()["message"]) == (500, "etcdserver: request is too large")
    assert client.get(f"{CONFIGMAPS}/large") == before
    assert client.names(CONFIGMAPS) == ["large"]


def test_server_set_fields_cannot_be_changed(client: Client) -> None:
    created = client.create(CONFIGS, config("a"))
    meta = created["metadata"] | {"generation": 9, "creationTimestamp": "2020-01-01T00:00:00Z"}
    assert client.ok("PUT", f"{CONFIGS}/a", {**created, "metadata": meta}) == created


def test_a_write_without_changes_keeps_the_version(client: Client) -> None:
    created = client.create(CONFIGS, config("a", labels={"x": "y"}))
    assert client.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"x": "y"}}}) == created
    assert client.ok("PUT", f"{CONFIGS}/a", created) == created
    applied = client.applied(f"{CONFIGS}/b", config("b"))
    assert client.applied(f"{CONFIGS}/b", config("b")) == applied


@pytest.mark.parametrize("path", [CONFIGS, CONFIGMAPS])
def test_null_in_labels_and_annotations_is_empty_text(client: Client, path: str) -> None:
    given = {"labels": {"a": None, "b": "c"}, "annotations": {"d": None}}
    wanted = {"labels": {"a": "", "b": "c"}, "annotations": {"d": ""}}
    body = config if path == CONFIGS else configmap
    new = client.create(path, body("x", **given))
    replaced = client.ok("PUT", f"{path}/x", new | {"metadata": new["metadata"] | given})
    applied = client.applied(f"{path}/y", body("y", **given))
    assert [{key: one["metadata"][key] for key in given} for one in (new, replaced, applied)] == [wanted] * 3


def test_a_dry_run_changes_nothing(client: Client) -> None:
    client.create(f"{CONFIGS}?dryRun=All", config("a"))
    assert client.names(CONFIGS) == []
    created = client.create(CONFIGS, config("a"))
    client.patch(f"{CONFIGS}/a?dryRun=All", {"spec": {"clusters": ["b"]}})
    assert client.delete(f"{CONFIGS}/a?dryRun=All")["status"] == "Success"
    assert client.get(f"{CONFIGS}/a") == created


def test_a_put_on_the_status_changes_nothing_else(client: Client) -> None:
    live = client.create(CHECKS, check("a"))
    body = {**live, "spec": {"controllerName": "x"}, "status": {"conditions": [condition()]}}
    body["metadata"] = live["metadata"] | {"labels": {"not": "kept"}}
    done = client.ok("PUT", f"{CHECKS}/a/status", body)
    assert (done["spec"], done["status"]) == (live["spec"], {"conditions": [condition()]})
    assert ("labels" in done["metadata"], done["metadata"]["generation"]) == (False, 1)
    assert client.patch(f"{CHECKS}/a", {"status": None})["status"] == done["status"]
    assert "status" not in client.patch(f"{CHECKS}/a/status", {"status": None})


# -- patches


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"k": None, "n": "1"}, {"n": "1", "o": "w"}),
        ({"k": {"a": None, "b": "1"}}, {"k": {"b": "1"}, "o": "w"}),
    ],
)
def test_merge_patches(patch: Any, expected: Any) -> None:
    assert merge_patch({"k": "v", "o": "w"}, patch) == expected


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/data/a~1b", "value": "1"}], {"k": "v", "o": "w", "a/b": "1"}),
        ([{"op": "remove", "path": "/data/k"}], {"o": "w"}),
        ([{"op": "replace", "path": "/data/k", "value": "z"}], {"k": "z", "o": "w"}),
        ([{"op": "move", "from": "/data/k", "path": "/data/m"}], {"m": "v", "o": "w"}),
        ([{"op": "copy", "from": "/data/k", "path": "/data/m"}], {"k": "v", "o": "w", "m": "v"}),
        ([{"op": "test", "path": "/data/k", "value": "v"}], {"k": "v", "o": "w"}),
        ({}, 400),
        ([1], 400),
        ([{"op": "jump", "path": "/data"}], 422),
        ([{"op": "remove", "path": "/data/none"}], 422),
        ([{"op": "remove", "path": "data"}], 422),
        ([{"op": "test", "path": "/data/k", "value": "w"}], 422),
        ([{"op": "replace", "path": "/data/none/x", "value": 1}], 422),
    ],
)
def test_json_patches(operations: Any, expected: Any) -> None:
    value = {"data": {"k": "v", "o": "w"}}
    try:
        found = json_patch(value, operations)["data"]
    except StatusError as error:
        found = error.code
    assert (found, value) == (expected, {"data": {"k": "v", "o": "w"}})


@pytest.mark.parametrize(
    ("start", "operation", "expected"),
    [
        ("x", {"op": "add", "path": "/-", "value": "y"}, "xy"),
        ("x", {"op": "add", "path": "/0", "value": "y"}, "yx"),
        ("xy", {"op": "remove", "path": "/0"}, "y"),
        ("xy", {"op": "replace", "path": "/1", "value": "z"}, "xz"),
    ],
)
def test_json_patches_of_lists(start: str, operation: Any, expected: str) -> None:
    assert "".join(json_patch(list(start), [operation])) == expected


@pytest.mark.embedded("a real API server refuses it with another message")
def test_a_json_patch_may_not_replace_the_object_nor_miss_a_field(client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a"))

    def code(operation: Any) -> int:
        kind = {"Content_Type": "application/json-patch+json"}
        return client.ask("PATCH", f"{CONFIGMAPS}/a", [operation], **kind).status_code

    assert code({"op": "replace", "path": "", "value": 1}) == 400
    assert code({"op": "remove", "path": "/metadata/managedFields/9"}) == 422


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"k": None}, {"o": "w"}),
        ({"$patch": "replace", "z": "1"}, {"z": "1"}),
        ({"$retainKeys": ["k", "z"], "z": "1"}, {"k": "v", "z": "1"}),
    ],
)
def test_strategic_patches(patch: Any, expected: Any) -> None:
    assert strategic_patch(ANYTHING, {"k": "v", "o": "w"}, patch) == expected


def test_a_strategic_patch_merges_lists_by_their_keys(client: Client) -> None:
    owners = [{"apiVersion": "v1", "kind": "Unserved", "name": name, "uid": name} for name in "ab"]
    client.create(CONFIGMAPS, configmap("a", ownerReferences=owners, finalizers=["e.com/x"]))

    def patched(**metadata: Any) -> Any:
        return client.patch(f"{CONFIGMAPS}/a", {"metadata": metadata}, "strategic")["metadata"]

    done = patched(
        ownerReferences=[{"uid": "a", "$patch": "delete"}, {"uid": "b", "controller": True}],
        **{"$deleteFromPrimitiveList/finalizers": ["e.com/x"]},
        **{"$setElementOrder/ownerReferences": [{"uid": "b"}]},
    )
    assert done["ownerReferences"] == [{**owners[1], "controller": True}]
    assert "finalizers" not in done
    assert patched(finalizers=["e.com/y"])["finalizers"] == ["e.com/y"]
    assert patched(ownerReferences=[{"$patch": "replace"}, owners[0]])["ownerReferences"] == owners[:1]
    order = {"ownerReferences": [owners[1]], "$setElementOrder/ownerReferences": [{"uid": "b"}]}
    assert patched(**order)["ownerReferences"] == [owners[1], owners[0]]


# -- lists


def test_label_selectors(client: Client) -> None:
    labels = {"one": {"tier": "a", "rank": "1"}, "two": {"tier": "b", "rank": "2"}}
    for name in ("one", "two", "three"):
        given = labels.get(name, {"example.com/x": "y", "rank": "z"})
        client.create(CONFIGMAPS, configmap(name, labels=given))
    wanted = {
        "": ["one", "three", "two"],
        "tier==a": ["one"],
        "tier!=a": ["three", "two"],
        "tier in (a, b)": ["one", "two"],
        "tier notin (a)": ["three", "two"],
        "!tier": ["three"],
        "rank>1,tier": ["two"],
        "rank<2": ["one"],
        "example.com/x=y": ["three"],
    }
    assert {text: client.names(f"{CONFIGMAPS}?labelSelector={quote(text)}") for text in wanted} == wanted


def test_field_selectors(client: Client) -> None:
    for name in ("a", "b"):
        client.create(CONFIGMAPS, configmap(name, labels={"x": "y"}))
    wanted = {
        "metadata.name=a": ["a"],
        "metadata.name=a,": ["a"],
        "metadata.name=none": [],
        "metadata.name==b": ["b"],
        "metadata.name!=a": ["b"],
        "metadata.namespace=default": ["a", "b"],
        "metadata.name=a,metadata.namespace=other": [],
    }
    assert {
        text: client.names(f"{CONFIGMAPS}?fieldSelector={quote(text)}&labelSelector=x") for text in wanted
    } == wanted


@pytest.mark.parametrize(
    ("parameters", "are_true"),
    [
        ("", False),
        ("x=0", False),
        ("x=False", False),
        ("x=true", True),
        ("x=True", True),
        ("x=1", True),
        ("x=", True),
    ],
)
def test_boolean_parameters(parameters: str, are_true: bool) -> None:
    """Clients in Python write `True`, and as Kubernetes reads it, `x=` is true."""
    assert bool(options.flag(dict(parse_qsl(parameters, keep_blank_values=True)), "x")) is are_true


def test_events_can_be_selected_by_their_object(client: Client) -> None:
    path = f"{SPACES}/default/events"
    for name in ("a", "b"):
        of = {"involvedObject": {"kind": "X", "name": name}, "source": {"component": "c"}}
        client.create(path, {"metadata": {"name": name}} | of)
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
    found = [(item["metadata"]["name"], item["data"]) for item in rest["items"]]
    assert found == [("c", {"k": "v"}), ("d", {"k": "v"})]
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


# -- garbage collection


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_a_dependent_is_deleted_with_its_last_owner(client: Client) -> None:
    first, second = (client.create(CHECKS, check(name)) for name in ("one", "two"))
    client.create(CONFIGS, config("a", ownerReferences=[owner(first), owner(second)]))
    client.create(CONFIGMAPS, configmap("b", ownerReferences=[owner(first)]))
    inner = client.get(f"{CONFIGMAPS}/b")
    client.create(CONFIGMAPS, configmap("c", ownerReferences=[owner(inner)]))
    client.delete(f"{CHECKS}/one")
    eventually(lambda: client.get(f"{CONFIGS}/a")["metadata"]["ownerReferences"], [owner(second)])
    eventually(lambda: client.names(CONFIGMAPS), [])
    client.delete(f"{CHECKS}/two")
    eventually(lambda: client.names(CONFIGS), [])


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_owners_are_identified_by_uid_when_they_are_written(client: Client) -> None:
    created = client.create(CHECKS, check("one"))
    another = {**owner(created), "uid": "another"}
    client.create(CONFIGS, config("a", ownerReferences=[another]))
    eventually(lambda: client.names(CONFIGS), [])
    client.create(CONFIGS, config("a", ownerReferences=[owner(created)]))
    client.patch(f"{CONFIGS}/a", {"metadata": {"ownerReferences": [another]}})
    eventually(lambda: client.names(CONFIGS), [])


def test_an_owner_of_an_unknown_kind_is_ignored(client: Client) -> None:
    reference = {"apiVersion": "nobody.com/v1", "kind": "Nothing", "name": "x", "uid": "x"}
    client.create(CONFIGS, config("a", ownerReferences=[reference]))
    namespaced = {"apiVersion": "v1", "kind": "Secret", "name": "x", "uid": "y"}
    client.create(CONFIGS, config("b", ownerReferences=[namespaced]))
    client.create(CHECKS, check("later"))
    assert client.names(CONFIGS) == ["a", "b"]


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
    created = client.create(JOBS, job("train"))
    client.create(CONFIGMAPS, configmap("a", ownerReferences=[owner(created)]))
    client.delete(f"{JOBS}/train", {"propagationPolicy": policy} if policy else None)
    client.create(CHECKS, check("later"))
    eventually(lambda: client.names(CONFIGMAPS), ["a"] if stays else [])


@pytest.mark.embedded("a bare API server has no namespace controller")
def test_deleting_a_namespace_deletes_its_content(client: Client) -> None:
    client.create(SPACES, {"metadata": {"name": "n"}})
    path = CONFIGMAPS.replace("default", "n")
    client.create(path, configmap("a"))
    client.create(path, configmap("held", finalizers=["e.com/x"]))
    assert client.delete(f"{SPACES}/n")["status"]["phase"] == "Terminating"
    eventually(lambda: client.names(path), ["held"])
    assert client.ask("POST", path, configmap("late")).status_code == 403
    assert client.names(f"{SPACES}?fieldSelector=status.phase=Terminating") == ["n"]
    client.patch(f"{path}/held", {"metadata": {"finalizers": None}})
    eventually(lambda: client.ask("GET", f"{SPACES}/n").status_code, 404)


# -- kinds with rules of their own


@pytest.mark.embedded("a real API server refuses it with another message")
def test_a_secrets_plain_text_becomes_data(client: Client) -> None:
    given = {"metadata": {"name": "s"}, "stringData": {"k": "v"}, "data": {"o": "bw=="}}
    created = client.create(SECRETS, given)
    assert (created["data"], created["type"]) == ({"k": "dg==", "o": "bw=="}, "Opaque")
    assert "stringData" not in created
    bad = client.ask("POST", SECRETS, {"metadata": {"name": "t"}, "data": {"k": "no base64!"}})
    assert bad.status_code == 400
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "u"}, "stringData": {"k": "v"}}
    applied = client.applied(f"{SECRETS}/u", body)
    assert applied["data"] == {"k": "dg=="}
    assert applied["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {"f:k": {}}}


def test_a_new_pod_is_pending_until_a_kubelet_says_more(client: Client) -> None:
    pods = f"{SPACES}/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    created = client.create(pods, pod | {"status": {"phase": "Running"}})
    assert created["status"]["phase"] == "Pending"
    client.patch(f"{pods}/p/status", {"status": {"phase": "Succeeded"}})
    changed = client.patch(f"{pods}/p", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}})
    assert changed["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/apis/apps/v1/namespaces/default/deployments", {}),
        ("/api/v1/nodes", {}),
        ("/api/v1/namespaces/default/services", {"loadBalancer": {}}),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
        ),
    ],
    ids=lambda one: one.rpartition("/")[2] if isinstance(one, str) else "",
)
@pytest.mark.embedded("an API server refuses objects with an empty spec, and says more of a node")
def test_a_new_built_in_object_has_a_status(client: Client, path: str, status: dict[str, Any]) -> None:
    """As a real server encodes it: clients read fields of the status without a look."""
    assert client.create(path, {"metadata": {"name": "n"}, "spec": {}})["status"] == status


def test_an_old_version_is_served_with_a_warning(client: Client) -> None:
    client.create(CHECKS, check("a"))
    old = client.ask("GET", CHECKS.replace("v1beta2", "v1beta1"))
    assert old.json()["items"][0]["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert old.headers["Warning"] == '299 - "This version is deprecated. Use v1beta2 instead."'
