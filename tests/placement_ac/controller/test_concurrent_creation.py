"""MultiKueueClusters are created at the same time, and the list waits once for those that it needs."""

from placement_lab.hub import Hub
from tests.support.driver import OCM, Controllers, Driver, eventually
from tests.support.jobs import MANAGED

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


def test_many_creations_keep_no_other_list_waiting(hub: Hub, admin: Driver, controllers: Controllers) -> None:
    """While a hundred clusters, three times as many as connections, are prepared for p, q changes."""
    names = [f"c{number:02}" for number in range(100)]
    for name in names:
        admin.secrets_for(name)
        body = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
        spec = {"hubAcceptsClient": True, "leaseDurationSeconds": 60}
        admin.ask("POST", MANAGED, body | {"metadata": {"name": name, "labels": {SET: "all"}}, "spec": spec})
    placed(admin, "q")
    controllers.start(prepare_clusters="sets")
    eventually(lambda: len(admin.clusters()), len(names))
    hub.faults.add("PATCH", "multikueueclusters/p-", delay=0.5, times=len(names))
    since = len(hub.journal)
    placed(admin, "p")
    eventually(lambda: len(written(admin, "multikueueclusters", since)) > 1)
    admin.decide("q", "c00", "c01")
    eventually(lambda: admin.listed("q"), ["q-c00", "q-c01"])
    assert len(written(admin, "multikueueclusters", since)) < 80
    eventually(lambda: len(admin.clusters()), 2 * len(names))


def placed(admin: Driver, name: str) -> None:
    """A check whose Placement selects c00 of the set `all`."""
    admin.check(name)
    admin.placement(name, clusterSets=["all"])
    admin.decide(name, "c00")


def test_one_that_nobody_needs_yet_may_be_refused(hub: Hub, admin: Driver, controllers: Controllers) -> None:
    for name in ("b", "c"):
        admin.secrets_for(name)
        body = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
        admin.ask("POST", MANAGED, body | {"metadata": {"name": name, "labels": {SET: "spoke"}}, "spec": {}})
    hub.faults.add("PATCH", "multikueueclusters/p-b$", status=403, times=1000)
    admin.check("p")
    admin.select("p", "a")
    placement = {"spec": {"clusterSets": ["spoke"]}}
    admin.ask("PATCH", f"{OCM}/placements/p", placement, "merge")
    controllers.start(prepare_clusters="sets")
    eventually(admin.clusters, ["p-a", "p-c"])
    assert (admin.reason("p"), admin.listed("p")) == ("Active", ["p-a"])
