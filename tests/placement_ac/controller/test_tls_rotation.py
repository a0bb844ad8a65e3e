"""The hub's CA and the controller's client certificate change on disk: the controller writes again at once.

A hub that restarts with another certificate closes all connections, as an API server does.
"""

import base64
import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.support.driver import Controllers, Driver, eventually
from tests.support.stage import shorten

SOON = 10.0
"""Seconds: one until the login is loaded again, and up to five until a watch is tried again."""
AWAY = "the API server does not answer"
CHANGED = "the CA or the client certificate has changed"
BROKEN = "cannot renew the login"


@pytest.fixture
def log(_quiet: None) -> Iterator[io.StringIO]:
    found = io.StringIO()
    with redirect_stderr(found):
        logs.configure("text", "info")
        yield found
    logs.configure("text", "error")


def put(path: Path, content: bytes) -> None:
    """Replace a file at once, so that a test alone decides what is half written."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


@dataclass
class Files:
    """A kubeconfig that names its certificates."""

    hub: Hub
    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def certificate(self) -> Path:
        return self.folder / "client.crt"

    @property
    def key(self) -> Path:
        return self.folder / "client.key"

    def write_kubeconfig(self, path: Path) -> None:
        content = self.hub.kubeconfig()
        cluster = {"server": self.hub.secure_url, "certificate-authority": str(self.ca)}
        content["clusters"][0]["cluster"] = cluster
        content["users"][0]["user"] |= {
            "client-certificate": str(self.certificate),
            "client-key": str(self.key),
        }
        put(path, yaml.safe_dump(content).encode())

    def write_ca(self) -> None:
        put(self.ca, self.hub.ca_certificate)

    def write_certificate(self, leaf: trustme.LeafCert) -> None:
        put(self.key, leaf.private_key_pem.bytes())
        put(self.certificate, leaf.cert_chain_pems[0].bytes())


@pytest.fixture
def files(hub: Hub, controllers: Controllers, tmp_path: Path) -> Files:
    found = Files(hub, tmp_path)
    found.write_ca()
    found.write_certificate(trustme.CA().issue_cert("a@example.com"))
    found.write_kubeconfig(controllers.kubeconfig)
    return found


def asking_for(admin: Driver, name: str) -> Callable[[], Any]:
    """Ask for something that is to be written; return whether it was."""
    admin.check(name)
    admin.select(name, "a")
    return lambda: admin.reason(name)


def restart(hub: Hub, change: Callable[[], object]) -> None:
    with hub.outage():
        change()


def test_a_new_ca_in_the_kubeconfig(
    hub: Hub, admin: Driver, controllers: Controllers, log: io.StringIO
) -> None:
    """The Lease has a client of its own."""
    hub.write_kubeconfig(controllers.kubeconfig)
    controllers.start(leader_elect=True)
    eventually(asking_for(admin, "before"), "Active")
    restart(hub, hub.rotate_ca)
    reason = asking_for(admin, "after")
    eventually(lambda: AWAY in log.getvalue())
    hub.write_kubeconfig(controllers.kubeconfig)
    eventually(reason, "Active", seconds=SOON)
    assert log.getvalue().count(CHANGED) == 1


def test_a_broken_file_breaks_no_login_that_works(
    hub: Hub,
    admin: Driver,
    controllers: Controllers,
    files: Files,
    log: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shorten(monkeypatch, HEADERS_SECONDS=0.0)
    controllers.start()
    eventually(asking_for(admin, "before"), "Active")
    put(files.ca, b"-----BEGIN CERTIFICATE-----\nnone")
    restart(hub, lambda: None)  # what follows has new connections
    eventually(asking_for(admin, "after"), "Active", seconds=SOON)
    eventually(lambda: BROKEN in log.getvalue())
    assert log.getvalue().count(BROKEN) == 1
    assert "CERTIFICATE---" not in log.getvalue()


def test_a_bundle_with_the_new_ca_is_trusted_before_the_hub_has_it(
    hub: Hub,
    admin: Driver,
    controllers: Controllers,
    files: Files,
    log: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without an error: every file is looked at again after HEADERS_SECONDS."""
    shorten(monkeypatch, HEADERS_SECONDS=0.0, RENEW_SECONDS=1000.0)
    controllers.start()
    eventually(asking_for(admin, "before"), "Active")
    new = trustme.CA()
    put(files.ca, hub.ca_certificate + new.cert_pem.bytes())
    eventually(asking_for(admin, "between"), "Active")
    eventually(lambda: CHANGED in log.getvalue())
    restart(hub, lambda: hub.rotate_ca(new))
    eventually(asking_for(admin, "after"), "Active", seconds=SOON)
    assert "CERTIFICATE_VERIFY_FAILED" not in log.getvalue()


def test_a_renewed_client_certificate(
    hub: Hub, admin: Driver, controllers: Controllers, files: Files, log: io.StringIO
) -> None:
    """Its key arrives first: the two do not match for a while."""
    old, new = trustme.CA(), trustme.CA()
    hub.require_client_certificates(old)
    files.write_certificate(old.issue_cert("a@example.com"))
    controllers.start()
    eventually(asking_for(admin, "before"), "Active")
    renewed = new.issue_cert("a@example.com")
    put(files.key, renewed.private_key_pem.bytes())
    restart(hub, lambda: hub.require_client_certificates(new))
    reason = asking_for(admin, "after")
    eventually(lambda: BROKEN in log.getvalue())
    files.write_certificate(renewed)
    eventually(reason, "Active", seconds=SOON)
    assert log.getvalue().count(CHANGED) == 1
    assert "PRIVATE KEY" not in log.getvalue()


def test_another_server_in_the_kubeconfig_is_not_used_without_a_restart(
    hub: Hub, admin: Driver, controllers: Controllers, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as by `kubectl config use-context`: its CA and its token are not for our hub."""
    shorten(monkeypatch, HEADERS_SECONDS=0.0)
    controllers.start()
    eventually(asking_for(admin, "before"), "Active")
    content = hub.kubeconfig()
    other = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    content["clusters"][0]["cluster"] = {"server": "https://other", "certificate-authority-data": other}
    content["users"][0]["user"] = {"token": "another"}
    put(controllers.kubeconfig, yaml.safe_dump(content).encode())
    restart(hub, lambda: None)
    eventually(asking_for(admin, "after"), "Active", seconds=SOON)
    eventually(lambda: "names another server; restart to use it" in log.getvalue())
