"""
A hub as the controller sees it: its world, built of a dump, and what it comes to by the controller's rules.

Pure but for the world, which is filled once. What waits for time counts as having waited long enough: what
is told is where things lead, not each step of the way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final

from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.config.policy import hub_facts, placement_policy, provisioning_policy, worker_policy_rules
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    ANNOTATION_DRAINING,
    CLUSTER_PROFILE,
    KUEUE_VERSIONS,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    LABEL_PLACEMENT,
    MANAGED_BY,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SECRET,
    CredentialMethod,
    Kind,
    Resource,
)
from placement_ac.core.api.decode import check, kueue_object
from placement_ac.core.api.objects import AppliedFields, Check, KueueObject
from placement_ac.core.inputs.state import (
    ClusterCredentials,
    HubFacts,
    Key,
    Plan,
    Snapshot,
    Timer,
    TimerAges,
    TimerKind,
)
from placement_ac.core.kubeconfig.source import CredentialsByCluster, CredentialSource
from placement_ac.core.plan.diff import Phase, diff
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import TargetClusters, select_targets
from placement_ac.core.selection.mass_loss import hold_mass_loss
from placement_ac.core.selection.selection import listed_clusters
from placement_ac.inspection.dump import Dump, MissingRight, Object
from placement_ac.inspection.dump import Key as DumpKey
from placement_ac.inspection.kinds import CLUSTER_SET, MADE, SET_BINDING
from placement_ac.scheduling import Fleet, Outcome, schedule
from placement_ac.scheduling.objects import listed, owned

_OF_FLEET: Final = (MANAGED_CLUSTER, CLUSTER_SET, SET_BINDING, PLACEMENT_SCORE, PLACEMENT_DECISION)
"""The kinds that OCM's scheduler goes by, in the order of `Fleet`."""
_FOUND_IN: Final[Mapping[CredentialMethod, tuple[Kind, ...]]] = {
    "profile-secret": (SECRET, CLUSTER_PROFILE),
    "secret": (SECRET,),
    "access-provider": (CLUSTER_PROFILE,),
}
_LONG: Final = 1e6
"""Seconds; longer than anything waits."""
_SETTLING: Final = frozenset(
    (
        TimerKind.REMOVAL_UNSETTLED,
        TimerKind.MASS_LOSS,
        TimerKind.LIST_ORDER,
        TimerKind.CREDENTIALS_MISSING,
        TimerKind.CREDENTIALS_UNNEEDED,
    )
)
"""Marks of what time alone brings about."""


class _Settled(Mapping[Timer, float]):
    """Ages where all that time alone brings about has come about; the steps of leaving have not begun."""

    def __getitem__(self, mark: Timer) -> float:
        if mark.kind in _SETTLING:
            return _LONG
        raise KeyError(mark)

    def __iter__(self) -> Iterator[Timer]:
        return iter(())

    def __len__(self) -> int:
        return 0


SETTLED: Final[TimerAges] = _Settled()


class _Passed(_Settled):
    """Ages where all has lasted long: the steps of leaving too, as far as no job hinders them."""

    def __getitem__(self, _: Timer) -> float:
        return _LONG


PASSED: Final[TimerAges] = _Passed()

Changes = Mapping[Kind, Mapping[DumpKey, Object | None]]
"""Objects that are put in place, whatever is there; None: it goes."""


@dataclass(frozen=True)
class HubView:
    """One hub at one time. `now`: aware, UTC."""

    dump: Dump
    settings: Settings
    now: datetime

    @cached_property
    def facts(self) -> HubFacts:
        """Limits, versions, the form of names."""
        served: dict[Kind, Resource] = {
            kind: kind.at(KUEUE_VERSIONS[0]) for kind in (ADMISSION_CHECK, MULTIKUEUE_CLUSTER)
        }
        return hub_facts(
            self.settings, served | dict(self.dump.served), self.dump.schemas.get(MULTIKUEUE_CONFIG), None
        )

    @cached_property
    def world(self) -> Cache:
        """The controller's world; a kind that is not known counts as empty there."""
        terms = replace(
            provisioning_policy(self.settings),
            served={ACCOUNT, PERMISSION} <= self.dump.served.keys(),
            rules=worker_policy_rules(self.settings, None),
        )
        world = Cache(
            self.facts,
            kueue_namespace=self.settings.kueue_namespace,
            ways=self.settings.credentials,
            policy=placement_policy(self.settings),
            terms=terms,
        )
        for kind in kinds_for(terms):
            # Only of what is served, and known whole, can be said that something is not there.
            known = self.dump.knows(kind) and kind in self.dump.served
            world.fill(kind, self.dump.of(kind), "0" if known else "")
        return world

    @cached_property
    def fleet(self) -> Fleet:
        """What OCM's scheduler goes by."""
        clusters, sets, bindings, scores, decisions = (self.dump.by_key(kind) for kind in _OF_FLEET)
        mine = owned(decisions.values())
        return Fleet(clusters, sets, bindings, scores, decisions, memo={}, pools={}, owned=mine)

    # -- what there is

    @property
    def lacking(self) -> tuple[MissingRight, ...]:
        """The rights that are missing: those to what credentials are made by only where they are made."""
        made = self.settings.credentials_provision != "none"
        return tuple(right for right in self.dump.missing if made or right.kind not in MADE)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Every AdmissionCheck, whoever answers it, by name."""
        found = (check(obj) for obj in self.dump.of(ADMISSION_CHECK))
        return tuple(sorted(found, key=lambda one: one.meta.name))

    @cached_property
    def ours(self) -> tuple[Check, ...]:
        """The AdmissionChecks that this controller answers, by name."""
        return tuple(one for one in self.checks if one.ours)

    @cached_property
    def cluster_objects(self) -> Mapping[str, KueueObject]:
        """Every MultiKueueCluster by name."""
        return {(obj := kueue_object(raw)).meta.name: obj for raw in self.dump.of(MULTIKUEUE_CLUSTER)}

    @property
    def credentials_known(self) -> bool:
        """Whether it can be told if a cluster has credentials."""
        return not self.credentials_unknown

    @cached_property
    def credentials_unknown(self) -> str:
        """Why it cannot be told if a cluster has credentials; "" where it can.

        A file of a hub without ClusterProfiles has none; without Secrets is only what was left out of it.
        """
        asked = dict.fromkeys(kind for way in self.settings.credentials for kind in _FOUND_IN[way])
        if not self.dump.live and SECRET in asked:
            return self.dump.why_unknown(SECRET)
        return next(filter(None, map(self.dump.why_unknown, asked)), "")

    def placement(self, name: str) -> Object | None:
        """Return the Placement of that name which counts: of the first watched namespace that has one."""
        found = (self.dump.find(PLACEMENT, name, space) for space in self.settings.placement_namespace)
        return next((one for one in found if one is not None), None)

    # -- what it comes to

    def snapshot(self, name: str) -> Snapshot:
        """Return what the controller would decide on, for the checks of a Placement.

        Where credentials are not known, every selected cluster counts as having some.
        """
        if name not in self._snapshots:
            seen = self.world.snapshot(Key("placement", name), self.now, SETTLED)
            self._snapshots[name] = self._assumed(seen)
        return self._snapshots[name]

    @cached_property
    def _snapshots(self) -> dict[str, Snapshot]:
        return {}

    @cached_property
    def _courses(self) -> dict[str, TargetClusters]:
        return {}

    def of_check(self, one: Check) -> Snapshot:
        """Return the same for a check, also for one whose parameters name no Placement."""
        if one.placement:
            return self.snapshot(one.placement)
        return self.world.snapshot(Key("check", one.meta.name), self.now, SETTLED)

    def _assumed(self, seen: Snapshot) -> Snapshot:
        if not self.dump.live:
            clusters = {name: _as_applied(obj) for name, obj in seen.objects.clusters.items()}
            config = _as_applied(seen.objects.config) if seen.objects.config else None
            seen = replace(seen, objects=replace(seen.objects, config=config, clusters=clusters))
        if self.credentials_known:
            return seen
        usable = ClusterCredentials(_usable(seen.credentials.selected), _usable(seen.credentials.unselected))
        return replace(seen, credentials=usable)

    def course(self, name: str) -> TargetClusters:
        """Return which clusters of a Placement are to be listed, and what becomes of the others."""
        if name not in self._courses:
            self._courses[name] = select_targets(self.snapshot(name))
        return self._courses[name]

    def held(self, name: str) -> Mapping[str, str]:
        """Return the clusters of a Placement that a mass loss would take, while it is held → why.

        For how long already only the controller knows: those that are listed and not marked are held.
        """
        seen = replace(self.snapshot(name), timer_ages={})
        guarded = hold_mass_loss(seen, self.course(name).selection, listed_clusters(seen))
        return dict.fromkeys((one.cluster for one in guarded.held), guarded.why)

    def plan(self, name: str) -> Plan:
        """Return what the controller would want for a Placement."""
        return plan(self.snapshot(name))

    def writes(self, name: str) -> tuple[Phase, ...]:
        """Return what the controller would write for a Placement now."""
        seen = self.snapshot(name)
        return diff(seen, plan(seen))

    @cached_property
    def writes_scores(self) -> bool:
        """Whether this hub's OCM writes scores into decisions (proposed upstream)."""
        return any(
            "score" in entry
            for decision in self.dump.of(PLACEMENT_DECISION)
            for entry in listed(decision, "status", "decisions")
        )

    def decided(self, placement: Object, fleet: Fleet | None = None) -> Outcome:
        """Return what OCM's scheduler makes of a Placement here, or in another `fleet`."""
        return schedule(placement, fleet or self.fleet, self.now, write_scores=self.writes_scores)

    # -- what would be

    def turned(self, changes: Changes) -> tuple["HubView", set[Key]]:
        """Return the hub with these changes, and the controller's keys that they touch.

        What is known of the rest is shared: it costs what is changed, not what there is.
        """
        if not any(changes.values()):
            return self, set()
        tables = {kind: _changed(self.dump.by_key(kind), objects) for kind, objects in changes.items()}
        dump = self.dump.with_objects({kind: tuple(table.values()) for kind, table in tables.items()})
        turned, world = replace(self, dump=dump), self.world.copy()
        watched = kinds_for(world.terms)
        touched: set[Key] = set()
        for kind, objects in changes.items():
            for key in objects if kind in watched else ():
                obj = tables[kind].get(key)
                there = self.dump.find(kind, key[1], key[0])
                if obj is not None:
                    touched |= world.put(kind, obj)
                elif there is not None:
                    touched |= world.remove(kind, there)
        fleet = {
            field: tables.get(kind, getattr(self.fleet, field))
            for field, kind in zip(Fleet.__dataclass_fields__, _OF_FLEET, strict=False)
        }
        mine = owned(fleet["decisions"].values())
        after = Fleet(**fleet, memo=self.fleet.memo, pools={}, owned=mine)
        # Where cached_property looks for them.
        vars(turned).update({"world": world, "fleet": after, "facts": self.facts})
        return turned, touched


def _usable(credentials: CredentialsByCluster) -> CredentialsByCluster:
    return {
        cluster: found
        if isinstance(found, CredentialSource)
        else CredentialSource("Secret", f"multikueue-{cluster}")
        for cluster, found in credentials.items()
    }


def _as_applied(obj: KueueObject) -> KueueObject:
    """Take our labels for our apply: `kubectl get -o yaml` leaves out who applied what."""
    labels, annotations = obj.meta.labels, obj.meta.annotations
    if obj.applied_fields.applied or labels.get(LABEL_MANAGED_BY) != MANAGED_BY:
        return obj
    mine = frozenset(labels) & {LABEL_MANAGED_BY, LABEL_PLACEMENT, LABEL_CLUSTER}
    owned = AppliedFields(
        True, mine, frozenset(obj.owners), ANNOTATION_DRAINING in annotations, clusters=True
    )
    return replace(obj, applied_fields=owned)


def _changed(
    table: Mapping[DumpKey, Object], changes: Mapping[DumpKey, Object | None]
) -> dict[DumpKey, Object]:
    """Return the table with the changes; what is put there counts as newer than what was."""
    found = dict(table)
    for key, obj in changes.items():
        there = found.pop(key, None)
        if obj is not None:
            found[key] = _newer(obj, there or {})
    return found


def _newer(obj: Object, than: Object) -> Object:
    version = str((than.get("metadata") or {}).get("resourceVersion") or "")
    later = str(int(version) + 1) if version.isdecimal() else f"{version}+"
    return obj | {"metadata": obj["metadata"] | {"resourceVersion": later}}
