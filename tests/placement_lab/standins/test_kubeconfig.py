"""The kubeconfigs that Kueue rejects, with its messages (broken-configuration.txt and Kueue's code)."""

from typing import Any

import pytest
import yaml

from placement_lab.standins.kubeconfig import refusal
from tests.support.kubeconfigs import one_context

GO_STRUCT = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)


def kubeconfig(*, user: Any = None, cluster: Any = None, **top: Any) -> bytes:
    """A kubeconfig that Kueue accepts, with the given changes."""
    server = {"server": "https://127.0.0.1:6443"}
    config = one_context(server | (cluster or {}), {"token": "t"} | (user or {}), **top)
    return yaml.safe_dump(config).encode()


@pytest.mark.parametrize(
    "server",
    [
        "https://127.0.0.1:6443",
        "https://[::1]:6443",
        "https://worker1.example.com",
        "https://Worker1.Example.COM:443",
        "http://worker1:80/path",
    ],
)
def test_a_host_can_be_an_address_or_dns_name(server: str) -> None:
    assert refusal(kubeconfig(cluster={"server": server})) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(kubeconfig(user={"tokenFile": "/t"}), "tokenFile is not allowed", id="token file"),
        pytest.param(
            kubeconfig(cluster={"insecure-skip-tls-verify": True}),
            "insecure TLS verification is not allowed for cluster w",
            id="insecure",
        ),
        pytest.param(
            kubeconfig(cluster={"certificate-authority": "/ca"}),
            "certificate-authority file paths are not allowed, use certificate-authority-data for cluster w",
            id="CA file",
        ),
        pytest.param(
            kubeconfig(cluster={"server": ""}), "server URL is required for cluster w", id="no server"
        ),
        pytest.param(
            kubeconfig(cluster={"server": "https://under_score"}), "untrusted server endpoint", id="host"
        ),
        pytest.param(kubeconfig(cluster={"server": "w:6443"}), "untrusted server endpoint", id="no scheme"),
        pytest.param(kubeconfig(cluster={"server": "https://[::"}), "untrusted server endpoint", id="no URL"),
        pytest.param(kubeconfig(user={"username": "u"}), "basic auth is not allowed", id="basic auth"),
        pytest.param(
            kubeconfig(user={"exec": {"command": "x"}}), "exec plugins are not allowed", id="exec plugin"
        ),
        pytest.param(
            kubeconfig(user={"auth-provider": {"name": "x"}}),
            "auth providers are not allowed",
            id="auth provider",
        ),
        pytest.param(
            kubeconfig(**{"current-context": "other"}),
            "context was not found for specified context: other",
            id="context",
        ),
        pytest.param(
            b"",
            "invalid configuration: no configuration has been provided,"
            " try setting KUBERNETES_MASTER environment variable",
            id="empty",
        ),
    ],
)
def test_an_insecure_or_invalid_kubeconfig_is_rejected(text: bytes, why: str) -> None:
    assert refusal(text) == why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(b"garbage", f"string into Go value of type {GO_STRUCT}", id="a string"),
        pytest.param(b"[1]", f"array into Go value of type {GO_STRUCT}", id="a list"),
        pytest.param(b"a: [", "yaml: while parsing a flow node", id="no YAML"),
        pytest.param(b"\xff\xfe\xfd", "yaml: ", id="not UTF-8"),
        pytest.param(b"users: 3", "users is no list", id="users are a number"),
        pytest.param(b"clusters: [3]", "an entry of clusters is no object", id="a cluster is a number"),
        pytest.param(b"contexts: [{context: 3}]", "an entry of contexts is no object", id="a context"),
    ],
)
def test_a_malformed_kubeconfig_is_rejected(text: bytes, why: str) -> None:
    message = refusal(text)
    assert message is not None
    assert message.startswith("failed to parse kubeconfig(apiconfig): ")
    assert why in message


def test_only_the_current_context_is_validated() -> None:
    other = [{"name": "u", "user": {"token": "t"}}, {"name": "v", "user": {"exec": {"command": "x"}}}]
    assert refusal(kubeconfig(users=other)) is None


def test_a_token_file_of_any_user_is_rejected() -> None:
    other = [{"name": "u", "user": {"token": "t"}}, {"name": "v", "user": {"tokenFile": "/t"}}]
    assert refusal(kubeconfig(users=other)) == "tokenFile is not allowed"
