"""The virtual Kueue by itself: its clock, its objects, what it refuses."""

from typing import Any

import pytest

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, WORKLOAD, Kind
from placement_ac.core.api.errors import Conflict
from placement_lab.structural_schema.schema_node import SchemaNode
from placement_lab.structural_schema.validation import validate
from tests.support.crds import strict_crds
from tests.support.virtual.clock import Delays
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.kueues import ALL, kueue, placed_on, submitted, trouble, without


def test_the_same_seed_gives_the_same_run() -> None:
    def story(seed: int) -> list[tuple[float, str, str]]:
        at = placed_on(seed, "worker2")
        at.set_config(without("worker2"))
        at.advance(20)
        return at.log

    assert story(5) == story(5)
    assert story(5) != story(6)


def test_a_listener_is_called_on_every_change_of_the_hub() -> None:
    at = kueue(1)
    changes: dict[tuple[Kind, str], str] = {}
    versions: list[int] = []

    def listen(what: str, kind: Kind, item: dict[str, Any]) -> None:
        changes[kind, item["metadata"]["name"]] = what
        versions.append(int(item["metadata"]["resourceVersion"]))

    at.listeners.append(listen)
    submitted(at).until(lambda: at.placed("b1") != "")
    at.set_config(["worker1"])
    assert changes == {(WORKLOAD, "job-b1"): "put", (MULTIKUEUE_CONFIG, "mk"): "put"}
    assert versions == sorted(set(versions))
    at.delete("b1")
    at.set_config(None)
    at.advance(3)
    assert set(changes.values()) == {"remove"}


@pytest.mark.parametrize("seed", range(2))
def test_all_objects_are_valid_by_their_crds(seed: int) -> None:
    assert faults_of(seed, strict_crds()) == []


def faults_of(seed: int, crds: list[dict[str, Any]]) -> list[Any]:
    """Return what the CRDs refuse of a run with many faults: of every object, and of every change of one."""
    nodes = {crd["spec"]["names"]["kind"]: schema_of(crd) for crd in crds if is_kueues(crd)}
    at = VirtualKueue(seed, dict.fromkeys(ALL, 1), delays=Delays(left_behind=0.3))
    before: dict[str, dict[str, Any]] = {}
    faults: list[Any] = []

    def listen(what: str, kind: Kind, item: dict[str, Any]) -> None:
        old = before.get(item["metadata"]["name"])
        faults.extend(validate(nodes[kind.kind], item, old, []))
        before[item["metadata"]["name"]] = item

    at.listeners.append(listen)
    for name in ("j0", "j1", "j2"):
        at.submit(name)
    for turn in range(60):
        trouble(at, f"j{turn % 3}")
        at.set_config([one for one in ALL if at.random.random() < 0.8] or ALL)
        at.advance(at.random.choice((0.1, 0.7, 5.0)))
    assert len(before) == 4
    return faults


def is_kueues(crd: dict[str, Any]) -> bool:
    return crd["spec"]["names"]["kind"] in (WORKLOAD.kind, MULTIKUEUE_CONFIG.kind)


def schema_of(crd: dict[str, Any]) -> SchemaNode:
    (served,) = (version for version in crd["spec"]["versions"] if version["name"] == "v1beta2")
    return SchemaNode(served["schema"]["openAPIV3Schema"])


def test_a_config_of_another_version_is_a_conflict_and_a_change_of_its_spec_is_a_generation() -> None:
    at = kueue(1)
    before = at.config() or {}
    at.set_config(["worker1"], resource_version=before["metadata"]["resourceVersion"])
    after = at.config() or {}
    assert (before["metadata"]["generation"], after["metadata"]["generation"]) == (1, 2)
    with pytest.raises(Conflict):
        at.set_config(ALL, resource_version=before["metadata"]["resourceVersion"])


@pytest.mark.parametrize("seed", range(4))
def test_while_all_clusters_stay_listed_and_reachable_a_job_runs_once(seed: int) -> None:
    """DESIGN.md: "as long as the cluster stays listed there is one running copy"."""
    at = VirtualKueue(seed, dict.fromkeys(ALL, 1), delays=Delays(left_behind=0.3))
    jobs = [f"j{number}" for number in range(4)]
    for name in jobs:
        at.submit(name)
    for _ in range(80):
        trouble(at, at.random.choice(jobs))
        at.advance(at.random.choice((0.0, 0.02, 0.1, 0.7, 2.0, 10.0)))
    assert max(at.max_copies.values()) == 1, at.log
