"""A PlacementDecision with a copied owner: the Placement's status does not name it."""

from collections.abc import Iterator

import pytest

from tests.support.credentials import Stage, open_stage
from tests.support.driver import Controllers, Driver, eventually
from tests.support.jobs import soon


@pytest.fixture
def provisioning(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    """A stage with two workers, whose controller is not started yet."""
    with open_stage(admin, controllers, ("a", "b")) as found:
        admin.check("p")
        admin.placement("p")
        yield found


def test_no_credentials_are_made_for_its_clusters(provisioning: Stage) -> None:
    """Not for a moment: an account on a cluster is more than a place in a list."""
    admin = provisioning.admin
    provisioning.select("a")
    names_alone(admin, "p-decision-1")
    provisioning.start()
    soon(lambda: admin.listed("p"), ["p-a"])
    admin.decide("p", "b", index=2)
    eventually(lambda: "p-decision-2" in admin.active("p").get("message", ""))
    made = [path for method, path in admin.writes() if "/namespaces/b/" in path]
    assert (provisioning.account("b"), provisioning.permission("b"), made) == (None, None, [])
    names_alone(admin, "p-decision-1", "p-decision-2")
    soon(lambda: provisioning.account("b") is not None)


def names_alone(admin: Driver, *decisions: str) -> None:
    """Write the Placement's status as OCM does, with one cluster in each of these decisions."""
    group = {
        "decisionGroupIndex": 0,
        "decisionGroupName": "",
        "decisions": list(decisions),
        "clusterCount": len(decisions),
    }
    status = {"numberOfSelectedClusters": len(decisions), "decisionGroups": [group]}
    admin.ask("PATCH", f"{admin.ocm}/placements/p/status", {"status": status}, "merge")
