"""Our objects are restored, others are never touched, and nothing is written without need."""

from typing import Any

import pytest

from placement_lab.hub import Hub
from tests.support.driver import CORE, OCM, PARAMETERS, Controllers, Driver, Object, eventually
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


def _edit_source(admin: Driver) -> None:
    source = {"clusterProfileRef": {"name": "elsewhere"}, "kubeConfig": None}
    patch = {"spec": {"clusterSource": source}}
    admin.ask("PATCH", admin.kueue("multikueueclusters", "p-a"), patch, "merge")


def _edit_location(admin: Driver) -> None:
    patch = {"spec": {"clusterSource": {"kubeConfig": {"location": "elsewhere"}}}}
    admin.ask("PATCH", admin.kueue("multikueueclusters", "p-a"), patch, "merge")


def _drop_labels(admin: Driver) -> None:
    patch = {"metadata": {"labels": None}}
    admin.ask("PATCH", admin.kueue("multikueueclusters", "p-a"), patch, "merge")


def _drop_owners(admin: Driver) -> None:
    patch = {"metadata": {"ownerReferences": None}}
    admin.ask("PATCH", admin.kueue("multikueueconfigs", "p"), patch, "merge")


def _delete_config(admin: Driver) -> None:
    admin.ask("DELETE", admin.kueue("multikueueconfigs", "p"))


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


@pytest.mark.parametrize(
    "edit",
    [
        _edit_list,
        _edit_source,
        _edit_location,
        _drop_labels,
        _drop_owners,
        _delete_config,
        _delete_cluster,
        _take_condition_away,
    ],
)
def test_changes_of_others_to_our_objects_are_reverted(
    hub: Hub, admin: Driver, controllers: Controllers, edit: Any
) -> None:
    admin.check("p")
    admin.select("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    right = what_matters(admin)
    since = len(hub.journal)
    edit(admin)
    eventually(lambda: admin.writes(since))
    eventually(lambda: what_matters(admin), right)


def test_foreign_labels_and_owners_on_our_objects_stay(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    since = len(hub.journal)
    patch = {"metadata": {"labels": {"team": "ml"}, "annotations": {"note": "x"}}}
    admin.ask("PATCH", admin.kueue("multikueueconfigs", "p"), patch, "merge")
    admin.check("sentinel")
    eventually(lambda: admin.reason("sentinel"), "PlacementNotFound")
    assert len(admin.writes(since)) == 1
    admin.decide("p")
    admin.decide("p", "a")
    config = admin.get(admin.kueue("multikueueconfigs", "p"))
    assert config is None or config["metadata"]["labels"].get("team", "ml") == "ml"


@pytest.mark.parametrize("kind", ["config", "cluster"])
def test_a_hand_made_object_in_the_way_is_reported_and_can_be_handed_over(
    admin: Driver, controllers: Controllers, kind: str
) -> None:
    admin.check("p")
    admin.select("p", "a")
    if kind == "config":
        admin.config("p", "mine")
        path, what = admin.kueue("multikueueconfigs", "p"), "MultiKueueConfig p"
    else:
        admin.cluster("p-a")
        path, what = admin.kueue("multikueueclusters", "p-a"), "MultiKueueCluster p-a"
    controllers.start()
    eventually(lambda: admin.reason("p"), "NameTaken")
    word, name = what.split()
    assert admin.active("p")["message"] == (
        f"delete {what}, or hand it over with kubectl annotate {word.lower()} {name} "
        "placement-ac.open-cluster-management.io/adopt=true: it was not made by placement-ac"
    )
    patch = {"metadata": {"annotations": {"placement-ac.open-cluster-management.io/adopt": "true"}}}
    admin.ask("PATCH", path, patch, "merge")
    eventually(lambda: admin.reason("p"), "Active")
    assert admin.listed("p") == ["p-a"]


def test_two_pairs_that_make_one_name(admin: Driver, controllers: Controllers) -> None:
    admin.check("a")
    admin.check("a-b")
    admin.select("a", "b-c")
    admin.select("a-b", "c")
    controllers.start()
    eventually(lambda: sorted([admin.reason("a"), admin.reason("a-b")]), ["Active", "NameTaken"])
    loser = "a" if admin.reason("a") == "NameTaken" else "a-b"
    winner = "a-b" if loser == "a" else "a"
    assert "rename one of the Placements" in admin.active(loser)["message"]
    admin.ask("DELETE", admin.kueue("admissionchecks", winner))
    eventually(lambda: admin.reason(loser), "Active")


def test_checks_share_a_config_until_the_last_is_gone(admin: Driver, controllers: Controllers) -> None:
    for name in ("one", "two"):
        admin.check(name, "p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: [admin.reason("one"), admin.reason("two")], ["Active", "Active"])
    admin.ask("DELETE", admin.kueue("admissionchecks", "one"))
    admin.check("sentinel")
    eventually(lambda: admin.reason("sentinel"), "PlacementNotFound")
    assert admin.listed("p") == ["p-a"]
    admin.ask("DELETE", admin.kueue("admissionchecks", "two"))
    eventually(lambda: (admin.listed("p"), admin.clusters()), (None, []))


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


def test_changed_parameters_move_the_check_to_another_config(admin: Driver, controllers: Controllers) -> None:
    admin.check("check", "p")
    admin.select("p", "a")
    admin.select("q", "a", "b")
    controllers.start()
    eventually(lambda: admin.reason("check"), "Active")
    patch = {"spec": {"parameters": PARAMETERS | {"name": "q"}}}
    admin.ask("PATCH", admin.kueue("admissionchecks", "check"), patch, "merge")
    eventually(lambda: (admin.listed("p"), admin.listed("q")), (None, ["q-a", "q-b"]))
    eventually(admin.clusters, ["q-a", "q-b"])
    eventually(lambda: admin.active("check").get("observedGeneration"), 2)


def owners(admin: Driver, config: str) -> set[str]:
    found = admin.get(admin.kueue("multikueueconfigs", config)) or {"metadata": {}}
    return {owner["name"] for owner in found["metadata"].get("ownerReferences", ())}


@pytest.mark.parametrize(
    ("moves", "kept_by"),
    [
        pytest.param(["p", "mk"], {"p", "mk"}, id="ours, then Kueue's at once"),
        pytest.param(["mk", "p"], {"p", "mk"}, id="Kueue's, then ours at once"),
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


def test_parameters_that_turn_bad_delete_nothing(admin: Driver, controllers: Controllers) -> None:
    admin.check("check", "p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("check"), "Active")
    patch = {"spec": {"parameters": {"kind": "Typo"}}}
    admin.ask("PATCH", admin.kueue("admissionchecks", "check"), patch, "merge")
    eventually(lambda: admin.reason("check"), "BadParameters")
    admin.check("sentinel")
    eventually(lambda: admin.reason("sentinel"), "PlacementNotFound")
    assert (admin.listed("p"), admin.clusters()) == (["p-a"], ["p-a"])


def test_one_multikueuecluster_can_serve_all_placements(admin: Driver, controllers: Controllers) -> None:
    for name in ("p", "q"):
        admin.check(name)
    admin.select("p", "a", "b")
    admin.select("q", "b")
    controllers.start(cluster_names="{cluster}")
    eventually(lambda: (admin.listed("p"), admin.listed("q")), (["a", "b"], ["b"]))
    right = {name: admin.get(admin.kueue("multikueueclusters", name)) for name in ("a", "b")}
    assert not any("ownerReferences" in obj["metadata"] for obj in right.values() if obj)
    admin.decide("p", "a")
    eventually(lambda: (admin.listed("p"), admin.clusters()), (["a"], ["a", "b"]))
    admin.decide("q", "a")
    eventually(lambda: (admin.listed("q"), admin.clusters()), (["a"], ["a"]))
    assert admin.get(admin.kueue("multikueueclusters", "a")) == right["a"], "nothing has been written to it"


def test_a_shared_multikueuecluster_goes_with_the_last_check(admin: Driver, controllers: Controllers) -> None:
    for name in ("p", "q"):
        admin.check(name)
        admin.select(name, "a")
    controllers.start(cluster_names="{cluster}")
    eventually(lambda: (admin.reason("p"), admin.reason("q")), ("Active", "Active"))
    admin.ask("DELETE", admin.kueue("admissionchecks", "p"))
    eventually(lambda: (admin.listed("p"), admin.clusters()), (None, ["a"]))
    admin.ask("DELETE", admin.kueue("admissionchecks", "q"))
    eventually(lambda: (admin.listed("q"), admin.clusters()), (None, []))


def test_all_objects_in_the_way_are_reported_at_once(admin: Driver, controllers: Controllers) -> None:
    admin.check("p")
    admin.select("p", "a", "b")
    admin.config("p", "mine")
    admin.cluster("p-b")
    controllers.start()
    eventually(lambda: admin.reason("p"), "NameTaken")
    reasons_given = admin.active("p")["message"].split("; ")
    assert [text.split(",")[0] for text in reasons_given] == [
        "delete MultiKueueConfig p",
        "delete MultiKueueCluster p-b",
    ]


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
