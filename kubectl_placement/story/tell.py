"""Tell the story of one job. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from kubectl_placement.explain.workload import WorkloadExplanation
from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.queue_position import local_queue_position
from kubectl_placement.status.taken_up import NOT_ASKED, Copies, ran_twice
from kubectl_placement.story.hub_jobs import HubJobs
from kubectl_placement.story.lines import job_line
from kubectl_placement.story.model import JobState, JobStory
from kubectl_placement.story.pods import PodsThere, pods_wait
from kubectl_placement.story.steps import steps_of
from kubectl_placement.story.waits import OneJob, leaves
from placement_ac.core.api.constants import EVENT


def tell_story(
    view: HubView,
    raw: Object,
    pods: PodsThere | None = None,
    explanation: WorkloadExplanation | None = None,
    notes: Iterable[str] = (),
    copies: Copies = NOT_ASKED,
) -> JobStory:
    """Return the story of a Workload on the hub, with its Pods and where else it could go, if known.

    `copies`: those of the workers that were asked.
    """
    job = OneJob(raw, HubJobs(view))
    line = job_line(job, copies)
    stays = line.state == JobState.RUNNING and leaves(job) is None
    if stays and pods and (why := pods_wait(pods)):
        line = replace(line, waits_for=f"its Pods on {pods.cluster}: {why}")
    return JobStory(
        job=line,
        position=local_queue_position(view, raw),
        steps=steps_of(job, view.dump.of(EVENT)),
        pods=pods,
        explanation=explanation,
        notes=(*filter(None, (ran_twice(view, raw, copies),)), *notes),
    )
