"""
A stand-in for OCM's placement controller, which also marks bindings of existing cluster sets as bound.

The pure package `scheduling` decides; this module determines when, and writes in the same steps as OCM's
controller, including intermediate states: a new PlacementDecision has no status for some milliseconds
(without clusters, forever), labels are written one reconcile after the status, and the Placement's status
comes last. Source: ocm `pkg/placement` and
`pkg/registration/hub/managedclustersetbinding`, read in August 2026.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

import structlog

from kubectl_placement.scheduling import Fleet, SchedulingResult, schedule
from kubectl_placement.scheduling.affected import AffectedPlacements
from kubectl_placement.scheduling.conditions import merged
from kubectl_placement.scheduling.fleet import Memo, own_decisions
from placement_ac.core.api.constants import (
    CLUSTER_SET,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SET_BINDING,
    Kind,
)
from placement_ac.core.api.errors import NotFound
from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str, key_of
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.informer import Key, Name, StandIn

log = structlog.get_logger(__name__)

STATUS_DELAY_SECONDS: Final = 0.005
"""How long a new PlacementDecision has no status on a real hub (DESIGN.md, OCM)."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Scheduler(StandIn):
    """Simulates OCM's placement controller.

    `write_scores`: simulate the change proposed upstream (ocm pull request 1436): decisions have scores,
    and are sorted by them if `sortBy: Score`. `clock`: returns the time (aware) for expiry of scores and
    tolerations.
    """

    name = "ocm-placement-controller"
    kinds = (PLACEMENT, PLACEMENT_DECISION, MANAGED_CLUSTER, CLUSTER_SET, SET_BINDING)
    optional = (PLACEMENT_SCORE,)

    def __init__(
        self,
        login: Login,
        *,
        write_scores: bool = False,
        status_delay: float = STATUS_DELAY_SECONDS,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        super().__init__(login)
        self._write_scores = write_scores
        self._status_delay = status_delay
        self._clock = clock
        self._reach = AffectedPlacements()
        self._memo: Memo = {}
        self._written: dict[tuple[Kind, Name], Object] = {}
        self._requeue_times: dict[Key, datetime] = {}

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        self._keep_newer(kind, (namespace, name))
        touched = self._placements_of(kind, namespace, name)
        return [("placement", *placement) for placement in touched] + self._binding_keys(
            kind, namespace, name
        )

    def _placements_of(self, kind: Kind, namespace: str, name: str) -> Iterable[Name]:
        """Return the Placements that OCM reconciles after this change."""
        placements, fleet = self.objects(PLACEMENT), self._fleet()
        if kind == PLACEMENT:
            return [(namespace, name)]
        if kind == PLACEMENT_DECISION:
            return self._reach.of_decision((namespace, name), fleet)
        if kind == MANAGED_CLUSTER:
            return self._reach.of_cluster(name, fleet, placements)
        if kind == PLACEMENT_SCORE:
            return self._reach.of_score(namespace, name, fleet, placements)
        where = None if kind == CLUSTER_SET else namespace
        return self._reach.of_set(name, fleet, placements, where)

    def _binding_keys(self, kind: Kind, namespace: str, name: str) -> list[Key]:
        if kind == SET_BINDING:
            return [("binding", namespace, name)]
        if kind == CLUSTER_SET:
            return [("binding", *key) for key in self.objects(SET_BINDING) if key[1] == name]
        return []

    async def reconcile(self, key: Key) -> None:
        what, namespace, name = key
        if what == "binding":
            await self._reconcile_binding((namespace, name))
        else:
            await self._reconcile_placement((namespace, name))

    async def _reconcile_placement(self, key: Name) -> None:
        placement = self.objects(PLACEMENT).get(key)
        if placement is None:
            self._requeue_times.pop(("placement", *key), None)
            return
        now = self._clock()
        outcome = schedule(placement, self._fleet(), now, write_scores=self._write_scores)
        if outcome.unsupported:
            log.warning("cannot decide", placement="/".join(key), reason=outcome.unsupported)
        if outcome.hold or outcome.unsupported:
            return
        self._requeue_at(("placement", *key), outcome.reschedule_at, now)
        await self._write_decisions(placement, outcome)
        await self._write_status(placement, outcome)

    async def _write_decisions(self, placement: Object, outcome: SchedulingResult) -> None:
        for wanted in outcome.decisions:
            await self._write_decision(wanted)
        names = {get_str(decision, "metadata", "name") for decision in outcome.decisions}
        for decision in own_decisions(placement, self._fleet()):
            if get_str(decision, "metadata", "name") not in names:
                await self._delete(decision)

    async def _write_decision(self, wanted: Obj) -> None:
        namespace, name = get_str(wanted, "metadata", "namespace"), get_str(wanted, "metadata", "name")
        existing = self.objects(PLACEMENT_DECISION).get((namespace, name))
        if existing is None:
            bare = {field: value for field, value in wanted.items() if field != "status"}
            existing = await self.client.create(self.informer.resources[PLACEMENT_DECISION], bare)
            self._remember(PLACEMENT_DECISION, existing)
            await asyncio.sleep(self._status_delay)
        entries = get_list(wanted, "status", "decisions")
        if get_list(existing, "status", "decisions") != entries:
            patch: Object = {"status": {"decisions": entries}}
            await self._patch(PLACEMENT_DECISION, (namespace, name), patch, "status")
            # OCM writes the labels in the next reconcile, which the event of this write triggers.
            return
        labels = get_dict(wanted, "metadata", "labels")
        if labels.items() - get_dict(existing, "metadata", "labels").items():
            await self._patch(PLACEMENT_DECISION, (namespace, name), {"metadata": {"labels": labels}})

    async def _delete(self, decision: Obj) -> None:
        namespace, name = get_str(decision, "metadata", "namespace"), get_str(decision, "metadata", "name")
        try:
            await self.client.delete(self.informer.resources[PLACEMENT_DECISION], name, namespace)
        except NotFound:
            return

    async def _write_status(self, placement: Object, outcome: SchedulingResult) -> None:
        before = {"numberOfSelectedClusters": 0, **get_dict(placement, "status")}
        changed = {field: value for field, value in outcome.status.items() if before.get(field) != value}
        if changed:
            await self._patch(PLACEMENT, key_of(placement), {"status": changed}, "status")

    async def _reconcile_binding(self, key: Name) -> None:
        """Mark a binding as bound if its set exists."""
        binding = self.objects(SET_BINDING).get(key)
        set_name = get_str(binding, "spec", "clusterSet")
        existing = get_list(binding, "status", "conditions")
        bound = any(get_str(it, "type") == "Bound" and get_str(it, "status") == "True" for it in existing)
        if binding is None or bound or ("", set_name) not in self.objects(CLUSTER_SET):
            return
        condition = {"type": "Bound", "status": "True", "reason": "ClusterSetBound", "message": ""}
        patch: Object = {"status": {"conditions": merged(existing, [condition], self._clock())}}
        await self._patch(SET_BINDING, key, patch, "status")

    async def _patch(self, kind: Kind, key: Name, patch: Object, subresource: str = "") -> None:
        resource, (namespace, name) = self.informer.resources[kind], key
        written = await self.client.merge(resource, name, patch, namespace=namespace, subresource=subresource)
        self._remember(kind, written)

    def _remember(self, kind: Kind, written: Object) -> None:
        """Store a written object, so that the next reconcile uses it."""
        self._written[kind, key_of(written)] = written
        self.objects(kind)[key_of(written)] = written

    def _keep_newer(self, kind: Kind, key: Name) -> None:
        """Restore our written object if an older event has just replaced it."""
        written = self._written.get((kind, key))
        latest = self.objects(kind).get(key)
        if written is None:
            return
        if latest is not None and _version(latest) < _version(written):
            self.objects(kind)[key] = written
        else:
            del self._written[kind, key]

    def _fleet(self) -> Fleet:
        return Fleet(
            clusters=self.objects(MANAGED_CLUSTER),
            cluster_sets=self.objects(CLUSTER_SET),
            bindings=self.objects(SET_BINDING),
            scores=self.objects(PLACEMENT_SCORE),
            decisions=self.objects(PLACEMENT_DECISION),
            memo=self._memo,
        )

    def _requeue_at(self, key: Key, at: datetime | None, now: datetime) -> None:
        """Enqueue `key` at a time when the decision changes without an event; once per time."""
        if at is None or self._requeue_times.get(key) == at:
            return
        self._requeue_times[key] = at
        self.enqueue(key, after=(at - now).total_seconds())


def _version(item: Object) -> int:
    """Return the resourceVersion as a number: it increases with every write (KEP 5504)."""
    version = get_str(item, "metadata", "resourceVersion")
    return int(version) if version.isdecimal() else 0
