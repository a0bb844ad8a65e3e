"""Programs that submit jobs, each a release of its project: its Job runs on a worker, and it sees the end.

README names their versions. A docstring of a program says which part of it runs here.
"""

from pathlib import Path

import pytest
import yaml

from placement_ac.core.api.constants import DEPLOYMENT, Kind
from placement_ac.kube.client import Object
from tests.clients.conftest import JOBS, NAMES, QUEUE, Lab
from tests.clients.installed import PROGRAMS, output, start
from tests.support.driver import eventually
from tests.support.kueue import MANAGER, NAMESPACE, installed

TRAINER = "trainer.kubeflow.org"
TRAIN_JOBS = Kind(TRAINER, "TrainJob", "trainjobs", True, ("v1alpha1",)).at("v1alpha1")
TRAINING = {"ClusterTrainingRuntime": "Cluster", "TrainingRuntime": "Namespaced", "TrainJob": "Namespaced"}
"""The kinds of Kubeflow's Trainer, and their scopes."""
LABELS = {f"{TRAINER}/trainjob-ancestor-step": "trainer"}
NODE = {"containers": [{"name": "node", "image": "registry.example/train"}]}
NODES = {"metadata": {"labels": LABELS}, "spec": {"template": {"spec": NODE}}}
RUNTIME = {
    "apiVersion": f"{TRAINER}/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "plain", "labels": {f"{TRAINER}/framework": "plain"}},
    "spec": {
        "mlPolicy": {"numNodes": 1},
        "template": {"spec": {"replicatedJobs": [{"name": "node", "template": NODES}]}},
    },
}
NOW = "2026-11-29T12:00:00Z"
COMPLETE = {"type": "Complete", "status": "True", "reason": "JobsCompleted", "lastTransitionTime": NOW}
OFFLINE = {
    "PREFECT_API_URL": "http://127.0.0.1:9/api",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    "METAFLOW_USER": "tests",
}
WORKFLOW = """
rule train:
    resources: gpu=1, gpu_manufacturer="nvidia", scale=False
    shell: "train"
"""
RSYNC = """\
#!/bin/sh
for word; do from=$to to=$word; done
exec cp -rL "$from" "$to"
"""
"""For snakemake's storage, where the machine has no rsync."""


@pytest.mark.parametrize("client", ["airflow", "metaflow", "prefect"])
def test_a_job_that_sleeps(lab: Lab, tmp_path: Path, client: str) -> None:
    program = str(PROGRAMS / f"submit_with_{client}.py")
    run = start(client, lab.kubeconfig, tmp_path, "python", program, QUEUE, "1", **OFFLINE)
    namespace, name = output(run).splitlines()[-1].split("/")  # Airflow logs to standard output
    job = lab.hub.get(JOBS, name, namespace)
    assert job is not None
    assert job["status"]["succeeded"] == 1
    assert lab.ran_on(job) in NAMES


def test_snakemake_sees_the_end_of_a_job_without_a_label(lab: Lab, tmp_path: Path) -> None:
    """It is of the LocalQueue `default`. Its shell does not sleep, so its Pods' end is played here."""
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    (tmp_path / "rsync").write_text(RSYNC)
    (tmp_path / "rsync").chmod(0o755)
    storage = ("--default-storage-provider", "fs", "--default-storage-prefix", str(tmp_path / "storage"))
    words = ("--executor", "kubernetes", "--jobs", "1", "--seconds-between-status-checks", "1", *storage)
    run = start("snakemake", lab.kubeconfig, tmp_path, "snakemake", *words)
    eventually(lambda: run.poll() is not None or lab.complete("snakejob-"), seconds=60)
    output(run)
    assert not any(job["metadata"]["name"].startswith("snakejob-") for job in lab.hub.list(JOBS))


def test_kubeflow_submits_a_trainjob(lab: Lab, tmp_path: Path) -> None:
    """The hub lacks its kinds, and nothing runs a TrainJob: the test writes its end, as MultiKueue does."""
    lab.hub.apply(*(_kind(kind, scope) for kind, scope in TRAINING.items()))
    lab.hub.apply(RUNTIME)
    program = str(PROGRAMS / "submit_with_kubeflow.py")
    run = start("kubeflow", lab.kubeconfig, tmp_path, "python", program, QUEUE)
    eventually(lambda: run.poll() is not None or lab.hub.list(TRAIN_JOBS), seconds=60)
    [metadata] = [job["metadata"] for job in lab.hub.list(TRAIN_JOBS)] or [output(run)]
    patch = {"status": {"conditions": [COMPLETE | {"message": ""}]}}
    lab.hub.merge(TRAIN_JOBS, metadata["name"], patch, namespace="default", subresource="status")
    assert output(run) == f"default/{metadata['name']}\n"
    assert metadata["labels"] == {"kueue.x-k8s.io/queue-name": QUEUE}


def test_airflow_installs_kueue(lab: Lab, tmp_path: Path) -> None:
    """It waits for the Deployment's replicas, which no controller of the hub starts."""
    (tmp_path / "kueue.yaml").write_text(yaml.safe_dump_all(installed()))
    program = str(PROGRAMS / "install_with_airflow.py")
    run = start("airflow", lab.kubeconfig, tmp_path, "python", program, "kueue.yaml")
    deployments = DEPLOYMENT.at("v1")
    eventually(lambda: run.poll() is not None or lab.hub.get(deployments, MANAGER, NAMESPACE), seconds=60)
    patch = {"status": {"replicas": 1, "readyReplicas": 1}}
    lab.hub.merge(deployments, MANAGER, patch, namespace=NAMESPACE, subresource="status")
    output(run)


def _kind(kind: str, scope: str) -> Object:
    """Return the CRD of a kind of Kubeflow's Trainer that takes any field."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": anything},
    }
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{TRAINER}"},
        "spec": {
            "group": TRAINER,
            "names": {"kind": kind, "plural": plural},
            "scope": scope,
            "versions": [version],
        },
    }
