"""
Play steps, one after the other, and tell what came of each.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from placement_ac.kube.client import Client, Object
from placement_ac.lab.demo.credentials import MadeSeen
from placement_ac.lab.demo.steps import JOB_NAME, Backstage, Ending, Programme, Step, came_out_right, fleet
from placement_ac.lab.demo.viewer import JobSeen, Viewer

STEP_SECONDS: Final = 10.0
"""How long a step may take to come out right."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step came to. Times in milliseconds; `reaction` is from OCM's decision to the config.

    `job` is there where a step is about one, `made` where it is about credentials that are made.
    """

    number: int
    step: Step
    right: bool
    elapsed: float
    reaction: float | None
    decided: Sequence[str]
    objects: Sequence[Object]
    condition: dict[str, Any]
    job: JobSeen | None = None
    made: MadeSeen | None = None


@dataclass(frozen=True, slots=True)
class Finale:
    """How it ended for the job, by the workers' own count."""

    job: JobSeen
    ending: Ending

    @property
    def right(self) -> bool:
        return self.job.account == self.ending.wanted


class Show(Protocol):
    """Shows what happens to whoever looks on."""

    def begins(self, number: int, step: Step) -> None: ...

    def ends(self, outcome: Outcome) -> None: ...

    def is_over(self, outcomes: Sequence[Outcome], finale: Finale | None) -> None: ...


async def play(programme: Programme, client: Client, backstage: Backstage, seen: Viewer, show: Show) -> bool:
    """Play it; return whether every step came out right, and the job ended as it must."""
    await fleet(client, backstage)
    if programme.preparation:
        await _act(0, programme.preparation, client, backstage, seen)
    outcomes = []
    for number, step in enumerate(programme.steps, start=1):
        show.begins(number, step)
        outcomes.append(await _act(number, step, client, backstage, seen))
        show.ends(outcomes[-1])
    finale = Finale(seen.job(JOB_NAME), programme.ending) if programme.ending else None
    show.is_over(outcomes, finale)
    return all(outcome.right for outcome in outcomes) and (finale is None or finale.right)


async def _act(number: int, step: Step, client: Client, backstage: Backstage, seen: Viewer) -> Outcome:
    began = time.monotonic()
    if seen.making:
        seen.making.mark()
    await step.act(client, backstage)
    config_at = None
    if await seen.until(lambda: step.lists(seen), STEP_SECONDS):
        config_at = time.monotonic()
    right = await seen.until(lambda: came_out_right(step, seen), STEP_SECONDS if config_at else 0)
    decided_at = seen.decided_at(step.placement) or began
    job = seen.job(JOB_NAME) if step.job else None
    made = seen.making.seen() if seen.making and step.made is not None else None
    objects = (*_listed(step, seen), *(job.objects if job else ()), *(made.objects if made else ()))
    return Outcome(
        number=number,
        step=step,
        right=right,
        elapsed=(time.monotonic() - began) * 1000,
        reaction=max(0.0, config_at - decided_at) * 1000 if config_at and decided_at > began else None,
        decided=seen.decided(step.placement),
        objects=[_plain(obj) for obj in objects],
        condition=dict(seen.condition(ADMISSION_CHECK, step.placement)),
        job=job,
        made=made,
    )


def _listed(step: Step, seen: Viewer) -> Iterable[Object]:
    config = seen.get(MULTIKUEUE_CONFIG, step.placement)
    if config:
        yield config
        for name in config["spec"]["clusters"]:
            cluster = seen.get(MULTIKUEUE_CLUSTER, name)
            if cluster:
                yield cluster


def _plain(obj: Object) -> Object:
    """Leave out the managed fields, as kubectl does."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return obj | {"metadata": metadata}
