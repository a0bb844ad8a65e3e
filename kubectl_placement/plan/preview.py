"""
Preview the controller's writes for a Placement: those it makes now, and those it makes once jobs have ended.

Pure. The writes come from `plan` and `diff`; this module applies them to copies of the objects.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, Literal

from kubectl_placement.hub.dump import Dump, Object, condition_of
from kubectl_placement.hub.hub_view import PASSED, all_elapsed_but
from placement_ac.core.api.constants import ANNOTATION_DRAINING, FIELD_MANAGER, MULTIKUEUE_CONFIG, Kind
from placement_ac.core.api.decode import kueue_object
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.schemas import Condition
from placement_ac.core.api.text import duration_text
from placement_ac.core.api.to_yaml import to_yaml
from placement_ac.core.inputs.state import Plan, SinceKind, Snapshot
from placement_ac.core.plan.diff import Apply, Delete, Phase, SetCondition, diff
from placement_ac.core.plan.plan import plan

Verb = Literal["create", "apply", "delete", "setCondition"]
AT_ONCE: Final = "at once"
JOBS_ENDED: Final = "when its jobs have ended"
_SHOWN_METADATA: Final = ("name", "namespace", "labels", "annotations", "ownerReferences")
"""The metadata fields that a diff shows."""
CONDITION_FIELDS: Final = ("type", "status", "reason", "message")


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A write by the controller. `diff`: a unified diff of the YAML before and after.

    `when`: "at once", "when its jobs have ended", or how long after that.
    """

    verb: Verb
    kind: str
    name: str
    when: str
    diff: str


def preview_writes(snapshot: Snapshot, dump: Dump, *, waits: bool) -> tuple[Plan, tuple[PlannedWrite, ...]]:
    """Return the plan in effect at once, and the writes that follow. `waits`: leaving clusters have jobs."""
    objects = _PreviewedObjects(dump)
    stages = tuple(_stages(snapshot, waits=waits))
    writes: list[PlannedWrite] = []
    for stage, when in stages:
        now = objects.snapshot_after(stage)
        writes += objects.carry_out(diff(now, plan(now)), when)
    return plan(stages[0][0]), tuple(writes)


def _stages(snapshot: Snapshot, *, waits: bool) -> Iterator[tuple[Snapshot, str]]:
    """Yield what the controller sees one after the other, but for its own writes, and when that is."""
    ended, policy = replace(snapshot, workloads=()), snapshot.policy
    standing_by = (SinceKind.STANDING_BY,) if policy.unlist_after else ()
    first = all_elapsed_but(*standing_by, SinceKind.RETAINED)
    yield replace(snapshot if waits else ended, all_ages=first), AT_ONCE
    if waits:
        yield replace(ended, all_ages=first), JOBS_ENDED
    if standing_by:
        then = all_elapsed_but(SinceKind.RETAINED)
        yield (
            replace(ended, all_ages=then),
            f"{duration_text(policy.unlist_after)} after its last job has ended",
        )
    yield replace(ended, all_ages=PASSED), f"{duration_text(policy.retention)} after it has left the list"


class _PreviewedObjects:
    """The objects of one Placement after the writes so far."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump
        self._objects: dict[tuple[Kind, str], Object | None] = {}
        self._conditions: dict[str, Object] = {}

    def carry_out(self, phases: Iterable[Phase], when: str) -> Iterator[PlannedWrite]:
        """Apply the writes and yield each; those on Workloads are left out."""
        for action in chain.from_iterable(phases):
            if isinstance(action, Apply | Delete):
                id_ = action.kind, action.name
                before = self._objects.get(id_, self._dump.find(*id_))
                self._objects[id_] = after = (
                    _after_apply(before, action) if isinstance(action, Apply) else None
                )
                verb: Verb = "delete" if after is None else "apply" if before else "create"
                yield _write(verb, *id_, when, _visible_part(before), _visible_part(after))
            elif isinstance(action, SetCondition):
                present = condition_of(self._dump.find(action.kind, action.name), action.condition["type"])
                sides = map(
                    _visible_condition, (self._conditions.get(action.name, present), action.condition)
                )
                self._conditions[action.name] = action.condition
                yield _write("setCondition", action.kind, action.name, when, *sides)

    def snapshot_after(self, snapshot: Snapshot) -> Snapshot:
        """Return the controller's inputs after the writes."""
        clusters = dict(snapshot.objects.clusters)
        config = snapshot.objects.config
        for (kind, name), obj in self._objects.items():
            if kind == MULTIKUEUE_CONFIG:
                config = _as_kueue_object(obj, config) if obj else None
            elif obj is None:
                clusters.pop(name, None)
            else:
                clusters[name] = _as_kueue_object(obj, clusters.get(name))
        active = {name: Condition.model_validate(one) for name, one in self._conditions.items()}
        checks = [
            replace(check, active=active.get(check.meta.name, check.active)) for check in snapshot.checks.ours
        ]
        return replace(
            snapshot,
            checks=replace(snapshot.checks, ours=tuple(checks)),
            objects=replace(snapshot.objects, config=config, clusters=clusters),
        )


def _after_apply(there: Object | None, action: Apply) -> Object:
    """Return the object after our server-side apply."""
    mine: Object = action.body["metadata"]
    before: Object = dict((there or {}).get("metadata") or {})
    kept = {
        key: text for key, text in (before.get("annotations") or {}).items() if key != ANNOTATION_DRAINING
    }
    metadata: dict[str, Any] = before | {
        "name": action.name,
        "labels": (before.get("labels") or {}) | mine["labels"],
        "annotations": kept | mine.get("annotations", {}),
        "ownerReferences": _owners(before, action),
        "managedFields": [_managed_fields(mine)],
    }
    metadata = {key: value for key, value in metadata.items() if value}
    return (there or {}) | {"metadata": metadata, "spec": action.body.get("spec", {})}


def _owners(before: Object, action: Apply) -> list[Object]:
    """Return the owners in their present order, without those that we no longer want."""
    wanted = {owner["uid"]: owner for owner in action.body["metadata"].get("ownerReferences", ())}
    known = action.observed.applied_fields.owner_uids if action.observed else frozenset()
    there = {owner.get("uid"): owner for owner in before.get("ownerReferences") or ()}
    kept = {uid: wanted.pop(uid, owner) for uid, owner in there.items() if uid in wanted or uid not in known}
    return [*kept.values(), *wanted.values()]


def _managed_fields(mine: Object) -> Object:
    fields: Object = {
        "f:labels": {f"f:{label}": {} for label in mine["labels"]},
        "f:annotations": {f"f:{name}": {} for name in mine.get("annotations", ())},
    }
    written = {"f:metadata": fields, "f:spec": {"f:clusters": {}}}
    return {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": written}


def _as_kueue_object(obj: Object, before: KueueObject | None) -> KueueObject:
    return replace(kueue_object(obj), active=before.active if before else None)


# -- as text


def _write(
    verb: Verb, kind: Kind, name: str, when: str, before: Object | None, after: Object | None
) -> PlannedWrite:
    title = f"{kind.kind}/{name}"
    lines = difflib.unified_diff(_lines(before), _lines(after), title, title, lineterm="")
    return PlannedWrite(verb, kind.kind, name, when, "\n".join(lines))


def _lines(obj: Object | None) -> list[str]:
    if obj is None:
        return []
    return to_yaml(obj, width=10_000).splitlines()


def _visible_part(obj: Object | None) -> Object | None:
    """Return the part of an object that a diff shows: no status, no fields that the API server sets."""
    if obj is None:
        return None
    metadata = {key: obj["metadata"][key] for key in _SHOWN_METADATA if obj["metadata"].get(key)}
    return {"metadata": metadata, "spec": obj.get("spec", {})}


def _visible_condition(condition: Mapping[str, Any]) -> Object | None:
    return {key: condition.get(key, "") for key in CONDITION_FIELDS} if condition else None
