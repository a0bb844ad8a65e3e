"""`placement-ac job`: the story of one job: what happened to it, where it is, and what it waits for."""

from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace

import click
from rich.console import RenderableType

from kubectl_placement.cli.controller_line import controller_problem
from kubectl_placement.cli.hub_options import HubReading, read_once, watch_hub
from kubectl_placement.cli.job_access import job_argument, with_hub
from kubectl_placement.cli.job_options import (
    STORY_KINDS,
    JobSource,
    read_story,
    require_jobs,
    story_options,
    unseen,
    why_unexplained,
)
from kubectl_placement.cli.job_pods import PodReader, pods_by_access
from kubectl_placement.cli.job_texts import story_texts
from kubectl_placement.cli.managed_namespaces import read_unmanaged, unmanaged_in_dump
from kubectl_placement.cli.output import emit, safe_text, watch_printer
from kubectl_placement.cli.worker_options import (
    WorkerOptions,
    connector_of,
    quota_options,
    read_copies,
    require_hub,
)
from kubectl_placement.explain.workload import explain_workload
from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.record import relocated
from kubectl_placement.jobs.lookup import SubjectNotFound, find_workloads
from kubectl_placement.jobs.worker_quota import workers_to_ask
from kubectl_placement.readers.hub_reader import Namespaces
from kubectl_placement.readers.quota_reader import read_quota
from kubectl_placement.status.taken_up import NOT_ASKED, Copies, taken_up
from kubectl_placement.story.hub_jobs import HubJobs
from kubectl_placement.story.lines import job_line
from kubectl_placement.story.model import FINISHED, JobStory
from kubectl_placement.story.tell import tell_story
from kubectl_placement.story.waits import OneJob
from placement_ac.cli.documents import Form, output
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import LABEL_PLACEMENT, WORKLOAD
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.fields import get_str
from placement_ac.kube.client import Client


@click.command("job", cls=ReadCommand, epilog="Example:  placement-ac job my-training -n team-a")
@job_argument("words")
@story_options
@quota_options
@output("wide", "json", "yaml")
@click.option(
    "-w", "--watch", is_flag=True, help="Print it again after each change on the hub, until Ctrl-C."
)
def command(
    words: tuple[str, ...], where: JobSource, wanted: WorkerOptions | None, form: Form, watch: bool
) -> None:
    """Tell the story of a job: where it is and since when, what happened to it, and what it waits for.

    NAME is that of a Job, JobSet, PyTorchJob or whatever Kueue has queued, or of its Workload; with TYPE
    (also TYPE/NAME) if there are several of that name. The first line says what it waits for and what to do.
    Of a job that waits, the table of clusters says which filter refuses which cluster, as `explain workload`
    does; with --workers the quota of the workers counts. The right to list Workloads in its namespace is
    enough; what else cannot be seen is named.
    """
    if watch and where.dump_files:
        raise click.UsageError("use --watch without --from-dump: a dump never changes")
    require_hub(where, wanted)
    shown = JobCommand(words, where, form, wanted)
    if where.dump_files:
        reading, space = read_once(where, STORY_KINDS), where.space("")
        try:
            shown.show(shown.story(reading, space))
        except SubjectNotFound as error:
            raise _with_reason(error, unmanaged_in_dump(reading), space) from None
        return
    with_hub(where, shown.follow if watch else shown.once)


def _with_reason(error: SubjectNotFound, reading: HubReading, space: str) -> SubjectNotFound:
    """Return the error, with the reason if it is that Kueue leaves all jobs of the namespace alone."""
    return SubjectNotFound("; ".join(filter(None, (str(error), reading.view.unmanaged.get(space)))))


@dataclass(frozen=True)
class JobCommand:
    """The words on the command line, and how their job is shown."""

    words: tuple[str, ...]
    where: JobSource
    form: Form
    wanted: WorkerOptions | None = None
    """None: workers are not asked for their quota."""

    def pods(self, reading: HubReading) -> PodReader:
        """Return how Pods are read."""
        return pods_by_access(self.where.access(reading.view.settings.kueue_namespace))

    async def once(self, client: Client) -> None:
        space = self.where.space(client.login.namespace)
        reading, within = await read_story(client, self.where, space)
        try:
            self.show(await self.shown(client, reading, space, within))
        except SubjectNotFound as error:
            raise _with_reason(error, await read_unmanaged(client, reading, [space]), space) from None

    async def follow(self, client: Client) -> None:
        """Show it after each change on the hub; workers are asked again then, and once a minute."""
        space = self.where.space(client.login.namespace)
        _, within = await read_story(client, self.where, space)
        with watch_printer(self.form) as printer:
            async with aclosing(watch_hub(client, self.where, STORY_KINDS, within=within)) as readings:
                async for reading in readings:
                    shown = await self.shown(client, reading, space, within)
                    printer.show(shown.document, shown.texts, {})

    async def shown(self, client: Client, reading: HubReading, space: str, within: Namespaces) -> "ShownJob":
        """Return the whole story. Raises as `story`, and BadSettings."""
        reading = await self.with_quota(client, reading, space)
        shown = self.story(reading, space, sees_all=WORKLOAD not in within)
        return await self.with_pods(client, shown)

    async def with_quota(self, client: Client, reading: HubReading, space: str) -> HubReading:
        """Return the hub with the quota of the workers, if that is wanted and the job waits."""
        raw = self.found(reading, space)
        if not self.wanted or why_unexplained(reading) or get_str(raw, "status", "clusterName"):
            return reading
        workers = workers_to_ask(reading.view, workload_with_job(raw))
        connector = connector_of(client, reading.view, self.wanted)
        return replace(reading, view=await read_quota(connector, reading.view, workers))

    def found(self, reading: HubReading, space: str) -> Object:
        """Return the Workload. Raises SubjectNotFound, ClickException."""
        require_jobs(reading, space)
        return find_workloads(reading.dump.of(WORKLOAD), self.words, space)

    def story(self, reading: HubReading, space: str, *, sees_all: bool = True) -> "ShownJob":
        """Return the story without Pods. Raises as `found`. `sees_all`: Workloads of all namespaces."""
        raw = self.found(reading, space)
        line = job_line(OneJob(raw, HubJobs(reading.view)))
        unexplained = "" if line.state in FINISHED else why_unexplained(reading)
        explanation = None if unexplained or line.state in FINISHED else explain_workload(reading.view, raw)
        if explanation and not sees_all:  # others may wait before it that are not seen
            explanation = replace(explanation, position=None)
        notes = (*unseen(reading), *filter(None, (unexplained,)))
        return ShownJob(reading, raw, tell_story(reading.view, raw, None, explanation, notes), notes)

    async def with_pods(self, client: Client, shown: "ShownJob") -> "ShownJob":
        job = shown.story.job
        if not job.cluster_object or job.state in FINISHED:
            return shown
        view = shown.reading.view
        copies = await self.copies(client, shown)
        taken = taken_up(view, shown.raw, copies)
        there_raw = relocated(shown.raw, taken.cluster_objects if taken else ())
        cluster = view.managed_cluster_of(get_str(there_raw, "status", "clusterName"))
        there, unread = await self.pods(shown.reading)(client, there_raw, cluster)
        problems = (
            f"the copies on {view.managed_cluster_of(name)} are unknown: {answer.problem}"
            for name, answer in copies.items()
            if answer.problem
        )
        notes = (*shown.notes, *problems, *unread)
        story = tell_story(view, shown.raw, there, shown.story.explanation, notes, copies)
        return replace(shown, story=story)

    async def copies(self, client: Client, shown: "ShownJob") -> Copies:
        """Return the copies on the workers of the job's Placement, if workers are to be asked."""
        view, here = shown.reading.view, shown.story.job.cluster_object
        if not self.wanted or why_unexplained(shown.reading) or here not in view.cluster_objects:
            return NOT_ASKED
        of_placement = view.cluster_objects[here].meta.labels.get(LABEL_PLACEMENT)
        clusters = {
            name: cluster
            for name, cluster in view.cluster_objects.items()
            if cluster.meta.labels.get(LABEL_PLACEMENT) == of_placement
        }
        answers = await read_copies(client, view, clusters.values(), self.wanted)
        return dict(zip(clusters, answers, strict=True))

    def show(self, shown: "ShownJob") -> None:
        emit(self.form, shown.document, shown.texts)


@dataclass(frozen=True)
class ShownJob:
    """The story of a job at one time."""

    reading: HubReading
    raw: Object
    story: JobStory
    notes: tuple[str, ...]
    """Those of the story that do not depend on workers."""

    @property
    def document(self) -> JobStory:
        problem = controller_problem(self.reading.view)
        return replace(self.story, notes=(*filter(None, (problem,)), *self.story.notes))

    def texts(self, wide: bool) -> Iterable[RenderableType]:
        view = self.reading.view
        if problem := controller_problem(view):
            yield safe_text(problem, "red")
        yield from story_texts(self.story, view.now, wide=wide)
