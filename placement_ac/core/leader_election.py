"""
Leader election: who leads by a Lease, and the Lease that a candidate writes.

Pure: no I/O, and time is an argument, in seconds of one's own clock, which goes on whatever happens to the
process. It is never compared with another machine's: whoever holds a Lease that has not changed for as long
as it is good has lost it (as with client-go's leader election).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

Body = dict[str, Any]

UNREADABLE: Final = "unreadable"
"""Who holds a Lease that names nobody in a way that can be read."""


@dataclass(frozen=True, slots=True)
class LeaseDurations:
    """Seconds: how long a Lease is good, how long its holder leads on it, how often it is looked at."""

    lease: float
    renew: float
    retry: float


class LeaderElection:
    """What `me` knows of one Lease, and whether `me` leads."""

    def __init__(self, me: str, pace: LeaseDurations, *, namespace: str, name: str) -> None:
        self._me = me
        self._pace = pace
        self._identity: Body = {"name": name, "namespace": namespace}
        self._seen: Body | None = None
        """The Lease as it was seen last; one that was deleted stays until it would have ended."""
        self._gone = True
        self._unchanged_since = -math.inf
        self._held_since = -math.inf
        """When the last request began by which `me` holds it."""

    # -- what is known

    @property
    def holder(self) -> str:
        """Who holds the Lease; "" when nobody does."""
        return _holder(self._seen) if self._seen else ""

    def leads(self, now: float) -> bool:
        return now < self._held_since + self._pace.renew

    def leads_until(self) -> float:
        """When leading ends by itself; long ago for who does not lead."""
        return self._held_since + self._pace.renew

    def ends(self) -> float:
        """When others may take the Lease that is held: by then, every write of ours has to be done."""
        return self._held_since + self._pace.lease

    def free_in(self, now: float) -> float:
        """Return after how many seconds the Lease may be taken, or renewed."""
        if self._seen is None or self.holder in ("", self._me):
            return 0.0
        # A shorter duration may be a slip of somebody's hand; waiting too long is safe.
        good = max(self._pace.lease, _duration(self._seen))
        return max(0.0, self._unchanged_since + good - now)

    def is_news(self, change: str, lease: Body) -> bool:
        """Whether an event of a watch matters: it is not the echo of a write by `me`."""
        if change == "BOOKMARK":
            return False
        if change == "DELETED" or self._seen is None:
            return True
        return _holder(lease) != self._me and _version(lease) != _version(self._seen)

    # -- what happens

    def saw(self, lease: Body | None, now: float) -> None:
        """Take in the Lease as it is at `now`; None: there is none.

        One that was deleted is no sign that its holder has stopped writing.
        """
        self._gone = lease is None
        if lease is not None:
            if self._seen is None or lease.get("spec") != self._seen.get("spec"):
                self._unchanged_since = now
            self._seen = lease
        if self.holder != self._me:
            self._held_since = -math.inf

    def wrote(self, lease: Body, began: float) -> None:
        """Take in the answer to a request that began then, by which the Lease is ours."""
        self.saw(lease, began)
        if self.holder == self._me:
            self._held_since = began

    def let_go(self) -> None:
        """Stop leading."""
        self._held_since = -math.inf

    # -- what to write

    def claim(self, now: float, time: datetime) -> Body | None:
        """Return the Lease by which `me` takes or keeps it; None while someone else holds it.

        With a resourceVersion it takes the place of the one seen; without, there is none.
        """
        if self.free_in(now) > 0:
            return None
        before = _spec(self._seen)
        keeps = self.leads(now)
        changes = self._seen is not None and self.holder != self._me
        return self._lease(
            holderIdentity=self._me,
            leaseDurationSeconds=math.ceil(self._pace.lease),
            acquireTime=before.get("acquireTime") if keeps else _micro(time),
            renewTime=_micro(time),
            leaseTransitions=_count(before.get("leaseTransitions")) + changes,
        )

    def release(self, time: datetime) -> Body | None:
        """Return the Lease that says that nobody holds it; None when that is not for `me` to say."""
        if self._gone or self.holder != self._me:
            return None
        before = _spec(self._seen)
        return self._lease(
            holderIdentity="",
            leaseDurationSeconds=1,
            acquireTime=before.get("acquireTime"),
            renewTime=_micro(time),
            leaseTransitions=_count(before.get("leaseTransitions")),
        )

    def _lease(self, **spec: Any) -> Body:
        known = {} if self._gone or self._seen is None else self._seen["metadata"]
        kept = {key: value for key, value in known.items() if key != "managedFields"}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": kept | self._identity,
            "spec": spec,
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
