"""Every sample is a valid object of its CRD, and the samples fit together."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from placement_ac.sim import manifests
from tests.shared import shared_dir

FILES = sorted(manifests.samples().rglob("*.yaml"))
BUILT_IN = {("v1", "Namespace"), ("v1", "Secret"), ("batch/v1", "Job")}
Schema = dict[str, Any]


def documents() -> list[Any]:
    return [
        pytest.param(item, id=f"{file.stem}-{item['kind']}-{number}")
        for file in FILES
        for number, item in enumerate(manifests.load(file))
    ]


@cache
def schemas() -> dict[tuple[str, str], Schema]:
    """The closed schema of each (apiVersion, kind) that is both served and stored."""
    found = {}
    for file in sorted((shared_dir() / "crds").glob("*.yaml")):
        spec = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)["spec"]  # 3 s less than the slow loader
        for version in spec["versions"]:
            if version["served"] and version["storage"]:
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                found[key] = closed(version["schema"]["openAPIV3Schema"], top=True)
    return found


def closed(schema: Schema, *, top: bool = False) -> Schema:
    """The schema, refusing every field that an API server would prune, and understanding int-or-string."""
    result = dict(schema)
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if "pattern" in schema:
        result["pattern"] = schema["pattern"].replace("^(?i)", "(?i)^")  # Go has flags anywhere, Python first
    if "properties" in schema:
        result["properties"] = {name: closed(one) for name, one in schema["properties"].items()}
        if top:
            result["properties"] |= {"metadata": {"type": "object", "required": ["name"]}}
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
    errors = list(jsonschema.Draft202012Validator(schemas()[key]).iter_errors(item))
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def test_the_validation_refuses_an_unknown_field() -> None:
    placement = manifests.load(manifests.samples() / "placement-demo2-1.yaml")[0]
    validator = jsonschema.Draft202012Validator(schemas()[placement["apiVersion"], "Placement"])
    assert not validator.is_valid(placement | {"spec": placement["spec"] | {"clusterSet": "spoke"}})


def of_kind(kind: str, *files: str) -> dict[str, dict[str, Any]]:
    paths = [manifests.samples() / file for file in files] or [manifests.samples() / "fleet"]
    items = [item for path in paths for item in manifests.load(path) if item["kind"] == kind]
    return {item["metadata"]["name"]: item for item in items}


@pytest.mark.parametrize("story", ["1", "2"])
def test_both_checks_of_a_story_name_the_same_placement_and_stand_in_its_queue(story: str) -> None:
    setup = f"multikueue-setup-demo{story}.yaml"
    checks = of_kind("AdmissionCheck", setup)
    queue = of_kind("ClusterQueue", setup)[f"cluster-queue-demo{story}"]
    placement = "multikueue-setup-demo1.yaml" if story == "1" else "placement-demo2-1.yaml"
    assert of_kind("Placement", placement).keys() == {f"placement-demo{story}"}
    assert {name: check["spec"] for name, check in checks.items()} == {
        f"multikueue-demo{story}": {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {
                "apiGroup": "kueue.x-k8s.io",
                "kind": "MultiKueueConfig",
                "name": f"placement-demo{story}",
            },
        },
        f"placement-demo{story}": {
            "controllerName": "open-cluster-management.io/placement",
            "parameters": {
                "apiGroup": "cluster.open-cluster-management.io",
                "kind": "Placement",
                "name": f"placement-demo{story}",
            },
        },
    }
    listed = queue["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert {rule["name"] for rule in listed} == checks.keys()


@pytest.mark.parametrize("story", ["1", "2"])
def test_a_job_goes_to_the_queue_of_its_story(story: str) -> None:
    [job] = manifests.load(manifests.samples() / f"job-demo{story}.yaml")
    local = of_kind("LocalQueue", f"multikueue-setup-demo{story}.yaml")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] in local
    asks = job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert ("nvidia.com/gpu" in asks) == (story == "2")


def test_story_3_changes_only_the_choice_among_the_clusters_of_story_2() -> None:
    [before] = manifests.load(manifests.samples() / "placement-demo2-1.yaml")
    [after] = manifests.load(manifests.samples() / "placement-demo2-2.yaml")
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
                        "addOn": {
                            "resourceName": "resource-usage-score",
                            "scoreName": "gpuClusterAvailable",
                        },
                    },
                    "weight": 1,
                }
            ],
        },
    }


def test_no_sample_secret_opens_anything() -> None:
    for secret in of_kind("Secret").values():
        config = yaml.safe_load(secret["stringData"]["kubeconfig"])
        assert all("dummy" in user["user"]["token"] for user in config["users"])
        assert all(one["cluster"]["server"].endswith(".example.com:6443") for one in config["clusters"])


def test_the_readme_names_every_file() -> None:
    told = (manifests.samples() / "README.md").read_text()
    assert [file for file in map(name_in_samples, FILES) if f"`{file}`" not in told] == []


def name_in_samples(file: Path) -> str:
    return str(file.relative_to(manifests.samples()))
