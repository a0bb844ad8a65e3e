"""The write of a ManifestWork: when there is none, and what a malformed queue does to it."""

from datetime import UTC, datetime

from placement_ac.core.api.decode import manifest_work
from placement_ac.core.inputs.worker_setup import SetupUsage, WorkerSetupInputs, WorkerSetupPolicy
from placement_ac.core.worker_setup.manifests import with_kept
from placement_ac.core.worker_setup.planning import plan_worker_setup

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINE = [{"manager": "placement-ac", "operation": "Apply", "fieldsV1": {}}]


def test_without_its_managed_cluster_a_manifest_work_is_left_to_ocm() -> None:
    work = manifest_work({"metadata": {"name": "placement-ac-queues", "managedFields": MINE}})
    policy = WorkerSetupPolicy(enabled=True)
    inputs = WorkerSetupInputs("c1", NOW, policy=policy, work=work, usage=SetupUsage(listed=True))
    assert plan_worker_setup(inputs).phases == ()


def test_a_malformed_queue_of_a_template_stops_no_plan() -> None:
    def queue(amount: str) -> dict[str, object]:
        quotas = [{"name": "gpu", "nominalQuota": amount}]
        groups = [{"flavors": [{"name": "f", "resources": quotas}, {"odd": 1}]}, {"odd": 2}]
        spec = {"resourceGroups": groups}
        return {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}

    meta = {"kind": "ClusterQueue", "name": "q"}
    values = {"values": [{"name": "f/gpu", "fieldValue": {"string": "6"}}]}
    status = {"resourceStatus": {"manifests": [{"resourceMeta": meta, "statusFeedback": values}]}}
    work = manifest_work({"spec": {"workload": {"manifests": [queue("8")]}}, "status": status})
    assert with_kept((queue("2"),), work) == (queue("8"),)
