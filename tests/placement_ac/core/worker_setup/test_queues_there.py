"""The queues that a ManifestWork has put onto a worker."""

from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.api.decode import manifest_work
from placement_ac.core.api.objects import ManifestState, ManifestWork
from placement_ac.core.worker_setup.queues_there import manifests_in, queues_there

QUEUE = ("team-a", "team")
LOCAL_QUEUE = {
    "kind": "LocalQueue",
    "metadata": {"namespace": QUEUE[0], "name": QUEUE[1]},
    "spec": {"clusterQueue": "team"},
}
KEY = ("ClusterQueue", "", "team")


def work(state: ManifestState | None) -> ManifestWork:
    resources = [{"name": "cpu", "nominalQuota": "8"}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}]
    queue = {"kind": "ClusterQueue", "metadata": {"name": "team"}, "spec": {"resourceGroups": groups}}
    raw: dict[str, Any] = {
        "metadata": {"name": "placement-ac-queues", "namespace": "c1"},
        "spec": {
            "workload": {"manifests": [{"kind": "Namespace", "metadata": {"name": "x"}}, queue, LOCAL_QUEUE]}
        },
    }
    return replace(manifest_work(raw), states={KEY: state} if state else {})


@pytest.mark.parametrize("state", [None, ManifestState(applied=True, available=True)])
def test_what_was_written_is_there(state: ManifestState | None) -> None:
    written = work(state)
    found = queues_there(manifests_in(written), written.states)
    assert found
    [quota] = found[QUEUE].quotas["cpu"]
    assert (found[QUEUE].cluster_queue, quota.nominal) == ("team", 8000)


@pytest.mark.parametrize("message", ["conflict with admin", "forbidden"])
def test_what_was_not_applied_is_not_known(message: str) -> None:
    written = work(ManifestState(applied=False, available=True, message=message))
    assert queues_there(manifests_in(written), written.states) is None
