"""The consequences of one cause are below it: on values, and on hubs with one cause and its consequences."""

from typing import Any

import pytest

from kubectl_placement.cli.doctor_table import counts, doctor_table, summary_text
from kubectl_placement.doctor.finding import Cause, Finding, Level, fail, ok, skip, unknown, warn
from kubectl_placement.doctor.folding import FoldedFinding, causes_of, fold
from kubectl_placement.doctor.grouping import grouped
from tests.kubectl_placement.doctor.broken_hub import PLACEMENT
from tests.kubectl_placement.doctor.broken_setups import (
    CHECK,
    CONTROLLER,
    KUEUE,
    LEASE,
    QUEUE,
    How,
    both,
    put,
    with_condition,
    without,
)
from tests.kubectl_placement.doctor.examined_hub import examined, read, stored
from tests.support.documents import INSPECT
from tests.support.healthy import NS


def of(check: str, finding: Finding) -> Finding:
    """The finding as its rule yields it."""
    return Finding(check, *(getattr(finding, name) for name in Finding.__slots__[1:]))


FINE = of("fine", ok("yes"))
ROOT = of("root", fail("r", "fix r", "X a"))
OTHER = of("root", fail("o", "fix o", "X b"))
CHILD = of("child", warn("c", "fix c", "Y", [Cause("none"), Cause("root", "X b")]))
GRANDCHILD = of("grandchild", fail("g", "fix g", causes=[Cause("child")]))
BLIND = of("blind", unknown("see root", cause="root"))
SAME = of("same", warn("s", "fix r"))


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([FINE, ROOT], [(FINE, []), (ROOT, [])], id="they have nothing to do with each other"),
        pytest.param([ROOT, OTHER, CHILD], [(ROOT, []), (OTHER, [CHILD])], id="by the object"),
        pytest.param([GRANDCHILD, CHILD, OTHER], [(OTHER, [GRANDCHILD, CHILD])], id="in several steps"),
        pytest.param([ROOT, BLIND], [(ROOT, [BLIND])], id="by the check alone"),
        pytest.param([ROOT, SAME], [(ROOT, [SAME])], id="by the same fix"),
        pytest.param([BLIND], [(BLIND, [])], id="the cause is not there"),
        pytest.param(
            [of("root", ok("fine")), BLIND], [(of("root", ok("fine")), []), (BLIND, [])], id="it is fine"
        ),
    ],
)
def test_a_finding_that_follows_from_another_is_below_it(findings: list[Finding], expected: Any) -> None:
    assert [(one.finding, list(one.follows)) for one in fold(findings)] == expected


def test_findings_that_cause_each_other_are_all_there() -> None:
    one = of("one", warn("1", causes=[Cause("two")]))
    two = of("two", warn("2", causes=[Cause("one")]))
    assert fold([one, two]) == (FoldedFinding(one, (two,)),)


def test_the_level_is_the_worst_and_the_summary_counts_causes() -> None:
    weak = of("child", warn("c", "fix c"))
    problems = fold([FINE, weak, GRANDCHILD])
    assert [problem.level for problem in problems] == [Level.OK, Level.FAIL]
    assert summary_text(counts(problems)) == "1 problem, 0 warnings, 1 check passed"
    assert causes_of([FINE, weak, GRANDCHILD]) == ("", "", "child")


def test_passed_skipped_and_unknown_are_counted_apart() -> None:
    weak = of("weak", warn("w"))
    problems = fold([FINE, FINE, of("idle", skip("nothing to check")), weak, BLIND])
    assert counts(problems) == {"ok": 2, "skip": 1, "warn": 1, "fail": 0, "unknown": 1}
    assert summary_text(counts(problems)) == "0 problems, 1 warning, 2 checks passed, 1 skipped, 1 unknown"


def test_a_finding_of_several_clusters_is_the_cause_for_each() -> None:
    roots = [fail(f"{one} lacks it", f"make {one}", f"cluster {one}", cluster=one) for one in ("c1", "c2")]
    root, *none = grouped(of("there", one) for one in roots)
    here = of("here", warn("nothing goes to c2", "look", causes=[Cause("there", "cluster c2")]))
    other = of("here", warn("nothing goes to c3", "look there", causes=[Cause("there", "cluster c3")]))
    assert none == []
    assert fold([here, root, other]) == (FoldedFinding(root, (here,)), FoldedFinding(other))


def test_the_table() -> None:
    twice = of("root", warn("again\x1b[31m", "fix r"))
    lines = [line.plain for line in doctor_table(fold([FINE, ROOT, twice, SAME, BLIND]))]
    assert lines == [
        "OK    fine  yes",
        "FAIL  root  r",
        "      $ fix r",
        "      also: again\\x1b[31m",
        "      so: same: s",
        "      so unknown: blind",
        "1 problem, 0 warnings, 1 check passed",
    ]


NOT_ACTIVE = with_condition(
    QUEUE, "False", "AdmissionCheckInactive", "references inactive AdmissionCheck(s): placement-demo1"
)


UNBOUND = both(
    without(("ManagedClusterSetBinding", NS, "spoke")),
    with_condition(CHECK, "False", "NoClusterSelected", "none"),
    NOT_ACTIVE,
)


def problems_of(how: How) -> list[FoldedFinding]:
    objects = stored()
    how(objects)
    return [one for one in fold(examined(read(objects))) if one.finding.is_problem]


@pytest.mark.parametrize(
    ("how", "root", "follows"),
    [
        pytest.param(
            UNBOUND,
            "cluster-set-bindings",
            ["check-condition", "cluster-queues"],
            id="no cluster set is bound",
        ),
        pytest.param(
            both(without(PLACEMENT), with_condition(CHECK, "False", "PlacementNotFound", "x"), NOT_ACTIVE),
            "check-parameters",
            ["check-condition", "cluster-queues"],
            id="there is no Placement",
        ),
        pytest.param(
            both(without(CONTROLLER, LEASE), put(CHECK, "status", {}), NOT_ACTIVE),
            "controller",
            ["check-condition", "cluster-queues"],
            id="no controller runs",
        ),
        pytest.param(
            without(KUEUE),
            "kueue-deployment",
            ["kueue-release", "kueue-gates"],
            id="there is no Kueue",
        ),
    ],
)
def test_one_cause_is_one_problem(how: How, root: str, follows: list[str]) -> None:
    [problem] = problems_of(how)
    assert problem.finding.check == root
    assert [one.check for one in problem.follows] == follows


def test_the_example_in_the_documentation_is_what_is_shown() -> None:
    *lines, _ = (line.plain for line in doctor_table(problems_of(UNBOUND)))
    assert "\n".join(lines) in INSPECT.read_text("utf-8")
