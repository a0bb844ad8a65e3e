"""How the list of clusters is kept calm: the guard against mass loss, and the damping of its order."""

from placement_lab.short_waits import short_waits
from tests.support.driver import OCM
from tests.support.jobs import Play, Stage, soon

# -- the guard


def held_for(stage: Stage) -> str:
    return stage.remark().rpartition("held for ")[2].partition(",")[0]


def test_the_loss_of_all_clusters_is_held_unless_the_placement_was_changed(play: Play) -> None:
    stage = play("a", "b", "c")
    stage.select("a", "b", "c")
    first = stage.controllers.start(mass_loss_grace=2)
    stage.until_listed("a", "b", "c")
    stage.select()
    soon(stage.listed, [])
    expected_message = (
        "3 of 3 clusters would go at once though the Placement was not changed: "
        "held for 2 s, or until the Placement is changed"
    )
    soon(stage.warnings, [("Held", expected_message)])
    conditions = [r for r in stage.writes("/admissionchecks/p/status") if expected_message in r.raw.decode()]
    [deleted] = [r for r in stage.config_writes() if r.method == "DELETE"]
    assert (len(conditions), deleted.at - conditions[0].at > 1) == (1, True)
    assert stage.admin.reason("p") == "NoClusterSelected"
    first.stop()

    stage.controllers.start(mass_loss_grace=300)
    stage.select("a", "b", "c")
    stage.until_listed("a", "b", "c")
    stage.select()
    soon(lambda: held_for(stage), "5 min")
    assert (stage.listed(), stage.admin.reason("p")) == (["a", "b", "c"], "Active")
    edit = {"spec": {"numberOfClusters": 7}}
    stage.admin.ask("PATCH", f"{OCM}/placements/p", edit, "merge")
    soon(stage.listed, [])
    assert stage.admin.reason("p") == "NoClusterSelected"


def test_clusters_that_have_left_come_back_when_more_are_lost(play: Play) -> None:
    stage = play(*"abcdef")
    stage.select(*"abcdef")
    with short_waits(RETENTION_SECONDS=3600.0), stage.controllers(mass_loss_grace=300):
        stage.until_listed(*"abcdef")
        for left in ("bcdef", "cdef", "def"):
            stage.select(*left)
            stage.until_listed(*left)
        stage.select(*"ef")
        soon(stage.listed, [*"abcdef"])
        soon(lambda: held_for(stage), "5 min")
        stage.select(*"def")
        soon(stage.listed, [*"def"])
