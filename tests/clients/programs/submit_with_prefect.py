"""Prefect: its Kubernetes worker runs a flow run. Its server, where the run would come from, does not run."""

import asyncio
import sys
from unittest.mock import AsyncMock
from uuid import uuid4

from kubernetes_asyncio import client, config
from prefect.client.schemas.objects import FlowRun
from prefect_kubernetes.worker import KubernetesWorker, KubernetesWorkerJobConfiguration

QUEUE, SECONDS = sys.argv[1:]
VARIABLES = {
    "name": "prefect",
    "image": "registry.example/train",
    "command": f"sleep {SECONDS}s",
    "labels": {"kueue.x-k8s.io/queue-name": QUEUE},
    "cpu_request": "100m",
    "memory_request": "64Mi",
}


async def ended(name: str, namespace: str) -> bool:
    async with await config.new_client_from_config() as api:
        while True:
            job = await client.BatchV1Api(api).read_namespaced_job_status(name, namespace)
            if job.status.completion_time:
                return job.status.succeeded == 1
            await asyncio.sleep(0.2)


async def main() -> None:
    template = KubernetesWorker.get_default_base_job_template()
    configuration = await KubernetesWorkerJobConfiguration.from_template_and_values(
        template, VARIABLES, client=AsyncMock()
    )
    run = FlowRun(id=uuid4(), flow_id=uuid4(), name="train")
    configuration.prepare_for_flow_run(run)
    result = await KubernetesWorker(work_pool_name="hub").run(run, configuration)
    namespace, name = result.identifier.split(":")
    assert await ended(name, namespace)
    sys.stdout.write(f"{namespace}/{name}\n")


asyncio.run(main())
