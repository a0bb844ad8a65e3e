"""One key at a time on a real hub: what is written, and what becomes of errors."""

from typing import Any

import pytest

from placement_ac.controller.write_limits import PACED_SECONDS, UNDONE_MAX
from placement_ac.controller.writer import Writer, merge_patch
from placement_ac.core.api.constants import ANNOTATION_ADOPT, MULTIKUEUE_CONFIG
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.plan.diff import diff
from placement_ac.core.plan.plan import plan
from placement_lab.hub import Hub
from tests.support.builders import GENERATED
from tests.support.driver import Driver
from tests.support.reconciling import FORBIDDEN, WHEN, P, Rig, condition_of


async def test_a_key_is_brought_in_order_once(hub: Hub, p: Driver, rig: Rig) -> None:
    await rig.list()
    assert await rig.look() is None
    assert (p.listed("p"), p.clusters()) == (["p-a", "p-b"], ["p-a", "p-b"])
    assert condition_of(p) == ("True", "Active", GENERATED)
    since = len(hub.journal)
    assert await rig.look() is None
    await rig.list()
    assert await rig.look() is None
    assert (p.writes(since), rig.later) == ([], [])


async def test_nothing_is_decided_before_everything_has_been_listed(p: Driver, rig: Rig) -> None:
    await rig.list()
    half = Rig(rig.client, rig.resources)
    listing = await rig.client.list(rig.resources[WATCHED_KINDS[0]])
    half.world.replace(WATCHED_KINDS[0], listing.items, listing.resource_version)
    await half.look()
    assert p.writes() == []


async def test_a_removal_that_is_not_settled_is_looked_at_again_in_time(p: Driver, rig: Rig) -> None:
    p.placement_says("p", 2)
    await rig.list()
    await rig.look()
    p.decide("p", "a")
    await rig.list()
    await rig.look()
    assert (p.listed("p"), rig.later) == (["p-a", "p-b"], [(P, 2.0)])
    rig.ticks = 1.5
    await rig.look()
    assert (p.listed("p"), rig.later[1:]) == (["p-a", "p-b"], [(P, 0.5)])
    rig.ticks = 2.0
    await rig.look()
    assert (p.listed("p"), p.clusters(), rig.later[2:]) == (["p-a"], ["p-a"], [])


async def test_a_wait_that_ended_well_is_forgotten(p: Driver, rig: Rig) -> None:
    p.placement_says("p", 2)
    for ticks, clusters in ((0.0, ("a", "b")), (0.0, ("a",)), (1.9, ("a", "b")), (5.0, ("a",))):
        rig.ticks = ticks
        p.decide("p", *clusters)
        await rig.list()
        await rig.look()
    assert (p.listed("p"), rig.later) == (["p-a", "p-b"], [(P, 2.0), (P, 2.0)])


@pytest.mark.parametrize(
    ("fault", "after"),
    [
        pytest.param({"status": 503}, None, id="503"),
        pytest.param({"status": 429, "headers": {"Retry-After": "7"}}, 7.0, id="429 with Retry-After"),
        pytest.param({"status": 409}, None, id="409"),
        pytest.param({"hang_up": True}, None, id="connection cut"),
    ],
)
async def test_a_passing_error_is_retried_and_not_reported(
    hub: Hub, p: Driver, fault: dict[str, Any], after: float | None, rig: Rig
) -> None:
    await rig.list()
    hub.faults.add("PATCH", "multikueueconfigs", **fault)
    requeue = await rig.look()
    assert (requeue is not None and requeue.after, condition_of(p)) == (after, ("", "", ""))
    await rig.list()
    assert await rig.look() is None
    assert (p.listed("p"), condition_of(p)) == (["p-a", "p-b"], ("True", "Active", GENERATED))


async def test_a_refused_write_is_reported_once_and_repeated_when_it_may_be(
    hub: Hub, p: Driver, rig: Rig
) -> None:
    await rig.list()
    hub.faults.add("PATCH", "multikueueconfigs", status=403, body=FORBIDDEN, times=2)
    assert await rig.look() is not None
    assert condition_of(p) == ("False", "ApplyFailed", "you shall not")
    since = len(hub.journal)
    assert await rig.look() is not None
    assert p.writes(since) == [("PATCH", p.kueue("multikueueconfigs", "p"))]
    assert await rig.look() is None
    assert condition_of(p) == ("True", "Active", GENERATED)


async def test_a_listed_multikueuecluster_is_repaired_although_the_config_is_refused(
    hub: Hub, p: Driver, rig: Rig
) -> None:
    await rig.list()
    await rig.look()
    a = p.kueue("multikueueclusters", "p-a")
    labels = p.ask("GET", a)["metadata"]["labels"]
    p.ask("PATCH", a, {"metadata": {"labels": dict.fromkeys(labels)}}, "merge")
    p.secrets_for("c")
    p.decide("p", "a", "b", "c")
    await rig.list()
    hub.faults.add("PATCH", "multikueueconfigs", status=403, body=FORBIDDEN)
    assert await rig.look() is not None
    assert (p.listed("p"), p.ask("GET", a)["metadata"]["labels"]) == (["p-a", "p-b"], labels)
    assert condition_of(p) == ("False", "ApplyFailed", "you shall not")


async def test_a_refused_delete_does_not_flip_the_reason_to_and_fro(hub: Hub, p: Driver, rig: Rig) -> None:
    await rig.list()
    await rig.look()
    p.decide("p")
    p.placement_says("p", 0)
    await rig.list()
    hub.faults.add("DELETE", "multikueueconfigs", status=403, body=FORBIDDEN, times=2)
    await rig.look()
    assert condition_of(p) == ("False", "ApplyFailed", "you shall not")
    since = len(hub.journal)
    assert await rig.look() is not None
    assert p.writes(since) == [("DELETE", p.kueue("multikueueconfigs", "p"))]
    assert await rig.look() is None
    assert (condition_of(p)[:2], p.listed("p"), p.clusters()) == (("False", "NoClusterSelected"), None, [])


@pytest.mark.parametrize("resets", [4, 5])
async def test_nothing_is_removed_while_the_condition_that_says_so_is_held_back(
    hub: Hub, p: Driver, resets: int, rig: Rig
) -> None:
    """A rival sets it to True again each time; the fifth time, it is written no more for 30 s."""
    await rig.list()
    await rig.look()
    path = p.kueue("admissionchecks", "p", "status")
    good = {"status": p.ask("GET", p.kueue("admissionchecks", "p"))["status"]}
    p.decide("p")
    p.placement_says("p", 0)
    hub.faults.add("DELETE", "multikueueconfigs", status=503, times=resets)
    for _ in range(resets):
        await rig.list()
        assert await rig.look() is not None
        assert (condition_of(p)[1], p.listed("p")) == ("NoClusterSelected", ["p-a", "p-b"])
        p.ask("PATCH", path, good, "merge", fieldManager="rival")
    await rig.list()
    since = len(hub.journal)
    assert await rig.look() is None
    if resets < UNDONE_MAX:
        assert p.listed("p") is None
        return
    assert (p.writes(since), p.listed("p"), rig.later[-1]) == ([], ["p-a", "p-b"], (P, PACED_SECONDS))
    await rig.settle_events()
    [event] = [event for event in p.events() if event["reason"] == "WritesUndone"]
    assert event["message"].startswith("stop rival from undoing what we write to AdmissionCheck p")
    rig.ticks += PACED_SECONDS
    assert await rig.look() is None
    assert (condition_of(p)[1], p.listed("p")) == ("NoClusterSelected", None)


async def test_a_refusal_that_cannot_even_be_reported_is_tried_again(hub: Hub, p: Driver, rig: Rig) -> None:
    await rig.list()
    hub.faults.add("PATCH", "multikueueclusters", status=403, body=FORBIDDEN, times=2)
    hub.faults.add("PATCH", "admissionchecks", status=403, body=FORBIDDEN)
    assert await rig.look() is not None
    assert condition_of(p) == ("", "", "")


async def test_a_stranger_that_was_quicker_is_left_alone(p: Driver, rig: Rig) -> None:
    await rig.list()
    before = p.config("p", "by-hand")
    assert await rig.look() is not None
    assert p.get(p.kueue("multikueueconfigs", "p")) == before
    await rig.list()
    assert await rig.look() is None
    assert (condition_of(p)[:2], p.listed("p")) == (("False", "NameTaken"), ["by-hand"])


async def test_an_object_that_was_replaced_meanwhile_is_not_deleted(p: Driver, rig: Rig) -> None:
    await rig.list()
    await rig.look()
    p.ask("DELETE", p.kueue("admissionchecks", "p"))  # the hub collects what was made for it
    await rig.list()
    stale = Rig(rig.client, rig.resources)
    p.check("q", "p")
    await stale.list()
    await stale.look()
    p.ask("DELETE", p.kueue("multikueueconfigs", "p"))
    p.config("p", "by-hand")
    p.decide("p")
    p.placement_says("p", 0)
    for kind in ("Placement", "PlacementDecision"):
        (of,) = (k for k in WATCHED_KINDS if k.kind == kind)
        listing = await stale.client.list(stale.resources[of])
        stale.world.replace(of, listing.items, listing.resource_version)
    assert await stale.look() is not None
    assert p.listed("p") == ["by-hand"]


async def test_a_delete_of_a_cluster_that_is_gone_is_no_error(p: Driver, rig: Rig) -> None:
    await rig.list()
    await rig.look()
    p.decide("p", "a")
    await rig.list()
    p.ask("DELETE", p.kueue("multikueueclusters", "p-b"))
    assert await rig.look() is None
    assert p.clusters() == ["p-a"]


async def test_an_object_that_a_finalizer_holds_is_waited_for(p: Driver, rig: Rig) -> None:
    await rig.list()
    await rig.look()
    patch: dict[str, Any] = {"metadata": {"finalizers": ["example.com/held"]}}
    p.ask("PATCH", p.kueue("multikueueclusters", "p-b"), patch, "merge")
    p.decide("p", "a")
    await rig.list()
    assert await rig.look() is None
    assert p.clusters() == ["p-a", "p-b"]
    assert await rig.look() is None, "it is not deleted again"
    p.decide("p", "a", "b")
    await rig.list()
    assert await rig.look() is None
    patch["metadata"]["finalizers"] = []
    p.ask("PATCH", p.kueue("multikueueclusters", "p-b"), patch, "merge")
    await rig.list()
    assert await rig.look() is None
    assert (p.listed("p"), p.clusters()) == (["p-a", "p-b"], ["p-a", "p-b"])


@pytest.mark.parametrize(
    ("kind", "name", "spec", "fix"),
    [
        ("MultiKueueConfig", "p", {"clusters": ["p-a"]}, "change Placement kueue-system/p"),
        (
            "MultiKueueCluster",
            "p-a",
            {"clusterSource": {"kubeConfig": {"location": "x"}}},
            "change the credentials of cluster a",
        ),
    ],
)
async def test_a_manual_change_that_is_reverted_is_reported(
    p: Driver, kind: str, name: str, spec: dict[str, Any], fix: str, rig: Rig
) -> None:
    """On the object and on the check; what the controller changes itself is not reported."""
    await rig.list()
    await rig.look()
    p.decide("p", "a")
    await rig.list()
    await rig.look()
    p.decide("p", "a", "b")
    await rig.list()
    await rig.look()
    path = p.kueue(f"{kind.lower()}s", name)
    before = p.ask("GET", path)["spec"]
    p.ask("PATCH", path, {"spec": spec}, "merge", fieldManager="kubectl-edit")
    await rig.list()
    await rig.look()
    await rig.settle_events()
    assert p.ask("GET", path)["spec"] == before
    message = f"{fix} instead: what kubectl-edit changed in the spec of {kind} {name} was reverted"
    for about in ("AdmissionCheck", kind):
        found = [e for e in p.events(about) if e["reason"] == "ManualChangeReverted"]
        assert [event["message"] for event in found] == [message]
    reasons = {event["reason"] for event in p.events()}
    assert not reasons & {"ClusterAdded", "ClusterRemoved"}, "OCM has decided nothing new"
    await rig.look()
    assert rig.world.snapshot(P, WHEN, {}).objects.config.applied_fields.changed_by == ""


@pytest.mark.parametrize(("kind", "name"), [("MultiKueueConfig", "p"), ("MultiKueueCluster", "p-a")], ids=str)
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_deletion_by_hand_is_reported(
    p: Driver, kind: str, name: str, restarts: bool, rig: Rig
) -> None:
    """A new leader does not know what there was."""
    p.decide("p", "a")
    await rig.list()
    await rig.look()
    await rig.list()
    await rig.look()
    p.ask("DELETE", p.kueue(f"{kind.lower()}s", name))
    if restarts:
        rig.reconciler.reset()
    await rig.list()
    await rig.look()
    await rig.list()
    await rig.look()
    await rig.settle_events()
    message = (
        f"change Placement kueue-system/p instead: {kind} {name} was deleted, and has been made again;"
        " the API server's audit log says by whom"
    )
    found = [event["message"] for event in p.events() if event["reason"] == "ManualChangeReverted"]
    assert found == ([] if restarts else [message])
    assert p.ask("GET", p.kueue(f"{kind.lower()}s", name))


async def test_a_deletion_of_its_own_is_not_reported(p: Driver, rig: Rig) -> None:
    for clusters in (("a", "b"), ("a",), ("a", "b")):
        p.decide("p", *clusters)
        for _ in range(2):
            await rig.list()
            await rig.look()
            rig.ticks += 5.0
    await rig.settle_events()
    assert ("DELETE", p.kueue("multikueueclusters", "p-b")) in p.writes()
    assert p.clusters() == ["p-a", "p-b"]
    assert "ManualChangeReverted" not in {event["reason"] for event in p.events()}


async def test_a_field_of_somebody_else_is_neither_written_nor_reverted_nor_reported(
    p: Driver, rig: Rig
) -> None:
    path = p.kueue("multikueueconfigs", "p")
    p.decide("p", "a")
    await rig.list()
    await rig.look()
    since = len(p.hub.journal)
    p.ask("PATCH", path, {"spec": {"quotaManagement": "Automated"}}, "merge", fieldManager="kubectl-edit")
    await rig.list()
    await rig.look()
    assert p.writes(since) == []
    p.decide("p", "a", "b")
    await rig.list()
    await rig.look()
    await rig.settle_events()
    assert p.writes(since).count(("PATCH", path)) == 1
    assert p.ask("GET", path)["spec"] == {"clusters": ["p-a", "p-b"], "quotaManagement": "Automated"}
    assert "ManualChangeReverted" not in {event["reason"] for event in p.events()}


async def test_an_object_that_was_handed_over_is_not_reported_as_a_manual_change(p: Driver, rig: Rig) -> None:
    config = p.config("p", "by-hand")
    handed_over = {"metadata": {"annotations": {ANNOTATION_ADOPT: "true"}}}
    p.ask("PATCH", p.kueue("multikueueconfigs", config["metadata"]["name"]), handed_over, "merge")
    await rig.list()
    await rig.look()
    await rig.settle_events()
    assert p.listed("p") == ["p-a", "p-b"]
    assert [event["reason"] for event in p.events()] == ["ClusterAdded", "ClusterRemoved"]


async def test_a_check_that_has_gone_needs_no_condition(hub: Hub, admin: Driver, rig: Rig) -> None:
    admin.check("p")
    await rig.list()
    hub.faults.add("PATCH", "admissionchecks", status=404)
    assert await rig.look() is None


async def test_clusters_that_others_list_on_an_old_kueue_are_taken_off(p: Driver, rig: Rig) -> None:
    """There the list is a set in which an apply takes away only what it put in."""
    rig.resources[MULTIKUEUE_CONFIG] = MULTIKUEUE_CONFIG.at("v1beta1")
    await rig.list()
    await rig.look()
    path = p.kueue("multikueueconfigs", "p").replace("v1beta2", "v1beta1")
    p.ask("PATCH", path, {"spec": {"clusters": ["p-a", "p-b", "x"]}}, "merge")
    await rig.list()
    assert await rig.look() is None
    assert p.listed("p") == ["p-a", "p-b"]


async def test_an_unexpected_error_is_not_swallowed(p: Driver, rig: Rig) -> None:
    await rig.list()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    actor = Writer(rig.client, rig.resources, fail)
    seen = rig.world.snapshot(P, WHEN, {})
    with pytest.raises(ZeroDivisionError):
        await actor.execute(diff(seen, plan(seen)))


@pytest.mark.parametrize(
    ("current", "wanted", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="the same"),
        pytest.param({"a": 1}, {}, {"a": None}, id="gone"),
        pytest.param({}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="new"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}, id="inside"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, {"a": [2, 1]}, id="a list"),
        pytest.param({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="another shape"),
    ],
)
def test_a_merge_patch_makes_one_of_the_other(current: Any, wanted: Any, patch: Any) -> None:
    assert merge_patch(current, wanted) == patch
