"""Reaching a worker: its Secret, its kubeconfig, its certificate, and who is not there."""

import base64
from pathlib import Path

import pytest
import trustme

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.refusals import NotSupportedHere, Refusal
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.login import Login
from placement_ac.workers.copies import CopyReader, WorkerCopies
from tests.support.driver import NS, Driver
from tests.support.exec_plugins import TOKEN, V1, executable
from tests.support.worker_copies import ask, problem, with_reader
from tests.support.workers import Raw, by_secret, kubeconfig, put_kubeconfig, put_secret, serving


def test_a_secret_that_is_not_there_or_has_no_kubeconfig(admin: Driver) -> None:
    assert ask(admin) == problem(f"Secret {NS}/s does not exist")
    admin.secret("s", key="value")
    assert ask(admin) == problem(f"Secret {NS}/s has no key 'kubeconfig' with a kubeconfig in it")
    admin.secret("t", value="")
    assert ask(admin, by_secret("t")) == problem(
        f"Secret {NS}/t has no key 'kubeconfig' with a kubeconfig in it"
    )
    garbage = {"metadata": {"name": "u"}, "data": {"kubeconfig": "%%%"}}
    admin.hub.faults.add("GET", "secrets/u", status=200, body=garbage)
    assert ask(admin, by_secret("u")) == problem(
        f"Secret {NS}/u has no key 'kubeconfig' with a kubeconfig in it"
    )


def test_a_hub_that_does_not_give_the_secret(admin: Driver) -> None:
    admin.hub.faults.add("GET", "secrets/s", status=403, body={"kind": "Status", "message": "not you"})
    assert ask(admin) == problem(f"Secret {NS}/s cannot be read: not you")
    admin.hub.faults.add("GET", "secrets/s", delay=1)
    assert ask(admin, timeout=0.2) == problem(f"Secret {NS}/s: the hub did not give it within 0.2 s")


def test_a_renewed_secret_is_used_at_once(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, user={"token": "of-yesterday"})

    async def twice(workers: CopyReader) -> list[WorkerCopies]:
        first = await workers.read(by_secret())
        put_secret(admin, worker)
        return [first, await workers.read(by_secret())]

    refused = problem(f"the worker does not accept the credentials of Secret {NS}/s")
    assert with_reader(admin, twice) == [refused, WorkerCopies()]


def test_a_kubeconfig_that_is_refused_is_used_for_nothing(
    admin: Driver, worker: Driver, tmp_path: Path
) -> None:
    plugin = executable(tmp_path / "plugin", f"touch {tmp_path}/ran")
    (tmp_path / "token").write_text(TOKEN)
    exec_ = {"apiVersion": V1, "command": plugin, "interactiveMode": "Never"}
    refused = {
        Refusal.EXEC: kubeconfig(worker, {"exec": exec_}),
        Refusal.TOKEN_FILE: kubeconfig(worker, {"tokenFile": str(tmp_path / "token")}),
        Refusal.AUTHORITY_FILE: kubeconfig(worker, **{"certificate-authority": str(tmp_path / "token")}),
        NotSupportedHere.FILES: kubeconfig(worker, {"token": TOKEN, "client-key": str(tmp_path / "token")}),
        Refusal.INSECURE: kubeconfig(worker, **{"insecure-skip-tls-verify": True}),
        Refusal.AUTH_PROVIDER: kubeconfig(
            worker, {"auth-provider": {"name": "gcp", "config": {"cmd-path": plugin, "expiry": "2020-01-01"}}}
        ),
        NotSupportedHere.USER_INFO: kubeconfig(
            worker, server=f"https://user:{TOKEN}@127.0.0.1:{worker.hub.port}"
        ),
        Refusal.NOT_YAML: f"}}{{ {TOKEN}".encode(),
    }
    for what, content in refused.items():
        put_kubeconfig(admin, content)
        answer = ask(admin)
        assert answer.copies == {}
        assert answer.problem.startswith(f"MultiKueueCluster p-w: in Secret {NS}/s, ")
        assert what in answer.problem
    assert worker.hub.journal == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("user", "cluster", "why"),
    [
        pytest.param(None, {"certificate-authority-data": "QUJD"}, Refusal.AUTHORITY, id="authority"),
        pytest.param(
            {"client-certificate-data": "QUJD", "client-key-data": "QUJD"}, {}, Refusal.NO_PAIR, id="client"
        ),
    ],
)
def test_a_certificate_that_is_none(
    admin: Driver, worker: Driver, user: Raw | None, cluster: Raw, why: str
) -> None:
    put_secret(admin, worker, user=user, **cluster)
    assert ask(admin) == problem(f"in Secret {NS}/s, {why}")


def test_a_worker_that_is_not_the_one_that_is_meant(admin: Driver, worker: Driver) -> None:
    stranger = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    put_secret(admin, worker, **{"certificate-authority-data": stranger})
    expected_text = f"the worker of Secret {NS}/s cannot be reached: its certificate is not trusted ("
    assert ask(admin).problem.startswith(problem(expected_text).problem)
    assert worker.hub.journal == []


def test_the_name_in_the_certificate_may_be_another(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, **{"tls-server-name": "localhost"})
    assert ask(admin) == WorkerCopies()
    put_secret(admin, worker, **{"tls-server-name": "elsewhere"})
    assert "its certificate is not trusted (Hostname mismatch" in ask(admin).problem


@pytest.mark.parametrize(
    ("server", "why"),
    [
        pytest.param("https://worker.invalid:6443", "its host name is not known", id="no such name"),
        pytest.param("http://127.0.0.1:1", "Connection refused", id="no such port"),
    ],
)
def test_a_server_that_is_not_there(admin: Driver, worker: Driver, server: str, why: str) -> None:
    put_secret(admin, worker, server=server)
    assert ask(admin) == problem(f"the worker of Secret {NS}/s cannot be reached: {why}")


def test_a_proxy_that_is_not_there(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, **{"proxy-url": f"http://user:{TOKEN}@127.0.0.1:1"})
    assert ask(admin) == problem(
        f"the worker of Secret {NS}/s cannot be reached: its proxy cannot be reached"
    )


def test_a_token_goes_to_its_own_server_only(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    with serving(crds=[]) as thief:
        away = {"Location": f"{thief.hub.url}/apis/kueue.x-k8s.io/v1beta2/workloads"}
        worker.hub.faults.add("GET", "v1beta2/workloads", status=307, body={}, headers=away)
        answer = ask(admin)
        assert answer == problem(f"the worker of Secret {NS}/s cannot be reached: ClientConnectionError")
        assert thief.hub.journal == []


def test_a_client_certificate_is_shown_and_leaves_no_file(
    admin: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    authority = trustme.CA()
    leaf = authority.issue_cert("client@example.com")
    certificate = b"".join(blob.bytes() for blob in leaf.cert_chain_pems).decode()
    key = leaf.private_key_pem.bytes().decode()
    login = Login(access=ClusterAccess("https://w", certificate=certificate, key=key))
    assert login.ssl.verify_mode.name == "CERT_REQUIRED"
    assert list(tmp_path.iterdir()) == []
    other = trustme.CA().issue_cert("x@example.com").private_key_pem.bytes().decode()
    with pytest.raises(LoginFailed, match="do not match"):
        Login(access=ClusterAccess("https://w", certificate=certificate, key=other))
    assert list(tmp_path.iterdir()) == []
