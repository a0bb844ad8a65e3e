"""
Kueue's validation of a worker's kubeconfig, with Kueue's error messages.

Pure. Source: Kueue's `validateKubeconfig` and shared/kueue/broken-configuration.txt.
"""

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

_DNS_1123: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_VERSION_AND_KIND: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_GO_NAMES: Final[dict[type, str]] = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
}


class UnreadableKubeconfig(ValueError):
    """The text is not a kubeconfig."""


def refusal(text: bytes) -> str | None:
    """Return Kueue's error message for a kubeconfig, None if it is accepted."""
    try:
        config = _parse(text)
        return next(_objections(config), None)
    except UnreadableKubeconfig as error:
        return f"failed to parse kubeconfig(apiconfig): {error}"


def _parse(text: bytes) -> dict[str, Any]:
    try:
        config = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UnreadableKubeconfig(f"yaml: {str(error).splitlines()[0]}") from None
    if config is None:
        return {}
    if not isinstance(config, dict):
        go_type = _GO_NAMES.get(type(config), "object")
        raise UnreadableKubeconfig(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {go_type}"
            f" into Go value of type {_VERSION_AND_KIND}"
        )
    return config


def _entries_by_name(config: dict[str, Any], section: str, what: str) -> dict[str, dict[str, Any]]:
    """Return the entries of `users`, `clusters` or `contexts` by name."""
    entries = config.get(section) or []
    if not isinstance(entries, list):
        raise UnreadableKubeconfig(f"{section} is no list")
    named = {}
    for entry in entries:
        content = entry.get(what) or {} if isinstance(entry, dict) else None
        if not isinstance(content, dict):
            raise UnreadableKubeconfig(f"an entry of {section} is no object")
        named[str(entry.get("name", ""))] = content
    return named


def _objections(config: dict[str, Any]) -> Iterator[str]:
    """Yield the errors in the order in which Kueue checks."""
    users = _entries_by_name(config, "users", "user")
    clusters = _entries_by_name(config, "clusters", "cluster")
    contexts = _entries_by_name(config, "contexts", "context")
    if any(user.get("tokenFile") for user in users.values()):
        yield "tokenFile is not allowed"
    for name, cluster in clusters.items():
        yield from _cluster_objections(name, cluster)
    current = str(config.get("current-context") or "")
    if not clusters or not current:
        yield (
            "invalid configuration: no configuration has been provided,"
            " try setting KUBERNETES_MASTER environment variable"
        )
    if current not in contexts:
        yield f"context was not found for specified context: {current}"
    else:
        context = contexts[current]
        server = clusters.get(str(context.get("cluster")), {}).get("server", "")
        yield from _current_objections(str(server), users.get(str(context.get("user")), {}))


def _cluster_objections(name: str, cluster: dict[str, Any]) -> Iterator[str]:
    if cluster.get("insecure-skip-tls-verify"):
        yield f"insecure TLS verification is not allowed for cluster {name}"
    if cluster.get("certificate-authority"):
        yield (
            "certificate-authority file paths are not allowed,"
            f" use certificate-authority-data for cluster {name}"
        )
    if not cluster.get("server"):
        yield f"server URL is required for cluster {name}"


def _current_objections(server: str, user: dict[str, Any]) -> Iterator[str]:
    if not is_host(server):
        yield "untrusted server endpoint"
    if user.get("username") or user.get("password"):
        yield "basic auth is not allowed"
    if user.get("exec"):
        yield "exec plugins are not allowed"
    if user.get("auth-provider"):
        yield "auth providers are not allowed"


def is_host(server: str) -> bool:
    """Return whether the server's host is an IP address or a DNS-1123 name."""
    try:
        host = urlsplit(server).hostname or ""
    except ValueError:
        return False
    try:
        ip_address(host)
    except ValueError:
        return _DNS_1123.fullmatch(host) is not None
    return True
