"""`placement-ac status` as text: what is drawn of a check, and the example in the documentation."""

import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kubectl_placement.cli.controller_line import controller_line
from kubectl_placement.cli.output import safe_text
from kubectl_placement.cli.status_tree import time_left, tree_of
from kubectl_placement.hub.controller_state import ControllerState
from kubectl_placement.status.model import (
    CheckStatus,
    ClusterRow,
    Credential,
    HeldRow,
    ListWrites,
    QueueRow,
    WorkloadRow,
)
from placement_ac.core.api.constants import ACTIVE, BAD_PARAMETERS, GENERATED
from tests.support.builders import NOW

DOCUMENT = Path(__file__).parents[2] / "docs" / "inspect.md"

SINCE = datetime(2026, 7, 31, 15, tzinfo=UTC)
SHOWN = CheckStatus(
    name="placement-demo2",
    active="True",
    reason=ACTIVE,
    message=GENERATED,
    stale=False,
    placement="kueue-system/placement-demo2",
    placement_exists=True,
    placement_says="",
    config="placement-demo2",
    clusters=(
        ClusterRow(
            "cluster2", "listed", "", 1, 80, 0, "placement-demo2-cluster2",
            Credential("Secret", "multikueue-cluster2", NOW + timedelta(hours=23)), "True", running=2,
        ),
        ClusterRow(
            "cluster3", "listed", "", 2, 40, 0, "placement-demo2-cluster3",
            Credential("ClusterProfile", "cluster3"), "False", "ClientConnectionFailed: no route to host",
            waiting=1,
        ),
        ClusterRow(
            "cluster4", "unusable",
            "in Secret kueue-system/multikueue-cluster4, add key kubeconfig: it is missing",
            3, 10, 0, "placement-demo2-cluster4",
        ),
        ClusterRow(
            "cluster1", "draining", "OCM no longer selects it; Workloads run there",
            cluster_object="placement-demo2-cluster1", credential=Credential("Secret", "multikueue-cluster1"),
            connected="True", draining_since=NOW - timedelta(hours=1), running=1,
        ),
    ),
    queues=(QueueRow("gpus", "True", "", ("multikueue", "placement-demo2"), ("team/user-queue",), 1, 3),),
    users=("multikueue",),
    jobs=(
        WorkloadRow("team", "one", "user-queue", "running", "cluster2", gpus=8),
        WorkloadRow("team", "two", "user-queue", "running", "cluster2"),
        WorkloadRow("team", "three", "user-queue", "running", "cluster1", gpus=4),
        WorkloadRow("team", "four", "user-queue", "waiting", nominated=("cluster3",)),
        WorkloadRow("team", "five", "user-queue", "pending"),
    ),
)  # fmt: skip


def drawn(check_status: CheckStatus, *, wide: bool = False, width: int = 200, colour: bool = False) -> str:
    out = Console(
        file=io.StringIO(), width=width, highlight=False, force_terminal=colour, no_color=not colour
    )
    out.print(tree_of(check_status, NOW, wide=wide))
    assert isinstance(out.file, io.StringIO)
    return "\n".join(line.rstrip() for line in out.file.getvalue().splitlines())


def test_the_example_in_the_documentation_is_what_is_shown() -> None:
    output = DOCUMENT.read_text("utf-8").partition("$ placement-ac status placement-demo2\n")[2]
    leader = ControllerState(
        True,
        "placement-ac-7c9d-x2x4l_1f0e",
        SINCE,
        NOW - timedelta(seconds=1),
        "kueue-system/placement-ac",
        "",
    )
    first = controller_line(leader, NOW).plain
    assert output.partition("\n```")[0] == f"{first}\n{drawn(SHOWN)}"


HELD = (HeldRow(("cluster1",), "Workloads wait there", 2, NOW - timedelta(seconds=25)),)
WRITES = ListWrites(6, 140, NOW - timedelta(days=3), 5, 3, 15)


def test_the_example_of_who_waits_is_what_is_shown() -> None:
    waiting = drawn(replace(SHOWN, held=HELD, list_writes=WRITES)).splitlines()[-2:]
    assert "\n".join(waiting) in DOCUMENT.read_text("utf-8")


def last_line(**rest: Any) -> str:
    return drawn(replace(BARE, **rest), wide=True).splitlines()[-1][4:]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param(
            HeldRow(("a", "b"), "a: x; b: y", 1, None),
            "Held by the gate: 1 Workload, because a, b leave (a: x; b: y)",
            id="nobody knows since when",
        ),
        pytest.param(
            HeldRow(("a",), "x", 1, NOW + timedelta(seconds=3)),
            "Held by the gate for 0s: 1 Workload, because a leaves (x)",
            id="another clock",
        ),
    ],
)
def test_who_is_held(held: HeldRow, expected: str) -> None:
    assert last_line(held=(held,)) == expected


BY_EVENTS = "Changes of the list in the last hour, counted by events: "


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        pytest.param(
            WRITES,
            "at least 6; 140 in all since 2026-07-29T12:00:00Z;"
            " a change now costs 15 requests to workers (5 Workloads on 3 clusters)",
            id="all is known",
        ),
        pytest.param(ListWrites(None, None, None, None, 3, None), "?", id="nothing is known"),
        pytest.param(
            ListWrites(0, 1, None, 1200, 1, 1200),
            "at least 0; 1 in all;"
            " a change now costs 1,200 requests to workers (1,200 Workloads on 1 cluster)",
            id="never changed",
        ),
    ],
)
def test_how_often_the_list_changed(writes: ListWrites, expected: str) -> None:
    assert last_line(list_writes=writes) == BY_EVENTS + expected
    quiet = not writes.last_hour
    assert (BY_EVENTS not in drawn(replace(BARE, list_writes=writes))) is quiet


def test_wide_has_kueues_names_and_words() -> None:
    header, *rows = [
        re.split(r"  +", line[8:]) for line in drawn(SHOWN, wide=True, width=400).splitlines()[2:7]
    ]
    more = ["GROUP", "MULTIKUEUECLUSTER", "CREDENTIAL NAME", "UNTIL", "DRAINING SINCE", "WHY", "KUEUE SAYS"]
    assert header[9:] == more
    assert [row[9:] for row in rows] == [
        ["0", "placement-demo2-cluster2", "multikueue-cluster2", "2026-08-02T11:00:00Z"],
        ["0", "placement-demo2-cluster3", "cluster3", "ClientConnectionFailed: no route to host"],
        [
            "0",
            "placement-demo2-cluster4",
            "in Secret kueue-system/multikueue-cluster4, add key kubeconfig: it is missing",
        ],
        [
            "-",
            "placement-demo2-cluster1",
            "multikueue-cluster1",
            "2026-08-01T11:00:00Z",
            "OCM no longer selects it; Workloads run there",
        ],
    ]


@pytest.mark.parametrize(
    ("width", "wide", "header", "whys"),
    [
        pytest.param(
            110, False, "RANK CLUSTER STATE SCORE CREDENTIAL EXPIRES CONNECTED RUNNING WAITING",
            ["cluster3: ClientConnectionFailed: no route to host"], id="room for the numbers",
        ),
        pytest.param(
            60, False, "RANK CLUSTER STATE RUNNING WAITING",
            ["cluster2: credential Secret; expires 23h; score 80;", "connected True"], id="narrower",
        ),
        pytest.param(
            120, True, "RANK CLUSTER STATE SCORE CREDENTIAL EXPIRES CONNECTED RUNNING WAITING GROUP",
            ["cluster2: until 2026-08-02T11:00:00Z; credential name multikueue-cluster2; multikueuecluster"],
            id="much to say",
        ),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_are_on_lines_below(
    width: int, wide: bool, header: str, whys: list[str]
) -> None:
    lines = drawn(SHOWN, width=width, wide=wide).splitlines()
    assert max(map(len, lines)) <= width
    head = next(at for at, line in enumerate(lines) if "CLUSTER" in line)
    assert lines[head][8:].split() == header.split()
    begin = next(at for at, line in enumerate(lines) if re.match(r"│ {7}cluster\d:", line))
    assert [line[8:] for line in lines[begin : begin + len(whys)]] == whys
    output = " ".join(" ".join(line[8:].split()) for line in lines[head:])
    assert [cell for cell in ("cluster1", "ClusterProfile", "23h", "False") if cell not in output] == []


BARE = CheckStatus("bad", "Unknown", "", "", False, "", False, "", "", (), (), (), ())


@pytest.mark.parametrize(
    ("check_status", "expected"),
    [
        pytest.param(
            BARE,
            "AdmissionCheck bad  Active=Unknown  no controller has answered this check yet\n"
            "└── no Placement  (no MultiKueueConfig)",
            id="nobody has answered",
        ),
        pytest.param(
            replace(BARE, active="False", reason=BAD_PARAMETERS, message="no", stale=True, placement="p"),
            "AdmissionCheck bad  Active=False  BadParameters: no;"
            " it has changed since and has not been answered again\n"
            "└── Placement p  (no MultiKueueConfig)",
            id="of an older generation",
        ),
        pytest.param(
            CheckStatus(
                "c", "True", "Active", "", False, "ns/p", True, "it says so", "p",
                (
                    ClusterRow(
                        "a", "listed", running=None, waiting=None,
                        credential=Credential("Secret", "s", NOW, "unknown: no right to list secrets", False),
                    ),
                    ClusterRow(
                        "b", "listed", credential=Credential(problem="unknown: no right", known=False)
                    ),
                ),
                (QueueRow("q", "False", "Stopped: it is\x1b[31m held", ("c",)),), (), (),
            ),
            "AdmissionCheck c  Active=True  Active\n"
            "├── Placement ns/p  (MultiKueueConfig p)  it says so\n"
            "│   └── RANK  CLUSTER  STATE   SCORE  CREDENTIAL  EXPIRES  CONNECTED  RUNNING  WAITING  WHY\n"
            "│       -     a        listed  -      Secret ?    expired  -          ?        ?"
            "        unknown: no right to list secrets\n"
            "│       -     b        listed  -      ?           -        -          0        0"
            "        unknown: no right\n"
            "└── ClusterQueue q  Active=False  lists c; no LocalQueue; 0 pending, 0 admitted;"
            " Stopped: it is\\x1b[31m held",
            id="unknown things, and words that would steer a terminal",
        ),
        pytest.param(
            replace(
                BARE, placement="ns/p", config=None, clusters=(ClusterRow("a", "listed", rank=1),),
                queues=(QueueRow("q", "True", lists=("c",), local_queues=None),),
            ),
            "AdmissionCheck bad  Active=Unknown  no controller has answered this check yet\n"
            "├── Placement ns/p  (MultiKueueConfig ?)\n"
            "│   └── RANK  CLUSTER  STATE   SCORE  CREDENTIAL  EXPIRES  CONNECTED  RUNNING  WAITING\n"
            "│       1     a        listed  -      none        -        -          0        0\n"
            "└── ClusterQueue q  Active=True  lists c; LocalQueues ?; 0 pending, 0 admitted",
            id="what may not be listed may be there",
        ),
    ],
)  # fmt: skip
def test_a_check_is_drawn_as_a_tree(check_status: CheckStatus, expected: str) -> None:
    assert drawn(check_status) == expected


def test_jobs_that_are_sent_again_are_counted_by_what_to_do() -> None:
    jobs = [WorkloadRow("team", f"j{n}", "q", "pending", failure="compare the Job on a") for n in range(2)]
    assert drawn(replace(BARE, jobs=(*jobs, replace(jobs[0], failure="")))).endswith(
        "└── 2 jobs: compare the Job on a"
    )


def test_states_have_colours_on_a_terminal() -> None:
    shown = drawn(SHOWN, colour=True)
    assert "\x1b[31munusable" in shown
    assert "\x1b[32mlisted" in shown
    assert "\x1b[33mdraining" in shown


def test_markup_in_somebodys_words_is_text() -> None:
    assert safe_text("[bold]loud[/bold]").plain == "[bold]loud[/bold]"


def test_why_is_short_and_wide_has_all() -> None:
    why = f"renew the token: {'it has expired, ' * 9}and that is all"
    branch = replace(BARE, clusters=(ClusterRow("a", "unusable", why),))
    [line] = [line for line in drawn(branch).splitlines() if "renew" in line]
    assert line.endswith("it has expired, …")
    assert (why in drawn(branch), why in drawn(branch, wide=True, width=400)) == (False, True)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, "expired", id="now"),
        pytest.param(-90, "expired", id="long since"),
        pytest.param(119, "119s", id="seconds"),
        pytest.param(120, "2m", id="minutes"),
        pytest.param(3600 * 23, "23h", id="hours"),
        pytest.param(86400 * 2, "2d", id="days"),
        pytest.param(86400 * 730, "2y", id="years"),
        pytest.param(86400 * 355419, ">10y", id="for ever, in practice"),
    ],
)
def test_how_long_a_credential_lasts(seconds: int, expected: str) -> None:
    assert time_left(NOW + timedelta(seconds=seconds), NOW) == expected
