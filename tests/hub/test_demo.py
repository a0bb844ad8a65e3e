"""`placement-ac demo`: the three stories, as a program and as a person see them."""

import functools
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from placement_ac.cli.demo import command
from placement_ac.demo import stories
from placement_ac.demo.play import Outcome, steps_of
from placement_ac.demo.shows import LiveShow, PlainShow
from placement_ac.demo.stories import Step
from placement_ac.hub import Hub
from tests.shared import published_crds

GENERATED = "MultiKueueConfig and MultiKueueCluster generated"
SECRETS = {
    "placement-demo2-cluster2": "kueue-admin-cluster2-kubeconfig",
    "placement-demo2-cluster3": "multikueue-cluster3",
}


def documents(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def listed(document: dict[str, Any]) -> list[str]:
    configs = [obj for obj in document["objects"] if obj["kind"] == "MultiKueueConfig"]
    return list(configs[0]["spec"]["clusters"]) if configs else []


def sources(document: dict[str, Any]) -> dict[str, Any]:
    return {
        obj["metadata"]["name"]: obj["spec"]["clusterSource"]
        for obj in document["objects"]
        if obj["kind"] == "MultiKueueCluster"
    }


def test_all_stories_as_json() -> None:
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-m", "placement_ac", "demo", "-o", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert time.monotonic() - began < 60
    told = documents(run.stdout)
    assert [doc["ok"] for doc in told] == [True] * 7
    assert all(doc["elapsedMilliseconds"] > 0 for doc in told)
    assert [(doc["story"], listed(doc)) for doc in told] == [
        (1, ["placement-demo1-cluster1", "placement-demo1-cluster2", "placement-demo1-cluster3"]),
        (2, ["placement-demo2-cluster2", "placement-demo2-cluster3"]),
        (2, ["placement-demo2-cluster1", "placement-demo2-cluster2", "placement-demo2-cluster3"]),
        (2, ["placement-demo2-cluster2", "placement-demo2-cluster3"]),
        (3, ["placement-demo2-cluster3"]),
        (3, ["placement-demo2-cluster2"]),
        (3, ["placement-demo2-cluster3"]),
    ]
    end_of_story_2 = told[3]
    condition = end_of_story_2["condition"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Active", GENERATED)
    assert sources(end_of_story_2) == {
        name: {"kubeConfig": {"location": secret, "locationType": "Secret"}}
        for name, secret in SECRETS.items()
    }


def test_one_story_alone_in_plain_lines() -> None:
    run = CliRunner().invoke(command, ["--story", "3"])
    assert run.exit_code == 0, run.output
    lines = run.output.splitlines()
    assert [line for line in lines if line.startswith("Story")] == [
        "Story 3, step 1: Only the cluster with most free GPUs: cluster3",
        "Story 3, step 2: Its GPUs fill up: cluster2 takes over",
        "Story 3, step 3: They are free again: back to cluster3",
    ]
    assert "  $ kubectl apply -f samples/placement-demo2-2.yaml" in lines
    assert '  ["placement-demo2-cluster2"]' in lines
    assert "  placement-demo2-cluster2   True        kueue-admin-cluster2-kubeconfig   <none>" in lines
    assert f"  True Active {GENERATED}" in lines
    assert lines[-1].startswith("3 of 3 steps came out right, in ")


def test_a_step_that_goes_wrong_is_told_and_makes_the_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way to see the demo fail: a fleet without a Secret for cluster3, which Story 3 wants."""
    monkeypatch.setattr("placement_ac.demo.play.STEP_SECONDS", 0.5)

    async def no_cluster3(client: Any) -> None:
        await stories.FLEET(client)
        await client.request("DELETE", "/api/v1/namespaces/kueue-system/secrets/multikueue-cluster3")

    monkeypatch.setattr("placement_ac.demo.play.FLEET", no_cluster3)
    run = CliRunner().invoke(command, ["--story", "3"])
    assert run.exit_code == 1
    assert "NOT RIGHT" in run.output
    assert "NoClusterUsable" in run.output
    assert "1 of 3 steps came out right" in run.output


def assert_kubectl_says_the_same(kubeconfig: str) -> None:
    """What the demo shows "as kubectl would" is what kubectl shows, to the letter."""
    shown = CliRunner().invoke(command, ["--story", "2"]).output.splitlines()
    last = [line.strip() for line in shown[shown.index(next(s for s in shown if "step 3" in s)) :]]
    starts = [n for n, line in enumerate(last) if line.startswith("$ kubectl get")]
    for start, end in zip(starts, [*starts[1:], len(last)], strict=True):
        run = subprocess.run(
            last[start][2:],
            shell=True,
            check=False,
            env=os.environ | {"KUBECONFIG": kubeconfig},
            capture_output=True,
            text=True,
        )
        wanted = [line for line in last[start + 1 : end] if line and "right, in" not in line]
        assert [line.strip() for line in run.stdout.splitlines()] == wanted, run.stderr


@pytest.mark.parametrize("kept", [[], ["-o", "json"]])
def test_kept_hub_is_there_for_kubectl(kept: list[str], tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "placement_ac", "demo", "--story", "2", "--keep", *kept],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told = demo.stderr if kept else demo.stdout
        assert told is not None
        line = next(line for line in told if "export KUBECONFIG=" in line)
        kubeconfig = line.strip().removeprefix("export KUBECONFIG=")
        assert Path(kubeconfig).stat().st_mode & 0o077 == 0, "it holds a token"
        if shutil.which("kubectl"):
            ask = ["kubectl", "describe", "admissioncheck", "placement-demo2"]
            answer = subprocess.run(
                ask, env=os.environ | {"KUBECONFIG": kubeconfig}, capture_output=True, text=True, check=False
            )
            assert GENERATED in answer.stdout, answer.stderr
            assert_kubectl_says_the_same(kubeconfig)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(20) == 0
        assert not Path(kubeconfig).exists()
    finally:
        demo.kill()
        demo.communicate()


def _outcome(*, right: bool) -> Outcome:
    step = next(steps_of(2))
    config = {"kind": "MultiKueueConfig", "metadata": {"name": "p"}, "spec": {"clusters": ["p-a"]}}
    cluster = {
        "kind": "MultiKueueCluster",
        "metadata": {"name": "p-a"},
        "spec": {"clusterSource": {"clusterProfileRef": {"name": "a"}}},
    }
    condition = {"status": "True", "reason": "Active", "message": GENERATED}
    return Outcome(1, step, right, 42.0, 7.0, ("a",), (config, cluster), condition)


def _of_step(number: int, step: Step) -> Outcome:
    """What a step comes to when each cluster's way in is the longest name of the samples."""
    secret = {"kubeConfig": {"location": SECRETS["placement-demo2-cluster2"], "locationType": "Secret"}}
    clusters = [
        {
            "kind": "MultiKueueCluster",
            "metadata": {"name": name},
            "spec": {"clusterSource": secret},
            "status": {"conditions": [{"type": "Active", "status": "True"}]},
        }
        for name in step.wanted
    ]
    config = {
        "kind": "MultiKueueConfig",
        "metadata": {"name": step.placement},
        "spec": {"clusters": step.wanted},
    }
    condition = {"status": "True", "reason": "Active", "message": GENERATED}
    return Outcome(number, step, True, 42.0, 7.0, step.clusters, (config, *clusters), condition)


@pytest.mark.parametrize("right", [True, False])
def test_a_terminal_shows_a_panel_for_each_step(right: bool) -> None:
    console = Console(force_terminal=True, width=120, record=True, file=io.StringIO())
    with LiveShow(console) as show:
        show.begins(1, next(steps_of(2)))
        show.ends(_outcome(right=right))
        show.is_over([_outcome(right=right)])
    text = console.export_text()
    assert "Story 2, step 1: The clusters with a T4, by label" in text
    assert "ClusterProfile a" in text
    assert ("NOT RIGHT" in text) is not right


def test_a_terminal_of_80_columns_cuts_nothing_off() -> None:
    console = Console(force_terminal=True, width=80, record=True, file=io.StringIO())
    with LiveShow(console) as show:
        for number, step in enumerate(steps_of(None), start=1):
            show.ends(_of_step(number, step))
    lines = [line.strip("│ ") for line in console.export_text().splitlines()]
    assert [line for line in lines if "…" in line] == []
    for number, step in enumerate(steps_of(None), start=1):
        assert any(f" Story {step.story}, step {number}: {step.title} " in line for line in lines)
    assert "placement-demo2-cluster2  True       Secret kueue-admin-cluster2-kubeconfig" in lines


def test_nothing_there_is_shown_as_kubectl_would(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(1, next(steps_of(1)), False, 1.0, None, (), (), {})
    PlainShow().ends(outcome)
    shown = capsys.readouterr().out
    assert "Error from server (NotFound)" in shown
    assert "(none)" in shown


def test_threads_are_gone_when_the_demo_is_over() -> None:
    CliRunner().invoke(command, ["--story", "1", "-o", "json"])
    assert [
        thread.name for thread in threading.enumerate() if thread.name in ("controller", "stand-ins")
    ] == []


def test_the_demo_holds_on_the_published_crds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub brings short schemas of its own; the demo's writes are valid by the published ones as well."""
    monkeypatch.setattr("placement_ac.demo.stage.Hub", functools.partial(Hub, crds=published_crds()))
    run = CliRunner().invoke(command, ["-o", "json"])
    assert run.exit_code == 0, run.output
    assert [doc["ok"] for doc in documents(run.stdout)] == [True] * 7
