"""Which Placements a change concerns, where what was before counts."""

from typing import Any

from kubectl_placement.scheduling.affected import AffectedPlacements
from kubectl_placement.scheduling.fleet import Fleet

OCM = "cluster.open-cluster-management.io"


def test_a_cluster_that_leaves_a_set_which_was_heard_of_later_concerns_its_placements() -> None:
    """Each kind has a watch of its own: a cluster may be heard of before the set that it is in."""
    reach = AffectedPlacements()
    member = {"metadata": {"name": "a", "labels": {f"{OCM}/clusterset": "all"}}}
    everything: dict[Any, Any] = {("", "all"): {"metadata": {"name": "all"}, "spec": {}}}
    placements = {("ns", "p"): {"metadata": {"name": "p", "namespace": "ns"}, "spec": {}}}
    reach.of_cluster("a", Fleet(clusters={("", "a"): member}), placements)
    left = {"metadata": {"name": "a"}}
    bound = {("ns", "all"): {"metadata": {"name": "all", "namespace": "ns"}}}
    fleet = Fleet(clusters={("", "a"): left}, cluster_sets=everything, bindings=bound)
    assert reach.of_cluster("a", fleet, placements) == {("ns", "p")}
