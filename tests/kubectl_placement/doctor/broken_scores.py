"""Scores of the controller that a Placement chooses by, and that are not as they should be."""

from typing import Any, Final

from tests.kubectl_placement.doctor.broken_setups import (
    FAIL,
    WARN,
    Break,
    How,
    Objects,
    add,
    both,
    put,
    setting,
)
from tests.support.healthy import CLUSTERS, NS, PLACEMENT, Key, Object

_PLACEMENT: Final[Key] = ("Placement", NS, PLACEMENT)


def chosen_by(resource: str, score: str) -> How:
    """Return what lets the Placement choose by a score of an add-on."""
    coordinate = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}}
    policy = {"configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}
    return put(_PLACEMENT, "spec", "prioritizerPolicy", policy)


CHOSEN: Final[How] = chosen_by("placement-ac", "gpuFree")
MANAGED: Final = {"app.kubernetes.io/managed-by": "placement-ac"}


def _score(cluster: str, until: str = "2026-08-01T12:03:00Z", **metadata: Any) -> Object:
    return {
        "apiVersion": "cluster.open-cluster-management.io/v1alpha1",
        "kind": "AddOnPlacementScore",
        "metadata": {"name": "placement-ac", "namespace": cluster, "labels": MANAGED} | metadata,
        "status": {"scores": [{"name": "gpuFree", "value": 100}], "validUntil": until},
    }


def _with_right(objects: Objects) -> None:
    objects["ClusterRole", "", "placement-ac"]["rules"].append(
        {
            "apiGroups": ["cluster.open-cluster-management.io"],
            "resources": ["addonplacementscores"],
            "verbs": ["create"],
        }
    )


REPORTED: Final = both(CHOSEN, setting("REPORT_SCORES", "true"), *(add(_score(name)) for name in CLUSTERS))
SCORES: Final = (
    Break(
        "a Placement chooses by scores that are not reported",
        CHOSEN,
        "scores",
        FAIL,
        "Placement placement-demo1 chooses by placement-ac, and the controller reports no scores",
        "kubectl set env -n placement-ac-system deployment/placement-ac PLACEMENT_AC_REPORT_SCORES=true",
    ),
    Break(
        "the controller may not create scores",
        REPORTED,
        "scores",
        FAIL,
        "ServiceAccount placement-ac-system/placement-ac, the controller's, may not create"
        " addonplacementscores.cluster.open-cluster-management.io",
        "kubectl apply -f config/components/scores/role.yaml",
    ),
    Break(
        "a score of that name is somebody else's",
        both(REPORTED, _with_right, add(_score("cluster2", labels={"team": "ocm"}))),
        "scores",
        WARN,
        "AddOnPlacementScore cluster2/placement-ac is owned by someone else, and stays as it is",
        "kubectl annotate -n cluster2 addonplacementscores.cluster.open-cluster-management.io placement-ac"
        " placement-ac.open-cluster-management.io/adopt=true",
    ),
    Break(
        "a score has expired",
        both(REPORTED, _with_right, add(_score("cluster2", "2026-08-01T11:59:00Z"))),
        "scores",
        WARN,
        "cluster cluster2 has no score: its worker was not read lately",
        "kubectl logs -n placement-ac-system deployment/placement-ac --all-pods --tail=100",
    ),
)
