"""Wherever one looks, and whichever dispatcher nominates: the state of a cluster that leaves is the same."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kubectl_placement.cli.hub_options import HubSource, read_once
from kubectl_placement.cli.ui_feed import KINDS
from kubectl_placement.ui.live_status import LiveStatus
from placement_ac.cli.documents import plain
from placement_ac.config.layout import as_file
from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_lab.standins.multikueue import KueueSettings
from tests.placement_ac.observability.test_metrics_on_hub import Page, reads
from tests.support import commands
from tests.support.driver import Controllers, Driver, free_port
from tests.support.jobs import Stage, open_stage, soon

MODES: dict[str, dict[str, Any]] = {
    "gate": {},
    "dispatcher, shared names": {"dispatcher": True, "unlist_after": 3600, "cluster_names": "{cluster}"},
}


class Places(NamedTuple):
    """The state of cluster a, by the place that shows it; "": it shows none."""

    condition: str
    status: str
    page: str
    metrics: str
    start: str
    """The metric of the alert."""


def everywhere(state: str) -> Places:
    shown = "listed" if state == "standby" else state
    return Places(
        "" if state == "listed" else state,
        state,
        shown,
        "" if state == "listed" else state,
        "draining" if state == "draining" else "",
    )


class Scene:
    """Two clusters, of which a is to leave, and the commands that look at it."""

    def __init__(self, stage: Stage, mode: str, read: Callable[[], Page], settings: Path) -> None:
        self.stage, self.mode, self.read = stage, mode, read
        settings.write_text(json.dumps(as_file(MODES[mode])))
        self._options = [f"--kubeconfig={stage.controllers.kubeconfig}", f"--config={settings}"]

    def command(self, *words: str) -> Any:
        done = commands.run(*words, *self._options, "-o", "json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def places(self) -> Places:
        (check,) = self.command("status", "p")["checks"]
        status = next((row["state"] for row in check["clusters"] if row["name"] == "a"), "")
        remark, page = self.stage.remark(), self.read()
        return Places(
            next(
                (
                    s
                    for s, text in (("draining", "draining: a "), ("standby", "standing by: a"))
                    if text in remark
                ),
                "",
            ),
            status,
            _now(self.page()),
            next((s for s in ("draining", "standby") if page.sum("clusters", check="p", state=s)), ""),
            "draining" if page.sum("oldest_drain_start_timestamp_seconds", check="p") else "",
        )

    def page(self) -> Any:
        """The last hour of the page of `placement-ac ui`, opened just now."""
        kubeconfig, config = (Path(option.partition("=")[2]) for option in self._options)
        reading = read_once(HubSource(kubeconfig, config=config), KINDS)
        live = LiveStatus()
        live.update(reading.view)
        return plain(live.timeline("p", reading.view.now))

    def events(self) -> list[str]:
        found = [event["reason"] for event in self.stage.admin.events("AdmissionCheck")]
        return [reason for reason in found if reason.startswith("Cluster")]


def _now(timeline: Any) -> str:
    """Return the state at the end of a's lane; "": it is not listed then."""
    lanes = [lane for lane in timeline["lanes"] if lane["name"] == "a"]
    spans = [span for lane in lanes for span in lane["spans"] if span["end"] == timeline["end"]]
    return str(spans[-1]["state"]) if spans else ""


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, admin: Driver, controllers: Controllers, tmp_path: Path
) -> Iterator[Scene]:
    mode, port = request.param, free_port()
    settings = KueueSettings(dispatcher=OUR_CONTROLLER) if "dispatcher" in mode else KueueSettings()
    with open_stage(admin, controllers, ["a", "b"], settings=settings) as stage:
        stage.select("a", "b")
        controllers.start(metrics_bind_address=f"127.0.0.1:{port}", **MODES[mode])
        soon(stage.connected, 2)
        yield Scene(stage, mode, reads(port), tmp_path / "settings.yaml")


@pytest.mark.parametrize("scene", MODES, indirect=True)
def test_every_place_says_the_same(scene: Scene) -> None:
    stage, mode = scene.stage, scene.mode
    stage.select("a")
    stage.submit("runs")
    stage.until_runs("runs", "a")
    stage.select("a", "b")
    soon(scene.places, everywhere("listed"))
    stage.select("b")
    soon(scene.places, everywhere("draining"))
    assert scene.events()[-1] == "ClusterDraining"
    stage.select("a", "b")
    soon(scene.places, everywhere("listed"))
    stage.select("b")
    soon(scene.places, everywhere("draining"))
    stage.finish("runs")
    if MODES[mode].get("unlist_after"):
        soon(scene.places, everywhere("standby"))
        assert scene.events()[-1] == "ClusterDrained"
    else:
        soon(scene.places, everywhere(""))
        assert scene.events()[-1] == "ClusterRemoved"
