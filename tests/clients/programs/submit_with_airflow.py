"""Airflow: the operator that starts a Job in a queue of Kueue. Its scheduler and its database do not run.

`wait_until_job_complete` is not set: it reads the Job's Pods, which MultiKueue leaves on the workers.
"""

import sys
from unittest.mock import Mock

from airflow.providers.cncf.kubernetes.operators.kueue import KubernetesStartKueueJobOperator

QUEUE, SECONDS = sys.argv[1:]

operator = KubernetesStartKueueJobOperator(
    task_id="train",
    name="airflow",
    namespace="default",
    queue_name=QUEUE,
    image="registry.example/train",
    cmds=["sleep"],
    arguments=[f"{SECONDS}s"],
    container_resources={"requests": {"cpu": "100m", "memory": "64Mi"}},
    backoff_limit=0,
    kubernetes_conn_id=None,
)
operator.execute({"ti": Mock(map_index=-1, try_number=1), "run_id": "once", "dag": None})
job = operator.job.metadata
ended = operator.hook.wait_until_job_complete(job.name, job.namespace, job_poll_interval=0.2)
assert operator.hook.is_job_successful(ended)
sys.stdout.write(f"{job.namespace}/{job.name}\n")
