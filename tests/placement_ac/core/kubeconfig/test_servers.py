"""The allow-list of servers for an access provider: how a host matches it, and which entries it may have."""

import pytest

from placement_ac.core.kubeconfig.servers import endpoints, is_suffix, server_problem


def allowed(server: str, *suffixes: str, **fields: str) -> bool:
    return not server_problem("ocm", endpoints({"server": server} | fields), suffixes)


@pytest.mark.parametrize(
    ("server", "suffix"),
    [
        pytest.param("https://a.example.com", ".example.com", id="a subdomain"),
        pytest.param("https://a.b.example.com:6443/path", ".example.com", id="deeper, with port and path"),
        pytest.param("https://example.com", "example.com", id="the host itself"),
        pytest.param("https://a.example.com", "example.com", id="a subdomain of the host"),
        pytest.param("https://A.Example.COM", ".eXample.com", id="upper case"),
        pytest.param("https://10.0.0.1:6443", "10.0.0.1", id="an IP address"),
        pytest.param("https://[2001:db8::1]:6443", "2001:DB8:0::1", id="an IPv6 address"),
    ],
)
def test_a_server_that_matches_is_allowed(server: str, suffix: str) -> None:
    assert allowed(server, "other.test", suffix)


@pytest.mark.parametrize(
    ("server", "suffix"),
    [
        pytest.param("https://example.com", ".example.com", id="the domain itself"),
        pytest.param("https://badexample.com", "example.com", id="no label of its own"),
        pytest.param("https://example.com.evil.test", "example.com", id="a prefix"),
        pytest.param("https://evil.test/example.com", "example.com", id="a path"),
        pytest.param("https://evil.test?.example.com", ".example.com", id="a query"),
        pytest.param("https://evil.test#.example.com", ".example.com", id="a fragment"),
        pytest.param("https://a.example.com@evil.test", ".example.com", id="a user name"),
        pytest.param("https://evil.test@a.example.com", ".example.com", id="any user name"),
        pytest.param("https://evil.test\\@a.example.com", ".example.com", id="a backslash"),
        pytest.param("https://evil.test\\.example.com", ".example.com", id="a backslash in the host"),
        pytest.param("https://evil.test\n.example.com", ".example.com", id="a line break"),
        pytest.param("https://a.example.com.", ".example.com", id="a dot at the end"),
        pytest.param("https://a.example.com:x", ".example.com", id="no port"),
        pytest.param("//a.example.com", ".example.com", id="no scheme"),
        pytest.param("a.example.com", ".example.com", id="no URL"),
        pytest.param("", ".example.com", id="nothing"),
        pytest.param("https://1.10.0.0.1", "10.0.0.1", id="before an IP address"),
        pytest.param("https://10.0.0.1", "0.1", id="the end of an IP address"),
        pytest.param("https://[::1]:6443", "127.0.0.1", id="another IP address"),
    ],
)
def test_a_server_that_does_not_match_is_not_allowed(server: str, suffix: str) -> None:
    assert not allowed(server, suffix)


def test_without_a_list_any_server_is_allowed() -> None:
    assert allowed("https://evil.test")


def test_a_proxy_must_be_allowed_too() -> None:
    """Whoever sets the proxy sets the CA as well: it could pretend to be the server."""
    server, proxy = "https://a.example.com", {"proxy-url": "http://proxy.test:3128"}
    assert allowed(server, ".example.com", "proxy.test", **proxy)
    assert server_problem("ocm", endpoints({"server": server} | proxy), [".example.com"]) == (
        "correct the proxy-url of access provider ocm, or add its host to allowedServerSuffixes "
        "in the file --access-providers: it is not allowed there"
    )


@pytest.mark.parametrize("value", [7, ["https://a.example.com"], {"a": ".example.com"}, None])
def test_an_address_of_another_type_is_not_allowed(value: object) -> None:
    assert server_problem("ocm", endpoints({"server": value}), [".example.com"])


@pytest.mark.parametrize(
    "entry", [".example.com", "example.com", "Example.COM", "localhost", "10.0.0.1", "::1"]
)
def test_an_entry_of_the_list(entry: str) -> None:
    assert is_suffix(entry)


@pytest.mark.parametrize(
    "entry",
    ["", ".", "..a", "*.example.com", "https://example.com", "example.com:6443", "[::1]", "a b", "a."],
)
def test_no_entry_of_the_list(entry: str) -> None:
    assert not is_suffix(entry)
