"""`explain` on dumps: which step decides, what is not known, a check, and the words of the command."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_placement.cli.explain import grouped
from kubectl_placement.explain.explanations import ClusterSummary, explain_check, explain_cluster
from kubectl_placement.explain.steps import PlacementView, StepName
from kubectl_placement.explain.subject import placement_views
from kubectl_placement.hub.dump import Dump, MissingRight
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.lookup import SubjectNotFound
from placement_ac.config.settings import Settings
from placement_ac.core.api import constants
from placement_ac.core.api.constants import (
    ANNOTATION_DRAINING,
    CLUSTER_QUEUE,
    CLUSTER_SET,
    LOCAL_QUEUE,
    SET_BINDING,
)
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from tests.kubectl_placement.explain_builders import (
    ALL,
    DROPPED,
    FLEET,
    GPU,
    LIVE,
    MANY,
    a_set,
    binding,
    case,
    cluster,
    dump,
    overview,
    queue,
    sentences,
)
from tests.support import commands
from tests.support.builders import (
    NOW,
    Raw,
    an,
    check,
    check_with,
    condition,
    decision,
    foreign_config,
    multikueue_check,
    our_cluster,
    our_config,
    our_objects,
    placement,
    secret,
    secrets,
)
from tests.support.commands import write_list

# -- which one decides

ON_THE_LIST = [*LIVE, decision("c"), our_config("p-c"), our_cluster("c")]
STANDINGS = [
    pytest.param([*FLEET, placement()], ("selected", True, StepName.DECISION), id="to be selected"),
    pytest.param([*FLEET, placement(), decision("c")], ("selected", True, StepName.DECISION), id="selected"),
    pytest.param(
        [a_set(), binding(), cluster("c", GPU), placement()], ("dropped", False, StepName.TAINT), id="dropped"
    ),
    pytest.param(
        [*FLEET, placement(), decision()], ("dropped", False, StepName.DECISION), id="not decided on"
    ),
    pytest.param(
        [cluster(), binding(), placement(), decision()],
        ("dropped", False, StepName.CLUSTER_SET),
        id="not decided on, and not known why",
    ),
    pytest.param([cluster(), placement()], ("unknown", None, StepName.CLUSTER_SET), id="not known"),
    pytest.param(ON_THE_LIST, ("listed", True, StepName.LIST), id="listed"),
    pytest.param(
        [*DROPPED[:-1], decision("c", "a"), secret("multikueue-a"), *our_objects("a", "c")],
        ("draining", True, StepName.CREDENTIAL),
        id="draining, as its credentials have gone",
    ),
]


@pytest.mark.parametrize(("objects", "wanted"), STANDINGS)
def test_the_step_that_decides(objects: list[Raw], wanted: tuple[str, bool | None, StepName]) -> None:
    found = explain_cluster(case(*objects), "c")
    assert (found.state, found.selected, found.step) == wanted
    assert found.why in [link.sentence for link in found.links if link.step is found.step]


@pytest.mark.parametrize(
    ("objects", "steps"),
    [
        pytest.param(
            [*ALL, queue(), LOCAL_QUEUE],
            "ManagedCluster ClusterSet Predicate TaintToleration Score Score NumberOfClusters Decision Order "
            "Name Credential Slot List Connected Condition Queue",
            id="in",
        ),
        pytest.param(
            [*DROPPED, *secrets("a"), *our_objects("a"), queue()],
            "ManagedCluster ClusterSet Predicate TaintToleration Decision Condition",
            id="out",
        ),
    ],
)
def test_the_whole_chain_in_the_order_of_the_steps(objects: list[Raw], steps: str) -> None:
    found = [link.step for link in explain_cluster(case(*objects), "c").links]
    assert found == [StepName(step) for step in steps.split()]
    assert found == sorted(found, key=list(StepName).index)


def test_a_mass_loss_that_is_held() -> None:
    objects = [*DROPPED[:2], placement(), check(), decision("a"), *secrets("a"), *our_objects("a", *MANY)]
    held = explain_cluster(case(*objects, *secrets(*MANY)), MANY[0])
    why = "21 of 22 clusters would go at once though the Placement was not changed"
    (sentence,) = sentences(held, StepName.GUARD)
    assert sentence.startswith(f"note: it stays listed for now: {why}: held for 5 min")
    (sentence,) = sentences(overview(*objects, *secrets(*MANY)), StepName.GUARD)
    assert sentence.startswith(f"note: {why}")


def test_clusters_that_have_just_begun_to_drain_are_not_held() -> None:
    """Only the controller knows whether their losses count with that of d."""
    config, *clusters = our_objects(*"abcdef")
    since = f"{NOW - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    config["metadata"]["annotations"] = {ANNOTATION_DRAINING: f"p-a={since},p-b={since},p-c={since}"}
    hub = [*DROPPED[:2], placement(), check(), decision("e", "f"), *secrets(*"abcdef"), config, *clusters]
    assert not sentences(overview(*hub), StepName.GUARD)


# -- without a right


def blind(*kinds: constants.Kind, more: Sequence[Raw] = ()) -> PlacementView:
    """A hub on which some kinds may not be listed; `more`: objects that it has as well."""
    whole = dump(*ALL, more)
    empty = dict.fromkeys((*WATCHED_KINDS, CLUSTER_SET, SET_BINDING, CLUSTER_QUEUE, LOCAL_QUEUE), ())
    objects = {kind: of for kind, of in (empty | dict(whole.objects)).items() if kind not in kinds}
    missing = tuple(MissingRight("list", kind) for kind in kinds)
    view = HubView(
        Dump(objects | dict.fromkeys(kinds, ()), whole.served, missing, live=True), Settings(), NOW
    )
    return PlacementView(view, whole.of(constants.PLACEMENT)[0])


NO_RIGHT = "is unknown: no right to list"
MISSING = {
    constants.MANAGED_CLUSTER: (StepName.CLUSTER, "ManagedClusters are unknown"),
    SET_BINDING: (
        StepName.CLUSTER_SET,
        "OCM's steps are unknown without ManagedClusterSetBindings: the right to list them is missing",
    ),
    constants.PLACEMENT_DECISION: (StepName.DECISION, "PlacementDecisions are unknown"),
    constants.SECRET: (StepName.CREDENTIAL, f"whether it has credentials {NO_RIGHT} secrets"),
    constants.MULTIKUEUE_CONFIG: (
        StepName.LIST,
        f"whether it is on Kueue's list {NO_RIGHT} {constants.MULTIKUEUE_CONFIG}",
    ),
    constants.MULTIKUEUE_CLUSTER: (
        StepName.CONNECTED,
        f"whether Kueue is connected {NO_RIGHT} {constants.MULTIKUEUE_CLUSTER}",
    ),
    constants.ADMISSION_CHECK: (
        StepName.CHECKS,
        f"whether an AdmissionCheck names it {NO_RIGHT} {constants.ADMISSION_CHECK}",
    ),
}


@pytest.mark.parametrize("kind", MISSING, ids=str)
def test_without_a_right_what_depends_on_it_is_not_known(kind: constants.Kind) -> None:
    step, what = MISSING[kind]
    assert sentences(explain_cluster(blind(kind), "c"), step) == [f"unknown: {what}"]


def test_without_decisions_nothing_is_said_to_leave_nor_to_be_undecided() -> None:
    seen = blind(constants.PLACEMENT_DECISION)
    assert sentences(explain_cluster(seen, "c"), StepName.DRAINING) == []
    (decided,) = sentences(explain_check(seen.view, seen.checks[0]), StepName.DECISION)
    assert decided == f"unknown: OCM's decision is unknown: no right to list {constants.PLACEMENT_DECISION}"


def test_without_scores_the_order_is_not_known() -> None:
    seen = blind(constants.PLACEMENT_SCORE, more=[placement(weights={"usage/gpu": 1})])
    assert sentences(explain_cluster(seen, "c"), StepName.ORDER) == [
        f"unknown: how the controller ranks it is unknown: no right to list {constants.PLACEMENT_SCORE}"
    ]


def test_without_local_queues_there_may_be_some() -> None:
    seen = blind(LOCAL_QUEUE, more=[an(CLUSTER_QUEUE, "q", spec={"admissionChecks": ["check"]})])
    (link,) = sentences(explain_cluster(seen, "c"), StepName.QUEUE)
    assert "LocalQueues: unknown" in link


# -- a check


CHECKS = [
    pytest.param(
        [check_with(None)],
        [
            "failed: spec.parameters is missing",
            "note: check that the controller runs: the check has no condition",
        ],
        id="no parameters",
    ),
    pytest.param(
        [check(), placement("other")],
        [
            "passed: its parameters name Placement p",
            "failed: there is no Placement kueue-system/p",
            "note: check that the controller runs: the check has no condition",
        ],
        id="no Placement",
    ),
    pytest.param(
        [
            check(),
            a_set(),
            cluster(),
            placement(says=("PlacementSatisfied", "False", "None", "no set")),
            decision(),
        ],
        [
            "passed: its parameters name Placement p",
            "passed: Placement kueue-system/p exists; None: no set",
            ("failed: no ManagedClusterSet is bound in namespace kueue-system: bind one to select clusters"),
            "failed: OCM has selected 0 of 1 clusters",
            "unknown: Kueue's list is unknown: the dump holds no multikueueconfigs.kueue.x-k8s.io",
            "note: check that the controller runs: the check has no condition",
            "unknown: which queues use the list is unknown: the dump holds no clusterqueues.kueue.x-k8s.io",
        ],
        id="no binding",
    ),
    pytest.param(
        [*ALL, queue(), LOCAL_QUEUE],
        [
            "passed: its parameters name Placement p",
            "passed: Placement kueue-system/p exists",
            "passed: OCM chooses from the clusters of all: bound in namespace kueue-system",
            "passed: OCM has selected 1 of 1 clusters",
            "passed: Kueue's list, in order: p-c",
            "note: check that the controller runs: the check has no condition",
            "passed: ClusterQueue q is active; LocalQueues: none; it lists check",
        ],
        id="all is well",
    ),
    pytest.param(
        [
            check(),
            *FLEET,
            placement(spec={"clusterSets": ["x"]}),
            foreign_config("other"),
            constants.PLACEMENT_DECISION,
        ],
        [
            "passed: its parameters name Placement p",
            "passed: Placement kueue-system/p exists",
            "failed: spec.clusterSets names x; bound in namespace kueue-system is only all",
            "note: OCM has not decided yet",
            "failed: there is no MultiKueueConfig p",
            "note: check that the controller runs: the check has no condition",
            "unknown: which queues use the list is unknown: the dump holds no clusterqueues.kueue.x-k8s.io",
        ],
        id="no such set",
    ),
]


@pytest.mark.parametrize(("objects", "links"), CHECKS)
def test_sentences_of_a_check(objects: list[Raw], links: list[str]) -> None:
    assert sentences(overview(*objects)) == links


def fates(step: StepName, *whys: str, state: Any = "dropped") -> list[ClusterSummary]:
    return [ClusterSummary(f"{step}{number}", state, step, why) for number, why in enumerate(whys)]


def test_clusters_that_drop_out_for_one_reason_share_a_line() -> None:
    listed = fates(StepName.LIST, "first", "second", state="listed")
    same, many = fates(StepName.TAINT, *["gpu"] * 3, "cpu"), fates(StepName.NUMBER, *map(str, range(9)))
    assert grouped([*listed, *same, *many]) == [
        (["List0"], listed[0]),
        (["List1"], listed[1]),
        (["TaintToleration0", "TaintToleration1", "TaintToleration2"], same[0]),
        (["TaintToleration3"], same[3]),
        ([one.cluster for one in many], replace(many[0], why="0; and 8 other reasons")),
    ]


# -- the command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A dump in which `c` is a cluster, and `both` a cluster and a check."""
    others = [
        cluster("both"),
        check("both", "q"),
        multikueue_check(),
        check("lost", "gone"),
        placement("q", namespace="x"),
    ]
    return write_list(tmp_path / "dump.yaml", [*ALL, *others])


def run(file: Path, *words: str, **options: Any) -> Any:
    return commands.run("explain", *words, "--from-dump", str(file), **options)


@pytest.mark.parametrize(
    "words",
    [
        ["cluster", "c"],
        ["managedclusters", "c"],
        ["mcl", "c"],
        ["ManagedCluster/c"],
        ["managedclusters.cluster.open-cluster-management.io", "c"],
        ["c"],
        ["cluster/c", "--check", "check"],
    ],
    ids=" ".join,
)
def test_words_for_a_cluster(file: Path, words: list[str]) -> None:
    done = run(file, *words, "-n", "kueue-system")
    assert (done.exit_code, done.output.splitlines()[0].rstrip()) == (
        0,
        "Cluster c for Placement kueue-system/p (check check): listed",
    )


@pytest.mark.parametrize(
    ("words", "head"),
    [
        (["check", "check"], "Placement kueue-system/p (check check)"),
        (["admissionchecks/check"], "Placement kueue-system/p (check check)"),
        (["ac/check"], "Placement kueue-system/p (check check)"),
        (["admissioncheck", "lost"], "Placement gone (check lost)"),
        (["placement", "p"], "Placement kueue-system/p (check check)"),
        (["p"], "Placement kueue-system/p (check check)"),
        (["placements", "q"], "Placement x/q"),
        (["placement", "q", "-n", "x"], "Placement x/q (check both)"),
    ],
    ids=str,
)
def test_words_for_a_check_or_a_placement(file: Path, words: list[str], head: str) -> None:
    done = run(file, *words)
    assert (done.exit_code, done.output.splitlines()[0].rstrip()) == (0, head)


NOT_THERE = [
    (["cluster", "x"], 'managedclusters.cluster.open-cluster-management.io "x" not found'),
    (["check", "x"], 'admissionchecks.kueue.x-k8s.io "x" not found'),
    (["placement", "p", "-n", "x"], 'placements.cluster.open-cluster-management.io "p" not found'),
    (["workload", "w"], 'workloads.kueue.x-k8s.io "w" not found; unknown: workloads.kueue.x-k8s.io'),
    (["x"], 'no cluster, check or Placement "x" found'),
    (["both"], "use `explain cluster both` or `explain check both`: both is a cluster and a check"),
    (
        ["check", "mk"],
        (
            "use `explain check check`: AdmissionCheck mk is not ours: its spec.controllerName is "
            "'kueue.x-k8s.io/multikueue'; its MultiKueueConfig is that of check"
        ),
    ),
    (["cluster", "c", "--check", "x"], 'admissionchecks.kueue.x-k8s.io "x" not found'),
    (
        ["cluster", "c", "--check", "lost"],
        "AdmissionCheck lost has no Placement: see `explain check lost`",
    ),
]


USAGE_ERRORS = [
    (["queue", "x"], "use one of the types cluster, check, placement, workload: 'queue' is unknown"),
    (["check", "check", "--check", "check"], "use --check only with a cluster"),
    (["workload", "w", "--check", "check"], "use --check only with a cluster"),
    (["a", "b", "c"], "name one object, as TYPE NAME: a b c"),
    (["c", "-o", "xml"], "Invalid value for '-o' / '--output': 'xml' is not one of 'wide', 'json', 'yaml'"),
    ([], "Missing argument '[TYPE] NAME'"),
]


@pytest.mark.parametrize(("words", "error"), NOT_THERE, ids=str)
def test_an_object_that_is_not_there_or_not_ours_exits_with_1(
    file: Path, words: list[str], error: str
) -> None:
    done = run(file, *words)
    assert (done.exit_code, done.output) == (1, f"Error: {error}\n")


@pytest.mark.parametrize(("words", "error"), USAGE_ERRORS, ids=str)
def test_usage_errors_exit_with_2(file: Path, words: list[str], error: str) -> None:
    done = run(file, *words)
    assert (done.exit_code, done.output.splitlines()[-1].rstrip(".")) == (2, f"Error: {error}")


def test_a_terminal_that_knows_no_marks_gets_plain_ones(file: Path) -> None:
    words = ("cluster", "c", "--check", "check")
    marks = [line[0] for line in run(file, *words, charset="ascii").output.splitlines()[1:]]
    fancy = [line[0] for line in run(file, *words).output.splitlines()[1:]]
    assert marks == [{"✓": "+", "✗": "x", "•": "-", "?": "?"}[mark] for mark in fancy]
    assert {"✓", "•"} <= set(fancy)


def test_no_message_of_others_steers_the_terminal_or_breaks_it(tmp_path: Path) -> None:
    sentence = condition("False", "NoDecision", "\x1b[31mπ [bold]red")
    path = write_list(tmp_path / "dump.yaml", [check(active=sentence)])
    done = run(path, "check", "check", charset="ascii")
    assert done.exit_code == 0, done.output
    assert "\\x1b[31m? [bold]red" in done.output


def test_without_a_placement_there_is_nothing_to_explain(tmp_path: Path) -> None:
    path = tmp_path / "dump.yaml"
    version = constants.PLACEMENT.at("v1beta1").api_version
    none = {"apiVersion": version, "kind": "PlacementList", "items": []}
    path.write_text(yaml.safe_dump_all([cluster(), none]))
    done = run(path, "c")
    assert (done.exit_code, done.output) == (0, "No Placement could select it.\n")
    path.write_text(yaml.safe_dump(cluster()))
    assert "Placements are unknown: the dump holds no placements" in run(path, "c").output


def test_placements_that_may_not_be_seen_are_an_error() -> None:
    with pytest.raises(SubjectNotFound, match="Placements are unknown: no right to list placements"):
        placement_views(blind(constants.PLACEMENT).view, "", ())


def test_many_placements_are_summed_up(tmp_path: Path) -> None:
    many = [placement(f"p{number}") for number in range(6)]
    path = write_list(tmp_path / "dump.yaml", [*FLEET, *many])
    lines = run(path, "c").output.splitlines()
    assert [line.split()[0] for line in lines[1:7]] == [f"kueue-system/p{number}" for number in range(6)]
    assert lines[-1] == "For all steps: explain cluster c --check NAME, or -o wide"
    heads = [line for line in run(path, "c", "-o", "wide").output.splitlines() if line.startswith("Cluster ")]
    assert len(heads) == 6


def test_wide_shows_the_source_of_each_step(file: Path) -> None:
    output = run(file, "check", "check", "-o", "wide").output
    (line,) = [line for line in output.splitlines() if " Condition " in line]
    assert line.rstrip().endswith("AdmissionCheck check")
