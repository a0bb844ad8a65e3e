"""`placement-ac ui` on a hub over HTTP: its page says what other commands say, and no more."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from kubectl_placement.cli import ui, ui_feed, ui_streams
from kubectl_placement.cli.ui_streams import PER_CLIENT_MAX
from kubectl_placement.cli.ui_thread import UiThread
from kubectl_placement.readers import hub_reader
from placement_ac.core.api.constants import LABEL_CLUSTER, LABEL_MANAGED_BY, LABEL_PLACEMENT, MANAGED_BY
from placement_lab.hub import Hub
from tests.support import commands
from tests.support.commands import READ_GROUPS, Run, listing, on_hub, reader
from tests.support.documents import ROOT
from tests.support.driver import KUBECONFIG, SCORES, Controllers, Driver, eventually
from tests.support.exec_plugins import executable
from tests.support.ui import events

READ = listing(*READ_GROUPS, "coordination.k8s.io", "apps", verbs="get list watch")
POD_SET = {"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
DUMP = str(ROOT / "docs" / "images" / "story3.yaml")
Command = Callable[..., Any]


@pytest.fixture
def says(run: Run) -> Command:
    """The answer of another command, as JSON."""
    return lambda *words: json.loads(run(*words, "-o", "json").stdout)


@pytest.fixture
def two_checks(admin: Driver) -> None:
    for name in ("p", "q"):
        admin.check(name)
        admin.select(name, ("a", 10), ("b", 90))
    admin.multikueue_check("mk", "p")


@pytest.fixture
def url(two_checks: None, kubeconfig: Path) -> Iterator[str]:
    with UiThread(kubeconfig) as page:
        yield page.url


# -- what it says


def test_it_says_what_status_says(admin: Driver, url: str, says: Command, controllers: Controllers) -> None:
    controllers.start()
    eventually(lambda: (admin.reason("p"), admin.reason("q")), ("Active", "Active"))
    document = says("status", "p")
    with events(url, "p") as page:
        assert page.next()[0] == "hub"
        assert {check["name"] for check in page.until("checks")["checks"]} == {"p", "q"}
        page.until("check", lambda one: one["status"]["clusters"] == document["checks"][0]["clusters"])
    with events(url, "p") as page:
        shown = page.until("check", lambda one: one["status"] == document["checks"][0])
        assert shown["slots"] == {"used": 2, "most": 20}
        lanes = {lane["name"]: lane["spans"] for lane in page.until("timeline")["lanes"]}
        assert {name: spans[-1]["state"] for name, spans in lanes.items()} == {"a": "listed", "b": "listed"}


def test_only_what_changes_is_sent(admin: Driver, url: str) -> None:
    with events(url, "p") as page:
        page.until("timeline")
        admin.decide("q", ("a", 10))
        name, change = page.next()
        assert (name, change["whole"], [check["name"] for check in change["checks"]]) == (
            "checks",
            False,
            ["q"],
        )
        assert change["checks"][0]["states"] == {"selected": 1}
        admin.decide("p", ("b", 5))
        assert [row["score"] for row in page.until("check")["status"]["clusters"]] == [5]
        admin.ask("DELETE", admin.kueue("admissionchecks", "q"))
        assert page.until("checks", lambda one: one["gone"])["gone"] == ["q"]
    with events(url, "new") as page:
        page.until("checks")
        admin.check("new")
        assert [check["name"] for check in page.until("checks")["checks"]] == ["new"]
        assert page.until("check")["status"]["placementSays"].startswith("it does not exist")


def test_a_score_of_a_cluster_that_drains_is_in_the_last_hour(admin: Driver, kubeconfig: Path) -> None:
    """It is in no status: OCM no longer selects the cluster."""
    add_on = {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "gpus"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": add_on, "weight": 1}]}
    admin.check("p")
    admin.placement("p", prioritizerPolicy=policy)
    admin.decide("p", "a")
    admin.secrets_for("a", "b")
    admin.namespace("b")
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
    admin.ask("POST", SCORES.format("b"), kind | {"metadata": {"name": "usage"}})
    for name in ("a", "b"):
        labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_PLACEMENT: "p", LABEL_CLUSTER: name}
        admin.cluster(f"p-{name}", labels=labels)
    admin.config("p", "p-a", "p-b")
    with UiThread(kubeconfig) as served, events(served.url, "p") as page:
        page.until("timeline")
        value = {"status": {"scores": [{"name": "gpus", "value": 42}]}}
        admin.ask("PATCH", f"{SCORES.format('b')}/usage/status", value, "merge")

        def scored(timeline: Any) -> bool:
            points = {lane["name"]: lane["scores"] for lane in timeline["lanes"]}["b"]
            return bool(points and points[-1]["value"] == 42)

        page.until("timeline", scored)


def test_it_explains_as_explain_does(url: str, says: Command) -> None:
    def asked(**query: str) -> Any:
        return requests.get(f"{url}explain", params=query, timeout=20).json()

    [expected] = says("explain", "cluster", "a", "--check", "p")["checks"]
    found = asked(check="p", cluster="a")
    assert {name: found[name] for name in ("links", "state", "step", "cluster")} == {
        name: expected[name] for name in ("links", "state", "step", "cluster")
    }
    [expected] = says("explain", "check", "p")["checks"]
    found = asked(check="p")
    assert found["links"] == expected["links"]
    assert sorted(name for cluster in found["clusters"] for name in cluster["names"]) == ["a", "b"]
    assert asked(check="none")["kind"] == "error"
    assert '"none" not found' in asked(check="none")["message"]
    assert '"none" not found' in asked(check="p", cluster="none")["message"]


def test_a_dump_can_be_looked_at(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with output.open("w") as file:
        words = [sys.executable, "-m", "placement_ac", "ui", "--from-dump", DUMP]
        run = subprocess.Popen(words, stdout=file, text=True)
    try:
        found = eventually(lambda: re.search(r"http://\S+/", output.read_text()), seconds=20)
        with events(found[0], "placement-demo2") as page:
            hub = page.until("hub")
            assert (hub["live"], hub["server"]) == (False, "")
            states = {row["name"]: row["state"] for row in page.until("check")["status"]["clusters"]}
            assert states == {"cluster2": "listed", "cluster3": "draining"}
            timeline = page.until("timeline")
            assert {lane["name"] for lane in timeline["lanes"]} == {"cluster2", "cluster3"}
        explanation = requests.get(f"{found[0]}explain?check=placement-demo2&cluster=cluster3", timeout=20)
        assert explanation.json()["state"] == "draining"
        run.send_signal(signal.SIGINT)
        assert run.wait(20) == 0
    finally:
        run.kill()


# -- what it refuses


def test_only_get_to_this_host_is_answered(url: str) -> None:
    """A site whose name resolves to 127.0.0.1 cannot read the page (DNS rebinding)."""
    for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
        answer = requests.request(method, url, timeout=20)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")
    port = urlsplit(url).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""):
        for path in ("", "events?check=p", "explain?check=p"):
            answer = requests.get(url + path, headers={"Host": host}, timeout=20)
            assert answer.status_code in (400, 403), (host, path)
            assert "AdmissionCheck" not in answer.text
    assert requests.get(url.replace("127.0.0.1", "localhost"), timeout=20).status_code == 200
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), timeout=5).close()


def test_its_headers_let_nothing_in(url: str) -> None:
    answer = requests.get(url, timeout=20)
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cache-Control"] == "no-store"
    assert not re.search(r"(?:src|href)=\"(?!data:,|#)", answer.text)
    assert "innerHTML =" not in answer.text
    missing = requests.get(f"{url}kubeconfig", timeout=20)
    assert (missing.status_code, missing.text) == (
        404,
        "there is only one page: the address that placement-ac ui has printed\n",
    )


def test_it_shows_no_secret(hub: Hub, url: str) -> None:
    texts = [
        requests.get(f"{url}explain?check=p&cluster=a", timeout=20).text,
        requests.get(url, timeout=20).text,
    ]
    with events(url, "p") as page:
        texts += [json.dumps(page.until(name)) for name in ("hub", "checks", "check", "timeline")]
    for text in texts:
        assert hub.token not in text
        assert KUBECONFIG not in text
    assert "multikueue-a" in texts[4]


def reads_of_explanations(hub: Hub, since: int) -> list[str]:
    """The paths of the lists of all namespaces, which no page follows."""
    paths = (one.path for one in hub.journal[since:])
    return [path for path in paths if path.endswith(("v1beta1/placements", "v1beta1/placementdecisions"))]


SITES = {
    "cross-site": ({"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403),
    "a form or an image": ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    "another port of this machine": ({"Sec-Fetch-Site": "same-site"}, 403),
    "an old browser": ({"Origin": "https://evil.example"}, 403),
    "a file": ({"Origin": "null"}, 403),
    "the page itself": ({"Origin": "http://HOST", "Sec-Fetch-Site": "same-origin"}, 200),
    "the address bar": ({"Sec-Fetch-Site": "none"}, 200),
}
"""Headers of a request, and its answer's status."""


def test_a_file_may_lead_to_the_page_alone(url: str) -> None:
    """As the one that --open gives to the browser; a frame of another site is refused."""
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for path, headers, status in (
        ("", link, 200),
        ("", link | {"Sec-Fetch-Dest": "iframe"}, 403),
        ("explain?check=p", link, 403),
    ):
        assert requests.get(url + path, headers=headers, timeout=20).status_code == status


def test_another_site_is_refused(hub: Hub, url: str) -> None:
    """Even if it knows the address."""
    host = urlsplit(url).netloc
    before = len(hub.journal)
    for name, (headers, status) in SITES.items():
        sent = {key: value.replace("HOST", host) for key, value in headers.items()}
        for path in ("", "events?check=p", "explain?check=p") if status == 403 else ("explain?check=p",):
            answer = requests.get(url + path, headers=sent, timeout=20)
            assert answer.status_code == status, (name, path)
            assert ("from the page of another site" in answer.text) is (status == 403)
            assert status == 200 or "AdmissionCheck" not in answer.text
        assert status == 200 or reads_of_explanations(hub, before) == []
    ours = [one for one in hub.journal if one.user_agent == "placement-ac"]
    assert {check.method for check in ours} == {"GET"}


def test_an_address_without_the_secret_is_refused(kubeconfig: Path, two_checks: None) -> None:
    with UiThread(kubeconfig) as one:
        root = f"http://{urlsplit(one.url).netloc}/"
        wrong = one.url[:-2] + ("x/" if one.url[-2] != "x" else "y/")
        for base in (root, wrong, f"{root}x/", one.url[:-5]):
            for path in ("", "events?check=p", "explain?check=p"):
                answer = requests.get(base + path, timeout=20)
                assert (answer.status_code, "lacks its secret" in answer.text) == (403, True), base + path
        with UiThread(kubeconfig) as other:
            assert urlsplit(one.url).path != urlsplit(other.url).path


def test_explanations_share_the_reads_of_the_hub(hub: Hub, url: str) -> None:
    """However many ask: two kinds every half second, and an answer is never older than its question."""
    seconds = 1.5
    end = time.monotonic() + seconds
    before = len(hub.journal)

    def ask(_: int) -> int:
        number = 0
        while time.monotonic() < end:
            assert requests.get(f"{url}explain?check=p", timeout=20).json()["kind"] == "check"
            number += 1
        return number

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) > 8
    spent = time.monotonic() - end + seconds
    assert 0 < len(reads_of_explanations(hub, before)) <= 2 * (spent / ui_feed.SHARED_SECONDS + 1)


def test_an_explanation_is_not_older_than_its_question(admin: Driver, url: str) -> None:
    for number in range(3):
        name = f"late-{number}"
        admin.check(name)
        admin.placement(name)

        def placement(name: str = name) -> Any:
            return requests.get(f"{url}explain", {"check": name}, timeout=20).json().get("placement")

        eventually(placement, f"kueue-system/{name}")


def test_a_browser_with_too_many_pages_keeps_the_newest(url: str) -> None:
    with ExitStack() as stack:
        pages = [stack.enter_context(events(url)) for _ in range(PER_CLIENT_MAX)]
        for page in pages:
            page.until("hub")
        newest = stack.enter_context(events(url))
        newest.until("hub")
        pages[0].until("replaced")
        with pytest.raises(AssertionError, match="the stream has ended"):
            pages[0].next()
        assert requests.get(f"{url}explain?check=p", timeout=20).status_code == 200


def test_streams_beyond_the_limit_are_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_streams, "STREAMS_MAX", 1)
    other = {"User-Agent": "another browser"}
    with events(url) as page:
        page.until("hub")
        answer = requests.get(f"{url}events", headers=other, timeout=20)
        assert (answer.status_code, answer.text) == (503, "close other pages first\n")

        monkeypatch.setattr(ui_streams, "STREAMS_MAX", 2)
        with requests.get(f"{url}events", headers=other, timeout=20, stream=True) as answer:
            assert answer.status_code == 200


# -- rights and outages


def test_missing_rights_are_the_line_of_status(hub: Hub, two_checks: None, tmp_path: Path) -> None:
    kubeconfig = reader(hub, tmp_path, *READ)
    line = on_hub(kubeconfig)("status").stderr.strip()
    assert line.startswith("missing rights: ")
    with UiThread(kubeconfig) as page, events(page.url, "p") as shown:
        assert shown.until("hub")["missing"] == line
        [row, _] = shown.until("check")["status"]["clusters"]
        assert row["credential"]["problem"] == "unknown: no right to list secrets in namespace kueue-system"


def test_without_the_right_to_checks_nothing_is_served(hub: Hub, two_checks: None, tmp_path: Path) -> None:
    result = on_hub(reader(hub, tmp_path))("ui")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ask an admin to bind placement-ac's viewer roles to you (")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_reader, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(hub_reader, "RETRY_SECONDS", (0.05, 0.1))
    monkeypatch.setattr(ui_feed, "RETRY_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
def test_an_outage_is_shown_until_it_ends(hub: Hub, admin: Driver, url: str) -> None:
    with events(url, "p") as page:
        page.until("timeline")
        with hub.outage():
            hub.drop_watches("close")
            assert page.until("hub")["problem"]
        assert page.until("hub", lambda one: not one["problem"])
        admin.decide("p", ("b", 5))
        assert [row["score"] for row in page.until("check")["status"]["clusters"]] == [5]


# -- the command


def test_a_port_in_use_is_an_error(two_checks: None, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = run("ui", "--port", str(port))
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: choose another --port: 127.0.0.1:{port}: Address already in use\n",
    )


def test_a_hub_that_does_not_answer_is_an_error(hub: Hub, kubeconfig: Path) -> None:
    with hub.outage():
        result = commands.run("ui", "--kubeconfig", str(kubeconfig))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")


def test_it_opens_a_browser_and_ends_with_ctrl_c(two_checks: None, kubeconfig: Path, tmp_path: Path) -> None:
    """Run as its help shows, with a browser that writes down what it opens."""
    browser = executable(tmp_path / "browser", f'echo "$1" > {tmp_path}/opened')
    words = [sys.executable, "-m", "placement_ac", "ui", "--open", "--kubeconfig", str(kubeconfig)]
    environment = os.environ | {"BROWSER": f"{browser} %s &"}
    run = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        line = run.stdout.readline()
        address = r"(http://127\.0\.0\.1:\d+/[\w-]{32}/)"
        found = re.fullmatch(rf"The page is at {address}; press Ctrl-C to stop it\.\n", line)
        assert found, line
        with events(found[1]) as page:
            page.until("checks")
            opened = tmp_path / "opened"
            eventually(lambda: opened.exists() and opened.read_text().endswith(".html\n"), wanted=True)
            file = Path(urlsplit(opened.read_text().strip()).path)
            assert f'content="0; url={found[1]}"' in file.read_text()
            assert file.stat().st_mode & 0o777 == 0o600
            run.send_signal(signal.SIGINT)
            assert run.wait(20) == 0
            assert not file.exists()
        assert run.stderr is not None
        assert run.stderr.read() == ""
    finally:
        run.kill()
        run.communicate()


def test_a_browser_for_terminals_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    class Recorder(ui.webbrowser.BackgroundBrowser):
        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            opened.append(url)
            return True

    monkeypatch.setattr(ui.webbrowser, "get", lambda: ui.webbrowser.GenericBrowser("false"))
    with ui.opened_in_browser("http://127.0.0.1:1/"):
        assert opened == []
    monkeypatch.setattr(ui.webbrowser, "get", lambda: Recorder("true"))
    with ui.opened_in_browser("http://127.0.0.1:2/"):
        assert [urlsplit(one).scheme for one in opened] == ["file"]


# -- jobs


def test_its_jobs_are_those_of_jobs_and_job(admin: Driver, url: str, says: Command) -> None:
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "job-train"}}
    admin.ask("POST", path, body | {"spec": {"queueName": "gpus", "podSets": [POD_SET]}})

    def asked(path: str, **query: str) -> Any:
        return requests.get(f"{url}{path}", params=query, timeout=20).json()

    expected = says("jobs", "-A")["jobs"]
    eventually(lambda: asked("jobs"), {"jobs": expected})
    story, found = says("job", "job-train"), asked("job", namespace="default", workload="job-train")
    assert [found[key] for key in ("job", "position", "steps")] == [
        story[key] for key in ("job", "position", "steps")
    ]
    assert "its Pods are not read here" in found["notes"][0]
    missing = asked("job", namespace="default", workload="job-trian")
    assert (missing["kind"], "did you mean job-train" in missing["message"]) == ("error", True)
