"""
Whatever managers have made of an object: what one of them owns may be taken out and applied again, unchanged.

The objects are on an embedded hub, whose managedFields are those of a real server.
"""

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_ac.core.api.constants import KUEUE_ADMISSION, WORKLOAD, Kind, Resource
from placement_ac.core.api.errors import Refused
from placement_ac.core.api.managed_fields import applied_version, nomination_body, owned_by
from placement_ac.kube.client import MERGE, Client
from placement_ac.kube.login import Login
from tests.support.builders import Raw
from tests.support.crds import strict_crds
from tests.support.hub_client import crd, spec_schema
from tests.support.real_hub import HubMaker

WORKLOADS = WORKLOAD.at("v1beta2")
THINGS = Kind("example.com", "Thing", "things", True, ("v1",)).at("v1")
NAMES = st.sampled_from(("a", "b", "c"))
NUMBERS = st.integers(0, 3)
MANAGERS = st.sampled_from(("me", "other", "third"))
COUNT = itertools.count()

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
ITEM = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "x": NUMBER, "y": NUMBER}}
SCHEMA = spec_schema(
    keyed={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": ITEM,
    },
    set={"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
    list={"type": "array", "x-kubernetes-list-type": "atomic", "items": TEXT},
    map={"type": "object", "additionalProperties": NUMBER},
    whole={"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": NUMBER},
    deep={
        "type": "object",
        "properties": {"map": {"type": "object", "additionalProperties": TEXT}, "n": NUMBER},
    },
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    text=TEXT,
)

maps = st.dictionaries(NAMES, NUMBERS, max_size=3)
items = st.fixed_dictionaries({"name": NAMES}, optional={"x": NUMBERS, "y": NUMBERS})
free = st.fixed_dictionaries(
    {},
    optional={
        "a": NUMBERS,
        "b": st.lists(NUMBERS, max_size=2),
        "c": st.dictionaries(NAMES, maps, max_size=2),
    },
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "keyed": st.lists(items, max_size=3, unique_by=lambda item: item["name"]),
        "set": st.lists(NAMES, max_size=3, unique=True),
        "list": st.lists(NAMES, max_size=3),
        "map": maps,
        "whole": maps,
        "deep": st.fixed_dictionaries({}, optional={"map": st.dictionaries(NAMES, NAMES), "n": NUMBERS}),
        "free": free,
        "text": NAMES,
    },
)
writes = st.tuples(MANAGERS, st.booleans(), specs)


@pytest.fixture(scope="module")
def login(a_hub: HubMaker) -> Iterator[Login]:
    with (
        a_hub(crds=[*strict_crds(), crd("Thing", SCHEMA)]) as hub,
        tempfile.TemporaryDirectory() as folder,
    ):
        hub.write_kubeconfig(Path(folder) / "kubeconfig")
        yield Login(Path(folder) / "kubeconfig")


@given(first=specs, story=st.lists(writes, max_size=5))
@settings(max_examples=100)
def test_fields_that_were_taken_out_and_applied_again_change_nothing(
    login: Login, first: Raw, story: list[tuple[str, bool, Raw]]
) -> None:
    name = f"t{next(COUNT)}"

    async def run() -> None:
        async with Client(login) as client:
            for manager, applies, spec in [("me", True, first), *story]:
                await write(client, manager, applies, {"metadata": named(name), "spec": spec})
            before = await client.get(THINGS, name, "default")
            for manager in ("me", "other", "third"):
                mine = owned_by(before, manager, subresource="")
                if applied_version(before, manager, ""):
                    again = await client.apply(
                        THINGS, mine | {"metadata": named(name)}, force=True, manager=manager
                    )
                    assert again == before

    asyncio.run(run())


def named(name: str) -> Raw:
    return {"name": name, "namespace": "default"}


async def write(client: Client, manager: str, applies: bool, body: Raw) -> None:
    path = THINGS.path("default", body["metadata"]["name"])
    query = {"fieldManager": manager}
    with contextlib.suppress(Refused):  # who takes back a name leaves an item without, if others own the rest
        if applies:
            # Twice: an API server leaves out a spec that becomes empty, and puts it back the next time.
            for _ in range(2):
                await client.apply(THINGS, body, force=True, manager=manager)
        else:
            await client.request("PATCH", path, body, query=query, content_type=MERGE)


def condition(type_: str) -> Raw:
    rest = {"status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"type": type_} | rest


def check(name: str) -> Raw:
    return {"name": name, "state": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


ADMISSION = {
    "clusterQueue": "cq",
    "podSetAssignments": [
        {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "1", "memory": "2Gi"}}
    ],
}
lists_of = st.lists(NAMES, max_size=3, unique=True)
statuses = st.fixed_dictionaries(
    {},
    optional={
        "admission": st.just(ADMISSION),
        "conditions": lists_of.map(lambda names: [condition(name) for name in names]),
        "admissionChecks": lists_of.map(lambda names: [check(name) for name in names]),
        "requeueState": st.just({"count": 2}),
        "nominatedClusterNames": lists_of,
    },
)
admitted = statuses.map(lambda status: {"admission": ADMISSION, **status})
"""Nobody nominates a Workload without quota, and an API server refuses to leave nothing of its status."""


@given(
    kueue_status=admitted,
    story=st.lists(
        st.tuples(st.just(KUEUE_ADMISSION), admitted)
        | st.tuples(st.sampled_from(("kueue", "ours")), statuses),
        max_size=4,
    ),
    names=st.lists(NAMES, max_size=2, unique=True),
)
@settings(max_examples=100)
def test_a_nomination_changes_the_names_and_nothing_else(
    login: Login, kueue_status: Raw, story: list[tuple[str, Raw]], names: list[str]
) -> None:
    name = f"w{next(COUNT)}"

    async def run() -> None:
        async with Client(login) as client:
            await client.apply(WORKLOADS, {"metadata": named(name), "spec": {"active": True}})
            for manager, status in [(KUEUE_ADMISSION, kueue_status), *story]:
                await tell(client, WORKLOADS, name, manager, status)
            before = await client.get(WORKLOADS, name, "default")
            after = await nominate(client, before, names)
            assert without_names(after) == without_names(before)
            assert (after.get("status") or {}).get("nominatedClusterNames", []) == left(before, names)
            assert applied(after, "kueue-admission") - {"nominatedClusterNames"} == (
                applied(before, "kueue-admission") - {"nominatedClusterNames"}
            )
            assert await nominate(client, after, names) == after

    asyncio.run(run())


async def tell(client: Client, resource: Resource, name: str, manager: str, status: Raw) -> None:
    body = {"metadata": named(name), "status": status}
    with contextlib.suppress(Refused):  # an API server refuses to leave nothing of a status
        await client.apply(resource, body, subresource="status", force=True, manager=manager)


async def nominate(client: Client, workload: Raw, names: list[str]) -> Raw:
    body = nomination_body(workload, names)
    return await client.apply(WORKLOADS, body, subresource="status", force=True, manager=KUEUE_ADMISSION)


def without_names(workload: Raw) -> Raw:
    """Without empty lists, too: an API server drops one that nobody applies any more."""
    status = workload.get("status") or {}
    return {key: part for key, part in status.items() if key != "nominatedClusterNames" and part}


def left(before: Raw, names: list[str]) -> list[str]:
    """Names that are taken back stay if somebody else has set them, too."""
    others = any(
        "f:nominatedClusterNames" in (entry["fieldsV1"].get("f:status") or {})
        for entry in before["metadata"]["managedFields"]
        if entry["manager"] != KUEUE_ADMISSION
    )
    return names or (before["status"]["nominatedClusterNames"] if others else [])


def applied(workload: Raw, manager: str) -> set[str]:
    return set(owned_by(workload, manager).get("status", {}))
