"""
How long a job waits before it gives up, by its own words: the annotation `…/give-up-after`. Pure.
"""

from typing import Final

from placement_ac.core.api.constants import ANNOTATION_GIVE_UP
from placement_ac.core.api.durations import DURATION_FORM, parse_duration
from placement_ac.core.api.job_spec import JobSpec
from placement_ac.core.api.text import shortened

GIVE_UP_MIN_SECONDS: Final = 60.0
"""Kueue may need seconds to place a job; one that gives up sooner would not have waited for it."""
GIVE_UP_MAX_SECONDS: Final = 10 * 365 * 86400.0
_CHARS_MAX: Final = 50


def patience(job: JobSpec) -> float | None:
    """Return how many seconds the job waits at most; None: for ever, or its annotation cannot be read."""
    text = job.annotation(ANNOTATION_GIVE_UP)
    seconds = parse_duration(text) if text and len(text) <= _CHARS_MAX else None
    return seconds if seconds and GIVE_UP_MIN_SECONDS <= seconds <= GIVE_UP_MAX_SECONDS else None


def patience_problem(job: JobSpec, *, is_on: bool) -> str:
    """Return what to correct, if the annotation is ignored; `is_on`: whether the setting allows it."""
    text = job.annotation(ANNOTATION_GIVE_UP)
    if not text:
        return ""
    if patience(job) is None:
        why = f"{DURATION_FORM}, at least 1m: {shortened(text)!r}"
        return f"correct the annotation {ANNOTATION_GIVE_UP}, it is ignored: {why}"
    off = f"ask an admin for the setting --give-up true: without it, {ANNOTATION_GIVE_UP} is ignored"
    return "" if is_on else off
