"""
Read the access to a worker cluster from a Secret's kubeconfig, or from a ClusterProfile.

Pure. It refuses whatever Kueue refuses, and whatever would make this program read a file or run a
program; no refusal quotes the kubeconfig. Sources: Kueue's validateKubeconfig and validateRestConfig
(pkg/controller/admissionchecks/multikueue/multikueuecluster.go), and what client-go 0.36 refuses besides
(tools/clientcmd, transport).
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlsplit

from placement_ac.core.kubeconfig import expiry
from placement_ac.core.kubeconfig.dns import is_dns_name
from placement_ac.core.kubeconfig.parse import (
    Kubeconfig,
    KubeconfigCluster,
    KubeconfigUser,
    parse_kubeconfig,
    validate_shape,
)
from placement_ac.core.kubeconfig.refusals import KubeconfigRefused, NotSupportedHere, Refusal, StricterRule
from placement_ac.core.kubeconfig.source import ClusterAccess, Unusable, UsableByKueueOnly

_ONE_WORD: Final = re.compile(r"[!-~]+")
"""Printable ASCII without blanks: an address, or a token in a header."""
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that the value of a header may not have (RFC 9110)."""
_HEADER_SAFE: Final = "!#$&'*+-.^_`|~"
"""Characters that the name of a header may have beside letters and digits (RFC 9110), but for %."""


def read_kubeconfig(text: bytes) -> ClusterAccess | Unusable:
    """Return the access that the current context of a Secret's kubeconfig gives.

    It is UsableByKueueOnly where Kueue takes it and this program does not. The caller judges its expiry.
    As in clientcmd, no credentials go over plain http: the access has none then.
    """
    try:
        config = parse_kubeconfig(text)
        _raise_first(_objections_to_all(config))
        cluster, user = _current(config)
        _raise_first(_objections_to(user))
        server = replace(_server(cluster), impersonation=impersonation_headers(user))
        access = _with_user(server, user) if server.is_secure else server
    except KubeconfigRefused as refused:
        return Unusable(str(refused))
    unsupported = next(_unsupported(cluster, user), None)
    return UsableByKueueOnly(unsupported.value, access) if unsupported else access


def strict_problem(text: bytes) -> str:
    """Return the first objection by the rules proposed for Kueue, which ours must meet; "": none."""
    access = read_kubeconfig(text)
    if isinstance(access, Unusable):
        return access.why
    return "" if access.is_secure else StricterRule.HTTPS.value


def read_profile(
    cluster: Mapping[str, Any], token: str, certificate: str = "", key: str = ""
) -> ClusterAccess | Unusable:
    """Return the access to the `cluster` of a ClusterProfile's access provider, with a plugin's credentials.

    As in Kueue, the server is always verified, against the authority's data only.
    """
    if not (token or certificate or key):
        return Unusable(NotSupportedHere.NOBODY.value)
    try:
        server = _server(validate_shape(KubeconfigCluster, cluster))
        access = with_credentials(server, token, certificate, key)
    except KubeconfigRefused as refused:
        return Unusable(str(refused))
    return access if server.is_secure else Unusable(StricterRule.HTTPS.value)


def _objections_to_all(config: Kubeconfig) -> Iterator[str]:
    """Yield the objections to any user or cluster, the current one or not."""
    for section in (config.clusters, config.users, config.contexts):
        if len({entry.name for entry in section}) < len(section):
            yield Refusal.SAME_NAME
    for user in (entry.user for entry in config.users):
        decoded(user.client_certificate_data, "client-certificate-data")
        decoded(user.client_key_data, "client-key-data")
        if user.token_file:
            yield Refusal.TOKEN_FILE
    for cluster in (entry.cluster for entry in config.clusters):
        decoded(cluster.certificate_authority_data, "certificate-authority-data")
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
    """Yield the objections of clientcmd to the current user, whether it is used or not."""
    if user.token and _has_password(user):
        yield Refusal.BASIC
    certificates = (user.client_certificate, user.client_certificate_data)
    if all(certificates) or (user.client_key and user.client_key_data):
        yield Refusal.FILE_AND_DATA
    if any(certificates) and not (user.client_key or user.client_key_data):
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


def _raise_first(objections: Iterator[str]) -> None:
    for objection in objections:
        raise KubeconfigRefused(objection)


def _unsupported(cluster: KubeconfigCluster, user: KubeconfigUser) -> Iterator[NotSupportedHere]:
    if "@" in urlsplit(cluster.server).netloc:
        yield NotSupportedHere.USER_INFO
    if user.client_certificate or user.client_key:
        yield NotSupportedHere.FILES
    if not (user.token or user.client_certificate_data) and urlsplit(cluster.server).scheme == "https":
        yield NotSupportedHere.NOBODY


def _server(cluster: KubeconfigCluster) -> ClusterAccess:
    """Return the access to a cluster, without credentials."""
    _raise_first(_server_objections(cluster.server))
    if cluster.proxy_url and not is_proxy(cluster.proxy_url):
        raise KubeconfigRefused(Refusal.PROXY)
    authority = decoded(cluster.certificate_authority_data, "certificate-authority-data")
    if urlsplit(cluster.server).scheme == "http":
        authority = ""
    trusted, lifetime = expiry.authorities_lifetime(authority)
    if authority and not trusted:
        raise KubeconfigRefused(Refusal.AUTHORITY)
    return _with_lifetime(
        ClusterAccess(
            server=plain_server(cluster.server),
            authority=trusted,
            server_name=cluster.tls_server_name,
            proxy=cluster.proxy_url,
        ),
        lifetime,
    )


def _with_user(server: ClusterAccess, user: KubeconfigUser) -> ClusterAccess:
    _raise_first(_objections_to_use(user))
    certificate, key = user.client_certificate_data, user.client_key_data
    if user.client_certificate or user.client_key or not certificate:
        certificate = key = ""  # as clientcmd does: a key without a certificate is ignored
    certificate = decoded(certificate, "client-certificate-data")
    return with_credentials(server, user.token, certificate, decoded(key, "client-key-data"))


def impersonation_headers(user: KubeconfigUser) -> tuple[tuple[str, str], ...]:
    """Return the headers for `as` and what goes with it (client-go: transport/round_trippers.go).

    Raises KubeconfigRefused.
    """
    if not user.impersonates:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise KubeconfigRefused(Refusal.AS_NOBODY)
        return ()
    extra = user.as_user_extra.items()
    headers = (
        ("Impersonate-User", user.impersonates),
        *([("Impersonate-Uid", user.as_uid)] if user.as_uid else []),
        *(("Impersonate-Group", group) for group in user.as_groups),
        *(
            (f"Impersonate-Extra-{quote(key, _HEADER_SAFE)}", value)
            for key, values in extra
            for value in values
        ),
    )
    if any(_CONTROLS.search(value) for _, value in headers):
        raise KubeconfigRefused(Refusal.IMPERSONATION)
    return headers


def with_credentials(server: ClusterAccess, token: str, certificate: str, key: str) -> ClusterAccess:
    """Return the access with a token, and a client certificate and its key as PEM; each may be "".

    Raises KubeconfigRefused.
    """
    token = token.rstrip(" \t")  # as Go's HTTP does
    if token and not _ONE_WORD.fullmatch(token):
        raise KubeconfigRefused(Refusal.TOKEN)
    if bool(certificate) != bool(key):
        raise KubeconfigRefused(Refusal.HALF_A_PAIR)
    lifetimes = [
        expiry.token_lifetime(token),
        expiry.key_pair_lifetime(certificate, key) if certificate else None,
    ]
    return _with_lifetime(replace(server, token=token, certificate=certificate, key=key), *lifetimes)


def _with_lifetime(access: ClusterAccess, *lifetimes: expiry.Lifetime | None) -> ClusterAccess:
    """Return it with the first expiry of its own and of `lifetimes`."""
    known = expiry.Lifetime(access.expires_what, access.issued, access.expires)
    first = expiry.first_to_end(known, *lifetimes)
    return replace(access, expires=first.expires, expires_what=first.what, issued=first.issued)


def decoded(data: str, name: str) -> str:
    """Return the PEM of a field. Raises KubeconfigRefused.

    Like Go, this allows line breaks and nothing else between the characters.
    """
    try:
        pem = base64.b64decode(data.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        raise KubeconfigRefused(Refusal.NOT_BASE64.format(field=name)) from None
    return pem.decode("ascii", "ignore")  # only a comment beside the PEM may be anything else


# -- addresses, as Go's net/url reads them


def _server_objections(server: str) -> Iterator[str]:
    """Yield what is wrong with a server's URL. Go looks for a port before it looks at brackets."""
    url = split_address(server)
    if url is None or url.scheme not in ("http", "https") or not url.hostname:
        yield Refusal.ADDRESS
    elif not is_host(url.hostname):
        yield Refusal.HOST
    elif url.netloc.endswith("]"):
        yield Refusal.IPV6


def is_proxy(address: str) -> bool:
    """Whether it is the URL of a proxy that client-go can use."""
    url = split_address(address)
    return url is not None and url.scheme in ("http", "https", "socks5") and bool(url.netloc)


def plain_server(server: str) -> str:
    """Return it without a user, who may have a password, and like Go without query and fragment."""
    url = urlsplit(server)
    host = url.netloc.rpartition("@")[2]
    return f"{url.scheme}://{host}{url.path}".rstrip("/")


def split_address(address: str) -> SplitResult | None:
    """Return the parts of a URL; None: it is none."""
    try:
        url = urlsplit(address)
        _ = url.port
    except ValueError:
        return None
    return url if _ONE_WORD.fullmatch(address) else None  # urlsplit overlooks blanks and line breaks


def is_host(host: str) -> bool:
    """Whether `host` is a DNS name in lower case, or an IP address."""
    if is_dns_name(host):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host
