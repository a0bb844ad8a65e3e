"""Which proxy the environment names; what is expected is what Go's httpproxy gave for the same."""

import pytest

from placement_ac.core.api.errors import LoginFailed
from placement_ac.kube.proxies import proxy_of_environment

PROXY = "http://p:1"


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_used"),
    [
        ("https://a.example", "", True),
        ("https://a.example", "*", False),
        ("https://a.example", "b.example, *", False),
        ("https://a.example", "a.example", False),
        ("https://A.Example", "a.EXAMPLE", False),
        ("https://a.example", "example", False),
        ("https://a.example", ".example", False),
        ("https://a.example", "*.example", False),
        ("https://example", "example", False),
        ("https://example", ".example", True),
        ("https://example", "*.example", True),
        ("https://a.example", "*example", True),
        ("https://ba.example", "a.example", True),
        ("https://a.example", "a.example:443", False),
        ("https://a.example:6443", "a.example:443", True),
        ("https://a.example:6443", ".example:6443", False),
        ("https://xn--bcher-kva.example", "bücher.example", False),
        ("https://a.example", " , a.example ,", False),
        ("https://a.example", ":443,[],.", True),
        ("https://10.1.2.3", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "10.1.2.3:443", True),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://10.1.2.3", "10.1.2.9/24", False),
        ("https://10.1.2.3", "192.0.2.0/24,10.1.2.3/33,10.0.0.0/255.0.0.0", True),
        ("https://10.1.2.3", "2.3", True),
        ("https://a.example", "0.0.0.0/0", True),
        ("https://[2001:db8::1]:6443", "2001:db8::/32", False),
        ("https://[2001:db8::1]", "2001:db8::1", False),
        ("https://[2001:db8::1]", "[2001:db8::1]", True),
        ("https://[2001:db8::1]", "[2001:db8::1]:443", False),
        ("https://[::ffff:10.1.2.3]", "10.0.0.0/8", False),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://127.9.9.9", "", False),
        ("https://[::1]:6443", "", False),
        ("https://localhost.example", "", True),
        ("https://u:p@a.example/x?y", "a.example", False),
    ],
)
def test_the_servers_without_a_proxy(server: str, no_proxy: str, is_used: bool) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert proxy_of_environment(server, environment) == (PROXY if is_used else "")


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://a", {"https_proxy": PROXY}, PROXY),
        ("https://a", {"HTTPS_PROXY": "", "https_proxy": PROXY}, PROXY),
        ("https://a", {"HTTPS_PROXY": PROXY, "https_proxy": "http://other:1"}, PROXY),
        ("https://a", {"HTTP_PROXY": PROXY, "ALL_PROXY": PROXY, "all_proxy": PROXY}, ""),
        ("http://a", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://a", {"HTTPS_PROXY": PROXY}, ""),
        ("http://a", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, ""),
        ("https://a", {"HTTPS_PROXY": PROXY, "no_proxy": "a"}, ""),
        ("https://a", {"HTTPS_PROXY": PROXY, "NO_PROXY": "b", "no_proxy": "a"}, PROXY),
        ("https://a", {"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ("https://a", {"HTTPS_PROXY": "p"}, "http://p"),
        ("https://a", {"HTTPS_PROXY": "10.0.0.1:1"}, "http://10.0.0.1:1"),
        ("https://a", {"HTTPS_PROXY": " http://p:1"}, ""),
        ("https://a", {"HTTPS_PROXY": "socks5h://u:p@p:1"}, "socks5h://u:p@p:1"),
    ],
)
def test_the_variable_that_names_the_proxy(server: str, environment: dict[str, str], proxy: str) -> None:
    assert proxy_of_environment(server, environment) == proxy


@pytest.mark.parametrize("proxy", ["ftp://p:1", "http://p:x", "http://SeCrEt@[p", "socks4://p:1"])
def test_another_kind_of_proxy_is_refused_by_the_name_of_its_variable(proxy: str) -> None:
    with pytest.raises(LoginFailed, match=r"^set HTTPS_PROXY to an http, https or socks5 URL") as refused:
        proxy_of_environment("https://a", {"HTTPS_PROXY": proxy})
    assert "SeCrEt" not in str(refused.value)
