"""
Log in to a worker cluster with the credentials that Kueue uses: a Secret's kubeconfig, or a ClusterProfile.

Errors are in words for an admin, and quote no content of a Secret, a plugin or a worker.
"""

import asyncio
import base64
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import aiohttp
from cachetools import TLRUCache, TTLCache

from placement_ac.core.api.constants import KUBECONFIG_KEY, Resource
from placement_ac.core.api.errors import ApiError, LoginFailed, NotFound, PlacementAcError, TooLarge
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.shapes import validate
from placement_ac.core.kubeconfig.dns import is_dns_name
from placement_ac.core.kubeconfig.read import read_kubeconfig, read_profile
from placement_ac.core.kubeconfig.servers import endpoints, server_problem
from placement_ac.core.kubeconfig.source import ClusterAccess, CredentialSource, Unusable
from placement_ac.kube.budget import AnswerBudget, BudgetedReader, ReadSlots
from placement_ac.kube.client import Client, Object
from placement_ac.kube.exec_plugin import ExecCredentials
from placement_ac.kube.login import Login
from placement_ac.workers import exec_plugins
from placement_ac.workers.exec_plugins import AccessProviders, ExecConfig, OfferedProviders

T = TypeVar("T")
Version = tuple[str, str]
"""uid and resourceVersion of a Secret or ClusterProfile."""

CREDENTIALS_SECONDS: Final = 300.0
"""How long a plugin's credentials are used at most, if they do not expire earlier."""
EXPIRY_SECONDS: Final = 30.0
"""How long before their expiry credentials are no longer used."""
MAX_CACHED: Final = 1000
MAX_PAGE_BYTES: Final = 2_000_000
"""The most that is read of a page of a worker's list; the largest object has 1.5 MB (etcd)."""
MAX_ANSWER_BYTES: Final = 200_000
"""The most that is read of any other answer: several are waited for at once."""
MAX_TOTAL_BYTES: Final = 10_000_000
"""The most that is read for one question: 4,000 LocalQueues of a usual size, or 10,000 namespaces."""
MAX_COPIES_BYTES: Final = 100_000_000
"""The same for a list of copies, of which little is kept: 15,000 of a usual size."""
MAX_PAGES: Final = 200
LIST_FRACTION: Final = 4 / 5
"""The part of the timeout that a list may take."""
LARGE_ANSWERS: Final = 3
"""How many large answers are read at once, of all workers: parsed, an answer may take 40 times its size."""
TOO_LARGE_SECONDS: Final = 300.0
"""How long a worker is not asked again after an answer beyond its budget."""
FORBIDDEN: Final = 403


class WorkerError(PlacementAcError):
    """Why a worker cannot be queried."""


class HubForbidden(WorkerError):
    """The hub does not let us read the Secret or ClusterProfile."""


class WorkerTimeout(WorkerError):
    """There was no answer in time."""


@dataclass(frozen=True, slots=True)
class CredentialObject:
    """A Secret or ClusterProfile as the hub has it. `described_as`: its name in messages."""

    content: Object = field(repr=False)
    kind: str
    described_as: str

    @property
    def version(self) -> Version:
        metadata = self.content.get("metadata") or {}
        return str(metadata.get("uid")), str(metadata.get("resourceVersion"))


@dataclass(frozen=True, slots=True)
class WorkerLogin:
    """The login to one worker. `described_as`: the Secret or ClusterProfile, in messages."""

    login: Login
    version: Version
    described_as: str


class WorkerConnector:
    """Logs in to workers. Every method raises WorkerError; WorkerTimeout after `timeout` seconds.

    `client`, `secret_resource` and `profile_resource` are the hub's; `profile_resource` None: it has no
    ClusterProfiles. `providers`: the plugins that may be run for them. A `deadline` is a time of the event
    loop.
    """

    def __init__(
        self,
        client: Client,
        secret_resource: Resource,
        kueue_namespace: str,
        *,
        timeout: float = 5.0,
        providers: AccessProviders | None = None,
        profile_resource: Resource | None = None,
    ) -> None:
        self.hub = client
        self._secrets = secret_resource
        self._profiles = profile_resource
        self.kueue_namespace = kueue_namespace
        self.timeout = timeout
        self._providers = providers
        # Of its own: the loop's threads may all wait for a name server.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="workers")
        self._slots = ReadSlots(LARGE_ANSWERS)
        self._credentials: TLRUCache[Version, ExecCredentials] = TLRUCache(MAX_CACHED, _valid_until)
        self._too_large: TTLCache[Version, str] = TTLCache(MAX_CACHED, TOO_LARGE_SECONDS)
        """Credentials of workers that are not asked for a while, and why."""

    def close(self) -> None:
        """Let its threads end when their work is done."""
        self._threads.shutdown(wait=False)

    def deadline(self) -> float:
        """Return the deadline of a query that begins now."""
        return asyncio.get_running_loop().time() + self.timeout

    async def within(self, deadline: float, work: Awaitable[T], late: str) -> T:
        """Return the result of `work`, or raise WorkerTimeout, whose message begins with `late`."""
        try:
            async with asyncio.timeout_at(deadline):
                return await work
        except TimeoutError:
            raise WorkerTimeout(f"{late} within {self.timeout:g} s") from None

    async def get_credential(self, source: CredentialSource, deadline: float) -> CredentialObject:
        """Return the object that `source` names, as it is on the hub now."""
        described_as = f"{source.kind} {self.kueue_namespace}/{source.name}"
        resource = self._secrets if source.kind == "Secret" else self._profiles
        if resource is None:
            raise WorkerError(f"{described_as} cannot be read: the hub has no ClusterProfiles")
        if source.kind == "ClusterProfile" and self._providers is None:
            raise WorkerError(f"{described_as} needs an access provider, and none is configured")
        if not is_dns_name(source.name):
            field = "kubeConfig.location" if source.kind == "Secret" else "clusterProfileRef.name"
            raise WorkerError(f"correct its {field}: {source.name!r} is not the name of a {source.kind}")
        late = f"{described_as}: the hub did not give it"
        try:
            got = await self.within(deadline, self.hub.get(resource, source.name, self.kueue_namespace), late)
        except NotFound:
            raise WorkerError(f"{described_as} does not exist") from None
        except ApiError as error:
            refusal = HubForbidden if error.status == FORBIDDEN else WorkerError
            raise refusal(f"{described_as} cannot be read: {error.message}") from None
        return CredentialObject(got, source.kind, described_as)

    async def login(self, credential: CredentialObject, deadline: float) -> WorkerLogin:
        """Return the login with `credential`; for a ClusterProfile it may run a plugin."""
        if problem := self._too_large.get(credential.version):
            raise WorkerError(problem)
        by_kind = self._login_by_secret if credential.kind == "Secret" else self._login_by_profile
        return await by_kind(credential, deadline)

    def client(self, login: WorkerLogin, total_bytes: int = MAX_TOTAL_BYTES) -> Client:
        """Return a client for one question to the worker, which the caller enters."""
        seconds = self.timeout * LIST_FRACTION
        budget = AnswerBudget(MAX_PAGE_BYTES, MAX_ANSWER_BYTES, total_bytes, MAX_PAGES, seconds)
        return Client(login.login, timeout=2 * self.timeout, reader=BudgetedReader(budget, self._slots))

    def problem(self, error: ApiError, login: WorkerLogin, permission: str) -> WorkerError:
        """Return an error of the worker in our own words, and take in what it means for the next query.

        `permission`: what the worker was asked to allow.
        """
        text = worker_error_text(error, login.described_as, permission)
        if error.status == 401:
            self._credentials.pop(login.version, None)
        if isinstance(error, TooLarge):
            self._too_large[login.version] = text
        return WorkerError(text)

    async def _login_by_secret(self, secret: CredentialObject, deadline: float) -> WorkerLogin:
        try:
            encoded = (secret.content.get("data") or {}).get(KUBECONFIG_KEY)
            text = base64.b64decode(encoded or "", validate=True)
        except ValueError:
            text = b""
        if not text:
            raise WorkerError(f"{secret.described_as} has no key {KUBECONFIG_KEY!r} with a kubeconfig in it")
        return await self._worker_login(lambda: read_kubeconfig(text), secret, deadline)

    async def _login_by_profile(self, profile: CredentialObject, deadline: float) -> WorkerLogin:
        offers, problem = validate(OfferedProviders, profile.content, "status")
        if offers is None:
            raise WorkerError(f"{profile.described_as} cannot be read: {problem}")
        chosen = self._providers and self._providers.choose(offers)
        if not chosen:
            raise WorkerError(f"{profile.described_as} has none of the access providers that are configured")
        provider, offer = chosen
        addresses = endpoints(offer.cluster)
        if problem := server_problem(provider.name, addresses, provider.allowed_server_suffixes):
            raise WorkerError(f"in {profile.described_as}, {problem}")
        got = await self._run_plugin(provider.exec_config, offer.cluster, profile.version, deadline)
        return await self._worker_login(
            lambda: read_profile(offer.cluster, got.token, got.client_certificate_data, got.client_key_data),
            replace(profile, described_as=f"{profile.described_as} with provider {provider.name}"),
            deadline,
        )

    async def _run_plugin(
        self, command: ExecConfig, cluster: Mapping[str, Any], version: Version, deadline: float
    ) -> ExecCredentials:
        known = self._credentials.get(version)
        if known:
            return known
        late = f"plugin {command.command} gave no credentials"
        got = await self.within(deadline, exec_plugins.run(command, cluster), late)
        if isinstance(got, Unusable):
            raise WorkerError(got.why)
        self._credentials[version] = got
        return got

    async def _worker_login(
        self, access: Callable[[], ClusterAccess | Unusable], credential: CredentialObject, deadline: float
    ) -> WorkerLogin:
        # A megabyte of YAML and a store of certificates would block the loop.
        opening = asyncio.get_running_loop().run_in_executor(self._threads, _new_login, access)
        login = await self.within(deadline, opening, f"{credential.described_as} was not read")
        if isinstance(login, Unusable):
            raise WorkerError(f"in {credential.described_as}, {login.why}")
        return WorkerLogin(login, credential.version, credential.described_as)


def source_of(cluster: KueueObject) -> CredentialSource:
    """Return what a MultiKueueCluster names as its credentials. Raises WorkerError."""
    kind, name = cluster.source
    if kind == "Secret":
        return CredentialSource("Secret", name)
    if kind == "ClusterProfile":
        return CredentialSource("ClusterProfile", name)
    if kind:
        raise WorkerError("its kubeconfig is a file in Kueue's container, out of reach from here")
    raise WorkerError("it names neither a Secret nor a ClusterProfile")


def _new_login(read_access: Callable[[], ClusterAccess | Unusable]) -> Login | Unusable:
    access = read_access()
    try:
        return access if isinstance(access, Unusable) else Login(access=access)
    except LoginFailed as error:
        return Unusable(str(error))


def _valid_until(_: Version, credentials: ExecCredentials, now: float) -> float:
    if credentials.expiration_timestamp is None:
        return now + CREDENTIALS_SECONDS
    left = (credentials.expiration_timestamp - datetime.now(UTC)).total_seconds() - EXPIRY_SECONDS
    return now + min(left, CREDENTIALS_SECONDS)


def worker_error_text(error: ApiError, account: str, permission: str) -> str:
    """Describe an error of a worker in our own words; `permission`: what the worker was asked to allow."""
    if isinstance(error, TooLarge):
        return f"the worker of {account} sends {error.message}: it is asked again after 5 min"
    if error.status == 401:
        return f"the worker does not accept the credentials of {account}"
    if error.status == 403:
        return f"the worker does not let the account of {account} {permission}"
    if error.status >= 400:
        return f"the worker answered with HTTP {error.status}"
    if error.status:
        return "what the worker answered is no JSON object"
    return f"the worker of {account} cannot be reached: {_connection_problem(error.__context__)}"


def _connection_problem(cause: BaseException | None) -> str:
    """Describe why there was no answer by the type of error only: its text may quote the address."""
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        problem = getattr(cause.certificate_error, "verify_message", "") or "unverified"
        return f"its certificate is not trusted ({problem})"
    if isinstance(cause, (aiohttp.ClientConnectorSSLError, ssl.SSLError)):
        return "no TLS with it"
    if isinstance(cause, aiohttp.ClientConnectorDNSError):
        return "its host name is not known"
    if isinstance(cause, aiohttp.ClientProxyConnectionError):
        return "its proxy cannot be reached"
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return f"its proxy answered with HTTP {cause.status}"
    if isinstance(cause, aiohttp.ClientConnectorError):
        return os.strerror(cause.os_error.errno) if cause.os_error.errno else "no connection"
    return type(cause).__name__ if cause else "no answer"
