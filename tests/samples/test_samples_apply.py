"""
Every document of every sample is accepted by the embedded hub with its own kinds, as kubectl sends it.

kubectl asks for strict validation: a field that the kind's schema does not have is refused.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from placement_lab.hub import Hub
from placement_lab.standins import manifests
from tests.support.driver import Driver, Object

SAMPLES = manifests.samples()
FOLDERS = sorted(str(path.relative_to(SAMPLES)) for path in (SAMPLES, *SAMPLES.rglob("*/")) if path.is_dir())
NOT_SENT = "kustomization.yaml"
"""kubectl builds objects from such a file, and sends those."""
JOBS = {"Job", "JobSet", "PipelineRun", "Workflow"}


@pytest.fixture(scope="module")
def served() -> Iterator[Driver]:
    """A hub that stores nothing of the tests."""
    with Hub() as hub, Driver(hub) as admin:
        yield admin


def documents(folder: str) -> list[Object]:
    """The objects of a folder, Namespaces first; a patch creates what it is applied to."""
    files = sorted(file for file in (SAMPLES / folder).glob("*.yaml") if file.name != NOT_SENT)
    sent = [one for file in files for one in manifests.load(file)]
    return sorted(sent, key=lambda one: one["kind"] != "Namespace")


def collection(admin: Driver, item: Object) -> str:
    """The path of the objects of an object's kind, in its namespace; discovery names it."""
    version = item["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    found = admin.try_("GET", base)
    served = found.json().get("resources", []) if found.ok else []
    [kind] = [one for one in served if one["kind"] == item["kind"] and "/" not in one["name"]]
    if not kind["namespaced"]:
        return f"{base}/{kind['name']}"
    return f"{base}/namespaces/{item['metadata'].get('namespace', 'default')}/{kind['name']}"


def send(admin: Driver, item: Object) -> Object:
    """Apply an object server-side; create it if the hub is to name it."""
    path = collection(admin, item)
    if name := item["metadata"].get("name"):
        admin.namespace(item["metadata"].get("namespace", "default"))
        query = {"fieldValidation": "Strict", "force": "true"}
        return admin.ask("PATCH", f"{path}/{name}", item, "apply", **query)
    return admin.ask("POST", path, item, fieldValidation="Strict")


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_hub_takes_every_document_of_a_sample(folder: str) -> None:
    with Hub() as hub, Driver(hub) as admin:
        for item in documents(folder):
            stored = send(admin, item)
            wanted = {
                key: value for key, value in item.items() if key not in ("metadata", "stringData", "status")
            }
            assert contains(stored, wanted), yaml.safe_dump(stored)


def test_the_samples_are_found() -> None:
    kinds = {document["kind"] for folder in FOLDERS for document in documents(folder)}
    assert kinds >= {*JOBS, "Topology", "Placement", "ClusterQueue", "ClusterProfile"}


@pytest.mark.parametrize(
    ("file", "place", "field"),
    [
        ("jobset/jobset.yaml", ("spec",), "managedby"),
        ("jobset/jobset.yaml", ("spec", "replicatedJobs", 0), "parallelism"),
        ("tas/hub.yaml", ("spec", "levels", 0), "label"),
        ("external-frameworks/workflow.yaml", (), "specs"),
    ],
)
def test_an_unknown_field_is_refused(
    served: Driver, file: str, place: tuple[str | int, ...], field: str
) -> None:
    kinds = {*JOBS, "Topology"}
    [item] = [one for one in manifests.load(SAMPLES / file) if one["kind"] in kinds]
    there: Any = item
    for step in place:
        there = there[step]
    there[field] = "x"
    name = {"name": "unknown-field", "namespace": "default"}
    answer = served.try_(
        "POST", collection(served, item), item | {"metadata": name}, fieldValidation="Strict", dryRun="All"
    )
    assert (answer.status_code, f'{field}"' in answer.json()["message"]) == (400, True), answer.text


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "should have at least 1 items"),
        (["rack", "rack"], "must be unique"),
        (["kubernetes.io/hostname", "rack"], "can only be used at the lowest level"),
    ],
)
def test_a_topology_follows_kueues_rules(served: Driver, labels: list[str], message: str) -> None:
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": "wrong"},
        "spec": {"levels": [{"nodeLabel": label} for label in labels]},
    }
    answer = served.try_("POST", served.kueue("topologies"), body)
    assert (answer.status_code, message in answer.json()["message"]) == (422, True), answer.text


def contains(there: Any, wanted: Any) -> bool:
    """Whether everything in `wanted` is there; lists keep their order."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(contains(there.get(key), one) for key, one in wanted.items())
    if isinstance(wanted, list):
        return len(there) == len(wanted) and all(map(contains, there, wanted))
    return bool(there == wanted)
