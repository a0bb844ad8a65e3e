"""`plan`: what manifests would change, by the engine and the controller's own rules."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from kubectl_placement.hub.dump import LAST_APPLIED
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.manifest_changes import apply_manifests
from kubectl_placement.plan.plan_report import (
    AffectedWorkload,
    CheckChange,
    CheckCondition,
    ObjectChange,
    PlacementCondition,
    PlacementPlan,
)
from kubectl_placement.plan.reschedule import ALREADY_DIFFERENT
from kubectl_placement.plan.what_if import (
    CREDENTIALS_ASSUMED,
    NOT_OURS,
    OVERWRITTEN_BY_OCM,
    SELECTS_NONE,
    WRITTEN_BY_CONTROLLER,
    what_if,
)
from placement_ac.config.settings import Settings
from placement_ac.core.api import constants
from placement_ac.core.api.constants import GENERATED, SOME_CLUSTERS_UNUSABLE
from placement_ac.core.plan.diff import diff
from tests.support import builders
from tests.support.builders import Raw, decision, secret, secrets
from tests.support.crds import strict_crds
from tests.support.whatif import (
    DEMO2,
    bound,
    job,
    manifest,
    named,
    ocm_decides,
    sample,
    stored,
    story_2,
    the_plan,
    view_of,
)

STORY_3 = "placement-demo2-2.yaml"
SET_LABEL = "cluster.open-cluster-management.io/clusterset"
JOBS = (
    job("train", "cluster2", gpus=2),
    job("tune", "cluster2", pods=3),
    job("serve", "cluster3"),
    job("wait", "", nominated=["cluster2", "cluster3"]),
)


def condition(kind: str, holds: bool, reason: str, message: str) -> PlacementCondition:
    return PlacementCondition(kind, str(holds), reason, message)


FINE = (
    condition("PlacementMisconfigured", False, "Succeedconfigured", "Placement configurations check pass"),
    condition("PlacementSatisfied", True, "AllDecisionsScheduled", "All cluster decisions scheduled"),
)


def writes(plan: PlacementPlan) -> list[str]:
    return [f"{write.verb} {write.kind} {write.name} {write.when}" for write in plan.writes]


def test_story_3_as_a_what_if() -> None:
    answer = what_if(story_2(*JOBS), sample(STORY_3))
    plan = the_plan(answer)
    on_cluster2 = {"cluster": "cluster2", "queue": "user-queue-demo2", "namespace": "default"}
    assert replace(plan, writes=()) == PlacementPlan(
        namespace="kueue-system",
        name=DEMO2,
        decisions=("cluster3",),
        groups=(
            {
                "decisionGroupIndex": 0,
                "decisionGroupName": "",
                "decisions": [f"{DEMO2}-decision-1"],
                "clusterCount": 1,
            },
        ),
        conditions=FINE,
        added=(),
        removed=("cluster2",),
        order=("cluster3",),
        writes=(),
        affected=(
            AffectedWorkload(name="train", state="running", gpus=2, **on_cluster2),
            AffectedWorkload(name="tune", state="running", gpus=3, **on_cluster2),
            AffectedWorkload(name="wait", state="waiting", gpus=1, **on_cluster2),
        ),
        checks=(
            CheckChange(
                DEMO2,
                CheckCondition("True", "Active", GENERATED),
                CheckCondition("True", "Active", f"{GENERATED}; draining: cluster2 (Workloads run there)"),
            ),
        ),
        beyond=(),
        unusable={},
        draining=("cluster2",),
        warnings=(),
    )
    assert writes(plan) == [
        f"apply MultiKueueConfig {DEMO2} at once",
        f"setCondition AdmissionCheck {DEMO2} at once",
        f"apply MultiKueueConfig {DEMO2} when its jobs have ended",
        f"setCondition AdmissionCheck {DEMO2} when its jobs have ended",
        f"delete MultiKueueCluster {DEMO2}-cluster2 60 min after it has left the list",
    ]
    assert answer.objects == (ObjectChange("change", "Placement", "kueue-system", DEMO2),)
    assert answer.changed


def lists(plan: PlacementPlan) -> list[list[str]]:
    """The change of Kueue's list by each write, from its diff: the removed entries, and the new ones."""
    diffs = [write.diff.splitlines()[2:] for write in plan.writes if write.kind == "MultiKueueConfig"]
    return [[line for line in diff if line[:1] in "+-" and f"- {DEMO2}-" in line] for diff in diffs]


def test_a_draining_cluster_is_listed_last_and_then_removed() -> None:
    plan = the_plan(what_if(story_2(*JOBS), sample(STORY_3)))
    assert lists(plan) == [[f"+  - {DEMO2}-cluster3", f"-  - {DEMO2}-cluster3"], [f"-  - {DEMO2}-cluster2"]]


def test_without_jobs_a_cluster_leaves_at_once() -> None:
    plan = the_plan(what_if(story_2(job("serve", "cluster3")), sample(STORY_3)))
    assert (plan.removed, plan.draining, plan.affected) == (("cluster2",), (), ())
    assert writes(plan) == [
        f"apply MultiKueueConfig {DEMO2} at once",
        f"delete MultiKueueCluster {DEMO2}-cluster2 60 min after it has left the list",
    ]


def test_a_cluster_that_stands_by_leaves_the_list_later() -> None:
    settings = Settings.model_validate({"dispatcher": True, "unlist_after": "2h"})
    plan = the_plan(what_if(replace(story_2(), settings=settings), sample(STORY_3)))
    assert [write for write in writes(plan) if "120 min" in write] == [
        f"apply MultiKueueConfig {DEMO2} 120 min after its last job has ended",
        f"setCondition AdmissionCheck {DEMO2} 120 min after its last job has ended",
    ]


def test_manifests_that_are_applied_already_change_nothing() -> None:
    answer = what_if(story_2(*JOBS), sample("placement-demo2-1.yaml", "multikueue-setup-demo2.yaml"))
    assert not answer.changed
    assert (the_plan(answer).order, the_plan(answer).writes) == (("cluster2", "cluster3"), ())
    assert answer.passed_over == ("ResourceFlavor default-flavor-demo2: plan does not consider this kind",)


def test_nothing_is_deleted_because_no_manifest_has_it() -> None:
    assert not what_if(story_2(*JOBS), []).changed


def test_a_controller_that_lags_behind_is_no_change() -> None:
    fresh = story_2().dump
    kinds = (constants.MULTIKUEUE_CONFIG, constants.MULTIKUEUE_CLUSTER)
    lagging = replace(story_2(), dump=fresh.with_objects(dict.fromkeys(kinds, ())))
    assert diff(lagging.snapshot(DEMO2), lagging.plan(DEMO2)) != ()
    assert not what_if(lagging, sample("placement-demo2-1.yaml")).changed


def test_a_decision_that_would_be_another_already_now_is_no_change() -> None:
    """OCM has not looked again since the scores moved: a harmless label is not to blame."""
    placement = next(iter(sample(STORY_3)))
    view = story_2()
    decided = ocm_decides(what_if(view, [placement]).after)
    moved = [builders.scores("cluster2", "resource-usage-score", gpuClusterAvailable=99)]
    moved_on = view_of(
        [obj for objects in decided.dump.objects.values() for obj in objects if obj not in moved], moved
    )
    labelled = placement | {"metadata": placement["metadata"] | {"labels": {"team": "a"}}}
    plan = the_plan(what_if(moved_on, [labelled]))
    assert (plan.decisions, plan.order, plan.added, plan.removed) == (("cluster3",), ("cluster3",), (), ())
    assert plan.warnings == (ALREADY_DIFFERENT,)


# -- who is left out


def fleet(size: int, *, without: Sequence[int] = (), placement: Raw | None = None) -> HubView:
    """So many clusters in a set, each with credentials but those `without`, and a check of ours."""
    members = [f"c{number:02}" for number in range(size)]
    clusters = [
        builders.an(constants.MANAGED_CLUSTER, member, labels={SET_LABEL: "all"}) for member in members
    ]
    usable = [one for number, one in enumerate(members) if number not in without]
    return view_of(
        clusters,
        bound("all"),
        secrets(*usable),
        builders.check("check", "p"),
        [placement] if placement else [],
    )


def test_the_cap() -> None:
    plan = the_plan(what_if(fleet(25), [manifest()]))
    every = tuple(f"c{number:02}" for number in range(25))
    assert (plan.decisions, plan.added, plan.order, plan.beyond) == (
        every,
        every[:20],
        every[:20],
        every[20:],
    )
    assert (plan.checks[0].before, plan.checks[0].after.reason) == (None, SOME_CLUSTERS_UNUSABLE)
    assert writes(plan) == [
        *(f"create MultiKueueCluster p-{cluster} at once" for cluster in every[:20]),
        "create MultiKueueConfig p at once",
        "setCondition AdmissionCheck check at once",
    ]


def test_unusable_credentials() -> None:
    bad = secret("multikueue-c01", None)
    view = fleet(3, without=(0, 1))
    plan = the_plan(what_if(view_of(*view.dump.objects.values(), bad), [manifest()]))
    assert plan.order == plan.added == ("c02",)
    assert dict(plan.unusable) == {
        "c00": ("create Secret kueue-system/multikueue-c00 with key kubeconfig: c00 has no credentials"),
        "c01": "in Secret kueue-system/multikueue-c01, add key kubeconfig: it is missing",
    }


def test_credentials_that_are_not_known_are_taken_for_good() -> None:
    answer = what_if(fleet(2, without=(0, 1)), [manifest(), secret("multikueue-c00", None)])
    assert (the_plan(answer).order, answer.warnings) == (("c00", "c01"), (CREDENTIALS_ASSUMED,))


def test_a_secret_that_is_added() -> None:
    view = ocm_decides(fleet(2, without=(0,), placement=stored(manifest() | {"metadata": named("p")})))
    before = the_plan(what_if(view, [manifest()]))
    assert (before.order, before.writes) == (("c01",), ())
    plan = the_plan(what_if(view, secrets("c00")))
    assert (plan.added, plan.order) == (("c00",), ("c00", "c01"))


# -- which Placements


def test_a_label_of_a_cluster_reaches_the_placements_that_it_concerns() -> None:
    view = story_2()
    clusters = [one for one in sample("fleet") if one["kind"] == "ManagedCluster"]
    cluster1 = next(cluster for cluster in clusters if cluster["metadata"]["name"] == "cluster1")
    cluster1["metadata"]["labels"]["accelerator"] = "nvidia-tesla-t4"
    answer = what_if(view, [cluster1])
    assert answer.objects == (ObjectChange("change", "ManagedCluster", "", "cluster1"),)
    assert (the_plan(answer).added, the_plan(answer).order) == (
        ("cluster1",),
        ("cluster1", "cluster2", "cluster3"),
    )


DEMO1 = "placement-demo1"
OURS_MOVES = builders.check(DEMO2, DEMO1)
KUEUES_MOVES = builders.multikueue_check("multikueue-demo2", DEMO1)
FIRST = ("train", "tune", "serve", "wait")


def moving(*objects: Raw | Iterable[Raw]) -> HubView:
    """The end of Story 2 with jobs, and Placement placement-demo1, which another check of ours names."""
    setup = [stored(one) for one in sample("multikueue-setup-demo1.yaml") if one["kind"] == "Placement"]
    return ocm_decides(story_2(*JOBS, setup, builders.check("demo1", DEMO1), *objects))


@pytest.mark.parametrize(
    ("manifests", "listed", "removed", "warned"),
    [
        pytest.param([OURS_MOVES], True, (), False, id="ours alone: Kueue's still has the old list"),
        pytest.param([KUEUES_MOVES], True, ("cluster2", "cluster3"), True, id="Kueue's alone"),
        pytest.param([OURS_MOVES, KUEUES_MOVES], True, ("cluster2", "cluster3"), True, id="both"),
        pytest.param(
            [OURS_MOVES, KUEUES_MOVES],
            False,
            ("cluster2", "cluster3"),
            False,
            id="both, and the new list begins with the clusters where jobs are",
        ),
        pytest.param(
            [OURS_MOVES, builders.multikueue_check("multikueue-demo2", "none")],
            True,
            ("cluster2", "cluster3"),
            False,
            id="there is no list to look in",
        ),
    ],
)
def test_jobs_on_the_clusters_of_a_list_that_their_checks_name_no_more(
    manifests: list[Raw], listed: bool, removed: tuple[str, ...], warned: bool
) -> None:
    theirs = builders.our_objects("cluster1", of=DEMO1, owners=("demo1",)) if listed else []
    answer = what_if(moving(theirs), manifests)
    plan = {entry.plan.name: entry.plan for entry in answer.entries}[DEMO2]
    assert plan.removed == removed
    assert {one.name for one in plan.affected} == (set(FIRST) if removed else set())
    warning = (
        "apply AdmissionCheck multikueue-demo2 when these Workloads have ended: default/serve, default/train,"
        " default/tune: Kueue sends them again at once, while their first copies run on, because "
        f"MultiKueueConfig {DEMO1} does not list their clusters"
    )
    assert plan.warnings == ((warning,) if warned else ())
    if OURS_MOVES in manifests and removed:
        assert f"delete MultiKueueConfig {DEMO2} when its jobs have ended" in writes(plan)
        assert plan.draining == ("cluster2", "cluster3")


def test_a_check_of_kueue_that_leaves_a_list_by_hand_is_a_warning_as_well() -> None:
    by_hand = builders.foreign_config("by-hand", f"{DEMO2}-cluster2")
    check = builders.multikueue_check("multikueue-demo2", "by-hand")
    view = moving(by_hand, builders.our_objects("cluster1", of=DEMO1, owners=("demo1",)))
    view, _ = view.with_changes({constants.ADMISSION_CHECK: {("", "multikueue-demo2"): check}})
    (warning,) = (one for one in what_if(view, [KUEUES_MOVES]).warnings if "apply AdmissionCheck" in one)
    assert "when these Workloads have ended: default/train, default/tune: " in warning


def test_a_placement_that_no_check_names() -> None:
    view = fleet(2)
    plan = the_plan(what_if(view_of(*view.dump.objects.values(), bound("all", "team")), [in_team()]))
    assert (plan.namespace, plan.decisions, plan.added, plan.order) == (
        "team",
        ("c00", "c01"),
        ("c00", "c01"),
        ("c00", "c01"),
    )
    assert (plan.writes, plan.checks) == ((), ())


@pytest.mark.parametrize(
    ("checks", "order"),
    [
        pytest.param([], ("c00", "c01"), id="no check: the decisions"),
        pytest.param([builders.check()], ("theirs", "c00"), id="a check: the list that stays"),
    ],
)
def test_a_config_that_is_somebody_elses(checks: list[Raw], order: tuple[str, ...]) -> None:
    theirs = builders.foreign_config("p", "theirs", "p-c00")
    hub = [obj for obj in fleet(2).dump.objects.values() if obj[0]["kind"] != "AdmissionCheck"]
    plan = the_plan(what_if(view_of(*hub, theirs, checks), [manifest("p")]))
    assert (plan.decisions, plan.order) == (("c00", "c01"), order)
    assert [write.verb for write in plan.writes] == ["setCondition"] * len(checks)
    added = the_plan(what_if(view_of(*hub, theirs), [*checks, manifest("p")])).added
    assert added == (() if checks else ("c00", "c01"))


def in_team() -> Raw:
    one = manifest("p")
    return one | {"metadata": one["metadata"] | {"namespace": "team"}}


def test_a_check_of_a_placement_that_is_not_there() -> None:
    plan = the_plan(what_if(fleet(1), [builders.check("other", "nowhere")]))
    assert (plan.name, plan.decisions, plan.checks[0].after.reason) == ("nowhere", (), "PlacementNotFound")


def test_objects_that_ocm_or_the_controller_owns_get_a_warning() -> None:
    mine = decision("c00", of="p")
    answer = what_if(fleet(1), [manifest(), mine, builders.foreign_config("p")])
    output = (
        OVERWRITTEN_BY_OCM.format("PlacementDecision kueue-system/p-decision-1"),
        WRITTEN_BY_CONTROLLER.format("MultiKueueConfig p"),
    )
    assert answer.warnings == output


@pytest.mark.parametrize(
    ("kueue_object", "is_ours"),
    [
        pytest.param(builders.foreign_config("by-hand", "w1"), False, id="a list of no Placement"),
        pytest.param(builders.foreign_config("p"), True, id="the list of a Placement"),
        pytest.param(builders.foreign_cluster("by-hand-w1"), False, id="a cluster of no Placement"),
        pytest.param(builders.foreign_cluster("p-other"), False, id="a cluster that is not selected"),
        pytest.param(builders.foreign_cluster("p-c00"), True, id="a cluster that is selected"),
        pytest.param(builders.our_objects("c09", of="p")[1], True, id="with our label"),
    ],
)
def test_only_what_the_controller_writes_is_warned_about(kueue_object: Raw, is_ours: bool) -> None:
    name = f"{kueue_object['kind']} {kueue_object['metadata']['name']}"
    warnings = what_if(fleet(1), [manifest(), kueue_object]).warnings
    assert (WRITTEN_BY_CONTROLLER.format(name) in warnings) is is_ours


def a_queue(**spec: Any) -> Raw:
    return builders.an(constants.CLUSTER_QUEUE, "cq", spec=spec)


def a_check(controller: str) -> Raw:
    raw = builders.check("other", "p")
    return raw | {"spec": raw["spec"] | {"controllerName": controller}}


@pytest.mark.parametrize(
    ("obj", "warning"),
    [
        pytest.param(a_queue(), SELECTS_NONE.format("ClusterQueue cq"), id="no namespaceSelector"),
        pytest.param(a_queue(namespaceSelector={}), None, id="an empty one"),
        pytest.param(
            a_check("open-cluster-management.io/placements"),
            NOT_OURS.format("AdmissionCheck other"),
            id="a check of nobody",
        ),
        pytest.param(a_check(constants.OUR_CONTROLLER), None, id="a check of ours"),
    ],
)
def test_objects_without_effect_are_warned_about(obj: Raw, warning: str | None) -> None:
    found = [one for one in what_if(fleet(1), [obj]).warnings if one.startswith("set ")]
    assert found == ([warning] if warning else [])


# -- an expression that is not evaluated here


def selecting(*expressions: str, **spec: Raw) -> Raw:
    selector = {"celSelector": {"celExpressions": list(expressions)}}
    return manifest(predicates=[{"requiredClusterSelector": selector}], **spec)


NOT_EVALUATED = "{1: 1, 1: 2}[1] == 2"


def decided(expression: str) -> HubView:
    """The Placement p with this expression, decided by OCM."""
    there = stored(selecting(expression) | {"metadata": named("p")})
    there["status"] = {"numberOfSelectedClusters": 1}
    return fleet(1, placement=there)


def test_a_placement_that_nothing_concerns_keeps_its_decision() -> None:
    assert what_if(decided(NOT_EVALUATED), [selecting(NOT_EVALUATED)]).unknown == ()


def test_a_cluster_that_changes_makes_the_decision_unknown() -> None:
    relabelled = builders.an(constants.MANAGED_CLUSTER, "c00", labels={SET_LABEL: "all", "region": "eu"})
    (one,) = what_if(decided(NOT_EVALUATED), [relabelled]).unknown
    assert one.name == "p"


def test_a_placement_may_get_rid_of_it() -> None:
    answer = what_if(decided(NOT_EVALUATED), [selecting("true")])
    assert (answer.unknown, the_plan(answer).order) == ((), ("c00",))


# -- what reaches a Placement


def scored(**values: int) -> list[Raw]:
    return [
        builders.scores(c, "resource-usage-score", gpuClusterAvailable=value) for c, value in values.items()
    ]


def test_scores_in_a_manifest_count() -> None:
    view = ocm_decides(what_if(story_2(), sample(STORY_3)).after)
    plan = the_plan(what_if(view, scored(cluster2=80, cluster3=10)))
    assert (plan.added, plan.removed, plan.order) == (("cluster2",), ("cluster3",), ("cluster2",))


def test_a_set_and_its_binding_come() -> None:
    """A Placement that asks for no set by name chooses from all that are bound beside it."""
    view = fleet(2, placement=stored(manifest() | {"metadata": named("p")}))
    lone = builders.an(constants.MANAGED_CLUSTER, "lone", labels={SET_LABEL: "more"})
    view = ocm_decides(view_of(*view.dump.objects.values(), lone, secrets("lone")))
    assert what_if(view, bound("more")[:1]).entries == ()  # nobody may choose from it yet
    plan = the_plan(what_if(view, bound("more")))
    assert (plan.added, plan.order) == (("lone",), ("c00", "c01", "lone"))


def test_a_loss_of_all_clusters_at_once_is_held_for_a_while() -> None:
    """A set loses its clusters though no Placement was changed: the controller waits before it follows."""
    view = ocm_decides(fleet(2, placement=stored(manifest() | {"metadata": named("p")})))
    done = view_of(*view.dump.objects.values(), builders.our_objects("c00", "c01"))
    gone = [
        {key: value for key, value in cluster.items() if key != "status"} | {"metadata": moved(cluster)}
        for cluster in done.dump.of(constants.MANAGED_CLUSTER)
    ]
    plan = the_plan(what_if(done, gone))
    assert (plan.removed, plan.order) == (("c00", "c01"), ())
    (warning,) = plan.warnings
    assert warning.startswith(
        "2 of 2 clusters would go at once though the Placement was not changed: held for"
    )


def moved(one: Raw) -> Raw:
    return {"name": one["metadata"]["name"], "labels": {SET_LABEL: "other"}}


def test_ocm_does_not_look_at_a_placement_that_is_disabled() -> None:
    """Decisions stay; the order follows the new prioritizer, by which the controller goes itself."""
    off = {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}
    (wanted,) = sample(STORY_3)
    wanted["metadata"]["annotations"] = off
    plan = the_plan(what_if(story_2(), [wanted]))
    assert (plan.decisions, plan.order) == (("cluster2", "cluster3"), ("cluster3", "cluster2"))
    (warning,) = plan.warnings
    assert warning == f"OCM leaves its decisions as they are: the Placement is annotated {next(iter(off))}"


def test_the_string_data_of_a_secret_is_its_data() -> None:
    view = ocm_decides(fleet(2, without=(0,), placement=stored(manifest() | {"metadata": named("p")})))
    plain = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "multikueue-c00"}}
    answer = what_if(view, [plain | {"stringData": {"kubeconfig": builders.KUBECONFIG.decode()}}])
    assert the_plan(answer).added == ("c00",)
    assert "stringData" not in (
        answer.after.dump.find(constants.SECRET, "multikueue-c00", "kueue-system") or {}
    )


@pytest.mark.parametrize(
    ("applied", "kept"),
    [
        pytest.param({}, True, id="set by kubectl patch"),
        pytest.param({"spec": {"numberOfClusters": 1}}, False, id="applied before"),
    ],
)
def test_a_field_that_kubectl_apply_does_not_remove(applied: Raw, kept: bool) -> None:
    (there,) = [one for one in sample("placement-demo2-1.yaml") if one["kind"] == "Placement"]
    annotations = {LAST_APPLIED: json.dumps(applied)}
    changed = there | {
        "metadata": there["metadata"] | {"annotations": annotations},
        "spec": there["spec"] | {"numberOfClusters": 1},
    }
    warnings = what_if(view_of(stored(changed)), [there]).warnings
    expected = f"write spec.numberOfClusters into Placement kueue-system/{DEMO2}, or remove it there with"
    assert any(warning.startswith(expected) for warning in warnings) is kept


def managed(manager: str, operation: str, **fields: Raw) -> Raw:
    """An entry of managedFields: `fields` of `spec`, or of a part of it."""
    owned = {f"f:{key}": value for key, value in fields.items()}
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": owned}}


GIT: Final = managed("kustomize-controller", "Apply", clusterSets={}, numberOfClusters={})


@pytest.mark.parametrize(
    ("managers", "number"),
    [
        pytest.param([GIT], None, id="applied before by who applies the rest"),
        pytest.param(
            [GIT, managed("kubectl-edit", "Update", numberOfClusters={})], 1, id="another has it, too"
        ),
        pytest.param(
            [managed("kubectl-edit", "Update", clusterSets={}, numberOfClusters={})], 1, id="not applied"
        ),
        pytest.param(
            [managed("scaler", "Apply", numberOfClusters={})], 1, id="applied by a controller alone"
        ),
    ],
)
def test_what_a_server_side_apply_removes(managers: list[Raw], number: int | None) -> None:
    (there,) = [one for one in sample("placement-demo2-1.yaml") if one["kind"] == "Placement"]
    wanted = there | {"spec": {"clusterSets": there["spec"]["clusterSets"]}}
    spec = wanted["spec"] | {"numberOfClusters": 1}
    live = stored(there | {"metadata": there["metadata"] | {"managedFields": managers}, "spec": spec})
    (change,), _ = apply_manifests(view_of(live).dump, [wanted], "kueue-system")
    assert change.after["spec"].get("numberOfClusters") == number


def test_the_fields_that_stay_are_one_warning() -> None:
    (there,) = [one for one in sample("placement-demo2-1.yaml") if one["kind"] == "Placement"]
    wanted = there | {"spec": {}}
    (warning,) = [one for one in what_if(view_of(stored(there)), [wanted]).warnings if "`kubectl" in one]
    fields = sorted(f"spec.{key}" for key in there["spec"])
    assert len(fields) > 2
    assert warning == (
        f"write {', '.join(fields[:-1])} and {fields[-1]} into Placement kueue-system/{DEMO2}, or remove "
        "them there with `kubectl edit`: `kubectl apply` removes only what it has applied"
    )


def test_a_field_stays_in_the_object_of_the_manifests_own_namespace() -> None:
    """Another Placement of the same name, whose manifest has the field, says nothing about this one."""
    (ours,) = [one for one in sample("placement-demo2-1.yaml") if one["kind"] == "Placement"]
    patched = ours | {
        "metadata": ours["metadata"] | {"annotations": {LAST_APPLIED: "{}"}},
        "spec": ours["spec"] | {"numberOfClusters": 1},
    }
    theirs = patched | {"metadata": patched["metadata"] | {"namespace": "team"}}
    warnings = what_if(view_of(stored(patched), stored(theirs)), [ours, theirs]).warnings
    kept = [warning for warning in warnings if warning.startswith("write spec.numberOfClusters into")]
    assert [one.partition(", or")[0].split()[-1] for one in kept] == [f"kueue-system/{DEMO2}"]


def test_a_field_that_the_kind_does_not_have() -> None:
    (there,) = [one for one in sample("placement-demo2-1.yaml") if one["kind"] == "Placement"]
    wrong = there | {"spec": there["spec"] | {"numberOfCluster": 1}}
    warnings = what_if(view_of(*strict_crds()), [wrong]).warnings
    assert warnings[0] == (
        f"correct Placement kueue-system/{DEMO2}: there is no field spec.numberOfCluster; "
        "did you mean numberOfClusters?"
    )
