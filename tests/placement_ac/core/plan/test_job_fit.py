"""Workloads that say where they want to run: who is nominated, who waits and why."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.state import PlacementPolicy, Plan, Snapshot
from placement_ac.core.plan.event_intents import dispatch_events
from placement_ac.core.plan.plan import plan
from tests.support import builders
from tests.support.builders import NOW, managed_cluster, posts, the
from tests.support.decided import decided, nominated, ranked
from tests.support.jobs_to_dispatch import DOMAIN, raw_job

POLICY = PlacementPolicy(retention=0.0, loss_grace=0.0, dispatcher=True, step_size=1)
SELECTOR, PREFERRED = f"{DOMAIN}/cluster-selector", f"{DOMAIN}/preferred-clusters"
PROFILE, ANTI = f"{DOMAIN}/dispatch-profile", f"{DOMAIN}/anti-affinity"
GPUS = {"a": "t4", "b": "h100", "c": "h100"}
READY = {"check": "Ready", "mk": "Pending"}


def inputs(
    *jobs: Any,
    profile: str = "",
    policy: PlacementPolicy = POLICY,
    gpus: Mapping[str, str] = GPUS,
    **rest: Any,
) -> Snapshot:
    """OCM decides a, b, c in that order. `gpus`: cluster → its GPUs, a label and a claim."""
    fleet = [
        managed_cluster(name, labels={"gpu": gpu})
        | {"status": {"clusterClaims": [{"name": "gpu", "value": gpu}, {"name": 5}]}}
        for name, gpu in gpus.items()
    ]
    hub = decided(ranked("abc"), fleet=fleet)
    if profile:
        the(hub, "AdmissionCheck", "check")["metadata"]["annotations"] = {PROFILE: profile}
    return builders.inputs(hub, *jobs, policy=policy, **rest)


def answer_to(*jobs: Any, **rest: Any) -> Plan:
    """The plan for `inputs`."""
    return plan(inputs(*jobs, **rest))


def states(answer: Plan) -> dict[str, tuple[str, str]]:
    return {
        update.workload.meta.name: (update.state, update.message) for update in answer.check_state_updates
    }


@pytest.mark.parametrize("selector", ["gpu=h100", "claim:gpu=h100"])
def test_a_job_goes_only_where_its_selector_says(selector: str) -> None:
    assert nominated(answer_to(raw_job(annotations={SELECTOR: selector}, **READY))) == {"job": ("p-b",)}


@pytest.mark.parametrize("finished", [False, True])
def test_a_group_stays_where_its_last_job_ran(finished: bool) -> None:
    group, placed = {f"{DOMAIN}/group": "training"}, {"check": "Ready", "mk": "Ready"}
    before = [
        raw_job(
            f"{name}ran",
            annotations=group,
            cluster=f"p-{name}",
            since=NOW - hours,
            finished=finished,
            **placed,
        )
        for name, hours in (("c", timedelta(hours=1)), ("b", timedelta(hours=2)))
    ]
    other = raw_job("other", annotations={f"{DOMAIN}/group": "new"}, **READY)
    answer = answer_to(*before, raw_job(annotations=group, **READY), other)
    assert nominated(answer) == {"job": ("p-c",), "other": ("p-a",)}


NOWHERE = "0/3 clusters fit: 3 didn't match gpu=b200 (ClusterAffinity)"


def test_a_job_that_fits_nowhere_waits_with_the_reason() -> None:
    """It is not sent back, and never rejected."""
    answer = answer_to(raw_job(annotations={SELECTOR: "gpu=b200"}))
    assert states(answer) == {"job": ("Pending", f"NoClusterFits: {NOWHERE}")}
    assert (nominated(answer), [(one.meta.name, why) for one, why in answer.unfit]) == (
        {},
        [("job", NOWHERE)],
    )
    [event] = dispatch_events(answer, [])
    assert (event.reason, event.message, event.about and event.about.meta.name) == (
        "NoClusterFits",
        NOWHERE,
        "job",
    )


def test_refusals_are_counted_by_filter() -> None:
    jobs = [raw_job(name, annotations={SELECTOR: "gpu=h100"}, **READY) for name in ("one", "two")]
    by_name = {"kueue.x-k8s.io/multikueue-cluster-names": "b"}
    answer = answer_to(*jobs, raw_job("three", annotations=by_name, **READY), raw_job("four", **READY))
    assert answer.refusals == {"ClusterAffinity": 2, "ClusterNames": 2}


def test_with_kueues_dispatcher_nothing_is_judged() -> None:
    answer = answer_to(raw_job(annotations={SELECTOR: "gpu=b200"}), policy=PlacementPolicy())
    assert states(answer)["job"][0] == "Ready"


def test_its_quota_is_given_back_after_a_while_if_a_setting_says_so() -> None:
    policy = PlacementPolicy(dispatcher=True, retry_waiting_after=0.0)
    answer = answer_to(raw_job(annotations={SELECTOR: "gpu=b200"}), policy=policy)
    assert states(answer) == {"job": ("Retry", f"NoClusterFits: {NOWHERE}")}


def test_a_nomination_that_was_made_stays() -> None:
    """Only the drain takes one back: the cluster may hold a copy with quota."""
    before = raw_job(annotations={SELECTOR: "gpu=h100"}, nominated=["p-a"], **READY)
    assert nominated(answer_to(before)) == {}


def test_the_profile_of_the_check() -> None:
    jobs = [raw_job(f"j{n}", **READY) for n in range(3)]
    assert nominated(answer_to(*jobs)) == dict.fromkeys(("j0", "j1", "j2"), ("p-a",))
    assert nominated(answer_to(*jobs, profile="spread")) == {"j0": ("p-a",), "j1": ("p-b",), "j2": ("p-c",)}


def test_a_wrong_profile_is_reported_and_the_default_counts() -> None:
    answer = answer_to(raw_job(**READY), profile="best")
    verdict = answer.verdicts["check"]
    assert (verdict.status, nominated(answer)) == ("True", {"job": ("p-a",)})
    assert verdict.message.endswith(
        f"; check check: correct the annotation {PROFILE}: "
        "'best' is no profile: use one of ranked, spread, pack, headroom, or NAME=WEIGHT,…"
    )
    assert posts(answer) == []


def test_node_labels_that_a_setting_maps() -> None:
    policy = PlacementPolicy(dispatcher=True, step_size=1, node_labels={"gpu.product": "claim:gpu"})
    job = raw_job(pods=({"spec": {"nodeSelector": {"gpu.product": "h100", "disk": "ssd"}}},), **READY)
    assert nominated(answer_to(job, policy=policy)) == {"job": ("p-b",)}
    assert nominated(answer_to(job)) == {"job": ("p-a",)}


NO_SUCH = "there is no such annotation, it is ignored; did you mean"


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        pytest.param(
            {"annotations": {f"{DOMAIN}/cluster-selectr": "gpu=h100"}},
            f"correct {DOMAIN}/cluster-selectr: {NO_SUCH} {SELECTOR}?",
            id="misspelt on the Workload",
        ),
        pytest.param(
            {"pods": ({"metadata": {"annotations": {f"{DOMAIN}/prefered-clusters": "1:a"}}},)},
            f"correct {DOMAIN}/prefered-clusters: {NO_SUCH} {PREFERRED}?",
            id="misspelt on a Pod template",
        ),
        pytest.param(
            {"labels": {SELECTOR: "x"}},
            f"make the label {SELECTOR} an annotation: it is ignored",
            id="a label",
        ),
        pytest.param(
            {"annotations": {PREFERRED: "gpu=h100"}},
            f"correct the annotation {PREFERRED}, it is ignored: "
            "'gpu=h100' does not begin with a weight of 1 to 100 and a colon",
            id="preferences that cannot be read",
        ),
        pytest.param({"annotations": {SELECTOR: "gpu=t4", "example.com/selector": "x"}}, "", id="nothing"),
    ],
)
def test_an_ignored_annotation_is_an_event_on_the_workload(where: Any, problem: str) -> None:
    answer = answer_to(raw_job(**where, **READY))
    assert nominated(answer) == {"job": ("p-a",)}
    found = [
        (dispatch_event.reason, dispatch_event.message, dispatch_event.about)
        for dispatch_event in dispatch_events(answer, [])
    ]
    assert [(reason, message) for reason, message, _ in found] == [("AnnotationIgnored", problem)] * bool(
        problem
    )
