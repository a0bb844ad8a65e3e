"""`kubectl placement logs`: the logs of a job, wherever it runs."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from typing import Final

import click

from kubectl_placement.access.log_follower import Choice, LogFollower
from kubectl_placement.access.log_query import LogQuery, lines_of
from kubectl_placement.access.log_reader import print_logs
from kubectl_placement.access.pod_choice import Container, chosen_container, containers_of, first_pod
from kubectl_placement.cli.job_access import (
    FoundJob,
    JobAccess,
    JobCommand,
    cluster_of,
    job_argument,
    job_options,
    no_cluster,
    no_pods,
    note,
    pods_of,
    server_error,
    show_message,
    with_job,
)
from kubectl_placement.hub.dump import Object
from placement_ac.cli.login_options import duration
from placement_ac.cli.terminal import stream_below
from placement_ac.core.api.errors import ApiError
from placement_ac.core.api.fields import name_of, parse_time

FOLLOWED: Final = 100
"""The default of --max-log-requests: with kubectl 5, which is less than a usual job has Pods."""


@dataclass(frozen=True, slots=True)
class LogWish:
    """The logs that the caller wants to see."""

    choice: Choice
    query: LogQuery
    follow: bool
    prefix: bool
    most: int


def _since_time(_: click.Context, __: click.Parameter, value: str | None) -> str:
    if value and parse_time(value) is None:
        raise click.BadParameter("use an RFC 3339 time like 2026-11-26T18:00:00Z")
    return value or ""


def _seconds(value: str) -> int:
    return max(int(duration(value).total_seconds()), 1)


@click.command(
    "logs",
    cls=JobCommand,
    epilog="Example:  placement-ac logs pytorchjob/train --all-pods -f",
)
@job_argument()
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends, also on another cluster.")
@click.option("-c", "--container", default="", metavar="NAME", help="The container.")
@click.option("--all-containers", is_flag=True, help="Of all containers.")
@click.option("--all-pods", is_flag=True, help="Of all Pods, with --prefix.")
@click.option("-p", "--previous", is_flag=True, help="Of the previous run of a container that was restarted.")
@click.option("--since", type=_seconds, metavar="DURATION", help="Only lines of the last time, as 5m or 2h.")
@click.option("--since-time", callback=_since_time, metavar="TIME", help="Only lines after it (RFC 3339).")
@click.option("--tail", type=int, default=-1, show_default=True, help="Only so many last lines; -1: all.")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@click.option("--prefix", is_flag=True, help="With the Pod and the container before each line.")
@click.option("--limit-bytes", type=int, default=0, help="Only so many bytes of each log.  [default: all]")
@click.option(
    "--max-log-requests",
    type=click.IntRange(1),
    default=FOLLOWED,
    show_default=True,
    help="With --follow: the most logs at once.",
)
@job_options
def command(
    job: tuple[str, ...],
    follow: bool,
    container: str,
    all_containers: bool,
    all_pods: bool,
    previous: bool,
    since: int | None,
    since_time: str,
    tail: int,
    timestamps: bool,
    prefix: bool,
    limit_bytes: int,
    max_log_requests: int,
    where: JobAccess,
) -> None:
    """Print the logs of a job's Pods, from the cluster that it runs on.

    NAME is that of the job or of its Workload; TYPE as with kubectl: job, jobset, pytorchjob.kubeflow.org.

    With -f, a job that moves to another cluster is followed there; a line on stderr says so. It ends with the
    job.
    """
    for problem, is_so in (
        ("at most one of `sinceTime` or `sinceSeconds` may be specified", since and since_time),
        ("--tail must be greater than or equal to -1", tail < -1),
        ("--limit-bytes must be greater than 0", limit_bytes < 0),
        ("--all-containers=true should not be specified with container name", all_containers and container),
    ):
        if is_so:
            raise click.UsageError(problem)
    query = LogQuery(previous, timestamps, None if tail < 0 else tail, since, since_time, limit_bytes or None)
    choice = Choice(container, all_containers, all_pods)
    wish = LogWish(choice, query, follow and not previous, prefix or all_pods, max_log_requests)
    print_all = partial(_follow if wish.follow else _print, where=where, wish=wish)
    if not with_job(where, job, print_all):
        click.get_current_context().exit(1)


async def _follow(found: FoundJob, where: JobAccess, wish: LogWish) -> bool:
    follower = LogFollower(
        found.client,
        found.workloads,
        found.place,
        where.access,
        wish.choice,
        wish.query,
        write=_writer(wish.prefix),
        note=note,
        show=show_message,
        most=wish.most,
        moved=found.moved,
    )
    await follower.run()
    if follower.place.finished and not follower.has_followed:
        raise no_pods(follower.place, follower.cluster) if follower.cluster else no_cluster(follower.place)
    return True


async def _print(found: FoundJob, where: JobAccess, wish: LogWish) -> bool:
    """Print the logs once; return whether all could be read."""
    failed: list[Container] = []

    def fail(container: Container, error: ApiError) -> None:
        failed.append(container)
        server_error(error).show()

    async with cluster_of(found, where) as cluster:
        containers = _containers(await pods_of(found, cluster), wish.choice)
        namespace = found.place.job.namespace
        await print_logs(cluster.client, namespace, containers, wish.query, _writer(wish.prefix), fail)
    return not failed


def _containers(pods: list[Object], choice: Choice) -> list[Container]:
    """Return the containers whose logs are shown, and say on stderr what kubectl says about them."""
    if choice.all_pods:
        chosen = pods
    else:
        chosen = [first_pod(pods)]
        if len(pods) > 1:
            note(f"Found {len(pods)} pods, using pod/{name_of(chosen[0])}")
    if choice.all_containers:
        return [container for pod in chosen for container in containers_of(pod)]
    found = [chosen_container(pod, choice.container) for pod in chosen]
    for text in dict.fromkeys(text for _, text in found if text):
        note(text)
    return [container for container, _ in found]


def _writer(prefix: bool) -> Callable[[Container, bytes], None]:
    """Return what writes blocks of lines to stdout: as they are, on a terminal with controls as escapes."""
    out = stream_below(sys.stdout)
    raw = out.buffer if isinstance(out, TextIOWrapper) and not out.isatty() else None
    is_open: dict[Container, bool] = {}  # whether the next block continues a line

    def write(container: Container, block: bytes) -> None:
        if prefix:
            mark = f"[pod/{container.pod}/{container.name}] ".encode()
            first = b"" if is_open.get(container) else mark
            is_open[container] = not block.endswith(b"\n")
            block = first + mark.join(lines_of(block))
        if raw:
            raw.write(block)
            raw.flush()
        else:
            sys.stdout.write(block.decode("utf-8", "replace"))
            sys.stdout.flush()

    return write
