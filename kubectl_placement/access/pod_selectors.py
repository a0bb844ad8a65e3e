"""
Where a job's Pods are found on its cluster: by a label that the job's controller puts on them. Pure.

| job | label of its Pods | source |
|---|---|---|
| Job | `batch.kubernetes.io/job-name` | kubernetes, pkg/apis/batch/types.go |
| JobSet, TrainJob | `jobset.sigs.k8s.io/jobset-name` | jobset, api/jobset; a TrainJob makes a JobSet |
| PyTorchJob, TFJob, JAXJob, PaddleJob, XGBoostJob | `training.kubeflow.org/job-name` | training-operator |
| MPIJob | `training.kubeflow.org/job-name` | mpi-operator, pkg/apis/kubeflow/v2beta1/constants.go |
| RayCluster, RayJob, RayService | `ray.io/cluster`: the name in its status | kuberay, utils/constant.go |
| RayJob's submitter | `batch.kubernetes.io/job-name`: that of the RayJob | kuberay, rayjob_controller.go |
| LeaderWorkerSet | `leaderworkerset.sigs.k8s.io/name` | lws, api/leaderworkerset/v1 |
| PipelineRun | `tekton.dev/pipelineRun` | tekton, pkg/apis/pipeline/register.go |
| AppWrapper | `workload.codeflare.dev/appwrapper` | appwrapper, api/v1beta2 |
| SparkApplication | `sparkoperator.k8s.io/app-name` | spark-operator, pkg/common/spark.go |

Pods of a group or of a StatefulSet are those of the group with the name of the Workload among all that
Kueue manages (kueue, jobs/pod/constants). Pods of any other job are found by their owners.
"""

from collections.abc import Mapping
from typing import Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.jobs.lookup import JobId
from placement_ac.core.api.constants import LABEL_MANAGED
from placement_ac.core.api.copy_owner import copy_owner, pod_group
from placement_ac.core.api.fields import get_list, get_str

JOB_NAME: Final = "batch.kubernetes.io/job-name"
RAY_CLUSTER: Final = "ray.io/cluster"
_KUBEFLOW: Final = "training.kubeflow.org/job-name"
_JOBSET: Final = "jobset.sigs.k8s.io/jobset-name"
LABELS: Final[Mapping[tuple[str, str], str]] = {
    ("batch", "Job"): JOB_NAME,
    ("jobset.x-k8s.io", "JobSet"): _JOBSET,
    ("trainer.kubeflow.org", "TrainJob"): _JOBSET,
    **{
        ("kubeflow.org", kind): _KUBEFLOW
        for kind in ("PyTorchJob", "TFJob", "JAXJob", "PaddleJob", "XGBoostJob", "MPIJob")
    },
    ("ray.io", "RayCluster"): RAY_CLUSTER,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "leaderworkerset.sigs.k8s.io/name",
    ("tekton.dev", "PipelineRun"): "tekton.dev/pipelineRun",
    ("workload.codeflare.dev", "AppWrapper"): "workload.codeflare.dev/appwrapper",
    ("sparkoperator.k8s.io", "SparkApplication"): "sparkoperator.k8s.io/app-name",
}
"""Group and kind of a job → the label with its name that its Pods have."""
_RAY_NAMES: Final = (
    ("status", "rayClusterName"),
    ("status", "activeServiceStatus", "rayClusterName"),
    ("status", "pendingServiceStatus", "rayClusterName"),
)
_GROUPED: Final = frozenset({("", "Pod"), ("apps", "StatefulSet")})
"""Jobs whose Pods are a group."""
_DIRECT: Final = frozenset({("batch", "Job"), ("ray.io", "RayCluster"), ("tekton.dev", "TaskRun")})
"""Jobs that own their Pods themselves: one that another job of the name owns is not theirs."""


def selectors(job: JobId, copy: Object | None) -> tuple[str, ...] | None:
    """Return the label selectors of a job's Pods; None: they are found by their owners.

    `copy`: the job on its cluster, if it can be read.
    """
    kind = (job.group, job.kind)
    if kind in _GROUPED:
        return (f"{LABEL_MANAGED}=true",)
    if label := LABELS.get(kind):
        return (f"{label}={job.name}",)
    if job.group == "ray.io" and job.kind in ("RayJob", "RayService"):
        names = dict.fromkeys(filter(None, (get_str(copy, *path) for path in _RAY_NAMES)))
        clusters = (f"{RAY_CLUSTER}={name}" for name in names)
        return (*clusters, *((f"{JOB_NAME}={job.name}",) if job.kind == "RayJob" else ()))
    return None


def is_of_another(job: JobId, workload: str, copy: Object | None, pod: Object) -> bool:
    """Whether a Pod that `selectors` finds is of another group, or by its owner's uid of another run."""
    if (job.group, job.kind) in _GROUPED:
        return pod_group(pod) != workload
    uid = get_str(copy, "metadata", "uid")
    if not uid or (job.group, job.kind) not in _DIRECT:
        return False
    owners = get_list(pod, "metadata", "ownerReferences")
    return not any(owner.get("uid") == uid for owner in owners)


def copy_problem(job: JobId, workload: str, uid: str, copy: Object) -> str:
    """Return why the job of that name on the cluster is not the hub's, of that Workload; "" if it is."""
    if copy_owner(copy).is_of(workload, uid):
        return ""
    named = f"{job.kind} {job.namespace}/{job.name}"
    return f"rename or delete {named} there, or the hub's: it is another one of the same name"
