"""The three stories, step by step; and with credentials that are made, what that adds to them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from placement_ac.core.api.constants import DRAIN
from placement_ac.lab.demo.steps import (
    LABEL,
    Programme,
    Step,
    applied,
    apply_told,
    deleted,
    in_turn,
    label,
    nothing,
    renew,
)
from placement_ac.lab.demo.story3 import CARELESS, DEMO2, ENDINGS, SCENES, Way

T4: Final = "nvidia-tesla-t4"
DEMO1: Final = "placement-demo1"

ALL_CLUSTERS: Final = Step(
    1,
    "All clusters of the set, nothing written by hand",
    apply_told("multikueue-setup-demo1.yaml"),
    applied("multikueue-setup-demo1.yaml"),
    DEMO1,
    ("cluster1", "cluster2", "cluster3"),
)
BY_LABEL: Final = Step(
    2,
    "The clusters with a T4, by label",
    (
        f"kubectl label managedcluster cluster2 cluster3 {LABEL}={T4}",
        *apply_told("placement-demo2-1.yaml", "multikueue-setup-demo2.yaml"),
    ),
    in_turn(
        label(T4, "cluster2", "cluster3"),
        applied("placement-demo2-1.yaml", "multikueue-setup-demo2.yaml"),
    ),
    DEMO2,
    ("cluster2", "cluster3"),
)
LABEL_PUT_ON: Final = Step(
    2,
    "A T4 is put into cluster1: it comes in",
    (f"kubectl label managedcluster cluster1 {LABEL}={T4}",),
    label(T4, "cluster1"),
    DEMO2,
    ("cluster1", "cluster2", "cluster3"),
)
LABEL_TAKEN_OFF: Final = Step(
    2,
    "It is taken out again: cluster1 goes",
    (f"kubectl label managedcluster cluster1 {LABEL}-",),
    label(None, "cluster1"),
    DEMO2,
    ("cluster2", "cluster3"),
)


# -- with credentials that are made

STORY_1_IS_OVER: Final = Step(
    1,
    "The story is over: nothing is left of it",
    ("kubectl delete -f samples/multikueue-setup-demo1.yaml",),
    deleted("multikueue-setup-demo1.yaml"),
    DEMO1,
    (),
    made=(),
    gone=True,
)
RENEWED: Final = Step(
    2,
    "OCM renews a token: the kubeconfig follows",
    ("OCM's agent on cluster3 reports a new token",),
    renew("cluster3"),
    DEMO2,
    ("cluster2", "cluster3"),
    made=("cluster2", "cluster3"),
    renewed="cluster3",
)
LEFT_BEHIND: Final = Step(
    3,
    "cluster2 has left: nothing is left behind for it",
    ("nothing is done: what was made goes by itself",),
    nothing,
    DEMO2,
    ("cluster3",),
    made=("cluster3",),
)


def programme(story: int | None = None, way: Way = DRAIN, *, made: bool = False) -> Programme:
    """Return one story, or all of them, with the third one played in this way.

    `made`: credentials are made, and shown.
    """
    steps: tuple[Step, ...] = (ALL_CLUSTERS, BY_LABEL, LABEL_PUT_ON, LABEL_TAKEN_OFF, *SCENES[way])
    before = BY_LABEL
    if made:
        steps = tuple(_with_made(way))
        before = _before_story_3(way)
    return Programme(
        steps=tuple(step for step in steps if story in (None, step.story)),
        preparation=before if story == 3 else None,
        ending=ENDINGS[way] if story in (None, 3) else None,
    )


def _with_made(way: Way) -> Iterator[Step]:
    """Yield the steps of all stories.

    A careless list makes no credentials: for it, Story 1's check stays, and what was made for that one.
    """
    if way == CARELESS:
        everywhere = ALL_CLUSTERS.clusters
        for step in (ALL_CLUSTERS, BY_LABEL, RENEWED, LABEL_PUT_ON, LABEL_TAKEN_OFF, *SCENES[way]):
            yield replace(step, made=everywhere)
        return
    yield from (_making(ALL_CLUSTERS), STORY_1_IS_OVER)
    yield from (_making(BY_LABEL), RENEWED, _making(LABEL_PUT_ON), _making(LABEL_TAKEN_OFF))
    *scene, last = SCENES[way]
    yield from (*map(_making, scene), last, LEFT_BEHIND)


def _making(step: Step) -> Step:
    """Return the step with credentials made for the clusters that are listed, and for no other."""
    return replace(step, made=step.clusters)


def _before_story_3(way: Way) -> Step:
    if way != CARELESS:
        return _making(BY_LABEL)
    act = in_turn(ALL_CLUSTERS.act, BY_LABEL.act)
    return replace(BY_LABEL, act=act, made=ALL_CLUSTERS.clusters)


STEPS: Final = programme().steps
"""What is shown when nothing else is asked for."""
