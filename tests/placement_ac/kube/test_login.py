"""The ways in: what a kubeconfig may hold, a Pod's account, tokens that are renewed."""

import asyncio
import base64
import gc
import json
import os
import ssl
import sys
import tempfile
import traceback
from asyncio import sslproto
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from aiohttp import web
from aiohttp.resolver import DefaultResolver
from aiohttp.test_utils import TestServer
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CONFIG, SECRET
from placement_ac.core.api.errors import LoginFailed, NotFound, TlsFailed, Unavailable
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support.exec_plugins import TOKEN
from tests.support.kubeconfigs import one_context

CHECKS = ADMISSION_CHECK.at("v1beta2")


def kubeconfig(hub: Hub, path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    content = hub.kubeconfig()
    content["users"][0]["user"] = user
    content["clusters"][0]["cluster"] |= cluster
    path.write_text(yaml.safe_dump(content))
    return path


async def count_checks(login: Login) -> int:
    async with Client(login) as client:
        return len((await client.list(CHECKS)).items)


async def test_no_verification_if_the_kubeconfig_says_so(hub: Hub, tmp_path: Path) -> None:
    path = kubeconfig(hub, tmp_path / "c", {"token": hub.token})
    content = yaml.safe_load(path.read_text())
    del content["clusters"][0]["cluster"]["certificate-authority-data"]
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(Unavailable, match="certificate verify failed"):
        await count_checks(Login(path))
    content["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    path.write_text(yaml.safe_dump(content))
    assert await count_checks(Login(path)) == 0


async def test_an_encrypted_connection_keeps_little_memory(hub: Hub, tmp_path: Path) -> None:
    async with Client(Login(kubeconfig(hub, tmp_path / "c", {"token": hub.token}))) as client:
        await client.list(CHECKS)
        held = [one for one in gc.get_objects() if isinstance(one, sslproto.SSLProtocol)]
        sizes = {len(protocol._ssl_buffer) for protocol in held}  # noqa: SLF001  # it shows it nowhere else
        assert sizes == {32 * 1024}


@pytest.mark.parametrize(
    ("expires", "problem"), [(4102444800, ""), (1, "run a command of kubectl, which renews it"), (None, "")]
)
async def test_an_id_token_is_used_until_it_expires(
    tmp_path: Path, expires: int | None, problem: str
) -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    token = f"e30.{claims}.{TOKEN}"
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers["Authorization"])
        return web.json_response({"items": []})

    server = TestServer(web.Application())
    server.app.router.add_get("/{path:.*}", answer)
    async with server:
        user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
        content = one_context({"server": str(server.make_url("/"))}, user)
        (tmp_path / "c").write_text(yaml.safe_dump(content))
        with pytest.raises(Unavailable, match=problem) if problem else nullcontext() as error:
            await count_checks(Login(tmp_path / "c"))
    assert asked == ([] if problem else [f"Bearer {token}"])
    assert not problem or TOKEN not in error.value.message


def in_a_pod(monkeypatch: pytest.MonkeyPatch, account: Path) -> None:
    monkeypatch.setattr("placement_ac.kube.clientcmd.POD_ACCOUNT", account)
    monkeypatch.setenv("HOME", str(account / "no home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")


async def test_the_account_of_a_pod_and_its_token_renewed_on_disk(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("not yet valid")
    ca.write_bytes(base64.b64decode(hub.kubeconfig()["clusters"][0]["cluster"]["certificate-authority-data"]))
    in_a_pod(monkeypatch, tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(hub.port))
    monkeypatch.setattr("placement_ac.kube.login.HEADERS_SECONDS", 0.0)
    async with Client(Login()) as client:
        with pytest.raises(Unavailable):
            await client.list(CHECKS)
        token.write_text(hub.token)
        assert (await client.list(CHECKS)).items == ()


@pytest.mark.parametrize(
    ("has_file", "namespace", "variable", "expected"),
    [
        pytest.param(False, "", "", "of-the-account", id="that of the account"),
        pytest.param(False, "", "of-the-variable", "of-the-variable", id="that of POD_NAMESPACE"),
        pytest.param(True, "", "", "of-the-account", id="with a kubeconfig, that of the account"),
        pytest.param(True, "", "of-the-variable", "of-the-variable", id="with one, that of POD_NAMESPACE"),
        pytest.param(True, "of-the-context", "of-the-variable", "of-the-context", id="that of the context"),
    ],
)
def test_the_namespace_in_a_pod(
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_file: bool,
    namespace: str,
    variable: str,
    expected: str,
) -> None:
    content = hub.kubeconfig()
    (tmp_path / "token").write_text("a token")
    (tmp_path / "namespace").write_text("of-the-account\n")
    authority = content["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(authority))
    in_a_pod(monkeypatch, tmp_path)
    if variable:
        monkeypatch.setenv("POD_NAMESPACE", variable)
    if namespace:
        content["contexts"][0]["context"]["namespace"] = namespace
    (tmp_path / "c").write_text(yaml.safe_dump(content))
    assert Login(tmp_path / "c" if has_file else None).namespace == expected


def test_a_user_without_a_home_has_no_kubeconfig_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(LoginFailed, match=r"there is no file ~/\.kube/config"):
        Login()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param("nowhere", "set KUBECONFIG, or use --kubeconfig: there is no file nowhere$", id="one"),
        pytest.param("a:b", "there is no file a:b$", id="several"),
        pytest.param("~/.kube/hub", r"no file ~/.kube/hub \(a shell expands no ~ in quotes\)$", id="a tilde"),
    ],
)
def test_files_of_kubeconfig_that_do_not_exist(
    monkeypatch: pytest.MonkeyPatch, value: str, problem: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", value)
    with pytest.raises(LoginFailed, match=problem):
        Login()


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        pytest.param({}, "token has no token, or cannot be read", id="no account"),
        pytest.param({"token": "t"}, "cannot read .*ca.crt: No such file", id="no CA"),
        pytest.param({"token": "", "ca.crt": None}, "token has no token", id="an empty token"),
        pytest.param(
            {"token": "t", "ca.crt": "no certificate"},
            "ca.crt: it has no certificate that can be read",
            id="a CA that is none",
        ),
    ],
)
def test_a_pod_without_a_usable_account_is_reported(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str | None], problem: str
) -> None:
    good = base64.b64decode(hub.kubeconfig()["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    for name, content in files.items():
        (tmp_path / name).write_text(good if content is None else content)
    in_a_pod(monkeypatch, tmp_path)
    with pytest.raises(LoginFailed, match=f"(?i)cannot log in with the Pod's account: .*{problem}"):
        Login()


@pytest.fixture
def pod(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Pod's account on the hub."""
    (tmp_path / "token").write_text(hub.token)
    (tmp_path / "ca.crt").write_bytes(hub.ca_certificate)
    in_a_pod(monkeypatch, tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(hub.port))
    monkeypatch.setattr("placement_ac.kube.login.HEADERS_SECONDS", 0.0)
    return tmp_path


async def test_the_ca_of_a_pod_is_read_again_when_it_has_changed_and_the_old_one_is_trusted_no_more(
    hub: Hub, pod: Path
) -> None:
    old, new = trustme.CA(), trustme.CA()
    hub.rotate_ca(old)
    (pod / "ca.crt").write_bytes(hub.ca_certificate)
    async with Client(Login()) as client:
        assert (await client.list(CHECKS)).items == ()
        hub.rotate_ca(new)
        (pod / "ca.crt").write_bytes(hub.ca_certificate)
        assert (await client.list(CHECKS)).items == ()
        with hub.outage():
            hub.rotate_ca(old)
        with pytest.raises(TlsFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await client.list(CHECKS)


async def test_files_that_stay_as_they_are_keep_their_connections(hub: Hub, pod: Path) -> None:
    login = Login()
    before = login.ssl
    async with Client(login) as client:
        await client.list(CHECKS)
        hub.faults.add("GET", "admissionchecks", status=401)
        with pytest.raises(Unavailable):
            await client.list(CHECKS)
        (pod / "ca.crt").write_bytes(hub.ca_certificate)
        await client.list(CHECKS)
    assert login.ssl is before


async def test_a_client_certificate_that_is_refused_with_401_is_not_sent_again_over_the_same_connection(
    tmp_path: Path,
) -> None:
    """An API server looks at the certificate of a connection with each request, and keeps the connection."""
    ca = trustme.CA()
    kubeconfig, new = tmp_path / "kubeconfig", ca.issue_cert("new@example.com")

    def write(url: str, leaf: trustme.LeafCert) -> None:
        data = {
            "certificate-authority-data": ca.cert_pem.bytes(),
            "client-certificate-data": leaf.cert_chain_pems[0].bytes(),
            "client-key-data": leaf.private_key_pem.bytes(),
        }
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        authority = encoded.pop("certificate-authority-data")
        cluster = {"server": url, "certificate-authority-data": authority}
        kubeconfig.write_text(yaml.safe_dump(one_context(cluster, encoded)))

    async def answer(request: web.Request) -> web.Response:
        names = request.transport.get_extra_info("peercert")["subjectAltName"] if request.transport else ()
        return web.json_response({"items": []}, status=200 if ("email", "new@example.com") in names else 401)

    server = TestServer(web.Application(), scheme="https")
    server.app.router.add_get("/{path:.*}", answer)
    await server.start_server(ssl=_accepting(ca))
    url = str(server.make_url("/")).rstrip("/")
    write(url, ca.issue_cert("old@example.com"))
    async with server, Client(Login(kubeconfig)) as client:
        with pytest.raises(Unavailable):
            await client.list(CHECKS)
        write(url, new)
        assert (await client.list(CHECKS)).items == ()


def _accepting(ca: trustme.CA) -> ssl.SSLContext:
    """Return the context of a server that accepts client certificates of `ca`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_OPTIONAL
    ca.configure_trust(context)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def test_several_files_are_merged(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = hub.kubeconfig()
    parts = ({"clusters": content.pop("clusters")}, content)
    for number, part in enumerate(parts):
        (tmp_path / str(number)).write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config"} | part))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / '0'}{os.pathsep}{tmp_path / '1'}")
    assert await count_checks(Login()) == 0
    hub.write_kubeconfig(tmp_path / "2")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "2"))
    assert await count_checks(Login()) == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", "use --context: no context is chosen", id="empty"),
        pytest.param("}{", "it is not YAML: line 1: .*expected", id="not YAML"),
    ],
)
def test_a_broken_kubeconfig_is_reported(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "c").write_text(content)
    with pytest.raises(LoginFailed, match=problem):
        Login(tmp_path / "c")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"users: [{{user: {{token: *{TOKEN}}}}}]", id="an alias"),
        pytest.param(f"users: [{{user: {{token: !{TOKEN} x}}}}]", id="a tag"),
        pytest.param(f"users: [{{user: {{token: !a!{TOKEN} x}}}}]", id="a tag with a handle"),
        pytest.param(f"a: &{TOKEN} 1\nb: &{TOKEN} 2\nc: *d", id="an anchor"),
        pytest.param(f"token: !!int {TOKEN}", id="a value of another type"),
        pytest.param(f"token: !!timestamp {TOKEN}", id="no time"),
        pytest.param(f"token: {TOKEN}\n  x: y", id="an indentation"),
        pytest.param(f"{{{TOKEN}: {TOKEN}, {TOKEN}", id="an open bracket"),
        pytest.param(f"%{TOKEN} x\n---\na: '", id="a directive"),
    ],
)
def test_an_error_quotes_nothing_of_a_broken_kubeconfig(tmp_path: Path, content: str) -> None:
    (tmp_path / "c").write_text(content)
    with pytest.raises(LoginFailed) as refused:
        Login(tmp_path / "c")
    assert TOKEN not in str(refused.value)
    assert TOKEN not in "".join(traceback.format_exception(refused.value))


def with_certificate() -> Login:
    leaf = trustme.CA().issue_cert("client@example.com")
    certificate, key = leaf.cert_chain_pems[0].bytes().decode(), leaf.private_key_pem.bytes().decode()
    return Login(access=ClusterAccess("https://worker1", certificate=certificate, key=key))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files in memory")
def test_the_key_of_a_worker_touches_no_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    assert with_certificate().server == "https://worker1"


def test_elsewhere_its_file_is_gone_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with_certificate()
    assert list(tmp_path.iterdir()) == []


def test_a_context_that_is_not_there_is_reported(hub: Hub, tmp_path: Path) -> None:
    hub.write_kubeconfig(tmp_path / "c")
    with pytest.raises(LoginFailed, match="nowhere"):
        Login(tmp_path / "c", "nowhere")


async def test_a_list_is_read_page_by_page_and_begun_again_when_a_page_has_expired(
    hub: Hub, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.kube.client.PAGE_SIZE", 2)
    for number in range(5):
        body = {"metadata": {"name": f"c{number}"}, "spec": {"controllerName": "x"}}
        await client.apply(CHECKS, body)
    hub.faults.add("GET", "admissionchecks", delay=0)
    gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    hub.faults.add("GET", "admissionchecks", status=410, body=gone)
    names = [item["metadata"]["name"] for item in (await client.list(CHECKS)).items]
    assert names == ["c0", "c1", "c2", "c3", "c4"]
    limits = [r.query.get("limit") for r in hub.journal if r.method == "GET" and "limit" in r.query]
    assert len(limits) == 5
    assert set(limits) == {"2"}


async def test_a_version_or_object_that_is_not_served_is_not_found(client: Client) -> None:
    assert await client.schema(MULTIKUEUE_CONFIG.at("v9")) is None
    assert await client.discover([SECRET]) == {SECRET: SECRET.at("v1")}
    with pytest.raises(NotFound):
        await client.get(CHECKS, "nobody")


async def test_an_answer_that_is_no_json_object_is_worth_another_try(hub: Hub, client: Client) -> None:
    hub.faults.add("GET", "admissionchecks", status=200, body=[1, 2])
    with pytest.raises(Unavailable, match="no JSON object"):
        await client.get(CHECKS, "x")


async def test_a_closed_client_says_so(hub: Hub, tmp_path: Path) -> None:
    client = Client(Login(kubeconfig(hub, tmp_path / "c", {"token": hub.token})))
    with pytest.raises(Unavailable, match="closed"):
        await client.get(CHECKS, "x")


async def test_a_proxy_that_lets_nobody_through_quotes_no_password(hub: Hub, tmp_path: Path) -> None:
    async def refuse(request: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        await request.readuntil(b"\r\n\r\n")
        answer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        answer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        way = {"proxy-url": f"http://me:secret@127.0.0.1:{port}"}
        user = hub.kubeconfig()["users"][0]["user"]
        async with Client(Login(kubeconfig(hub, tmp_path / "proxied", user, **way))) as client:
            for ask in (_look, _follow):
                with pytest.raises(Unavailable, match="407") as error:
                    await ask(client)
                assert "secret" not in error.value.message


async def _look(client: Client) -> object:
    return await client.get(CHECKS, "x")


async def _follow(client: Client) -> object:
    return [event async for event in client.watch(CHECKS, "")]


@pytest.mark.parametrize("ask", [_look, _follow])
async def test_who_asks_outlives_the_end_of_what_was_done_for_it(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Client], Awaitable[object]]
) -> None:
    """kopf cancels, when it ends, the task in which aiohttp looks up a name for whom it knows nothing of."""
    looked_up = asyncio.Event()

    async def resolve(*_: object, **__: object) -> None:
        looked_up.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(DefaultResolver, "resolve", resolve)
    by_name = hub.kubeconfig()["clusters"][0]["cluster"]["server"].replace("127.0.0.1", "localhost")
    user = hub.kubeconfig()["users"][0]["user"]
    async with Client(Login(kubeconfig(hub, tmp_path / "by-name", user, server=by_name))) as client:
        asking = asyncio.ensure_future(ask(client))
        older = {*asyncio.all_tasks(), asking}
        await looked_up.wait()
        for task in asyncio.all_tasks() - older:
            task.cancel()
        with pytest.raises(Unavailable, match="cut short"):
            await asking
        looked_up.clear()
        asking = asyncio.ensure_future(ask(client))
        await looked_up.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_command_waits_for_a_server_that_is_too_busy(hub: Hub, tmp_path: Path) -> None:
    """As kubectl: a new CRD's storage, for one, is not ready at once. The controller has its own pauses."""
    login = Login(kubeconfig(hub, tmp_path / "c", {"token": hub.token}))
    for retries, waits in ((2, True), (1, False), (0, False)):
        hub.faults.add("GET", "admissionchecks", status=429, headers={"Retry-After": "0"}, times=2)
        async with Client(login, retries=retries) as client:
            if waits:
                assert (await client.list(CHECKS)).items == ()
            else:
                with pytest.raises(Unavailable):
                    await client.list(CHECKS)
        hub.faults.clear()


RUBBISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ("apiVersion", "clusters", "contexts", "current-context", "users", "preferences")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=RUBBISH | st.dictionaries(st.sampled_from(FIELDS), RUBBISH, max_size=6))
@example(content="plain text")
@example(content=["a", "list"])
@example(content={"current-context": "c", "contexts": [{"name": "c", "context": "text"}]})
@example(content={"current-context": "a\x1eb"})
def test_a_kubeconfig_of_any_other_shape_is_refused_in_one_line(tmp_path: Path, content: object) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(content), "utf-8")
    with pytest.raises(LoginFailed) as refused:
        Login(path)
    assert str(refused.value).startswith(f"cannot log in with {path}: ")
    assert len(str(refused.value).splitlines()) == 1
