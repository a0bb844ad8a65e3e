"""The environment that `setup-env.sh` creates: kind clusters, read with kind and kubectl."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.demo.steps import LABEL
from placement_lab.standins.manifests import samples
from tests.kind.stories import THE_END

HUB = "hub"
WORKERS = ("cluster1", "cluster2", "cluster3")
ADDON = "resource-usage-collect"
MANIFESTS = ("multikueue-setup-demo1.yaml", "multikueue-setup-demo2.yaml", "placement-demo2-1.yaml")
HINT = "the three stories need what ./setup-env.sh makes, on a machine with docker"


def missing() -> str:
    """Return the missing parts in one line; empty when the environment is complete."""
    absent = [tool for tool in ("kind", "kubectl") if not shutil.which(tool)]
    if absent:
        return f"{' and '.join(absent)}: not on PATH; {HINT}"
    listed = subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=False)
    lacking = [name for name in (HUB, *WORKERS) if name not in listed.stdout.split()]
    if lacking:
        return f"there is no kind cluster {', '.join(lacking)}: {HINT}"
    return ""


class Environment:
    """The hub and its workers, with the interface of `StepEnvironment`. `folder`: for kubeconfigs."""

    kubeconfigs: Mapping[str, bytes] = {}
    managed_clusters: Sequence[Object] = ()

    def __init__(self, folder: Path) -> None:
        self.hub = _kubeconfig(folder, HUB)
        self.workers = {name: Login(_kubeconfig(folder, name)) for name in WORKERS}

    def pause_addon(self) -> None:
        """Remove the addon from the clusters, so that only the stories write scores."""
        patch = '{"spec":{"installStrategy":{"type":"Manual"}}}'
        _kubectl(HUB, "patch", "clustermanagementaddon", ADDON, "--type=merge", f"--patch={patch}")
        for worker in WORKERS:
            _kubectl(HUB, "delete", "managedclusteraddon", ADDON, f"-n={worker}", "--ignore-not-found")

    def clear(self) -> None:
        """Restore the state before the stories: no objects of theirs, a T4 in the last two clusters."""
        _kubectl(HUB, "delete", "jobs", "--all", "-n=default")
        files = [f"--filename={samples() / name}" for name in MANIFESTS]
        _kubectl(HUB, "delete", *files, "--ignore-not-found", "--timeout=180s")
        _kubectl(HUB, "label", "managedcluster", "cluster1", f"{LABEL}-")
        _kubectl(HUB, "label", "managedcluster", *WORKERS[1:], f"{LABEL}=nvidia-tesla-t4", "--overwrite")

    def end_job(self, name: str) -> None:
        for worker in WORKERS:
            if _kubectl(worker, "get", f"job/{name}", "--ignore-not-found", "-o=name"):
                _kubectl(worker, "exec", f"job/{name}", "--", "touch", THE_END)

    def renew_token(self, cluster: str) -> None:
        raise NotImplementedError

    def replace_controller(self) -> None:
        raise NotImplementedError


def _kubeconfig(folder: Path, cluster: str) -> Path:
    path = folder / cluster
    path.touch(mode=0o600)
    command = ["kind", "get", "kubeconfig", f"--name={cluster}"]
    path.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    return path


def _kubectl(cluster: str, *words: str) -> str:
    command = ["kubectl", f"--context=kind-{cluster}", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
