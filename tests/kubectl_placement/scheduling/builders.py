"""Objects for the tests of the scheduler: each builder names only what differs."""

from datetime import UTC, datetime
from typing import Any

from kubectl_placement.scheduling import SchedulingResult

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SET_LABEL = "cluster.open-cluster-management.io/clusterset"


def cluster(name: str, labels: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {SET_LABEL: "all", **(labels or {})}, **more.pop("metadata", {})}
    return {"kind": "ManagedCluster", "metadata": metadata, "spec": {}, "status": {}, **more}


def cluster_set(name: str = "all", **selector: Any) -> dict[str, Any]:
    return {"kind": "ManagedClusterSet", "metadata": {"name": name}, "spec": {"clusterSelector": selector}}


def binding(name: str = "all", namespace: str = "ns") -> dict[str, Any]:
    return {"kind": "ManagedClusterSetBinding", "metadata": {"name": name, "namespace": namespace}}


def placement(**spec: Any) -> dict[str, Any]:
    return {"kind": "Placement", "metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec}


def decision(*names: str, owner: str = "p", namespace: str = "ns", number: int = 1) -> dict[str, Any]:
    labels = {"cluster.open-cluster-management.io/placement": owner}
    return {
        "kind": "PlacementDecision",
        "metadata": {"name": f"{owner}-decision-{number}", "namespace": namespace, "labels": labels},
        "status": {"decisions": [{"clusterName": name, "reason": ""} for name in names]},
    }


def selected_by(outcome: SchedulingResult) -> tuple[str, ...]:
    """Return the selected clusters, best first."""
    return tuple(name for name in outcome.ranked if outcome.clusters[name].dropped is None)
