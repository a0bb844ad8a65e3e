"""A worker whose Kueue does not start the kind of a job: it admits the copy, and the job never runs."""

import json
from pathlib import Path

from tests.placement_ac.controller.test_dispatch import entry
from tests.support import commands
from tests.support.driver import Controllers, Driver
from tests.support.jobs import dispatched, soon

GPU = "nvidia.com/gpu"
QUOTAS = {name: {"default": {GPU: "8"}} for name in ("a", "b")}
WHY = "had no integration batch/job: add it to integrations.frameworks of Kueue's configuration there"


def test_a_job_runs_on_a_cluster_that_has_its_integration(admin: Driver, controllers: Controllers) -> None:
    settings = {"look_for": ("integrations",)}
    with dispatched(admin, controllers, ["a", "b"], quotas=QUOTAS, controller=settings) as stage:
        stage.fleet.enable_integrations("a", "jobset.x-k8s.io/jobset")
        stage.submit("train", requests={GPU: "1"})
        soon(lambda: stage.placed("train"), "p-b")
        soon(lambda: stage.fleet.counter.running("train"), ["b"])


def test_a_job_that_no_cluster_starts_says_why(
    admin: Driver, controllers: Controllers, tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("dispatch: {enabled: true, lookFor: [integrations]}\n")
    settings = {"look_for": ("integrations",)}
    quotas = {"a": QUOTAS["a"]}
    with dispatched(admin, controllers, ["a"], quotas=quotas, controller=settings) as stage:
        stage.fleet.enable_integrations("a", "pod")
        stage.submit("train", requests={GPU: "1"})
        soon(lambda: entry(stage, "train")[1], f"NoClusterFits: 0/1 clusters fit: 1 {WHY} (Framework)")
        hub = f"--kubeconfig={controllers.kubeconfig}", f"--config={file}"
        done = commands.run("explain", "workload", "train", "--workers", "-o", "json", *hub)
        [cluster] = json.loads(done.stdout)["workload"]["placements"][0]["clusters"]
        assert (cluster["cluster"], cluster["filter"], cluster["reason"]) == ("a", "Framework", WHY)
