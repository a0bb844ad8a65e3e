"""`kubectl placement port-forward`: a port of a job's Pod on this machine. Hands over to kubectl."""

import click

from kubectl_placement.access.handover import run_kubectl
from kubectl_placement.access.pod_choice import first_pod
from kubectl_placement.cli.job_access import (
    FoundJob,
    JobAccess,
    JobCommand,
    cluster_of,
    job_options,
    note,
    pods_of,
    with_job,
)
from placement_ac.core.api.fields import name_of


@click.command("port-forward", cls=JobCommand, epilog="Example:  placement-ac port-forward train 8265:8265")
@click.argument("job")
@click.argument("ports", nargs=-1, required=True, metavar="[LOCAL:]REMOTE…")
@click.option(
    "--address", default="localhost", show_default=True, metavar="ADDRESS,…", help="Where to listen."
)
@job_options
def command(job: str, ports: tuple[str, ...], address: str, where: JobAccess) -> None:
    """Forward ports of this machine to the first Pod of a job, on the cluster that it runs on, by kubectl.

    JOB is NAME or TYPE/NAME. It goes on until it is interrupted, or the Pod ends.
    """

    async def run(found: FoundJob) -> int:
        async with cluster_of(found, where) as cluster:
            pods = await pods_of(found, cluster)
            pod = first_pod(pods)
            if len(pods) > 1:
                note(f"Found {len(pods)} pods, using pod/{name_of(pod)}")
            call = ["port-forward", "--address", address, f"pod/{name_of(pod)}", *ports]
            return await run_kubectl(cluster, found.place.job.namespace, call)

    click.get_current_context().exit(with_job(where, (job,), run))
