"""`kubectl placement exec`: run a command in a Pod of a job, wherever it runs. Hands over to kubectl."""

from typing import Final

import click

from kubectl_placement.access.handover import run_kubectl
from kubectl_placement.access.pod_choice import chosen_container, first_pod
from kubectl_placement.cli.job_access import (
    FoundJob,
    JobAccess,
    JobCommand,
    cluster_of,
    job_argument,
    job_options,
    note,
    pods_of,
    with_job,
)
from placement_ac.core.api.fields import name_of

BEHIND: Final = f"{__name__}.behind"
"""In the context's `meta`: the words behind `--`."""


class ExecCommand(JobCommand):
    """Leaves alone what is behind `--`: that is the command to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[BEHIND] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])


@click.command("exec", cls=ExecCommand, epilog="Example:  placement-ac exec -it train -- nvidia-smi")
@job_argument(metavar="[TYPE] NAME -- COMMAND [ARGS…]", hint=", and the command behind --")
@click.option("-c", "--container", default="", metavar="NAME", help="The container.  [default: as with logs]")
@click.option("-i", "--stdin", is_flag=True, help="Pass stdin to the command.")
@click.option("-t", "--tty", is_flag=True, help="Give it a terminal.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what it prints.")
@job_options
@click.pass_context
def command(
    ctx: click.Context,
    job: tuple[str, ...],
    container: str,
    stdin: bool,
    tty: bool,
    quiet: bool,
    where: JobAccess,
) -> None:
    """Run a command in the first Pod of a job, on the cluster that it runs on, by kubectl.

    Exit code: that of kubectl, which is that of the command.
    """
    wanted = ctx.meta[BEHIND]
    if not wanted:
        raise click.UsageError("you must specify at least one command for the container, behind --")

    async def run(found: FoundJob) -> int:
        async with cluster_of(found, where) as cluster:
            pods = await pods_of(found, cluster)
            pod = first_pod(pods)
            if len(pods) > 1 and not quiet:
                note(f"Found {len(pods)} pods, using pod/{name_of(pod)}")
            chosen, text = chosen_container(pod, container)
            if text and not quiet:
                note(text)
            flags = [flag for flag, is_set in (("-i", stdin), ("-t", tty), ("-q", quiet)) if is_set]
            call = ["exec", *flags, name_of(pod), "-c", chosen.name, "--", *wanted]
            return await run_kubectl(cluster, found.place.job.namespace, call)

    ctx.exit(with_job(where, job, run))
