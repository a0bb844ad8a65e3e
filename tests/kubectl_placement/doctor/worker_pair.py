"""A hub and a worker, both set up as samples/tas says, that doctor inspects."""

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from kubectl_placement.doctor.worker_rules import READS, RULES
from placement_ac.core.inputs.rights import parse_release, policy_rules
from placement_lab.standins import manifests
from tests.support import commands, kueue
from tests.support.admin import Admin, login_to
from tests.support.crds import bundled_crd
from tests.support.driver import CORE, NS, Driver, Object

CLUSTER = "cluster2"
TOKEN = "SeCrEt-of-the-account"
SAMPLES = manifests.samples() / "tas"
FRAMEWORKS = ["batch/job", "jobset.x-k8s.io/jobset"]
"""The job kinds that Kueue on the hub sends: `kueue.SHIPPED`."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
QUEUE = f"{KUEUE}/clusterqueues/cluster-queue-tas"
SECRET = f"{CORE}/namespaces/{NS}/secrets/multikueue-{CLUSTER}"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NS}/deployments/{kueue.MANAGER}"
TOPOLOGY = f"{KUEUE}/topologies/topology-tas"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBSETS = bundled_crd("jobsets.jobset.x-k8s.io")
EXTRA = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "q", "namespace": "team"},
    "spec": {"clusterQueue": "cluster-queue-tas"},
}
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
ALL_OK = [(rule.check, "OK") for rule in RULES]


class Pair:
    """A hub and a worker, both set up as samples/tas says, and a folder for the commands."""

    def __init__(self, hub: Driver, worker: Driver, folder: Path) -> None:
        self.hub = hub
        self.worker = worker
        self.folder = folder
        self.stores: dict[str, Any] = {}

    def set_up(self) -> None:
        """Put up what a test may have broken; whatever it has put there beside that stays."""
        self.secret()
        self.grant("sender", *needed())
        self.grant("reader", *READS)
        with Admin(login_to(self.worker.hub)) as admin:
            admin.apply(JOBSETS, TEAM, *manifests.load(SAMPLES / "worker.yaml"), EXTRA, *kueue.installed())
        self.kueue_looks()

    def kueue_looks(self) -> None:
        """Write the conditions that the worker's Kueue would give ClusterQueues."""
        condition = {"type": "Active", "status": "True", "reason": "Ready", "message": ""}
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        for queue in self.worker.ask("GET", f"{KUEUE}/clusterqueues")["items"]:
            path = f"{KUEUE}/clusterqueues/{queue['metadata']['name']}/status"
            self.worker.ask("PATCH", path, {"status": {"conditions": [condition | since]}}, "merge")

    def doctor(self, *words: str) -> list[Object]:
        """Return its findings on workers."""
        given = [f"--kubeconfig={self.folder / 'hub.kubeconfig'}", "--workers", "-ojson", *words]
        done = commands.run("doctor", *given)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert TOKEN not in done.output
        assert self.worker.hub.token not in done.output
        findings = json.loads(done.stdout)["findings"]
        mine = [
            one for one in findings if one["check"].startswith("worker-") and one["check"] != "worker-setup"
        ]
        # A rule for both has a finding about the hub, before that about the worker.
        both = [one for one in findings if one["check"] == "stored-versions"][1:]
        found = [one for one in findings if one in mine or one in both]
        assert {one["message"].partition(": ")[0] for one in found} == {CLUSTER}
        return found

    def levels(self) -> list[tuple[str, str]]:
        return [(one["check"], one["level"]) for one in self.doctor()]

    def paste(self, fix: str) -> None:
        """Run a fix in a shell, as an admin of both."""
        files = f"{self.folder / 'hub.kubeconfig'}:{self.folder / 'worker.kubeconfig'}"
        done = subprocess.run(
            ["/bin/bash", "-c", fix],
            env={"PATH": os.environ["PATH"], "KUBECONFIG": files, "HOME": str(self.folder)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def grant(self, name: str, *granted: Object) -> None:
        """Let the account do that; nothing else of that name."""
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}
        named = {"metadata": {"name": name}}
        self.worker.try_("DELETE", f"{RBAC}/clusterroles/{name}")
        self.worker.ask("POST", f"{RBAC}/clusterroles", named | {"rules": list(granted)})
        self.worker.try_("POST", f"{RBAC}/clusterrolebindings", named | {"roleRef": role, "subjects": [user]})

    def secret(self, token: str = TOKEN) -> bytes:
        """Put the kubeconfig into its Secret, and return it."""
        content = self.worker.hub.kubeconfig()
        content["users"][0]["user"] = {"token": token}
        text = json.dumps(content).encode()
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"multikueue-{CLUSTER}"}}
        data = {"kubeconfig": base64.b64encode(text).decode()}
        self.hub.ask("PATCH", SECRET, body | {"data": data}, "apply", force="true")
        return text


def needed() -> list[Object]:
    """The rules that MultiKueue needs on the worker."""
    return [rule.as_dict() for rule in policy_rules(FRAMEWORKS, kueue=parse_release("0.20.6"))]
