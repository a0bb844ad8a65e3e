"""Moves that the controller does not make, whose budget is spent, or whose record cannot be read."""

from datetime import timedelta
from typing import Any, Final

from placement_ac.core.api.constants import ANNOTATION_MOVABLE, ANNOTATION_MOVES
from tests.kubectl_placement.doctor.broken_setups import WARN, Break, How, add, both, put, setting
from tests.support.healthy import NOW, PLACEMENT, Key
from tests.support.jobs_to_dispatch import raw_job

_CONFIG: Final[Key] = ("MultiKueueConfig", "", PLACEMENT)
ON: Final = setting("MOVES", "true")


def _entry(minutes: float) -> str:
    at = NOW - timedelta(minutes=minutes)
    return f"{PLACEMENT}:uid-{minutes}:cluster1:cluster2:better={at:%Y-%m-%dT%H:%M:%SZ}"


def _recorded(*entries: str) -> How:
    return put(_CONFIG, "metadata", "annotations", {ANNOTATION_MOVES: ",".join(entries)})


def _job(name: str) -> How:
    job: dict[str, Any] = raw_job(name, annotations={ANNOTATION_MOVABLE: "true"})
    job["status"]["admissionChecks"] = [{"name": PLACEMENT, "state": "Pending", "message": ""}]
    return add(job)


MOVES: Final = (
    Break(
        "jobs may be moved, and the controller moves none",
        both(*(_job(f"job-{number}") for number in range(4))),
        "moves",
        WARN,
        "4 jobs may be moved (default/job-0, default/job-1, default/job-2 and 1 more), and the controller"
        " runs without --moves",
        "kubectl set env -n placement-ac-system deployment/placement-ac PLACEMENT_AC_MOVES=true",
    ),
    Break(
        "the moves of this hour are used up",
        both(ON, _recorded(*map(_entry, range(50, 38, -1)))),
        "moves",
        WARN,
        f"check {PLACEMENT} has used up its 12 moves of this hour: the next one at 12:11:00Z; if that"
        " lasts, see why so many jobs are to move",
        "kubectl placement plan --moves --workers",
    ),
    Break(
        "somebody has written into the record of moves",
        both(ON, _recorded(_entry(5), "by-hand")),
        "moves",
        WARN,
        f"the annotation {ANNOTATION_MOVES} of MultiKueueConfig {PLACEMENT} has entries that cannot be read,"
        " such as 'by-hand': the budget does not count them",
        f"kubectl annotate multikueueconfigs.kueue.x-k8s.io {PLACEMENT} {ANNOTATION_MOVES}={_entry(5)}"
        " --overwrite",
    ),
    Break(
        "the record of moves is nothing but somebody else's text",
        both(ON, _recorded("by-hand")),
        "moves",
        WARN,
        f"the annotation {ANNOTATION_MOVES} of MultiKueueConfig {PLACEMENT} has entries that cannot be read,"
        " such as 'by-hand': the budget does not count them",
        f"kubectl annotate multikueueconfigs.kueue.x-k8s.io {PLACEMENT} {ANNOTATION_MOVES}-",
    ),
)
