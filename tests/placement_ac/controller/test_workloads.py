"""The entries of a Workload and its nominations: answers, our own dispatcher, shared clusters."""

from typing import Any

import pytest

from placement_ac.core.api.constants import KUEUE_ADMISSION
from placement_ac.core.plan import job_fit
from placement_lab.standins.multikueue import KueueSettings
from tests.support.driver import Controllers, Driver, Object
from tests.support.jobs import WORKLOADS, Play, has_quota, is_admitted_on, managed, soon

OURS = 'k:{"name":"p"}'
EXTERNAL = "open-cluster-management.io/placement"
BOTH = ("Ready", "2 of 2 selected clusters usable: a, b")
ONLY_A = ("Ready", "1 of 1 selected clusters usable: a")


# -- answers, played


def test_a_workload_is_ready_as_soon_as_it_has_quota_and_again_after_an_eviction(play: Play) -> None:
    stage = play("a", "b")
    stage.another_check("budget")
    stage.select("a", "b")
    stage.controllers.start()
    stage.submit("j", "budget")
    stage.submit("unlisted", "open")
    soon(lambda: stage.check_state("j"), BOTH)
    stage.another_says("budget", "j", "Ready")
    for job in ("j", "unlisted"):
        soon(lambda job=job: stage.placed(job))
    assert (stage.answers("j"), stage.answers("unlisted")) == ([BOTH], [])
    stage.another_says("budget", "j", "Retry")
    soon(lambda: stage.answers("j"), [BOTH, BOTH])
    stage.another_says("budget", "j", "Ready")
    soon(lambda: stage.account("j"), (1, 2, False))
    for job in ("j", "unlisted"):
        soon(lambda job=job: stage.placed(job))
        stage.finish(job)
        stage.until_finished(job)
    assert (stage.answers("j"), stage.answers("unlisted")) == ([BOTH, BOTH], [])


# -- answers, with Kueue's part written by hand


def entry(workload: Object) -> tuple[str, str]:
    [ours] = [
        admission_check
        for admission_check in workload["status"]["admissionChecks"]
        if admission_check["name"] == "p"
    ]
    return ours["state"], ours["message"]


def without_ours(workload: Object) -> Object:
    """The status without our entry, and the managers of it without what they own of our entry."""
    status = dict(workload["status"])
    status["admissionChecks"] = [
        admission_check for admission_check in status["admissionChecks"] if admission_check["name"] != "p"
    ]
    managers = {}
    for managed_field in workload["metadata"]["managedFields"]:
        fields = managed_field["fieldsV1"].get("f:status", {})
        managers[managed_field["manager"]] = fields | {
            "f:admissionChecks": _others(fields.get("f:admissionChecks"))
        }
    managers.pop("placement-ac", None)
    return {"status": status, "managers": managers, "spec": workload["spec"]}


def _others(fields: Any) -> Object:
    return {key: value for key, value in (fields or {}).items() if key != OURS}


def test_nothing_but_our_entry_is_written_and_only_when_it_changes(
    admin: Driver, controllers: Controllers
) -> None:
    def now(name: str) -> Object:
        return admin.ask("GET", f"{WORKLOADS}/{name}")

    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.select("p")
    managed(admin, "a", "b")
    before = has_quota(admin, "mine", "mk", "p")
    theirs = has_quota(admin, "theirs", "mk2", "their-check")
    first = controllers.start()

    soon(lambda: entry(now("mine"))[1] != "")
    state, message = entry(now("mine"))
    assert (state, message.partition(":")[0]) == ("Pending", "NoClusterSelected")
    admin.secrets_for("a", "b")
    admin.decide("p", "a", "b")
    soon(lambda: entry(now("mine")), BOTH)
    assert without_ours(now("mine")) == without_ours(before)

    placed = is_admitted_on(admin, "mine", "p-a")
    admin.decide("p", "b")
    admin.placement_says("p", 1)
    soon(lambda: admin.active("p")["message"].endswith("draining: a (Workloads run there)"))
    assert admin.listed("p") == ["p-b", "p-a"]
    assert now("mine") == placed, "nothing is taken back from what is admitted"
    first.stop()

    written = len(admin.writes())
    controllers.start()
    has_quota(admin, "later", "mk", "p")
    soon(lambda: entry(now("later"))[0], "Ready")
    assert admin.writes()[written:] == [("PATCH", f"{WORKLOADS}/later/status")]
    assert (now("mine"), now("theirs")) == (placed, theirs)


# -- our own dispatcher


def test_it_nominates_in_order_and_by_rounds(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_fit, "ROUND_SECONDS", 0.5)
    names = ("a", "b", "c", "d")
    stage = play(*names, held=names, settings=KueueSettings(dispatcher=EXTERNAL))
    stage.select(("a", 10), ("b", 20), ("c", 40), ("d", 30))
    stage.controllers.start(dispatcher=True, step_size=2)
    soon(stage.connected, 4)
    stage.submit("j")
    stage.submit("unlisted", "open")
    for job in ("j", "unlisted"):
        stage.until_waits(job, *names)
        soon(lambda job=job: stage.nominations(job), [["p-c", "p-d"], ["p-c", "p-d", "p-b", "p-a"]])
    assert (len(stage.answers("j")), stage.answers("unlisted")) == (1, [])
    stage.fleet.release("b")
    for job in ("j", "unlisted"):
        stage.until_runs(job, "b")
        soon(lambda job=job: stage.copies(job), ["b"])
        assert (stage.nominated(job), stage.account(job)) == ([], (1, 1, False))
        owned = stage.owned(job, KUEUE_ADMISSION)
        assert {"f:admission", "f:admissionChecks", "f:clusterName", "f:conditions"} <= owned
        assert "f:nominatedClusterNames" not in owned | stage.owned(job, "placement-ac")
        whole = {"admission", "admissionChecks", "conditions", "nominatedClusterNames"}
        assert stage.nominated_with(job) == [whole, whole]


def test_a_cluster_that_leaves_is_taken_out_of_the_nominations_first(
    play: Play, ask_again_soon: None
) -> None:
    stage = play("a", "b", held=["a", "b"], settings=KueueSettings(dispatcher=EXTERNAL))
    stage.select("a", "b")
    first = stage.controllers.start(dispatcher=True)
    soon(stage.connected, 2)
    stage.submit("j")
    stage.submit("unlisted", "open")
    for job in ("j", "unlisted"):
        stage.until_waits(job, "a", "b")

    stage.fleet.kill("b")
    stage.select("a")
    soon(lambda: stage.is_out_of_reach("b"))
    first.stop()  # whoever comes next goes on
    stage.controllers.start(dispatcher=True)
    stage.submit("new")
    soon(lambda: stage.nominated("new"), ["p-a"])
    for job in ("j", "unlisted"):
        assert stage.nominations(job) == [["p-a", "p-b"]], "what cannot be asked is not taken out"
    assert stage.listed() == ["a", "b"]

    stage.fleet.revive("b")
    stage.until_listed("a")
    for job in ("j", "unlisted"):
        assert stage.nominations(job) == [["p-a", "p-b"], ["p-a"]]
        stage.until_waits(job, "a")
    assert (stage.answers("j"), stage.answers("new")) == ([BOTH], [ONLY_A])
    stage.fleet.release("a", "b")
    for job in ("j", "unlisted", "new"):
        stage.until_runs(job, "a")
        assert stage.account(job) == (1, 1, False)


def test_a_copy_that_is_admitted_as_it_is_taken_out_is_nominated_again(play: Play) -> None:
    """The race of shared/kueue/external-dispatcher.txt: Kueue could never record it, and nothing tells."""
    stage = play("a", "b", held=["a", "b"], settings=KueueSettings(dispatcher=EXTERNAL))
    stage.select("a", "b")
    stage.controllers.start(dispatcher=True)
    soon(stage.connected, 2)
    stage.kueue_looks_late(100)
    stage.submit("j")
    stage.until_waits("j", "a", "b")
    soon(
        lambda: entry(stage.workload("j")), ("Ready", f"{BOTH[1]}; nominated to p-a, p-b")
    )  # else that is the next write
    stage.delay_next_write("j", 1.5)
    stage.select("a")
    soon(stage.write_is_delayed)
    stage.fleet.release("b")
    soon(lambda: stage.has_quota_on("j", "b"))
    assert stage.nominated("j") == ["p-a", "p-b"]
    soon(lambda: stage.nominations("j"), [["p-a", "p-b"], ["p-a"], ["p-a", "p-b"]])
    stage.kueue_looks_late(0.1)
    stage.until_runs("j", "b")
    stage.finish("j")
    stage.until_finished("j")
    stage.until_listed("a")
    assert (stage.account("j"), stage.answers("j")) == ((1, 1, True), [BOTH])


# -- shared clusters


def test_a_cluster_that_two_placements_share_leaves_one_of_them(play: Play) -> None:
    stage = play("a", "b", "c", held=["a", "b"])
    stage.add_placement("q")
    stage.select("a", "c")
    stage.select("b", "c", placement="q")
    stage.controllers.start(cluster_names="{cluster}", waiting_grace=0)
    stage.until_listed("b", "c", config="q")
    stage.submit("of-p")
    stage.submit("of-q", "gated-q")
    stage.until_runs("of-p", "c")
    stage.until_runs("of-q", "c")
    stage.select("a")
    stage.until_listed("a", "c")
    soon(stage.remark, "draining: c (Workloads run there)")
    stage.submit("waits")  # on a, and on c when there is room
    stage.until_runs("waits", "c")
    stage.fleet.hold("c")
    stage.submit("later")
    stage.until_waits("later", "a", "c")
    stage.admin.hub.faults.add("PATCH", "/multikueueconfigs/p$", status=503, times=10_000)
    for job in ("of-p", "waits"):
        stage.finish(job)
    soon(lambda: stage.refused("/multikueueconfigs/p"))
    assert (stage.check_state("later")[0], stage.listed()) == ("Pending", ["a", "c"])
    stage.submit("new", "gated-q")  # the gate of p is closed, and none of q
    stage.until_waits("new", "b", "c")
    stage.admin.hub.faults.clear()
    stage.until_listed("a")
    stage.until_waits("later", "a")
    assert (stage.listed("q"), stage.admin.clusters()) == (["b", "c"], ["a", "b", "c"])
    assert (stage.remark("q"), len(stage.config_writes("q"))) == ("", 1)
    assert (stage.account("of-q"), len(stage.answers("of-q"))) == ((1, 1, False), 1)
    assert stage.account("of-p") == (1, 1, True)
