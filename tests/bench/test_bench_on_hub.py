"""A small run of the bench: its processes, its counts, and that it leaves no objects."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

from bench import memory
from bench.processes import CONTROLLER, embedded
from bench.scene import CHANGES, KINDS, NAMESPACE, Scene, body, clear, newest, prepare, refuse_what_is_in_use
from placement_ac.core.api.constants import MANAGED_CLUSTER, MULTIKUEUE_CONFIG
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.hub import Hub

pytestmark = pytest.mark.long

SCENE = Scene(3, 12)
ROOT = Path(__file__).resolve().parents[2]


def client_of(kubeconfig: Path) -> Client:
    return Client(Login(kubeconfig), field_manager="bench")


async def there(client: Client) -> dict[str, list[Object]]:
    """Return the scene's objects on the hub, without the fields that the server sets."""
    found = {}
    for kind in (*KINDS, NAMESPACE):
        listing = await client.list(newest(kind))
        found[kind.plural] = [_bare(item) for item in listing.items]
    return found


def _bare(item: Object) -> Object:
    metadata = {key: item["metadata"].get(key) for key in ("name", "namespace", "labels")}
    kubeconfigs = item.get("data") is not None  # each scene has its own CA
    return {"metadata": metadata, "spec": item.get("spec"), "status": item.get("status"), "data": kubeconfigs}


def test_a_scene_is_the_same_whether_it_comes_over_http_or_not(tmp_path: Path) -> None:
    async def both() -> tuple[Any, Any]:
        with Hub() as hub, embedded(tmp_path / "filled", SCENE):
            hub.write_kubeconfig(tmp_path / "prepared")
            async with client_of(tmp_path / "prepared") as one, client_of(tmp_path / "filled") as two:
                await prepare(one, SCENE)
                return await there(one), await there(two)

    prepared, filled = asyncio.run(both())
    assert prepared == filled
    assert len(filled["secrets"]) == SCENE.clusters
    assert len(filled["admissionchecks"]) == SCENE.checks


def test_a_hub_counts_requests_of_others_than_the_bench(tmp_path: Path) -> None:
    async def play() -> None:
        with embedded(tmp_path / "kubeconfig", SCENE) as hub:
            login = Login(hub.kubeconfig)
            async with client_of(hub.kubeconfig) as bench, Client(login, field_manager="they") as they:
                await bench.list(newest(MANAGED_CLUSTER))
                await they.list(newest(MANAGED_CLUSTER))
                async for _ in they.watch(newest(MANAGED_CLUSTER), ""):
                    break
                assert hub.requests() == {"list managedclusters": 1, "watch managedclusters": 1}
                assert hub.requests() == {}

    asyncio.run(play())


def test_a_hub_in_use_is_refused_and_our_objects_are_deleted(hub: Hub, tmp_path: Path) -> None:
    hub.write_kubeconfig(tmp_path / "kubeconfig")

    async def play() -> None:
        async with client_of(tmp_path / "kubeconfig") as client:
            await prepare(client, SCENE)
            await client.create(
                newest(MULTIKUEUE_CONFIG), body(MULTIKUEUE_CONFIG, "p1", spec={"clusters": ["a"]})
            )
            await refuse_what_is_in_use(client)  # all objects are ours
            other = body(MANAGED_CLUSTER, "theirs", spec={"hubAcceptsClient": True})
            await client.create(newest(MANAGED_CLUSTER), other)
            with pytest.raises(click.ClickException, match="managedclusters of others: theirs"):
                await refuse_what_is_in_use(client)
            await clear(client)
            left = await there(client)
            assert {kind: len(items) for kind, items in left.items() if items} == {
                "managedclusters": 1,
                "namespaces": len(left["namespaces"]),
            }

    asyncio.run(play())


def bench(*words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "bench", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", CHANGES)
def test_a_small_bench_writes_every_figure(tmp_path: Path, kind: str) -> None:
    output = tmp_path / "figures.json"
    words = ("--quick", "--kind", kind, "--checks", "4", "--clusters", "12", "--changes", "8")
    with bench(*words, "--output", str(output)) as process:
        _, printed = process.communicate()
    assert process.returncode == 0, printed.decode()
    found = json.loads(output.read_text())[kind]
    for play in ("burst", "coldStart"):
        assert found[play]["overFloor"] > 0
        assert found[play].keys() >= {"controller", "floor"}
    assert found["latency"]["p50OverFloor"] > 0
    assert found["latency"]["controller"]["count"] == found["latency"]["floor"]["count"] == 8
    assert found["floor"]["requests"] == 1.0
    assert (found["controller"]["requests"] > 1.0) is (kind == "default"), "clusters that never existed"
    assert found["controller"]["rssMb"] > 10


@pytest.mark.timeout(240)
def test_the_memory_of_a_controller_that_creates_and_of_one_that_finds(tmp_path: Path) -> None:
    created, found, most = asyncio.run(memory.measure(CONTROLLER, Scene(2, 12, workloads=30)))
    assert 10 < found <= most
    assert created > 10


@pytest.mark.timeout(120)
def test_nothing_is_left_of_a_bench_that_is_stopped() -> None:
    with bench("--quick", "--checks", "2") as process:
        assert process.stderr
        for line in process.stderr:
            if b"cold start: controller" in line:
                break
        time.sleep(0.5)  # until the controller runs: a signal while it is being started could leave it behind
        started = children(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert len(started) == 3, "two hubs and a controller"
    assert [pid for pid in started if lives(pid)] == []


@pytest.mark.timeout(240)
def test_each_side_may_have_a_hub_of_others(tmp_path: Path) -> None:
    latest, words = tmp_path / "figures.json", ["--quick", "--checks", "2", "--changes", "8"]
    with Hub() as one, Hub() as another:
        for number, hub in enumerate((one, another)):
            hub.write_kubeconfig(tmp_path / f"hub{number}")
            words += ["--kubeconfig", str(tmp_path / f"hub{number}")]
        with bench(*words, "--output", str(latest)) as process:
            _, printed = process.communicate()
        written = [
            {r.user_agent.split("/")[0] for r in hub.journal if r.path.endswith("/multikueueconfigs/p0")}
            for hub in (one, another)
        ]
    assert process.returncode == 0, printed.decode()
    assert [("bench-floor" in names, "placement-ac" in names) for names in written] == [
        (True, False),
        (False, True),
    ]
    found = json.loads(latest.read_text())["swap"]
    assert found["latency"]["controller"]["count"] == found["latency"]["floor"]["count"] == 8
    assert "requests" not in found["controller"]


@pytest.mark.timeout(120)
def test_a_bench_that_is_stopped_clears_the_hub_of_others(hub: Hub, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    hub.write_kubeconfig(kubeconfig)

    async def left() -> dict[str, int]:
        async with client_of(kubeconfig) as client:
            return {kind: len(items) for kind, items in (await there(client)).items() if items}

    before = asyncio.run(left())
    words = ("--quick", "--checks", "2", "--kubeconfig", str(kubeconfig))
    with bench(*words) as process:
        assert process.stderr
        for line in process.stderr:
            if b"single changes" in line:
                break
        assert asyncio.run(left())["multikueueconfigs"] == 2
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert asyncio.run(left()) | {"namespaces": 0} == before | {"namespaces": 0}
