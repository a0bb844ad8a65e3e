"""
The options of the commands that reach a job on its cluster, and how they find it.

Their errors are kubectl's: `Error from server (REASON): …` for an answer of an API server.
"""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import click

from kubectl_placement.access.methods import AccessOptions
from kubectl_placement.access.open import OpenCluster, open_cluster
from kubectl_placement.access.pods import JobThere, read_job
from kubectl_placement.access.target import FORBIDDEN
from kubectl_placement.hub.dump import MissingRight, Object
from kubectl_placement.hub.record import relocated, was_lost
from kubectl_placement.jobs.lookup import find_workloads
from kubectl_placement.jobs.not_managed import never_starts
from kubectl_placement.jobs.place import JobPlace, place_of
from placement_ac.cli.login_options import FILE, LOGIN, HubLogin, login_to, option_group
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import WORKLOAD, Resource
from placement_ac.core.api.errors import ApiError, PlacementAcError, Refused
from placement_ac.core.api.printable import one_line
from placement_ac.kube.client import COMMAND_RETRIES, Client

T = TypeVar("T")
PROXY_VARIABLE: Final = "PLACEMENT_AC_CLUSTER_PROXY"


class NotThere(PlacementAcError):
    """The job is on no cluster, or has no Pod there."""


class ServerError(click.ClickException):
    """An answer of an API server, in kubectl's words."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=file is None)


class JobCommand(ReadCommand):
    """A command whose errors are like kubectl's."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ApiError as error:
            raise server_error(error) from None


def server_error(error: ApiError) -> click.ClickException:
    """Return an error of an API server as kubectl prints it."""
    message = one_line(error.message)
    if not error.reason:
        return click.ClickException(message)
    return ServerError(f"Error from server ({error.reason}): {message}")


@dataclass(frozen=True, slots=True)
class JobAccess(HubLogin):
    """Which job on which hub, and the caller's access to its cluster."""

    namespace: str | None = None
    as_hub: bool = False
    cluster_proxy: str = ""
    cluster_proxy_ca: Path | None = None
    access_config: Path | None = None
    kueue_namespace: str = "kueue-system"

    @property
    def access(self) -> AccessOptions:
        return AccessOptions(
            self.kubeconfig,
            self.cluster_proxy,
            self.cluster_proxy_ca,
            self.as_hub,
            self.access_config,
            self.kueue_namespace,
            self.impersonation,
        )


def job_argument(
    name: str = "job", metavar: str = "[TYPE] NAME", hint: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the argument with the words that name a job; `hint`: behind an error."""

    def checked(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
        if len(words) > 2:  # noqa: PLR2004, RUF100  # TYPE NAME
            raise click.UsageError(f"give the job as NAME, TYPE/NAME or TYPE NAME{hint}")
        return words

    return click.argument(name, nargs=-1, required=True, metavar=metavar, callback=checked)


ACCESS_OPTIONS: Final = (
    click.Option(
        ["--cluster-proxy"],
        envvar=PROXY_VARIABLE,
        default="",
        metavar="URL",
        help=f"The user server of OCM's cluster-proxy.  [default: ${PROXY_VARIABLE}, the access file's, or "
        "the one that the hub names]",
    ),
    click.Option(["--cluster-proxy-ca"], type=FILE, help="The CA of its certificate."),
    click.Option(
        ["--access-config"],
        type=FILE,
        help="Your file of access methods to clusters.  [default: $PLACEMENT_AC_ACCESS_CONFIG, or "
        "~/.config/placement-ac/access.yaml]",
    ),
)
"""The options on access methods to clusters."""
job_options = option_group(
    "where",
    JobAccess,
    *LOGIN,
    click.Option(
        ["-n", "--namespace"],
        help="The namespace of the job.  [default: that of the context, as with kubectl]",
    ),
    click.Option(
        ["--as-hub"],
        is_flag=True,
        help="If no other method works, use Kueue's credentials: you need the right to read their Secret.",
    ),
    *ACCESS_OPTIONS,
    click.Option(
        ["--kueue-namespace"],
        default="kueue-system",
        show_default=True,
        help="The namespace of Kueue, for ClusterProfiles and --as-hub.",
    ),
)
"""The options; the command gets them as one `where`."""


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job on the hub, read with `client`."""

    client: Client
    workloads: Resource
    place: JobPlace
    workload: Object
    moved: Mapping[str, str] = field(default_factory=dict)
    """The MultiKueueCluster that Kueue's record names → the one on which the job runs; {}: it is the same."""


def show_message(text: str) -> None:
    """Show on stderr what a credential plugin writes there."""
    click.echo(text, nl=False, err=True)


def note(text: str) -> None:
    """Show a line on stderr."""
    click.echo(one_line(text), err=True)


def with_job(where: JobAccess, words: Sequence[str], work: Callable[[FoundJob], Awaitable[T]]) -> T:
    """Run `work` with the job that the words name. Raises SubjectNotFound, ApiError, NotThere."""

    async def work_with_job(client: Client) -> T:
        return await work(await find_job(client, where, words))

    return with_hub(where, work_with_job)


def with_hub(where: HubLogin, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work`, which may write temporary files, with a client of the hub; see `run_to_end`."""

    async def run() -> T:
        async with Client(login_to(where), retries=COMMAND_RETRIES) as client:
            return await work(client)

    return run_to_end(run())


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; SIGTERM and SIGHUP cancel it, so that its temporary files are removed.

    Raises click's Exit with the code of the signal then, as in shells.
    """
    got: list[int] = []

    async def run() -> T:
        task, loop = asyncio.create_task(work), asyncio.get_running_loop()

        def stop(number: int) -> None:
            got.append(number)
            task.cancel()

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                    loop.add_signal_handler(number, stop, number)
        return await task

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise click.exceptions.Exit(128 + got[0] if got else 1) from None


async def find_job(client: Client, where: JobAccess, words: Sequence[str]) -> FoundJob:
    """Return the job that the words name, by the Workloads of its namespace.

    Raises SubjectNotFound, NotThere and ApiError.
    """
    namespace = where.namespace or client.login.namespace
    resource = (await client.discover((WORKLOAD,))).get(WORKLOAD)
    if resource is None:
        raise NotThere(f"check the context: {client.server} does not serve {WORKLOAD}")
    try:
        items = (await client.list(resource, namespace)).items
    except Refused as error:
        if error.status != FORBIDDEN:
            raise
        right = MissingRight("list", WORKLOAD, namespace)
        raise NotThere(f"get the right to {right} (check: {right.check_command})") from None
    workload = find_workloads(items, words, namespace)
    if never := never_starts(workload):
        raise NotThere(f"{never.fix}; Kueue never starts this one: {never.why}")
    moved: dict[str, str] = {}
    if was_lost(workload):
        from kubectl_placement.cli.taken_up_jobs import read_taken_up  # noqa: PLC0415  # few jobs need it

        if taken := await read_taken_up(client, workload):
            place = place_of(workload)
            note(f"{place.label} {taken.sentence}")
            workload = relocated(workload, taken.cluster_objects)
            moved = {place.cluster: place_of(workload).cluster}
    return FoundJob(client, resource, place_of(workload), workload, moved)


@asynccontextmanager
async def cluster_of(found: FoundJob, where: JobAccess) -> AsyncIterator[OpenCluster]:
    """Yield the cluster of a job as the caller. Raises NotThere if it is on none, NoAccess."""
    place = found.place
    if not place.cluster:
        raise no_cluster(place)
    async with open_cluster(
        found.client, place.cluster, place.job.namespace, where.access, show_message
    ) as cluster:
        yield cluster


async def job_on(cluster: OpenCluster, found: FoundJob) -> JobThere:
    """Return a job on its cluster, and show on stderr which rights to it are missing. Raises NotOurs."""
    there = await read_job(cluster, found.place)
    for unread in there.unread:
        note(str(unread))
    return there


async def pods_of(found: FoundJob, cluster: OpenCluster) -> list[Object]:
    """Return the Pods of a job, by name; at least one. Raises NotThere, NotOurs."""
    if pods := (await job_on(cluster, found)).pods:
        return pods
    raise no_pods(found.place, cluster.name)


def no_cluster(place: JobPlace) -> NotThere:
    """Return the error for a job that is on no cluster."""
    state = "has finished, and is on no cluster" if place.finished else "waits, and is on no cluster yet"
    why = f"run `kubectl placement explain workload {place.workload} -n {place.job.namespace}` to see why"
    return NotThere(f"{why}: {place.label} {state}")


def no_pods(place: JobPlace, cluster: str) -> NotThere:
    """Return the error for a job that has no Pod on its cluster."""
    if place.finished:
        return NotThere(
            f"look for its logs where cluster {cluster} keeps those of Pods that are gone: {place.label} has "
            "finished, and Kueue removes the copy of a finished job with its Pods"
        )
    return NotThere(f"wait: {place.label} has no Pod on cluster {cluster} yet")
