"""The hub as a server: tokens, TLS, injected faults, outages, the journal."""

import base64
import http.client
import json
import socket
import ssl
import stat
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from placement_lab.hub import Hub, frontend, protobuf
from placement_lab.hub.faults import WRITES
from tests.placement_lab.hub.job_exchanges import JOBS
from tests.support.hub_client import CONFIGMAPS, CONFIGS, Client, Watching, config, configmap


def test_the_kubeconfig_uses_tls(hub: Hub, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    hub.write_kubeconfig(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["kubeconfig"]
    found = json.loads(path.read_text())
    assert found == hub.kubeconfig()
    assert found["clusters"][0]["cluster"]["server"] == hub.secure_url
    authority = base64.b64decode(found["clusters"][0]["cluster"]["certificate-authority-data"])
    context = ssl.create_default_context(cadata=authority.decode())
    connection = http.client.HTTPSConnection("127.0.0.1", hub.port, context=context, timeout=5)
    connection.request("GET", "/version")
    assert connection.getresponse().status == 200


def test_an_outage_closes_connections_and_keeps_data(hub: Hub, client: Client) -> None:
    client.create(CONFIGS, config("a"))
    port = hub.port
    with Watching(client, CONFIGS) as seen:
        seen.until(("ADDED", "a"))
        with hub.outage():
            assert seen.ended()
            with pytest.raises(requests.ConnectionError):
                client.ask("GET", CONFIGS)
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", port))
    assert hub.port == port
    assert client.names(CONFIGS) == ["a"]


def test_a_fault_replaces_the_response(hub: Hub, client: Client) -> None:
    hub.faults.add("POST", "configmaps$", status=503, headers={"Retry-After": "7"}, times=2)
    for _ in range(2):
        answer = client.ask("POST", CONFIGMAPS, configmap("a"))
        assert (answer.status_code, answer.headers["Retry-After"], answer.json()["code"]) == (503, "7", 503)
    client.create(CONFIGMAPS, configmap("a"))
    assert [r.status for r in hub.journal] == [503, 503, 201]


def test_a_fault_can_lose_the_response_of_a_write(hub: Hub, client: Client) -> None:
    hub.faults.add("POST", status=500, after=True)
    assert client.ask("POST", CONFIGMAPS, configmap("a")).status_code == 500
    hub.faults.add("POST", hang_up=True, after=True)
    with pytest.raises(requests.ConnectionError):
        client.ask("POST", CONFIGMAPS, configmap("b"))
    hub.faults.add("POST", hang_up=True)
    with pytest.raises(requests.ConnectionError):
        client.ask("POST", CONFIGMAPS, configmap("c"))
    assert client.names(CONFIGMAPS) == ["a", "b"]


def test_a_fault_can_delay(hub: Hub, client: Client) -> None:
    hub.faults.add(delay=0.3)
    began = time.monotonic()
    assert client.names(CONFIGMAPS) == []
    assert time.monotonic() - began >= 0.3
    hub.faults.add("POST", delay=0.01, after=True)
    assert client.create(CONFIGMAPS, configmap("a"))["kind"] == "ConfigMap"


def test_a_fault_can_be_for_the_nth_write_of_one_client(hub: Hub, client: Client) -> None:
    hub.faults.add(WRITES, agent="ours/", status=500, skip=1)
    ours = {"User_Agent": "ours/1.0"}
    statuses = [
        client.ask("POST", CONFIGMAPS, configmap(name), **agent).status_code
        for name, agent in (("a", {}), ("b", ours), ("c", {}), ("d", ours), ("e", ours))
    ]
    assert statuses == [201, 201, 201, 500, 201]
    assert hub.faults.all_met


def test_the_journal_records_users_and_requests(hub: Hub, client: Client) -> None:
    began = time.time()
    client.ok("POST", f"{CONFIGMAPS}?dryRun=All", configmap("a"), User_Agent="me/1")
    client.names(CONFIGMAPS)
    first, second = hub.journal
    assert (first.method, first.path, first.query) == ("POST", CONFIGMAPS, {"dryRun": "All"})
    assert (first.user, first.user_agent, first.status) == ("kubernetes-admin", "me/1", 201)
    assert (first.body, second.body) == (configmap("a"), None)
    assert began <= first.at <= second.at <= time.time()
    first.body["data"].clear()
    assert first.body == configmap("a")


def test_a_failed_kubeconfig_write_leaves_no_file(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        hub.write_kubeconfig(tmp_path / "taken")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_it_speaks_ipv6() -> None:
    try:
        with Hub("::1", crds=[]) as hub:
            assert hub.url.startswith("http://[::1]:")
            assert requests.get(hub.url + "/version", timeout=5).status_code == 200
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_a_fault_can_slow_a_body_down(hub: Hub, client: Client) -> None:
    hub.faults.add("GET", slow_body=0.3)
    hub.faults.add("GET", slow_body=0.3, status=500, body="x" * 100)
    for status in (200, 500):
        began = time.monotonic()
        answer = client.ask("GET", CONFIGMAPS)
        assert (answer.status_code, time.monotonic() - began >= 0.25) == (status, True)
        assert len(answer.content) == int(answer.headers["Content-Length"]) > 50


def test_the_journal_is_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontend, "JOURNAL_LENGTH", 4)
    for _ in range(6):
        client.names(CONFIGMAPS)
    assert 2 <= len(client.hub.journal) <= 4


def test_faults_can_be_cleared(hub: Hub, client: Client) -> None:
    hub.faults.add(status=500, times=100)
    hub.faults.clear()
    assert client.names(CONFIGMAPS) == []


@pytest.mark.parametrize(("raw", "body"), [("a: [1]", {"a": [1]}), ("{: ]", "{: ]")])
def test_the_journal_parses_yaml_and_keeps_other_text(client: Client, raw: str, body: object) -> None:
    client.ask("PATCH", f"{CONFIGMAPS}/a?fieldManager=x", raw, Content_Type="application/apply-patch+yaml")
    assert client.hub.journal[0].body == body


def test_a_hub_that_was_not_started_has_no_port() -> None:
    hub = Hub(crds=[])
    with pytest.raises(RuntimeError):
        _ = hub.url
    hub.stop()


def test_a_port_in_use_is_an_error(hub: Hub) -> None:
    with pytest.raises(OSError, match="in use"):
        Hub(port=hub.port, crds=[]).start()


# -- protobuf, as kubectl sends it


def message(*fields: tuple[int, bytes | int]) -> bytes:
    def number(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)

    parts = (
        number(n << 3) + number(v) if isinstance(v, int) else number(n << 3 | 2) + number(len(v)) + v
        for n, v in fields
    )
    return b"".join(parts)


def envelope(kind: bytes, body: bytes) -> bytes:
    return protobuf.MAGIC + message((1, message((1, b"v1"), (2, kind))), (2, body))


def test_protobuf_is_decoded(client: Client) -> None:
    labels = [(11, message((1, key), (2, b"v"))) for key in (b"a", b"b")]
    meta = message((1, b"s"), *labels, (14, b"e.com/x"), (14, b"e.com/y"), (7, 200), (99, b"unknown"))
    body = message((1, meta), (2, message((1, b"k"), (2, b"\xff"))), (3, b"Opaque"), (5, 1))
    sent = envelope(b"Secret", body) + bytes([9 << 3 | 1]) + bytes(8) + bytes([9 << 3 | 5]) + bytes(4)
    answer = client.ask(
        "POST", "/api/v1/namespaces/default/secrets", sent, Content_Type=protobuf.CONTENT_TYPE
    )
    created = answer.json()
    assert (created["data"], created["immutable"]) == ({"k": "/w=="}, True)
    assert (created["metadata"]["labels"], created["metadata"]["finalizers"]) == (
        {"a": "v", "b": "v"},
        ["e.com/x", "e.com/y"],
    )


@pytest.mark.embedded("a real API server decodes every field")
def test_a_job_is_decoded_from_protobuf(client: Client) -> None:
    """As `kubectl create job` and Go's typed clients send it; what the hub does not read, it refuses."""
    amounts = message((1, message((1, b"cpu"), (2, message((1, b"1"))))))
    container = message((1, b"c"), (2, b"i"), (3, b"sleep"), (3, b"1s"), (8, amounts), (13, b""), (16, 0))
    template = message((1, message((1, b""))), (2, message((2, container), (3, b"Never"), (11, 0))))

    def sent(*fields: tuple[int, bytes | int]) -> Any:
        meta = message((2, b"j-"), (13, message((1, b"X"), (3, b"x"), (4, b"u"), (5, b"e.com/v1"), (6, 0))))
        spec = message((6, template), (10, 1), *fields)
        body = protobuf.MAGIC + message(
            (1, message((1, b"batch/v1"), (2, b"Job"))), (2, message((1, meta), (2, spec), (3, b"")))
        )
        return client.ask("POST", JOBS, body, Content_Type=protobuf.CONTENT_TYPE)

    made = sent((7, 0)).json()
    [read] = made["spec"]["template"]["spec"]["containers"]
    assert (read["command"], read["resources"]) == (["sleep", "1s"], {"limits": {"cpu": "1"}})
    assert (made["spec"]["suspend"], made["spec"]["backoffLimit"]) == (True, 0)
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "e.com/v1", "kind": "X", "name": "x", "uid": "u", "controller": False}
    ]
    refused = sent((11, message((1, message((1, b"Ignore"))))))
    assert (refused.status_code, refused.json()["message"]) == (
        415,
        "field 11 of JobSpec can be read as JSON or YAML only",
    )


def test_an_object_is_deleted_with_protobuf(client: Client) -> None:
    """client-go's typed clients delete so, for example Helm its release."""
    made = client.ask("POST", CONFIGMAPS, {"metadata": {"name": "m"}}).json()

    def delete(uid: str, *more: tuple[int, bytes | int]) -> int:
        options = message((1, 0), (2, message((1, uid.encode()))), (4, b"Background"), *more)
        sent = envelope(b"DeleteOptions", options)
        path = f"{CONFIGMAPS}/m"
        return int(client.ask("DELETE", path, sent, Content_Type=protobuf.CONTENT_TYPE).status_code)

    uid = made["metadata"]["uid"]
    assert delete("another") == 409
    assert (delete(uid, (5, b"All")), client.ask("GET", f"{CONFIGMAPS}/m").status_code) == (200, 200)
    assert (delete(uid), client.ask("GET", f"{CONFIGMAPS}/m").status_code) == (200, 404)


@pytest.mark.embedded("a real API server decodes protobuf of every kind, not only what kubectl sends")
@pytest.mark.parametrize(
    ("sent", "code"),
    [(b"{}", 400), (protobuf.MAGIC, 400), (protobuf.MAGIC + b"\x0a", 400), (envelope(b"Pod", b""), 415)],
)
def test_malformed_protobuf_is_rejected(client: Client, sent: bytes, code: int) -> None:
    answer = client.ask("POST", CONFIGMAPS, sent, Content_Type=protobuf.CONTENT_TYPE)
    assert answer.status_code == code
