"""The steps of `explain`, on dumps."""

from typing import Any, NamedTuple

import pytest

from kubectl_placement.explain.explanations import explain_cluster
from kubectl_placement.explain.steps import StepName
from placement_ac.core.api import constants
from placement_ac.core.api.constants import LOCAL_QUEUE, NO_QUOTA_THERE
from tests.kubectl_placement.explain_builders import (
    ALL,
    DROPPED,
    FLEET,
    FOR_5_MINUTES,
    GOOD,
    GPU,
    HUB,
    LIVE,
    NOT_CONNECTED,
    SET_LABEL,
    TOLERATED,
    a_set,
    binding,
    case,
    cluster,
    predicate,
    queue,
    scored,
    sentences,
)
from tests.support.builders import (
    Raw,
    an,
    check,
    condition,
    decision,
    foreign_config,
    jwt,
    kubeconfig,
    labels_of,
    multikueue_check,
    our_cluster,
    our_config,
    our_objects,
    placement,
    profile,
    running,
    scores,
    secret,
    secrets,
    workload,
)

LACKS_JOBSETS = condition(
    "False", "ClientConnectionFailed", 'no matches for kind "JobSet" in version "jobset.x-k8s.io/v1alpha2"'
)

AWAY = {
    "type": "ManagedClusterConditionAvailable",
    "status": "Unknown",
    "reason": "Lost",
    "message": "no lease",
}
SAME_CLAIM = {"clusterClaims": [{"name": "id.k8s.io", "value": "x"}]}
SINCE = {"a": "2026-01-01T00:00:00Z", "c": "2026-01-02T00:00:00Z"}
SAME_WORKER = "remove ManagedCluster c, or do not select it: it leads to the same worker as a, which stays"
GROUPS = {"decisionGroups": [{"groupName": "first", "groupClusterSelector": {}}]}

LACKS = f"{NO_QUOTA_THERE}team/q (there is no such LocalQueue)"


class Situation(NamedTuple):
    objects: list[Any]
    sentence: str


OCM_STEPS = {
    StepName.CLUSTER: {
        "no clusters in the dump": Situation(
            [a_set(), binding(), placement()], "unknown: ManagedClusters are unknown"
        ),
        "no such cluster": Situation(
            [a_set(), binding(), cluster("other"), placement()], "failed: there is no ManagedCluster c"
        ),
        "being deleted": Situation(
            [a_set(), binding(), cluster(deletionTimestamp="2026-08-01T11:00:00Z"), placement()],
            "failed: it is being deleted, since 2026-08-01T11:00:00Z: OCM no longer selects it",
        ),
        "not available": Situation(
            [a_set(), binding(), cluster(conditions=[*GOOD[:2], AWAY]), placement()],
            "note: it is accepted, joined, not available (Lost: no lease); OCM drops a cluster "
            "only for the taint that follows",
        ),
        "all is well with it": Situation(
            [*FLEET, placement()], "passed: it is accepted, joined and available"
        ),
    },
    StepName.CLUSTER_SET: {
        "in a bound set": Situation(
            [*FLEET, placement()],
            "passed: it is in ManagedClusterSet all, which is bound in namespace kueue-system",
        ),
        "no binding": Situation(
            [a_set(), cluster(), placement()],
            "failed: there is no ManagedClusterSetBinding in namespace kueue-system; it is in all, not "
            "bound in namespace kueue-system",
        ),
        "the set that is bound does not exist": Situation(
            [a_set(), binding("gone"), cluster(), placement()],
            "failed: ManagedClusterSetBinding kueue-system/gone names a ManagedClusterSet that does not"
            " exist; it is in all, not bound in namespace kueue-system",
        ),
        "in a set that is not asked for": Situation(
            [*FLEET, a_set("other"), binding("other"), placement(spec={"clusterSets": ["other"]})],
            f"failed: it is not in ManagedClusterSet other (label {SET_LABEL} is all, and the set wants "
            "other); it is in all, which spec.clusterSets does not name",
        ),
        "none of those asked for is bound": Situation(
            [*FLEET, placement(spec={"clusterSets": ["other"]})],
            "failed: spec.clusterSets names other, and none of them is bound in namespace kueue-system;"
            " it is in all, which spec.clusterSets does not name",
        ),
        "the label is missing": Situation(
            [a_set(), binding(), cluster(labels={}), placement()],
            f"failed: it is not in ManagedClusterSet all (label {SET_LABEL} is missing, and the set wants "
            "all)",
        ),
        "no sets in the dump": Situation(
            [binding(), cluster(), placement()],
            "unknown: OCM's steps are unknown without ManagedClusterSets: the dump contains none",
        ),
    },
    StepName.PLACEMENT: {
        "the Placement is being deleted": Situation(
            [*FLEET, placement(deletionTimestamp="2026-08-01T11:00:00Z")],
            "note: the Placement is being deleted: OCM leaves its decisions as they are",
        )
    },
    StepName.PREDICATE: {
        "no predicate": Situation(
            [*FLEET, placement()], "passed: there are no predicates: every cluster passes"
        ),
        "taken by a label": Situation(
            [*FLEET, placement(spec=predicate(labelSelector={"matchLabels": {SET_LABEL: "all"}}))],
            f"passed: the predicate matches it: label {SET_LABEL} In (all)",
        ),
        "taken by CEL": Situation(
            [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["2 > 1"]}))],
            "passed: the predicate matches it: CEL 2 > 1",
        ),
        "CEL that is not evaluated": Situation(
            [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["{1: 1, 1: 2}[1] == 2"]}))],
            "unknown: what OCM decides is unknown: the CEL expression is not evaluated, because the "
            "runtime gives up: duplicate key in map: {1: 1, 1: 2}[1] == 2",
        ),
    },
    StepName.MISCONFIGURED: {
        "CEL that is none": Situation(
            [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["1 >"]}))],
            "failed: compilation failed: syntax error at line 1, column 4: 1 >",
        )
    },
    StepName.TAINT: {
        "no taint": Situation([*FLEET, placement()], "passed: it has no taint"),
        "not tolerated": Situation(
            [a_set(), binding(), cluster("c", GPU), placement()],
            "failed: taint gpu=full:NoSelect is not tolerated",
        ),
        "tolerated": Situation(
            [a_set(), binding(), cluster("c", GPU), placement(spec=TOLERATED)],
            "passed: taint gpu=full:NoSelect is tolerated, by spec.tolerations of gpu",
        ),
        "tolerated for a while": Situation(
            [a_set(), binding(), cluster("c", GPU), placement(spec=FOR_5_MINUTES)],
            "passed: taint gpu=full:NoSelect is tolerated until 2026-08-01T12:04:00+00:00, by "
            "spec.tolerations of gpu",
        ),
        "a mild taint": Situation(
            [a_set(), binding(), cluster("c", GPU | {"effect": "PreferNoSelect"}), placement()],
            "passed: taint gpu=full:PreferNoSelect drops no cluster here: its effect is only a preference",
        ),
    },
    StepName.SCORE: {
        "nothing scores": Situation(
            [*FLEET, placement(spec=scored())], "note: nothing scores: clusters are ordered by name"
        ),
        "a score": Situation(
            [*FLEET, scores("c", gpu=30), placement(spec=scored(("gpu", 2)))],
            "note: AddOn/usage/gpu: 2 times 30 is 60 (from AddOnPlacementScore c/usage)",
        ),
        "a score that has expired": Situation(
            [*FLEET, scores("c", until="2026-08-01T11:00:00Z", gpu=30), placement(spec=scored(("gpu", 1)))],
            "note: AddOn/usage/gpu: 1 times 0 is 0 (it has expired, validUntil 2026-08-01T11:00:00Z)",
        ),
        "one of two scores": Situation(
            [*FLEET, scores("c", cpu=3), placement(spec=scored(("gpu", 1), ("cpu", -1)))],
            "note: AddOn/usage/gpu: 1 times 0 is 0 (AddOnPlacementScore c/usage has no score gpu)\n"
            "note: AddOn/usage/cpu: -1 times 3 is -3 (from AddOnPlacementScore c/usage)",
        ),
        "no score": Situation(
            [*FLEET, placement(spec=scored(("gpu", 1)))],
            "note: AddOn/usage/gpu: 1 times 0 is 0 (there is no AddOnPlacementScore c/usage)",
        ),
    },
    StepName.NUMBER: {
        "as many as there are": Situation(
            [*FLEET, placement(spec=scored())],
            "passed: total score 0, rank 1 of 1; numberOfClusters is not set: all clusters are selected",
        ),
        "second by name": Situation(
            [*FLEET, cluster("a"), placement(spec=scored(numberOfClusters=1))],
            "failed: total score 0, rank 2 of 2; numberOfClusters is 1; a, the last one selected, has "
            "score 0 too and sorts first by name",
        ),
        "second by score": Situation(
            [
                *FLEET,
                cluster("a"),
                scores("c", gpu=1),
                scores("a", gpu=2),
                placement(spec=scored(("gpu", 1), numberOfClusters=1)),
            ],
            "failed: total score 1, rank 2 of 2; numberOfClusters is 1; a, the last one selected, has "
            "score 2",
        ),
    },
    StepName.GROUP: {
        "a decision group": Situation(
            [*FLEET, placement(spec={"decisionStrategy": {"groupStrategy": GROUPS}})],
            "passed: decision group 0 (first), of 1 cluster; there are 1",
        ),
        "groups that are not right": Situation(
            [
                *FLEET,
                placement(spec={"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "many"}}}),
            ],
            "failed: correct the decision groups, they put it in no decision: Misconfigured: :many "
            "invalid type: string is not a percentage",
        ),
    },
    StepName.DECISION: {
        "not decided yet": Situation(
            [*FLEET, placement(), constants.PLACEMENT_DECISION],
            "note: OCM has not decided yet; it will select this cluster",
        ),
        "none decided on, by the Placement's status alone": Situation(
            [a_set(), binding(), cluster("c", GPU), placement(selected=0), constants.PLACEMENT_DECISION],
            "failed: OCM has not selected it",
        ),
        "decided on": Situation(
            [*FLEET, placement(), decision(("c", 7))],
            "passed: OCM has selected it: it is in PlacementDecision kueue-system/p-decision-1 with score 7",
        ),
        "to be decided on": Situation(
            [*FLEET, placement(), decision()],
            "failed: OCM has not selected it, although the steps above say otherwise: OCM has not "
            "scheduled again yet, or it sees objects that are unknown here",
        ),
        "still decided on": Situation(
            [a_set(), binding(), cluster("c", GPU), placement(), decision("c")],
            "passed: OCM has selected it: it is in PlacementDecision kueue-system/p-decision-1, "
            "although the steps above say otherwise: OCM has not scheduled again yet, or it sees "
            "objects that are unknown here",
        ),
    },
}


CONTROLLERS_STEPS = {
    StepName.CHECKS: {
        "no check": Situation(
            [*FLEET, placement(), decision("c"), constants.ADMISSION_CHECK],
            "note: no AdmissionCheck of ours names Placement p: Kueue is not updated",
        )
    },
    StepName.ORDER: {
        "order without scores": Situation(
            ALL,
            "passed: the controller ranks it 1 of 1, by decision group and name, because there is no score",
        ),
        "order by OCM's scores": Situation(
            [*LIVE, decision(("c", 3), ("a", 5)), *secrets("a")],
            "passed: the controller ranks it 2 of 2, by the scores in OCM's decisions: score 3",
        ),
        "order by scores of its own": Situation(
            [*FLEET, placement(weights={"usage/gpu": 2}), check(), decision("c"), scores("c", gpu=4)],
            "passed: the controller ranks it 1 of 1, by AddOnPlacementScores, because OCM's decisions "
            "contain no score: score 8",
        ),
    },
    StepName.NAME: {
        "name": Situation(ALL, "passed: its MultiKueueCluster is p-c"),
        "the name is taken": Situation(
            [
                *LIVE,
                decision("c"),
                our_cluster("x", "other")
                | {"metadata": our_cluster("c", "other")["metadata"] | {"name": "p-c"}},
            ],
            "failed: rename one of the Placements: MultiKueueCluster p-c belongs to Placement other, "
            "cluster c",
        ),
    },
    StepName.CREDENTIAL: {
        "credential": Situation(
            ALL, "passed: its credentials are Secret kueue-system/multikueue-c, found by its name"
        ),
        "a Secret that a ClusterProfile names, and that expires": Situation(
            [*HUB, secret("s", kubeconfig(jwt(hours=72))), profile("c", secret=("kueue-system", "s"))],
            "passed: its credentials are Secret kueue-system/s, named by its ClusterProfile, and "
            "expires at 2026-08-04T12:00:00+00:00",
        ),
        "an access provider": Situation(
            [*HUB, profile("c", providers=["open-cluster-management"]), secret("multikueue-other")],
            "passed: its credentials are ClusterProfile kueue-system/c, for its access provider",
        ),
        "what the controller has made": Situation(
            [*HUB, secret("placement-ac-c", labels=labels_of(None))],
            "passed: its credentials are Secret kueue-system/placement-ac-c, made by the controller",
        ),
        "no credential": Situation(
            [*HUB, secret("multikueue-other")],
            "failed: create Secret kueue-system/multikueue-c with key kubeconfig: c has no credentials",
        ),
        "no Secret in the dump": Situation(
            HUB, "unknown: whether it has credentials is unknown: the dump holds no secrets"
        ),
    },
    StepName.IDENTITY: {
        "the same claim as an older cluster": Situation(
            [
                *(a_set(), binding(), placement(), check(), decision("a", "c"), *secrets("a", "c")),
                *(cluster(name, status=SAME_CLAIM, creationTimestamp=SINCE[name]) for name in "ac"),
            ],
            f"failed: {SAME_WORKER} (both ManagedClusters have the same claim id.k8s.io)",
        ),
        "as the controller has recorded": Situation(
            [
                *(a_set(), binding(), placement(), check(), decision("a", "c"), *secrets("a", "c")),
                *(cluster("a"), cluster("c"), our_cluster("a")),
                our_config("p-a", annotations={constants.ANNOTATION_SECOND_NAMES: "c=a"}),
            ],
            f"failed: {SAME_WORKER} (both kubeconfigs show the same objects, by uid)",
        ),
    },
    StepName.SLOT: {
        "slot": Situation(ALL, "passed: 1 usable cluster, and Kueue takes at most 20"),
        "no slot": Situation(
            [
                *LIVE,
                decision("c", *(f"b{number}" for number in range(20))),
                *secrets(*(f"b{n}" for n in range(20))),
            ],
            "failed: 21 usable clusters, and Kueue takes at most 20: it is beyond them",
        ),
    },
    StepName.DRAINING: {
        "it drains": Situation(
            [
                *DROPPED,
                *secrets("a", "c"),
                *our_objects("a", "c"),
                running("job", "p-c"),
                running("other", "p-a"),
            ],
            "note: it drains and stays listed for now: Workloads run there; run there: default/job",
        ),
        "it goes": Situation(
            [*DROPPED, *secrets("a", "c"), *our_objects("a", "c"), constants.WORKLOAD],
            "note: it leaves the list now",
        ),
        "it goes, and jobs of other checks stay": Situation(
            [
                *DROPPED,
                *secrets("a", "c"),
                *our_objects("a", "c"),
                workload("theirs", cluster="p-c", another="Ready"),
            ],
            "note: it leaves the list now; of other checks run there: default/theirs",
        ),
    },
    StepName.LIST: {
        "on the list": Situation(ALL, "passed: it is number 1 of 1 on the list"),
        "its place will change": Situation(
            [*LIVE, cluster("b"), decision(("c", 1), ("b", 90)), *secrets("b"), *our_objects("c", "b")],
            "passed: it is number 1 of 2 on the list; it will be number 2 of 2",
        ),
        "not on the list yet": Situation(
            [*LIVE, cluster("b"), decision("b", "c"), *secrets("b"), *our_objects("b")],
            "failed: it is not on the list yet and will be number 2 of 2: the controller has not "
            "written it yet",
        ),
        "the list is somebody else's": Situation(
            [*LIVE, decision("c"), foreign_config()],
            "failed: it is not on the list, which stays unchanged: NameTaken: delete MultiKueueConfig p,"
            " or hand it over with kubectl annotate multikueueconfig p"
            " placement-ac.open-cluster-management.io/adopt=true: it was not made by placement-ac",
        ),
        "no list in the dump": Situation(
            [*LIVE, decision("c")],
            "unknown: whether it is on Kueue's list is unknown: the dump holds no "
            "multikueueconfigs.kueue.x-k8s.io",
        ),
    },
    StepName.CONNECTED: {
        "connected": Situation(
            [*LIVE, decision("c"), our_config("p-c"), our_cluster("c", status={"conditions": [condition()]})],
            "passed: Kueue is connected to it",
        ),
        "not connected": Situation(
            [*LIVE, decision("c"), our_config("p-c"), our_cluster("c", **NOT_CONNECTED)],
            "failed: Kueue is not connected to it: ClientConnectionFailed: nobody is there",
        ),
        "a job kind is missing": Situation(
            [
                *LIVE,
                decision("c"),
                our_config("p-c"),
                our_cluster("c", status={"conditions": [LACKS_JOBSETS]}),
            ],
            "failed: Kueue is not connected to it: install the CRD jobsets.jobset.x-k8s.io there, or"
            " disable JobSet in the hub's Kueue: it connects only to workers that serve every job kind"
            " which it has enabled, so no job goes there; ClientConnectionFailed:"
            f" {LACKS_JOBSETS['message']}",
        ),
        "somebody has deleted its MultiKueueCluster": Situation(
            [*HUB, secret("multikueue-c"), our_config("p-c"), our_cluster("other")],
            "failed: Kueue is not connected to it: there is no MultiKueueCluster p-c",
        ),
        "nothing said yet": Situation(ALL, "note: Kueue has not reported yet whether it is connected"),
    },
    StepName.CONDITION: {
        "no condition": Situation(ALL, "note: check that the controller runs: the check has no condition"),
        "queues of the worker that give no quota": Situation(
            [
                *(one for one in ALL if one["kind"] != "AdmissionCheck"),
                check(active=condition(message=f"generated; b: {NO_QUOTA_THERE}x/y (z); c: {LACKS}")),
            ],
            f"passed: True: Active: generated; b: {NO_QUOTA_THERE}x/y (z); c: {LACKS}\nfailed: {LACKS}",
        ),
        "condition that is out of date": Situation(
            [
                *FLEET,
                placement(),
                check(active=condition("False", "NoDecision", "not yet")),
                secret("multikueue-c"),
                decision("c"),
                *our_objects("c"),
            ],
            "failed: False: NoDecision: not yet; from these objects the controller would set True "
            "Active: it has not reconciled the check yet, or it sees objects that are unknown here",
        ),
    },
    StepName.QUEUE: {
        "no queue": Situation(
            [*ALL, multikueue_check(), queue("q", "other")],
            "note: no ClusterQueue lists check, and Kueue's own mk: no job uses the list",
        ),
        "a queue": Situation(
            [
                *ALL,
                multikueue_check(),
                queue("q", "mk"),
                an(LOCAL_QUEUE, "l", "team", spec={"clusterQueue": "q"}),
            ],
            "passed: ClusterQueue q is active; LocalQueues: team/l; it lists mk",
        ),
        "a queue that is not active": Situation(
            [*ALL, queue("q", "check", active="False"), LOCAL_QUEUE],
            "failed: ClusterQueue q is not active (Ready: it can admit); LocalQueues: none; it lists check",
        ),
    },
}


SENTENCES = [
    pytest.param(objects, step, expected, id=name)
    for step, situations in (OCM_STEPS | CONTROLLERS_STEPS).items()
    for name, (objects, expected) in situations.items()
]


@pytest.mark.parametrize(("objects", "step", "expected"), SENTENCES)
def test_the_sentence_of_a_step(objects: list[Raw], step: StepName, expected: str) -> None:
    assert "\n".join(sentences(explain_cluster(case(*objects), "c"), step)) == expected


@pytest.mark.parametrize("probe", [False, True], ids=["no probe", "with a probe"])
def test_a_name_that_is_no_cluster_is_refused_before_its_credentials(probe: bool) -> None:
    seen = case(
        *FLEET, placement(), check(), decision("A_c"), secret("multikueue-A_c"), credentials_probe=probe
    )
    found = explain_cluster(seen, "A_c")
    assert sentences(found, StepName.NAME) == ["failed: not the name of a managed cluster"]
    assert sentences(found, StepName.CREDENTIAL, StepName.FITNESS) == []


def test_a_cluster_that_waits_for_its_probe() -> None:
    found = explain_cluster(case(*LIVE, decision("c"), credentials_probe=True), "c")
    waits = "it is being asked whether it is fit to be a worker"
    assert (found.state, found.step) == ("unusable", StepName.FITNESS)
    assert found.why == f"{waits}; only the controller knows the result of its probe"
    assert sentences(found, StepName.CREDENTIAL, StepName.FITNESS) == [
        "passed: its credentials are Secret kueue-system/multikueue-c, found by its name",
        f"unknown: {waits}; only the controller knows the result of its probe",
    ]
