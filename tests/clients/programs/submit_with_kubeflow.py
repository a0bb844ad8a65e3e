"""Kubeflow's SDK: it submits a TrainJob in a queue, and waits for its end. It cannot submit Jobs."""

import sys

from kubeflow.trainer import CustomTrainerContainer, KubernetesBackendConfig, TrainerClient
from kubeflow.trainer.options import Labels

[QUEUE] = sys.argv[1:]

client = TrainerClient(KubernetesBackendConfig(namespace="default"))
[runtime] = client.list_runtimes()
name = client.train(
    runtime=runtime,
    trainer=CustomTrainerContainer(image="registry.example/train", resources_per_node={"cpu": "1"}),
    options=[Labels({"kueue.x-k8s.io/queue-name": QUEUE})],
)
assert [job.name for job in client.list_jobs()] == [name]
assert client.wait_for_job_status(name, timeout=60, polling_interval=1).status == "Complete"
client.delete_job(name)
assert client.list_jobs() == []
sys.stdout.write(f"default/{name}\n")
