"""`kubectl placement access`: the kubectl line for the cluster that a job runs on."""

import shlex

import click

from kubectl_placement.access.handover import kubectl_words
from kubectl_placement.cli.job_access import (
    FoundJob,
    JobAccess,
    JobCommand,
    cluster_of,
    job_argument,
    job_options,
    note,
    with_job,
)


@click.command("access", cls=JobCommand, epilog="Example:  placement-ac access train")
@job_argument()
@job_options
def command(job: tuple[str, ...], where: JobAccess) -> None:
    """Print the kubectl line, with the kubeconfig's path, for the cluster that a job runs on.

    `$(kubectl placement access train) get pods` shows the Pods there.
    """

    async def find(found: FoundJob) -> list[str]:
        async with cluster_of(found, where) as cluster:
            words, written = kubectl_words(cluster, found.place.job.namespace)
            note(f"{found.place.label} is on cluster {cluster.name}, open by {cluster.method}")
            if written:
                note(f"delete {written} when you are done: it holds credentials")
            return words

    click.echo(shlex.join(with_job(where, job, find)))
