"""The story of a job on a terminal: its state in one line, its steps, its Pods, and where else it may go."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from kubectl_placement.cli.explain_workload import choice_texts, position_text
from kubectl_placement.cli.output import age_text, plain_table, safe_text
from kubectl_placement.story.model import FINISHED, JobLine, JobState, JobStory
from kubectl_placement.story.pods import PodsThere
from placement_ac.core.api.fields import format_time

NOTHING: Final = "-"


def story_texts(story: JobStory, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    """Yield the story; `wide`: with the events of Pods, and the clusters where a placed job could go."""
    yield safe_text(headline(story.job, now), "bold")
    if story.explanation and story.explanation.position:
        yield safe_text(position_text("ClusterQueue", story.explanation.position))
    elif story.position:
        yield safe_text(position_text("LocalQueue", story.position))
    yield Text()
    yield from _steps(story)
    if story.pods:
        yield Text()
        yield from _pods(story.pods, wide=wide)
    if story.explanation and (wide or story.job.state == JobState.WAITING):
        yield from choice_texts(story.explanation, now, wide=wide)
    if notes := (*(story.explanation.notes if story.explanation else ()), *story.notes):
        yield Text()
        yield from (safe_text(f"({note})") for note in notes)


def headline(line: JobLine, now: datetime) -> str:
    """Return the state of a job, what it waits for and what to do, in one line."""
    where = f" on {line.cluster}" if line.cluster else ""
    age = age_of(line, now)
    when = "" if age == NOTHING else f", {age} ago" if line.state in FINISHED else f" for {age}"
    elsewhere = f"; it {line.elsewhere_why}" if line.elsewhere_why else ""
    waits = f"; it waits for {line.waits_for}" if line.waits_for else ""
    return f"{line.label}: {line.state}{where}{when}{elsewhere}{waits}" + (
        f"; {line.fix}" if line.fix else ""
    )


def age_of(line: JobLine, now: datetime) -> str:
    """Return for how long a job is in its state."""
    return age_text((now - line.since).total_seconds()) if line.since else NOTHING


def _steps(story: JobStory) -> Iterator[RenderableType]:
    table = plain_table("TIME", "AFTER", "STEP", "BY", "DETAIL")
    for step in story.steps:
        when = format_time(step.time) if step.time else NOTHING
        after = NOTHING if step.after is None else age_text(step.after)
        table.add_row(*map(safe_text, (when, after, step.what, step.by or NOTHING, step.detail)))
    yield table


def _pods(there: PodsThere, *, wide: bool) -> Iterator[RenderableType]:
    if there.problem:
        first, *others = there.problem.splitlines()
        yield safe_text(f"Pods on {there.cluster}: unknown: {first}")
        yield from map(safe_text, others)
    elif not there.pods:
        yield safe_text(f"Pods on {there.cluster}: none")
    else:
        yield safe_text(f"Pods on {there.cluster}", "bold")
        table = plain_table(
            "NAME", "READY", "PHASE", "RESTARTS", "NODE", "WHY", *(("EVENT",) if wide else ())
        )
        for pod in there.pods:
            cells = pod.name, pod.ready, pod.phase, str(pod.restarts), pod.node or NOTHING, pod.why or NOTHING
            table.add_row(*map(safe_text, (*cells, *((pod.event or NOTHING,) if wide else ()))))
        yield table
