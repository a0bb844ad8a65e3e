"""`doctor` on workers that were not inspected, or only partly; and which workers are inspected."""

import re
from dataclasses import replace

import pytest

from kubectl_placement.doctor.commands import WATCH_CACHES, Kubectl
from kubectl_placement.doctor.finding import Finding, Level
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.worker_inspection import (
    FROM_HUB,
    INSPECTED_KINDS,
    AccessProblem,
    ExpectedQueue,
    WorkerInspection,
    WorkerTarget,
    with_valid_names,
    worker_targets,
)
from kubectl_placement.doctor.worker_rules import examine_workers
from kubectl_placement.hub.dump import Dump, MissingRight, Object
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import CRD
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    LOCAL_QUEUE,
    RESOURCE_FLAVOR,
    SECRET,
)
from placement_ac.core.inputs.fitness import ServedKind, Unknown, WorkerFindings
from placement_ac.core.inputs.rights import PREEMPTION_RIGHT
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from placement_lab.standins import manifests
from tests.support import healthy, kueue
from tests.support.builders import decision

NS = "kueue-system"
TARGET = WorkerTarget("c1", CredentialSource("Secret", "s"))
PROFILE = WorkerTarget("c1", CredentialSource("ClusterProfile", "c1"))
PUT_SECRET = (
    "kubectl create secret generic -n kueue-system multikueue-c1"
    " --from-file=kubeconfig=c1.kubeconfig --dry-run=client -o yaml | kubectl apply -f -"
)
NO_PLUGIN = "not inspected: no plugin is configured here for ClusterProfile c1"
FEDERATIONS = manifests.samples() / "federations"


ONLY_JOBS = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
"""
"""Kueue then sends Jobs, and no other kind."""


def setup(*objects: object, settings: Settings | None = None) -> HubSetup:
    dump = dump_of([*kueue.installed(config=ONLY_JOBS), *objects])  # type: ignore[list-item]
    dump = dump.with_objects({kind: dump.of(kind) for kind in FROM_HUB})
    return HubSetup(HubView(dump, settings or Settings(), healthy.NOW))


@pytest.mark.parametrize(
    ("visit", "finding"),
    [
        pytest.param(
            WorkerInspection(
                WorkerTarget("c1", Unusable("no credentials")),
                AccessProblem.NO_CREDENTIALS,
                "there are no usable credentials",
            ),
            (
                Level.FAIL,
                "c1: there are no usable credentials",
                PUT_SECRET,
            ),
            id="no credentials",
        ),
        pytest.param(
            WorkerInspection(TARGET, AccessProblem.NO_RIGHT, "Secret kueue-system/s cannot be read"),
            (
                Level.WARN,
                "c1: not inspected: the right to get secrets in namespace kueue-system is missing",
                "kubectl auth can-i get secrets -n kueue-system",
            ),
            id="a right of the caller's",
        ),
        pytest.param(
            WorkerInspection(PROFILE, AccessProblem.NO_PLUGIN),
            (
                Level.WARN,
                f"c1: {NO_PLUGIN}",
                "placement-ac doctor --workers --cluster c1 --access-providers FILE",
            ),
            id="no plugin",
        ),
    ],
)
def test_a_worker_that_was_not_inspected_has_one_finding(
    visit: WorkerInspection, finding: tuple[Level, str, str]
) -> None:
    assert examine_workers(setup(), [visit]) == (Finding("worker-access", *finding),)


def test_credentials_that_were_made_are_not_replaced_by_hand() -> None:
    labels = {"app.kubernetes.io/managed-by": "placement-ac"}
    metadata = {"name": "s", "namespace": NS, "labels": labels}
    visit = WorkerInspection(TARGET, AccessProblem.REJECTED, "the worker does not accept the credentials")
    [output] = examine_workers(setup({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}), [visit])
    assert output.fix == "kubectl describe managedserviceaccount -n c1 placement-ac"


FOUND = WorkerFindings(
    "Secret kueue-system/s",
    frozenset((ServedKind("kueue.x-k8s.io", "v1beta2", "workloads"), ServedKind("batch", "v1", "jobs"))),
    kueue_version="v0.20.6",
)
HEALTHY = WorkerInspection(TARGET, findings=FOUND, objects=dict.fromkeys(INSPECTED_KINDS, ()))


def findings_of(visit: WorkerInspection) -> list[tuple[str, Level, str]]:
    found = examine_workers(setup(), [visit])
    return [(one.check, one.level, one.message) for one in found if one.is_problem]


def test_a_worker_that_needs_nothing_has_all_of_it() -> None:
    assert findings_of(HEALTHY) == []


def test_kinds_that_a_worker_does_not_list_in_time_are_unknown_and_fail_no_rule() -> None:
    wanted = WorkerTarget("c1", TARGET.credential, (ExpectedQueue("team", "q", "cq"),))
    late = dict.fromkeys(INSPECTED_KINDS, Unknown("the worker answered with HTTP 503", 503))
    assert findings_of(replace(HEALTHY, target=wanted, objects=late)) == [
        ("worker-access", Level.WARN, "c1: unknown: the worker answered with HTTP 503")
    ]


def test_a_right_to_read_integrations_is_missing_only_with_the_setting() -> None:
    visit = replace(HEALTHY, kueue_config=Unknown("the account of Secret kueue-system/s may not", 403))
    message = "unknown, because the account of Secret kueue-system/s may not read it: Kueue's configuration"
    looks = setup(settings=Settings(dispatcher=True, look_for=("integrations",)))
    found = [one for one in examine_workers(looks, [visit]) if one.is_problem]
    assert [(one.check, one.message) for one in found] == [("worker-access", f"c1: {message}")]
    assert findings_of(visit) == []


def test_our_dispatcher_counts_all_flavors_where_it_may_not_list_them() -> None:
    denied = Unknown("the account of Secret kueue-system/s may not", 403)
    visit = replace(HEALTHY, objects={**HEALTHY.objects, RESOURCE_FLAVOR: denied})
    found = {
        on: [one.message for one in examine_workers(setup(settings=Settings(dispatcher=on)), [visit])]
        for on in (False, True)
    }
    message = "c1: unknown, because the account of Secret kueue-system/s may not read it: resourceflavors"
    assert message in found[False]
    assert f"{message}; flavors that a job cannot use count as room for it" in found[True]


JOBSETS = "jobsets.v1alpha2.jobset.x-k8s.io (jobset.x-k8s.io/jobset)"
PIPELINES = "pipelineruns.v1.tekton.dev (PipelineRun.v1.tekton.dev)"


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        pytest.param(
            f"{ONLY_JOBS}integrations: {{frameworks: [jobset.x-k8s.io/jobset]}}", JOBSETS, id="its own"
        ),
        pytest.param(
            f"{ONLY_JOBS}multiKueue: {{externalFrameworks: [{{name: PipelineRun.v1.tekton.dev}}]}}",
            PIPELINES,
            id="external",
        ),
        pytest.param(
            f"{ONLY_JOBS}integrations: {{frameworks: [[], {{}}, 7, x, jobset.x-k8s.io/jobset]}}",
            JOBSETS,
            id="malformed",
        ),
        pytest.param("no configuration", JOBSETS, id="not known, so by the controller's settings"),
    ],
)
def test_job_kinds_are_those_that_kueue_sends(config: str, missing: str) -> None:
    known = setup(*kueue.installed(config=config), settings=Settings(frameworks=("jobset.x-k8s.io/jobset",)))
    [output] = [
        examine_worker
        for examine_worker in examine_workers(known, [HEALTHY])
        if examine_worker.check == "worker-jobs"
    ]
    assert output.message.startswith(f"c1: install the CRDs of {missing} on the worker")


def queues_stored_in(*versions: str) -> tuple[Object, ...]:
    """The CRD of LocalQueues, of which objects were stored in these versions."""
    spec = {"versions": [{"name": name, "served": True} for name in ("v1beta1", "v1beta2")]}
    stored = {"metadata": {"name": QUEUES.only}, "spec": spec, "status": {"storedVersions": list(versions)}}
    return (stored,)


QUEUES = CRD._replace(only="localqueues.kueue.x-k8s.io")
FORBIDDEN = Unknown("the account of Secret kueue-system/s may not list them", 403)


MIGRATE = (
    "c1: migrate Kueue's objects to v1beta2 before Kueue is upgraded to 0.20, which does not serve v1beta1:"
    f" objects of {QUEUES.only} may be stored in v1beta1"
)


@pytest.mark.parametrize(
    ("answer", "findings"),
    [
        pytest.param(queues_stored_in("v1beta2"), [], id="migrated"),
        pytest.param(
            queues_stored_in("v1beta1", "v1beta2"),
            [("stored-versions", Level.WARN, MIGRATE)],
            id="not migrated",
        ),
        pytest.param(
            FORBIDDEN,
            [
                (
                    "worker-access",
                    Level.WARN,
                    f"c1: unknown, because the account of {FOUND.account} may not read it: {CRD.plural}",
                )
            ],
            id="unknown",
        ),
    ],
)
def test_the_versions_in_which_a_worker_stores_objects(
    answer: tuple[Object, ...] | Unknown, findings: list[tuple[str, Level, str]]
) -> None:
    visit = replace(HEALTHY, objects={**HEALTHY.objects, QUEUES: answer})
    assert findings_of(visit) == findings
    checked = {one.check: one.fix for one in examine_workers(setup(), [visit])}
    assert ("stored-versions" in checked) is (answer is not FORBIDDEN)
    if fix := checked.get("stored-versions"):
        [use, *_, patch] = fix.splitlines()
        assert use == "kubectl config use-context c1  # and back afterwards"
        assert patch.startswith(
            "kubectl --context c1 patch crd localqueues.kueue.x-k8s.io --subresource=status "
        )


def test_a_worker_without_kueue() -> None:
    served = frozenset((ServedKind("batch", "v1", "jobs"),))
    visit = replace(HEALTHY, findings=replace(FOUND, served=served))
    message = "c1: install Kueue on the worker: it serves no Workloads"
    assert findings_of(visit) == [("worker-kueue", Level.FAIL, message)]


def test_a_worker_whose_kueue_breaks_watch_caches() -> None:
    visit = replace(HEALTHY, findings=replace(FOUND, kueue_version="v0.20.5"))
    known = setup(*kueue.installed(config=ONLY_JOBS), settings=Settings(kueue_version="0.20.5"))
    [found] = [one for one in examine_workers(known, [visit]) if one.is_problem]
    assert (found.check, found.level, found.message) == (
        "worker-kueue",
        Level.WARN,
        f"c1: upgrade Kueue 0.20.5 there: with it, {WATCH_CACHES}",
    )
    assert found.fix.endswith("/v0.20.6/manifests.yaml")


def test_no_fix_installs_a_kueue_that_breaks_watch_caches() -> None:
    visit = replace(HEALTHY, findings=replace(FOUND, kueue_version="v0.19.2"))
    known = setup(*kueue.installed(config=ONLY_JOBS), settings=Settings(kueue_version="0.20.5"))
    [found] = [one for one in examine_workers(known, [visit]) if one.is_problem]
    assert found.message == "c1: Kueue 0.19.2 there is older than 0.20.5 on the hub"
    assert found.fix.endswith("/v0.20.6/manifests.yaml")


def test_objects_are_migrated_before_kueue_is_upgraded() -> None:
    older = replace(FOUND, kueue_version="v0.19.2")
    objects = {**HEALTHY.objects, QUEUES: queues_stored_in("v1beta1", "v1beta2")}
    found = findings_of(replace(HEALTHY, findings=older, objects=objects))
    assert [check for check, _, _ in found] == ["stored-versions", "worker-kueue"]


def test_an_account_that_may_not_open_preemption_gates_is_warned_of() -> None:
    found = replace(FOUND, rights={PREEMPTION_RIGHT: False})
    [(check, level, message)] = findings_of(replace(HEALTHY, findings=found))
    assert (check, level) == ("worker-rights", Level.WARN)
    assert message.startswith(
        "c1: grant update workloads/status.kueue.x-k8s.io on the worker, in all namespaces"
    )


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("system:serviceaccount:ns:sa", "{kind: ServiceAccount, namespace: ns, name: sa}"),
        (
            "jane@example.com",
            "{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane@example.com}",
        ),
        ("$(id)", "{apiGroup: rbac.authorization.k8s.io, kind: User, name: USER}"),
        ("x\nEOF\nid", "{apiGroup: rbac.authorization.k8s.io, kind: User, name: USER}"),
    ],
)
def test_only_valid_names_from_a_worker_become_part_of_commands(user: str, subject: str) -> None:
    assert Kubectl("c1").grant("r", user, ()).endswith(f"subjects:\n- {subject}\nEOF")


def test_a_fix_keeps_the_rights_of_the_account_of_another_hub() -> None:
    one, other, again = (Kubectl("c1").grant("r", user, ()) for user in ("a", "b", "a"))
    names = [set(re.findall("name: (r-[0-9a-f]*)", text)) for text in (one, other)]
    assert (one, [len(found) for found in names], names[0] & names[1]) == (again, [1, 1], set())


@pytest.mark.parametrize("metadata", [None, [], "x", {"name": "A B"}, {"name": 7}, {"name": "a;id"}, {}])
def test_objects_without_a_name_as_kubernetes_has_it_are_passed_over(metadata: object) -> None:
    named = {"metadata": {"name": "fine"}}
    assert with_valid_names(({"metadata": metadata}, named)) == (named,)


def test_a_cluster_of_two_checks_is_visited_once_for_the_queues_of_both() -> None:
    files = ("cluster-sets.yaml", "eu.yaml", "gpu.yaml")
    objects = [item for file in files for item in manifests.load(FEDERATIONS / file)]
    decisions = [
        decision("cluster1", "cluster2", of="placement-eu"),
        decision("cluster2", "cluster3", of="placement-gpu"),
    ]
    eu = ExpectedQueue("team-eu", "user-queue-eu", "cluster-queue-eu")
    gpu = ExpectedQueue("team-gpu", "user-queue-gpu", "cluster-queue-gpu")
    visited = worker_targets(setup(*objects, *decisions))
    assert [(one.cluster, one.queues) for one in visited] == [
        ("cluster1", (eu,)),
        ("cluster2", (eu, gpu)),
        ("cluster3", (gpu,)),
    ]


def test_where_secrets_may_not_be_read_no_worker_is_without_credentials() -> None:
    objects = manifests.load(FEDERATIONS / "eu.yaml")
    dump = dump_of([*objects, decision("cluster1", of="placement-eu")])
    live = Dump(dump.objects, dump.served, (MissingRight("list", SECRET, NS),), live=True)
    [target] = worker_targets(HubSetup(HubView(live, Settings(), healthy.NOW)))
    assert target.credential is None


def test_where_the_hubs_queues_may_not_be_read_no_worker_has_the_right_ones() -> None:
    known = setup()
    missing = (MissingRight("list", LOCAL_QUEUE),)
    view = replace(known.view, dump=replace(known.dump, missing=missing))
    found = examine_workers(replace(known, view=view), [HEALTHY])
    assert found[0] == Finding(
        "worker-queues",
        Level.WARN,
        "unknown: the right to list localqueues.kueue.x-k8s.io is missing",
        "kubectl auth can-i list localqueues.kueue.x-k8s.io -A",
    )
    assert [one.check for one in found[1:]] == [
        *(
            "worker-access",
            "worker-kueue",
            "worker-jobs",
            "worker-same-names",
            "worker-rights",
        )
    ]
