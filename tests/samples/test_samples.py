"""Every sample is a valid object of its CRD, and the samples fit together."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from placement_ac.core.api.constants import ANNOTATION_DISPATCH_PROFILE, ANNOTATION_TEMPLATE
from placement_ac.core.api.decode import managed_cluster
from placement_ac.core.api.quantities import milli
from placement_ac.core.dispatch.profiles import parse_profile
from placement_ac.core.inputs.rights import ExternalFramework, parse_external, parse_release, policy_rules
from placement_ac.core.worker_setup.template import rendered
from placement_lab.standins import manifests
from placement_lab.standins.multikueue import NEWEST_PACE
from tests.support import installation, kueue
from tests.support.crds import all_strict_crds

SAMPLES = manifests.samples()
FILES = sorted(SAMPLES.rglob("*.yaml"))
OBJECTS = [file for file in FILES if file.name != "kustomization.yaml" and not file.stem.endswith("-patch")]
RBAC = "rbac.authorization.k8s.io/v1"
BUILT_IN = {
    ("v1", "Namespace"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("v1", "ServiceAccount"),
    ("batch/v1", "Job"),
    *((RBAC, kind) for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
}
STORY_4 = "dispatch/demo4"
STORY_5 = "rebalancing"
SETUP = "worker-setup"
SETUP_2 = "multikueue-setup-demo2.yaml"
SETUPS = {
    "jobset": "jobset/hub.yaml",
    "tas": "tas/hub.yaml",
    "profiles": "cluster-profile/hub.yaml",
    "external": "external-frameworks/hub.yaml",
    "eu": "federations/eu.yaml",
    "gpu": "federations/gpu.yaml",
}
"""Suffix of the names → the file with queue and checks."""
WORKERS = {name: file.replace("hub.yaml", "worker.yaml") for name, file in SETUPS.items()} | {
    name: f"federations/worker-{name}.yaml" for name in ("eu", "gpu")
}
Schema = dict[str, Any]


def documents() -> list[Any]:
    return [
        pytest.param(item, id=f"{file.parent.name}-{file.stem}-{item['kind']}-{number}")
        for file in OBJECTS
        for number, item in enumerate(manifests.load(file))
    ]


@cache
def schemas() -> dict[tuple[str, str], Schema]:
    return closed_schemas(all_strict_crds())


def closed_schemas(crds: list[dict[str, Any]]) -> dict[tuple[str, str], Schema]:
    """The closed schema of each (apiVersion, kind) that is both served and stored."""
    found = {}
    for crd in crds:
        spec = crd["spec"]
        for version in spec["versions"]:
            if version["served"] and version["storage"]:
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                found[key] = closed(version["schema"]["openAPIV3Schema"], top=True)
    return found


NAMED = [{"required": ["name"]}, {"required": ["generateName"]}]
HEAD = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "anyOf": NAMED},
}


def closed(schema: Schema, *, top: bool = False) -> Schema:
    """The schema with int-or-string, which refuses every field that an API server would prune."""
    result = dict(schema)
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if "pattern" in schema:
        result["pattern"] = schema["pattern"].replace("^(?i)", "(?i)^")  # Python wants flags first
    if "properties" in schema:
        result["properties"] = {name: closed(one) for name, one in schema["properties"].items()}
        if top:
            result["properties"] |= HEAD
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result["additionalProperties"] = False
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = closed(schema["additionalProperties"])
    if "items" in schema:
        result["items"] = closed(schema["items"])
    return result


@pytest.mark.parametrize("item", documents())
def test_a_sample_is_valid_against_its_crd(item: dict[str, Any]) -> None:
    key = item["apiVersion"], item["kind"]
    if key in BUILT_IN:
        return
    assert errors_of(item, schemas()[key]) == []


def errors_of(item: dict[str, Any], schema: Schema) -> list[str]:
    errors = jsonschema.Draft202012Validator(schema).iter_errors(item)
    return [f"{error.json_path}: {error.message}" for error in errors]


def test_the_validation_refuses_an_unknown_field() -> None:
    placement = manifests.load(SAMPLES / "placement-demo2-1.yaml")[0]
    validator = jsonschema.Draft202012Validator(schemas()[placement["apiVersion"], "Placement"])
    assert not validator.is_valid(placement | {"spec": placement["spec"] | {"clusterSet": "spoke"}})


def of_kind(kind: str, *files: str) -> dict[str, dict[str, Any]]:
    paths = [SAMPLES / file for file in files] or [SAMPLES / "fleet"]
    items = [item for path in paths for item in manifests.load(path) if item["kind"] == kind]
    return {item["metadata"]["name"]: item for item in items}


@pytest.mark.parametrize(
    ("name", "setup", "placement"),
    [
        ("demo1", "multikueue-setup-demo1.yaml", "multikueue-setup-demo1.yaml"),
        ("demo2", "multikueue-setup-demo2.yaml", "placement-demo2-1.yaml"),
        ("demo4", f"{STORY_4}/hub.yaml", f"{STORY_4}/hub.yaml"),
        ("demo5", f"{STORY_5}/hub.yaml", f"{STORY_5}/hub.yaml"),
        ("setup", f"{SETUP}/hub.yaml", f"{SETUP}/hub.yaml"),
        *((name, file, file) for name, file in SETUPS.items()),
    ],
)
def test_both_checks_of_a_setup_name_the_same_placement_and_stand_in_its_queue(
    name: str, setup: str, placement: str
) -> None:
    checks = of_kind("AdmissionCheck", setup)
    queue = of_kind("ClusterQueue", setup)[f"cluster-queue-{name}"]
    assert of_kind("Placement", placement).keys() == {f"placement-{name}"}
    assert {name: check["spec"] for name, check in checks.items()} == {
        f"multikueue-{name}": {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {
                "apiGroup": "kueue.x-k8s.io",
                "kind": "MultiKueueConfig",
                "name": f"placement-{name}",
            },
        },
        f"placement-{name}": {
            "controllerName": "open-cluster-management.io/placement",
            "parameters": {
                "apiGroup": "cluster.open-cluster-management.io",
                "kind": "Placement",
                "name": f"placement-{name}",
            },
        },
    }
    listed = queue["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert {rule["name"] for rule in listed} == checks.keys()


JOBS_OF_STORY_4 = ("eu", "finetune", "h100", "ingest", "large", "small")
JOBS = {
    "job-demo1.yaml": "multikueue-setup-demo1.yaml",
    "job-demo2.yaml": SETUP_2,
    **{f"{STORY_4}/{name}.yaml": f"{STORY_4}/hub.yaml" for name in JOBS_OF_STORY_4},
    f"{STORY_5}/job.yaml": f"{STORY_5}/hub.yaml",
    f"{SETUP}/job.yaml": f"{SETUP}/hub.yaml",
    f"{SETUP}/job-large.yaml": f"{SETUP}/hub.yaml",
    "jobset/jobset.yaml": SETUPS["jobset"],
    "tas/job.yaml": SETUPS["tas"],
    "external-frameworks/pipelinerun.yaml": SETUPS["external"],
    "external-frameworks/workflow.yaml": SETUPS["external"],
    "federations/job-eu.yaml": SETUPS["eu"],
}
"""The file of jobs → that of their queue."""


@pytest.mark.parametrize(("file", "setup"), JOBS.items())
def test_a_job_goes_to_the_queue_of_its_setup(file: str, setup: str) -> None:
    queues = of_kind("LocalQueue", setup)
    for job in manifests.load(SAMPLES / file):
        queue = queues[job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]]
        assert job["metadata"].get("namespace", "default") == queue["metadata"]["namespace"]


def quota_of(queue: dict[str, Any]) -> dict[str, str]:
    """Resource → nominal quota, of a ClusterQueue with one flavor."""
    [group] = queue["spec"]["resourceGroups"]
    [flavor] = group["flavors"]
    return {resource["name"]: resource["nominalQuota"] for resource in flavor["resources"]}


def test_the_profile_changes_only_an_annotation_of_the_check_of_story_2() -> None:
    [before] = (one for name, one in of_kind("AdmissionCheck", SETUP_2).items() if name == "placement-demo2")
    [after] = of_kind("AdmissionCheck", "dispatch/profile.yaml").values()
    [(name, profile)] = after["metadata"].pop("annotations").items()
    assert after == before
    assert (name, parse_profile(profile).name) == (ANNOTATION_DISPATCH_PROFILE, "headroom")


def test_story_3_changes_only_the_choice_among_the_clusters_of_story_2() -> None:
    [before] = manifests.load(SAMPLES / "placement-demo2-1.yaml")
    [after] = manifests.load(SAMPLES / "placement-demo2-2.yaml")
    added = {field: after["spec"].pop(field) for field in ("numberOfClusters", "prioritizerPolicy")}
    assert after == before
    assert added == {
        "numberOfClusters": 1,
        "prioritizerPolicy": {
            "mode": "Exact",
            "configurations": [
                {
                    "scoreCoordinate": {
                        "type": "AddOn",
                        "addOn": {"resourceName": "resource-usage-score", "scoreName": "gpuClusterAvailable"},
                    },
                    "weight": 1,
                }
            ],
        },
    }


@pytest.mark.parametrize("name", SETUPS)
def test_the_worker_has_the_queues_of_the_hub_without_the_checks(name: str) -> None:
    shared = ("Namespace", "Topology", "ResourceFlavor", "ClusterQueue", "LocalQueue")
    hub, worker = (
        [item for item in manifests.load(SAMPLES / files[name]) if item["kind"] in shared]
        for files in (SETUPS, WORKERS)
    )
    for item in (*hub, *worker):
        item.get("spec", {}).pop("admissionChecksStrategy", None)
        if item["kind"] == "ClusterQueue":  # the next test compares it
            item["spec"].pop("resourceGroups")
    assert worker == hub


FLEETS = {
    f"{STORY_4}/hub.yaml": [f"{STORY_4}/worker-cluster{number}.yaml" for number in (1, 2, 3)],
    f"{STORY_5}/hub.yaml": [f"{STORY_5}/worker.yaml"] * 3,
    **{SETUPS[name]: [WORKERS[name]] * (2 if name in ("eu", "gpu") else 3) for name in SETUPS},
}
"""The set-up of the hub → those of its workers: two of each federation."""


@pytest.mark.parametrize(("hub", "workers"), FLEETS.items())
def test_the_quota_of_the_hub_is_the_sum_of_the_workers(hub: str, workers: list[str]) -> None:
    [total, *there] = [
        {resource: milli(amount) or 0 for resource, amount in quota_of(queue).items()}
        for file in (hub, *workers)
        for queue in of_kind("ClusterQueue", file).values()
    ]
    assert total == {resource: sum(one[resource] for one in there) for resource in total}
    for file in workers:
        assert of_kind("LocalQueue", file) == of_kind("LocalQueue", hub)


def test_the_template_of_the_worker_set_up_makes_the_queue_of_the_hub() -> None:
    fleet = [managed_cluster(one, with_allocatable=True) for one in of_kind("ManagedCluster").values()]
    labelled = [replace(one, labels={**one.labels, "accelerator": "nvidia-tesla-t4"}) for one in fleet]
    [text] = of_kind("ConfigMap", f"{SETUP}/template.yaml")["queues-setup"]["data"].values()
    made = [rendered(text, cluster) for cluster in labelled]
    [check] = (
        one
        for name, one in of_kind("AdmissionCheck", f"{SETUP}/hub.yaml").items()
        if name == "placement-setup"
    )
    assert check["metadata"]["annotations"] == {ANNOTATION_TEMPLATE: "queues-setup"}
    hub = of_kind("ClusterQueue", f"{SETUP}/hub.yaml")["cluster-queue-setup"]
    [wanted, *there] = [
        {resource: milli(amount) or 0 for resource, amount in quota_of(queue).items()}
        for queue in (hub, *(one for objects in made for one in objects if one["kind"] == "ClusterQueue"))
    ]
    sums = {resource: sum(one[resource] for one in there) for resource in wanted}
    assert all(total / 2 <= wanted[resource] <= total for resource, total in sums.items())
    assert len(there) == 3


def test_the_topology_that_the_job_asks_for_is_a_level_of_the_worker() -> None:
    [job] = manifests.load(SAMPLES / "tas/job.yaml")
    [asked] = job["spec"]["template"]["metadata"]["annotations"].values()
    [flavor] = of_kind("ResourceFlavor", "tas/worker.yaml").values()
    levels = of_kind("Topology", "tas/worker.yaml")[flavor["spec"]["topologyName"]]["spec"]["levels"]
    assert {"nodeLabel": asked} in levels


# -- Kueue's and the controller's configuration


def kueue_config(folder: str) -> dict[str, Any]:
    [config_map] = manifests.load(SAMPLES / folder / "kueue-config.yaml")
    config: dict[str, Any] = yaml.safe_load(config_map["data"][kueue.KEY])
    return config


@pytest.mark.parametrize(
    "folder", ["external-frameworks", "cluster-profile/ocm", "cluster-profile/secret-reader"]
)
def test_kueue_reconciles_as_many_workloads_at_once_as_it_does_as_shipped(folder: str) -> None:
    at_once = kueue_config(folder)["controller"]["groupKindConcurrency"]
    assert at_once["Workload.kueue.x-k8s.io"] == NEWEST_PACE.workloads_at_once


def environment(folder: str) -> dict[str, str]:
    """The environment variables that the patch of the controller's Deployment sets."""
    [patch] = manifests.load(SAMPLES / folder / "controller-patch.yaml")
    return installation.environment_of([patch])


def externals() -> list[ExternalFramework]:
    names = [
        external_framework["name"]
        for external_framework in kueue_config("external-frameworks")["multiKueue"]["externalFrameworks"]
    ]
    found = [parse_external(name) for name in names]
    return [one for one in found if isinstance(one, ExternalFramework)]


def test_the_controller_knows_of_the_job_kinds_of_kueue() -> None:
    config = kueue_config("external-frameworks")
    assert config["featureGates"] == {"MultiKueueAdaptersForCustomJobs": True}
    assert environment("external-frameworks") == {
        "PLACEMENT_AC_FRAMEWORKS": ",".join(config["integrations"]["frameworks"]),
        "PLACEMENT_AC_EXTERNAL_FRAMEWORKS": ",".join(external.name for external in externals()),
    }
    assert len(externals()) == 2


def test_kueue_has_only_the_permissions_on_workers_that_it_needs() -> None:
    frameworks = kueue_config("external-frameworks")["integrations"]["frameworks"]
    [role] = of_kind("ClusterRole", "external-frameworks/worker-rights.yaml").values()
    needed = policy_rules(frameworks, externals(), kueue=parse_release("0.20.0"))
    assert role["rules"] == [one.as_dict() for one in needed]


def test_kueue_follows_the_external_kinds_on_the_hub_and_writes_their_status() -> None:
    [role] = of_kind("ClusterRole", "external-frameworks/kueue-rights.yaml").values()
    verbs = ["get", "list", "patch", "update", "watch"]
    assert role["rules"] == [
        {
            "apiGroups": [external.group],
            "resources": [external.plural, f"{external.plural}/status"],
            "verbs": verbs,
        }
        for external in externals()
    ]


@pytest.mark.parametrize("folder", ["ocm", "secret-reader"])
def test_an_access_provider_has_its_plugin_in_kueues_pod(folder: str, tmp_path: Path) -> None:
    config = kueue_config(f"cluster-profile/{folder}")
    assert config["featureGates"] == {"MultiKueueClusterProfile": True}
    [provider] = config["multiKueue"]["clusterProfile"]["accessProviders"]
    objects = kueue.kustomized(SAMPLES / "cluster-profile" / folder, tmp_path)
    assert yaml.safe_load(installation.of(objects, "ConfigMap", kueue.CONFIG)["data"][kueue.KEY]) == config
    pod = installation.of(objects, "Deployment", kueue.MANAGER)["spec"]["template"]["spec"]
    [manager] = pod["containers"]
    assert manager["image"] == kueue.IMAGE
    mounted = {mount["name"]: mount["mountPath"] for mount in manager["volumeMounts"]}
    assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
    assert any(provider["execConfig"]["command"].startswith(f"{path}/") for path in mounted.values())


def test_the_secret_reader_gets_the_cluster_whose_secret_it_reads() -> None:
    file = "cluster-profile/secret-reader/cluster2.yaml"
    [provider] = of_kind("ClusterProfile", file)["cluster2"]["status"]["accessProviders"]
    [extension] = provider["cluster"]["extensions"]
    assert extension["extension"]["clusterName"] in of_kind("Secret", file.replace("2.", "2-token."))
    [configured] = kueue_config("cluster-profile/secret-reader")["multiKueue"]["clusterProfile"][
        "accessProviders"
    ]
    assert provider["name"] == configured["name"]


def test_the_controller_has_the_provider_of_kueue_with_the_namespace_of_its_secrets() -> None:
    folder = "cluster-profile/secret-reader"
    config_map = of_kind("ConfigMap", f"{folder}/controller.yaml")["placement-ac-access-providers"]
    [(name, text)] = config_map["data"].items()
    [ours] = yaml.safe_load(text)["providers"]
    assert ours["execConfig"].pop("env") == [{"name": "POD_NAMESPACE", "value": "kueue-system"}]
    assert [ours] == kueue_config(folder)["multiKueue"]["clusterProfile"]["accessProviders"]
    assert environment(folder)["PLACEMENT_AC_ACCESS_PROVIDERS"].endswith(f"/{name}")


def test_no_sample_secret_opens_anything() -> None:
    for secret in of_kind("Secret").values():
        config = yaml.safe_load(secret["stringData"]["kubeconfig"])
        assert all("dummy" in user["user"]["token"] for user in config["users"])
        assert all(
            cluster["cluster"]["server"].endswith(".example.com:6443") for cluster in config["clusters"]
        )


def test_the_readme_names_every_file() -> None:
    readme = (SAMPLES / "README.md").read_text()
    assert [file for file in map(name_in_samples, FILES) if f"`{file}`" not in readme] == []


def name_in_samples(file: Path) -> str:
    return str(file.relative_to(SAMPLES))
