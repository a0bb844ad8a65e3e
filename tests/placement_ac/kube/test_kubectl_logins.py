"""Our login compared with kubectl's, by tables of kubeconfigs: both reach a server alike, or neither does."""

import json

import pytest

from tests.placement_ac.kube.kubectl_cases import CASES
from tests.support.authorities import ADDRESS, ServedBy, authorities
from tests.support.builders import encoded
from tests.support.kubectl_login import as_a_worker, by_kubectl, environment
from tests.support.kubectl_shell import Case, Shell

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", CASES)
def test_the_server_is_reached_as_by_kubectl(shell: Shell, name: str) -> None:
    shell.reaches_the_same(CASES[name])


WORKERS: dict[str, Case] = {
    name: CASES[name]
    for name in (
        "as",
        "as, as-uid, as-groups, as-user-extra",
        "a client certificate and a token",
        "a server behind another name, tls-server-name",
        "over plain http, whom to impersonate",
        "proxy-url http",
        "proxy-url https",
        "proxy-url socks5 with a password",
        "proxy-url before NO_PROXY and HTTPS_PROXY",
        "HTTPS_PROXY",
        "HTTPS_PROXY socks5",
        "https_proxy",
        "NO_PROXY=*",
        "NO_PROXY=.example.invalid",
    )
}


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_is_reached_as_by_kubectl(shell: Shell, name: str) -> None:
    WORKERS[name](shell)
    env = environment(shell.folder / "home", **shell.variables)
    theirs, why = by_kubectl(env, shell.folder)
    shell.reach.through, through = [], shell.reach.through
    ours, why_not = as_a_worker(env, json.loads((shell.folder / "config").read_text()))
    assert ours == theirs, f"kubectl: {why}; we: {why_not}"
    assert {*shell.reach.through} == {*through}


@pytest.mark.parametrize(("name", "served"), [(name, served) for name, (served, _) in authorities().items()])
def test_authorities_are_taken_as_by_kubectl(shell: Shell, name: str, served: ServedBy) -> None:
    port = shell.reach.serve(served.context())
    data = {"certificate-authority-data": encoded(served.authority)}
    shell.config(None, server=f"https://{ADDRESS}:{port}", **data)
    theirs, ours, why, why_not = shell.both()
    assert ours == theirs, f"{name}: kubectl: {why}; we: {why_not}"


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_over_plain_http_credentials_are_sent_to_this_machine_alone(shell: Shell, scheme: str) -> None:
    """Kubectl sends none at all; another server is compared above."""
    server = f"{scheme}127.0.0.1:{shell.reach.ports['http']}"
    shell.config({"token": "t", "as": "jane"}, server=server, **{"certificate-authority-data": ""})
    theirs, ours, *_ = shell.both()
    impersonation = ["impersonate-user", "jane"]
    assert theirs
    assert ours
    assert (theirs["headers"], ours["headers"]) == (
        [impersonation],
        [["authorization", "Bearer t"], impersonation],
    )
