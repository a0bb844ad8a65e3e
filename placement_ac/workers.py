"""
Ask worker clusters which copies of this hub's Workloads they hold.

A worker is entered as Kueue enters it: by the Secret or the ClusterProfile of its MultiKueueCluster.
Nothing is kept open. Whatever goes wrong is an answer, in words for an admin, and neither it nor a log
line quotes what came from a Secret, a plugin or a worker; who does not answer keeps nobody else waiting.
"""

import asyncio
import base64
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import aiohttp
import structlog
from cachetools import TLRUCache, TTLCache

from placement_ac import model, providers
from placement_ac.access import Access, of_kubeconfig, of_profile
from placement_ac.errors import ApiError, Gone, LoginFailed, NotFound, PlacementAcError
from placement_ac.kube import PAGE, Client, Object
from placement_ac.login import Login
from placement_ac.model import KueueObject
from placement_ac.names import KUBECONFIG_KEY, LABEL_ORIGIN, WORKLOAD, Resource
from placement_ac.providers import Command, Credentials, Offers, Providers
from placement_ac.snapshot import Asked, Unusable
from placement_ac.wire import read

log = structlog.get_logger(__name__)

T = TypeVar("T")
Id = tuple[str, str]
_Version = tuple[str, str]
"""uid and resourceVersion of the Secret or ClusterProfile."""

CREDENTIALS_SECONDS: Final = 300.0
"""How long a plugin's credentials are used at most, if they do not expire before."""
EXPIRY_SECONDS: Final = 30.0
"""How long before their end credentials are no longer used."""
DISCOVERY_SECONDS: Final = 600.0
"""How long the version in which a worker serves Workloads is believed."""
CACHED: Final = 1000
SLOW_AT_ONCE: Final = 4
"""How many of those that did not answer last time are asked at once, beside the others."""


class CannotAsk(PlacementAcError):
    """Why a worker cannot be asked."""


class TooSlow(CannotAsk):
    """It might answer, had one the time."""


@dataclass(frozen=True, slots=True)
class _Way:
    """How one worker is entered. `told` is what an admin has to look at."""

    login: Login
    version: _Version
    told: str


class Workers:
    """Asks workers, each within `timeout` seconds and `parallel` at once.

    `client`, `secret_resource` and `profile_resource` are the hub's; `profile_resource` is None when it
    has no ClusterProfiles. `providers` are the plugins that may be run for ClusterProfiles.
    """

    def __init__(
        self,
        client: Client,
        secret_resource: Resource,
        kueue_namespace: str,
        *,
        timeout: float = 5.0,
        parallel: int = 8,
        providers: Providers | None = None,
        profile_resource: Resource | None = None,
    ) -> None:
        self._hub = client
        self._secrets = secret_resource
        self._profiles = profile_resource
        self._namespace = kueue_namespace
        self._timeout = timeout
        self._providers = providers
        self._lane = asyncio.Semaphore(parallel)
        self._slow_lane = asyncio.Semaphore(SLOW_AT_ONCE)
        self._slow: set[str] = set()
        # Its own: in the loop's one stand those who wait for a name server.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="workers")
        self._served: TTLCache[_Version, Resource] = TTLCache(CACHED, DISCOVERY_SECONDS)
        self._credentials: TLRUCache[_Version, Credentials] = TLRUCache(CACHED, _used_until)

    async def ask(self, cluster: KueueObject) -> Asked:
        """Return what the worker of a MultiKueueCluster said. Raises nothing but CancelledError."""
        name = cluster.meta.name
        async with self._slow_lane if name in self._slow else self._lane:
            try:
                answer = Asked(await self._copies(cluster))
                self._slow.discard(name)
            except CannotAsk as why:
                (self._slow.add if isinstance(why, TooSlow) else self._slow.discard)(name)
                answer = Asked(problem=f"MultiKueueCluster {name}: {why}")
            except Exception as error:  # a worker may answer anything, and must not stop the others by it
                log.error("asking a worker failed", name=name, error=type(error).__name__)  # noqa: TRY400
                answer = Asked(problem=f"MultiKueueCluster {name}: unexpected {type(error).__name__}")
        return answer

    async def _copies(self, cluster: KueueObject) -> Mapping[Id, bool]:
        deadline = asyncio.get_running_loop().time() + self._timeout
        kind, name = source_of(cluster.spec)
        way = await (self._by_secret if kind == "Secret" else self._by_profile)(name, deadline)
        return await self._within(deadline, self._list(way), "the worker did not answer")

    async def _within(self, deadline: float, work: Awaitable[T], late: str) -> T:
        try:
            async with asyncio.timeout_at(deadline):
                return await work
        except TimeoutError:
            raise TooSlow(f"{late} within {self._timeout:g} s") from None

    # -- the way in

    async def _by_secret(self, name: str, deadline: float) -> _Way:
        told = f"Secret {self._namespace}/{name}"
        secret = await self._from_hub(self._secrets, name, told, deadline)
        try:
            encoded = (secret.get("data") or {}).get(KUBECONFIG_KEY)
            text = base64.b64decode(encoded or "", validate=True)
        except ValueError:
            text = b""
        if not text:
            raise CannotAsk(f"{told} has no key {KUBECONFIG_KEY!r} with a kubeconfig in it")
        return await self._way(lambda: of_kubeconfig(text), secret, told, deadline)

    async def _by_profile(self, name: str, deadline: float) -> _Way:
        told = f"ClusterProfile {self._namespace}/{name}"
        if self._profiles is None:
            raise CannotAsk(f"{told} cannot be read: the hub has no ClusterProfiles")
        if self._providers is None:
            raise CannotAsk(f"{told} needs an access provider, and none is configured")
        profile = await self._from_hub(self._profiles, name, told, deadline)
        offers, problem = read(Offers, profile, "status")
        if offers is None:
            raise CannotAsk(f"{told} cannot be read: {problem}")
        chosen = self._providers.choose(offers)
        if chosen is None:
            raise CannotAsk(f"{told} has none of the access providers that are configured")
        provider, offer = chosen
        got = await self._given(provider.exec_config, offer.cluster, version_of(profile), deadline)
        return await self._way(
            lambda: of_profile(offer.cluster, got.token, got.certificate, got.key),
            profile,
            f"{told} with provider {provider.name}",
            deadline,
        )

    async def _given(
        self, command: Command, cluster: Mapping[str, Any], version: _Version, deadline: float
    ) -> Credentials:
        known = self._credentials.get(version)
        if known:
            return known
        late = f"plugin {command.command} gave no credentials"
        got = await self._within(deadline, providers.run(command, cluster), late)
        if isinstance(got, Unusable):
            raise CannotAsk(got.why)
        self._credentials[version] = got
        return got

    async def _from_hub(self, resource: Resource, name: str, told: str, deadline: float) -> Object:
        late = f"{told}: the hub did not give it"
        try:
            return await self._within(deadline, self._hub.get(resource, name, self._namespace), late)
        except NotFound:
            raise CannotAsk(f"{told} does not exist") from None
        except ApiError as error:
            raise CannotAsk(f"{told} cannot be read: {error.message}") from None

    async def _way(
        self, access: Callable[[], Access | Unusable], source: Object, told: str, deadline: float
    ) -> _Way:
        # A megabyte of YAML and a store of certificates take their time: not the loop's.
        opening = asyncio.get_running_loop().run_in_executor(self._threads, _opened, access)
        login = await self._within(deadline, opening, f"{told} was not read")
        if isinstance(login, Unusable):
            raise CannotAsk(f"{told} {login.why}")
        return _Way(login, version_of(source), told)

    # -- the worker

    async def _list(self, way: _Way) -> Mapping[Id, bool]:
        try:
            async with Client(way.login, timeout=2 * self._timeout) as client:
                resource = await self._resource(client, way)
                try:
                    return await _copies_on(client, resource)
                except Gone:
                    return await _copies_on(client, resource)
        except ApiError as error:
            self._forget(way, error)
            raise CannotAsk(_in_words(error, way.told)) from None

    async def _resource(self, client: Client, way: _Way) -> Resource:
        resource = self._served.get(way.version)
        if resource is None:
            resource = (await client.discover([WORKLOAD])).get(WORKLOAD)
            if resource is None:
                raise CannotAsk("the worker serves no Workloads: is Kueue installed there?")
            self._served[way.version] = resource
        return resource

    def _forget(self, way: _Way, error: ApiError) -> None:
        """Believe no longer what may have led to this error."""
        if error.status == 401:
            self._credentials.pop(way.version, None)
        if error.status == 404:
            self._served.pop(way.version, None)


def _opened(read_access: Callable[[], Access | Unusable]) -> Login | Unusable:
    access = read_access()
    try:
        return access if isinstance(access, Unusable) else Login(access=access)
    except LoginFailed as error:
        return Unusable(str(error))


def source_of(spec: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind and name of what a MultiKueueCluster's spec points at, in any version of it."""
    source = spec.get("clusterSource") or spec
    profile, kubeconfig = source.get("clusterProfileRef") or {}, source.get("kubeConfig") or {}
    if kubeconfig.get("location"):
        if kubeconfig.get("locationType", "Secret") != "Secret":
            raise CannotAsk("its kubeconfig is a file in Kueue's container, out of reach from here")
        return "Secret", str(kubeconfig["location"])
    if profile.get("name"):
        return "ClusterProfile", str(profile["name"])
    raise CannotAsk("it names neither a Secret nor a ClusterProfile")


def version_of(obj: Object) -> _Version:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("uid")), str(metadata.get("resourceVersion"))


def _used_until(_: _Version, credentials: Credentials, now: float) -> float:
    if credentials.expires is None:
        return now + CREDENTIALS_SECONDS
    left = (credentials.expires - datetime.now(UTC)).total_seconds() - EXPIRY_SECONDS
    return now + min(left, CREDENTIALS_SECONDS)


async def _copies_on(client: Client, resource: Resource) -> Mapping[Id, bool]:
    copies: dict[Id, bool] = {}
    query = {"limit": str(PAGE), "labelSelector": LABEL_ORIGIN}
    while True:
        answer = await client.request("GET", resource.path(), query=query)
        if answer.get("kind") != f"{WORKLOAD.kind}List":  # whoever it is, it knows of no copies
            raise CannotAsk("what the worker answered is no list of Workloads")
        for workload in map(model.workload, answer.get("items") or ()):
            copies[workload.meta.id] = workload.quota and not workload.finished
        more = (answer.get("metadata") or {}).get("continue")
        if not more:
            return copies
        query["continue"] = str(more)


def _in_words(error: ApiError, told: str) -> str:
    """Tell what to do about an error of a worker, in our own words."""
    if error.status == 401:
        return f"the worker does not accept the credentials of {told}"
    if error.status == 403:
        return (
            f"the worker does not let the account of {told} list workloads.{WORKLOAD.group} in all namespaces"
        )
    if error.status >= 400:
        return f"the worker answered with HTTP {error.status}"
    if error.status:
        return "what the worker answered is no JSON object"
    return f"the worker of {told} cannot be reached: {_trouble(error.__context__)}"


def _trouble(cause: BaseException | None) -> str:
    """Tell why there was no answer: kinds of errors only, as their text may quote the address."""
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        told = cause.certificate_error
        return f"its certificate is not trusted ({getattr(told, 'verify_message', '') or 'unverified'})"
    if isinstance(cause, (aiohttp.ClientConnectorSSLError, ssl.SSLError)):
        return "no TLS with it"
    if isinstance(cause, aiohttp.ClientConnectorDNSError):
        return "its host name is not known"
    if isinstance(cause, aiohttp.ClientProxyConnectionError):
        return "its proxy cannot be reached"
    if isinstance(cause, aiohttp.ClientConnectorError):
        return os.strerror(cause.os_error.errno) if cause.os_error.errno else "no connection"
    return type(cause).__name__ if cause else "no answer"
