"""
A hub in plain dicts, for tests without HTTP: it carries out actions as an API server would.

Server-side apply is modelled for labels, annotations, ownerReferences and spec; deletion collects
what has lost its last owner.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from placement_ac import names
from placement_ac.diff import Action, Apply, Delete, SetCondition, diff
from placement_ac.names import Kind
from placement_ac.plan import plan
from placement_ac.snapshot import HubFacts, Key, Mark
from placement_ac.world import World
from tests.builders import AT_ONCE, NOW, Raw, kind_of, managed

Id = tuple[Kind, str, str]


class MemoryHub:
    """Objects by kind, namespace and name; every change has a resourceVersion of its own."""

    def __init__(self, objects: Iterable[Raw], facts: HubFacts) -> None:
        self.facts = facts
        self.objects: dict[Id, Raw] = {}
        self.version = 0
        self.made = 0
        for raw in objects:
            self.put(raw)

    def put(self, raw: Raw) -> None:
        """Store an object as somebody else wrote it."""
        self.version += 1
        raw = copy.deepcopy(raw)
        raw["metadata"]["resourceVersion"] = str(self.version)
        self.objects[id_of(raw)] = raw

    def world(self) -> World:
        """What a controller sees that starts now."""
        world = World(self.facts, policy=AT_ONCE)
        for kind in names.WATCHED_KINDS:
            items = [raw for (of, _, _), raw in self.objects.items() if of == kind]
            world.replace(kind, copy.deepcopy(items), str(self.version))
        return world

    def act(self, action: Action) -> None:
        """Carry out one action; one whose object has changed its identity is refused without effect."""
        if isinstance(action, Apply):
            self._apply(action)
        elif isinstance(action, Delete):
            found = self.objects.get((action.kind, "", action.name))
            if found and found["metadata"]["uid"] == action.uid:
                del self.objects[action.kind, "", action.name]
        elif isinstance(action, SetCondition):
            self._set(action)
        else:
            raise NotImplementedError(type(action))

    def collect(self) -> None:
        """Delete what has owners of which none is there, as Kubernetes does."""
        uids = {raw["metadata"]["uid"] for raw in self.objects.values()}
        for id_, raw in list(self.objects.items()):
            owners = raw["metadata"].get("ownerReferences")
            if owners and not any(owner["uid"] in uids for owner in owners):
                del self.objects[id_]

    def _apply(self, action: Apply) -> None:
        id_ = (action.kind, "", action.name)
        before = self.objects.get(id_)
        wanted = action.body["metadata"]
        if wanted.get("uid") != (before["metadata"]["uid"] if before else None):
            return
        self.made += not before
        after = copy.deepcopy(before) if before else new(action.kind, action.name, self.made)
        metadata = after["metadata"]
        ours = _owned(metadata)
        owners = wanted.get("ownerReferences", [])
        kept = {k: v for k, v in metadata.get("labels", {}).items() if k not in ours["labels"]}
        metadata["labels"] = kept | wanted["labels"]
        told = wanted.get("annotations", {})
        others = {k: v for k, v in metadata.get("annotations", {}).items() if k not in ours["annotations"]}
        if told or others or "annotations" in metadata:
            metadata["annotations"] = others | told
        uids = {owner["uid"] for owner in owners} | ours["owners"]
        metadata["ownerReferences"] = [
            *(owner for owner in metadata.get("ownerReferences", []) if owner["uid"] not in uids),
            *owners,
        ]
        metadata["managedFields"] = managed(wanted["labels"], [owner["uid"] for owner in owners], told)
        after["spec"] = copy.deepcopy(action.body["spec"])
        if after != before:
            self.put(after)

    def _set(self, action: SetCondition) -> None:
        raw = copy.deepcopy(self.objects[names.ADMISSION_CHECK, "", action.check])
        others = [c for c in raw.get("status", {}).get("conditions", []) if c["type"] != "Active"]
        raw["status"] = {"conditions": [*others, action.condition]}
        if raw != self.objects[id_of(raw)]:
            self.put(raw)


def id_of(raw: Raw) -> Id:
    return kind_of(raw), raw["metadata"].get("namespace", ""), raw["metadata"]["name"]


def new(kind: Kind, name: str, number: int) -> Raw:
    metadata = {"name": name, "uid": f"made-{number}", "generation": 1}
    return {"apiVersion": kind.at("v1beta2").api_version, "kind": kind.kind, "metadata": metadata}


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


class EverLate(Mapping[Mark, float]):
    """Ages of whatever is pending, when every wait is over."""

    def __getitem__(self, _: Mark) -> float:
        return LATE

    def __iter__(self) -> Iterator[Mark]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def get(self, _: Mark, default: Any = None) -> float:
        return LATE


def todo(world: World, key: Key) -> list[Action]:
    """What `key` still calls for in a world, when every wait is over, in order."""
    seen = world.snapshot(key, NOW, EverLate())
    return [action for phase in diff(seen, plan(seen)) for action in phase]


def settle(hub: MemoryHub, world: World, keys: Iterable[Key] | None = None) -> list[Action]:
    """Let a controller work off `keys`, and those that its own writes touch; return the writes.

    Without `keys` it looks at all that there are. Keys that ask to be looked at later are.
    """
    queue = sorted(world.keys() if keys is None else keys, key=str)
    done: list[Action] = []
    while queue:
        key = queue.pop(0)
        actions = todo(world, key)
        touched = {key} if actions else set()
        for action in actions:
            touched |= tell(hub, world, action)
        done += actions
        queue += sorted(touched - set(queue), key=str)
        if not queue:
            queue += [
                key for key in sorted(world.keys(), key=str) if _comes_back(world, key) and todo(world, key)
            ]
        if len(done) > MOST_WRITES:
            raise AssertionError(f"still not at rest: {done[-5:]}")
    return done


def _comes_back(world: World, key: Key) -> bool:
    return plan(world.snapshot(key, NOW, EverLate())).recheck_after is not None


def tell(hub: MemoryHub, world: World, action: Action) -> set[Key]:
    """Carry out one action, tell the world, and return the keys that this touches."""
    id_ = (action.kind, "", action.name)
    before = hub.objects.get(id_)
    hub.act(action)
    if after := hub.objects.get(id_):
        return world.put(action.kind, copy.deepcopy(after))
    return world.remove(action.kind, before) if before else set()
