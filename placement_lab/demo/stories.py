"""The steps of stories 1 to 3, and the steps that provisioned credentials add."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from placement_ac.core.api.constants import DRAIN
from placement_lab.demo.steps import (
    LABEL,
    Scenario,
    StoryStep,
    apply_commands,
    apply_samples,
    delete_sample,
    no_action,
    renew_token,
    sequence,
    set_label,
)
from placement_lab.demo.story3 import DEMO2, EXPECTED_RESULTS, STORY_3_STEPS, UNSAFE, Story3Mode

T4: Final = "nvidia-tesla-t4"
DEMO1: Final = "placement-demo1"

ALL_CLUSTERS: Final = StoryStep(
    1,
    "All clusters of the cluster set",
    apply_commands("multikueue-setup-demo1.yaml"),
    apply_samples("multikueue-setup-demo1.yaml"),
    DEMO1,
    ("cluster1", "cluster2", "cluster3"),
)
BY_LABEL: Final = StoryStep(
    2,
    "The clusters with a T4 GPU, by label",
    (
        f"kubectl label managedcluster cluster2 cluster3 {LABEL}={T4}",
        *apply_commands("placement-demo2-1.yaml", "multikueue-setup-demo2.yaml"),
    ),
    sequence(
        set_label(T4, "cluster2", "cluster3"),
        apply_samples("placement-demo2-1.yaml", "multikueue-setup-demo2.yaml"),
    ),
    DEMO2,
    ("cluster2", "cluster3"),
)
LABEL_ADDED: Final = StoryStep(
    2,
    "cluster1 gets the label: it is added",
    (f"kubectl label managedcluster cluster1 {LABEL}={T4}",),
    set_label(T4, "cluster1"),
    DEMO2,
    ("cluster1", "cluster2", "cluster3"),
)
LABEL_REMOVED: Final = StoryStep(
    2,
    "cluster1 loses the label: it is removed",
    (f"kubectl label managedcluster cluster1 {LABEL}-",),
    set_label(None, "cluster1"),
    DEMO2,
    ("cluster2", "cluster3"),
)


# -- with provisioned credentials

STORY_1_IS_OVER: Final = StoryStep(
    1,
    "Story 1 is deleted: nothing is left behind",
    ("kubectl delete -f samples/multikueue-setup-demo1.yaml",),
    delete_sample("multikueue-setup-demo1.yaml"),
    DEMO1,
    (),
    credentials_for=(),
    removed=True,
)
TOKEN_RENEWED: Final = StoryStep(
    2,
    "OCM renews a token: the kubeconfig is updated",
    ("OCM's agent on cluster3 reports a new token",),
    renew_token("cluster3"),
    DEMO2,
    ("cluster2", "cluster3"),
    credentials_for=("cluster2", "cluster3"),
    renewed="cluster3",
)
CREDENTIALS_REMOVED: Final = StoryStep(
    3,
    "cluster2 has left: its credentials are deleted",
    ("no action: the controller deletes them",),
    no_action,
    DEMO2,
    ("cluster3",),
    credentials_for=("cluster3",),
)


def scenario(story: int | None = None, mode: Story3Mode = DRAIN, *, provisioned: bool = False) -> Scenario:
    """Return the scenario of one story, or of all. `mode` applies to story 3.

    `provisioned`: the controller provisions the credentials, and the steps check them.
    """
    steps: tuple[StoryStep, ...] = (ALL_CLUSTERS, BY_LABEL, LABEL_ADDED, LABEL_REMOVED, *STORY_3_STEPS[mode])
    before = BY_LABEL
    if provisioned:
        steps = tuple(_steps_with_credentials(mode))
        before = _before_story_3(mode)
    return Scenario(
        steps=tuple(step for step in steps if story in (None, step.story)),
        preparation=before if story == 3 else None,
        expected=EXPECTED_RESULTS[mode] if story in (None, 3) else None,
    )


def _steps_with_credentials(mode: Story3Mode) -> Iterator[StoryStep]:
    """Yield the steps of all stories.

    The unsafe loop provisions no credentials, so Story 1's check stays and keeps those of all clusters.
    """
    if mode == UNSAFE:
        everywhere = ALL_CLUSTERS.clusters
        for step in (ALL_CLUSTERS, BY_LABEL, TOKEN_RENEWED, LABEL_ADDED, LABEL_REMOVED, *STORY_3_STEPS[mode]):
            yield replace(step, credentials_for=everywhere)
        return
    yield from (_with_credentials(ALL_CLUSTERS), STORY_1_IS_OVER)
    yield from (
        _with_credentials(BY_LABEL),
        TOKEN_RENEWED,
        _with_credentials(LABEL_ADDED),
        _with_credentials(LABEL_REMOVED),
    )
    *steps, last = STORY_3_STEPS[mode]
    yield from (*map(_with_credentials, steps), last, CREDENTIALS_REMOVED)


def _with_credentials(step: StoryStep) -> StoryStep:
    """Return the step that expects credentials for exactly the listed clusters."""
    return replace(step, credentials_for=step.clusters)


def _before_story_3(mode: Story3Mode) -> StoryStep:
    if mode != UNSAFE:
        return _with_credentials(BY_LABEL)
    action = sequence(ALL_CLUSTERS.action, BY_LABEL.action)
    return replace(BY_LABEL, action=action, credentials_for=ALL_CLUSTERS.clusters)


STEPS: Final = scenario().steps
"""The steps of `placement-ac demo` without options."""
