"""
The recording of a check: a line for each change of its list, its scores and its running Workloads.

Pure. A line is a JSON object: `time`, `check`, `listed`, `draining` (managed clusters, as listed), and the
changes of `scores` (cluster → score) and `running` (namespace/name → cluster and GPUs), in which null removes
an entry. The last line has the end of the recording.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, AwareDatetime, Field, ValidationError

from kubectl_placement.hub.dump import InvalidManifest, Object
from kubectl_placement.hub.hub_view import OCM_DECIDES, HubView
from kubectl_placement.status.model import CheckStatus
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, PLACEMENT_SCORE
from placement_ac.core.api.decode import kueue_object, scores
from placement_ac.core.api.decode import placement as parsed
from placement_ac.core.api.shapes import ApiModel
from placement_ac.core.decisions.ocm import score_of


class RunningWorkload(ApiModel):
    """The cluster that a Workload runs on, and its GPUs."""

    cluster: str
    gpus: int = 0


def _in_utc(time: datetime) -> datetime:
    """Raises ValueError for a time that has no year in UTC."""
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("use a time in the years 1 to 9999 (UTC)") from None


class _RecordLine(ApiModel):
    time: Annotated[AwareDatetime, AfterValidator(_in_utc)]
    check: str
    listed: tuple[str, ...]
    draining: tuple[str, ...]
    scores: dict[str, int | None] = Field(default_factory=dict)
    running: dict[str, RunningWorkload | None] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedState:
    """The state of a check from `time` (UTC) on."""

    time: datetime
    listed: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    scores: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, RunningWorkload] = field(default_factory=dict)


# -- the present state


def current_state(view: HubView, check_status: CheckStatus, *, all_scores: bool = True) -> RecordedState:
    """Return the present state of a check. `all_scores` False: no scores of clusters without a row."""
    clusters = {row.cluster_object: row.name for row in check_status.clusters}
    raw = view.dump.find(MULTIKUEUE_CONFIG, check_status.config or "")
    config = kueue_object(raw) if raw else None
    names = config.listed if config else ()
    leaving = config.draining if config else {}
    return RecordedState(
        time=view.now,
        listed=tuple(clusters.get(name, name) for name in names),
        draining=tuple(clusters.get(name, name) for name in names if name in leaving),
        scores=_scores(
            view, check_status, None if all_scores else [row.name for row in check_status.clusters]
        ),
        running={
            f"{job.namespace}/{job.name}": RunningWorkload(cluster=job.cluster, gpus=job.gpus)
            for job in check_status.jobs
            if job.state == "running"
        },
    )


def _scores(view: HubView, check_status: CheckStatus, among: Collection[str] | None = None) -> dict[str, int]:
    """Return the scores of the selected clusters, and of the others by the same prioritizers.

    If OCM writes scores into its decisions, only those of selected clusters are known. `among`: the others
    that count; None: all.
    """
    selected = {row.name: row.score for row in check_status.clusters if row.score is not None}
    placement = view.placement(check_status.placement.rpartition("/")[2])
    prioritizers = parsed(placement).prioritizers if placement else ()
    if not OCM_DECIDES or view.writes_scores or not prioritizers:
        return selected if any(selected.values()) else {}
    resources = {prioritizer.resource_name for prioritizer in prioritizers}
    addon_scores = {score.meta.id: score for score in map(scores, _raw(view, resources, among))}
    scored = {cluster for cluster, resource in addon_scores if resource in resources}
    return {name: score_of(name, prioritizers, addon_scores, view.now) for name in sorted(scored)} | selected


def _raw(view: HubView, resources: Collection[str], among: Collection[str] | None) -> Iterable[Object]:
    """Return the AddOnPlacementScores: all, or those of these resources `among` these clusters."""
    if among is None:
        return view.dump.of(PLACEMENT_SCORE)
    known = view.dump.by_key(PLACEMENT_SCORE)
    return [known[key] for key in product(among, resources) if key in known]


# -- lines of the file


def record_line(check: str, before: RecordedState | None, now: RecordedState) -> str:
    """Return the line with the changes since `before`."""
    known = before or RecordedState(now.time)
    line = {
        "time": now.time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "check": check,
        "listed": now.listed,
        "draining": now.draining,
        "scores": _changed(known.scores, now.scores),
        "running": {
            key: run and run.model_dump() for key, run in _changed(known.running, now.running).items()
        },
    }
    return orjson.dumps(line).decode() + "\n"


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    gone = dict.fromkeys(key for key in before if key not in now)
    return gone | {key: value for key, value in now.items() if before.get(key) != value}


def read_recording(lines: Iterable[str], name: str) -> tuple[str, list[RecordedState]]:
    """Return the check, and its states in their order. Raises InvalidManifest, which names file and line."""
    checks: dict[str, None] = {}
    states: list[RecordedState] = []
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = _RecordLine.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise InvalidManifest(
                f"{name}, line {number}: {where}: {first['msg']}".replace(": :", ":")
            ) from None
        checks[line.check] = None
        states.append(_next_state(states[-1] if states else None, line))
    if not states:
        raise InvalidManifest(f"{name}: it contains no recording")
    if len(checks) > 1:
        raise InvalidManifest(f"{name}: it has several checks: {', '.join(checks)}")
    return next(iter(checks)), sorted(states, key=lambda state: state.time)


def _next_state(before: RecordedState | None, line: _RecordLine) -> RecordedState:
    known = before or RecordedState(line.time)
    scores_now, running = {**known.scores, **line.scores}, {**known.running, **line.running}
    return RecordedState(
        time=line.time,
        listed=line.listed,
        draining=line.draining,
        scores={key: value for key, value in scores_now.items() if value is not None},
        running={key: value for key, value in running.items() if value is not None},
    )
