"""
Play steps, one after the other, and tell what came of each.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from placement_ac.demo.stories import FLEET, PREPARATIONS, STEPS, Step, came_out_right
from placement_ac.demo.viewer import Viewer
from placement_ac.kube import Client, Object
from placement_ac.names import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG

STEP_SECONDS: Final = 10.0
"""How long a step may take to come out right."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step came to. Times in milliseconds; `reaction` is from OCM's decision to the config."""

    number: int
    step: Step
    right: bool
    elapsed: float
    reaction: float | None
    decided: Sequence[str]
    objects: Sequence[Object]
    condition: dict[str, Any]


class Show(Protocol):
    """Shows what happens to whoever looks on."""

    def begins(self, number: int, step: Step) -> None: ...

    def ends(self, outcome: Outcome) -> None: ...

    def is_over(self, outcomes: Sequence[Outcome]) -> None: ...


def steps_of(story: int | None) -> Iterator[Step]:
    """Return the steps of one story, or of all of them."""
    return (step for step in STEPS if story in (None, step.story))


async def play(story: int | None, client: Client, seen: Viewer, show: Show) -> bool:
    """Play the steps; return whether every one came out right."""
    await FLEET(client)
    if story in PREPARATIONS:
        await _act(0, PREPARATIONS[story], client, seen)
    outcomes = []
    for number, step in enumerate(steps_of(story), start=1):
        show.begins(number, step)
        outcomes.append(await _act(number, step, client, seen))
        show.ends(outcomes[-1])
    show.is_over(outcomes)
    return all(outcome.right for outcome in outcomes)


async def _act(number: int, step: Step, client: Client, seen: Viewer) -> Outcome:
    began = time.monotonic()
    await step.act(client)
    config_at = None
    if await seen.until(lambda: seen.listed(step.placement) == step.wanted, STEP_SECONDS):
        config_at = time.monotonic()
    right = await seen.until(lambda: came_out_right(step, seen), STEP_SECONDS if config_at else 0)
    decided_at = seen.decided_at(step.placement)
    return Outcome(
        number=number,
        step=step,
        right=right,
        elapsed=(time.monotonic() - began) * 1000,
        reaction=max(0.0, config_at - decided_at) * 1000 if config_at and decided_at else None,
        decided=seen.decided(step.placement),
        objects=list(_objects(step, seen)),
        condition=dict(seen.condition(ADMISSION_CHECK, step.placement)),
    )


def _objects(step: Step, seen: Viewer) -> Iterable[Object]:
    config = seen.get(MULTIKUEUE_CONFIG, step.placement)
    if config:
        yield _plain(config)
        for name in config["spec"]["clusters"]:
            cluster = seen.get(MULTIKUEUE_CLUSTER, name)
            if cluster:
                yield _plain(cluster)


def _plain(obj: Object) -> Object:
    """Leave out the managed fields, as kubectl does."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return obj | {"metadata": metadata}
