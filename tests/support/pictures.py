"""Inputs of the drawings: Story 3 as a tree and over time, hostile names, and large hubs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kubectl_placement.status.model import CheckStatus, ClusterRow, Credential, QueueRow, WorkloadRow
from kubectl_placement.timeline.model import Lane, Point, Span, Timeline, WorkloadRun, timeline_of_states
from kubectl_placement.timeline.state import RecordedState, RunningWorkload
from placement_ac.core.api.printable import visible
from website.page_files import PageSource, graph_file

BAD = "</title></text><script>window.bad = 1</script>\"'&#x3c;`;|\x1b\x00\ud800"
"""Markup that a page must show as text."""


def shown(text: str) -> str:
    """Return a text as a page shows it; a surrogate is no Unicode."""
    return visible(text.replace("\ud800", "?"))


def check_status(name: str = "demo", **rest: Any) -> CheckStatus:
    base = CheckStatus(
        name=name,
        active="True",
        reason="Active",
        message="the MultiKueueConfig is generated",
        stale=False,
        placement=f"kueue-system/{name}",
        placement_exists=True,
        placement_says="",
        config=name,
        clusters=(),
        queues=(),
        users=(),
        jobs=(),
    )
    return replace(base, **rest)


def story() -> CheckStatus:
    """cluster2 has taken over from cluster3, where a job still runs."""
    queue = QueueRow("queue", "True", "", ("demo", "multikueue"), ("default/user-queue",), 1, 1)
    return check_status(
        clusters=(
            ClusterRow(
                "cluster2", "listed", rank=1, score=80, credential=Credential("Secret", "s"), connected="True"
            ),
            ClusterRow("cluster3", "draining", "not selected any more; 1 Workload runs there", running=1),
        ),
        queues=(queue,),
        users=("multikueue",),
        jobs=(
            WorkloadRow("default", "train", "user-queue", "running", "cluster3", gpus=8),
            WorkloadRow("default", "next", "user-queue", "pending"),
        ),
    )


def every_state() -> CheckStatus:
    """A check that is not active, with a cluster of each state and names that do not fit."""
    long = "a-name-that-is-as-long-as-names-may-be-" * 2
    rows = (
        ClusterRow("wide-" + "WMWM" * 12, "listed", rank=1, score=100, running=12, waiting=7),
        ClusterRow("cluster-2", "draining", "unusable: no credentials", connected="False"),
        ClusterRow("cluster-3", "selected", "the controller has not listed it yet", rank=2),
        ClusterRow("cluster-4", "unusable", "no credentials", rank=3, score=-100),
        ClusterRow("cluster-5", "beyond", "beyond the 20 clusters that Kueue takes", rank=21, score=5),
        ClusterRow(
            "cluster-6", "waiting", "it waits for a slot", rank=4, score=50, running=None, waiting=None
        ),
    )
    queue = QueueRow(long, "False", "AdmissionCheckInactive", (long,), (f"team/{long}",), 1234, 0)
    jobs = (
        WorkloadRow("team", long, long, "running", "cluster-2", gpus=2048),
        WorkloadRow("lost", "job", "nowhere", "waiting", nominated=("cluster-2",)),
    )
    return check_status(
        long, active="False", reason="NoClusterUsable", clusters=rows, queues=(queue,), jobs=jobs
    )


def nothing() -> CheckStatus:
    """A check whose Placement does not exist."""
    return check_status(
        "lonely", active="Unknown", reason="", placement="nix", placement_exists=False, config="", stale=True
    )


def hostile() -> CheckStatus:
    """Every name and message is a script."""
    return check_status(
        BAD,
        reason=BAD,
        message=BAD,
        placement=f"{BAD}/{BAD}",
        placement_says=BAD,
        config=BAD,
        clusters=(ClusterRow(BAD, "unusable", BAD, rank=1, score=3, connected="False", connected_why=BAD),),
        queues=(QueueRow(BAD, "False", BAD, (BAD,), (f"{BAD}/{BAD}",)),),
        jobs=(WorkloadRow(BAD, BAD, BAD, "running", BAD),),
    )


def large(clusters: int = 1000) -> CheckStatus:
    """A list of 20 clusters, and all other clusters of the fleet."""
    rows = [
        ClusterRow(
            f"cluster-{n}", "listed" if n < 20 else "beyond" if n % 3 else "unusable", rank=n + 1, score=n
        )
        for n in range(clusters)
    ]
    return check_status("large", clusters=tuple(rows))


def graph_page(statuses: list[CheckStatus]) -> str:
    """Return the page of these checks as a file."""
    return graph_file(statuses, 20, PageSource("https://hub.example", at(0)))


# -- timelines


def at(seconds: float) -> datetime:
    return datetime(2026, 8, 1, 12, tzinfo=UTC) + timedelta(seconds=seconds)


def rebalancing() -> Timeline:
    """The recorded Story 3: cluster3 drains while a job runs there, and comes back."""
    train = {"default/train": RunningWorkload(cluster="cluster3", gpus=8)}
    return timeline_of_states(
        "demo",
        [
            RecordedState(at(0), ("cluster3",), (), {"cluster2": 30, "cluster3": 70}),
            RecordedState(at(60), ("cluster3",), (), {"cluster2": 30, "cluster3": 70}, train),
            RecordedState(
                at(120), ("cluster2", "cluster3"), ("cluster3",), {"cluster2": 80, "cluster3": 10}, train
            ),
            RecordedState(at(200), ("cluster2", "cluster3"), ("cluster3",), {"cluster2": 80, "cluster3": 10}),
            RecordedState(at(203), ("cluster2",), (), {"cluster2": 80, "cluster3": 10}),
            RecordedState(at(260), ("cluster3",), (), {"cluster3": 90}),
            RecordedState(at(300), ("cluster3",), (), {"cluster3": 90}),
        ],
    )


def busy() -> Timeline:
    """More lanes, Workloads and changes than fit; scores below zero; names and reasons that are scripts."""
    runs = tuple(WorkloadRun(f"team/{BAD}-{n}", n, at(3 * n), at(3 * n + 1)) for n in range(9))
    hostile = Lane(
        BAD,
        (
            Span("listed", at(0), at(1), begin_known=False),
            Span("draining", at(1), at(1800), end_known=False, why=BAD),
        ),
        tuple(Point(at(12 * n), (-1) ** n * 7 * n if n % 17 else None) for n in range(150)),
        runs,
    )
    more = [Lane(f"cluster-{n}", (Span("listed", at(n), at(1800)),), (Point(at(9), n),)) for n in range(45)]
    return Timeline("demo", at(0), at(1800), (hostile, *more), False, "events", (BAD,))
