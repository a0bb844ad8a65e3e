"""
Kueue's connection to one worker, which watches its Workloads and Jobs.

Connection attempts are retried after 5, 10, 20 … 320 s, as in Kueue (`retryAfter`;
shared/kueue/worker-lost-and-back.log, broken-configuration.txt). Runs in the stand-in's event loop.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from placement_ac.core.api.constants import JOB, WORKLOAD, Kind
from placement_ac.core.api.copy_owner import copy_owner
from placement_ac.core.api.errors import (
    ApiError,
    Gone,
    LoginFailed,
    NotFound,
    PlacementAcError,
    Refused,
    TlsFailed,
    Unavailable,
)
from placement_ac.core.api.fields import key_of
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.standins.deletion import delete_with_dependents
from placement_lab.standins.informer import HubInformer, Name, OnChange
from placement_lab.standins.multikueue import Pace, RemoteWorker, WorkerRateLimiter
from placement_lab.standins.multikueue.objects import format_time

FIRST_RETRY_SECONDS: Final = 5.0
RETRY_DOUBLINGS: Final = 6
TIMEOUT_SECONDS: Final = 5.0
FIELD_MANAGER: Final = "kueue"


class RemoteClient:
    """A client for one worker. `run` connects, and reconnects until it is cancelled.

    `on_change` is called after every change on the worker, `on_state` when the connection is opened, lost
    or fails. `failure`: Kueue's message if the connection failed, None while connected or before the first
    attempt. `throttled`: whether requests wait for the rate limiter of `pace`. `job_kinds`: those that the
    worker must serve, or Kueue does not connect. `origin`: of the Jobs that Kueue creates there.
    """

    def __init__(
        self,
        kubeconfig: bytes,
        on_change: OnChange,
        on_state: Callable[[], None],
        *,
        speed: float,
        pace: Pace,
        throttled: Callable[[], bool],
        job_kinds: tuple[Kind, ...] = (),
        origin: str = "",
    ) -> None:
        self.kubeconfig = kubeconfig
        self._job_kinds = job_kinds
        self._origin = origin
        self._throttled = throttled
        self._limiter = WorkerRateLimiter(pace, speed)
        self.failure: str | None = None
        self.lost_since: float | None = None
        self._notify = on_change
        self._on_state = on_state
        self._speed = speed
        self._attempts = 0
        self._client: Client | None = None
        self._informer: HubInformer | None = None

    # -- reading

    @property
    def connected(self) -> bool:
        return self._informer is not None

    def worker_of(self, workload: Name, job: Name | None) -> RemoteWorker:
        """Return this worker's state of a Workload of that Job for the engine."""
        if self._informer is None:
            return RemoteWorker(connected=False, lost_since=self.lost_since)
        return self._worker(self._informer.objects[WORKLOAD].get(workload), workload, job)

    def _worker(self, copy: Object | None, workload: Name, job: Name | None) -> RemoteWorker:
        named = self.objects(JOB).get(job) if job else None
        is_foreign = named is not None and copy_owner(named).origin != self._origin
        return RemoteWorker(copy=copy, job=self.job_of(workload), has_foreign_job=is_foreign)

    def job_of(self, workload: Name) -> Object | None:
        """Return the worker's Job of a Workload."""
        jobs = self.objects(JOB).items()
        namespace, name = workload
        return next(
            (job for key, job in jobs if key[0] == namespace and copy_owner(job).workload == name), None
        )

    def objects(self, kind: Kind) -> dict[Name, Object]:
        return self._informer.objects[kind] if self._informer else {}

    async def get(self, workload: Name, job: Name | None) -> RemoteWorker:
        """Return `worker_of` with the copy as the worker has it now, after a GET. Raises ApiError."""
        await self._wait_for_limiter(WORKLOAD)
        client, informer = self._connection()
        try:
            copy = await client.get(informer.resources[WORKLOAD], workload[1], workload[0])
        except NotFound:
            copy = None
        return self._worker(copy, workload, job)

    async def _wait_for_limiter(self, kind: Kind) -> None:
        if self._throttled():
            await asyncio.sleep(self._limiter.reserve(kind, time.monotonic()))

    # -- writing: all methods raise ApiError

    async def create(self, kind: Kind, body: Object) -> None:
        await self._wait_for_limiter(kind)
        client, informer = self._connection()
        informer.remember(kind, await client.create(informer.resources[kind], body))

    async def write_status(self, kind: Kind, item: Object, status: Object) -> None:
        """Merge `status` into the object's status; raises Conflict if it has changed since it was read."""
        await self._wait_for_limiter(kind)
        client, informer = self._connection()
        metadata = item["metadata"]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status}
        informer.remember(
            kind,
            await client.merge(
                informer.resources[kind],
                metadata["name"],
                patch,
                namespace=metadata["namespace"],
                subresource="status",
            ),
        )

    async def delete(self, kind: Kind, key: Name) -> None:
        """Delete the object if it exists."""
        await self._wait_for_limiter(kind)
        client, informer = self._connection()
        with contextlib.suppress(NotFound):
            await delete_with_dependents(client, informer.resources[kind], key[1], key[0])
        informer.forget(kind, key)

    async def delete_job(self, workload: Name) -> None:
        """Delete the worker's Job of a Workload."""
        job = self.job_of(workload)
        if job is not None:
            await self.delete(JOB, key_of(job))

    def _connection(self) -> tuple[Client, HubInformer]:
        if self._client is None or self._informer is None:
            raise Unavailable("the worker is not connected")
        return self._client, self._informer

    # -- the connection

    async def run(self) -> None:
        """Connect and reconnect until cancelled."""
        while True:
            try:
                await self._connect()
            except PlacementAcError as error:
                self._attempts += 1
                doublings = min(self._attempts - 1, RETRY_DOUBLINGS)
                wait = FIRST_RETRY_SECONDS * 2**doublings / self._speed
                self.failure = (
                    f"{error}; connection attempts: {self._attempts},"
                    f" next connection attempt: {format_time(time.time() + wait)}"
                )
                self.lost_since = self.lost_since or time.time()
                self._on_state()
                await asyncio.sleep(wait)

    async def _connect(self) -> None:
        """Connect and watch until the worker is lost. Raises PlacementAcError if the connection fails."""
        login = _login(self.kubeconfig)
        async with Client(login, field_manager=FIELD_MANAGER, timeout=TIMEOUT_SECONDS) as client:
            try:
                await client.request("GET", "/api")
            except ApiError as error:
                raise Unavailable(_discovery_failure(error, login.server)) from None
            await self._require_job_kinds(client)
            await self._follow(client)

    async def _require_job_kinds(self, client: Client) -> None:
        """Raise if a kind is not served: Kueue watches the jobs of all integrations that are on."""
        served = await client.discover(self._job_kinds)
        for kind in self._job_kinds:
            if kind not in served:
                version = kind.at(kind.versions[0]).api_version
                raise Unavailable(f'no matches for kind "{kind.kind}" in version "{version}"')

    async def _follow(self, client: Client) -> None:
        lost: asyncio.Future[ApiError] = asyncio.get_running_loop().create_future()

        def lose(error: ApiError) -> None:
            # After 410 or 404 the kind is listed again: the connection is not lost.
            if not lost.done() and not isinstance(error, Gone | NotFound):
                lost.set_result(error)

        # Kueue lists Workloads, to collect garbage, and only watches Jobs (multikueuecluster.go).
        informer = HubInformer(client, (WORKLOAD, JOB), self._notify, streamed=(JOB,), on_error=lose)
        following = asyncio.create_task(informer.run())
        listing = asyncio.create_task(informer.synced())
        listed_or_not: set[asyncio.Future[Any]] = {lost, following, listing}
        try:
            await asyncio.wait(listed_or_not, return_when=asyncio.FIRST_COMPLETED)
            if lost.done():
                raise await _watch_error(client, informer, lost.result())
            self._connected(client, informer)
            await asyncio.wait(listed_or_not - {listing}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
        finally:
            self._disconnected()
            following.cancel()
            listing.cancel()
            await asyncio.gather(following, listing, return_exceptions=True)

    def _connected(self, client: Client, informer: HubInformer) -> None:
        self._client, self._informer = client, informer
        self.failure, self.lost_since, self._attempts = None, None, 0
        self._on_state()

    def _disconnected(self) -> None:
        if self._informer is not None:
            self.lost_since = time.time()
        self._client = self._informer = None


def _login(kubeconfig: bytes) -> Login:
    with tempfile.TemporaryDirectory(prefix="placement-ac-") as folder:
        path = Path(folder) / "kubeconfig"
        path.write_bytes(kubeconfig)
        try:
            return Login(path)
        except (LoginFailed, OSError) as error:  # OSError: the CA's data is no certificate
            raise LoginFailed(str(error).replace(str(path), "the Secret")) from None


async def _watch_error(client: Client, informer: HubInformer, error: ApiError) -> ApiError:
    """Return the 403 of a WATCH if there is one, because Kueue starts with a watch; else `error`."""
    if error.status != 403:
        return error
    for kind in (kind for kind in (WORKLOAD, JOB) if kind in informer.resources):
        try:
            path = informer.resources[kind].path()
            await client.request("GET", path, query={"watch": "true", "timeoutSeconds": "1"})
        except Refused as refused:
            return refused
        except ApiError:  # it is allowed: a watch is no JSON object
            continue
    return error


def _discovery_failure(error: ApiError, server: str) -> str:
    """Return Kueue's message for a worker whose discovery failed."""
    if error.status == 401:
        why = "the server has asked for the client to provide credentials"
    elif isinstance(error, TlsFailed):
        wrong = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        why = f'Get "{server}/api": {wrong}'
    elif error.status == 0:
        why = f'Get "{server}/api": dial tcp {urlsplit(server).netloc}: connect: connection refused'
    else:
        why = error.message
    return f"failed to get server groups: {why}"
