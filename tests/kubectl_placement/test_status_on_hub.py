"""`placement-ac status` on a hub over HTTP: what it shows, how it ends, and what it follows."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from kubectl_placement.cli.hub_options import STATUS_KINDS, HubReading, HubSource, watch_hub
from kubectl_placement.readers import hub_reader
from kubectl_placement.status.check_status import check_statuses
from placement_ac.core.api.errors import ApiError
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support import commands
from tests.support.commands import READ_GROUPS, Run, listing, reader
from tests.support.driver import Controllers, Driver, eventually
from tests.support.hub_client import Client as HubClient
from tests.support.rights import CLUSTER_ROLES


@pytest.fixture
def status(run: Run) -> Run:
    return lambda *words: run("status", *words)


def states(of: HubReading) -> dict[str, str]:
    return {row.name: row.state for branch in check_statuses(of.view) for row in branch.clusters}


def test_clusters_are_selected_and_once_the_controller_leads_listed(
    admin: Driver, controllers: Controllers, status: Run
) -> None:
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.select("p", ("a", 10), ("b", 90))
    assert [row["state"] for row in json.loads(status("-o", "json").stdout)["checks"][0]["clusters"]] == [
        "selected",
        "selected",
    ]
    controller = controllers.start(leader_elect=True)
    eventually(lambda: admin.reason("p"), "Active")
    found = json.loads(status("p", "-o", "json").stdout)
    (branch,) = found["checks"]
    rows = [(row["name"], row["state"], row["rank"], row["clusterObject"]) for row in branch["clusters"]]
    assert rows == [("b", "listed", 1, "p-b"), ("a", "listed", 2, "p-a")]
    output = (branch["active"], branch["reason"], branch["placement"], branch["config"], branch["users"])
    assert output == ("True", "Active", "kueue-system/p", "p", ["mk"])
    assert found["missingRights"] == []

    leads = found["controller"]
    assert (leads["running"], leads["lease"], leads["problem"]) == (True, "kueue-system/placement-ac", "")
    first = r"Controller: \S+ leads since 20\S+Z \(renewed \ds ago\)\nAdmissionCheck p "
    assert re.match(first, status().stdout)
    controller.stop()
    assert re.match(
        r"No controller is running: what follows is what it last wrote "
        r"\(Lease kueue-system/placement-ac: it was released \ds ago\)\nAdmissionCheck p ",
        status().stdout,
    )


def test_other_namespaces_than_the_controllers_are_named(
    admin: Driver, controllers: Controllers, status: Run
) -> None:
    controllers.start(leader_elect=True)
    admin.check("p")
    admin.select("p", "a")
    admin.in_namespace("default").select("p", "b")
    eventually(lambda: admin.listed("p"), ["p-a"])

    def shown(*words: str) -> tuple[str, list[str], str]:
        done = status("-o", "json", *words)
        (branch,) = json.loads(done.stdout)["checks"]
        return branch["placement"], [row["name"] for row in branch["clusters"]], done.stderr

    assert shown() == ("kueue-system/p", ["a"], "")
    assert shown("-n", "kueue-system") == ("kueue-system/p", ["a"], "")
    assert shown("-n", "default") == (
        "default/p",
        ["b", "a"],  # the other is listed
        (
            "shown are the Placements in namespace default; the controller watches kueue-system, and its "
            "conditions are about the Placements there\n"
        ),
    )


def test_without_any_check_it_says_so(status: Run) -> None:
    result = status()
    assert (result.exit_code, result.stderr) == (0, "No checks found\n")
    assert result.stdout.startswith("No controller is running")


@pytest.mark.parametrize(
    ("words", "code", "stdout", "stderr"),
    [
        pytest.param(["-o", "name"], 0, "admissioncheck.kueue.x-k8s.io/p\n", "", id="names"),
        pytest.param(
            ["p", "q", "-o", "name"],
            1,
            "admissioncheck.kueue.x-k8s.io/p\n",
            'Error: admissionchecks.kueue.x-k8s.io "q" not found\n',
            id="one that is not there",
        ),
        pytest.param(
            ["mk"],
            1,
            "",
            'Error: admissionchecks.kueue.x-k8s.io "mk" is answered by kueue.x-k8s.io/multikueue,'
            " not by placement-ac\n",
            id="one that is Kueue's",
        ),
    ],
)
def test_how_it_ends(
    admin: Driver, status: Run, words: list[str], code: int, stdout: str, stderr: str
) -> None:
    admin.check("p")
    admin.multikueue_check("mk", "p")
    result = status(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (code, stdout, stderr)


def test_a_dump_cannot_be_watched(tmp_path: Path) -> None:
    result = commands.run("status", "-w", "--from-dump", str(tmp_path / "none"))
    assert (result.exit_code, "a dump never changes" in result.stderr) == (2, True)


def test_only_checks_are_shown() -> None:
    result = commands.run("status", "placement/p")
    assert (result.exit_code, "'placement/p' is not the name of an AdmissionCheck" in result.stderr) == (
        2,
        True,
    )


# -- following


def following(kubeconfig: Path, play: Callable[[AsyncGenerator[HubReading]], Awaitable[None]]) -> None:
    async def run() -> None:
        where = HubSource(kubeconfig=kubeconfig)
        async with (
            Client(Login(kubeconfig, None)) as client,
            aclosing(watch_hub(client, where, STATUS_KINDS)) as looks,
        ):
            await asyncio.wait_for(play(looks), 20)

    asyncio.run(run())


async def until(looks: AsyncGenerator[HubReading], wanted: dict[str, str]) -> None:
    """Read on until the clusters are in these states."""
    found: dict[str, str] = {}
    async for one in looks:
        found = states(one)
        if found == wanted:
            return
    raise AssertionError(f"it ended at {found}")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As little as possible is waited for."""
    monkeypatch.setattr(hub_reader, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(hub_reader, "RETRY_SECONDS", (0.05, 0.1, 0.2))


@pytest.mark.usefixtures("impatient")
def test_each_change_is_followed(admin: Driver, kubeconfig: Path) -> None:
    admin.check("p")
    admin.select("p", "a")

    async def play(looks: AsyncGenerator[HubReading]) -> None:
        await until(looks, {"a": "selected"})
        await asyncio.to_thread(admin.decide, "p", "a", "b")
        await until(looks, {"a": "selected", "b": "unusable"})
        await asyncio.to_thread(admin.secrets_for, "b")
        await until(looks, {"a": "selected", "b": "selected"})
        await asyncio.to_thread(admin.ask, "DELETE", f"{admin.ocm}/placementdecisions/p-decision-1")
        await until(looks, {})

    following(kubeconfig, play)


def test_a_consumer_that_has_rested_gets_a_change_at_once(admin: Driver, kubeconfig: Path) -> None:
    """The rest of a slow consumer begins when it is ready, not with the next change."""
    admin.check("p")
    admin.select("p", "a")

    async def play(looks: AsyncGenerator[HubReading]) -> None:
        await anext(looks)
        await asyncio.sleep(1.5)
        following_look = asyncio.ensure_future(anext(looks))
        await asyncio.sleep(1.6)
        await asyncio.to_thread(admin.decide, "p", "a", "b")
        await asyncio.wait_for(following_look, 1.2)

    following(kubeconfig, play)


@pytest.mark.usefixtures("impatient")
def test_a_watch_that_breaks_loses_nothing(hub: Hub, admin: Driver, kubeconfig: Path) -> None:
    admin.check("p")
    admin.select("p", "a")

    async def play(looks: AsyncGenerator[HubReading]) -> None:
        await until(looks, {"a": "selected"})
        for end, *others in (("garbage", "b"), ("error-410", "b", "c"), ("close",)):
            await asyncio.to_thread(hub.drop_watches, end)
            await asyncio.to_thread(admin.decide, "p", "a", *others)
            await until(looks, {"a": "selected", **dict.fromkeys(others, "unusable")})

    following(kubeconfig, play)


@pytest.mark.usefixtures("impatient")
def test_a_hub_that_stays_away_ends_it(hub: Hub, admin: Driver, kubeconfig: Path) -> None:
    async def play(looks: AsyncGenerator[HubReading]) -> None:
        await anext(looks)
        with hub.outage():
            await asyncio.to_thread(hub.drop_watches, "close")
            async for _ in looks:
                pass

    with pytest.raises(ApiError):
        following(kubeconfig, play)


@pytest.mark.usefixtures("impatient")
def test_a_right_that_is_taken_away_ends_it(hub: Hub, admin: Driver, tmp_path: Path) -> None:

    async def play(looks: AsyncGenerator[HubReading]) -> None:
        await anext(looks)
        await asyncio.to_thread(HubClient(hub).ask, "DELETE", f"{CLUSTER_ROLES}/r")
        await asyncio.to_thread(hub.drop_watches, "close")
        async for _ in looks:
            pass

    with pytest.raises(ApiError, match=r"cannot watch|a right was taken away"):
        following(reader(hub, tmp_path, *listing(*READ_GROUPS, verbs="get list watch")), play)


@contextmanager
def watching(kubeconfig: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-m",
        "placement_ac",
        "status",
        "--watch",
        "--kubeconfig",
        str(kubeconfig),
        *words,
    ]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=heeds_ctrl_c,  # noqa: PLW1509  # it does nothing that could hang
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def heeds_ctrl_c() -> None:
    """Heed Ctrl-C although who runs the tests does not, as what a shell runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_watch_prints_each_change_and_ends_with_ctrl_c(admin: Driver, kubeconfig: Path) -> None:
    admin.check("p")
    admin.select("p", "a")
    with watching(kubeconfig, "-o", "json") as process:
        assert process.stdout
        assert process.stderr
        assert len(json.loads(process.stdout.readline())["checks"][0]["clusters"]) == 1
        admin.decide("p", "a", "b")
        assert len(json.loads(process.stdout.readline())["checks"][0]["clusters"]) == 2
        process.send_signal(signal.SIGINT)
        assert (process.wait(10), process.stderr.read()) == (130, "")
