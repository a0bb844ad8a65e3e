"""
Leader election: who leads by a Lease, and the Lease that a candidate writes.

Pure: no I/O. Time is an argument, in seconds of a local clock that runs even while the process is stopped. As
in client-go, times in the Lease are not compared with it: a holder loses a Lease that has not changed for its
duration.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Self

from placement_ac.core.api.constants import (
    ANNOTATION_LED_BEFORE,
    EVENT,
    EVENTS,
    FIELD_MANAGER,
    LEADER_ELECTION,
)

Body = dict[str, Any]
Marks = Callable[[], Mapping[str, Mapping[str, str]]]
"""Returns `labels` and `annotations` of a Lease."""

LONGEST_LEASE: Final = 4
"""A Lease holds for at most this many times our own duration: whoever may write it could name any."""
RETRY_MAX_SECONDS: Final = 2.0
"""How often a Lease is read at least (client-go: `RetryPeriod`)."""
UNREADABLE: Final = "unreadable"
"""The holder of a Lease whose `holderIdentity` cannot be read."""


@dataclass(frozen=True, slots=True)
class LeaseDurations:
    """Seconds: how long a Lease is valid, how long its holder leads by it, how often it is read."""

    lease: float
    renew: float
    retry: float

    @classmethod
    def of(cls, lease: float) -> Self:
        """Return those for a Lease that is valid for so long: 15, 10 and 2 as in client-go, or 6, 4 and 1.

        A holder has four tries or more to renew it, and then a third of it for the last writes to end.
        """
        renew = lease * 2 / 3
        return cls(lease, renew, min(renew / 4, RETRY_MAX_SECONDS))


class LeaderElection:
    """One Lease as the candidate `identity` has seen it since `began`, and whether it leads."""

    def __init__(
        self,
        identity: str,
        durations: LeaseDurations,
        *,
        namespace: str,
        name: str,
        began: float = -math.inf,
        marks: Marks = dict,
    ) -> None:
        self._identity = identity
        self._durations = durations
        self._metadata: Body = {"name": name, "namespace": namespace}
        self._marks = marks
        """Those that the Lease has while we hold it; others stay."""
        self._seen: Body | None = None
        """The Lease as it was last seen; of a deleted one, only the holder counts."""
        self._gone = True
        self._unchanged_since = -math.inf
        self._held_since = -math.inf
        """When the last request began that gave us the Lease."""
        self._began = began

    # -- what is known

    @property
    def holder(self) -> str:
        """The holder of the Lease; "": none."""
        return _holder(self._seen) if self._seen else ""

    def leads(self, now: float) -> bool:
        return now < self._held_since + self._durations.renew

    def leads_until(self) -> float:
        """Return when leading ends without a renewal; -inf if we do not lead."""
        return self._held_since + self._durations.renew

    def ends(self) -> float:
        """Return when others may take our Lease: by then, every write of ours must be done."""
        return self._held_since + self._durations.lease

    def free_in(self, now: float) -> float:
        """Return after how many seconds the Lease may be taken, or renewed."""
        if self._seen is None or self.holder in ("", self._identity):
            return 0.0
        valid = self._durations.lease
        if not self._gone:  # a shorter duration may be a mistake; waiting too long is safe
            valid = max(valid, min(_duration(self._seen), LONGEST_LEASE * valid))
        return max(0.0, self._unchanged_since + valid - now)

    def without_leader(self, now: float) -> str:
        """Return why nobody leads, and what to do; "" if somebody does, or may in a moment."""
        since = max(self._began, self._unchanged_since, self._held_since)
        if now - since <= self._durations.lease + 2 * self._durations.retry:
            return ""
        name = f"Lease {self._metadata['namespace']}/{self._metadata['name']}"
        free_in = self.free_in(now)
        if not free_in:
            return f"nobody leads: {name} is free, but cannot be taken"
        return (
            f"delete {name}, or wait {math.ceil(free_in)}s: nobody leads, because {self.holder} holds it "
            f"and has not renewed it for {now - since:.0f}s"
        )

    def is_news(self, change: str, lease: Body) -> bool:
        """Whether an event of a watch matters: it is not the echo of our own write."""
        if change == "BOOKMARK":
            return False
        if change == "DELETED" or self._seen is None:
            return True
        return _holder(lease) != self._identity and _version(lease) != _version(self._seen)

    # -- what happens

    def saw(self, lease: Body | None, now: float) -> None:
        """Take in the Lease as it is at `now`; None: it does not exist, but its holder may still write."""
        self._gone = lease is None
        if lease is not None:
            if self._seen is None or lease.get("spec") != self._seen.get("spec"):
                self._unchanged_since = now
            self._seen = lease
        if self.holder != self._identity:
            self._held_since = -math.inf

    def wrote(self, lease: Body, began: float) -> None:
        """Take in the answer to our write, whose request began at `began`."""
        self.saw(lease, began)
        if self.holder == self._identity:
            self._held_since = began

    def stop_leading(self) -> None:
        self._held_since = -math.inf

    # -- what to write

    def became_leader(self, time: datetime) -> Body | None:
        """Return the Event on the Lease that client-go posts of a new leader; None if we do not hold it."""
        if self._gone or self._seen is None or self.holder != self._identity:
            return None
        metadata, at = self._seen["metadata"], time.strftime("%Y-%m-%dT%H:%M:%SZ")
        namespace, name = self._metadata["namespace"], self._metadata["name"]
        term = f"{self._identity} {_spec(self._seen).get('acquireTime')}"
        return {
            "apiVersion": "v1",
            "kind": EVENT.kind,
            "metadata": {"namespace": namespace, "name": f"{name}.{sha256(term.encode()).hexdigest()[:16]}"},
            "involvedObject": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": namespace,
                "name": name,
                "uid": metadata.get("uid", ""),
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "type": EVENTS[LEADER_ELECTION][0],
            "reason": LEADER_ELECTION,
            "message": f"{self._identity} became leader",
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "reportingInstance": self._identity,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }

    def claim(self, now: float, time: datetime) -> Body | None:
        """Return the Lease to write to take or renew it; None while another candidate holds it.

        It has the resourceVersion of the one seen, or none if there is no Lease.
        """
        if self.free_in(now) > 0:
            return None
        before = _spec(self._seen)
        keeps = self.leads(now)
        changes = self._seen is not None and self.holder != self._identity
        return self._lease(
            led_before=self.holder if changes else "",
            holderIdentity=self._identity,
            leaseDurationSeconds=math.ceil(self._durations.lease),
            acquireTime=before.get("acquireTime") if keeps else _micro(time),
            renewTime=_micro(time),
            leaseTransitions=_count(before.get("leaseTransitions")) + changes,
        )

    def release(self, time: datetime) -> Body | None:
        """Return the Lease to write to release it; None if we do not hold it."""
        if self._gone or self.holder != self._identity:
            return None
        before = _spec(self._seen)
        return self._lease(
            led_before=self._identity,
            holderIdentity="",
            leaseDurationSeconds=1,
            acquireTime=before.get("acquireTime"),
            renewTime=_micro(time),
            leaseTransitions=_count(before.get("leaseTransitions")),
        )

    def _lease(self, *, led_before: str, **spec: Any) -> Body:
        """Return the Lease; `led_before` "": it keeps who led before, as whoever released it has written."""
        known = {} if self._gone or self._seen is None else self._seen["metadata"]
        kept = {key: value for key, value in known.items() if key != "managedFields"}
        metadata = kept | self._metadata | self._marked(kept)
        if led_before:
            metadata["annotations"] = {
                **(metadata.get("annotations") or {}),
                ANNOTATION_LED_BEFORE: led_before,
            }
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }

    def _marked(self, kept: Body) -> Body:
        there = ((field, wanted, kept.get(field)) for field, wanted in self._marks().items())
        return {
            field: (before if isinstance(before, dict) else {}) | dict(wanted)
            for field, wanted, before in there
        }


def _spec(lease: Body | None) -> Mapping[str, Any]:
    spec = (lease or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def _holder(lease: Body) -> str:
    spec = lease.get("spec") or {}
    if not isinstance(spec, dict):
        return UNREADABLE
    holder = spec.get("holderIdentity") or ""
    return holder if isinstance(holder, str) else UNREADABLE


def _duration(lease: Body) -> float:
    seconds = _spec(lease).get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int | float) and not isinstance(seconds, bool) else 0.0


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _version(lease: Body) -> object:
    return (lease.get("metadata") or {}).get("resourceVersion")


def _micro(time: datetime) -> str:
    """Kubernetes: a MicroTime, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
