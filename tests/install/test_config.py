"""The manifests under `config/`, each overlay rendered once, and the rules that hold for what is rendered."""

import functools
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

from placement_ac.admin.rights import needed_rights
from placement_ac.config.load import load
from placement_ac.config.policy import provisioning_policy
from placement_ac.config.settings import Settings
from tests.support.documents import table
from tests.support.installation import (
    COMPONENTS,
    CONFIG,
    NAME,
    NAMESPACE,
    OVERLAYS,
    ROOT,
    Object,
    controller_of,
    environment_of,
    flags_of,
    grants,
    kubectl,
    of,
    pod_of,
    pyproject,
    rendered,
)
from website import manifests

NS = "kueue-system"
INSTALL = ROOT / "docs" / "install.md"
PAGE = INSTALL.read_text("utf-8")
VERSION = pyproject()["project"]["version"]
KUBERNETES = ("1.29", "1.33", "1.37")
"""Releases whose schemas validate the manifests: an old one, a middle one, the newest known one."""
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "controller"}
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a Pod's account is looked for, by this program and by plugins."""
REFERENCE = re.compile(r"[a-z0-9./-]+(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?")
"""The name of an image that can be pulled."""

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "overlays/cluster-profile": {
        "credentials_provision": "managed-serviceaccount",
        "credentials_form": "cluster-profile",
    },
    "overlays/dispatcher": {"dispatcher": True},
    "overlays/monitoring": {},
    "overlays/placement-namespaces": {"placement_namespace": ("kueue-system", "team-a", "team-b")},
    "overlays/probe": {"credentials_probe": True},
    "overlays/production": {"dispatcher": True, "cluster_names": "{cluster}"},
    "overlays/provisioning": {"credentials_provision": "managed-serviceaccount"},
    "overlays/scores": {"report_scores": True},
    "overlays/worker-setup": {"worker_setup": "manifestwork"},
}
"""Overlay → what its Pods' settings change, beside those of every overlay."""
EVERYWHERE = {"log_format": "json", "metrics_bind_address": ":8080", "health_probe_bind_address": ":8081"}


class Rendered(NamedTuple):
    overlay: str
    objects: list[Object]
    settings: Settings


def settings_of(objects: list[Object], folder: Path) -> Settings:
    """Return the settings as the container would read them."""
    flags = flags_of(objects, folder)
    flags["config"] = f"{folder}{flags['config']}"
    return load(flags, environment_of(objects)).settings


# -- rules for each overlay


def names_namespaces_and_labels(seen: Rendered) -> None:
    for one in seen.objects:
        metadata = one["metadata"]
        cluster_wide = one["kind"] in ("Namespace", "ClusterRole", "ClusterRoleBinding")
        assert ("namespace" in metadata) is not cluster_wide, one
        assert metadata["name"].startswith(NAME)
        assert metadata["labels"] == metadata["labels"] | {
            "app.kubernetes.io/name": NAME,
            "app.kubernetes.io/part-of": NAME,
            "app.kubernetes.io/version": VERSION,
        }
        assert "app.kubernetes.io/component" in metadata["labels"]
        assert "app.kubernetes.io/managed-by" not in metadata["labels"], (
            "that is of what the controller makes"
        )


def selectors_match_the_pods(seen: Rendered) -> None:
    deployment = of(seen.objects, "Deployment")["spec"]
    pods = deployment["template"]["metadata"]["labels"]
    assert pods == pods | LABELS
    assert deployment["selector"] == {"matchLabels": LABELS}
    assert of(seen.objects, "PodDisruptionBudget")["spec"]["selector"] == {"matchLabels": LABELS}
    assert of(seen.objects, "NetworkPolicy")["spec"]["podSelector"] == {"matchLabels": LABELS}
    assert of(seen.objects, "Service")["spec"]["selector"] == LABELS
    spread = pod_of(seen.objects)["topologySpreadConstraints"]
    assert [one["labelSelector"] for one in spread] == [{"matchLabels": LABELS}] * 2


def pods_follow_the_security_standard_restricted(seen: Rendered) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/, and a read-only root."""
    levels = of(seen.objects, "Namespace", NAMESPACE)["metadata"]["labels"]
    modes = [levels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "audit", "warn")]
    assert modes == ["restricted"] * 3
    pod = pod_of(seen.objects)
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    kinds = {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
    assert kinds <= {"configMap", "emptyDir", "projected"}
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"].keys() == {"requests", "limits"}
        assert not [port for port in container.get("ports", ()) if "hostPort" in port]


def the_token_is_in_the_controllers_container_alone(seen: Rendered) -> None:
    pod = pod_of(seen.objects)
    assert not pod["automountServiceAccountToken"]
    (account,) = (volume for volume in pod["volumes"] if "projected" in volume)
    files = {
        file["path"]: kind
        for source in account["projected"]["sources"]
        for kind, content in source.items()
        for file in content.get("items", [content])
    }
    assert files == {"token": "serviceAccountToken", "ca.crt": "configMap", "namespace": "downwardAPI"}
    mounted = [
        (container["name"], mount["mountPath"], mount["readOnly"])
        for container in (*pod["containers"], *pod.get("initContainers", ()))
        for mount in container["volumeMounts"]
        if mount["name"] == account["name"]
    ]
    assert mounted == [("controller", TOKEN, True)]


def two_replicas_are_not_both_taken_away(seen: Rendered) -> None:
    spec = of(seen.objects, "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]["maxUnavailable"]) == (2, 0)
    assert of(seen.objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def the_image_must_be_set(seen: Rendered) -> None:
    """No image is published: until one is set, its name is invalid, so that nothing is pulled."""
    image = controller_of(seen.objects)["image"]
    assert (image, REFERENCE.fullmatch(image)) == (
        "placement-ac@sha256:set-the-image-as-docs-install.md-says",
        None,
    )
    assert "images:\n- name: placement-ac\n  newName: " in PAGE


def the_resources_are_those_of_the_page(seen: Rendered) -> None:
    assert controller_of(seen.objects)["resources"] == {
        "requests": {"cpu": "50m", "memory": "192Mi"},
        "limits": {"cpu": "1", "memory": "384Mi"},
    }
    assert "The container requests 192 MiB and 50m, and its limits are 384 MiB and one CPU." in PAGE


def addresses_and_ports_fit(seen: Rendered) -> None:
    container = controller_of(seen.objects)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {
        "metrics": int(seen.settings.metrics_bind_address.rpartition(":")[2]),
        "health": int(seen.settings.health_probe_bind_address.rpartition(":")[2]),
    }
    probes = [container[f"{probe}Probe"]["httpGet"] for probe in ("liveness", "readiness")]
    assert [(one["path"], one["port"]) for one in probes] == [("/healthz", "health"), ("/readyz", "health")]
    (service,) = of(seen.objects, "Service")["spec"]["ports"]
    assert (service["port"], service["targetPort"]) == (ports["metrics"], "metrics")
    (ingress,) = of(seen.objects, "NetworkPolicy")["spec"]["ingress"]
    assert [one["port"] for one in ingress["ports"]] == [ports["metrics"]]


def the_settings_are_those_of_the_table(seen: Rendered) -> None:
    changed = seen.settings.model_dump(exclude_defaults=True, exclude={"config", "access_providers"})
    assert changed == EVERYWHERE | SETTINGS[seen.overlay]


def no_right_is_a_wildcard(seen: Rendered) -> None:
    for _, _, rule in grants(seen.objects):
        assert "*" not in (*rule.verbs, *rule.groups, *rule.resources)
        assert not rule.urls


def check_asks_for_exactly_the_rights_of_the_roles(seen: Rendered) -> None:
    """`placement-ac check` knows them by the settings: neither list can change without the other."""
    needed = needed_rights(seen.settings, provisioning_policy(seen.settings))
    asked = {(*target, verb) for target, verbs in needed.items() for verb in verbs}
    granted = set()
    for _, where, rule in grants(seen.objects):
        resource, _, subresource = rule.resources[0].partition("/")
        name = next(iter(rule.names), "")
        granted.add((rule.groups[0], resource, subresource, where, name, rule.verbs[0]))
    assert asked == granted


def secrets_are_read_in_kueues_namespace_alone_but_for_named_ones(seen: Rendered) -> None:
    about = [(where, rule) for _, where, rule in grants(seen.objects) if rule.resources == ("secrets",)]
    assert {where for where, rule in about if not rule.names} == {"kueue-system"}
    assert {rule.verbs[0] for where, rule in about if not where} <= {"list", "watch"}


def every_binding_is_for_the_one_account(seen: Rendered) -> None:
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    subjects = [subject for one in seen.objects for subject in one.get("subjects", ())]
    assert [subject for subject in subjects if subject != account] == []


RULES: tuple[Callable[[Rendered], None], ...] = (
    names_namespaces_and_labels,
    selectors_match_the_pods,
    pods_follow_the_security_standard_restricted,
    the_token_is_in_the_controllers_container_alone,
    two_replicas_are_not_both_taken_away,
    the_image_must_be_set,
    the_resources_are_those_of_the_page,
    addresses_and_ports_fit,
    the_settings_are_those_of_the_table,
    no_right_is_a_wildcard,
    check_asks_for_exactly_the_rights_of_the_roles,
    secrets_are_read_in_kueues_namespace_alone_but_for_named_ones,
    every_binding_is_for_the_one_account,
)


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda overlay: overlay.rpartition("/")[2])
def test_each_rule_holds_for_the_overlay(overlay: str, tmp_path: Path) -> None:
    """The chart's objects are compared with these: test_chart.py."""
    objects = rendered(overlay)
    seen = Rendered(overlay, objects, settings_of(objects, tmp_path))
    for rule in RULES:
        rule(seen)


# -- other combinations


@pytest.fixture
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read each schema once: the library reads megabytes for every object."""
    monkeypatch.setattr(utils, "schema_contents", functools.cache(utils.schema_contents))


@pytest.mark.usefixtures("_read_once")
def test_every_object_is_valid() -> None:
    seen: list[Object] = []
    for one in (one for overlay in OVERLAYS for one in rendered(overlay)):
        if not one["apiVersion"].startswith("monitoring.coreos.com/") and one not in seen:
            seen.append(one)
    for release in KUBERNETES:
        for one in seen:
            kubernetes_validate.validate(one, release, strict=True)
    assert {one["kind"] for one in seen} == {
        "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "Namespace", "NetworkPolicy",
        "PodDisruptionBudget", "Role", "RoleBinding", "Service", "ServiceAccount",
    }  # fmt: skip
    deployment = of(rendered("default"), "Deployment")
    deployment["spec"]["replica"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, KUBERNETES[-1], strict=True)


def components_of(overlay: str) -> list[str]:
    """The components of an overlay, but for `labels`, which is in each."""
    text = (CONFIG / overlay / "kustomization.yaml").read_text("utf-8")
    chosen = [Path(component).name for component in yaml.safe_load(text).get("components", ())]
    return [name for name in chosen if name != "labels"]


IN_NO_OVERLAY_ALONE = sorted({*COMPONENTS} - {c[0] for c in map(components_of, OVERLAYS) if len(c) == 1})


@pytest.mark.parametrize("component", IN_NO_OVERLAY_ALONE)
def test_a_component_works_alone(component: str, tmp_path: Path) -> None:
    _overlay(tmp_path, components=[component])
    objects = list(yaml.safe_load_all(kubectl("kustomize", str(tmp_path))))
    assert len(objects) >= len(rendered("default"))


def test_all_components_go_together(tmp_path: Path) -> None:
    _overlay(tmp_path, components=list(COMPONENTS))
    objects = list(yaml.safe_load_all(kubectl("kustomize", str(tmp_path))))
    assert {obj["kind"] for obj in objects} >= {"ServiceMonitor", "PodMonitor"}
    assert set(environment_of(objects)) == {
        variable for overlay in OVERLAYS for variable in environment_of(rendered(overlay))
    } - {"PLACEMENT_AC_PLACEMENT_NAMESPACE", "PLACEMENT_AC_CREDENTIALS_FORM"}


def _overlay(folder: Path, components: list[str]) -> None:
    """Write an overlay, as a user would, into `folder`."""
    up = "../" * len(folder.parts[1:])
    config = f"{up}{CONFIG.relative_to('/')}"
    body = {
        "resources": [f"{config}/default"],
        "components": [f"{config}/components/{c}" for c in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(body))


def test_the_monitors() -> None:
    """The fields that the Prometheus operator requires; its schema is not available here."""
    (monitor,) = (one for one in rendered("overlays/monitoring") if one["kind"] == "ServiceMonitor")
    assert (monitor["apiVersion"], monitor["spec"]["selector"]) == (
        "monitoring.coreos.com/v1",
        {"matchLabels": LABELS},
    )
    service = of(rendered("overlays/monitoring"), "Service")
    assert service["metadata"]["labels"] == service["metadata"]["labels"] | LABELS
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == [
        port["name"] for port in service["spec"]["ports"]
    ]
    pods = yaml.safe_load((CONFIG / "components" / "pod-monitor" / "podmonitor.yaml").read_text("utf-8"))
    assert pods["spec"]["selector"] == {"matchLabels": LABELS}
    assert [endpoint["port"] for endpoint in pods["spec"]["podMetricsEndpoints"]] == ["metrics"]


def test_the_plugins_image_must_be_set() -> None:
    """Until then its name is invalid, so that nothing is pulled, and tells where to read."""
    (plugin,) = pod_of(rendered("overlays/cluster-profile"))["initContainers"]
    assert not REFERENCE.fullmatch(plugin["image"])
    name, _, hint = plugin["image"].partition("@sha256:")
    assert (hint, REFERENCE.fullmatch(name) is None) == ("set-this-digest-as-docs-install.md-says", False)
    assert f"- name: {name}\n  digest: sha256:" in PAGE


@pytest.mark.parametrize("mode", ["provisioning", "cluster-profile"])
def test_the_image_on_kind_is_that_of_this_version(mode: str) -> None:
    """`make image` builds it under a name that no registry answers for."""
    objects = list(yaml.safe_load_all(kubectl("kustomize", str(ROOT / "kind" / mode))))
    image = f"localhost/placement-ac:v{VERSION}"
    assert controller_of(objects)["image"] == image
    assert f"\nIMAGE ?= {image}\n" in (ROOT / "Makefile").read_text("utf-8")


def test_files_that_settings_name_are_mounted(tmp_path: Path) -> None:
    settings = settings_of(rendered("overlays/cluster-profile"), tmp_path)
    assert (tmp_path / str(settings.access_providers).lstrip("/")).exists()


# -- what docs/install.md says


def test_what_is_made_from_the_roles_is_current() -> None:
    assert manifests.RULES.read_text("utf-8") == manifests.rules(), "run `make manifests`"
    assert manifests.permissions(PAGE) == PAGE, "run `make manifests`"


def test_the_table_of_modes() -> None:
    rows = table(INSTALL, "Choose a mode")
    assert sorted(row[0] for row in rows) == sorted(f"config/{overlay}" for overlay in OVERLAYS)
    for folder, _, added in rows:
        chosen = {*components_of(folder.removeprefix("config/"))}
        assert chosen == {*COMPONENTS, "monitoring"} & set(re.findall(r"[\w-]+", added)), folder


EXAMPLES = re.findall(r"```yaml\n(# kustomization.yaml\n.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=["own", "kueue", "namespace", "plugin", "openshift", "network"]
)
def test_the_overlays_in_the_page(example: str, tmp_path: Path) -> None:
    shutil.copytree(CONFIG, tmp_path / "placement-ac" / "config")
    mine = tmp_path / "mine"
    mine.mkdir()
    if "KUEUE_NAMESPACE" in example:  # it belongs to a component with its own settings
        example += "components: [../placement-ac/config/components/provisioning]\n"
    (mine / "kustomization.yaml").write_text(example)
    objects = list(yaml.safe_load_all(kubectl("kustomize", str(mine))))
    settings = settings_of(objects, tmp_path / "files")
    if "behavior: merge" in example:
        assert (settings.removal_policy, settings.drain_deadline, settings.credentials_probe) == (
            "Drain",
            7200,
            True,
        )
        assert controller_of(objects)["image"] == "registry.example/placement-ac:v0.1.0"
    if "KUEUE_NAMESPACE" in example:
        assert (settings.kueue_namespace, settings.credentials_provision) == (
            "kueue",
            "managed-serviceaccount",
        )
        assert {obj["metadata"].get("namespace") for obj in objects} == {None, NAMESPACE, "kueue", "default"}
    if "hub-tools" in example:
        assert {obj["metadata"].get("namespace") for obj in objects} == {None, "hub-tools", NS, "default"}
        assert {subject["namespace"] for obj in objects for subject in obj.get("subjects", ())} == {
            "hub-tools"
        }
        assert of(objects, "Namespace", "hub-tools")
    if "runAsUser" in example:
        assert pod_of(objects)["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    if "digest:" in example:
        (plugin,) = pod_of(objects)["initContainers"]
        assert (REFERENCE.fullmatch(plugin["image"]) is None, "@sha256:" in plugin["image"]) == (False, True)
    if "NetworkPolicy" in example:
        ports = of(objects, "NetworkPolicy")["spec"]["egress"][0]["ports"]
        assert [port["port"] for port in ports] == [443, 6443, 9092]
