"""The basis of the reading commands: dumps, files, the settings of the controller that runs, the view."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_placement.hub.controller_settings import find_settings
from kubectl_placement.hub.dump import Dump, InvalidManifest, MissingRight
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.readers.manifests import MAX_LEVELS, read_dump, read_manifests
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    PLACEMENT,
    SECRET,
    SET_BINDING,
    WORKLOAD,
)
from placement_ac.core.api.errors import BadSettings
from placement_ac.core.plan.diff import diff
from tests.support.builders import NOW, Raw, check, decision, our_objects, placement, profile, secret, secrets


def view_of(*objects: Raw, **settings: Any) -> HubView:
    return HubView(dump_of(objects), Settings(**settings), NOW)


# -- files

TOO_DEEP = "remove the levels beyond 200, or the alias by which it contains itself: it is nested too deeply"


def levels(number: int) -> str:
    """Return so many maps, one in the other."""
    return "{a: " * (number - 1) + "{}" + "}" * (number - 1)


def nested(*fields: str, metadata: str = "") -> str:
    return "\n".join(["apiVersion: v1", "kind: Secret", f"metadata: {{name: a, {metadata}}}", *fields])


def test_a_folder_a_list_and_json_all_give_objects(tmp_path: Path) -> None:
    one, two, three = ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": n}} for n in "abc")
    (tmp_path / "1.yaml").write_text(
        yaml.safe_dump_all([{"apiVersion": "v1", "kind": "List", "items": [one]}, None])
    )
    (tmp_path / "2.json").write_text(json.dumps({"apiVersion": "v1", "kind": "SecretList", "items": [two]}))
    bare = {"metadata": {"name": "d"}}
    (tmp_path / "3.yml").write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "SecretList", "items": [bare]})
    )
    (tmp_path / "README").write_text("not read")
    assert read_manifests([str(tmp_path)]) == [one, two, {"apiVersion": "v1", "kind": "Secret"} | bare]
    (tmp_path / "4.yaml").write_text(yaml.safe_dump(three))
    assert read_manifests([str(tmp_path / "4.yaml")]) == [three]


def test_null_in_labels_of_a_dump_is_empty_text(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(
        "{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: ns, labels: {a: , b: c}}}"
    )
    [read] = read_dump([str(tmp_path)]).of(SECRET)
    assert read["metadata"]["labels"] == {"a": "", "b": "c"}


def test_stdin_is_read_and_a_time_stays_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "{apiVersion: v1, kind: Secret, metadata: {name: a, creationTimestamp: 2026-01-01T00:00:00Z}}"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    (found,) = read_manifests(["-"])
    assert found["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: [", "it is not YAML: line ", id="no YAML"),
        pytest.param("a: \x00", "it is not YAML", id="no text"),
        pytest.param("- 1", "a document has no kind, so it is no Kubernetes object", id="a list"),
        pytest.param(
            "{kind: Secret, metadata: {name: a}}", "the Secret has no apiVersion", id="no apiVersion"
        ),
        pytest.param("{kind: Secret, apiVersion: v1}", "the Secret has no metadata.name", id="no name"),
        pytest.param("{kind: List, apiVersion: v1, items: [1]}", "has no kind", id="a list of numbers"),
        pytest.param("[" * 5000, "it is ", id="too deep"),
        pytest.param("&a {kind: List, apiVersion: v1, items: [*a]}", TOO_DEEP, id="a List in itself"),
        pytest.param(
            nested(metadata=f"managedFields: [{{fieldsV1: {levels(2000)}}}]"), TOO_DEEP, id="fields"
        ),
        pytest.param(nested(f"spec: {levels(MAX_LEVELS)}"), TOO_DEEP, id="one level too many"),
        pytest.param(nested("spec: &a {b: [*a]}"), TOO_DEEP, id="a spec in itself"),
        pytest.param(nested("spec: &a !!pairs [b: *a]"), TOO_DEEP, id="pairs in themselves"),
    ],
)
def test_a_bad_manifest_is_named(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(InvalidManifest, match=r"x\.yaml: ") as bad:
        read_manifests([str(file)])
    assert expected in str(bad.value)


def test_an_alias_that_leads_to_no_circle_is_resolved(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(nested(f"spec: {levels(MAX_LEVELS - 1)}", "data: &a {b: c}", "other: [*a, *a]"))
    (found,) = read_manifests([str(file)])
    assert found["other"] == [found["data"]] * 2


def test_aliases_that_stand_for_far_more_than_the_text_are_refused(tmp_path: Path) -> None:
    """A few more of these lines stand for billions of values, which every reader would visit."""
    tenfold = (f"l{n + 1}: &l{n + 1} [{', '.join([f'*l{n}'] * 10)}]" for n in range(4))
    file = tmp_path / "x.yaml"
    file.write_text(nested("l0: &l0 [a]", *tenfold))
    with pytest.raises(InvalidManifest, match="it has far more aliases than text"):
        read_manifests([str(file)])


@pytest.mark.parametrize("value", ["!s3cret", "*s3cret", "'s3cret\n", "s3cret: s3cret: 1", "%s3cret"])
def test_an_error_about_invalid_yaml_quotes_no_secret(tmp_path: Path, value: str) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text(f"kind: Secret\nstringData:\n  password: {value}\n")
    with pytest.raises(InvalidManifest, match=r"it is not YAML: line \d+: ") as bad:
        read_manifests([str(file)])
    assert "s3cret" not in str(bad.value)


def test_a_file_that_is_not_there_and_a_folder_without_manifests(tmp_path: Path) -> None:
    for name, output in ((str(tmp_path / "none"), "No such file"), (str(tmp_path), "no file in it ends in")):
        with pytest.raises(InvalidManifest, match=output):
            read_manifests([name])


# -- dumps


def test_a_dump_knows_which_kinds_it_contains() -> None:
    dump = dump_of(
        [placement("p"), *secrets("a"), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}]
    )
    assert [obj["metadata"]["name"] for obj in dump.of(SECRET)] == ["multikueue-a"]
    assert dump.find(PLACEMENT, "p", "kueue-system") == placement("p")
    assert dump.find(PLACEMENT, "p") is None
    assert (dump.knows(SECRET), dump.knows(WORKLOAD), dump.of(WORKLOAD)) == (True, False, ())
    assert dump.served[PLACEMENT].version == "v1beta1"


def test_the_repr_of_a_dump_shows_no_object() -> None:
    one = secret("cluster1")
    assert one["data"]["kubeconfig"] not in repr(view_of(one))


@pytest.mark.parametrize(
    ("right", "expected", "question"),
    [
        (
            MissingRight("list", SECRET, "ns"),
            "list secrets in namespace ns",
            "kubectl auth can-i list secrets -n ns",
        ),
        (
            MissingRight("list", SET_BINDING),
            "list managedclustersetbindings.cluster.open-cluster-management.io",
            "kubectl auth can-i list managedclustersetbindings.cluster.open-cluster-management.io -A",
        ),
        (
            MissingRight("list", CLUSTER_QUEUE),
            "list clusterqueues.kueue.x-k8s.io",
            "kubectl auth can-i list clusterqueues.kueue.x-k8s.io",
        ),
    ],
    ids=["in a namespace", "in all", "cluster-scoped"],
)
def test_a_missing_right_and_how_to_ask_for_it(right: MissingRight, expected: str, question: str) -> None:
    assert (str(right), right.check_command) == (expected, question)


# -- the settings of the controller that runs


def deployment(*, args: list[str] | None = None, env: dict[str, str] | None = None, **container: Any) -> Raw:
    one = {"name": "controller", "args": ["run", *(args or [])]} | container
    one["env"] = [{"name": name, "value": value} for name, value in (env or {}).items()]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "placement-ac",
            "namespace": "placement-ac-system",
            "labels": {"app.kubernetes.io/name": "placement-ac"},
        },
        "spec": {"template": {"spec": {"containers": [{"name": "sidecar"}, one]}}},
    }


def config_map(text: str) -> Raw:
    metadata = {"name": "placement-ac", "namespace": "placement-ac-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": text}}


OURS = "placement-ac-system/placement-ac"
FROM_A_FILE = [
    deployment(args=["--config=/etc/placement-ac/config.yaml"]),
    config_map("placements: {namespaces: [f, g]}\nkubeconfig: /of/the/pod"),
]


@pytest.mark.parametrize(
    ("objects", "given", "namespaces"),
    [
        pytest.param([], "", ("kueue-system",), id="no controller"),
        pytest.param([], "a,b", ("a", "b"), id="given alone"),
        pytest.param(
            [deployment(args=["--placement-namespace=x", "--log-level", "debug"])],
            "",
            ("x",),
            id="an argument",
        ),
        pytest.param(
            [deployment(args=["--placement-namespace", "y"])], "", ("y",), id="an argument of two words"
        ),
        pytest.param(
            [deployment(env={"PLACEMENT_AC_PLACEMENT_NAMESPACE": "v", "OTHER": "w"})],
            "",
            ("v",),
            id="a variable",
        ),
        pytest.param(FROM_A_FILE, "", ("f", "g"), id="its file"),
        pytest.param(
            [deployment(args=["--placement-namespace=x"])], "mine", ("mine",), id="given counts first"
        ),
    ],
)
def test_the_settings_are_those_of_the_controller(
    objects: list[Raw], given: str, namespaces: tuple[str, ...]
) -> None:
    found = find_settings(dump_of(objects), {"placement_namespace": given} if given else {})
    settings, where = found.loaded.settings, OURS if objects else ""
    assert (settings.placement_namespace, found.deployment, found.problem) == (namespaces, where, "")
    assert settings.kubeconfig is None


@pytest.mark.parametrize(
    ("labels", "image", "is_ours"),
    [
        pytest.param({"app.kubernetes.io/name": "placement-ac"}, "r/mirror:1", True, id="our name"),
        pytest.param(
            {"app.kubernetes.io/name": "admission", "app.kubernetes.io/part-of": "placement-ac"},
            "r/mirror:1",
            True,
            id="a chart with another name",
        ),
        pytest.param({}, "r:5000/team/placement-ac:v1", True, id="our image without labels"),
        pytest.param(
            {"app.kubernetes.io/name": "ingress-nginx", "app.kubernetes.io/part-of": "ingress-nginx"},
            "registry.k8s.io/ingress-nginx/controller:v1.13.0",
            False,
            id="another controller",
        ),
        pytest.param({}, "r/not-placement-ac:1", False, id="an image that ends alike"),
    ],
)
def test_a_container_named_controller_makes_no_deployment_ours(
    labels: Raw, image: str, is_ours: bool
) -> None:
    one = deployment(args=["--placement-namespace=x"], image=image)
    one["metadata"]["labels"] = labels
    found = find_settings(dump_of([one]), {})
    expected = (("x",), OURS) if is_ours else (("kueue-system",), "")
    assert (found.loaded.settings.placement_namespace, found.deployment) == expected


def test_the_settings_file_is_in_the_config_map_that_is_mounted() -> None:
    """Of a Helm release with another name."""
    there = deployment(args=["--config=/etc/placement-ac/config.yaml"])
    there["spec"]["template"]["spec"]["volumes"] = [
        {"name": "config", "configMap": {"name": "hub-placement-ac"}}
    ]
    file = config_map("placements: {namespaces: here}")
    file["metadata"]["name"] = "hub-placement-ac"
    assert find_settings(dump_of([there, file]), {}).loaded.settings.placement_namespace == ("here",)


def test_unreadable_settings_are_reported_and_the_defaults_used() -> None:
    missing = find_settings(dump_of([deployment(args=["--config=/etc/c.yaml"])]), {})
    assert "cannot read the settings file" in missing.problem
    bad = find_settings(dump_of([deployment(env={"PLACEMENT_AC_CREDENTIALS": "vault"})]), {})
    assert "PLACEMENT_AC_CREDENTIALS: 'vault' is not possible" in bad.problem
    assert missing.loaded.settings == bad.loaded.settings == Settings()


def test_a_settings_file_that_is_given_counts_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("placements: {namespaces: here}")
    found = find_settings(dump_of([deployment(args=["--placement-namespace=x"])]), {"config": file})
    assert (found.loaded.settings.placement_namespace, found.deployment) == (("here",), "")
    with pytest.raises(BadSettings, match="placement-namespace: '-' is not possible"):
        find_settings(dump_of([]), {"placement_namespace": "-"})


# -- the view


def test_a_hub_that_is_right_calls_for_no_write() -> None:
    view = view_of(check(), placement(selected=1), decision("a"), *secrets("a"), *our_objects("a"))
    assert [one.cluster for one in view.targets("p").to_list] == ["a"]
    assert [action.kind.kind for phase in diff(view.snapshot("p"), view.plan("p")) for action in phase] == [
        "AdmissionCheck"
    ]


def test_credentials_that_are_not_known_count_as_usable() -> None:
    view = view_of(check(), placement(selected=2), decision("a", "b"))
    assert not view.credentials_known
    assert [one.cluster for one in view.targets("p").to_list] == ["a", "b"]
    output = view_of(check(), placement(selected=2), decision("a", "b"), *secrets("a"))
    assert [one.cluster for one in output.targets("p").to_list] == ["a"]


@pytest.mark.parametrize(
    ("held", "ways", "expected"),
    [
        pytest.param([secret("s")], "", "", id="Secrets, and no ClusterProfile is there"),
        pytest.param([profile("a")], "", "unknown: the dump holds no secrets", id="Secrets were left out"),
        pytest.param([profile("a")], "access-provider", "", id="no way leads over Secrets"),
        pytest.param(
            [secret("s")],
            "access-provider",
            f"unknown: the dump holds no {CLUSTER_PROFILE}",
            id="the only way leads over ClusterProfiles",
        ),
    ],
)
def test_credentials_are_known_where_each_way_to_them_is(held: list[Raw], ways: str, expected: str) -> None:
    given = {"credentials": ways} if ways else {}
    assert HubView(dump_of(held), Settings(**given), NOW).credentials_unknown == expected


def test_a_right_that_no_way_needs_hides_no_credentials() -> None:
    missing = (MissingRight("list", CLUSTER_PROFILE),)
    dump = Dump({SECRET: (), CLUSTER_PROFILE: ()}, {}, missing, live=True)
    by_name = HubView(dump, Settings(credentials="secret"), NOW)
    assert (by_name.credentials_known, HubView(dump, Settings(), NOW).credentials_known) == (True, False)


def test_waits_of_the_controller_have_passed_in_a_view() -> None:
    """A cluster in no decision any more is not waited for, as it would be in the first two seconds."""
    objects = [check(), placement(selected=1), decision("a"), *secrets("a", "b"), *our_objects("a", "b")]
    view = view_of(*objects)
    assert [one.cluster for one in view.targets("p").to_list] == ["a"]
    wanted = view.plan("p").config
    assert wanted is not None
    assert wanted.clusters == ("p-a",)


def test_the_first_namespace_that_has_the_placement_counts() -> None:
    objects = [placement("p", namespace="b"), placement("p", namespace="c")]
    view = view_of(*objects, placement_namespace=("a", "b", "c"))
    assert view.placement("p") == objects[0]
    assert view.placement("q") is None


@pytest.mark.parametrize(
    ("number", "read"),
    [
        ("7", 7),
        (f"{2**63 - 1}", 2**63 - 1),
        (f"{2**64}", float(2**64)),
        ("1.0", 1),
        ("1e3", 1000),
        ("-1.5e0", -1.5),
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_json_is_read_as_go_reads_it(tmp_path: Path, number: str, read: object, times: int) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "n": "N"}
    (tmp_path / "a.json").write_text(json.dumps(secret).replace('"N"', number) * times)
    read_back = [obj["n"] for obj in read_manifests([str(tmp_path / "a.json")])]
    assert list(map(repr, read_back)) == [repr(read)] * times


@pytest.mark.parametrize(("value", "read"), [("NaN", "NaN"), ("1e999", "1e999"), ("9" * 400, "9" * 400)])
def test_numbers_that_json_does_not_have_are_read_as_yaml(tmp_path: Path, value: str, read: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "n": "N"}
    (tmp_path / "a.json").write_text(json.dumps(secret).replace('"N"', value))
    assert read_manifests([str(tmp_path / "a.json")])[0]["n"] == read


@pytest.mark.parametrize(("escaped", "is_text"), [(r"\ud83d\ude00", True), (r"\ud83d", False)])
def test_half_a_pair_of_surrogates_is_refused(tmp_path: Path, escaped: str, is_text: bool) -> None:
    text = '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "n": "N"}'
    (tmp_path / "a.json").write_text(text.replace("N", escaped))
    if is_text:
        assert read_manifests([str(tmp_path / "a.json")])[0]["n"] == "\U0001f600"
    else:
        with pytest.raises(InvalidManifest):
            read_manifests([str(tmp_path / "a.json")])
