"""
Read what it takes to reach a worker cluster out of a Secret's kubeconfig, or out of a ClusterProfile;
and write such a kubeconfig.

Pure. What is refused is what Kueue refuses, and all that would make this program read a file or
run a program; no refusal quotes what it was made for. Sources: Kueue's validateKubeconfig and
validateRestConfig (pkg/controller/admissionchecks/multikueue/multikueuecluster.go), and what client-go
0.36 refuses on the way (tools/clientcmd, transport).
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import orjson

from placement_ac.core.kubeconfig import expiry
from placement_ac.core.kubeconfig.parse import (
    Kubeconfig,
    KubeconfigCluster,
    KubeconfigRefused,
    KubeconfigUser,
    Refusal,
    parse_kubeconfig,
    validate_shape,
)
from placement_ac.core.kubeconfig.source import Unusable

_DNS_1123: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_1123_MAX: Final = 253
_TOKEN: Final = re.compile(r"[!-~]+")
"""What may stand in a header as one word."""


class NotSupportedHere(StrEnum):
    """What Kueue takes and this program does not: it cannot ask that worker itself."""

    USER_INFO = "has a server with a user name in it: take it out, a stricter Kueue will refuse it"
    FILES = (
        "has a client certificate or key in a file, which only Kueue's container may have:"
        " give client-certificate-data and client-key-data"
    )
    IMPERSONATION = "stands in for another user (as), which only Kueue does"
    SOCKS = "has a proxy-url with socks5, which only Kueue can use"
    NOBODY = "has neither a token nor a client certificate"


class StricterRule(StrEnum):
    """What is refused by the rules proposed for Kueue (its pull request 14738), beside all of the above."""

    HTTPS = "has a server that is not https"


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """An API server and the way in, all of it in memory. Its repr tells no secret."""

    server: str
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    """PEM, as are the next two."""
    key: str = field(default="", repr=False)
    authority: str = field(default="", repr=False)
    """Who has signed the server's certificate; "": whom this machine trusts."""
    server_name: str = ""
    """The name in the server's certificate, if that is not the host's."""
    proxy: str = field(default="", repr=False)
    expires: datetime | None = None
    """When it ends, in UTC: the token, the client certificate or all authorities, whichever is first."""
    expires_what: str = ""
    """What ends then: expiry.TOKEN, CLIENT_CERTIFICATE or AUTHORITY."""
    issued: datetime | None = None
    """When that same thing began to be good, if it says so."""


@dataclass(frozen=True, slots=True)
class UsableByKueueOnly(Unusable):
    """A way in that Kueue can take and this program cannot. Never enter with `access`: it is incomplete."""

    access: ClusterAccess = field(repr=False)


def read_kubeconfig(text: bytes) -> ClusterAccess | Unusable:
    """Return the way in that the current context of a Secret's kubeconfig tells.

    What Kueue takes and this program does not is a ForKueueOnly. Whether it has expired is for the caller.
    As in clientcmd, no credentials go over plain http: such an Access has none.
    """
    try:
        config = parse_kubeconfig(text)
        _raise_first(_objections_to_all(config))
        cluster, user = _current(config)
        _raise_first(_objections_to(user))
        door = _endpoint(cluster)
        access = _with_user(door, user) if _is_secure(door) else door
    except KubeconfigRefused as unfit:
        return Unusable(str(unfit))
    beyond = next(_beyond_us(cluster, user), None)
    return UsableByKueueOnly(beyond.value, access) if beyond else access


def strict_problem(text: bytes) -> str:
    """Return the first objection by the rules proposed for Kueue, which ours must meet; "": none."""
    judged = read_kubeconfig(text)
    if isinstance(judged, Unusable):
        return judged.why
    return "" if _is_secure(judged) else StricterRule.HTTPS.value


def write_kubeconfig(server: str, authority: str | bytes, token: str, cluster: str) -> bytes | Unusable:
    """Return a kubeconfig, the same bytes for the same arguments, that `strict` has nothing against.

    `authority` is PEM; what is no certificate in it is left out. Empty: whom Kueue's container trusts.
    It is JSON, which is YAML. `cluster` names its one cluster, user and context.
    """
    pem = authority.decode("ascii", "ignore") if isinstance(authority, bytes) else authority
    trusted, _ = expiry.authorities_lifetime(pem)
    if authority and not trusted:
        return Unusable(Refusal.AUTHORITY.value)
    data = {"certificate-authority-data": base64.b64encode(trusted.encode()).decode()} if trusted else {}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server} | data}],
        "users": [{"name": cluster, "user": {"token": token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }
    try:
        text = orjson.dumps(content)
    except orjson.JSONEncodeError:
        return Unusable(Refusal.NOT_YAML.value)
    objection = strict_problem(text)
    return Unusable(objection) if objection else text


def read_profile(
    cluster: Mapping[str, Any], token: str, certificate: str = "", key: str = ""
) -> ClusterAccess | Unusable:
    """Return the way in to the `cluster` of a ClusterProfile's access provider, with a plugin's credentials.

    As in Kueue, the server is always verified, against the authority's data only.
    """
    if not (token or certificate or key):
        return Unusable(NotSupportedHere.NOBODY.value)
    try:
        door = _endpoint(validate_shape(KubeconfigCluster, cluster))
        access = _with_credentials(door, token, certificate, key)
    except KubeconfigRefused as unfit:
        return Unusable(str(unfit))
    return access if _is_secure(door) else Unusable(StricterRule.HTTPS.value)


def _objections_to_all(config: Kubeconfig) -> Iterator[str]:
    """Yield what is allowed in no user and in no cluster, be it the current one or not."""
    for section in (config.clusters, config.users, config.contexts):
        if len({entry.name for entry in section}) < len(section):
            yield Refusal.SAME_NAME
    for user in (entry.user for entry in config.users):
        _decoded(user.client_certificate_data, "client-certificate-data")
        _decoded(user.client_key_data, "client-key-data")
        if user.token_file:
            yield Refusal.TOKEN_FILE
    for cluster in (entry.cluster for entry in config.clusters):
        _decoded(cluster.certificate_authority_data, "certificate-authority-data")
        if cluster.insecure_skip_tls_verify:
            yield Refusal.INSECURE
        if cluster.certificate_authority:
            yield Refusal.AUTHORITY_FILE
        if not cluster.server:
            yield Refusal.NO_SERVER


def _current(config: Kubeconfig) -> tuple[KubeconfigCluster, KubeconfigUser]:
    contexts = {entry.name: entry.context for entry in config.contexts}
    clusters = {entry.name: entry.cluster for entry in config.clusters}
    users = {entry.name: entry.user for entry in config.users}
    context = contexts.get(config.current_context)
    if context is None:
        raise KubeconfigRefused(Refusal.NO_CONTEXT)
    if context.cluster not in clusters:
        raise KubeconfigRefused(Refusal.NO_CLUSTER)
    return clusters[context.cluster], users.get(context.user, KubeconfigUser())


def _objections_to(user: KubeconfigUser) -> Iterator[str]:
    """Yield what clientcmd does not take, whether it is used or not."""
    if user.token and _has_password(user):
        yield Refusal.BASIC
    if (user.as_uid or user.as_groups or user.as_user_extra) and not user.stands_in_for:
        yield Refusal.AS_NOBODY
    if _is_twice(user):
        yield Refusal.FILE_AND_DATA
    shown = user.client_certificate or user.client_certificate_data
    if shown and not (user.client_key or user.client_key_data):
        yield Refusal.HALF_A_PAIR


def _objections_to_use(user: KubeconfigUser) -> Iterator[str]:
    if _has_password(user):
        yield Refusal.BASIC
    if user.plugin is not None:
        yield Refusal.EXEC
    if user.auth_provider is not None:
        yield Refusal.AUTH_PROVIDER


def _has_password(user: KubeconfigUser) -> bool:
    return bool(user.username or user.password)


def _is_twice(user: KubeconfigUser) -> bool:
    certificate = bool(user.client_certificate and user.client_certificate_data)
    return certificate or bool(user.client_key and user.client_key_data)


def _raise_first(objections: Iterator[str]) -> None:
    for objection in objections:
        raise KubeconfigRefused(objection)


def _beyond_us(cluster: KubeconfigCluster, user: KubeconfigUser) -> Iterator[NotSupportedHere]:
    if "@" in urlsplit(cluster.server).netloc:
        yield NotSupportedHere.USER_INFO
    if user.client_certificate or user.client_key:
        yield NotSupportedHere.FILES
    if user.stands_in_for:
        yield NotSupportedHere.IMPERSONATION
    if _scheme(cluster.proxy_url) == "socks5":
        yield NotSupportedHere.SOCKS
    if not (user.token or user.client_certificate_data) and _scheme(cluster.server) == "https":
        yield NotSupportedHere.NOBODY


def _endpoint(cluster: KubeconfigCluster) -> ClusterAccess:
    _raise_first(_objections_to_server(cluster.server))
    if cluster.proxy_url and not _is_proxy(cluster.proxy_url):
        raise KubeconfigRefused(Refusal.PROXY)
    authority = _decoded(cluster.certificate_authority_data, "certificate-authority-data")
    if _scheme(cluster.server) == "http":
        authority = ""
    trusted, lifetime = expiry.authorities_lifetime(authority)
    if authority and not trusted:
        raise KubeconfigRefused(Refusal.AUTHORITY)
    return _ending(
        ClusterAccess(
            server=_plain(cluster.server),
            authority=trusted,
            server_name=cluster.tls_server_name,
            proxy=cluster.proxy_url,
        ),
        lifetime,
    )


def _objections_to_server(server: str) -> Iterator[str]:
    """A host must be an IP address or a DNS-1123 name. Go looks for a port before it looks at brackets."""
    url = _split(server)
    if url is None or url.scheme not in ("http", "https") or not url.hostname:
        yield Refusal.ADDRESS
    elif not _is_host(url.hostname):
        yield Refusal.HOST
    elif url.netloc.endswith("]"):
        yield Refusal.IPV6


def _scheme(address: str) -> str:
    return urlsplit(address).scheme


def _is_secure(access: ClusterAccess) -> bool:
    return access.server.startswith("https://")


def _is_proxy(address: str) -> bool:
    url = _split(address)
    return url is not None and url.scheme in ("http", "https", "socks5") and bool(url.netloc)


def _plain(server: str) -> str:
    """Return it without a user, who may have a password, and like Go without query and fragment."""
    url = urlsplit(server)
    host = url.netloc.rpartition("@")[2]
    return f"{url.scheme}://{host}{url.path}".rstrip("/")


def _split(server: str) -> SplitResult | None:
    try:
        url = urlsplit(server)
        _ = url.port
    except ValueError:
        return None
    return url if _TOKEN.fullmatch(server) else None  # urlsplit overlooks blanks and line breaks


def _is_host(host: str) -> bool:
    if len(host) <= _DNS_1123_MAX and _DNS_1123.fullmatch(host):
        return True  # an IPv4 address too
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def _with_user(door: ClusterAccess, user: KubeconfigUser) -> ClusterAccess:
    _raise_first(_objections_to_use(user))
    certificate, key = user.client_certificate_data, user.client_key_data
    if user.client_certificate or user.client_key or not certificate:
        certificate = key = ""  # as clientcmd does: a key without a certificate is nothing
    certificate = _decoded(certificate, "client-certificate-data")
    return _with_credentials(door, user.token, certificate, _decoded(key, "client-key-data"))


def _with_credentials(door: ClusterAccess, token: str, certificate: str, key: str) -> ClusterAccess:
    token = token.rstrip(" \t")  # as Go's HTTP does
    if token and not _TOKEN.fullmatch(token):
        raise KubeconfigRefused(Refusal.TOKEN)
    if bool(certificate) != bool(key):
        raise KubeconfigRefused(Refusal.HALF_A_PAIR)
    lifetimes = [expiry.token_lifetime(token), _of_pair(certificate, key) if certificate else None]
    return _ending(replace(door, token=token, certificate=certificate, key=key), *lifetimes)


def _of_pair(certificate: str, key: str) -> expiry.Lifetime:
    pair = expiry.key_pair_lifetime(certificate, key)
    if pair.lifetime is None:
        raise KubeconfigRefused(Refusal.NO_CERTIFICATE if pair.is_key else Refusal.NO_PAIR)
    if not pair.is_key:
        raise KubeconfigRefused(Refusal.NO_KEY)
    if not pair.match:
        raise KubeconfigRefused(Refusal.OTHER_KEY)
    return pair.lifetime


def _ending(access: ClusterAccess, *lifetimes: expiry.Lifetime | None) -> ClusterAccess:
    """Return it with what ends first of that which is known already and of `lifetimes`."""
    known = expiry.Lifetime(access.expires_what, access.issued, access.expires)
    first = expiry.first_to_end(known, *lifetimes)
    return replace(access, expires=first.expires, expires_what=first.what, issued=first.issued)


def _decoded(data: str, name: str) -> str:
    """Return PEM. Like Go, this allows line breaks and nothing else between the characters."""
    try:
        pem = base64.b64decode(data.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        raise KubeconfigRefused(Refusal.NOT_BASE64.format(field=name)) from None
    return pem.decode("ascii", "ignore")  # only a comment beside the PEM may be anything else
