"""Our objects are restored, others are never touched, and nothing is written without need."""

from typing import Any

import pytest

from placement_lab.hub import Hub
from tests.support.driver import CORE, OCM, Controllers, Driver, Object, eventually
from tests.support.jobs import WORKLOADS, has_quota, is_admitted_on, managed

MINE = "app.kubernetes.io/managed-by"


def everything_else(admin: Driver) -> list[Object]:
    """Every object on the hub that is not the controller's, whole, but for the status of our checks."""
    paths = [f"{CORE}/namespaces", f"{CORE}/secrets", OCM + "/placements", OCM + "/placementdecisions"]
    paths += [admin.kueue(kind) for kind in ("admissionchecks", "multikueueconfigs", "multikueueclusters")]
    return [
        _without_our_status(obj)
        if (obj.get("spec") or {}).get("controllerName", "").endswith("/placement")
        else obj
        for path in paths
        for obj in admin.ask("GET", path)["items"]
        if (obj["metadata"].get("labels") or {}).get(MINE) != "placement-ac"
    ]


def _without_our_status(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    metadata["managedFields"] = [
        entry for entry in metadata["managedFields"] if (entry["manager"], entry.get("subresource")) != US
    ]
    return {"metadata": metadata, "spec": obj["spec"]}


US = ("placement-ac", "status")


def test_nothing_that_is_not_ours_is_written(admin: Driver, controllers: Controllers) -> None:
    for name in ("p", "q", "taken"):
        admin.check(name)
        admin.multikueue_check(f"mk-{name}", name)
        admin.select(name, "a", "b")
    admin.bare_check("bare")
    admin.check("lost")
    admin.config("taken", "somewhere")
    admin.config("foreign", "a", "b")
    admin.cluster("foreign-cluster", labels={"team": "ml"})
    admin.cluster("q-b", annotations={"note": "by hand"})
    before = everything_else(admin)
    controllers.start()
    eventually(lambda: [admin.reason(n) for n in ("p", "q", "taken")], ["Active", "NameTaken", "NameTaken"])
    eventually(lambda: [admin.reason(n) for n in ("bare", "lost")], ["BadParameters", "PlacementNotFound"])
    admin_did = admin.decide
    admin_did("p", "b")
    eventually(lambda: admin.listed("p"), ["p-b"])
    admin_did("p", "a", "b")
    eventually(lambda: admin.listed("p"), ["p-a", "p-b"])
    after = everything_else(admin)
    decisions = [o for o in after if o["metadata"]["name"] != "p-decision-1"]
    assert decisions == [o for o in before if o["metadata"]["name"] != "p-decision-1"]


def test_a_second_start_writes_nothing(hub: Hub, admin: Driver, controllers: Controllers) -> None:
    for name in ("p", "q"):
        admin.check(name)
        admin.multikueue_check(f"mk-{name}", name)
        admin.select(name, "a", "b")
    admin.bare_check("bare")
    admin.check("lost")
    with controllers():
        eventually(lambda: [admin.reason(n) for n in ("p", "q")], ["Active", "Active"])
        eventually(
            lambda: [admin.reason(n) for n in ("bare", "lost")], ["BadParameters", "PlacementNotFound"]
        )
    admin.check("sentinel")
    since = len(hub.journal)
    with controllers():
        eventually(lambda: admin.reason("sentinel"), "PlacementNotFound")
    path = admin.kueue("admissionchecks", "sentinel", "status")
    assert admin.writes(since) == [("PATCH", path)]


def test_the_record_of_moves_of_an_earlier_version_goes_with_the_next_write(
    admin: Driver, controllers: Controllers
) -> None:
    moves, path = "placement-ac.open-cluster-management.io/moves", admin.kueue("multikueueconfigs", "p")
    admin.check("p")
    admin.select("p", "a", "b")
    with controllers():
        eventually(lambda: admin.listed("p"), ["p-a", "p-b"])
    written = admin.ask("GET", path)
    meta = {key: written["metadata"][key] for key in ("name", "labels", "ownerReferences")}
    body = {key: written[key] for key in ("apiVersion", "kind", "spec")}
    record = {"annotations": {moves: "p:uid:a:b:better=2026-08-01T12:00:00Z"}}
    admin.ask("PATCH", path, body | {"metadata": meta | record}, "apply", fieldManager="placement-ac")
    admin.check("sentinel")
    with controllers():
        eventually(lambda: admin.reason("sentinel"), "PlacementNotFound")
        assert moves in admin.ask("GET", path)["metadata"]["annotations"], "that alone is no reason to write"
        admin.decide("p", "a")
        eventually(lambda: admin.listed("p"), ["p-a"])
        assert moves not in admin.ask("GET", path)["metadata"].get("annotations", {})


def _edit_list(admin: Driver) -> None:
    patch = {"spec": {"clusters": ["p-b"]}}
    admin.ask("PATCH", admin.kueue("multikueueconfigs", "p"), patch, "merge")


def _delete_cluster(admin: Driver) -> None:
    admin.ask("DELETE", admin.kueue("multikueueclusters", "p-a"))


def _take_condition_away(admin: Driver) -> None:
    admin.ask("PATCH", admin.kueue("admissionchecks", "p", "status"), {"status": {"conditions": []}}, "merge")


def what_matters(admin: Driver) -> list[Any]:
    objects = [admin.get(admin.kueue("multikueueconfigs", "p"))]
    objects += [admin.get(admin.kueue("multikueueclusters", name)) for name in ("p-a", "p-b")]
    condition = {k: v for k, v in admin.active("p").items() if k != "lastTransitionTime"}
    return [
        *(
            o and (o["spec"], o["metadata"].get("labels"), o["metadata"].get("ownerReferences"))
            for o in objects
        ),
        condition,
    ]


def test_changes_of_others_to_our_objects_are_reverted(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    right = what_matters(admin)
    for edit in (_edit_list, _delete_cluster, _take_condition_away):
        since = len(hub.journal)
        edit(admin)
        eventually(lambda since=since: admin.writes(since))
        eventually(lambda: what_matters(admin), right)


def test_deleting_our_check_alone_freezes_no_job(admin: Driver, controllers: Controllers) -> None:
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    admin.ask("DELETE", admin.kueue("admissionchecks", "p"))

    def owners() -> list[str]:
        config = admin.get(admin.kueue("multikueueconfigs", "p")) or {}
        return [o["name"] for o in (config.get("metadata") or {}).get("ownerReferences") or ()]

    eventually(owners, ["mk"])
    assert (admin.listed("p"), admin.clusters()) == (["p-a"], ["p-a"])
    admin.ask("DELETE", admin.kueue("admissionchecks", "mk"))
    eventually(lambda: (admin.listed("p"), admin.clusters()), (None, []))


def owners(admin: Driver, config: str) -> set[str]:
    found = admin.get(admin.kueue("multikueueconfigs", config)) or {"metadata": {}}
    return {owner["name"] for owner in found["metadata"].get("ownerReferences", ())}


@pytest.mark.parametrize(
    ("moves", "kept_by"),
    [
        pytest.param(["p", "mk"], {"p", "mk"}, id="ours, then Kueue's at once"),
        pytest.param(["p", "", "mk"], {"mk"}, id="Kueue's when ours has moved"),
    ],
)
def test_a_job_keeps_the_config_that_its_checks_named(
    admin: Driver, controllers: Controllers, moves: list[str], kept_by: set[str]
) -> None:
    managed(admin, "a", "b")
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.check("q")
    admin.select("p", "a")
    admin.select("q", "b")
    controllers.start()
    eventually(lambda: [admin.listed(name) for name in "pq"], [["p-a"], ["q-b"]])
    has_quota(admin, "job", "p", "mk")
    eventually(lambda: "Ready" in str(admin.ask("GET", f"{WORKLOADS}/job")["status"]["admissionChecks"]))
    is_admitted_on(admin, "job", "p-a")
    for check in moves:
        if check:
            patch = {"spec": {"parameters": {"name": "q"}}}
            admin.ask("PATCH", admin.kueue("admissionchecks", check), patch, "merge")
        else:
            eventually(lambda: owners(admin, "p"), {"mk"})
    eventually(lambda: owners(admin, "q"), {"p", "mk", "q"})
    admin.check("sentinel")
    eventually(lambda: admin.reason("sentinel"), "PlacementNotFound")
    assert (admin.listed("p"), admin.clusters()) == (["p-a"], ["p-a", "q-b"])
    assert kept_by >= owners(admin, "p") > set()
    admin.ask("DELETE", f"{WORKLOADS}/job")
    eventually(lambda: (admin.listed("p"), admin.clusters()), (None, ["q-b"]))


def test_a_copy_that_carries_our_labels_is_not_ours_to_delete(
    admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    ours = admin.get(admin.kueue("multikueueclusters", "p-a"))
    assert ours is not None
    admin.cluster("copy", labels=ours["metadata"]["labels"])
    admin.decide("p")
    eventually(lambda: (admin.reason("p"), admin.clusters()), ("NoClusterSelected", ["copy"]))


def test_a_config_that_only_carries_our_labels_is_not_ours_to_delete(
    admin: Driver, controllers: Controllers
) -> None:
    """Such as a manifest that was copied: its managedFields say that we never applied it."""
    labels = {MINE: "placement-ac", "cluster.open-cluster-management.io/placement": "p"}
    admin.config("p", "theirs", labels=labels)
    admin.check("p")
    admin.select("p")
    controllers.start()
    eventually(lambda: admin.reason("p"), "NoClusterSelected")
    admin.check("sentinel")
    eventually(lambda: admin.reason("sentinel"), "PlacementNotFound")
    assert admin.listed("p") == ["theirs"]
