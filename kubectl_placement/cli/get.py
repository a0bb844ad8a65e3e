"""`kubectl placement get pods`: the Pods of a job, wherever it runs."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import click
from rich.console import RenderableType

from kubectl_placement.access.open import PODS
from kubectl_placement.access.pod_table import PodColumns, pod_columns
from kubectl_placement.cli.job_access import (
    FoundJob,
    JobAccess,
    JobCommand,
    cluster_of,
    job_argument,
    job_on,
    job_options,
    note,
    with_job,
)
from kubectl_placement.cli.output import age_text, emit, plain_table, safe_text
from kubectl_placement.hub.dump import Object
from placement_ac.cli.documents import Form, output
from placement_ac.core.api.fields import name_of

TYPES: Final = ("pods", "pod", "po")
UNKNOWN: Final = "<unknown>"


@click.command("get", cls=JobCommand, epilog="Example:  placement-ac get pods train")
@click.argument("type_", metavar="pods", type=click.Choice(TYPES, case_sensitive=False))
@job_argument()
@job_options
@output("wide", "json", "yaml", "name")
def command(type_: str, job: tuple[str, ...], where: JobAccess, form: Form) -> None:  # noqa: ARG001  pods alone
    """Show the Pods of a job on the cluster that it runs on.

    NAME is that of the job or of its Workload; TYPE as with kubectl: job, jobset, pytorchjob.kubeflow.org.
    """

    async def read(found: FoundJob) -> tuple[list[Object], str, str]:
        async with cluster_of(found, where) as cluster:
            return (await job_on(cluster, found)).pods, cluster.name, found.place.job.namespace

    pods, cluster, namespace = with_job(where, job, read)
    if not pods and form in ("table", "wide"):
        note(f"No resources found in {namespace} namespace on cluster {cluster}.")
        return
    emit(form, _list(pods), lambda wide: _table(pods, cluster, wide), lambda: _names(pods))


def _list(pods: list[Object]) -> dict[str, Any]:
    """Return the Pods as `kubectl get -o json` prints several."""
    head = {"apiVersion": PODS.api_version, "kind": PODS.of.kind}
    items = [head | pod for pod in pods]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def _names(pods: list[Object]) -> Iterator[str]:
    return (f"pod/{name_of(pod)}" for pod in pods)


def _table(pods: list[Object], cluster: str, wide: bool) -> Iterator[RenderableType]:
    now = datetime.now(UTC)
    table = plain_table(
        "NAME", "READY", "STATUS", "RESTARTS", "AGE", *(("IP", "NODE") if wide else ()), "CLUSTER"
    )
    for row in map(pod_columns, pods):
        cells = (row.name, row.ready, row.status, _restarts(row, now), _age(row.created, now))
        table.add_row(*map(safe_text, (*cells, *((row.ip, row.node) if wide else ()), cluster)))
    yield table


def _restarts(row: PodColumns, now: datetime) -> str:
    ago = f" ({_age(row.restarted, now)} ago)" if row.restarts and row.restarted else ""
    return f"{row.restarts}{ago}"


def _age(since: datetime | None, now: datetime) -> str:
    return UNKNOWN if since is None else age_text((now - since).total_seconds())
