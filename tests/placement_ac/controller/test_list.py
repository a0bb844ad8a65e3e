"""How the list of clusters is kept calm: the guard against mass loss, and the damping of its order."""

from typing import Final

from placement_lab.short_waits import short_waits
from tests.support.driver import OCM, SCORES, Controllers, Driver, eventually
from tests.support.jobs import GENERATED, Play, Stage, soon

NAMES: Final = tuple(f"c{number:02}" for number in range(20))
UPDATES: Final = 200


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


# -- damping


def scored(admin: Driver, cluster: str, value: int) -> None:
    status = {"status": {"scores": [{"name": "gpu", "value": value}]}}
    admin.ask("PATCH", f"{SCORES.format(cluster)}/usage/status", status, "merge")


def addon_scores(admin: Driver, **values: int) -> None:
    for cluster, value in values.items():
        admin.namespace(cluster)
        kind = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
        admin.ask("POST", SCORES.format(cluster), kind | {"metadata": {"name": "usage"}})
        scored(admin, cluster, value)


def ranked(admin: Driver, placement: str, *clusters: str) -> None:
    """A Placement that ranks by the AddOn's score; its decision has none."""
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "gpu"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}
    admin.check(placement)
    admin.placement(placement, prioritizerPolicy=policy)
    decided(admin, placement, *clusters)


def decided(admin: Driver, placement: str, *clusters: str) -> None:
    admin.decide(placement, *clusters)
    admin.placement_says(placement, len(clusters))


def orders(admin: Driver, since: int) -> list[list[str]]:
    """The lists that were written for p since a place in the journal."""
    asked = [r for r in admin.hub.journal[since:] if r.path == admin.kueue("multikueueconfigs", "p")]
    written = [r for r in asked if r.method == "PATCH" and r.user_agent == "placement-ac"]
    return [[name.removeprefix("p-") for name in r.body["spec"]["clusters"]] for r in written]


def test_scores_that_hardly_change_the_order_write_nothing(admin: Driver, controllers: Controllers) -> None:
    """q is there to tell when a score has been seen: it lists z before c18 until c18's is better by far."""
    admin.secrets_for(*NAMES, "z")
    base = {name: 50 - 5 * at for at, name in enumerate(NAMES)}
    addon_scores(admin, **base, z=0)
    ranked(admin, "p", *NAMES)
    ranked(admin, "q", "c18", "z")
    with controllers():
        eventually(
            lambda: (admin.listed("p"), admin.listed("q")), ([f"p-{n}" for n in NAMES], ["q-z", "q-c18"])
        )
        eventually(lambda: (admin.reason("p"), admin.reason("q")), ("Active", "Active"))

    since = len(admin.hub.journal)
    damped = {"REORDER_MARGIN": 10, "REORDER_SECONDS": 6.0}  # the interval begins anew with a start
    with short_waits(**damped), controllers():
        _play_scores(admin, since, base)


def _play_scores(admin: Driver, since: int, base: dict[str, int]) -> None:
    for update in range(UPDATES):  # neighbours change places every time
        name = NAMES[update % 20]
        scored(admin, name, base[name] + (5 if (update // 20 + update) % 2 else -5))
    assert orders(admin, since) == []

    scored(admin, "c19", 90)
    soon(lambda: (admin.listed("p") or [""])[0], "p-c19")
    scored(admin, "c18", 100)
    soon(lambda: admin.listed("q"), ["q-c18", "q-z"])
    [order] = orders(admin, since)
    assert order.index("c18") > 15, "the order alone is written once in the interval at most"

    decided(admin, "p", *(name for name in NAMES if name != "c05"))
    soon(lambda: len(orders(admin, since)), 2)
    newest = orders(admin, since)[1]
    assert (newest[:2], len(newest), "c05" in newest) == (["c18", "c19"], 19, False)
    assert admin.active("p")["message"] == GENERATED
