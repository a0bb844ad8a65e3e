"""
Read and change the conditions and checks of a Workload.

Functions named set_… and remove_… change their argument; all others are pure.
"""

import marshal
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

Obj = dict[str, Any]

QUOTA_RESERVED: Final = "QuotaReserved"
ADMITTED: Final = "Admitted"
EVICTED: Final = "Evicted"
REQUEUED: Final = "Requeued"
FINISHED: Final = "Finished"
DEACTIVATION_TARGET: Final = "DeactivationTarget"

REJECTED: Final = "Rejected"


def condition(item: Mapping[str, Any], kind: str) -> Obj | None:
    """Return a copy of the condition; None: there is none."""
    entry = _condition(item, kind)
    return dict(entry) if entry else None


def _condition(item: Mapping[str, Any], kind: str) -> Obj | None:
    for entry in (item.get("status") or {}).get("conditions") or ():
        if entry["type"] == kind:
            return entry  # type: ignore[no-any-return]
    return None


def is_condition_true(item: Mapping[str, Any], kind: str) -> bool:
    """Return whether the condition exists and is True."""
    return (_condition(item, kind) or {}).get("status") == "True"


def condition_field(item: Mapping[str, Any], kind: str, field: str = "message") -> str:
    """Return a field of the condition, "" if it has none."""
    return str((_condition(item, kind) or {}).get(field, ""))


def checks_of(item: Mapping[str, Any]) -> list[Obj]:
    return list((item.get("status") or {}).get("admissionChecks") or ())


def check_of(item: Mapping[str, Any], name: str) -> Obj | None:
    return next((dict(check) for check in checks_of(item) if check["name"] == name), None)


def nominated_of(item: Mapping[str, Any]) -> list[str]:
    return list((item.get("status") or {}).get("nominatedClusterNames") or ())


def cluster_of(item: Mapping[str, Any]) -> str:
    """Return `status.clusterName`, "" if it is not set."""
    return str((item.get("status") or {}).get("clusterName") or "")


def is_active(item: Mapping[str, Any]) -> bool:
    """Return `spec.active`, which defaults to True."""
    return bool((item.get("spec") or {}).get("active", True))


def is_deleted(item: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in item["metadata"]


def is_suspended(job: Mapping[str, Any]) -> bool:
    return bool(job["spec"].get("suspend", False))


def job_is_busy(job: Mapping[str, Any] | None) -> bool:
    """Return whether the Job has active Pods."""
    return bool(job and (job.get("status") or {}).get("active"))


def job_is_finished(job: Mapping[str, Any]) -> bool:
    return is_condition_true(job, "Complete") or is_condition_true(job, "Failed")


def format_time(now: float) -> str:
    """Return POSIX seconds as a metav1.Time: UTC, whole seconds."""
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(stamped: str) -> float:
    """Return a metav1.Time as POSIX seconds."""
    return datetime.fromisoformat(stamped).timestamp()


def set_condition(item: Obj, kind: str, value: bool, reason: str, message: str, now: float) -> None:
    """Set a condition in `item`, which is changed; its transition time changes only with its status."""
    wanted = {"type": kind, "status": str(value), "reason": reason, "message": message}
    before = condition(item, kind)
    same = before is not None and before["status"] == wanted["status"]
    wanted["lastTransitionTime"] = before["lastTransitionTime"] if before and same else format_time(now)
    entry = wanted | {"observedGeneration": item["metadata"].get("generation", 1)}
    conditions = item.setdefault("status", {}).setdefault("conditions", [])
    for index, known in enumerate(conditions):
        if known["type"] == kind:
            conditions[index] = entry
            return
    conditions.append(entry)


def remove_condition(item: Obj, kind: str) -> None:
    """Remove a condition from `item`, which is changed."""
    status = item.get("status") or {}
    if "conditions" in status:
        status["conditions"] = [entry for entry in status["conditions"] if entry["type"] != kind]


def set_check(item: Obj, name: str, now: float, **fields: Any) -> None:
    """Change the entry of a check in `item`, which is changed."""
    for check in checks_of(item):
        if check["name"] == name:
            changed = check["state"] != fields.get("state", check["state"])
            check.update(fields | ({"lastTransitionTime": format_time(now)} if changed else {}))


def deep_copy(item: Mapping[str, Any]) -> Obj:
    """Return a deep copy of plain JSON (much faster than `copy.deepcopy`)."""
    # Version 2 of the format keeps nothing shared within the copy.
    copied: Obj = marshal.loads(marshal.dumps(dict(item), 2))  # noqa: S302  # the bytes are our own
    return copied
