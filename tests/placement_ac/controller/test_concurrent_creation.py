"""MultiKueueClusters are created at the same time, and the list waits once for those that it needs."""

from placement_lab.hub import Hub
from tests.support.driver import Controllers, Driver, eventually

CLUSTERS = tuple("abcdefghij")
SET = "cluster.open-cluster-management.io/clusterset"


def written(admin: Driver, plural: str, since: int = 0) -> list[str]:
    """The names of the objects of a kind that the controller has written, in the order of the answers."""
    asked = [path.rsplit("/", 1) for _, path in admin.writes(since)]
    return [name for path, name in asked if path == admin.kueue(plural)]


def test_one_creation_waits_for_no_other_and_the_list_for_all(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    hub.faults.add("PATCH", "multikueueclusters/p-a$", delay=0.5)
    admin.check("p")
    admin.select("p", *CLUSTERS)
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    names = [path.rsplit("/", 1)[1] for _, path in admin.writes() if "/status" not in path]
    assert sorted(names[:9]) == [f"p-{cluster}" for cluster in CLUSTERS[1:]]
    assert names[9:] == ["p-a", "p"], "the slow one is the last, and the list comes after it"


def test_one_that_is_refused_does_not_keep_the_others_from_being_created(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    refused = {
        "kind": "Status",
        "status": "Failure",
        "reason": "Forbidden",
        "code": 403,
        "message": "not p-a",
    }
    hub.faults.add("PATCH", "multikueueclusters/p-a$", status=403, body=refused, times=1000)
    admin.check("p")
    admin.select("p", *CLUSTERS)
    controllers.start()
    eventually(admin.clusters, [f"p-{cluster}" for cluster in CLUSTERS[1:]])
    eventually(lambda: admin.active("p").get("message"), "not p-a")
    assert (admin.reason("p"), admin.listed("p")) == ("ApplyFailed", None)
    hub.faults.clear()
    eventually(lambda: admin.listed("p"), [f"p-{cluster}" for cluster in CLUSTERS])
    created = written(admin, "multikueueclusters")
    assert sorted({name for name in created if created.count(name) == 1}) == [f"p-{c}" for c in CLUSTERS[1:]]
