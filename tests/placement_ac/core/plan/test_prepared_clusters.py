"""With `--prepare-clusters sets`, the MultiKueueClusters of a Placement's cluster sets exist beforehand."""

from typing import Any

import pytest

from placement_ac.core.inputs.state import HubFacts
from tests.support.builders import (
    check,
    decision,
    foreign_cluster,
    managed_cluster,
    multikueue_check,
    our_cluster,
    our_config,
    our_objects,
    phases,
    placement,
    planned,
    secrets,
    write_names,
)

SETS, SHARED_SETS = HubFacts(prepare_sets=True), HubFacts(prepare_sets=True, naming="{cluster}")


def member(cluster: str, of: str = "spoke") -> Any:
    return managed_cluster(cluster, labels={"cluster.open-cluster-management.io/clusterset": of})


def of_sets(*names: str, name: str = "p") -> Any:
    return placement(name, spec={"clusterSets": list(names)})


HUB = [
    *(check(), multikueue_check(), of_sets("spoke"), decision("a"), *secrets("a", "b", "c")),
    *(member("a"), member("b"), member("c", "other"), managed_cluster("d")),
]


def names(*objects: Any, hub: HubFacts = SETS) -> list[str]:
    answer = planned(*HUB, *objects, hub=hub)
    return [cluster.name for cluster in (*answer.clusters, *answer.prepared)]


def test_it_is_off_by_default() -> None:
    assert names(hub=HubFacts()) == ["p-a"]


def test_the_clusters_of_the_sets_have_multikueueclusters() -> None:
    answer = planned(*HUB, hub=SETS)
    assert [cluster.name for cluster in answer.prepared] == ["p-b"]
    assert answer.config is not None
    assert answer.config.clusters == ("p-a",), "only those selected are listed"


def test_they_are_created_after_the_list() -> None:
    first, second, *_, last = write_names(phases(*HUB, hub=SETS))
    assert (first, second) == (["Apply MultiKueueCluster p-a"], ["Apply MultiKueueConfig p"])
    assert last == ["Apply MultiKueueCluster p-b"], "nothing waits for it"


def test_they_stay_when_they_are_unlisted() -> None:
    owned = our_objects("a", "b", owners=["check", "mk"])
    written = [name for phase in write_names(phases(*HUB, *owned, hub=SETS)) for name in phase]
    assert [name for name in written if "Delete" in name] == []


@pytest.mark.parametrize(
    ("objects", "prepared"),
    [
        pytest.param([foreign_cluster("p-b")], [], id="someone else's name"),
        pytest.param([our_cluster("b", "p")], ["p-b"], id="ours already"),
        pytest.param([check("two", "p-x")], ["p-b"], id="another Placement with another name"),
        pytest.param(
            [member("x-y"), *secrets("x-y"), check("two", "p-x")], ["p-b"], id="a name of two pairs"
        ),
        pytest.param([member("x-y"), *secrets("x-y")], ["p-b", "p-x-y"], id="of one pair"),
        pytest.param([member("e")], ["p-b"], id="no credentials"),
    ],
)
def test_who_is_prepared(objects: list[Any], prepared: list[str]) -> None:
    assert names(*objects) == ["p-a", *prepared]


def test_a_shared_one_stays_while_a_placement_prepares_it() -> None:
    shared = our_cluster("b", None, owners=())

    def deletes(*objects: Any) -> list[str]:
        done = write_names(phases(*objects, shared, our_config("a"), of="b", hub=SHARED_SETS))
        return [name for phase in done for name in phase if name.startswith("Delete MultiKueueCluster")]

    assert deletes(*HUB) == []
    assert deletes(*[obj for obj in HUB if obj["kind"] != "AdmissionCheck"]) == ["Delete MultiKueueCluster b"]
