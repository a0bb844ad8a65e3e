"""
What has been seen of the hub: plain tables, and the lookups between them.

Told by whoever watches and lists, asked by whoever decides. No I/O, no clock.
`put`, `remove` and `replace` return the keys that the change touches.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from placement_ac.cache import mapping
from placement_ac.cache.credentials import CredentialLookup
from placement_ac.cache.index import Id
from placement_ac.cache.tables import EVERYWHERE, Scope, decided_in, later, newer
from placement_ac.core.api import decode, objects
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.schemas import Raw
from placement_ac.core.inputs.state import (
    Key,
    PlacementCluster,
    ProbeResult,
    Snapshot,
    TimerAges,
    WorkerCopies,
)

_PARSERS: Final[Mapping[Kind, Callable[[Raw], Any]]] = {
    ADMISSION_CHECK: decode.check,
    PLACEMENT: decode.placement,
    PLACEMENT_DECISION: decode.decision,
    CLUSTER_PROFILE: decode.cluster_profile,
    SECRET: decode.secret,
    PLACEMENT_SCORE: decode.scores,
    MULTIKUEUE_CONFIG: decode.kueue_object,
    MULTIKUEUE_CLUSTER: decode.kueue_object,
    WORKLOAD: decode.workload,
    ACCOUNT: decode.provisioned_object,
    PERMISSION: decode.provisioned_object,
}


class Cache(CredentialLookup):
    """The hub as seen so far. Not thread-safe: one event loop owns it."""

    # -- told

    @property
    def complete(self) -> bool:
        """Whether every kind has been listed wherever it is watched: before that, nothing may be decided."""
        return not self._missing

    def unlisted(self) -> list[str]:
        """Return what has not been listed yet, in words."""
        missing = [scope for scope in self._scopes if scope in self._missing]
        return [f"{kind} in {namespace}" if namespace else str(kind) for kind, namespace in missing]

    def put(self, kind: Kind, raw: Raw) -> set[Key]:
        """Take in an object as it is now; an older version than the one known changes nothing."""
        stamp, table = decode.version_of(raw), self._tables[kind]
        id_ = stamp.namespace, stamp.name
        before = table.things.get(id_)
        known = before is not None and before.meta.uid == stamp.uid
        if not known and (stamp.uid in self._gone or not self._watched(kind, stamp)):
            return set()
        if before and not newer(stamp, before.meta):
            return set()  # it is known already, mostly as a write of ours
        thing: Any = (_PARSERS.get(kind) or self._other_parser(kind))(raw)
        if kind is WORKLOAD:
            return self._put_workload(thing, before)
        touched = mapping.keys_for(kind, (before,), self)
        table.put(id_, thing)
        touched |= mapping.keys_for(kind, (thing,), self)
        if known and self._is_renewal(kind, before, thing):
            return {key for key in touched if key.kind == "cluster"}
        return touched

    def _is_renewal(self, kind: Kind, before: Any, now: Any) -> bool:
        """Whether a token has merely been replaced by one that lasts longer: no Placement has to know."""
        if (kind is not SECRET and not kind.only) or before.problem or now.problem:
            return False
        if kind.only:
            return True
        if before.expires is not None and before.expires <= self._judged_at:
            return False  # it has been judged unusable
        lasts = now.expires is None or (before.expires is not None and before.expires <= now.expires)
        same = before.meta._replace(resource_version=now.meta.resource_version) == now.meta
        return lasts and same and now.ours and not self._policy.probe

    def _other_parser(self, kind: Kind) -> Callable[[Raw], Any]:
        if kind is MANAGED_CLUSTER:
            return decode.managed_cluster if self._terms.provision else decode.managed_cluster_without_server
        return decode.account_token

    def _put_workload(self, now: objects.Workload, before: objects.Workload | None) -> set[Key]:
        """Keep a Workload from its first check until it is finished; most events change nothing here."""
        if before is None and (now.finished or not now.check_states):
            return set()
        if now.finished:
            self._gone[now.meta.uid] = True  # it stays finished: an older event must not bring it back
            self._workloads.drop(now.meta.id)
            return mapping.keys_for(WORKLOAD, (before,), self)
        self._workloads.put(now.meta.id, now)
        if before and replace(before, meta=now.meta) == now and before.meta.uid == now.meta.uid:
            return set()
        return mapping.keys_for(WORKLOAD, (before, now), self)

    def remove(self, kind: Kind, raw: Raw) -> set[Key]:
        """Take in that an object is gone; one of that name which is newer stays."""
        meta = decode.meta_of(raw)
        table = self._tables[kind]
        before = table.things.get(meta.id)
        if meta.uid and (before or kind is not WORKLOAD):  # those that nobody knew would push out all others
            self._gone[meta.uid] = True
        if before is None or before.meta.uid != meta.uid:
            return set()
        touched = mapping.keys_for(kind, (before,), self)
        table.drop(meta.id)
        return touched

    def replace(self, kind: Kind, items: Iterable[Raw], resource_version: str) -> set[Key]:
        """Take in a complete list of a kind: what is not in it has gone, unless it is newer than the list."""
        touched = self.begin(kind, resource_version)
        present: set[Id] = set()
        for raw in items:
            touched |= self.put(kind, raw)
            present.add(decode.meta_of(raw).id)
        return touched | self.settle(kind, present, resource_version)

    def fill(self, kind: Kind, items: Iterable[Raw], resource_version: str) -> None:
        """Take in the complete list of a kind that nothing is known of, when nobody asks whom it touches."""
        table = self._tables[kind]
        parse = _PARSERS.get(kind) or self._other_parser(kind)
        for raw in items:
            thing: Any = parse(raw)
            counts = kind is not WORKLOAD or (thing.check_states and not thing.finished)
            if counts and self._watched(kind, thing.meta):
                table.put(thing.meta.id, thing)
        for scope in self._within(kind, None):
            self._is_listed(scope, resource_version)

    def begin(self, kind: Kind, resource_version: str, namespace: str | None = None) -> set[Key]:
        """Take in that a list begins. If versions begin anew, nothing is complete until it is settled.

        It is about that namespace alone; None: about all in which the kind is watched.
        """
        touched: set[Key] = set()
        for scope in self._within(kind, namespace):
            if later(self._listed.get(scope, ""), resource_version):
                del self._listed[scope]
                if scope in self._scopes:
                    self._missing.add(scope)
                touched |= self._forget(scope)
        return touched

    def settle(
        self, kind: Kind, present: Container[Id], resource_version: str, namespace: str | None = None
    ) -> set[Key]:
        """Take in that a list is complete: what is not `present` has gone, unless it is newer."""
        touched: set[Key] = set()
        for scope in self._within(kind, namespace):
            for id_, thing in self._things_in(scope):
                if id_ not in present and not later(thing.meta.resource_version, resource_version):
                    touched |= mapping.keys_for(kind, (thing,), self)
                    self._tables[kind].drop(id_)
            self._is_listed(scope, resource_version)
        return touched

    def _is_listed(self, scope: Scope, resource_version: str) -> None:
        self._listed[scope] = resource_version
        self._missing.discard(scope)

    def _within(self, kind: Kind, namespace: str | None) -> list[Scope]:
        return [(kind, one) for one in (self.namespaces(kind) if namespace is None else (namespace,))]

    def _things_in(self, scope: Scope) -> list[tuple[Id, Any]]:
        kind, namespace = scope
        things = self._tables[kind].things.items()
        return [(id_, thing) for id_, thing in things if namespace in (EVERYWHERE, id_[0])]

    def holds(self, kind: Kind, id_: Id) -> bool:
        return id_ in self._tables[kind].things

    def _forget(self, scope: Scope) -> set[Key]:
        """Drop all of it: the hub was restored, its versions begin anew and compare with nothing known."""
        self._gone.clear()  # a restore brings back what had gone
        kind, _ = scope
        things = self._things_in(scope)
        touched = mapping.keys_for(kind, (thing for _, thing in things), self)
        for id_, _ in things:
            self._tables[kind].drop(id_)
        return touched

    def _watched(self, kind: Kind, meta: objects.Meta | objects.ObjectVersion) -> bool:
        wanted = self._namespaces.get(kind)
        return (wanted is None or meta.namespace in wanted) and kind.only in ("", meta.name)

    # -- asked by route

    def clusters_of_secret_ref(self, name: str) -> set[str]:
        return {profile.cluster for profile in self._profiles.by("secret", name)}

    def placements_owned_by(self, uid: str) -> set[str]:
        configs = {config.meta.name for config in self._configs.by("owner", uid)}
        return configs | {obj.placement for obj in self._clusters.by("owner", uid) if obj.placement}

    def placements_sharing(self, cluster_objects: Iterable[str]) -> set[str]:
        if self.hub.shared:
            return set[str]().union(*(self._listers(one) | self._users_of(one) for one in cluster_objects))
        there = self._clusters.things.get
        found = [obj for one in cluster_objects if (obj := there(("", one)))]
        return {obj.placement for obj in found if obj.ours and obj.placement}

    def checks_named(self, names: Iterable[str]) -> list[objects.Check]:
        checks = (self._checks.things.get(("", name)) for name in names)
        return [check for check in checks if check]

    def placements_of_shared(self) -> set[str]:
        configs = {config.meta.name for config in self._configs.things.values() if config.ours}
        return configs | set(self._checks.keys("placement"))

    def decisions_in_question(self, placement: str) -> list[objects.Decision]:
        return self._decisions.by("placement", placement) if len(self.hub.namespaces) > 1 else []

    def clusters_selected(self, placement: str) -> list[str]:
        return self._selected(placement)

    # -- asked by reconcile

    def keys(self) -> set[Key]:
        """Return every key there is: what is looked at when everything has been listed."""
        return {
            key
            for kind, table in self._tables.items()
            if kind in (ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER)
            for key in mapping.keys_for(kind, table.things.values(), self)
            if key.kind == "check" or (key.kind == "placement" and self._is_ours(key.name))
        } | {Key("cluster", cluster) for cluster in self._clusters_with_credentials()}

    def _is_ours(self, name: str) -> bool:
        config = self._configs.things.get(("", name))
        return (
            name in self._checks.keys("placement")
            or name in self._clusters.keys("placement")
            or ("", name) in self._clusters.keys("shared").ids("shared")
            or (config is not None and config.ours)
        )

    def snapshot(
        self,
        key: Key,
        now: datetime,
        ages: TimerAges,
        asked: Mapping[str, WorkerCopies] | None = None,
        fits: Mapping[str, ProbeResult] | None = None,
    ) -> Snapshot:
        """Return all that `key` depends on; `ages`, `asked`, `fits` are what the caller remembers of it."""
        self._judged_at = now
        if key.kind == "check":
            check = self._checks.things.get(("", key.name))
            bad = (check,) if check and check.ours and not check.placement else ()
            workloads = self._workloads_of(bad)
            return Snapshot(name="", now=now, hub=self.hub, checks=bad, ages=ages, workloads=workloads)
        return self._snapshot(key.name, now, ages, asked or {}, fits or {})

    def _snapshot(
        self,
        name: str,
        now: datetime,
        ages: TimerAges,
        asked: Mapping[str, WorkerCopies],
        fits: Mapping[str, ProbeResult],
    ) -> Snapshot:
        placement = self._placements.things.get((self._home_of(name), name))
        decisions = tuple(self._decisions_of(name))
        config = self._configs.things.get(("", name))
        credentials = self._credentials_for(decided_in(decisions), now)
        checks, users = self._checks.by("placement", name), self._checks.by("config", name)
        workloads = self._workloads_of(checks, users)
        listed = self._names_listed(config, workloads)
        clusters = self._objects(name, credentials, listed)
        listed = self._clusters_listed(name, listed, clusters)
        unselected = [cluster for cluster in listed if cluster not in credentials]
        gone, unreachable = self._lost(listed)
        return Snapshot(
            name=name,
            now=now,
            hub=self.hub,
            checks=tuple(checks),
            multikueue_checks=tuple(users),
            former_checks=self._holders(config, clusters.values(), name),
            placement=placement,
            decisions=decisions,
            scores=self._scores_of(credentials, placement),
            credentials=credentials,
            config=config,
            clusters=clusters,
            name_conflicts=self._rivals(name, credentials, now),
            other_owners=self._others(name, {*clusters, *credentials}, now),
            listed_elsewhere=frozenset(self._configs.keys("listed").others(clusters, ("", name))),
            unselected_credentials=self._credentials_for(unselected, now) if unselected else {},
            policy=self._policy,
            ages=ages,
            workloads=workloads,
            deleted_clusters=gone,
            unreachable=unreachable,
            worker_copies=asked,
            probe_results=fits,
        )

    def _names_listed(
        self, config: objects.KueueObject | None, workloads: Iterable[objects.Workload]
    ) -> Sequence[str]:
        """Return the names in the config; if it was deleted, those that Workloads are on."""
        if config is not None:
            return config.listed if config.ours else ()
        return sorted({name for w in workloads for name in (w.cluster, *w.nominated) if name})

    def _clusters_listed(
        self, name: str, names: Iterable[str], clusters: Mapping[str, objects.KueueObject]
    ) -> list[str]:
        there = clusters.get
        return [
            obj.cluster if (obj := there(one)) and obj.cluster else self.hub.cluster_of(name, one)
            for one in names
        ]

    def _workloads_of(self, *checks: Iterable[objects.Check]) -> tuple[objects.Workload, ...]:
        """Return the Workloads that carry any of these checks; known as long as no Workload changes."""
        names = frozenset(check.meta.name for part in checks for check in part)
        if self._carrying_at != self._workloads.changes:
            self._carrying.clear()
            self._carrying_at = self._workloads.changes
        if names not in self._carrying:
            ids = {id_ for name in names for id_ in self._workloads.keys("check").ids(name)}
            self._carrying[names] = tuple(self._workloads.things[id_] for id_ in sorted(ids))
        return self._carrying[names]

    def _lost(self, clusters: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return those that have gone from a hub with ManagedClusters, and those that OCM cannot reach."""
        there, served = self._managed.things, self._listed.get((MANAGED_CLUSTER, EVERYWHERE))
        gone = [cluster for cluster in clusters if ("", cluster) not in there] if served else ()
        unreachable = {cluster for _, cluster in self._managed.keys("unreachable").ids("unreachable")}
        return frozenset(gone), frozenset(unreachable.intersection(clusters) if unreachable else ())

    def _labelled(self, name: str) -> dict[str, objects.KueueObject]:
        """Return the MultiKueueClusters with the label of the Placement; known as long as none changes."""
        if self._labelled_at != self._clusters.changes:
            self._labelled_known.clear()
            self._labelled_at = self._clusters.changes
        known = self._labelled_known.get(name)
        if known is None:
            known = {obj.meta.name: obj for obj in self._clusters.by("placement", name)}
            self._labelled_known[name] = known
        return known

    def _objects(
        self, name: str, selected: Iterable[str], listed: Iterable[str]
    ) -> dict[str, objects.KueueObject]:
        mine = self._labelled(name)
        # Those are shared, somebody else's, or without their label.
        others = {*self.hub.cluster_objects(name, selected), *listed}.difference(mine)
        more = {one: obj for one in others if (obj := self._clusters.things.get(("", one)))}
        more.update((obj.meta.name, obj) for obj in self._unneeded(name))
        return dict(sorted({**mine, **more}.items())) if more else mine

    def _unneeded(self, name: str) -> Iterable[objects.KueueObject]:
        """MultiKueueClusters without a Placement that no other one needs: whoever looks removes them."""
        for obj in self._clusters.by("shared", "shared"):
            selected = self.hub.shared and self._users_of(obj.meta.name)
            if not selected and not self._listers(obj.meta.name) - {name}:
                yield obj

    def _holders(
        self, config: objects.KueueObject | None, clusters: Iterable[objects.KueueObject], name: str
    ) -> tuple[objects.Check, ...]:
        """Checks of ours that own what is here while their parameters are unusable."""
        if "unusable" not in self._checks.keys("unusable"):
            return ()
        objects = [obj for obj in clusters if obj.placement == name]
        objects += [config] if config and config.placement in ("", name) else []
        uids = set[str]().union(*[obj.owners for obj in objects if obj.ours])
        owners = (check for uid in sorted(uids) for check in self._checks.by("uid", uid))
        return tuple(check for check in owners if check.ours and not check.placement)

    def _scores_of(
        self, clusters: Iterable[str], placement: objects.Placement | None
    ) -> dict[tuple[str, str], objects.Scores]:
        if placement is None or not placement.prioritizers:
            return {}
        resources = {p.resource_name for p in placement.prioritizers}
        ids = ((cluster, resource) for cluster in clusters for resource in resources)
        return {id_: scores for id_ in ids if (scores := self._scores.things.get(id_))}

    def _rivals(self, name: str, selected: Iterable[str], now: datetime) -> dict[str, PlacementCluster]:
        """Other pairs that make the name of one of ours; of two new ones the first in the alphabet wins."""
        if self.hub.shared:
            return {}
        # Of all the ways to split `<name>-<cluster>`, those within our own name come first in the alphabet.
        halves = [half for half in mapping.possible_pairs(name) if half[0] in self._checks.keys("placement")]
        rivals = {}
        for cluster in selected if halves else ():
            for placement, rest in halves:
                other = f"{rest}-{cluster}"
                if placement in self._users_of(other) and self._usable(other, now):
                    wanted = self.hub.cluster_object(name, cluster)
                    rivals[wanted] = PlacementCluster(f"{self._home_of(placement)}/{placement}", other)
        return rivals

    def _others(self, name: str, cluster_objects: Iterable[str], now: datetime) -> dict[str, dict[str, str]]:
        """Return who else lists each shared MultiKueueCluster, or can and is about to, as its owners."""
        if not self.hub.shared:
            return {}
        found = {}
        for cluster in cluster_objects:
            placements = self._listers(cluster) | (
                self._users_of(cluster) if self._usable(cluster, now) else set()
            )
            owners = {uid: owner for other in placements - {name} for uid, owner in self._owners(other)}
            if owners:
                found[cluster] = owners
        return found

    def _owners(self, placement: str) -> list[tuple[str, str]]:
        """Return what `plan.owners_of` will give the objects of another Placement."""
        config = self._configs.things.get(("", placement))
        checks = (
            *self._checks.by("placement", placement),
            *self._checks.by("config", placement),
            *self._holders(config, (), placement),
        )
        return [(check.meta.uid, check.meta.name) for check in checks]
