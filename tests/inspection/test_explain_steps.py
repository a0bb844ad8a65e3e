"""What `explain` tells of each step, on dumps."""

import pytest

from placement_ac.inspection.chain import chain
from placement_ac.inspection.kinds import LOCAL_QUEUE
from placement_ac.inspection.links import Step
from tests.inspection.explain_builders import (
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
    told,
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
    made,
    managed_clusters,
    multikueue_check,
    our_cluster,
    our_config,
    placement,
    profile,
    running,
    scores,
    secret,
    secrets,
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
        Step.CLUSTER,
        ["unknown: ManagedClusters are not seen here"],
        id="no clusters in the dump",
    ),
    pytest.param(
        [a_set(), binding(), cluster("other"), placement()],
        Step.CLUSTER,
        ["failed: there is no ManagedCluster c (any more)"],
        id="no such cluster",
    ),
    pytest.param(
        [a_set(), binding(), cluster(deletionTimestamp="2026-08-01T11:00:00Z"), placement()],
        Step.CLUSTER,
        ["failed: it is being deleted, since 2026-08-01T11:00:00Z: OCM does not choose it any more"],
        id="being deleted",
    ),
    pytest.param(
        [a_set(), binding(), cluster(conditions=[*GOOD[:2], AWAY]), placement()],
        Step.CLUSTER,
        [
            (
                "note: it is accepted, joined, not available (Lost: no lease); OCM drops no cluster for "
                "that, but for the taint that follows"
            )
        ],
        id="not available",
    ),
    pytest.param(
        [*FLEET, placement()],
        Step.CLUSTER,
        ["passed: it is accepted, joined and available"],
        id="all is well with it",
    ),
    pytest.param(
        [*FLEET, placement()],
        Step.CLUSTER_SET,
        ["passed: it is in ManagedClusterSet all, which is bound in namespace kueue-system"],
        id="in a bound set",
    ),
    pytest.param(
        [a_set(), cluster(), placement()],
        Step.CLUSTER_SET,
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
        Step.CLUSTER_SET,
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
        Step.CLUSTER_SET,
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
        Step.CLUSTER_SET,
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
        Step.CLUSTER_SET,
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
        Step.CLUSTER_SET,
        ["unknown: how OCM decides cannot be told without ManagedClusterSets: the dump holds none"],
        id="no sets in the dump",
    ),
    pytest.param(
        [*FLEET, placement(deletionTimestamp="2026-08-01T11:00:00Z")],
        Step.PLACEMENT,
        ["note: the Placement is being deleted: OCM leaves its decisions as they are"],
        id="the Placement is being deleted",
    ),
    pytest.param(
        [*FLEET, placement()],
        Step.PREDICATE,
        ["passed: there is no predicate: every cluster passes"],
        id="no predicate",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(labelSelector={"matchLabels": {SET_LABEL: "all"}}))],
        Step.PREDICATE,
        [f"passed: the predicate takes it: label {SET_LABEL} In (all)"],
        id="taken by a label",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["2 > 1"]}))],
        Step.PREDICATE,
        ["passed: the predicate takes it: CEL 2 > 1"],
        id="taken by CEL",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(labelSelector={"matchLabels": {"gpu": "t4"}}))],
        Step.PREDICATE,
        ["failed: label gpu is missing, and the predicate wants t4"],
        id="a label is missing",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["1 > 2"]}))],
        Step.PREDICATE,
        ["failed: the CEL expression 1 > 2 is not true"],
        id="CEL is not true",
    ),
    pytest.param(
        [*FLEET, placement(spec=predicate(celSelector={"celExpressions": ["1 >"]}))],
        Step.MISCONFIGURED,
        ["failed: compilation failed: syntax error at line 1, column 3: 1 >"],
        id="CEL that is none",
    ),
    pytest.param([*FLEET, placement()], Step.TAINT, ["passed: it has no taint"], id="no taint"),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement()],
        Step.TAINT,
        ["failed: taint gpu=full:NoSelect is not tolerated"],
        id="not tolerated",
    ),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement(spec=TOLERATED)],
        Step.TAINT,
        ["passed: taint gpu=full:NoSelect is tolerated, by spec.tolerations of gpu"],
        id="tolerated",
    ),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement(spec=FOR_5_MINUTES)],
        Step.TAINT,
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
        Step.TAINT,
        ["passed: taint gpu=full:PreferNoSelect drops no cluster here: it only prefers others"],
        id="a mild taint",
    ),
    pytest.param(
        [*FLEET, placement(spec=scored())],
        Step.SCORE,
        ["note: nothing scores: the order is that of the names"],
        id="nothing scores",
    ),
    pytest.param(
        [*FLEET, scores("c", gpu=30), placement(spec=scored(("gpu", 2)))],
        Step.SCORE,
        ["note: AddOn/usage/gpu: 2 times 30 is 60 (from AddOnPlacementScore c/usage)"],
        id="a score",
    ),
    pytest.param(
        [*FLEET, scores("c", until="2026-08-01T13:00:00Z", gpu=30), placement(spec=scored(("gpu", 1)))],
        Step.SCORE,
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
        Step.SCORE,
        ["note: AddOn/usage/gpu: 1 times 0 is 0 (it has expired, validUntil 2026-08-01T11:00:00Z)"],
        id="a score that has expired",
    ),
    pytest.param(
        [*FLEET, scores("c", cpu=3), placement(spec=scored(("gpu", 1), ("cpu", -1)))],
        Step.SCORE,
        [
            "note: AddOn/usage/gpu: 1 times 0 is 0 (AddOnPlacementScore c/usage has no score gpu)",
            "note: AddOn/usage/cpu: -1 times 3 is -3 (from AddOnPlacementScore c/usage)",
        ],
        id="one of two scores",
    ),
    pytest.param(
        [*FLEET, placement(spec=scored(("gpu", 1)))],
        Step.SCORE,
        ["note: AddOn/usage/gpu: 1 times 0 is 0 (there is no AddOnPlacementScore c/usage)"],
        id="no score",
    ),
    pytest.param(
        [*FLEET, placement(spec=scored())],
        Step.NUMBER,
        ["passed: score 0 in all, rank 1 of 1; numberOfClusters is not set: all of them are selected"],
        id="as many as there are",
    ),
    pytest.param(
        [*FLEET, cluster("a"), placement(spec=scored(numberOfClusters=1))],
        Step.NUMBER,
        [
            (
                "failed: score 0 in all, rank 2 of 2; numberOfClusters is 1; a, the last that is in, has "
                "score 0 too and comes first by name"
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
        Step.NUMBER,
        [("failed: score 1 in all, rank 2 of 2; numberOfClusters is 1; a, the last that is in, has score 2")],
        id="second by score",
    ),
    pytest.param(
        [*FLEET, placement(spec={"decisionStrategy": {"groupStrategy": GROUPS}})],
        Step.GROUP,
        ["passed: decision group 0 (first), of 1 cluster; there are 1"],
        id="a decision group",
    ),
    pytest.param(
        [
            *FLEET,
            placement(spec={"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "many"}}}),
        ],
        Step.GROUP,
        [
            (
                "failed: the decision groups are not right, so it is in no decision: Misconfigured: :many "
                "invalid type: string is not a percentage"
            )
        ],
        id="groups that are not right",
    ),
    pytest.param(
        [*FLEET, placement()],
        Step.DECISION,
        ["note: OCM has not decided yet; it will choose this cluster"],
        id="not decided yet",
    ),
    pytest.param(
        [*FLEET, placement(), decision(("c", 7))],
        Step.DECISION,
        [
            (
                "passed: OCM has decided on it: PlacementDecision kueue-system/p-decision-1 holds it with "
                "score 7"
            )
        ],
        id="decided on",
    ),
    pytest.param(
        [*FLEET, placement(), decision()],
        Step.DECISION,
        [
            (
                "failed: OCM has not decided on it, though by the steps above it would: OCM has not decided"
                " again yet, or goes by something that is not seen here"
            )
        ],
        id="to be decided on",
    ),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement(), decision("c")],
        Step.DECISION,
        [
            (
                "passed: OCM has decided on it: PlacementDecision kueue-system/p-decision-1 holds it, "
                "though by the steps above it would not: OCM has not decided again yet, or goes by "
                "something that is not seen here"
            )
        ],
        id="still decided on",
    ),
]


@pytest.mark.parametrize(("objects", "step", "links"), OCM_STEPS)
def test_what_is_told_of_a_step_of_ocms(objects: list[Raw], step: Step, links: list[str]) -> None:
    assert told(chain(case(*objects), "c"), step) == links


CONTROLLERS_STEPS = [
    pytest.param(
        [*FLEET, placement(), decision("c")],
        Step.CHECKS,
        ["note: no AdmissionCheck of ours names Placement p: Kueue hears nothing of it"],
        id="no check",
    ),
    pytest.param(
        ALL,
        Step.ORDER,
        [
            (
                "passed: the controller ranks it 1 of 1, by decision group and name, as there is no score "
                "to go by"
            )
        ],
        id="order without scores",
    ),
    pytest.param(
        [*LIVE, decision(("c", 3), ("a", 5)), *secrets("a")],
        Step.ORDER,
        ["passed: the controller ranks it 2 of 2, by the scores in OCM's decisions: score 3"],
        id="order by OCM's scores",
    ),
    pytest.param(
        [*FLEET, placement(weights={"usage/gpu": 2}), check(), decision("c"), scores("c", gpu=4)],
        Step.ORDER,
        [
            (
                "passed: the controller ranks it 1 of 1, by AddOnPlacementScores, as OCM's decisions hold "
                "no score: score 8"
            )
        ],
        id="order by scores of its own",
    ),
    pytest.param(ALL, Step.NAME, ["passed: its MultiKueueCluster is p-c"], id="name"),
    pytest.param(
        [
            *LIVE,
            decision("c"),
            our_cluster("x", "other") | {"metadata": our_cluster("c", "other")["metadata"] | {"name": "p-c"}},
        ],
        Step.NAME,
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
        Step.CREDENTIAL,
        ["passed: the way in is Secret kueue-system/multikueue-c, found by its name"],
        id="credential",
    ),
    pytest.param(
        [*HUB, secret("s", kubeconfig(jwt(hours=72))), profile("c", secret=("kueue-system", "s"))],
        Step.CREDENTIAL,
        [
            (
                "passed: the way in is Secret kueue-system/s, named by its ClusterProfile, and expires at "
                "2026-08-04T12:00:00+00:00"
            )
        ],
        id="a Secret that a ClusterProfile names, and that expires",
    ),
    pytest.param(
        [*HUB, profile("c", providers=["open-cluster-management"]), secret("multikueue-other")],
        Step.CREDENTIAL,
        ["passed: the way in is ClusterProfile kueue-system/c, for its access provider"],
        id="an access provider",
    ),
    pytest.param(
        [*HUB, secret("placement-ac-c", labels=labels_of(None))],
        Step.CREDENTIAL,
        ["passed: the way in is Secret kueue-system/placement-ac-c, made by the controller"],
        id="what the controller has made",
    ),
    pytest.param(
        [*HUB, secret("multikueue-other")],
        Step.CREDENTIAL,
        [
            (
                "failed: no credentials: no ClusterProfile in namespace kueue-system names a Secret for "
                "kueue-admin, no Secret kueue-admin-c-kubeconfig or multikueue-c in namespace kueue-system,"
                " no ClusterProfile in namespace kueue-system has an access provider"
            )
        ],
        id="no credential",
    ),
    pytest.param(
        HUB,
        Step.CREDENTIAL,
        ["unknown: whether there is a way in is unknown: the dump holds no secrets"],
        id="no Secret in the dump",
    ),
    pytest.param(ALL, Step.SEAT, ["passed: 1 usable cluster, and Kueue takes 20 at most"], id="seat"),
    pytest.param(
        [*LIVE, decision("c", *(name for name in MANY if name < "c")), *managed_clusters(*MANY)],
        Step.SEAT,
        ["passed: 1 usable cluster, and Kueue takes 20 at most"],
        id="seats enough",
    ),
    pytest.param(
        [
            *LIVE,
            decision("c", *(f"b{number}" for number in range(20))),
            *secrets(*(f"b{n}" for n in range(20))),
        ],
        Step.SEAT,
        ["failed: 21 usable clusters, and Kueue takes 20 at most: it is beyond them"],
        id="no seat",
    ),
    pytest.param(
        [*DROPPED, *secrets("a", "c"), *made("a", "c"), running("job", "p-c"), running("other", "p-a")],
        Step.DRAINING,
        ["note: it drains, and stays listed for now: Workloads run there; run there: default/job"],
        id="it drains",
    ),
    pytest.param(
        [*DROPPED, *secrets("a", "c"), *made("a", "c")],
        Step.DRAINING,
        ["note: it leaves the list now"],
        id="it goes",
    ),
    pytest.param(ALL, Step.LIST, ["passed: it is number 1 of 1 on the list"], id="on the list"),
    pytest.param(
        [*DROPPED, *secrets("a", "c"), *made("a", "c"), running("job", "p-c")],
        Step.LIST,
        ["passed: it is number 2 of 2 on the list, and is to leave"],
        id="on the list, and leaves",
    ),
    pytest.param(
        [*LIVE, cluster("b"), decision(("c", 1), ("b", 90)), *secrets("b"), *made("c", "b")],
        Step.LIST,
        ["passed: it is number 1 of 2 on the list; it is to be number 2 of 2"],
        id="its place will change",
    ),
    pytest.param(
        [*LIVE, cluster("b"), decision("b", "c"), *secrets("b"), *made("b")],
        Step.LIST,
        [
            (
                "failed: it is not on the list yet, and is to be number 2 of 2: the controller has not "
                "written it yet"
            )
        ],
        id="not on the list yet",
    ),
    pytest.param(
        [*LIVE, decision("c"), foreign_config()],
        Step.LIST,
        [
            (
                "failed: it is not on the list, which stays as it is: NameTaken: delete MultiKueueConfig p,"
                " or hand it over with kubectl annotate multikueueconfig p"
                " placement-ac.open-cluster-management.io/adopt=true: it was not made by placement-ac"
            )
        ],
        id="the list is somebody else's",
    ),
    pytest.param(
        [*LIVE, decision("c")],
        Step.LIST,
        [
            (
                "unknown: whether Kueue's list holds it is unknown: the dump holds no "
                "multikueueconfigs.kueue.x-k8s.io"
            )
        ],
        id="no list in the dump",
    ),
    pytest.param(
        [*LIVE, decision("c"), our_config("p-c"), our_cluster("c", status={"conditions": [condition()]})],
        Step.CONNECTED,
        ["passed: Kueue is connected to it"],
        id="connected",
    ),
    pytest.param(
        [*LIVE, decision("c"), our_config("p-c"), our_cluster("c", **NOT_CONNECTED)],
        Step.CONNECTED,
        ["failed: Kueue is not connected to it: ClientConnectionFailed: nobody is there"],
        id="not connected",
    ),
    pytest.param(
        [*HUB, secret("multikueue-c"), our_config("p-c"), our_cluster("other")],
        Step.CONNECTED,
        ["failed: Kueue is not connected to it: there is no MultiKueueCluster p-c"],
        id="somebody has deleted its MultiKueueCluster",
    ),
    pytest.param(
        ALL, Step.CONNECTED, ["note: Kueue has not said yet whether it is connected"], id="nothing said yet"
    ),
    pytest.param(
        ALL, Step.CONDITION, ["note: the controller has not answered it: does it run?"], id="no condition"
    ),
    pytest.param(
        [*FLEET, placement(), check(active=condition()), secret("multikueue-c"), decision("c"), *made("c")],
        Step.CONDITION,
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
            *made("c"),
        ],
        Step.CONDITION,
        [
            (
                "failed: False: NoDecision: not yet; by what is seen here the controller would say True "
                "Active: it has not looked again yet, or goes by something that is not seen here"
            )
        ],
        id="condition that is out of date",
    ),
    pytest.param(
        [*ALL, multikueue_check(), queue("q", "other")],
        Step.QUEUE,
        ["note: no ClusterQueue lists check, and Kueue's own mk: no job comes this way"],
        id="no queue",
    ),
    pytest.param(
        [
            *ALL,
            multikueue_check(),
            queue("q", "mk"),
            an(LOCAL_QUEUE, "l", "team", spec={"clusterQueue": "q"}),
        ],
        Step.QUEUE,
        ["passed: ClusterQueue q is active; LocalQueues: team/l; it lists mk"],
        id="a queue",
    ),
    pytest.param(
        [*ALL, queue("q", "check", active="False")],
        Step.QUEUE,
        [("failed: ClusterQueue q is not active (Ready: it can admit); LocalQueues: none; it lists check")],
        id="a queue that is not active",
    ),
]


@pytest.mark.parametrize(("objects", "step", "links"), CONTROLLERS_STEPS)
def test_what_is_told_of_a_step_of_the_controllers(objects: list[Raw], step: Step, links: list[str]) -> None:
    assert told(chain(case(*objects), "c"), step) == links
