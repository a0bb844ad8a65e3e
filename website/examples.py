"""
Messages of Story 2's check for changed samples, by the controller's own rules.

The hub has `samples/fleet`, the manifests of Story 2 and OCM's decision for it.
"""

import base64
import copy
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.readers.manifests import read_manifests
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ACTIVE,
    APPLY_FAILED,
    BAD_PARAMETERS,
    LABEL_PLACEMENT,
    NAME_TAKEN,
    NO_CLUSTER_SELECTED,
    NO_CLUSTER_USABLE,
    NO_DECISION,
    OCM_CLUSTER,
    OUR_CONTROLLER,
    PLACEMENT_NOT_FOUND,
    SOME_CLUSTERS_UNUSABLE,
)
from placement_ac.core.inputs.state import Verdict
from placement_ac.core.plan.conditions import refuse
from placement_ac.core.plan.plan import plan

Object = dict[str, Any]

ROOT: Final = Path(__file__).resolve().parents[1]
_DEMO2: Final = "placement-demo2"
_MANIFESTS: Final = ("samples/fleet", "samples/multikueue-setup-demo2.yaml", "samples/placement-demo2-1.yaml")
_DECISION: Final[Object] = {
    "apiVersion": f"{OCM_CLUSTER}/v1beta1",
    "kind": "PlacementDecision",
    "metadata": {
        "name": f"{_DEMO2}-decision-1",
        "namespace": "kueue-system",
        "labels": {LABEL_PLACEMENT: _DEMO2},
    },
    "status": {"decisions": [{"clusterName": name, "reason": ""} for name in ("cluster2", "cluster3")]},
}
_STRANGE: Final[Object] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "MultiKueueConfig",
    "metadata": {"name": _DEMO2},
    "spec": {"clusters": ["by-hand"]},
}
_FORBIDDEN: Final = (
    f'multikueueconfigs.kueue.x-k8s.io "{_DEMO2}" is forbidden: User '
    '"system:serviceaccount:placement-ac-system:placement-ac" cannot patch resource "multikueueconfigs" in '
    'API group "kueue.x-k8s.io" at the cluster scope'
)
"""The message of Kubernetes for an account without the permission."""


def _without(kind: str, name: str = "") -> Callable[[list[Object]], list[Object]]:
    def changed(objects: list[Object]) -> list[Object]:
        return [obj for obj in objects if obj["kind"] != kind or name not in obj["metadata"]["name"]]

    return changed


def _wrong_kind(objects: list[Object]) -> list[Object]:
    for obj in objects:
        if (obj.get("spec") or {}).get("controllerName") == OUR_CONTROLLER:
            obj["spec"]["parameters"]["kind"] = "ClusterSet"
    return objects


def _other_secrets(objects: list[Object]) -> list[Object]:
    """Rename the Secrets, so that the hub has Secrets, but none of these clusters."""
    for obj in objects:
        if obj["kind"] == "Secret":
            obj["metadata"]["name"] = f"of-others-{obj['metadata']['name']}"
    return objects


def _none_decided(objects: list[Object]) -> list[Object]:
    for obj in objects:
        if obj["kind"] == "PlacementDecision":
            obj["status"] = {"decisions": []}
    return objects


_CHANGES: Final[dict[str, tuple[str, Callable[[list[Object]], list[Object]]]]] = {
    ACTIVE: ("everything is set up correctly", lambda objects: objects),
    SOME_CLUSTERS_UNUSABLE: ("the Secret of cluster3 is missing", _without("Secret", "cluster3")),
    BAD_PARAMETERS: ("the check names another kind", _wrong_kind),
    PLACEMENT_NOT_FOUND: ("the Placement is missing", _without("Placement")),
    NO_DECISION: ("OCM's placement controller does not run", _without("PlacementDecision")),
    NO_CLUSTER_SELECTED: ("no cluster has the label", _none_decided),
    NO_CLUSTER_USABLE: ("the Secrets of these clusters are missing", _other_secrets),
    NAME_TAKEN: ("a MultiKueueConfig of another owner has that name", lambda objects: [*objects, _STRANGE]),
}


def example(reason: str) -> tuple[str, Verdict]:
    """Return the change of the samples, and the resulting verdict. Raises KeyError for an unknown reason."""
    if reason == APPLY_FAILED:
        return "the account lacks a right", refuse(APPLY_FAILED, _FORBIDDEN)
    difference, change = _CHANGES[reason]
    objects = change(
        [*map(_stored, read_manifests([str(ROOT / path) for path in _MANIFESTS])), copy.deepcopy(_DECISION)]
    )
    view = HubView(dump_of(objects), Settings.model_validate({}), datetime.now(UTC))
    (check,) = view.our_checks
    return difference, plan(view.check_snapshot(check)).verdicts[check.meta.name]


def _stored(manifest: Object) -> Object:
    """Return an object as the API server stores it: a Secret's text is encoded."""
    texts = manifest.get("stringData") or {}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    return {key: value for key, value in manifest.items() if key != "stringData"} | (
        {"data": data} if data else {}
    )
