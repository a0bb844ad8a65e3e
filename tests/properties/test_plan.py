"""A plan that is carried out leaves nothing to plan, whatever the fleet and the manifests."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.what_if import what_if
from placement_ac.core.api import constants
from tests.support import builders
from tests.support.builders import Raw
from tests.support.whatif import bound, manifest, named, ocm_decides, stored, view_of

SET_LABEL = "cluster.open-cluster-management.io/clusterset"
CLUSTERS = [f"c{number}" for number in range(6)]
traits = st.fixed_dictionaries({"zone": st.sampled_from("ab"), "score": st.integers(0, 3)})
clusters = st.dictionaries(st.sampled_from(CLUSTERS), traits)


@st.composite
def placements(draw: st.DrawFn) -> Raw:
    spec: dict[str, Any] = {}
    if zone := draw(st.sampled_from(["", "a", "b"])):
        labels = {"matchLabels": {"zone": zone}}
        spec["predicates"] = [{"requiredClusterSelector": {"labelSelector": labels}}]
    if draw(st.booleans()):
        add_on = {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "gpu"}}
        spec["prioritizerPolicy"] = {"configurations": [{"scoreCoordinate": add_on, "weight": 2}]}
    number = draw(st.none() | st.integers(0, 4))
    spec |= {} if number is None else {"numberOfClusters": number}
    return manifest(draw(st.sampled_from("pq")), **spec)


def of_fleet(found: dict[str, dict[str, Any]], with_way: set[str]) -> list[Raw]:
    return [
        raw
        for name, one in found.items()
        for raw in (
            builders.an(constants.MANAGED_CLUSTER, name, labels={SET_LABEL: "all", "zone": one["zone"]}),
            builders.scores(name, "usage", gpu=one["score"]),
            *(builders.secrets(name) if name in with_way else ()),
        )
    ]


@settings(max_examples=100)
@given(clusters, st.sets(st.sampled_from(CLUSTERS)), placements(), st.lists(placements(), max_size=2))
def test_a_change_that_is_done_is_planned_no_more(
    found: dict[str, dict[str, Any]], with_way: set[str], there: Raw, wanted: list[Raw]
) -> None:
    there = stored(there | {"metadata": named(there["metadata"]["name"])})
    checks = [builders.check("check-p", "p"), builders.check("check-q", "q")]
    view = ocm_decides(view_of(of_fleet(found, with_way), bound("all"), checks, there))
    answer = what_if(view, wanted)
    done = HubView(answer.after.dump, view.settings, view.now)
    again = what_if(done, wanted)
    assert not again.changed
    # The controller writes the list that was previewed.
    for entry in answer.entries:
        plan = done.plan(entry.plan.name)
        listed = plan.config.clusters if plan.config else ()
        assert listed == tuple(f"{entry.plan.name}-{cluster}" for cluster in entry.plan.order)
