"""
Find the API server of a kubeconfig and the credentials for it, by client-go's rules (tools/clientcmd, rest).

- Files: --kubeconfig is one file, which must exist. Else $KUBECONFIG is a list, whose missing and empty files
  count for nothing; else ~/.kube/config. If they have no context, a Pod's account. A file that cannot be read
  is an error.
- The namespace is that of the context; in a Pod with an account, otherwise $POD_NAMESPACE or the account's.
- Several files are merged: the first one that has a cluster, a user or a context of a name, or a
  current-context, wins with all of it. Relative paths are relative to their own file.
- A file is YAML or JSON, in UTF-8 or, with a byte order mark, UTF-16. Unknown fields are ignored; a field of
  another type is an error.
- Over plain http no credentials are sent, only the user to impersonate. Here they are sent to a loopback
  address, such as an embedded hub's: they do not leave the machine.
- A token file is read again and again, and its last content comes before the token. A token or a password
  comes before a plugin. A certificate, a key or a CA is a file or data, not both.
- A server without a scheme is an http one.

- Of `auth-provider`, there is `oidc` alone.

Where client-go would go on to localhost:8080 or ask for a password, this refuses. It does not renew the ID
token of `oidc`: kubectl does, and writes the new refresh token to the file. No error quotes a file.
"""

import base64
import os
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.api.printable import one_line
from placement_ac.core.kubeconfig.expiry import token_lifetime
from placement_ac.core.kubeconfig.parse import (
    NO_IMPERSONATION,
    Impersonation,
    Kubeconfig,
    KubeconfigAuthProvider,
    KubeconfigCluster,
    KubeconfigContext,
    KubeconfigExec,
    KubeconfigUser,
    parse_own_kubeconfig,
)
from placement_ac.core.kubeconfig.read import (
    decoded,
    impersonation_headers,
    is_proxy,
    plain_server,
    split_address,
    with_credentials,
)
from placement_ac.core.kubeconfig.refusals import KubeconfigRefused, Refusal
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.core.safe_yaml import NotYaml
from placement_ac.kube.exec_plugin import API_VERSIONS, ExecPlugin, cluster_info
from placement_ac.kube.proxies import is_loopback
from placement_ac.kube.tls import Digests, certificates_in, digests_of

KUBECONFIG: Final = "KUBECONFIG"
HOME: Final = "~/.kube/config"
POD_HOST: Final = "KUBERNETES_SERVICE_HOST"
POD_PORT: Final = "KUBERNETES_SERVICE_PORT"
POD_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the files of a Pod's account are."""
POD_NAMESPACE: Final = "POD_NAMESPACE"
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")

_E = TypeVar("_E")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """An API server, and where the credentials for it come from. Its repr contains no secret."""

    access: ClusterAccess
    source: str = ""
    """Where it is from, in messages."""
    context: str = ""
    """"": none, as in a Pod."""
    namespace: str = ""
    """That of the context, or of the Pod; "": none."""
    token_file: str = ""
    basic: str = field(default="", repr=False)
    """The header for a user name and a password."""
    plugin: ExecPlugin | None = None
    plugin_cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    """The part of the cluster that the plugin gets."""
    auth_provider: KubeconfigAuthProvider | None = None
    files: Digests = field(default_factory=dict, repr=False)
    """The files that were read, as they were."""


def hub_client_config(
    kubeconfig: Path | None, context: str | None, impersonation: Impersonation = NO_IMPERSONATION
) -> ClientConfig:
    """Return the config that kubectl would use with these flags, or in a Pod. Raises LoginFailed."""
    paths = _paths(kubeconfig)
    if kubeconfig and not _exists(kubeconfig):
        raise LoginFailed(f"cannot log in: there is no kubeconfig {kubeconfig}")
    source = os.pathsep.join(map(str, paths))
    try:
        merged = _merged(paths)
        chosen = context or merged.current_context
        if not chosen and POD_HOST in os.environ and not kubeconfig:
            return _pod_client_config(impersonation)
        if not any(map(_exists, paths)):
            raise LoginFailed(_no_file(source))
        return _client_config(merged, chosen, source, paths, impersonation)
    except (KubeconfigRefused, NotYaml) as refused:
        raise LoginFailed(f"cannot log in with {source}: {refused}") from None


def context_configs(kubeconfig: Path | None) -> dict[str, ClientConfig]:
    """Return the config of each context by its name, the current one first; of files as kubectl chooses.

    Contexts that cannot be used are left out. Raises LoginFailed if a file cannot be read.
    """
    paths = _paths(kubeconfig)
    source = os.pathsep.join(map(str, paths))
    try:
        merged = _merged(paths)
    except (KubeconfigRefused, NotYaml) as refused:
        raise LoginFailed(f"cannot read {source}: {refused}") from None
    configs = {}
    names = [entry.name for entry in merged.contexts]
    for name in sorted(names, key=lambda name: name != merged.current_context):
        with suppress(KubeconfigRefused):
            configs[name] = _client_config(merged, name, source, paths)
    return configs


def read_token(file: str) -> str:
    """Return the token in a file; "" if there is none."""
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""


def id_token(provider: KubeconfigAuthProvider, now: datetime) -> str:
    """Return the ID token of `oidc`. Raises LoginFailed if it has expired."""
    token = provider.config.get("id-token", "").strip()
    expires = token_lifetime(token).expires
    if not token or (expires and expires <= now):
        raise LoginFailed(
            "run a command of kubectl, which renews it: the id-token of auth-provider oidc has expired"
        )
    return token


# -- files


def _paths(kubeconfig: Path | None) -> list[Path]:
    if kubeconfig:
        return [kubeconfig]
    listed = os.environ.get(KUBECONFIG)
    names = listed.split(os.pathsep) if listed else [str(expanded(HOME))]
    return [Path(name) for name in dict.fromkeys(names) if name]


def expanded(path: str) -> Path:
    """Return a path with the home folder in place of `~`; as it is for a user who has none."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  Path's raises then, as in OpenShift's containers


def _no_file(source: str) -> str:
    hint = " (a shell expands no ~ in quotes)" if "~" in source else ""
    return f"cannot log in: set {KUBECONFIG}, or use --kubeconfig: there is no file {source}{hint}"


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):  # it is named when it is read
        return True
    return True


def _load(path: Path, *, alone: bool) -> Kubeconfig:
    """Return a file's content, each path in it resolved. Raises LoginFailed, KubeconfigRefused, NotYaml."""
    try:
        config = parse_own_kubeconfig(_read(path))
        _refuse_doubles(config)
    except (KubeconfigRefused, NotYaml) as refused:
        if alone:
            raise
        raise KubeconfigRefused(f"{path}: {refused}") from None
    folder = path.absolute().parent
    clusters = [
        _with_paths(cluster, "cluster", folder, "certificate_authority") for cluster in config.clusters
    ]
    users = [_with_paths(user, "user", folder, *_USER_PATHS) for user in config.users]
    return config.model_copy(update={"clusters": clusters, "users": users})


_USER_PATHS: Final = ("client_certificate", "client_key", "token_file")


def _with_paths(entry: _E, kind: str, folder: Path, *fields: str) -> _E:
    """Return an entry with absolute paths; a command without a slash is looked for in PATH."""
    part = getattr(entry, kind)
    update: dict[str, Any] = {
        name: str(folder / getattr(part, name)) for name in fields if getattr(part, name)
    }
    plugin = getattr(part, "plugin", None)
    if plugin and os.sep in plugin.command:
        update["plugin"] = plugin.model_copy(update={"command": str(folder / plugin.command)})
    return entry.model_copy(update={kind: part.model_copy(update=update)})  # type: ignore[attr-defined, no-any-return]  # an entry of a kubeconfig


def _refuse_doubles(config: Kubeconfig) -> None:
    """Refuse what clientcmd refuses in any entry, the current one or not."""
    for section in (config.clusters, config.users, config.contexts):
        if len({entry.name for entry in section}) < len(section):
            raise KubeconfigRefused(Refusal.SAME_NAME)
    for cluster in config.clusters:
        decoded(cluster.cluster.certificate_authority_data, "certificate-authority-data")
    for user in config.users:
        decoded(user.user.client_certificate_data, "client-certificate-data")
        decoded(user.user.client_key_data, "client-key-data")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KubeconfigRefused(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise KubeconfigRefused("correct the name of a file: it has a null character") from None


def _merged(paths: Collection[Path]) -> Kubeconfig:
    """Return the content of those files that exist. Raises KubeconfigRefused, NotYaml."""
    return _merge([_load(path, alone=len(paths) == 1) for path in paths if _exists(path)])


def _merge(configs: Collection[Kubeconfig]) -> Kubeconfig:
    return Kubeconfig().model_copy(
        update={
            "clusters": _first_of_each(entry for config in configs for entry in config.clusters),
            "users": _first_of_each(entry for config in configs for entry in config.users),
            "contexts": _first_of_each(entry for config in configs for entry in config.contexts),
            "current_context": next(filter(None, (config.current_context for config in configs)), ""),
        }
    )


def _first_of_each(entries: Iterable[_E]) -> list[_E]:
    by_name: dict[str, _E] = {}
    for entry in entries:
        by_name.setdefault(entry.name, entry)  # type: ignore[attr-defined]  # an entry of a kubeconfig
    return list(by_name.values())


# -- what they say


def _client_config(
    config: Kubeconfig,
    context: str,
    source: str,
    paths: list[Path],
    impersonation: Impersonation = NO_IMPERSONATION,
) -> ClientConfig:
    cluster, user = _current(config, context)
    user = impersonation.over(user)
    access = _server(cluster, user)
    of_context = next(entry.context.namespace for entry in config.contexts if entry.name == context)
    namespace = of_context or _pod_namespace()
    basic = _basic(*_user_of(cluster.server))
    client_config = ClientConfig(access, source, context, namespace, basic=basic)
    if access.is_secure:
        if not _has_credentials(user):
            raise KubeconfigRefused(
                "give the user a token, a client certificate or an exec plugin: there are no credentials"
            )
        client_config = replace(client_config, access=_with_authority(access, cluster))
    if access.is_secure or is_loopback(access.server):
        client_config = _with_user(client_config, user)
        if user.plugin and user.plugin.provide_cluster_info:
            shown = cluster.model_dump(by_alias=True, exclude_none=True)
            shown["certificate-authority-data"] = _base64(client_config.access.authority)
            client_config = replace(client_config, plugin_cluster=cluster_info(shown))
    files = [*map(str, paths), cluster.certificate_authority, user.client_certificate, user.client_key]
    return replace(client_config, files=digests_of(filter(None, files)))


def _current(config: Kubeconfig, name: str) -> tuple[KubeconfigCluster, KubeconfigUser]:
    contexts: dict[str, KubeconfigContext] = {entry.name: entry.context for entry in config.contexts}
    clusters = {entry.name: entry.cluster for entry in config.clusters}
    users = {entry.name: entry.user for entry in config.users}
    if not name:
        known = f": {one_line(', '.join(contexts))}" if contexts else ""
        raise KubeconfigRefused(f"set current-context, or use --context: no context is chosen{known}")
    if name not in contexts:
        raise KubeconfigRefused(f"use another context: there is none with the name {one_line(name)}")
    context = contexts[name]
    if context.cluster not in clusters:
        raise KubeconfigRefused(
            f"set the cluster of context {one_line(name)}: there is none with the name {context.cluster!r}"
        )
    if context.user and context.user not in users:
        raise KubeconfigRefused(
            f"set the user of context {one_line(name)}: there is none with the name {context.user!r}"
        )
    return clusters[context.cluster], users.get(context.user, KubeconfigUser())


def _server(cluster: KubeconfigCluster, user: KubeconfigUser) -> ClusterAccess:
    """Return the server, without credentials."""
    if cluster.proxy_url and not is_proxy(cluster.proxy_url):
        raise KubeconfigRefused(Refusal.PROXY)
    server = cluster.server if _SCHEME.match(cluster.server) else f"http://{cluster.server}"
    url = split_address(server)
    if url is None or url.scheme not in ("http", "https") or not url.hostname:
        raise KubeconfigRefused(Refusal.ADDRESS)
    return ClusterAccess(
        plain_server(server),
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
        impersonation=impersonation_headers(user),
        insecure=cluster.insecure_skip_tls_verify,
    )


def _with_authority(access: ClusterAccess, cluster: KubeconfigCluster) -> ClusterAccess:
    file, data = cluster.certificate_authority, cluster.certificate_authority_data
    if file and data:
        raise KubeconfigRefused("keep one of them: certificate-authority is given both in a file and as data")
    if (file or data) and access.insecure:
        raise KubeconfigRefused("keep one of them: certificate-authority, or insecure-skip-tls-verify")
    pem = _text(file) if file else decoded(data, "certificate-authority-data")
    trusted = certificates_in(pem)
    if (file or data) and not trusted:
        name = file or "certificate-authority-data"
        raise KubeconfigRefused(f"put a certificate into {name}: it has no certificate that can be read")
    return replace(access, authority=trusted)


def _with_user(config: ClientConfig, user: KubeconfigUser) -> ClientConfig:
    for objection, is_so in (
        (
            "keep one of them: a token, or username and password",
            (user.token or user.token_file) and (user.username or user.password),
        ),
        (
            Refusal.FILE_AND_DATA,
            (user.client_certificate and user.client_certificate_data)
            or (_has_certificate(user) and user.client_key and user.client_key_data),
        ),
    ):
        if is_so:
            raise KubeconfigRefused(objection)
    certificate = key = ""
    if _has_certificate(user):
        certificate = _part(user.client_certificate, user.client_certificate_data, "client-certificate-data")
        key = _part(user.client_key, user.client_key_data, "client-key-data")
    if user.token_file and not user.token and not read_token(user.token_file):
        raise KubeconfigRefused(f"put a token into {user.token_file}: it has none, or cannot be read")
    access = with_credentials(config.access, user.token, certificate, key)
    return replace(
        config,
        access=access,
        token_file=user.token_file,
        basic=_basic(user.username, user.password) or config.basic,
        plugin=_plugin(user),
        auth_provider=user.auth_provider,
    )


def _has_credentials(user: KubeconfigUser) -> bool:
    others = (user.token, user.token_file, user.username, user.password, user.plugin, user.auth_provider)
    return any(others) or _has_certificate(user)


def _has_certificate(user: KubeconfigUser) -> bool:
    return bool(user.client_certificate or user.client_certificate_data)


def _user_of(server: str) -> tuple[str, str]:
    """Return the user and the password in a URL."""
    url = split_address(server)
    return (unquote(url.username or ""), unquote(url.password or "")) if url else ("", "")


def _basic(username: str, password: str) -> str:
    return f"Basic {_base64(f'{username}:{password}')}" if username or password else ""


def _plugin(user: KubeconfigUser) -> ExecPlugin | None:
    if user.auth_provider and (user.plugin or user.auth_provider.name != "oidc"):
        raise KubeconfigRefused("replace auth-provider by exec: kubectl knows it no more, or there are both")
    plugin = user.plugin
    if plugin is None:
        return None
    for problem, is_so in _plugin_objections(plugin):
        if is_so:
            raise KubeconfigRefused(problem)
    return ExecPlugin(
        plugin.command,
        plugin.api_version,
        tuple(plugin.args),
        {variable.name: variable.value for variable in plugin.env},
        plugin.interactive_mode or "IfAvailable",  # type: ignore[arg-type]  # it is one of them, see above
        plugin.install_hint,
    )


def _plugin_objections(plugin: KubeconfigExec) -> Iterable[tuple[str, bool]]:
    modes = ("Never", "IfAvailable", "Always")
    needs_mode = plugin.api_version == API_VERSIONS[0]
    yield "set the command of exec: it is missing", not plugin.command
    yield (
        f"set the apiVersion of exec to {API_VERSIONS[0]}: it has another",
        plugin.api_version not in API_VERSIONS,
    )
    yield "set the name of every variable of exec: one has none", not all(v.name for v in plugin.env)
    yield (
        f"set the interactiveMode of exec to {', '.join(modes[:-1])} or {modes[-1]}: it is none of them",
        plugin.interactive_mode not in (modes if needs_mode else ("", *modes)),
    )


def _part(file: str, data: str, name: str) -> str:
    return _text(file) if file else decoded(data, name)


def _text(file: str) -> str:
    return _read(Path(file)).decode("ascii", "ignore")  # only a comment beside the PEM may be anything else


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# -- in a Pod


def _pod_namespace() -> str:
    """Return the namespace that kubectl uses in a Pod if no context names one; "": not in one."""
    if not (os.environ.get(POD_HOST) and os.environ.get(POD_PORT) and (POD_ACCOUNT / "token").is_file()):
        return ""
    return os.environ.get(POD_NAMESPACE) or read_token(str(POD_ACCOUNT / "namespace"))


def _pod_client_config(impersonation: Impersonation) -> ClientConfig:
    """Return the config of a Pod's account. Raises LoginFailed."""
    source = "the Pod's account"
    token, authority = str(POD_ACCOUNT / "token"), str(POD_ACCOUNT / "ca.crt")
    host, port = os.environ[POD_HOST], os.environ.get(POD_PORT, "")
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    if not read_token(token):
        raise LoginFailed(f"cannot log in with {source}: {token} has no token, or cannot be read")
    cluster = KubeconfigCluster().model_copy(update={"certificate_authority": authority})
    try:
        headers = impersonation_headers(impersonation.over(KubeconfigUser()))
        access = _with_authority(ClusterAccess(server, impersonation=headers), cluster)
    except KubeconfigRefused as refused:
        raise LoginFailed(f"cannot log in with {source}: {refused}") from None
    files = digests_of((token, authority))
    return ClientConfig(access, source, namespace=_pod_namespace(), token_file=token, files=files)
