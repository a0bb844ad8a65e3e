"""
A hub in plain dicts, for tests without HTTP: it carries out actions as an API server does.

Server-side apply is modelled for labels, annotations, ownerReferences, spec and data; `collect` deletes
objects without a remaining owner.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.core.api import constants
from placement_ac.core.api.constants import Kind
from placement_ac.core.credentials.provisioning import plan_provisioning
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.state import HubFacts, Key, Since
from placement_ac.core.plan.diff import ABSENT, Action, Apply, Delete, SetCondition, diff
from placement_ac.core.plan.plan import plan
from tests.support.builders import AT_ONCE, NOW, Raw, is_of, kind_of, managed

Id = tuple[Kind, str, str]


class MemoryHub:
    """Objects by kind, namespace and name; every change gets a new resourceVersion."""

    def __init__(
        self, objects: Iterable[Raw], facts: HubFacts, provisioning: ProvisioningPolicy | None = None
    ) -> None:
        self.facts = facts
        self.provisioning = provisioning or ProvisioningPolicy()
        self.objects: dict[Id, Raw] = {}
        self.version = 0
        self.created = 0
        for raw in objects:
            self.put(raw)

    def put(self, raw: Raw) -> None:
        """Store an object that another client wrote."""
        self.version += 1
        raw = copy.deepcopy(raw)
        raw["metadata"]["resourceVersion"] = str(self.version)
        self.objects[id_of(raw)] = raw

    def world(self) -> Cache:
        """Return the cache of a controller that starts now."""
        cache = Cache(self.facts, policy=AT_ONCE, provisioning=self.provisioning)
        for kind in kinds_for(self.provisioning):
            items = [raw for raw in self.objects.values() if is_of(kind, raw)]
            cache.replace(kind, copy.deepcopy(items), str(self.version))
        return cache

    def act(self, action: Action) -> None:
        """Carry out one action; it has no effect if its object has another uid or version by now."""
        if isinstance(action, Apply):
            self._apply(action)
        elif isinstance(action, Delete):
            found = self.objects.get(id_of_target(action))
            if found and found["metadata"]["uid"] == action.uid:
                del self.objects[id_of_target(action)]
        elif isinstance(action, SetCondition):
            self._set(action)
        else:
            raise NotImplementedError(type(action))

    def collect(self) -> list[Raw]:
        """Delete objects whose owners are all gone, as Kubernetes does; return them."""
        uids = {raw["metadata"]["uid"] for raw in self.objects.values()}
        return [
            self.objects.pop(id_)
            for id_, raw in list(self.objects.items())
            if (owners := raw["metadata"].get("ownerReferences"))
            and not any(owner["uid"] in uids for owner in owners)
        ]

    def _apply(self, action: Apply) -> None:
        id_ = id_of_target(action)
        before = self.objects.get(id_)
        wanted = action.body["metadata"]
        if not is_met(wanted, before):
            return
        self.created += not before
        after = copy.deepcopy(before) if before else new(id_, self.created)
        metadata = after["metadata"]
        ours = _owned(metadata)
        owners = wanted.get("ownerReferences", [])
        kept = {k: v for k, v in metadata.get("labels", {}).items() if k not in ours["labels"]}
        metadata["labels"] = kept | wanted["labels"]
        annotations = wanted.get("annotations", {})
        others = {k: v for k, v in metadata.get("annotations", {}).items() if k not in ours["annotations"]}
        if annotations or others or "annotations" in metadata:
            metadata["annotations"] = others | annotations
        uids = {owner["uid"] for owner in owners} | ours["owners"]
        metadata["ownerReferences"] = [
            *(owner for owner in metadata.get("ownerReferences", []) if owner["uid"] not in uids),
            *owners,
        ]
        metadata["managedFields"] = managed(wanted["labels"], [owner["uid"] for owner in owners], annotations)
        if "spec" in action.body:
            after["spec"] = copy.deepcopy(action.body["spec"])
            metadata["generation"] += before is not None and after["spec"] != before.get("spec")
        if "data" in action.body:
            after["data"] = after.get("data", {}) | action.body["data"]
        if after != before:
            self.put(after)

    def _set(self, action: SetCondition) -> None:
        before = self.objects.get((constants.ADMISSION_CHECK, "", action.name))
        if before is None or before["metadata"]["resourceVersion"] != action.version:
            return
        raw = copy.deepcopy(before)
        others = [c for c in raw.get("status", {}).get("conditions", []) if c["type"] != "Active"]
        raw["status"] = {"conditions": [*others, action.condition]}
        if raw != self.objects[id_of(raw)]:
            self.put(raw)


def is_met(wanted: Raw, before: Raw | None) -> bool:
    """Whether the uid and the resourceVersion with which an object is applied are those that it has."""
    there = before["metadata"] if before else {"resourceVersion": ABSENT}
    version = wanted.get("resourceVersion", there["resourceVersion"])
    return bool(wanted.get("uid") == there.get("uid") and version == there["resourceVersion"])


def id_of(raw: Raw) -> Id:
    return kind_of(raw), raw["metadata"].get("namespace", ""), raw["metadata"]["name"]


def id_of_target(action: Action) -> Id:
    """The id of the object that an action writes."""
    if isinstance(action, Apply):
        return action.kind, action.body["metadata"].get("namespace", ""), action.name
    return action.kind, getattr(action, "namespace", ""), action.name


def new(id_: Id, number: int) -> Raw:
    kind, namespace, name = id_
    metadata: Raw = {"name": name, "uid": f"made-{number}", "generation": 1}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.at(kind.versions[0]).api_version, "kind": kind.kind, "metadata": metadata}


def _owned(metadata: Mapping[str, Any]) -> dict[str, set[str]]:
    for entry in metadata.get("managedFields", ()):
        if (entry["manager"], entry["operation"]) == ("placement-ac", "Apply"):
            fields = entry["fieldsV1"]["f:metadata"]
            uids = {json.loads(key[2:])["uid"] for key in fields.get("f:ownerReferences", {})}
            annotations = {key[2:] for key in fields.get("f:annotations", {})}
            labels = {key[2:] for key in fields["f:labels"]}
            return {"labels": labels, "annotations": annotations, "owners": uids}
    return {"labels": set(), "annotations": set(), "owners": set()}


LATE = 3600.0
MOST_WRITES = 200


class EverLate(Mapping[Since, float]):
    """All ages, once every wait is over."""

    def __getitem__(self, _: Since) -> float:
        return LATE

    def __iter__(self) -> Iterator[Since]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def get(self, _: Since, default: Any = None) -> float:
        return LATE


def todo(cache: Cache, key: Key) -> list[Action]:
    """The actions that `key` still needs once every wait is over, in order."""
    if key.kind == "cluster":
        provided = plan_provisioning(cache.provisioning_inputs(key.name, NOW, EverLate()))
        return [action for phase in (*provided.phases, *provided.orphan_phases) for action in phase]
    seen = cache.snapshot(key, NOW, EverLate())
    return [action for phase in diff(seen, plan(seen)) for action in phase]


def settle(hub: MemoryHub, cache: Cache, keys: Iterable[Key] | None = None) -> list[Action]:
    """Reconcile `keys`, and the keys that these writes touch; return the writes.

    Without `keys`, reconcile every key. A key that asks for a later look gets it.
    """
    queue = sorted(cache.keys() if keys is None else keys, key=str)
    done: list[Action] = []
    while queue:
        key = queue.pop(0)
        actions = todo(cache, key)
        touched = {key} if actions else set()
        for action in actions:
            touched |= carry_out(hub, cache, action)
        done += actions
        queue += sorted(touched - set(queue), key=str)
        if not queue:
            queue += [
                key for key in sorted(cache.keys(), key=str) if _comes_back(cache, key) and todo(cache, key)
            ]
        if len(done) > MOST_WRITES:
            raise AssertionError(f"still not settled: {done[-5:]}")
    return done


def _comes_back(cache: Cache, key: Key) -> bool:
    if key.kind == "cluster":
        return False  # it waits only for time, and every wait is over
    return plan(cache.snapshot(key, NOW, EverLate())).requeue_after is not None


def carry_out(hub: MemoryHub, cache: Cache, action: Action) -> set[Key]:
    """Carry out one action, update the cache, and return the keys that the change touches."""
    id_ = id_of_target(action)
    before = hub.objects.get(id_)
    hub.act(action)
    return show(hub, cache, before, hub.objects.get(id_))


def show(hub: MemoryHub, cache: Cache, before: Raw | None, after: Raw | None) -> set[Key]:
    """Update the cache with the new state of an object (None: deleted); a Secret may be of two kinds."""
    raw = after or before
    touched: set[Key] = set()
    for kind in kinds_for(hub.provisioning):
        if raw and is_of(kind, raw):
            touched |= (cache.put if after else cache.remove)(kind, copy.deepcopy(raw))
    return touched
