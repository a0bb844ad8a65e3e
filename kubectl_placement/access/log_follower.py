"""
Follow the logs of a job until it ends.

That is through restarts of its containers, new Pods, and moves to other clusters.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from kubectl_placement.access.log_query import LogQuery, StampedLines
from kubectl_placement.access.log_reader import Write, blocks_of
from kubectl_placement.access.methods import AccessOptions
from kubectl_placement.access.open import UNAUTHORIZED, OpenCluster, open_cluster
from kubectl_placement.access.pod_choice import Container, chosen_container, containers_of, first_pod
from kubectl_placement.access.pods import read_job
from kubectl_placement.access.unread import Unread
from kubectl_placement.hub.dump import Object
from kubectl_placement.jobs.place import JobPlace, place_of
from placement_ac.core.api.constants import Resource
from placement_ac.core.api.errors import ApiError, NotFound, Refused, Unavailable
from placement_ac.core.api.fields import get_str, name_of
from placement_ac.kube.client import Client
from placement_ac.kube.exec_plugin import Show

Note = Callable[[str], None]
"""Gets a line for stderr."""

BAD_REQUEST: Final = 400
POLL_SECONDS: Final = 1.0
"""How often the Workload and the Pods are read."""
LAST_LINES_SECONDS: Final = 2.0
"""How long no line may come before the logs are left, when a job has ended or leaves a cluster."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which logs are followed. `container`: "": the default one."""

    container: str = ""
    all_containers: bool = False
    all_pods: bool = False


class TooManyLogs(Refused):
    """There are more containers than may be followed at once."""


class LogFollower:
    """Follows one job.

    `most`: the logs that may be followed at once. `moved`: the MultiKueueCluster that Kueue's record names →
    the one on which the job runs.
    """

    def __init__(
        self,
        hub: Client,
        workloads: Resource,
        place: JobPlace,
        access: AccessOptions,
        choice: Choice,
        query: LogQuery,
        *,
        write: Write,
        note: Note,
        show: Show,
        most: int,
        moved: Mapping[str, str],
    ) -> None:
        self._hub, self._workloads, self.place = hub, workloads, place
        self._access, self._choice, self._query = access, choice, query
        self._write, self._note, self._show, self._most = write, note, show, most
        self._moved = moved
        self._streams: dict[Container, asyncio.Task[bool]] = {}
        self._done: set[Container] = set()
        self._pod = ""
        """The uid of the Pod that is followed, unless all are."""
        self._began = False
        self._delivered = 0
        """How many blocks have come."""
        self.cluster = ""
        """The name of the cluster where it was last."""
        self.has_followed = False
        """Whether there was any log to follow."""
        self._lines: dict[Container, StampedLines] = {}
        self._renewed = False
        """The login was renewed, and has not been accepted since."""
        self._reported: set[str] = set()
        """The missing rights that were reported."""

    async def run(self) -> None:
        """Return when the job has ended. Raises ApiError, NoAccess, NoSuchContainer."""
        place: JobPlace | None = self.place
        while place is not None:
            if place.cluster:
                place = await self._follow_there(place)
            elif place.finished:
                return
            else:
                self._note(f"{place.label} waits for a cluster")
                self._began = True
                place = await self._until(lambda now: bool(now.cluster) or now.finished)

    async def _follow_there(self, place: JobPlace) -> JobPlace | None:
        """Follow the job on its cluster; return it as it is then. A login that has expired is renewed."""
        try:
            async with open_cluster(
                self._hub, place.cluster, place.job.namespace, self._access, self._show
            ) as cluster:
                if self._began and not self._renewed:
                    self._note(f"{place.label} runs on cluster {cluster.name} now")
                self.cluster = cluster.name
                return await self._follow_on(cluster, place)
        except Unavailable as error:
            if error.status != UNAUTHORIZED or self._renewed:
                raise
        self._renewed = True
        return await self._read()

    async def _read(self) -> JobPlace | None:
        """Return the job as it is now: None if it was deleted, as before while the hub does not answer."""
        try:
            item = await self._get()
        except NotFound:
            return None
        except Unavailable as error:
            _raise_unless_passing(error)
            return self.place
        place = place_of(item)
        self.place = replace(place, cluster=self._moved.get(place.cluster, place.cluster))
        return self.place

    async def _get(self) -> Object:
        """Return the Workload; once more if the login has expired: the second request has a new one."""
        name, namespace = self.place.workload, self.place.job.namespace
        try:
            return await self._hub.get(self._workloads, name, namespace)
        except Unavailable as error:
            if error.status != UNAUTHORIZED:
                raise
            return await self._hub.get(self._workloads, name, namespace)

    async def _until(self, holds: Callable[[JobPlace], bool]) -> JobPlace | None:
        while (place := await self._read()) is not None and not holds(place):  # noqa: ASYNC110  # on the hub
            await asyncio.sleep(POLL_SECONDS)
        return place

    async def _follow_on(self, cluster: OpenCluster, place: JobPlace) -> JobPlace | None:
        """Follow the job on a cluster until it leaves it or ends; return the job then, None: it has ended."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._stop)
            silent = False
            while True:
                try:
                    there = await read_job(cluster, place)
                    self._report(there.unread)
                    self._start_new(cluster, there.pods)
                    silent = False
                except Unavailable as error:
                    _raise_unless_passing(error)
                    if not silent:
                        self._note(f"cluster {cluster.name} does not answer; trying again")
                    silent = True
                self._began = True
                now = await self._read()
                if now is None or now.finished:
                    await self._drain()
                    return None
                if now.cluster != place.cluster:
                    await self._drain()
                    self._note(f"{place.label} has left cluster {cluster.name}")
                    self._pod, self._renewed = "", False
                    return now
                await self._pause()
                self._renewed = self._renewed and silent

    def _report(self, unread: Iterable[Unread]) -> None:
        """Show each missing right once."""
        for text in dict.fromkeys(map(str, unread)):
            if text not in self._reported:
                self._reported.add(text)
                self._note(text)

    async def _pause(self) -> None:
        if self._streams:
            await asyncio.wait(self._streams.values(), timeout=POLL_SECONDS)
        self._reap()
        await asyncio.sleep(0 if self._streams else POLL_SECONDS)

    def _reap(self) -> None:
        """Take in the logs that have ended. Raises the ApiError of one that cannot be read."""
        for container, stream in [*self._streams.items()]:
            if stream.done():
                del self._streams[container]
                if stream.result():
                    self._done.add(container)

    async def _drain(self) -> None:
        """Wait for the last lines: as long as any come."""
        before = -1
        while self._streams and before != self._delivered:
            before = self._delivered
            await asyncio.wait(self._streams.values(), timeout=LAST_LINES_SECONDS)
            self._reap()

    async def _stop(self) -> None:
        streams = [*self._streams.values()]
        self._streams.clear()
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)

    # -- which logs

    def _start_new(self, cluster: OpenCluster, pods: Sequence[Object]) -> None:
        for container in self._wanted(pods):
            if not container.started or container in self._streams or container in self._done:
                continue
            if len(self._streams) >= self._most:
                raise TooManyLogs(
                    f"use --max-log-requests to follow more than {self._most} logs: the job has more"
                )
            query = replace(self._query, previous=False)
            if self._began:  # of a Pod that has come since: all of it
                query = LogQuery(timestamps=self._query.timestamps)
            self.has_followed = True
            self._streams[container] = asyncio.create_task(self._stream(cluster, container, query))

    def _wanted(self, pods: Sequence[Object]) -> list[Container]:
        chosen = pods if self._choice.all_pods else self._one_of(pods)
        if self._choice.all_containers:
            return [container for pod in chosen for container in containers_of(pod)]
        found = [chosen_container(pod, self._choice.container) for pod in chosen]
        if not self._began:
            for note in dict.fromkeys(note for _, note in found if note):
                self._note(note)
        return [container for container, _ in found]

    def _one_of(self, pods: Sequence[Object]) -> list[Object]:
        """Return the Pod that is followed: the same one until it is gone, or has ended and is read."""
        by_uid = {str(pod["metadata"].get("uid")): pod for pod in pods}
        current = by_uid.get(self._pod)
        if current is not None and not self._is_read(current):
            return [current]
        others = [pod for uid, pod in by_uid.items() if not any(one.uid == uid for one in self._done)]
        if not others:
            return [] if current is None else [current]
        pod = first_pod(others)
        if not any(container.started for container in containers_of(pod)) and current is not None:
            return [current]
        if self._pod:
            self._note(f"the Pod has ended, using pod/{name_of(pod)} now")
        elif len(pods) > 1:
            self._note(f"Found {len(pods)} pods, using pod/{name_of(pod)}")
        self._pod = str(pod["metadata"].get("uid"))
        return [pod]

    def _is_read(self, pod: Object) -> bool:
        """Whether a Pod has ended, and no log of it is being followed."""
        ended = get_str(pod, "status", "phase") in ("Succeeded", "Failed")
        return ended and not any(container.uid == self._pod for container in self._streams)

    # -- one log

    async def _stream(self, cluster: OpenCluster, container: Container, query: LogQuery) -> bool:
        """Print a log until it ends; return whether it did: False if it cannot be read yet."""
        lines = self._lines.setdefault(container, StampedLines(shown=query.timestamps))
        while True:
            asked = replace(query, timestamps=True)
            if lines.last:
                lines.reconnect()
                asked = LogQuery(timestamps=True, since_time=lines.last)
            try:
                async for block in blocks_of(
                    cluster.client, self.place.job.namespace, container, asked, follow=True
                ):
                    self._delivered += 1
                    if new := lines.new(block):
                        self._write(container, new)
            except NotFound:
                return True
            except Unavailable as error:
                _raise_unless_passing(error)
                await asyncio.sleep(POLL_SECONDS)
                continue
            except ApiError as error:
                if error.status != BAD_REQUEST:
                    raise
                if not lines.last:  # it waits to start
                    return False
                self._note(f"the log of pod/{container.pod}/{container.name} ends: {error.message}")
            return True


def _raise_unless_passing(error: Unavailable) -> None:
    """Raise the error if it does not pass by itself: the credentials are not accepted."""
    if error.status == UNAUTHORIZED:
        raise error
