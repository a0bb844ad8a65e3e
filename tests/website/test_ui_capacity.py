"""The GPUs of each cluster on the page of `placement-ac ui`, in a browser."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.cli.ui_thread import UiThread
from placement_ac.core.capacity_report.document import documents
from placement_ac.core.capacity_report.model import Amounts, CapacityReport, ClusterCapacity, Supply
from placement_lab.hub import Hub
from tests.kubectl_placement.test_timeline import prometheus
from tests.support.browser import COLOURS, READABLE, STICKING_OUT, contrast
from tests.support.driver import CORE, NS, Controllers, Driver, eventually
from tests.support.jobs import WORKLOADS, has_quota, is_admitted_on

pytestmark = pytest.mark.long
GPU = "nvidia.com/gpu"
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
BOTH = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}


def day(query: dict[str, Any]) -> tuple[int, str]:
    """Every hour, a GPU more or less was used on a."""
    begin = float(query["start"])
    values = [[begin + 360 * n, str(abs(n // 10 - 6) % 8)] for n in range(240)]
    result = [{"metric": {"cluster": "a"}, "values": values}]
    return 200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def publish(admin: Driver) -> None:
    """The answers of a controller: 6 of 8 GPUs of a are used, b is free, and c is not known."""
    gpus = Supply("f", GPU)
    clusters = (
        ClusterCapacity("a", ("p",), NOW, quota={gpus: Amounts(8000, 6000, 4000, 0, 2000, 0)}),
        ClusterCapacity("b", ("p",), NOW, quota={gpus: Amounts(8000, 0, 0, 0, 8000, 8000)}),
        ClusterCapacity("c", ("p",), None, "OCM cannot reach it"),
    )
    text, _ = documents(CapacityReport(clusters, (GPU,), {}))
    body = {"metadata": {"name": "placement-ac-capacity"}, "data": {"capacity.json": text}}
    admin.ask("POST", f"{CORE}/namespaces/{NS}/configmaps", body)


def run_job(admin: Driver, name: str, gpus: int) -> None:
    """A Workload that runs on a."""
    has_quota(admin, name, "p", "mk")
    workload = admin.ask("GET", f"{WORKLOADS}/{name}")
    workload["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {GPU: gpus}
    }
    admin.ask("PATCH", f"{WORKLOADS}/{name}", {"spec": workload["spec"]}, "merge")
    is_admitted_on(admin, name, "p-a")


@pytest.fixture
def kubeconfig(hub: Hub, admin: Driver, controllers: Controllers, tmp_path: Path) -> Path:
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.select("p", "a", "b", "c")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    run_job(admin, "large", 4)
    publish(admin)
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    return tmp_path / "kubeconfig"


@pytest.mark.parametrize(("scheme", "size"), [("light", "wide"), ("dark", "narrow")])
def test_used_waited_for_and_free(kubeconfig: Path, browser: Any, scheme: Any, size: str) -> None:
    with prometheus(day) as url, UiThread(kubeconfig, prometheus=url) as served:
        context = browser.new_context(viewport=BOTH[size], color_scheme=scheme)
        page = context.new_page()
        trouble: list[str] = []
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.goto(f"{served.url}#p")
        lanes = page.locator("#capacity .lane")
        lanes.first.get_by_text("6 of 8 used, 4 waited for, 2 free").wait_for(timeout=20_000)
        lanes.first.locator(".run.others").wait_for()
        assert lanes.first.locator(".quota > div").count() == 3
        assert lanes.first.get_attribute("data-detail").endswith("default/large: 4 GPUs")
        assert lanes.first.locator("path").count() == 1, "the last day"
        assert lanes.nth(1).get_by_text("0 of 8 used, 0 waited for, 8 free").is_visible()
        assert lanes.nth(2).get_by_text("not known: OCM cannot reach it").is_visible()
        colours = page.evaluate(COLOURS)
        assert [colour for colour in colours if contrast(colour[1], colour[2]) < READABLE] == []
        assert page.evaluate(STICKING_OUT) == []
        assert trouble == []
        context.close()
