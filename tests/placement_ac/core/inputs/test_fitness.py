"""Judging what a worker message: every finding has its words, and what fits has none."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement_ac.core.inputs.fitness import (
    Fitness,
    ServedKind,
    Unknown,
    WorkerFindings,
    WorkerQueues,
    WorkerRequirements,
    evaluate,
    release_of,
    with_queues,
)
from placement_ac.core.inputs.rights import (
    FRAMEWORKS,
    PREEMPTION_RIGHT,
    JobKind,
    KueueRelease,
    Right,
    required_rights,
)

JOBSET = JobKind("jobset.x-k8s.io/jobset", "jobset.x-k8s.io", "jobsets", "v1alpha2")
PIPELINE = JobKind("PipelineRun.v1.tekton.dev", "tekton.dev", "pipelineruns", "v1")
GET_JOBS = Right("batch", "jobs", "", "get")
CREATE_JOBS = Right("batch", "jobs", "", "create")
GET_STATUS = Right("kueue.x-k8s.io", "workloads", "status", "get")
GET_PODS = Right("", "pods", "", "get")
NEEDS = WorkerRequirements("v1beta2", (JOBSET, PIPELINE), (GET_JOBS, CREATE_JOBS, GET_STATUS, GET_PODS))
FINDINGS = WorkerFindings(
    account="Secret kueue-system/s",
    served=frozenset(
        {
            ServedKind("kueue.x-k8s.io", "v1beta1", "workloads"),
            ServedKind("kueue.x-k8s.io", "v1beta2", "workloads"),
            ServedKind("jobset.x-k8s.io", "v1alpha2", "jobsets"),
            ServedKind("tekton.dev", "v1", "pipelineruns"),
        }
    ),
    rights=dict.fromkeys(NEEDS.rights, True),
    kueue_version="v0.19.1",
)
QUEUES = {"team-a": frozenset({"q", "r"}), "team-b": frozenset({"q"})}


def without(*plurals: str) -> frozenset[ServedKind]:
    return frozenset(one for one in FINDINGS.served if one.plural not in plurals)


def test_a_worker_that_has_all_that_is_needed() -> None:
    assert evaluate(FINDINGS, NEEDS) == Fitness(kueue_version="v0.19.1")


def test_a_worker_on_which_nobody_may_open_preemption_gates_is_used_with_a_warning() -> None:
    update = Right("kueue.x-k8s.io", "workloads", "status", "update")
    needs = replace(NEEDS, rights=(*NEEDS.rights, update))
    found = evaluate(replace(FINDINGS, rights=FINDINGS.rights | {update: False}), needs)
    assert found.problems == ()
    (warning,) = found.warnings
    assert warning.startswith("grant update workloads/status.kueue.x-k8s.io on the worker")


FIX = (
    "install the CRDs of {} on the worker, or remove these frameworks from the configurations of this hub's"
    " Kueue and of placement-ac: the worker does not serve them"
)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        pytest.param(
            {"served": without("workloads")},
            "install Kueue on the worker: it serves no Workloads",
            id="no Kueue",
        ),
        pytest.param(
            {"served": FINDINGS.served - {ServedKind("kueue.x-k8s.io", "v1beta2", "workloads")}},
            "update Kueue on the worker or on this hub: the worker serves Workloads in v1beta1,"
            " and this hub sends v1beta2",
            id="an older Kueue",
        ),
        pytest.param(
            {"served": without("jobsets")},
            FIX.format("jobsets.v1alpha2.jobset.x-k8s.io (jobset.x-k8s.io/jobset)"),
            id="no CRD",
        ),
        pytest.param(
            {"served": without("pipelineruns") | {ServedKind("tekton.dev", "v1beta1", "pipelineruns")}},
            FIX.format("pipelineruns.v1.tekton.dev (PipelineRun.v1.tekton.dev)"),
            id="not in that version",
        ),
        pytest.param(
            {"rights": FINDINGS.rights | dict.fromkeys(NEEDS.rights, False)},
            "grant get, create jobs.batch; get workloads/status.kueue.x-k8s.io; get pods on the worker,"
            " in all namespaces, to the account of Secret kueue-system/s: it has no such rights",
            id="no right",
        ),
    ],
)
def test_each_problem_makes_a_worker_unfit(found: dict[str, Any], problem: str) -> None:
    assert evaluate(replace(FINDINGS, **found), NEEDS) == Fitness((problem,), kueue_version="v0.19.1")


def test_all_problems_are_reported_at_once() -> None:
    found = replace(FINDINGS, served=frozenset(), rights=dict.fromkeys(NEEDS.rights, False))
    assert len(evaluate(found, NEEDS).problems) == 3


def test_an_unanswered_question_is_no_problem() -> None:
    found = WorkerFindings(
        account=FINDINGS.account,
        served=without("jobsets"),
        unknown_groups={"jobset.x-k8s.io": Unknown("the worker answered with HTTP 503", 503)},
        rights=FINDINGS.rights | {GET_JOBS: Unknown("HTTP 429", 429), CREATE_JOBS: Unknown("HTTP 500", 500)},
        kueue_version=Unknown("no right", 403),
    )
    assert evaluate(found, NEEDS) == Fitness(
        unknown=(
            "the kinds of jobset.x-k8s.io are not known: the worker answered with HTTP 503",
            "2 of 4 rights are not known: HTTP 429",
            "Kueue's version is not known: no right",
        )
    )


def test_the_groups_to_look_at_once_each() -> None:
    kinds = (JOBSET, PIPELINE, PIPELINE, JobKind("of Kueue", "kueue.x-k8s.io", "workloads", "v1"))
    assert WorkerRequirements("v1beta2", kinds).groups == ("jobset.x-k8s.io", "tekton.dev")


ALL = frozenset({("team-a", "q"), ("team-a", "r"), ("team-b", "q"), ("of-its-own", "q")})


@pytest.mark.parametrize(
    ("places", "warnings", "unknown"),
    [
        pytest.param(WorkerQueues(frozenset({"team-a", "team-b"}), ALL), (), (), id="all there"),
        pytest.param(
            WorkerQueues(frozenset({"team-a"}), frozenset({("team-a", "q")})),
            (
                "create namespaces team-b on the worker: jobs in them cannot run there",
                "create LocalQueues team-a/r on the worker: jobs in them cannot run there",
            ),
            (),
            id="some missing",
        ),
        pytest.param(
            WorkerQueues(Unknown("no right"), frozenset({("team-a", "q"), ("team-a", "r")})),
            ("create LocalQueues team-b/q on the worker: jobs in them cannot run there",),
            ("its namespaces are not known: no right",),
            id="namespaces unknown",
        ),
        pytest.param(
            WorkerQueues(frozenset({"team-a", "team-b"}), Unknown("no right")),
            (),
            ("its LocalQueues are not known: no right",),
            id="LocalQueues unknown",
        ),
    ],
)
def test_namespaces_and_localqueues(
    places: WorkerQueues, warnings: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    before = Fitness(warnings=("w",), unknown=("u",), kueue_version="v1.2.3")
    after = Fitness(warnings=("w", *warnings), unknown=("u", *unknown), kueue_version="v1.2.3")
    assert with_queues(before, places, QUEUES) == after


def test_many_that_are_missing_are_counted() -> None:
    wanted = {f"ns-{number:02}": frozenset({"q"}) for number in range(13)}
    message = with_queues(Fitness(), WorkerQueues(frozenset(), frozenset()), wanted).warnings[0]
    assert "ns-09 and 3 more on the worker:" in message


@pytest.mark.parametrize(
    ("image", "label", "release"),
    [
        pytest.param("registry.k8s.io/kueue/kueue:v0.19.1", None, "v0.19.1", id="a tag"),
        pytest.param("registry:5000/kueue:v0.16.0-rc.1@sha256:abc", None, "v0.16.0-rc.1", id="and a digest"),
        pytest.param("registry:5000/kueue", "v0.18.2", "v0.18.2", id="a label"),
        pytest.param("kueue:main", "0.18.2", "0.18.2", id="a branch and a label"),
        pytest.param("kueue:main", None, "", id="a branch"),
        pytest.param("kueue:v1.2.3\nlook", "<b>", "", id="no release"),
        pytest.param(None, 7, "", id="nothing"),
    ],
)
def test_the_release_of_kueue(image: Any, label: Any, release: str) -> None:
    containers = [{"name": "proxy", "image": "proxy:v9.9.9"}, {"name": "manager", "image": image}]
    deployment = {
        "metadata": {"labels": {"app.kubernetes.io/version": label}},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    assert release_of(deployment) == release


RELEASES = [KueueRelease(0, minor, patch) for minor in (16, 17, 18, 19) for patch in (2, 6)]


@given(st.sampled_from(RELEASES), st.sets(st.sampled_from(sorted(FRAMEWORKS)), min_size=1), st.data())
def test_an_upgrade_of_the_hubs_kueue_to_0_20_makes_no_worker_unfit(
    before: KueueRelease, frameworks: set[str], data: st.DataObject
) -> None:
    """Whatever else an account may do: with the rights that the old release needs, its cluster stays listed.

    Job kinds that MultiKueue has only since a later release count from the upgrade on, so they are left out.
    """
    sent = {name for name in frameworks if FRAMEWORKS[name].is_sent(before)}
    old = required_rights(sent, kueue=before)
    new = required_rights(sent, kueue=KueueRelease(0, 20, 0))
    grown = set(new) - set(old)
    also = data.draw(st.sets(st.sampled_from(sorted(grown)))) if grown else set()
    rights = dict.fromkeys(new, False) | dict.fromkeys((*old, *also), True)
    found = evaluate(replace(FINDINGS, rights=rights), WorkerRequirements("v1beta2", rights=new))
    since = {right for right in grown - also if right != PREEMPTION_RIGHT}
    assert (found.problems == ()) is (not since)
    assert bool(found.warnings) is (PREEMPTION_RIGHT in grown - also)
    if before >= KueueRelease(0, 19, 2):
        assert grown == {PREEMPTION_RIGHT}, "from 0.19.2 on, it is the only right that 0.20 adds"
