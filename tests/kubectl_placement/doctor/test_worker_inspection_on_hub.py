"""`doctor --workers`: how workers are reached and read, and the words of the command."""

import asyncio
import base64
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.doctor.fleet_rules import RULES as FLEET_RULES
from kubectl_placement.doctor.worker_inspection import AccessProblem, WorkerInspection, WorkerTarget
from kubectl_placement.doctor.worker_rules import RULES
from kubectl_placement.readers.worker_inspector import CONCURRENT_WORKERS, WorkerInspector
from placement_ac.core.api.constants import SECRET as SECRETS
from placement_ac.core.inputs.fitness import WorkerRequirements
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import Client
from placement_ac.workers.connector import WorkerConnector
from placement_lab.hub import Hub
from tests.kubectl_placement.doctor.worker_pair import ALL_OK, CLUSTER, SECRET, TOKEN, Pair
from tests.support import commands
from tests.support.admin import login_to
from tests.support.crds import plain_crd
from tests.support.driver import NS, PROFILES, Driver
from tests.support.exec_plugins import V1, executable, gives


def test_a_worker_without_kueue(pair: Pair) -> None:
    with Hub(crds=[plain_crd("example.com", "Thing")]) as empty, Driver(empty) as worker:
        empty.add_user("limited", TOKEN, groups=("system:masters",))
        content = Pair(pair.hub, worker, pair.folder)
        content.secret()
        found = {one["check"]: one for one in content.doctor() if one["level"] == "FAIL"}
    pair.secret()
    assert found["worker-kueue"]["message"] == "cluster2: install Kueue on the worker: it serves no Workloads"


def test_a_worker_behind_a_clusterprofile(broken_pair: Pair, tmp_path: Path) -> None:
    pair = broken_pair
    [entry] = pair.worker.hub.kubeconfig()["clusters"]
    pair.hub.ask("DELETE", SECRET)
    pair.hub.profile(CLUSTER, accessProviders=[{"name": "ours", "cluster": entry["cluster"]}])
    asked = f"not inspected: no plugin is configured here for ClusterProfile {CLUSTER}"
    assert [one["message"].startswith(f"{CLUSTER}: {asked}") for one in pair.doctor()] == [True]

    plugin = executable(tmp_path / "plugin", gives(TOKEN))
    run = {"apiVersion": V1, "command": plugin, "interactiveMode": "Never"}
    providers = {"providers": [{"name": "ours", "execConfig": run}]}
    (tmp_path / "providers").write_text(json.dumps(providers))
    found = pair.doctor(f"--access-providers={tmp_path / 'providers'}")
    assert [(one["check"], one["level"]) for one in found] == ALL_OK
    entered = f"{CLUSTER}: it answers, with the credentials of ClusterProfile {NS}/{CLUSTER}"
    assert found[0]["message"] == entered

    executable(tmp_path / "plugin", "exit 3")
    [wrong] = pair.doctor(f"--access-providers={tmp_path / 'providers'}")
    assert wrong["message"].startswith(f"{CLUSTER}: plugin {tmp_path / 'plugin'} ended with code 3")
    assert wrong["fix"] == f"kubectl get clusterprofile -n {NS} {CLUSTER} -o yaml"

    providers["providers"][0]["allowedServerSuffixes"] = [".example.com"]
    (tmp_path / "providers").write_text(json.dumps(providers))
    [wrong] = pair.doctor(f"--access-providers={tmp_path / 'providers'}")
    correct = f"in ClusterProfile {NS}/{CLUSTER}, correct the server of access provider ours, or add its host"
    assert wrong["message"].startswith(f"{CLUSTER}: {correct}")
    pair.hub.ask("DELETE", f"{PROFILES}/{CLUSTER}")


def test_doctor_lists_the_checks_of_workers() -> None:
    done = commands.run("doctor", "--list", "-ojson")
    of_workers = [rule.check for rule in (*RULES, *FLEET_RULES)]
    assert [one["check"] for one in json.loads(done.stdout)][-len(of_workers) :] == of_workers


def test_nothing_is_written_to_hub_or_worker(pair: Pair) -> None:
    for driver in (pair.hub, pair.worker):
        driver.hub.journal.clear()
    assert pair.levels() == ALL_OK
    reviews = ("selfsubjectaccessreviews", "selfsubjectreviews")
    for driver in (pair.hub, pair.worker):
        asked = [r for r in driver.hub.journal if r.method != "GET" and not r.path.endswith(reviews)]
        assert asked == []


def test_eight_workers_are_inspected_at_once(pair: Pair) -> None:
    with shutting_when(CONCURRENT_WORKERS) as (port, most):
        targets = [target_at(pair, f"c{number}", port) for number in range(CONCURRENT_WORKERS + 4)]
        visits = asyncio.run(visited(pair.hub, targets))
    assert [(visit.target, visit.access_problem) for visit in visits] == [
        (target, AccessProblem.UNREACHABLE) for target in targets
    ]
    assert max(most) == CONCURRENT_WORKERS


def test_a_worker_that_never_answers(pair: Pair) -> None:
    with shutting_when(2) as (port, _):
        [visit] = asyncio.run(visited(pair.hub, [target_at(pair, "c", port)], seconds=0.3))
    assert visit.access_problem is AccessProblem.UNREACHABLE


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("$", []),
        ("$", {"versions": 7}),
        ("/v1beta2$", {"resources": [7]}),
        ("/v1beta2/resourceflavors$", {"items": 7}),
    ],
)
def test_a_malformed_answer_of_a_worker_is_reported(pair: Pair, path: str, answer: Any) -> None:
    pair.worker.hub.faults.add("GET", f"^/apis/kueue.x-k8s.io{path}", status=200, body=answer)
    source = CredentialSource("Secret", f"multikueue-{CLUSTER}")
    [visit] = asyncio.run(visited(pair.hub, [WorkerTarget(CLUSTER, source)]))
    assert visit.access_problem is AccessProblem.UNREACHABLE
    assert visit.problem


NOW = datetime(2026, 11, 28, tzinfo=UTC)


async def visited(
    hub: Driver, targets: list[WorkerTarget], seconds: float = 5.0
) -> tuple[WorkerInspection, ...]:
    async with Client(login_to(hub.hub)) as client:
        entrance = WorkerConnector(client, SECRETS.at("v1"), NS, timeout=seconds)
        return await WorkerInspector(entrance, WorkerRequirements("v1beta2"), NS, (), NOW).inspect(targets)


def target_at(pair: Pair, name: str, port: int) -> WorkerTarget:
    """A worker at that port, with its Secret on the hub."""
    content = pair.worker.hub.kubeconfig()
    content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    secret = f"at-{port}-{name}"
    pair.hub.secret(secret, value=base64.b64encode(json.dumps(content).encode()).decode())
    return WorkerTarget(name, CredentialSource("Secret", secret))


@contextmanager
def shutting_when(wanted: int) -> Iterator[tuple[int, list[int]]]:
    """A server that says nothing, and closes its connections once there were so many at a time.

    Yields its port, and how many there were whenever one came.
    """
    most: list[int] = []
    open_now: set[Any] = set()
    enough = threading.Event()

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            open_now.add(self)
            most.append(len(open_now))
            if len(open_now) == wanted:
                enough.set()
            enough.wait(20)
            open_now.discard(self)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 32

    with Server(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], most
        enough.set()
        server.shutdown()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--workers", "--cluster", "cluster9"), "use one of the clusters cluster2: no check has cluster9"),
        (("--cluster", "cluster2"), "use --cluster only with --workers"),
        (("--workers", "--timeout", "soon"), "use a duration like 90s, 5m or 1h30m"),
        (("--workers", "--from-dump", "-"), "it needs a hub"),
    ],
)
def test_wrong_words(pair: Pair, words: tuple[str, ...], expected: str) -> None:
    done = commands.run("doctor", f"--kubeconfig={pair.folder / 'hub.kubeconfig'}", *words, input="")
    assert (done.exit_code, expected in done.output) == (2, True), done.output
