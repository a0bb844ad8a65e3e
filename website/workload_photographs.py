"""
Create the pictures of `placement-ac explain workload --workers` in docs/images: photograph its output.

`make pictures`. Of three workers one has T4, and two have 8 and 16 H100. A job that needs 16 H100 waits on
the last one, where another job runs. The real command runs on the embedded hub, in a terminal.
"""

import asyncio
import os
import pty
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import KUEUE
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_ac.observability import logs
from placement_lab.demo.environment import ControllerThread
from placement_lab.demo.story3 import DEMO2
from placement_lab.hub import Hub
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.informer import StandIn
from placement_lab.standins.kueue_webhooks import JOB_WEBHOOK
from placement_lab.standins.manifests import apply, connect, load, samples
from placement_lab.standins.multikueue import KueueSettings
from placement_lab.standins.runner import StandIns
from website.photographs import CHROMIUM, IMAGES

DISPATCHER: Final = "open-cluster-management.io/placement"
DOMAIN: Final = "placement-ac.open-cluster-management.io"
QUEUE: Final = "user-queue-demo2"
GPU: Final = "nvidia.com/gpu"
GPUS: Final = {"cluster1": "32", "cluster2": "8", "cluster3": "16"}
MODELS: Final = {"cluster1": "nvidia-tesla-t4", "cluster2": "nvidia-h100", "cluster3": "nvidia-h100"}
SETTINGS: Final[Mapping[str, Any]] = {"dispatcher": True, "step_size": 1, "dispatch_profile": "headroom"}
POD: Final = "placement-ac-7c9d5b-x2x4l"
"""The host name of the controller's Pod, which the first line shows."""
WORDS: Final = ("explain", "workload", "train", "--workers")
COLUMNS: Final = 124
SPEED: Final = 20.0
"""The factor by which the stand-in for Kueue is faster than Kueue."""
SECONDS: Final = 20.0
WORKLOADS: Final = f"/apis/{KUEUE}/v1beta2/namespaces/default/workloads"
THEMES: Final = {
    "light": TerminalTheme((246, 248, 250), (31, 35, 40), [(31, 35, 40)] * 8),
    "dark": TerminalTheme((22, 27, 34), (230, 237, 243), [(230, 237, 243)] * 8),
}
PAGE: Final = """<body style="margin: 0"><pre style="display: inline-block; margin: 0; padding: 16px 20px;
color: {foreground}; background: {background}; font: 14px/1.45 'DejaVu Sans Mono', monospace">{code}</pre>"""


def manifests(fleet: WorkerFleet) -> list[Object]:
    """Return the setup of Story 2 with these workers, and a Placement that selects all of them."""
    of_fleet = load(samples() / "fleet" / "00-namespaces.yaml") + load(
        samples() / "fleet" / "cluster-set.yaml"
    )
    label = "cluster.open-cluster-management.io/clusterset"
    clusters = fleet.managed_clusters()
    for cluster in clusters:
        cluster["metadata"]["labels"] = {label: "spoke", "accelerator": MODELS[cluster["metadata"]["name"]]}
    placement: Object = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {"name": DEMO2, "namespace": "kueue-system"},
        "spec": {"clusterSets": ["spoke"]},
    }
    setup = load(samples() / f"multikueue-setup-{DEMO2.partition('-')[2]}.yaml")
    for queue in (item for item in setup if item["kind"] == "ClusterQueue"):
        [_, _, gpus] = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        gpus["nominalQuota"] = str(sum(map(int, GPUS.values())))  # the sample's 3 are fewer than a job needs
    return [*of_fleet, *controller(), *fleet.secrets(), *clusters, *setup, placement]


def controller() -> list[Object]:
    """Return the Deployment of the controller, of which the command reads the settings."""
    home = "placement-ac-system"
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
    container = {"name": "controller", "image": "registry.example/placement-ac:v1", "args": arguments}
    labels = {"app.kubernetes.io/name": "placement-ac"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "placement-ac", "namespace": home, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}, deployment]


def job(name: str, pods: int, **annotations: str) -> Object:
    """Return a Job with Pods of 8 GPUs each."""
    requests = {"requests": {GPU: "8"}, "limits": {GPU: "8"}}
    container = {"name": "main", "image": "registry.example/train", "resources": requests}
    template = {
        "metadata": {
            "annotations": {f"{DOMAIN}/{key.replace('_', '-')}": text for key, text in annotations.items()}
        },
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": QUEUE}},
        "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": template},
    }


@contextmanager
def stage() -> Iterator[tuple[Path, WorkerFleet]]:
    """Start the hub, the workers, the stand-ins and the controller; yield the hub's kubeconfig."""
    with ExitStack() as opened:
        quotas = {name: {"default": {GPU: number}} for name, number in GPUS.items()}
        fleet = opened.enter_context(WorkerFleet(GPUS, quotas=quotas, queues=(QUEUE,)))
        kubeconfig = Path(opened.enter_context(tempfile.TemporaryDirectory())) / "kubeconfig"
        hub = opened.enter_context(Hub())
        hub.add_webhook(JOB_WEBHOOK)
        hub.write_kubeconfig(kubeconfig)
        apply(connect(kubeconfig), manifests(fleet))
        opened.enter_context(StandIns(kubeconfig, ("ocm", _kueue)))
        opened.enter_context(patch("socket.gethostname", return_value=POD))
        opened.enter_context(ControllerThread(Settings(kubeconfig=kubeconfig, settle=0.0, **SETTINGS)))
        yield kubeconfig, fleet


def _kueue(login: Login) -> StandIn:
    from placement_lab.standins.kueue_manager import Kueue  # noqa: PLC0415  # in its own event loop

    return Kueue(login, settings=KueueSettings(dispatcher=DISPATCHER), speed=SPEED)


async def _nominated(kubeconfig: Path, name: str) -> list[str]:
    async with Client(Login(kubeconfig)) as client:
        found = await client.request("GET", WORKLOADS)
    [one] = [item for item in found["items"] if item["metadata"]["name"].startswith(f"job-{name}-")] or [{}]
    return list((one.get("status") or {}).get("nominatedClusterNames") or ())


def until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_true():
        if time.monotonic() > end:
            sys.exit("the jobs are not where they should be")
        time.sleep(0.1)  # the stand-ins and the controller act meanwhile


def output_of(kubeconfig: Path) -> str:
    """Return what the command writes to a terminal, after a prompt."""
    ours, its = pty.openpty()
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "COLUMNS": str(COLUMNS), "TERM": "xterm"}
    subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-m", "placement_ac", *WORDS], stdout=its, env=environment, check=True
    )
    os.close(its)
    written = b""
    try:
        while more := os.read(ours, 65536):
            written += more
    except OSError:  # the end, on Linux
        os.close(ours)
    return f"$ placement-ac {' '.join(WORDS)}\n{written.decode()}".replace("\r", "").rstrip()


def photograph(browser: Any, text: str, folder: Path) -> None:
    """Render the text of a terminal in a browser, in light and dark."""
    for scheme, theme in THEMES.items():
        out = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
        out.print(Text.from_ansi(text))
        page = browser.new_page(viewport={"width": 1600, "height": 800}, device_scale_factor=1.5)
        page.set_content(out.export_html(theme=theme, code_format=PAGE, inline_styles=True))
        page.locator("pre").screenshot(path=folder / f"explain-workload-{scheme}.png")
        page.close()


def play() -> str:
    """Run both jobs, and return what the terminal shows."""
    logs.configure("text", "error")
    with stage() as (kubeconfig, fleet):
        apply(connect(kubeconfig), [job("finetune", 1, cluster_selector="accelerator=nvidia-h100")])
        until(lambda: fleet.counter.running("finetune") == ["cluster3"])
        apply(connect(kubeconfig), [job("train", 2, cluster_selector="accelerator=nvidia-h100")])
        until(lambda: asyncio.run(_nominated(kubeconfig, "train")) == [f"{DEMO2}-cluster3"])
        return output_of(kubeconfig)


def main(folder: Path = IMAGES) -> None:
    """Write the pictures into a folder."""
    text = play()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        photograph(browser, text, folder)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
