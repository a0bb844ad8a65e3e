"""The entries of a Workload and its nominations: answers, our own dispatcher, shared clusters."""

from typing import Any

from placement_ac.core.api.constants import KUEUE_ADMISSION
from placement_lab.standins.multikueue import KueueSettings
from tests.support.driver import Controllers, Driver, Object
from tests.support.jobs import WORKLOADS, Play, has_quota, is_admitted_on, managed, soon

OURS = 'k:{"name":"p"}'
EXTERNAL = "open-cluster-management.io/placement"
BOTH = ("Ready", "2 of 2 selected clusters usable: a, b")
ONLY_A = ("Ready", "1 of 1 selected clusters usable: a")


# -- answers, played


def test_a_workload_is_ready_as_soon_as_it_has_quota_and_again_after_an_eviction(play: Play) -> None:
    there = play("a", "b")
    there.another_check("budget")
    there.select("a", "b")
    there.controllers.start()
    there.submit("j", "budget")
    there.submit("unlisted", "open")
    soon(lambda: there.check_state("j"), BOTH)
    there.another_says("budget", "j", "Ready")
    for job in ("j", "unlisted"):
        soon(lambda job=job: there.placed(job))
    assert (there.answers("j"), there.answers("unlisted")) == ([BOTH], [])
    there.another_says("budget", "j", "Retry")
    soon(lambda: there.answers("j"), [BOTH, BOTH])
    there.another_says("budget", "j", "Ready")
    soon(lambda: there.account("j"), (1, 2, False))
    for job in ("j", "unlisted"):
        soon(lambda job=job: there.placed(job))
        there.finish(job)
        there.until_finished(job)
    assert (there.answers("j"), there.answers("unlisted")) == ([BOTH, BOTH], [])


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


def test_a_workload_that_no_cluster_can_take_gives_its_quota_back(
    admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p")
    has_quota(admin, "w", "mk", "p")
    controllers.start(retry_waiting_after=0.3, requeue_after=7)

    def ours() -> Object:
        checks = admin.ask("GET", f"{WORKLOADS}/w")["status"]["admissionChecks"]
        return next(dict(check) for check in checks if check["name"] == "p")

    soon(lambda: ours()["state"], "Retry")
    assert ours()["requeueAfterSeconds"] == 7
    assert ours()["message"].startswith("NoClusterSelected: Placement kueue-system/p selects no cluster")


# -- our own dispatcher


def test_it_nominates_in_order_and_by_rounds(play: Play) -> None:
    names = ("a", "b", "c", "d")
    there = play(*names, held=names, settings=KueueSettings(dispatcher=EXTERNAL))
    there.select(("a", 10), ("b", 20), ("c", 40), ("d", 30))
    there.controllers.start(dispatcher=True, step_size=2, round_timeout=0.5)
    soon(there.connected, 4)
    there.submit("j")
    there.submit("unlisted", "open")
    for job in ("j", "unlisted"):
        there.until_waits(job, *names)
        assert there.nominations(job) == [["p-c", "p-d"], ["p-c", "p-d", "p-b", "p-a"]]
    assert (len(there.answers("j")), there.answers("unlisted")) == (1, [])
    there.fleet.release("b")
    for job in ("j", "unlisted"):
        there.until_runs(job, "b")
        soon(lambda job=job: there.copies(job), ["b"])
        assert (there.nominated(job), there.account(job)) == ([], (1, 1, False))
        owned = there.owned(job, KUEUE_ADMISSION)
        assert {"f:admission", "f:admissionChecks", "f:clusterName", "f:conditions"} <= owned
        assert "f:nominatedClusterNames" not in owned | there.owned(job, "placement-ac")
        whole = {"admission", "admissionChecks", "conditions", "nominatedClusterNames"}
        assert there.nominated_with(job) == [whole, whole]


def test_a_cluster_that_leaves_is_taken_out_of_the_nominations_first(
    play: Play, ask_again_soon: None
) -> None:
    there = play("a", "b", held=["a", "b"], settings=KueueSettings(dispatcher=EXTERNAL))
    there.select("a", "b")
    first = there.controllers.start(dispatcher=True)
    soon(there.connected, 2)
    there.submit("j")
    there.submit("unlisted", "open")
    for job in ("j", "unlisted"):
        there.until_waits(job, "a", "b")

    there.fleet.kill("b")
    there.select("a")
    soon(lambda: there.is_out_of_reach("b"))
    first.stop()  # whoever comes next goes on
    there.controllers.start(dispatcher=True)
    there.submit("new")
    soon(lambda: there.nominated("new"), ["p-a"])
    for job in ("j", "unlisted"):
        assert there.nominations(job) == [["p-a", "p-b"]], "what cannot be asked is not taken out"
    assert there.listed() == ["a", "b"]

    there.fleet.revive("b")
    there.until_listed("a")
    for job in ("j", "unlisted"):
        assert there.nominations(job) == [["p-a", "p-b"], ["p-a"]]
        there.until_waits(job, "a")
    assert (there.answers("j"), there.answers("new")) == ([BOTH], [ONLY_A])
    there.fleet.release("a", "b")
    for job in ("j", "unlisted", "new"):
        there.until_runs(job, "a")
        assert there.account(job) == (1, 1, False)


def test_a_copy_that_is_admitted_as_it_is_taken_out_is_nominated_again(play: Play) -> None:
    """The race of shared/kueue/external-dispatcher.txt: Kueue could never record it, and nothing tells."""
    there = play("a", "b", held=["a", "b"], settings=KueueSettings(dispatcher=EXTERNAL))
    there.select("a", "b")
    there.controllers.start(dispatcher=True)
    soon(there.connected, 2)
    there.kueue_looks_late(100)
    there.submit("j")
    there.until_waits("j", "a", "b")
    there.delay_next_write("j", 1.5)
    there.select("a")
    soon(there.write_is_delayed)
    there.fleet.release("b")
    soon(lambda: there.has_quota_on("j", "b"))
    assert there.nominated("j") == ["p-a", "p-b"]
    soon(lambda: there.nominations("j"), [["p-a", "p-b"], ["p-a"], ["p-a", "p-b"]])
    there.kueue_looks_late(0.1)
    there.until_runs("j", "b")
    there.finish("j")
    there.until_finished("j")
    there.until_listed("a")
    assert (there.account("j"), there.answers("j")) == ((1, 1, True), [BOTH])


# -- shared clusters


def test_a_cluster_that_two_placements_share_leaves_one_of_them(play: Play) -> None:
    there = play("a", "b", "c", held=["a", "b"])
    there.add_placement("q")
    there.select("a", "c")
    there.select("b", "c", placement="q")
    there.controllers.start(cluster_names="{cluster}", waiting_grace=0)
    there.until_listed("b", "c", config="q")
    there.submit("of-p")
    there.submit("of-q", "gated-q")
    there.until_runs("of-p", "c")
    there.until_runs("of-q", "c")
    there.select("a")
    there.until_listed("a", "c")
    soon(there.remark, "draining: c (Workloads run there)")
    there.submit("waits")  # on a, and on c when there is room
    there.until_runs("waits", "c")
    there.fleet.hold("c")
    there.submit("later")
    there.until_waits("later", "a", "c")
    there.admin.hub.faults.add("PATCH", "/multikueueconfigs/p$", status=503, times=10_000)
    for job in ("of-p", "waits"):
        there.finish(job)
    soon(lambda: there.refused("/multikueueconfigs/p"))
    assert (there.check_state("later")[0], there.listed()) == ("Pending", ["a", "c"])
    there.submit("new", "gated-q")  # the gate of p is closed, and none of q
    there.until_waits("new", "b", "c")
    there.admin.hub.faults.clear()
    there.until_listed("a")
    there.until_waits("later", "a")
    assert (there.listed("q"), there.admin.clusters()) == (["b", "c"], ["a", "b", "c"])
    assert (there.remark("q"), len(there.config_writes("q"))) == ("", 1)
    assert (there.account("of-q"), len(there.answers("of-q"))) == ((1, 1, False), 1)
    assert there.account("of-p") == (1, 1, True)
