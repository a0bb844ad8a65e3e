"""
Read what it takes to reach a worker cluster out of a Secret's kubeconfig, or out of a ClusterProfile.

Pure. What is refused is what Kueue refuses, and all that would make this program read a file or
run a program; no refusal quotes what it was made for.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from placement_ac.snapshot import Unusable

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH: Final = 50
_DNS_1123: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TOKEN: Final = re.compile(r"[!-~]+")
"""What may stand in a header as one word."""
_WORDS: Final = {"model_type": "it should be a map", "tuple_type": "it should be a list"}


@dataclass(frozen=True, slots=True)
class Access:
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


class _Unfit(Exception):
    """What cannot be used, in words for a person."""


class _Shape(BaseModel):
    """A part of a kubeconfig; `null` is as good as nothing, as in Go."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=lambda name: name.replace("_", "-"),
        populate_by_name=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


class _Cluster(_Shape):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _User(_Shape):
    token: str = ""
    token_file: str = Field(default="", alias="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    plugin: Any = Field(default=None, alias="exec")
    auth_provider: Any = None
    stands_in_for: str = Field(default="", alias="as")


class _Context(_Shape):
    cluster: str = ""
    user: str = ""


class _NamedCluster(_Shape):
    name: str = ""
    cluster: _Cluster = _Cluster()


class _NamedUser(_Shape):
    name: str = ""
    user: _User = _User()


class _NamedContext(_Shape):
    name: str = ""
    context: _Context = _Context()


class _Kubeconfig(_Shape):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = ""


def of_kubeconfig(text: bytes) -> Access | Unusable:
    """Return the way in that the current context of a Secret's kubeconfig tells."""
    try:
        config = _parsed(text)
        _raise_first(_objections_to_all(config))
        cluster, user = _current(config)
        _raise_first(_objections_to(user))
        certificate = _decoded(user.client_certificate_data, "client-certificate-data")
        key = _decoded(user.client_key_data, "client-key-data")
        return _with_credentials(_door(cluster), user.token, certificate, key)
    except _Unfit as unfit:
        return Unusable(str(unfit))


def of_profile(
    cluster: Mapping[str, Any], token: str, certificate: str = "", key: str = ""
) -> Access | Unusable:
    """Return the way in to the `cluster` of a ClusterProfile's access provider, with a plugin's credentials.

    As in Kueue, the server is always verified, against the authority's data only.
    """
    try:
        return _with_credentials(_door(_shaped(_Cluster, cluster)), token, certificate, key)
    except _Unfit as unfit:
        return Unusable(str(unfit))


def _parsed(text: bytes) -> _Kubeconfig:
    try:
        _refuse_bombs(text)
        content = yaml.load(text, _LOADER)  # noqa: S506  a safe loader, the C one where there is one
    except (yaml.YAMLError, ValueError, OverflowError):  # PyYAML lets through what Python says of a date
        raise _Unfit("is not YAML") from None
    return _shaped(_Kubeconfig, content)


def _refuse_bombs(text: bytes) -> None:
    """Deep nesting ends the process in the C loader; aliases multiply."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH:
            raise _Unfit("is nested too deeply for a kubeconfig")
        if isinstance(event, yaml.AliasEvent):
            raise _Unfit("has YAML aliases: write it without")


_S = TypeVar("_S", bound=_Shape)


def _shaped(shape: type[_S], content: Any) -> _S:
    try:
        return shape.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        told = _WORDS.get(first["type"], first["msg"])
        raise _Unfit(f"has a {where} that is unusable: {told}" if where else f"is unusable: {told}") from None


def _objections_to_all(config: _Kubeconfig) -> Iterator[str]:
    """Yield what Kueue allows in no user and in no cluster, be it the current one or not."""
    if any(entry.user.token_file for entry in config.users):
        yield "has a tokenFile: only a token is allowed"
    for cluster in (entry.cluster for entry in config.clusters):
        if cluster.insecure_skip_tls_verify:
            yield "has insecure-skip-tls-verify: the server must be verified"
        if cluster.certificate_authority:
            yield "has a certificate-authority file: only certificate-authority-data is allowed"
        if not cluster.server:
            yield "has a cluster without a server"


def _current(config: _Kubeconfig) -> tuple[_Cluster, _User]:
    contexts = {entry.name: entry.context for entry in config.contexts}
    clusters = {entry.name: entry.cluster for entry in config.clusters}
    users = {entry.name: entry.user for entry in config.users}
    context = contexts.get(config.current_context)
    if context is None:
        raise _Unfit("has no current context")
    if context.cluster not in clusters or context.user not in users:
        raise _Unfit("has a current context without its cluster or its user")
    return clusters[context.cluster], users[context.user]


def _objections_to(user: _User) -> Iterator[str]:
    if user.username or user.password:
        yield "has a user name and password: only a token or a client certificate is allowed"
    if user.plugin:
        yield "has an exec plugin: no program is run for a Secret"
    if user.auth_provider:
        yield "has an auth-provider: no program is run for a Secret"
    if user.client_certificate or user.client_key:
        yield "has a client certificate or key in a file: only their data is allowed"
    if user.stands_in_for:
        yield "stands in for another user (as): that is not supported"


def _raise_first(objections: Iterator[str]) -> None:
    for objection in objections:
        raise _Unfit(objection)


def _door(cluster: _Cluster) -> Access:
    if not _is_endpoint(cluster.server):
        raise _Unfit("has a server that is no http or https address of a host")
    if cluster.proxy_url and not cluster.proxy_url.startswith(("http://", "https://")):
        raise _Unfit("has a proxy-url that is not http or https")
    return Access(
        server=cluster.server.rstrip("/"),
        authority=_decoded(cluster.certificate_authority_data, "certificate-authority-data"),
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
    )


def _is_endpoint(server: str) -> bool:
    """Return whether it is a URL of an IP address or a DNS-1123 name, without a user or a query."""
    try:
        url = urlsplit(server)
        host, _ = url.hostname or "", url.port
    except ValueError:
        return False
    if url.scheme not in ("http", "https") or url.query or url.fragment or "@" in url.netloc:
        return False
    try:
        ip_address(host)
    except ValueError:
        return _DNS_1123.fullmatch(host) is not None
    return True


def _with_credentials(door: Access, token: str, certificate: str, key: str) -> Access:
    if token and not _TOKEN.fullmatch(token):
        raise _Unfit("has a token with characters that no token has")
    if bool(certificate) != bool(key):
        raise _Unfit("has a client certificate without its key, or a key without its certificate")
    if not token and not certificate:
        raise _Unfit("has neither a token nor a client certificate")
    return replace(door, token=token, certificate=certificate, key=key)


def _decoded(data: str, name: str) -> str:
    try:
        pem = base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise _Unfit(f"has {name} that is not base64") from None
    return pem.decode("ascii", "ignore")  # only a comment beside the PEM may be anything else
