"""The steps of `explain`, on dumps."""

import pytest

from kubectl_placement.explain.explanations import explain_cluster
from kubectl_placement.explain.steps import StepName
from placement_ac.core.api import constants
from placement_ac.core.api.constants import LOCAL_QUEUE
from tests.kubectl_placement.explain_builders import (
    ALL,
    DROPPED,
    FLEET,
    FOR_5_MINUTES,
    GOOD,
    GPU,
    HUB,
    LIVE,
    MANY,
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
    GENERATED,
    Raw,
    an,
    check,
    condition,
    decision,
    foreign_config,
    jwt,
    kubeconfig,
    labels_of,
    managed_clusters,
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
GROUPS = {"decisionGroups": [{"groupName": "first", "groupClusterSelector": {}}]}

OCM_STEPS = [
    pytest.param(
        [a_set(), binding(), placement()],
        StepName.CLUSTER,
        ["unknown: ManagedClusters are unknown"],
        id="no clusters in the dump",
    ),
    pytest.param(
        [a_set(), binding(), cluster("other"), placement()],
        StepName.CLUSTER,
        ["failed: there is no ManagedCluster c"],
        id="no such cluster",
    ),
    pytest.param(
        [a_set(), binding(), cluster(deletionTimestamp="2026-08-01T11:00:00Z"), placement()],
        StepName.CLUSTER,
        ["failed: it is being deleted, since 2026-08-01T11:00:00Z: OCM no longer selects it"],
        id="being deleted",
    ),
    pytest.param(
        [a_set(), binding(), cluster(conditions=[*GOOD[:2], AWAY]), placement()],
        StepName.CLUSTER,
        [
            (
                "note: it is accepted, joined, not available (Lost: no lease); OCM drops a cluster "
                "only for the taint that follows"
            )
        ],
        id="not available",
    ),
    pytest.param(
        [*FLEET, placement()],
        StepName.CLUSTER,
        ["passed: it is accepted, joined and available"],
        id="all is well with it",
    ),
    pytest.param(
        [*FLEET, placement()],
        StepName.CLUSTER_SET,
        ["passed: it is in ManagedClusterSet all, which is bound in namespace kueue-system"],
        id="in a bound set",
    ),
    pytest.param(
        [a_set(), cluster(), placement()],
        StepName.CLUSTER_SET,
        [
            (
                "failed: there is no ManagedClusterSetBinding in namespace kueue-system; it is in all, not "
                "bound in namespace kueue-system"
            )
        ],
        id="no binding",
    ),
    pytest.param(
        [a_set(), binding("gone"), cluster(), placement()],
        StepName.CLUSTER_SET,
        [
            (
                "failed: ManagedClusterSetBinding kueue-system/gone names a ManagedClusterSet that does not"
                " exist; it is in all, not bound in namespace kueue-system"
            )
        ],
        id="the set that is bound does not exist",
    ),
    pytest.param(
        [*FLEET, a_set("other"), binding("other"), placement(spec={"clusterSets": ["other"]})],
        StepName.CLUSTER_SET,
        [
            (
                f"failed: it is not in ManagedClusterSet other (label {SET_LABEL} is all, and the set wants "
                "other); it is in all, which spec.clusterSets does not name"
            )
        ],
        id="in a set that is not asked for",
    ),
    pytest.param(
        [*FLEET, placement(spec={"clusterSets": ["other"]})],
        StepName.CLUSTER_SET,
        [
            (
                "failed: spec.clusterSets names other, and none of them is bound in namespace kueue-system;"
                " it is in all, which spec.clusterSets does not name"
            )
        ],
        id="none of those asked for is bound",
    ),
    pytest.param(
        [a_set(), binding(), cluster(labels={}), placement()],
        StepName.CLUSTER_SET,
        [
            (
                f"failed: it is not in ManagedClusterSet all (label {SET_LABEL} is missing, and the set "
                "wants all)"
            )
        ],
        id="the label is missing",
    ),
    pytest.param(
        [binding(), cluster(), placement()],
        StepName.CLUSTER_SET,
        ["unknown: OCM's steps are unknown without ManagedClusterSets: the dump contains none"],
        id="no sets in the dump",
    ),
    pytest.param(
        [*FLEET, placement(deletionTimestamp="2026-08-01T11:00:00Z")],
        StepName.PLACEMENT,
        ["note: the Placement is being deleted: OCM leaves its decisions as they are"],
        id="the Placement is being deleted",
    ),
    pytest.param(
        [*FLEET, placement()],
        StepName.PREDICATE,
        ["passed: there are no predicates: every cluster passes"],
        id="no predicate",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(labelSelector={"matchLabels": {SET_LABEL: "all"}}))],
        StepName.PREDICATE,
        [f"passed: the predicate matches it: label {SET_LABEL} In (all)"],
        id="taken by a label",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["2 > 1"]}))],
        StepName.PREDICATE,
        ["passed: the predicate matches it: CEL 2 > 1"],
        id="taken by CEL",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(labelSelector={"matchLabels": {"gpu": "t4"}}))],
        StepName.PREDICATE,
        ["failed: label gpu is missing, and the predicate wants t4"],
        id="a label is missing",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["1 > 2"]}))],
        StepName.PREDICATE,
        ["failed: the CEL expression 1 > 2 is not true"],
        id="CEL is not true",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["1 >"]}))],
        StepName.MISCONFIGURED,
        ["failed: compilation failed: syntax error at line 1, column 3: 1 >"],
        id="CEL that is none",
    ),
    pytest.param([*FLEET, placement()], StepName.TAINT, ["passed: it has no taint"], id="no taint"),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement()],
        StepName.TAINT,
        ["failed: taint gpu=full:NoSelect is not tolerated"],
        id="not tolerated",
    ),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement(spec=TOLERATED)],
        StepName.TAINT,
        ["passed: taint gpu=full:NoSelect is tolerated, by spec.tolerations of gpu"],
        id="tolerated",
    ),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement(spec=FOR_5_MINUTES)],
        StepName.TAINT,
        [
            (
                "passed: taint gpu=full:NoSelect is tolerated until 2026-08-01T12:04:00+00:00, by "
                "spec.tolerations of gpu"
            )
        ],
        id="tolerated for a while",
    ),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU | {"effect": "PreferNoSelect"}), placement()],
        StepName.TAINT,
        ["passed: taint gpu=full:PreferNoSelect drops no cluster here: its effect is only a preference"],
        id="a mild taint",
    ),
    pytest.param(
        [*FLEET, placement(spec=scored())],
        StepName.SCORE,
        ["note: nothing scores: clusters are ordered by name"],
        id="nothing scores",
    ),
    pytest.param(
        [*FLEET, scores("c", gpu=30), placement(spec=scored(("gpu", 2)))],
        StepName.SCORE,
        ["note: AddOn/usage/gpu: 2 times 30 is 60 (from AddOnPlacementScore c/usage)"],
        id="a score",
    ),
    pytest.param(
        [*FLEET, scores("c", until="2026-08-01T13:00:00Z", gpu=30), placement(spec=scored(("gpu", 1)))],
        StepName.SCORE,
        [
            (
                "note: AddOn/usage/gpu: 1 times 30 is 30 (from AddOnPlacementScore c/usage, valid until "
                "2026-08-01T13:00:00+00:00)"
            )
        ],
        id="a score that will expire",
    ),
    pytest.param(
        [*FLEET, scores("c", until="2026-08-01T11:00:00Z", gpu=30), placement(spec=scored(("gpu", 1)))],
        StepName.SCORE,
        ["note: AddOn/usage/gpu: 1 times 0 is 0 (it has expired, validUntil 2026-08-01T11:00:00Z)"],
        id="a score that has expired",
    ),
    pytest.param(
        [*FLEET, scores("c", cpu=3), placement(spec=scored(("gpu", 1), ("cpu", -1)))],
        StepName.SCORE,
        [
            "note: AddOn/usage/gpu: 1 times 0 is 0 (AddOnPlacementScore c/usage has no score gpu)",
            "note: AddOn/usage/cpu: -1 times 3 is -3 (from AddOnPlacementScore c/usage)",
        ],
        id="one of two scores",
    ),
    pytest.param(
        [*FLEET, placement(spec=scored(("gpu", 1)))],
        StepName.SCORE,
        ["note: AddOn/usage/gpu: 1 times 0 is 0 (there is no AddOnPlacementScore c/usage)"],
        id="no score",
    ),
    pytest.param(
        [*FLEET, placement(spec=scored())],
        StepName.NUMBER,
        ["passed: total score 0, rank 1 of 1; numberOfClusters is not set: all clusters are selected"],
        id="as many as there are",
    ),
    pytest.param(
        [*FLEET, cluster("a"), placement(spec=scored(numberOfClusters=1))],
        StepName.NUMBER,
        [
            (
                "failed: total score 0, rank 2 of 2; numberOfClusters is 1; a, the last one selected, has "
                "score 0 too and sorts first by name"
            )
        ],
        id="second by name",
    ),
    pytest.param(
        [
            *FLEET,
            cluster("a"),
            scores("c", gpu=1),
            scores("a", gpu=2),
            placement(spec=scored(("gpu", 1), numberOfClusters=1)),
        ],
        StepName.NUMBER,
        [
            (
                "failed: total score 1, rank 2 of 2; numberOfClusters is 1; a, the last one selected, has "
                "score 2"
            )
        ],
        id="second by score",
    ),
    pytest.param(
        [*FLEET, placement(spec={"decisionStrategy": {"groupStrategy": GROUPS}})],
        StepName.GROUP,
        ["passed: decision group 0 (first), of 1 cluster; there are 1"],
        id="a decision group",
    ),
    pytest.param(
        [
            *FLEET,
            placement(spec={"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "many"}}}),
        ],
        StepName.GROUP,
        [
            (
                "failed: correct the decision groups, they put it in no decision: Misconfigured: :many "
                "invalid type: string is not a percentage"
            )
        ],
        id="groups that are not right",
    ),
    pytest.param(
        [*FLEET, placement(), constants.PLACEMENT_DECISION],
        StepName.DECISION,
        ["note: OCM has not decided yet; it will select this cluster"],
        id="not decided yet",
    ),
    pytest.param(
        [*FLEET, placement(), decision(("c", 7))],
        StepName.DECISION,
        [("passed: OCM has selected it: it is in PlacementDecision kueue-system/p-decision-1 with score 7")],
        id="decided on",
    ),
    pytest.param(
        [*FLEET, placement(), decision()],
        StepName.DECISION,
        [
            (
                "failed: OCM has not selected it, although the steps above say otherwise: OCM has not "
                "scheduled again yet, or it sees objects that are unknown here"
            )
        ],
        id="to be decided on",
    ),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement(), decision("c")],
        StepName.DECISION,
        [
            (
                "passed: OCM has selected it: it is in PlacementDecision kueue-system/p-decision-1, "
                "although the steps above say otherwise: OCM has not scheduled again yet, or it sees "
                "objects that are unknown here"
            )
        ],
        id="still decided on",
    ),
]


@pytest.mark.parametrize(("objects", "step", "links"), OCM_STEPS)
def test_sentences_of_ocm_steps(objects: list[Raw], step: StepName, links: list[str]) -> None:
    assert sentences(explain_cluster(case(*objects), "c"), step) == links


CONTROLLERS_STEPS = [
    pytest.param(
        [*FLEET, placement(), decision("c"), constants.ADMISSION_CHECK],
        StepName.CHECKS,
        ["note: no AdmissionCheck of ours names Placement p: Kueue is not updated"],
        id="no check",
    ),
    pytest.param(
        ALL,
        StepName.ORDER,
        [("passed: the controller ranks it 1 of 1, by decision group and name, because there is no score")],
        id="order without scores",
    ),
    pytest.param(
        [*LIVE, decision(("c", 3), ("a", 5)), *secrets("a")],
        StepName.ORDER,
        ["passed: the controller ranks it 2 of 2, by the scores in OCM's decisions: score 3"],
        id="order by OCM's scores",
    ),
    pytest.param(
        [*FLEET, placement(weights={"usage/gpu": 2}), check(), decision("c"), scores("c", gpu=4)],
        StepName.ORDER,
        [
            (
                "passed: the controller ranks it 1 of 1, by AddOnPlacementScores, because OCM's decisions "
                "contain "
                "no score: score 8"
            )
        ],
        id="order by scores of its own",
    ),
    pytest.param(ALL, StepName.NAME, ["passed: its MultiKueueCluster is p-c"], id="name"),
    pytest.param(
        [
            *LIVE,
            decision("c"),
            our_cluster("x", "other") | {"metadata": our_cluster("c", "other")["metadata"] | {"name": "p-c"}},
        ],
        StepName.NAME,
        [
            (
                "failed: rename one of the Placements: MultiKueueCluster p-c belongs to Placement other, "
                "cluster c"
            )
        ],
        id="the name is taken",
    ),
    pytest.param(
        ALL,
        StepName.CREDENTIAL,
        ["passed: its credentials are Secret kueue-system/multikueue-c, found by its name"],
        id="credential",
    ),
    pytest.param(
        [*HUB, secret("s", kubeconfig(jwt(hours=72))), profile("c", secret=("kueue-system", "s"))],
        StepName.CREDENTIAL,
        [
            (
                "passed: its credentials are Secret kueue-system/s, named by its ClusterProfile, and "
                "expires at "
                "2026-08-04T12:00:00+00:00"
            )
        ],
        id="a Secret that a ClusterProfile names, and that expires",
    ),
    pytest.param(
        [*HUB, profile("c", providers=["open-cluster-management"]), secret("multikueue-other")],
        StepName.CREDENTIAL,
        ["passed: its credentials are ClusterProfile kueue-system/c, for its access provider"],
        id="an access provider",
    ),
    pytest.param(
        [*HUB, secret("placement-ac-c", labels=labels_of(None))],
        StepName.CREDENTIAL,
        ["passed: its credentials are Secret kueue-system/placement-ac-c, made by the controller"],
        id="what the controller has made",
    ),
    pytest.param(
        [*HUB, secret("multikueue-other")],
        StepName.CREDENTIAL,
        [("failed: create Secret kueue-system/multikueue-c with key kubeconfig: c has no credentials")],
        id="no credential",
    ),
    pytest.param(
        HUB,
        StepName.CREDENTIAL,
        ["unknown: whether it has credentials is unknown: the dump holds no secrets"],
        id="no Secret in the dump",
    ),
    pytest.param(ALL, StepName.SLOT, ["passed: 1 usable cluster, and Kueue takes at most 20"], id="slot"),
    pytest.param(
        [*LIVE, decision("c", *(name for name in MANY if name < "c")), *managed_clusters(*MANY)],
        StepName.SLOT,
        ["passed: 1 usable cluster, and Kueue takes at most 20"],
        id="seats enough",
    ),
    pytest.param(
        [
            *LIVE,
            decision("c", *(f"b{number}" for number in range(20))),
            *secrets(*(f"b{n}" for n in range(20))),
        ],
        StepName.SLOT,
        ["failed: 21 usable clusters, and Kueue takes at most 20: it is beyond them"],
        id="no seat",
    ),
    pytest.param(
        [
            *DROPPED,
            *secrets("a", "c"),
            *our_objects("a", "c"),
            running("job", "p-c"),
            running("other", "p-a"),
        ],
        StepName.DRAINING,
        ["note: it drains and stays listed for now: Workloads run there; run there: default/job"],
        id="it drains",
    ),
    pytest.param(
        [*DROPPED, *secrets("a", "c"), *our_objects("a", "c"), constants.WORKLOAD],
        StepName.DRAINING,
        ["note: it leaves the list now"],
        id="it goes",
    ),
    pytest.param(
        [
            *DROPPED,
            *secrets("a", "c"),
            *our_objects("a", "c"),
            workload("theirs", cluster="p-c", another="Ready"),
        ],
        StepName.DRAINING,
        ["note: it leaves the list now; of other checks run there: default/theirs"],
        id="it goes, and jobs of other checks stay",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["isIP('::1')"]}))],
        StepName.PREDICATE,
        [
            (
                "unknown: what OCM decides is unknown: the CEL expression uses isIP, which only OCM can "
                "evaluate: isIP('::1')"
            )
        ],
        id="what only OCM can evaluate",
    ),
    pytest.param(ALL, StepName.LIST, ["passed: it is number 1 of 1 on the list"], id="on the list"),
    pytest.param(
        [*DROPPED, *secrets("a", "c"), *our_objects("a", "c"), running("job", "p-c")],
        StepName.LIST,
        ["passed: it is number 2 of 2 on the list and will leave"],
        id="on the list, and leaves",
    ),
    pytest.param(
        [*LIVE, cluster("b"), decision(("c", 1), ("b", 90)), *secrets("b"), *our_objects("c", "b")],
        StepName.LIST,
        ["passed: it is number 1 of 2 on the list; it will be number 2 of 2"],
        id="its place will change",
    ),
    pytest.param(
        [*LIVE, cluster("b"), decision("b", "c"), *secrets("b"), *our_objects("b")],
        StepName.LIST,
        [
            (
                "failed: it is not on the list yet and will be number 2 of 2: the controller has not "
                "written it yet"
            )
        ],
        id="not on the list yet",
    ),
    pytest.param(
        [*LIVE, decision("c"), foreign_config()],
        StepName.LIST,
        [
            (
                "failed: it is not on the list, which stays unchanged: NameTaken: delete MultiKueueConfig p,"
                " or hand it over with kubectl annotate multikueueconfig p"
                " placement-ac.open-cluster-management.io/adopt=true: it was not made by placement-ac"
            )
        ],
        id="the list is somebody else's",
    ),
    pytest.param(
        [*LIVE, decision("c")],
        StepName.LIST,
        [
            (
                "unknown: whether it is on Kueue's list is unknown: the dump holds no "
                "multikueueconfigs.kueue.x-k8s.io"
            )
        ],
        id="no list in the dump",
    ),
    pytest.param(
        [*LIVE, decision("c"), our_config("p-c"), our_cluster("c", status={"conditions": [condition()]})],
        StepName.CONNECTED,
        ["passed: Kueue is connected to it"],
        id="connected",
    ),
    pytest.param(
        [*LIVE, decision("c"), our_config("p-c"), our_cluster("c", **NOT_CONNECTED)],
        StepName.CONNECTED,
        ["failed: Kueue is not connected to it: ClientConnectionFailed: nobody is there"],
        id="not connected",
    ),
    pytest.param(
        [
            *LIVE,
            decision("c"),
            our_config("p-c"),
            our_cluster("c", status={"conditions": [LACKS_JOBSETS]}),
        ],
        StepName.CONNECTED,
        [
            (
                "failed: Kueue is not connected to it: install the CRD jobsets.jobset.x-k8s.io there, or"
                " disable JobSet in the hub's Kueue: it connects only to workers that serve every job kind"
                " which it has enabled, so no job goes there; ClientConnectionFailed:"
                f" {LACKS_JOBSETS['message']}"
            )
        ],
        id="a job kind is missing",
    ),
    pytest.param(
        [*HUB, secret("multikueue-c"), our_config("p-c"), our_cluster("other")],
        StepName.CONNECTED,
        ["failed: Kueue is not connected to it: there is no MultiKueueCluster p-c"],
        id="somebody has deleted its MultiKueueCluster",
    ),
    pytest.param(
        ALL,
        StepName.CONNECTED,
        ["note: Kueue has not reported yet whether it is connected"],
        id="nothing said yet",
    ),
    pytest.param(
        ALL,
        StepName.CONDITION,
        ["note: check that the controller runs: the check has no condition"],
        id="no condition",
    ),
    pytest.param(
        [
            *FLEET,
            placement(),
            check(active=condition()),
            secret("multikueue-c"),
            decision("c"),
            *our_objects("c"),
        ],
        StepName.CONDITION,
        [f"passed: True: Active: {GENERATED}"],
        id="condition",
    ),
    pytest.param(
        [
            *FLEET,
            placement(),
            check(active=condition("False", "NoDecision", "not yet")),
            secret("multikueue-c"),
            decision("c"),
            *our_objects("c"),
        ],
        StepName.CONDITION,
        [
            (
                "failed: False: NoDecision: not yet; from these objects the controller would set True "
                "Active: it has not reconciled the check yet, or it sees objects that are unknown here"
            )
        ],
        id="condition that is out of date",
    ),
    pytest.param(
        [*ALL, multikueue_check(), queue("q", "other")],
        StepName.QUEUE,
        ["note: no ClusterQueue lists check, and Kueue's own mk: no job uses the list"],
        id="no queue",
    ),
    pytest.param(
        [
            *ALL,
            multikueue_check(),
            queue("q", "mk"),
            an(LOCAL_QUEUE, "l", "team", spec={"clusterQueue": "q"}),
        ],
        StepName.QUEUE,
        ["passed: ClusterQueue q is active; LocalQueues: team/l; it lists mk"],
        id="a queue",
    ),
    pytest.param(
        [*ALL, queue("q", "check", active="False"), LOCAL_QUEUE],
        StepName.QUEUE,
        [("failed: ClusterQueue q is not active (Ready: it can admit); LocalQueues: none; it lists check")],
        id="a queue that is not active",
    ),
]


@pytest.mark.parametrize(("objects", "step", "links"), CONTROLLERS_STEPS)
def test_sentences_of_controller_steps(objects: list[Raw], step: StepName, links: list[str]) -> None:
    assert sentences(explain_cluster(case(*objects), "c"), step) == links


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
    assert sentences(found, StepName.CREDENTIAL, StepName.FITNESS) == [
        "passed: its credentials are Secret kueue-system/multikueue-c, found by its name",
        f"unknown: {waits}; only the controller knows the result of its probe",
    ]
