"""Asking workers whether they are fit: what is found."""

import pytest

from placement_ac.core.inputs.fitness import Fitness, WorkerRequirements
from placement_ac.core.inputs.rights import (
    FRAMEWORKS,
    JobKind,
    job_kinds,
    parse_external,
    policy_rules,
    required_rights,
)
from tests.support.crds import plain_crd
from tests.support.driver import NS, Driver
from tests.support.probing import FIT, JOBS, NO_RELEASE, NOW, QUEUES, REFUSED, REVIEWS, ask, local_queue
from tests.support.workers import LIMITED, Raw, kueue_crds, put_secret, serving

RBAC = "/apis/rbac.authorization.k8s.io/v1"
JOBSETS = JobKind("jobset.x-k8s.io/jobset", "jobset.x-k8s.io", "jobsets", "v1")


def grant(worker: Driver, *rules: Raw) -> None:
    """Let the account of the token LIMITED do that, and nothing else."""
    name = {"metadata": {"name": "limited"}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "limited"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}
    worker.ask("POST", f"{RBAC}/clusterroles", name | {"rules": list(rules)})
    worker.ask("POST", f"{RBAC}/clusterrolebindings", name | {"roleRef": role, "subjects": [user]})


def rule(group: str, resources: str, verbs: str) -> Raw:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


NEEDED = (rule("kueue.x-k8s.io", "workloads", "watch"), rule("kueue.x-k8s.io", "workloads/status", "patch"))


def test_a_worker_that_is_fit(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    assert ask(admin) == FIT
    assert {request.method for request in worker.hub.journal} == {"GET", "POST"}
    written = [r for r in worker.hub.journal if r.method == "POST" and not r.path.endswith(REVIEWS)]
    assert written == []


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        pytest.param([], "install Kueue on the worker: it serves no Workloads", id="no Kueue"),
        pytest.param(
            kueue_crds("Workload", versions=("v1beta1",)),
            "update Kueue on the worker or on this hub: the worker serves Workloads in v1beta1,"
            " and this hub sends v1beta2",
            id="an older Kueue",
        ),
    ],
)
def test_kueue_on_the_worker(admin: Driver, kinds: list[Raw], problem: str) -> None:
    with serving(crds=kinds) as worker:
        put_secret(admin, worker)
        assert ask(admin) == Fitness((problem,), unknown=(NO_RELEASE,), asked_at=NOW)


def test_the_crds_of_job_kinds(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    tekton = JobKind("PipelineRun.v1.tekton.dev", "tekton.dev", "pipelineruns", "v1")
    missing = (
        "jobsets.v1.jobset.x-k8s.io (jobset.x-k8s.io/jobset), pipelineruns.v1.tekton.dev (PipelineRun.v1"
    )
    (problem,) = ask(admin, WorkerRequirements("v1beta2", (JOBS, JOBSETS, tekton))).problems
    assert problem.startswith(f"install the CRDs of {missing}")
    with serving(
        crds=[
            *kueue_crds("Workload"),
            plain_crd("jobset.x-k8s.io", "JobSet"),
            plain_crd("tekton.dev", "PipelineRun"),
        ]
    ) as complete:
        put_secret(admin, complete)
        assert ask(admin, WorkerRequirements("v1beta2", (JOBS, JOBSETS, tekton))) == FIT


def test_the_version_of_kueue(admin: Driver) -> None:
    with serving(crds=[*kueue_crds("Workload"), plain_crd("apps", "Deployment")]) as worker:
        put_secret(admin, worker)
        worker.namespace(NS)
        manager = {"name": "manager", "image": "registry.k8s.io/kueue/kueue:v0.19.1"}
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kueue-controller-manager"},
            "spec": {"template": {"spec": {"containers": [manager]}}},
        }
        worker.ask("POST", f"/apis/apps/v1/namespaces/{NS}/deployments", body)
        assert ask(admin) == Fitness(kueue_version="v0.19.1", asked_at=NOW)


def test_rights_that_the_account_lacks(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, user={"token": LIMITED})
    grant(worker, rule("kueue.x-k8s.io", "workloads", "get watch"), rule("batch", "jobs", "get list"))
    denied = "patch workloads/status.kueue.x-k8s.io; create jobs.batch"
    assert ask(admin).problems == (
        (
            f"grant {denied} on the worker, in all namespaces, to the account of Secret {NS}/s: "
            "it has no such rights"
        ),
    )


def test_an_account_with_just_the_rights_that_are_needed(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, user={"token": LIMITED})
    grant(worker, *NEEDED, rule("batch", "jobs", "create"))
    release = f"Kueue's version is not known: {REFUSED} get the Deployment {NS}/kueue-controller-manager"
    assert ask(admin, queues=QUEUES) == Fitness(
        unknown=(
            release,
            f"its namespaces are not known: {REFUSED} list namespaces",
            f"its LocalQueues are not known: {REFUSED} list localqueues.kueue.x-k8s.io in all namespaces",
        ),
        asked_at=NOW,
    )


def test_the_rights_that_are_granted_are_those_that_are_asked_for(admin: Driver) -> None:
    tekton = parse_external("PipelineRun.v1.tekton.dev")
    assert not isinstance(tekton, str)
    frameworks = ("batch/job", "jobset.x-k8s.io/jobset")
    jobset = plain_crd("jobset.x-k8s.io", "JobSet", FRAMEWORKS["jobset.x-k8s.io/jobset"].version)
    needs = WorkerRequirements(
        "v1beta2", job_kinds(frameworks, [tekton]), required_rights(frameworks, [tekton])
    )
    with serving(crds=[*kueue_crds("Workload"), jobset, plain_crd("tekton.dev", "PipelineRun")]) as worker:
        put_secret(admin, worker, user={"token": LIMITED})
        assert len(ask(admin, needs).problems) == 1
        grant(worker, *(rule.as_dict() for rule in policy_rules(frameworks, [tekton])))
        assert ask(admin, needs).problems == ()


def test_a_right_in_one_namespace_is_not_enough(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, user={"token": LIMITED})
    worker.namespace("team")
    rules = {"metadata": {"name": "limited"}, "rules": [*NEEDED, rule("batch", "jobs", "create")]}
    worker.ask("POST", f"{RBAC}/namespaces/team/roles", rules)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}
    binding = {"metadata": {"name": "limited"}, "roleRef": role, "subjects": [user]}
    worker.ask("POST", f"{RBAC}/namespaces/team/rolebindings", binding)
    (problem,) = ask(admin).problems
    assert "watch workloads.kueue.x-k8s.io" in problem


def test_namespaces_and_localqueues_that_the_worker_lacks(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    local_queue(worker, "team", "q")
    local_queue(worker, "of-its-own", "z")
    assert ask(admin, queues=QUEUES | {"away": frozenset({"q"})}).warnings == (
        "create namespaces away on the worker: jobs in them cannot run there",
        "create LocalQueues team/r on the worker: jobs in them cannot run there",
    )
    local_queue(worker, "team", "r")
    assert ask(admin, queues=QUEUES) == FIT


def test_localqueues_of_a_kueue_without_them(admin: Driver) -> None:
    with serving(crds=kueue_crds("Workload")) as worker:
        put_secret(admin, worker)
        worker.namespace("team")
        (warning,) = ask(admin, queues=QUEUES).warnings
        assert "create LocalQueues team/q, team/r on" in warning
