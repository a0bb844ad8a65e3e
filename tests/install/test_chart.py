"""The Helm chart, rendered with Helm: the same objects as config/, and Helm's conventions."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

from placement_ac.config.layout import BY_PATH, PATHS, as_file
from placement_ac.core.api.durations import parse_seconds
from tests.support import chart
from tests.support.admission_policy import policy
from tests.support.chart import CHART, GIVEN, HOOK, comparable, files, helm, merged, template
from tests.support.installation import (
    NAME,
    NAMESPACE,
    OVERLAYS,
    ROOT,
    Object,
    controller_of,
    environment_of,
    kubectl,
    of,
    pod_of,
    pyproject,
)
from website import chart as generated

pytestmark = pytest.mark.long

MODES = [overlay.rpartition("/")[2] for overlay in OVERLAYS]

# -- the same as config/


@pytest.mark.parametrize("overlay", OVERLAYS, ids=MODES)
def test_the_objects_are_those_of_kustomize(overlay: str, tmp_path: Path) -> None:
    values = chart.mode_values(overlay.rpartition("/")[2])
    assert comparable(template(values)) == comparable(chart.kustomized(overlay, tmp_path))


def test_each_overlay_has_its_values() -> None:
    there = {path.name.removesuffix("-values.yaml") for path in (CHART / "ci").iterdir()}
    assert there == {*MODES} - {"default"}


PAGE = (ROOT / "docs" / "install.md").read_text("utf-8")
OVERLAYS_IN_THE_PAGE = re.findall(r"```yaml\n(# kustomization.yaml\n.*?)```", PAGE, re.DOTALL)
(OPENSHIFT_VALUES_IN_THE_PAGE,) = re.findall(r"```yaml\n(podSecurityContext:\n.*?)```", PAGE, re.DOTALL)
(VALUES_IN_THE_PAGE,) = re.findall(r"```yaml\n(# my-values.yaml\n.*?)```", PAGE, re.DOTALL)


SAME_VALUES: list[Object] = [
    yaml.safe_load(VALUES_IN_THE_PAGE),
    {"kueue": {"namespace": "kueue"}},
    {},
    chart.mode_values("cluster-profile"),
    yaml.safe_load(OPENSHIFT_VALUES_IN_THE_PAGE),
    {"networkPolicy": {"apiServerPorts": [443, 6443, 9092]}},
]


@pytest.mark.parametrize(
    ("overlay", "values"),
    [*zip(OVERLAYS_IN_THE_PAGE, SAME_VALUES, strict=True)],
    ids=["own", "kueue", "namespace", "plugin", "openshift", "network"],
)
def test_the_overlays_in_the_page_have_values(overlay: str, values: Object, tmp_path: Path) -> None:
    (tmp_path / "placement-ac").symlink_to(ROOT)
    (tmp_path / "mine").mkdir()
    body = yaml.safe_load(overlay)
    body["images"] = chart.images("overlays/cluster-profile")
    (tmp_path / "mine" / "kustomization.yaml").write_text(yaml.safe_dump(body))
    wanted = list(yaml.safe_load_all(kubectl("kustomize", str(tmp_path / "mine"))))
    given = merged(values, {"image": {"repository": chart.IMAGE, "tag": chart.TAG}})
    namespace = "hub-tools" if "hub-tools" in overlay else NAMESPACE
    assert comparable(template(given, namespace=namespace)) == comparable(wanted)


def test_modes_go_together(tmp_path: Path) -> None:
    """`-f production-values.yaml -f provisioning-values.yaml`, as the page says."""
    components = ("provisioning", "provisioned-kubeconfigs", "dispatcher", "shared-names")
    body = {
        "resources": ["placement-ac/config/default"],
        "components": [f"placement-ac/config/components/{name}" for name in components],
        "images": chart.images("default"),
    }
    (tmp_path / "placement-ac").symlink_to(ROOT)
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(body))
    wanted = list(yaml.safe_load_all(kubectl("kustomize", str(tmp_path))))
    both = merged(chart.mode_values("production"), chart.mode_values("provisioning"))
    assert comparable(template(both)) == comparable(wanted)


@pytest.mark.parametrize("namespace", ["kueue-system", "leases", "default"])
def test_it_can_be_installed_beside_kueue(namespace: str) -> None:
    """In a namespace for several things nothing has the name of another object."""
    objects = template(EVERYTHING | {"kueue": {}, "placements": {}}, namespace=namespace)
    assert len({chart.key_of(obj) for obj in objects}) == len(objects)


def test_another_release_differs_by_its_name_alone() -> None:
    text = json.dumps(template(EVERYTHING, "hub"))
    renamed = json.loads(text.replace(f"hub-{NAME}", NAME))
    assert comparable(renamed) == comparable(template(EVERYTHING))
    assert text.count(f"hub-{NAME}") > 20


# -- with other values

EVERYTHING: Object = {
    "image": {"tag": "", "digest": f"sha256:{'1' * 64}", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "pull"}],
    "replicaCount": 1,
    "kueue": {"namespace": "kueue"},
    "placements": {"namespaces": ["team-a"]},
    "dispatcher": {"enabled": True},
    "clusterNames": "{cluster}",
    "probing": {"enabled": True},
    "workerSetup": {"enabled": True, "template": "queues"},
    "scores": {"enabled": True},
    "credentials": {"provision": "managed-serviceaccount", "form": "cluster-profile", "account": "hub"},
    "clusterProfiles": {
        "enabled": True,
        "plugins": [{"name": "p", "path": "/bin/p", "image": {"repository": "r/p", "digest": chart.DIGEST}}],
        "egressPorts": [9443],
    },
    "config": {
        "metrics": {"bindAddress": ":9080"},
        "removal": {"drainDeadline": "2h"},
        "logging": {"level": "debug"},
        "leaderElection": {"resourceName": "lease", "resourceNamespace": "leases"},
    },
    "extraArgs": ["--log-level=debug"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "ca", "secret": {"secretName": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
    "serviceAccount": {"annotations": {"a": "b"}},
    "rbac": {"keepKubeconfigs": True},
    "commonLabels": {"team": "batch"},
    "podAnnotations": {"c": "d"},
    "podLabels": {"e": "f"},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"},
    ],
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "networkPolicy": {
        "metricsFrom": [{"podSelector": {}}],
        "apiServerPorts": [8443],
        "extraEgress": [{"ports": [{"port": 9092}]}],
    },
    "metrics": {
        "podMonitor": {"enabled": True, "interval": "1m", "labels": {"release": "prometheus"}},
        "alerts": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboard": {"enabled": True, "labels": {"grafana_dashboard": "yes"}},
    },
}


def test_every_value_makes_valid_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if names consist of digits, which YAML reads as numbers."""
    monkeypatch.setattr(utils, "schema_contents", functools.cache(utils.schema_contents))
    names = {
        "kueue": {"namespace": "1"},
        "placements": {"namespaces": ["2"]},
        "credentials": {"account": "3"},
    }
    objects, of_digits = template(EVERYTHING), template(merged(EVERYTHING, names), "6", "7")
    for obj in (*objects, *of_digits):
        for release in ("1.29", "1.37"):
            if not obj["apiVersion"].startswith("monitoring.coreos.com/"):
                kubernetes_validate.validate(obj, release, strict=True)
    assert {"Pod", "PodMonitor", "PrometheusRule"} <= {obj["kind"] for obj in objects}


def test_the_pods_with_every_value() -> None:
    objects = template(EVERYTHING)
    pod, container = pod_of(objects), controller_of(objects)
    assert container["image"] == f"{chart.IMAGE}@sha256:{'1' * 64}"
    assert container["args"] == ["run", "--config=/etc/placement-ac/config.yaml", "--log-level=debug"]
    assert environment_of(objects) == {
        "PLACEMENT_AC_CLUSTER_NAMES": "{cluster}",
        "PLACEMENT_AC_DISPATCHER": "true",
        "PLACEMENT_AC_CREDENTIALS_PROBE": "true",
        "PLACEMENT_AC_WORKER_SETUP": "manifestwork",
        "PLACEMENT_AC_WORKER_SETUP_TEMPLATE": "queues",
        "PLACEMENT_AC_REPORT_SCORES": "true",
        "PLACEMENT_AC_CREDENTIALS_FORM": "cluster-profile",
        "PLACEMENT_AC_ACCESS_PROVIDERS": "/etc/access-providers/access-providers.yaml",
        "PLACEMENT_AC_CREDENTIALS_PROVISION": "managed-serviceaccount",
        "PLACEMENT_AC_CREDENTIALS_ACCOUNT": "hub",
        "PLACEMENT_AC_KUEUE_NAMESPACE": "kueue",
        "PLACEMENT_AC_PLACEMENT_NAMESPACE": "team-a",
        "TZ": "UTC",
    }
    assert [port["containerPort"] for port in container["ports"]] == [9080, 8081]
    assert of(objects, "Service")["spec"]["ports"][0]["port"] == 9080
    (plugin,) = pod["initContainers"]
    assert (plugin["image"], plugin["command"]) == (f"r/p@{chart.DIGEST}", ["cp", "/bin/p", "/plugins/p"])
    (spread,) = pod["topologySpreadConstraints"]
    labels = of(objects, "Deployment")["spec"]["selector"]["matchLabels"]
    assert (spread["topologyKey"], spread["labelSelector"]) == ("rack", {"matchLabels": labels})
    assert pod["volumes"][-1]["name"] == container["volumeMounts"][-1]["name"] == "ca"
    egress = of(objects, "NetworkPolicy")["spec"]["egress"]
    assert [one["port"] for one in (*egress[0]["ports"], *egress[-1]["ports"])] == [8443, 9443, 9092]


def test_the_roles_follow_the_values() -> None:
    objects = template(EVERYTHING)
    roles = {
        (obj["metadata"].get("namespace", ""), obj["metadata"]["name"].removeprefix(NAME)): obj["rules"]
        for obj in objects
        if obj["kind"] in ("Role", "ClusterRole")
    }
    assert {*roles} == {
        ("", ""), ("", "-provisioning"), ("", "-scores"), ("", "-viewer"), ("", "-drain"),
        ("", "-job-viewer"), ("", "-job-viewer-namespace"),
        ("leases", "-capacity"), ("leases", "-capacity-viewer"),
        ("", "-worker-setup"), ("kueue", ""), ("kueue", "-cluster-profile"), ("kueue", "-kubeconfigs"),
        ("kueue", "-probe"), ("kueue", "-provisioning"), ("kueue", "-worker-setup"), ("leases", "-lease"),
        ("team-a", "-placements"),
        (NAMESPACE, "-viewer"), ("kueue", "-viewer"), ("leases", "-viewer"), ("default", "-viewer"),
    }  # fmt: skip
    assert roles["leases", "-lease"][1]["resourceNames"] == ["lease"]
    assert roles["leases", "-viewer"][0]["resourceNames"] == ["lease"]
    assert roles["", "-provisioning"][-1]["resourceNames"] == ["hub", "multikueue"]
    assert not [obj for obj in objects if obj["kind"].endswith("Binding") and "viewer" in str(obj)]
    providers = yaml.safe_load(
        of(objects, "ConfigMap", f"{NAME}-access-providers")["data"]["access-providers.yaml"]
    )["providers"]
    assert (providers[0]["execConfig"]["args"], providers[0]["execConfig"]["env"]) == (
        ["--managed-serviceaccount=hub"],
        [{"name": "NAMESPACE", "value": "kueue"}],
    )


@pytest.mark.parametrize(
    ("values", "gone"),
    [
        ({"rbac": {"create": False}}, {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
        ({"serviceAccount": {"create": False}}, {"ServiceAccount"}),
        ({"podDisruptionBudget": {"enabled": False}}, {"PodDisruptionBudget"}),
        ({"networkPolicy": {"enabled": False}}, {"NetworkPolicy"}),
    ],
    ids=["rbac", "account", "budget", "network"],
)
def test_objects_that_a_value_leaves_out(values: Object, gone: set[str]) -> None:
    def kinds(objects: list[Object]) -> set[str]:
        return {obj["kind"] for obj in objects}

    assert kinds(template()) - kinds(template(values)) == gone


@pytest.mark.parametrize("metrics_from", [[], None])
def test_an_empty_list_of_scrapers_lets_nobody_in(metrics_from: list[Object] | None) -> None:
    """In a NetworkPolicy, an empty `from` or `ports` is everybody and every port."""
    spec = of(template({"networkPolicy": {"metricsFrom": metrics_from}}), "NetworkPolicy")["spec"]
    assert spec["ingress"] == []
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert [bool(rule["ports"]) for rule in spec["egress"]] == [True, True]


def test_an_account_that_is_there_already() -> None:
    objects = template({"serviceAccount": {"create": False, "name": "mine"}})
    subjects = {subject["name"] for obj in objects for subject in obj.get("subjects", ())}
    assert (subjects, pod_of(objects)["serviceAccountName"]) == ({"mine"}, "mine")


def test_the_policy_for_the_account_is_that_of_kustomize() -> None:
    """But for the account of the release, and the rights that a value adds."""
    rights = {"tekton.dev": {"pipelineruns": ["create", "watch"]}, "batch": {"cronjobs": ["get"]}}
    values: Object = {
        "admissionPolicy": {"enabled": True, "moreRights": rights},
        "credentials": {"account": "hub"},
        "serviceAccount": {"create": False, "name": "mine"},
    }
    objects = template(values, namespace="ours")
    made, binding = (of(objects, f"ValidatingAdmissionPolicy{kind}") for kind in ("", "Binding"))
    wanted = policy()
    wanted["matchConditions"] = [
        {
            "name": "controller",
            "expression": "request.userInfo.username == 'system:serviceaccount:ours:mine'",
        }
    ]
    variables = {one["name"]: one for one in wanted["variables"]}
    granted = yaml.safe_load(variables["rights"]["expression"])
    granted = granted | rights | {"batch": granted["batch"] | rights["batch"]}
    variables["rights"]["expression"] = json.dumps(granted, sort_keys=True, separators=(",", ":"))
    variables["accounts"]["expression"] = '["hub","multikueue"]'
    assert made["spec"] == wanted
    assert binding["spec"] == {"policyName": NAME, "validationActions": ["Deny"]}
    for obj in (made, binding):
        kubernetes_validate.validate(obj, "1.37", strict=True)


def test_the_alerts_name_this_release() -> None:
    rules = files({"metrics": {"alerts": {"enabled": True}}, "kueue": {"namespace": "kueue"}}, "hub", "ours")
    text = " ".join(rules["prometheusrule.yaml"].split())
    assert "`kubectl -n ours get pods,endpointslices`" in text
    assert "kubectl -n ours logs deployment/hub-placement-ac" in text
    assert "kubectl -n kueue get lease placement-ac" in text
    assert not re.search(r"placement-ac-system|kueue-system|deployment/placement-ac", text)


# -- Helm's conventions


def test_names_and_labels() -> None:
    """A Deployment's selector is immutable: no label with a version is in it."""
    project = pyproject()["project"]
    selector = of(template(EVERYTHING), "Deployment")["spec"]["selector"]["matchLabels"]
    assert {*selector} == {f"app.kubernetes.io/{label}" for label in ("name", "instance", "component")}
    for one in template(EVERYTHING, "hub"):
        labels = one["metadata"]["labels"]
        assert labels == labels | {
            "app.kubernetes.io/name": NAME,
            "app.kubernetes.io/instance": "hub",
            "app.kubernetes.io/version": project["version"],
            "app.kubernetes.io/part-of": NAME,
            "app.kubernetes.io/managed-by": "Helm",
            "helm.sh/chart": f"{NAME}-{project['version']}",
            "team": "batch",
        }
        assert one["metadata"]["name"].startswith(f"hub-{NAME}")


@pytest.mark.parametrize(
    ("values", "release", "name"),
    [
        ({}, "hub", "hub-placement-ac"),
        ({}, "my-placement-ac", "my-placement-ac"),
        ({"nameOverride": "checks"}, "hub", "hub-checks"),
        ({"fullnameOverride": "checks"}, "hub", "checks"),
        ({}, "h" * 53, "h" * 50),
    ],
    ids=["prefix", "named so already", "nameOverride", "fullnameOverride", "too long"],
)
def test_the_full_name(values: Object, release: str, name: str) -> None:
    assert {one["metadata"]["name"] for one in template(values, release) if one["kind"] == "Deployment"} == {
        name
    }


def test_the_version_of_the_chart_is_that_of_the_project() -> None:
    project, metadata = pyproject()["project"], chart.chart().metadata
    assert (metadata["version"], metadata["appVersion"]) == (project["version"], project["version"])
    assert metadata["description"] == project["description"]
    assert controller_of(template())["image"] == f"{chart.IMAGE}:v{project['version']}"


def test_helm_lint() -> None:
    assert helm.helm_sdk_version().startswith("v4."), "docs/install.md, With Helm, says so"
    report = helm.lint(CHART, GIVEN, strict=True)
    assert (report["errors"], [message["error"] for message in report["messages"]]) == (
        [],
        ["icon is recommended"],
    )


def test_the_package_renders_the_same(tmp_path: Path) -> None:
    archive = helm.package(CHART, destination=tmp_path)
    packed = helm.Chart.load(archive)
    values = merged(GIVEN, chart.mode_values("monitoring"))
    assert packed.render(values, name=NAME) == chart.chart().render(values, name=NAME)
    assert packed.crds == []


def test_the_notes_have_the_next_two_commands() -> None:
    commands = [line.strip() for line in files()["NOTES.txt"].splitlines() if line.startswith("  ")]
    assert commands == [
        f"kubectl rollout status -n {NAMESPACE} deployment/{NAME}",
        f"helm test {NAME} -n {NAMESPACE}",
    ]
    notes = files({"dispatcher": {"enabled": True}})["NOTES.txt"]
    assert "dispatcherName: open-cluster-management.io/placement" in notes


def test_the_test_is_a_pod_as_hardened_as_the_controllers() -> None:
    objects = template(EVERYTHING)
    pod = of(objects, "Pod", f"{NAME}-test")
    (container,) = pod["spec"]["containers"]
    assert (pod["metadata"]["annotations"][HOOK], pod["spec"]["restartPolicy"]) == ("test", "Never")
    assert container["image"] == controller_of(objects)["image"]
    for same in ("securityContext", "serviceAccountName", "automountServiceAccountToken", "nodeSelector"):
        assert pod["spec"][same] == pod_of(objects)[same]
    controller = controller_of(objects)
    assert container["securityContext"] == controller["securityContext"]
    assert (container["args"], container["env"]) == (["check", *controller["args"][1:]], controller["env"])
    plugins = {"name": "plugins", "mountPath": "/plugins", "readOnly": True}
    assert [*container["volumeMounts"], plugins] == sorted(
        controller["volumeMounts"], key=lambda mount: mount["name"] == "plugins"
    )
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert {volume["name"] for volume in pod["spec"]["volumes"]} == mounted
    selected = of(objects, "Deployment")["spec"]["selector"]["matchLabels"]
    assert not selected.items() <= pod["metadata"]["labels"].items()


# -- values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"image": {"repository": ""}}, "set image.repository: no image is published"),
        ({"clusterProfiles": {"enabled": True}}, "set the digest of each of clusterProfiles.plugins"),
        (
            {"metrics": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}},
            "with both, every metric would be counted twice",
        ),
    ],
    ids=["image", "plugin", "monitors"],
)
def test_a_value_that_is_missing_is_named(values: Object, message: str) -> None:
    with pytest.raises(helm.HelmRenderError, match=re.escape(message)):
        files(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"replicas": 3}, "additional properties 'replicas' not allowed"),
        ({"replicaCount": "two"}, "at '/replicaCount': got string, want integer"),
        ({"image": {"repository": "r/placement-ac:v1"}}, "at '/image/repository'"),
        ({"credentials": {"form": "secret"}}, "at '/credentials/form': value must be one of"),
        ({"placements": {"namespaces": ["a", "a"]}}, "at '/placements/namespaces'"),
        (
            {"config": {"removal": {"settel": "1m"}}},
            "at '/config/removal': additional properties 'settel' not allowed",
        ),
        (
            {"config": {"removal": {"drainDeadline": "two hours"}}},
            "at '/config/removal/drainDeadline': 'two hours' does not match",
        ),
        ({"config": {"removal": {"settle": -1}}}, "at '/config/removal/settle': minimum"),
        (
            {"config": {"workerSetup": {"quotaReserve": "100%"}}},
            "at '/config/workerSetup/quotaReserve': '100%' does not match pattern",
        ),
        ({"config": {"kueue": {"version": "latest"}}}, "at '/config/kueue/version'"),
        ({"config": {"dispatch": {"jobTaints": ["a b"]}}}, "at '/config/dispatch/jobTaints/0'"),
        ({"resources": {"limits": {"memory": "384 MB"}}}, "at '/resources/limits/memory': '384 MB' does not"),
        ({"workerSetup": {"template": "My Queues"}}, "at '/workerSetup/template'"),
        ({"config": {"metrics": {"bindAddress": ""}}}, "at '/config/metrics/bindAddress'"),
        ({"config": {"metrics": None}}, "at '/config': missing property 'metrics'"),
        ({"networkPolicy": {"apiServerPorts": []}}, "at '/networkPolicy/apiServerPorts': minItems"),
    ],
    ids=lambda one: json.dumps(one) if isinstance(one, dict) else "",
)
def test_a_wrong_value_is_named_by_helm(values: Object, message: str) -> None:
    with pytest.raises(helm.HelmValuesError) as refused:
        files(values)
    assert message in str(refused.value)


def test_as_a_part_of_another_chart_it_may_get_global_values() -> None:
    assert template({"global": {"imageRegistry": "r"}}) == template()


@pytest.mark.parametrize(("setting", "value"), generated.OWN_VALUE.items())
def test_a_setting_with_a_value_of_its_own_says_which(setting: str, value: str) -> None:
    with pytest.raises(helm.HelmRenderError, match=f"set {value} instead of config.{PATHS[setting]}: "):
        files({"config": as_file({setting: True})})
    assert value in generated.described(VALUES)


@pytest.mark.parametrize(
    "text", ["90s", "1m30s", "1h1m1s", "500ms", "1.5h", "0s", "90", "1.5", "1m 30s", "1d", "h", "", "s1"]
)
def test_the_chart_takes_the_durations_of_the_settings(text: str) -> None:
    removal = SCHEMA["properties"]["config"]["properties"]["removal"]
    accepted = re.search(removal["properties"]["settle"]["pattern"], text)
    assert (accepted is not None) == (parse_seconds(text) is not None)


VALUES = generated.VALUES.read_text("utf-8")
SCHEMA = json.loads(generated.SCHEMA.read_text("utf-8"))


def test_the_schema_and_the_readme_are_up_to_date() -> None:
    assert generated.schema(SCHEMA, VALUES) == SCHEMA, "run `make chart`"
    text = generated.README.read_text("utf-8")
    assert generated.readme(text, VALUES) == text, "run `make chart`"


def leaves(values: Object, path: str = "") -> list[str]:
    found = []
    for key, value in values.items():
        here = f"{path}.{key}".lstrip(".")
        below = isinstance(value, dict) and here not in generated.described(VALUES)
        found += leaves(value, here) if below else [here]
    return found


def test_every_value_is_described_and_in_the_schema() -> None:
    described = [*generated.described(VALUES)]
    assert leaves(yaml.safe_load(VALUES)) == described

    def properties(schema: Object, path: str = "") -> list[str]:
        found = []
        for key, one in schema.get("properties", {}).items():
            here = f"{path}.{key}".lstrip(".")
            found += [here] if here in described else properties(one, here) or [here]
        return found

    assert properties(SCHEMA) == ["global", *described]
    assert "$schema" in SCHEMA


def test_every_setting_is_a_value() -> None:
    """In `config`, or with a value of its own, but for those that a Pod cannot use."""
    under_config = set()
    for path, name in BY_PATH.items():
        found = SCHEMA
        for key in ("config", *path.split(".")):
            found = found["properties"].get(key, {"properties": {}})
        under_config |= {name} if "description" in found and "type" in found else set()
    own = {
        name.removeprefix("PLACEMENT_AC_").lower()
        for name in environment_of(template(EVERYTHING))
        if name.startswith("PLACEMENT_AC_")
    }
    assert own == {*generated.OWN_VALUE}
    assert under_config | own | {*generated.NOT_IN_A_POD} == {*generated.Settings.model_fields}


def test_the_readmes_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", generated.README.read_text("utf-8")):
        assert (CHART / target).exists(), target


# -- any text as a value

BENIGN = "benign"
HOSTILE = [
    "x\npriorityClassName: evil",
    'x", evil: "y',
    "x', evil: 'y",
    "x}, {evil: y # z",
    "{evil: [*x]}",
    "{{ .Release.Name }}",
    "true",
]


def places(schema: Object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of each place for a text in the values; of a free object, a field `any` in it."""
    types = schema.get("type", ())
    if "string" in types:
        return [path]
    if "properties" in schema:
        return [place for key, below in schema["properties"].items() for place in places(below, (*path, key))]
    if types == "array":
        return places(schema["items"], (*path, 0))
    return [(*path, "any")] if types == "object" else []


def with_text(values: Object, path: tuple[str | int, ...], text: str) -> Object:
    """Return the values with a text at a place; in a free object also as a key."""
    if not path:
        return text
    first, *rest = path
    if first == 0:
        before = values[0] if isinstance(values, list) and values else {}
        return [with_text(before, tuple(rest), text)]
    here = values if isinstance(values, dict) else {}
    whole = here | {first: with_text(here.get(first), tuple(rest), text)}
    return whole | ({text: "value"} if first == "any" else {})


def plain(value: Any, text: str) -> Any:
    """Return what was rendered with each occurrence of the text replaced, and without the checksum."""
    if isinstance(value, list):
        return [plain(one, text) for one in value]
    if isinstance(value, dict):
        return {plain(key, text): plain(one, text) for key, one in value.items() if key != chart.CHECKSUM}
    return value.replace(text, BENIGN) if isinstance(value, str) else value


def opened(values: Object) -> list[Object]:
    """Return the rendered objects with the content of YAML files in ConfigMaps."""
    texts = [text for path, text in files(values).items() if path.endswith(".yaml")]
    objects = [one for text in texts for one in yaml.load_all(text, yaml.CSafeLoader) if one]
    for obj in objects:
        for name in chart.FILES:
            if name in obj.get("data", {}):
                obj["data"][name] = yaml.safe_load(obj["data"][name])
    return objects


def unordered(objects: list[Object]) -> list[str]:
    """Return the objects as texts: roles are in the order of their namespaces."""
    return sorted(json.dumps(obj, sort_keys=True) for obj in objects)


@pytest.mark.parametrize("path", places(SCHEMA), ids=lambda path: ".".join(map(str, path)))
def test_any_text_is_refused_or_stays_a_text(path: tuple[str | int, ...]) -> None:
    """A value with newlines, quotes or braces changes nothing else in the objects."""
    try:
        wanted = opened(with_text(EVERYTHING, path, BENIGN))
    except helm.HelmValuesError:
        wanted = None  # no text of these fits
    for text in HOSTILE:
        try:
            found = opened(with_text(EVERYTHING, path, text))
        except helm.HelmValuesError:
            continue
        assert wanted is not None, text
        assert unordered(plain(found, text)) == unordered(plain(wanted, text)), text
