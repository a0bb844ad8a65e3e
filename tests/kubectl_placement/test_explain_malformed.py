"""Whatever stands in a file: `explain` tells what it can, or refuses the object by its field."""

from typing import Any

import pytest

from kubectl_placement.explain.explanations import explain_check, explain_cluster, explain_placement
from kubectl_placement.explain.subject import placement_views
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.readers.manifests import metadata_problem
from placement_ac.config.settings import Settings
from tests.kubectl_placement.explain_builders import (
    FOR_5_MINUTES,
    GPU,
    SET_LABEL,
    a_set,
    binding,
    cluster,
    dump,
    predicate,
    queue,
    scored,
)
from tests.kubectl_placement.malformed import paths, with_value
from tests.support.builders import (
    NOW,
    check,
    condition,
    decision,
    multikueue_check,
    our_objects,
    placement,
    running,
    scores,
    secrets,
    workload,
)

GROUPS = {
    "clustersPerDecisionGroup": 1,
    "decisionGroups": [{"groupName": "g", "groupClusterSelector": {"labelSelector": {}}}],
}
SPEC = {
    **scored(("gpu", 1), numberOfClusters=1, clusterSets=["all"]),
    **predicate(labelSelector={"matchLabels": {SET_LABEL: "all"}}, celSelector={"celExpressions": ["2 > 1"]}),
    **FOR_5_MINUTES,
    "decisionStrategy": {"groupStrategy": GROUPS},
}
HUB = [
    a_set(),
    binding(),
    cluster("c", GPU, status={"clusterClaims": [{"name": "x", "value": "y"}]}),
    cluster("d"),
    check(active=condition()),
    multikueue_check(),
    queue(),
    scores("c", gpu=3, until="2026-08-01T13:00:00Z"),
    placement(spec=SPEC),
    decision(("c", 3)),
    *secrets("c", "d"),
    *our_objects("c", "d"),
    running("job", "p-d"),
    workload("w", nominated=["p-c"]),
]
IDENTITY = ("apiVersion", "kind")


@pytest.mark.long
@pytest.mark.parametrize("junk", [None, -1, ["a"]], ids=repr)
def test_no_field_of_any_object_breaks_it(junk: Any) -> None:
    refused = set()
    for number, path in ((number, path) for number, one in enumerate(HUB) for path in paths(one)):
        if path[0] in IDENTITY or path == ("metadata",):
            continue  # such a thing is no object at all: `manifests` says so
        broken = with_value(HUB[number], path, junk)
        if metadata_problem(broken):
            refused.add(path[0])
            continue
        view = HubView(dump(*HUB[:number], broken, *HUB[number + 1 :]), Settings(), NOW)
        for case in placement_views(view, "", ()):
            assert explain_cluster(case, "c").links
            assert explain_placement(case).clusters
        for one in view.our_checks:
            assert explain_check(view, one).links
    assert refused <= {"metadata"}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": "x"}, ""),
        ({"name": "x", "labels": None, "managedFields": [{"fieldsV1": {"f:spec": {}}}]}, ""),
        ({"name": "x", "labels": {"gpu": None}}, ""),
        ({"name": "x", "labels": {"gpu": 1}}, "metadata.labels.gpu: Input should be a valid string"),
        ({"name": "x", "generation": "1"}, "metadata.generation: Input should be a valid integer"),
        ({"name": "x", "ownerReferences": [{}]}, "metadata.ownerReferences.0.kind: Field required"),
        (
            {"name": "x", "managedFields": [{"fieldsV1": {"f:spec": 1}}]},
            "metadata.managedFields.0.fieldsV1: it must be a map of maps",
        ),
    ],
    ids=str,
)
def test_metadata_that_no_api_server_gives(metadata: dict[str, Any], expected: str) -> None:
    assert metadata_problem({"metadata": metadata}) == expected
