"""Where a job runs whose worker was lost and came back, and whether it ran twice, in each command's words."""

from typing import Any

import pytest

from kubectl_placement.cli.job_texts import headline
from kubectl_placement.explain.workload import explain_workload
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.queues import workload_rows
from kubectl_placement.status.taken_up import Copies, ran_twice, taken_up
from kubectl_placement.story.lines import Wanted, job_lines
from kubectl_placement.story.tell import tell_story
from placement_ac.config.settings import Settings
from placement_ac.core.api.decode import workload
from placement_ac.core.inputs.state import WorkerCopies
from tests.kubectl_placement.test_story import CHECKS, QUEUES, QUOTA, condition, entry, event, job
from tests.support.builders import NOW, Raw, our_cluster

FIRST, LOST_AT, PLACED, BACK = (f"2026-08-01T11:{minute}:00Z" for minute in (30, 40, 41, 50))
KEY = "team", "job-train"
LOST = "Admitting remote {}, Previously: x"
MESSAGE = f'Previously: Evicted due to AdmissionCheck in Retry state: "mk" ({LOST})'


def cluster(name: str, since: str = FIRST, status: str = "True", of: str = "p") -> Raw:
    """A MultiKueueCluster, connected or not since then."""
    active = condition("Active", status, "Active", "", since)
    return our_cluster(name, of) | {"status": {"conditions": [active]}}


def sent_again(*more: Raw, evicted: str = "lost", here: str = "p-cluster4", **status: Any) -> Raw:
    """Kueue has sent it to cluster4, as its worker was lost."""
    conditions = (
        condition("QuotaReserved", when=PLACED),
        condition("Admitted", when=PLACED),
        condition("Evicted", "False", "QuotaReserved", MESSAGE.format(evicted), PLACED),
    )
    checks = (
        entry("check", "Ready", "", PLACED),
        entry("mk", "Ready", 'The workload was admitted on "p-cluster4"', PLACED),
    )
    return job("train", *conditions, *more, checks=checks, clusterName=here, **status)


def admitted_on(name: str, when: str, **rest: Any) -> Raw:
    """Kueue's event on it; the last time is that of a repetition."""
    said = f'The workload was admitted on "p-{name}"'
    posted = event("MultiKueue", said, when, sent_again(), "kueue-workload-controller", **rest)
    return posted | {"metadata": posted["metadata"] | {"name": f"{name} {when}"}}


ON_2 = admitted_on("cluster2", FIRST)
ON_4 = admitted_on("cluster4", PLACED)
HERE = cluster("cluster4")
TWO_IS_BACK = HERE, cluster("cluster2", BACK), cluster("cluster3")
BECAUSE = (
    "it was sent again because its cluster was lost, {} is connected again since {}, and Kueue keeps the"
    " older copy"
)
ON_2_PROBABLY = "probably runs on cluster2, not on cluster4 as Kueue's record says: " + BECAUSE.format(
    "cluster2", BACK
)
TWICE = (
    "It probably ran twice for a time: on cluster2, which Kueue had lost, and on cluster4 from"
    f" {PLACED} until {BACK}, when Kueue was connected again and kept the older copy"
)
PERHAPS = "Perhaps it ran twice: {} may have gone on with its copy, beside the one on cluster4"


def copies(**quota: bool | None) -> Copies:
    """The answers of workers: whether the copy there has quota; None: the worker does not answer."""
    return {
        f"p-{name}": WorkerCopies(problem="no answer")
        if has is None
        else WorkerCopies({KEY: True} if has else {})
        for name, has in quota.items()
    }


def row(situation: str, objects: tuple[Raw, ...], where: str, twice: str, **rest: Any) -> Any:
    return pytest.param(
        objects, rest.get("raw", sent_again()), rest.get("asked", {}), where, twice, id=situation
    )


@pytest.mark.parametrize(
    ("objects", "raw", "asked", "where", "twice"),
    [
        row("an event names the lost one, which is back", (*TWO_IS_BACK, ON_2, ON_4), ON_2_PROBABLY, TWICE),
        row(
            "another one flaps, and events name the lost one",
            (HERE, cluster("cluster2", LOST_AT, "False"), cluster("cluster3", BACK), ON_2),
            "",
            PERHAPS.format("cluster2"),
        ),
        row(
            "it was back before the job was placed again",
            (HERE, cluster("cluster2", LOST_AT), ON_2),
            "",
            PERHAPS.format("cluster2"),
        ),
        row("no event is kept, and one alone is back", TWO_IS_BACK, ON_2_PROBABLY, TWICE),
        row(
            "no event is kept, and two are back",
            (HERE, cluster("cluster2", BACK), cluster("cluster3", BACK)),
            "probably runs on cluster2 or cluster3, not on cluster4 as Kueue's record says: "
            + BECAUSE.format("cluster2 or cluster3", BACK),
            TWICE.replace("on cluster2", "on cluster2 or cluster3"),
        ),
        row(
            "no event is kept, and one is away",
            (HERE, cluster("cluster2", BACK), cluster("cluster3", LOST_AT, "False")),
            "",
            PERHAPS.format("the lost cluster"),
        ),
        row(
            "a cluster of another Placement is back",
            (HERE, cluster("cluster2", BACK, of="q")),
            "",
            PERHAPS.format("the lost cluster"),
        ),
        row(
            "it was evicted for another reason", (*TWO_IS_BACK, ON_2), "", "", raw=sent_again(evicted="gone")
        ),
        row(
            "it runs where it was first",
            TWO_IS_BACK,
            "",
            "",
            raw=job("train", QUOTA, clusterName="p-cluster4"),
        ),
        row(
            "it has finished since",
            (*TWO_IS_BACK, ON_2),
            "",
            TWICE,
            raw=sent_again(condition("Finished", when="2026-08-01T11:55:00Z")),
        ),
        row(
            "it had finished before the other came back",
            (*TWO_IS_BACK, ON_2),
            "",
            PERHAPS.format("cluster2"),
            raw=sent_again(condition("Finished", when="2026-08-01T11:45:00Z")),
        ),
        row(
            "the workers say so",
            TWO_IS_BACK,
            "runs on cluster2, not on cluster4 as Kueue's record says: its copy on cluster2 has quota, and"
            " cluster4 has none",
            TWICE,
            asked=copies(cluster2=True, cluster3=False, cluster4=False),
        ),
        row(
            "the workers say that the record is right",
            (*TWO_IS_BACK, ON_2),
            "",
            "Perhaps it ran twice: cluster2 had a copy, too; now the one on cluster4 alone is seen",
            asked=copies(cluster2=False, cluster3=False, cluster4=True),
        ),
        row(
            "two copies have quota",
            TWO_IS_BACK,
            "",
            "It runs 2 times now: its copies on cluster2 and cluster4 have quota",
            asked=copies(cluster2=True, cluster4=True),
        ),
        row("the lost one does not answer", TWO_IS_BACK, ON_2_PROBABLY, TWICE, asked=copies(cluster2=None)),
        row(
            "a copy that nobody has recorded",
            TWO_IS_BACK,
            "runs on cluster3, not on cluster4 as Kueue's record says: its copy on cluster3 has quota, and"
            " cluster4 has none",
            "",
            raw=job("train", QUOTA, clusterName="p-cluster4"),
            asked=copies(cluster3=True, cluster4=False),
        ),
    ],
)
def test_where_it_runs_and_whether_it_ran_twice(
    objects: tuple[Raw, ...], raw: Raw, asked: Copies, where: str, twice: str
) -> None:
    view = view_of(raw, *objects)
    taken = taken_up(view, raw, asked)
    assert (taken.sentence if taken else "", ran_twice(view, raw, asked)) == (where, twice)


def view_of(*objects: Raw) -> HubView:
    return HubView(dump_of([*objects, *QUEUES, *CHECKS]), Settings(), NOW)


def test_every_command_says_so() -> None:
    raw = sent_again()
    view = view_of(raw, *TWO_IS_BACK, ON_2, ON_4)
    story = tell_story(view, raw)
    assert headline(story.job, NOW) == f"Job team/train: running on cluster4 for 19m; it {ON_2_PROBABLY}"
    assert story.notes == (TWICE,)
    [line] = job_lines(view, Wanted(cluster="cluster2"))
    assert (line.cluster, line.elsewhere) == ("cluster4", ("cluster2",))
    assert f"it {ON_2_PROBABLY}" in explain_workload(view, raw).notes
    [status] = workload_rows(view, [workload(raw)], view.managed_cluster_of)
    assert status.elsewhere == ON_2_PROBABLY


def test_a_story_keeps_every_placement() -> None:
    """Kueue repeats its event at each sync: its first time is that of the placement."""
    raw = sent_again()
    again = {"firstTimestamp": FIRST, "count": 7}
    on_4_again = admitted_on("cluster4", "2026-08-01T11:45:00Z")
    view = view_of(raw, *TWO_IS_BACK, admitted_on("cluster2", LOST_AT, **again), ON_4, on_4_again)
    steps = tell_story(view, raw).steps
    placed = [(f"{step.time:%H:%M}", step.detail) for step in steps if step.what == "Placed"]
    assert placed == [("11:30", "on cluster2"), ("11:41", "on cluster4")]
