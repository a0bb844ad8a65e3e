"""Metaflow: the client of its Kubernetes decorator. A whole flow would also need an object store."""

import sys
import time

from metaflow.plugins.kubernetes.kubernetes_client import KubernetesClient

QUEUE, SECONDS = sys.argv[1:]

job = (
    KubernetesClient()
    .job(
        generate_name="metaflow-",
        namespace="default",
        labels={"kueue.x-k8s.io/queue-name": QUEUE},
        step_name="train",
        image="registry.example/train",
        image_pull_policy=None,
        command=["sleep", f"{SECONDS}s"],
        cpu="1",
        memory="64",
        disk="64",
        qos="Burstable",
        gpu=None,
        port=None,
        use_tmpfs=False,
        tmpfs_size=None,
        shared_memory=None,
        persistent_volume_claims=None,
        service_account=None,
        timeout_in_seconds=600,
    )
    .create()
    .execute()
)
while not job.is_done:
    assert job.status in ("Job status is unknown", "Job is active")
    time.sleep(0.2)
assert not job.has_failed
sys.stdout.write(f"default/{job.id.removeprefix('job ')}\n")  # no Pod is on the hub
