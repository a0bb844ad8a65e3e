"""
The access methods of a caller to a cluster, in the order in which they are tried.

Each yields logins, or why it gives no access.

- A context of the caller's kubeconfig that leads to the same API server, or that the access file names.
- OCM's cluster-proxy with the caller's own hub token: `https://USER-SERVER/CLUSTER/…`. It accepts a token of
  the managed cluster, or one of the hub, for which it impersonates the hub's user there (read in
  open-cluster-management-io/cluster-proxy, pkg/userserver and pkg/serviceproxy, of November 2026).
- A kubeconfig or a command that the access file names.
- `--as-hub`: the credentials of Kueue, for a caller who may read their Secret.

The API server's own proxy to a Service does not lead to the user server: it removes the caller's token from
the request (Kubernetes: apiserver/pkg/endpoints/filters/authentication.go).
"""

import base64
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import orjson

from kubectl_placement.access.access_file import AccessEntry, AccessFile, access_path
from kubectl_placement.access.api_servers import mismatch
from kubectl_placement.access.no_access import Closed
from kubectl_placement.access.proxy_server import find_user_server
from kubectl_placement.access.target import ClusterTarget, rights_text
from placement_ac.core.api.errors import LoginFailed, PlacementAcError
from placement_ac.core.api.text import joined
from placement_ac.core.kubeconfig.parse import NO_IMPERSONATION, Impersonation, KubeconfigUser
from placement_ac.core.kubeconfig.read import impersonation_headers, read_profile, split_address
from placement_ac.core.kubeconfig.refusals import KubeconfigRefused
from placement_ac.core.kubeconfig.source import ClusterAccess, Unusable
from placement_ac.kube.client import Client
from placement_ac.kube.clientcmd import context_configs, expanded
from placement_ac.kube.exec_plugin import (
    API_VERSIONS,
    ExecPlugin,
    PluginFailed,
    Show,
    parse_credentials,
    plugin_output,
)
from placement_ac.kube.login import Login, NoCredentials
from placement_ac.kube.proxies import is_loopback

KUBECONFIG: Final = "kubeconfig"
PROXY: Final = "cluster-proxy"
FILE: Final = "access file"
AS_HUB: Final = "--as-hub"


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """The options on access to clusters. `kubeconfig`: whose contexts are tried, as kubectl chooses it."""

    kubeconfig: Path | None = None
    cluster_proxy: str = ""
    """The URL of the user server; "": that of the access file, or the one that the hub names."""
    cluster_proxy_ca: Path | None = None
    as_hub: bool = False
    access_config: Path | None = None
    kueue_namespace: str = "kueue-system"
    impersonation: Impersonation = NO_IMPERSONATION
    """Whom the caller acts as, on the hub and on the cluster."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search for access. `stack`: what has to live as long as the login that is found."""

    hub: Client
    target: ClusterTarget
    options: AccessOptions
    file: AccessFile
    stack: AsyncExitStack = field(repr=False)
    show: Show | None = None
    """Gets what a plugin or a command writes to stderr."""

    @property
    def entry(self) -> AccessEntry | None:
        return self.file.entry_of(self.target.managed_cluster, self.target.name)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A login that may lead to the cluster. `method`: for people."""

    method: str
    login: Login
    kubectl: tuple[str, ...] = ()
    """The flags with which kubectl has the same access; (): none has, see `login.access`."""
    temporary: bool = False
    """Whether the kubeconfig of these flags, their second word, is removed with the search's stack."""


AccessMethod = Callable[[Search], AsyncIterator[Candidate | Closed]]


# -- contexts


async def contexts(search: Search) -> AsyncIterator[Candidate | Closed]:
    """Yield the contexts that lead to the cluster: the one that the file names, else those that match."""
    entry = search.entry
    if entry and entry.context:
        path = Path(entry.kubeconfig) if entry.kubeconfig else search.options.kubeconfig
        yield _with_context(search, path, entry.context)
        return
    try:
        configs = context_configs(search.options.kubeconfig)
    except LoginFailed as error:
        yield Closed(KUBECONFIG, "correct it", str(error))
        return
    if not search.target.servers:
        yield Closed(KUBECONFIG, _name_the_context(search), _no_address(search.target))
        return
    near: dict[str, str] = {}
    for name, config in configs.items():
        problems = [mismatch(config.access, server) for server in search.target.servers]
        if "" in problems:
            yield _with_context(search, search.options.kubeconfig, name)
        elif other := next((problem for problem in problems if problem != "address"), ""):
            near[name] = other
    urls = joined(server.url for server in search.target.servers)
    fix = f"add a context for {urls}, with its certificate-authority-data"
    why = "; ".join(f"context {name} has that address, but {problem}" for name, problem in near.items())
    yield Closed(KUBECONFIG, fix, why or f"none of {len(configs)} contexts leads there")


def _with_context(search: Search, path: Path | None, name: str) -> Candidate | Closed:
    try:
        login = Login(path, name, impersonation=search.options.impersonation, show=search.show)
    except LoginFailed as error:
        return Closed(KUBECONFIG, f"correct context {name}", str(error))
    flags = (*(("--kubeconfig", str(path)) if path else ()), "--context", name)
    return Candidate(f"context {name}", login, (*flags, *search.options.impersonation.flags))


def _with_kubeconfig(search: Search, path: Path, method: str) -> Candidate:
    """Raises LoginFailed."""
    acts_as = search.options.impersonation
    login = Login(path, impersonation=acts_as, show=search.show)
    return Candidate(method, login, ("--kubeconfig", str(path), *acts_as.flags))


def _name_the_context(search: Search) -> str:
    file = access_path(search.options.access_config)
    return f"name your context for it in {file} (clusters: cluster, context)"


def _no_address(target: ClusterTarget) -> str:
    if target.unread:
        how = rights_text(target.unread)
        return f"its API server is unknown: you have no right to read it on the hub ({how})"
    return "its API server is unknown: neither its ManagedCluster nor a ClusterProfile names one"


# -- OCM's cluster-proxy


async def cluster_proxy(search: Search) -> AsyncIterator[Candidate | Closed]:
    """Yield the login through the user server with the hub's token."""
    if not search.target.managed_cluster:
        yield Closed(PROXY, "get the right to read its MultiKueueCluster", "its managed cluster is unknown")
        return
    options, of_file = search.options, search.file.cluster_proxy
    url, authority = options.cluster_proxy, str(options.cluster_proxy_ca or "")
    if not url and of_file:
        url, authority = of_file.url, authority or of_file.certificate_authority
    if not url:
        found = await find_user_server(search.hub)
        if isinstance(found, Closed):
            yield found
            return
        url = found
    parts = split_address(url)
    if parts is None or not parts.hostname or not (parts.scheme == "https" or is_loopback(url)):
        yield Closed(PROXY, "use an https URL", "that of --cluster-proxy is none, and it gets your token")
        return
    try:
        token = await search.hub.login.bearer_token()
        if not token:
            yield Closed(PROXY, "log in to the hub with a token", "the proxy accepts no client certificate")
            return
        pem = _pem(authority) if authority else ""
        access = ClusterAccess(
            f"{url.rstrip('/')}/{search.target.managed_cluster}",
            token=token,
            authority=pem,
            impersonation=search.hub.login.access.impersonation,
        )
        yield Candidate(f"cluster-proxy {url}", Login(access=access))
    except (OSError, ValueError, LoginFailed, NoCredentials) as error:
        why = getattr(error, "strerror", None) or str(error)
        yield Closed(PROXY, "correct its CA, or log in to the hub again", why)


# -- the access file


async def configured(search: Search) -> AsyncIterator[Candidate | Closed]:
    """Yield the login by the kubeconfig or the command that the access file names."""
    entry = search.entry
    if entry is None or (entry.context and not entry.command):
        if entry is None:
            file = access_path(search.options.access_config)
            fix = f"add an entry to {file} (clusters: cluster, and context, kubeconfig or command)"
            yield Closed(FILE, fix, "it has none for this cluster")
        return
    try:
        if entry.command:
            yield await _by_command(search, entry)
        else:
            path = Path(entry.kubeconfig)
            yield _with_kubeconfig(search, path, f"kubeconfig {path}")
    except LoginFailed as error:
        yield Closed(FILE, "correct the entry of this cluster", _without_folder(str(error), entry))
    except (PluginFailed, OSError) as error:
        yield Closed(FILE, "correct the entry of this cluster", str(error))


async def _by_command(search: Search, entry: AccessEntry) -> Candidate | Closed:
    method = f"command {entry.command[0]}"
    server = entry.server or next((server.url for server in search.target.servers), "")
    authority = next((server.authority for server in search.target.servers), "")
    if entry.certificate_authority:
        authority = _pem(entry.certificate_authority)
    plugin = ExecPlugin(entry.command[0], API_VERSIONS[0], entry.command[1:], interactive_mode="IfAvailable")
    cluster = {"server": server} if server else None
    output = await plugin_output(plugin, cluster, search.show)
    if not _is_credential(output):
        return replace(_with_kubeconfig(search, _temporary(search.stack, output), method), temporary=True)
    if not server:
        return Closed(
            FILE, "set server, and certificateAuthority", f"{method} gives credentials, and no address"
        )
    got = parse_credentials(output, plugin)
    described: dict[str, str] = {"server": server, "certificate-authority-data": _base64(authority)}
    access = read_profile(described, got.token, got.client_certificate_data, got.client_key_data)
    if isinstance(access, Unusable):
        return Closed(FILE, "correct the entry of this cluster", access.why)
    try:
        headers = impersonation_headers(search.options.impersonation.over(KubeconfigUser()))
    except KubeconfigRefused as refused:
        return Closed(FILE, "use --as with --as-group and --as-uid", str(refused))
    return Candidate(method, Login(access=replace(access, impersonation=headers)))


def _pem(file: str) -> str:
    """Return a file of certificates; their comments may be of any charset."""
    return expanded(file).read_text("ascii", errors="ignore")


def _is_credential(output: bytes) -> bool:
    try:
        content = orjson.loads(output)
    except orjson.JSONDecodeError:
        return False
    return isinstance(content, dict) and content.get("kind") == "ExecCredential"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _temporary(stack: AsyncExitStack, content: bytes) -> Path:
    """Return a file with a command's kubeconfig, for its owner alone, as long as the login lives."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="placement-ac-")))
    path = folder / "kubeconfig"
    path.touch(0o600)
    path.write_bytes(content)
    return path


def _without_folder(text: str, entry: AccessEntry) -> str:
    """Name the command, not the temporary file of what it printed."""
    return text.partition(": ")[2] if entry.command else text


# -- the credentials of Kueue


async def as_hub(search: Search) -> AsyncIterator[Candidate | Closed]:
    """Yield the login with the credentials that Kueue has, if the caller says so and may read them."""
    if not search.options.as_hub:
        why = "not asked for: it uses Kueue's credentials, if you may read their Secret"
        yield Closed(AS_HUB, "add --as-hub", why)
        return
    if search.target.cluster_object is None:
        yield Closed(AS_HUB, "get the right to read its MultiKueueCluster", "its credentials are unknown")
        return
    # Imported by those who ask for it: it takes as long as all the rest, and a third of the memory.
    from kubectl_placement.access.kueue_login import kueue_login  # noqa: PLC0415

    try:
        described_as, login = await kueue_login(
            search.hub, search.target.cluster_object, search.options.kueue_namespace
        )
    except PlacementAcError as error:
        yield Closed(AS_HUB, "get the right to its Secret", str(error))
        return
    yield Candidate(f"Kueue's credentials ({described_as})", login)


ACCESS_METHODS: Final[tuple[AccessMethod, ...]] = (contexts, cluster_proxy, configured, as_hub)
