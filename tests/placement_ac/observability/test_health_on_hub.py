"""The pages of health, over HTTP, of a controller on a hub; and watches that are stuck."""

import socket
from typing import Any

import pytest
import requests

from placement_lab.hub import Hub
from tests.support.driver import Controllers, Driver, eventually, free_port
from tests.support.replicas import LEASE, occupy
from tests.support.stage import shorten


class Pages:
    """The answer that a kubelet gets."""

    def __init__(self) -> None:
        self.address = f"127.0.0.1:{free_port()}"

    def __call__(self, path: str) -> tuple[int, str]:
        """Return status and text; (0, "") when nobody answers."""
        try:
            answer = requests.get(f"http://{self.address}{path}", timeout=5)
        except requests.ConnectionError:  # not there yet, or cut as a session ended
            return 0, ""
        return answer.status_code, answer.text


@pytest.fixture
def pages() -> Pages:
    return Pages()


def start(controllers: Controllers, pages: Pages, **settings: Any) -> None:
    controllers.start(health_probe_bind_address=pages.address, **settings)


def test_a_controller_that_is_well(admin: Driver, controllers: Controllers, pages: Pages) -> None:
    start(controllers, pages)
    eventually(lambda: pages("/readyz"), (200, "ok"))
    assert pages("/healthz") == pages("/livez") == (200, "ok")
    assert pages("/metrics")[0] == 404
    status, text = pages("/healthz?verbose")
    assert status == 200
    assert "[+]loop ok\n[+]session ok\n[+]tls ok\n[+]watch admissionchecks ok\n" in text
    assert text.endswith("healthz check passed\n")
    assert "[+]list workloads ok\n" in pages("/readyz?verbose")[1]


def test_who_reads_the_pages_keeps_no_connection(controllers: Controllers, pages: Pages) -> None:
    """Else kopf takes its task for its own, and waits two seconds before the Lease is given up."""
    start(controllers, pages, metrics_bind_address=pages.address)
    eventually(lambda: pages("/healthz")[0], 200)
    for path in ("/healthz", "/readyz?verbose", "/metrics"):
        answer = requests.get(f"http://{pages.address}{path}", timeout=5)
        assert answer.headers["Connection"] == "close"


def test_a_kind_that_is_not_listed_yet_is_reported_with_its_reason(
    hub: Hub, admin: Driver, controllers: Controllers, pages: Pages
) -> None:
    body = {"kind": "Status", "code": 403, "message": "secrets is forbidden"}
    hub.faults.add("GET", "/secrets", status=403, body=body, times=1000)
    start(controllers, pages)
    expected_line = "[-]list secrets in kueue-system failed: not listed yet: secrets is forbidden\n"
    eventually(lambda: expected_line in pages("/readyz")[1])
    assert pages("/readyz")[0] == 500
    assert pages("/healthz") == (200, "ok")
    hub.faults.clear()
    eventually(lambda: pages("/readyz"), (200, "ok"))


def test_a_hub_that_is_not_there_makes_a_controller_unready_but_not_unhealthy(
    hub: Hub, controllers: Controllers, pages: Pages
) -> None:
    with hub.outage():
        start(controllers, pages)
        eventually(lambda: "[-]session failed: the API server does not answer" in pages("/readyz")[1])
        assert pages("/healthz") == (200, "ok")
    eventually(lambda: pages("/readyz"), (200, "ok"))


def test_a_hub_whose_new_ca_does_not_arrive_makes_it_unhealthy_until_it_does(
    hub: Hub, admin: Driver, controllers: Controllers, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, TLS_FAILED_SECONDS=1.0, UNREACHABLE_PAUSE_SECONDS=0.2, RENEW_SECONDS=0.2)
    hub.write_kubeconfig(controllers.kubeconfig)
    start(controllers, pages)
    eventually(lambda: pages("/readyz"), (200, "ok"))
    with hub.outage():
        hub.rotate_ca()
    line = "[-]tls failed: every request has failed with a TLS error for "
    for page in ("/healthz", "/readyz"):
        eventually(lambda page=page: line in pages(page)[1])
        assert pages(page)[0] == 500
    hub.write_kubeconfig(controllers.kubeconfig)
    for page in ("/healthz", "/readyz"):
        eventually(lambda page=page: pages(page), (200, "ok"))


def test_a_watch_that_no_session_revives_makes_it_unhealthy(
    hub: Hub, admin: Driver, controllers: Controllers, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, WATCH_SECONDS=1, REDISCOVERY_SECONDS=0.2, REVIVE_SECONDS=2.0, DEAD_SECONDS=4.0)
    start(controllers, pages)
    eventually(lambda: pages("/readyz"), (200, "ok"))
    hub.faults.add("GET", "/admissionchecks", delay=1000, times=1000)
    hub.drop_watches("hang", "admissionchecks")
    eventually(lambda: pages("/readyz")[0], 500)  # a new session, which has not listed it
    eventually(lambda: "[-]watch admissionchecks failed: nothing received for" in pages("/healthz")[1])
    assert pages("/healthz")[0] == 500
    hub.faults.clear()


def test_on_a_hub_where_nothing_changes_the_session_goes_on(
    hub: Hub, admin: Driver, controllers: Controllers, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server ends every watch in time, and nothing else comes over it."""
    shorten(monkeypatch, WATCH_SECONDS=1, REDISCOVERY_SECONDS=0.2, REVIVE_SECONDS=2.5)
    shorten(monkeypatch, KOPF_RELIST_SECONDS=0.8)  # a third of it, as in production
    start(controllers, pages)
    eventually(lambda: pages("/readyz"), (200, "ok"))

    def asked(*, watch: bool) -> int:
        """How often Workloads were listed (once in a session), or Placements watched."""
        kind = "/placements" if watch else "/workloads"
        found = [one.query for one in list(hub.journal) if one.path.endswith(kind)]
        return sum(("watch" in query) == watch for query in found)

    lists = asked(watch=False)
    eventually(lambda: asked(watch=True) > 5)
    assert asked(watch=False) == lists, "no new session has listed everything again"


@pytest.mark.parametrize(
    ("resource", "forgets"),
    [
        pytest.param("multikueueconfigs", True, id="of kopf, history lost"),
        pytest.param("workloads", False, id="of an informer"),
    ],
)
def test_a_watch_that_hangs_begins_anew(
    hub: Hub,
    admin: Driver,
    controllers: Controllers,
    monkeypatch: pytest.MonkeyPatch,
    resource: str,
    forgets: bool,
) -> None:
    shorten(monkeypatch, WATCH_IDLE_SECONDS=1.5, KOPF_RELIST_SECONDS=1.0)
    admin.check("p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    hub.drop_watches("hang", resource)
    since = len(hub.journal)
    if forgets:
        hub.forget_history()
    if resource == "multikueueconfigs":
        admin.ask("DELETE", admin.kueue("multikueueconfigs", "p"))
        eventually(lambda: admin.listed("p"), ["p-a"])

    def begun_anew() -> int:
        return sum(r.path.endswith(resource) and "watch" in r.query for r in hub.journal[since:])

    eventually(lambda: begun_anew() > 0)
    assert begun_anew() < 5


def test_an_address_that_is_taken_is_reported(controllers: Controllers, pages: Pages) -> None:
    host, _, port = pages.address.rpartition(":")
    with socket.socket() as other:
        other.bind((host, int(port)))
        other.listen()
        controller = controllers(health_probe_bind_address=pages.address)
        controller.__enter__()
        controller.stop()
    assert str(controller.failure).startswith(f"health-probe-bind-address: {pages.address}: ")


def test_nobody_leads_until_the_lease_is_deleted(
    admin: Driver, controllers: Controllers, pages: Pages
) -> None:
    start(
        controllers,
        pages,
        leader_elect=True,
        leader_elect_lease_duration="4s",
    )
    eventually(lambda: pages("/readyz"), (200, "ok"))
    occupy(admin)
    eventually(lambda: pages("/readyz")[0], 500, seconds=20)
    assert "[-]leader failed: delete Lease kueue-system/placement-ac, or wait " in pages("/readyz")[1]
    status, text = pages("/healthz?verbose")
    assert (status, "nobody leads, because nobody holds it" in text) == (200, True), "no restart helps"
    admin.ask("DELETE", LEASE)
    eventually(lambda: pages("/readyz"), (200, "ok"))
