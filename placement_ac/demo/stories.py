"""The three stories, step by step."""

from typing import Final

from placement_ac.demo.scene import DEMO2, ENDINGS, SCENES, Way
from placement_ac.demo.steps import LABEL, Programme, Step, applied, apply_told, in_turn, label
from placement_ac.names import DRAIN

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


def programme(story: int | None = None, way: Way = DRAIN) -> Programme:
    """Return one story, or all of them, with the third one played in this way."""
    steps = (ALL_CLUSTERS, BY_LABEL, LABEL_PUT_ON, LABEL_TAKEN_OFF, *SCENES[way])
    return Programme(
        steps=tuple(step for step in steps if story in (None, step.story)),
        preparation=BY_LABEL if story == 3 else None,
        ending=ENDINGS[way] if story in (None, 3) else None,
    )


STEPS: Final = programme().steps
"""What is shown when nothing else is asked for."""
