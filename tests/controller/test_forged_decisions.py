"""A PlacementDecision with a copied owner: the Placement's status does not name it."""

from datetime import UTC, datetime, timedelta

from tests.support.driver import Controllers, Driver, eventually
from tests.support.jobs import managed


def test_it_brings_in_no_cluster_and_is_named(admin: Driver, controllers: Controllers) -> None:
    admin.check("p")
    admin.select("p", "a")
    admin.secrets_for("b")
    managed(admin, "a", "b")
    group = {
        "decisionGroupIndex": 0,
        "decisionGroupName": "",
        "decisions": ["p-decision-1"],
        "clusterCount": 1,
    }
    status = {"status": {"numberOfSelectedClusters": 1, "decisionGroups": [group]}}
    admin.ask("PATCH", f"{admin.ocm}/placements/p/status", status, "merge")
    with controllers():
        eventually(lambda: admin.listed("p"), ["p-a"])
        admin.decide("p", "b", index=2)
        eventually(lambda: "p-decision-2" in admin.active("p").get("message", ""))
        eventually(lambda: admin.listed("p"), ["p-a"])
        assert admin.active("p")["message"].endswith(
            "delete PlacementDecision kueue-system/p-decision-2: status.decisionGroups of Placement "
            "kueue-system/p does not name it, so it is ignored"
        )
    # A new controller knows its age by its creation alone, and younger ones may still be named.
    made = admin.ask("GET", f"{admin.ocm}/placementdecisions/p-decision-2")["metadata"]["creationTimestamp"]
    eventually(lambda: datetime.now(UTC) - datetime.fromisoformat(made) > timedelta(seconds=4))
    since = len(admin.hub.journal)
    with controllers():
        eventually(lambda: "GET" in {request.method for request in admin.hub.journal[since:]})
        admin.check("q")
        eventually(lambda: admin.reason("q"), "PlacementNotFound")
    assert [path for _, path in admin.writes(since) if not path.endswith("/q/status")] == []
