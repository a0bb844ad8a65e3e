"""The tree AdmissionCheck → Placement → clusters, as `status` and `graph` show it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kubectl_placement.hub.dump import Dump, MissingRight
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.readers.manifests import metadata_problem
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import (
    CheckStatus,
    ClusterRow,
    Credential,
    ListWrites,
    QueueRow,
    WorkloadRow,
)
from kubectl_placement.status.queues import gpus_of
from placement_ac.cli.documents import plain
from placement_ac.config.settings import Settings
from placement_ac.core.api import constants
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE, Kind
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from tests.kubectl_placement.malformed import paths, with_value
from tests.support.builders import (
    NOW,
    Raw,
    an,
    check,
    check_with,
    condition,
    decision,
    foreign_config,
    jwt,
    kubeconfig,
    multikueue_check,
    our_objects,
    placement,
    secret,
    secrets,
    unreadable,
)


def queue(name: str, *checks: str, strategy: bool = False, active: Raw | None = None) -> Raw:
    """A ClusterQueue that lists these checks, in one of Kueue's two ways."""
    spec: Raw = {"admissionChecks": list(checks)}
    if strategy:
        spec = {"admissionChecksStrategy": {"admissionChecks": [{"name": one} for one in checks]}}
    status: Raw = {"pendingWorkloads": 2, "admittedWorkloads": 1, "conditions": [active] if active else []}
    return an(CLUSTER_QUEUE, name, spec=spec, status=status)


def local_queue(name: str, of: str, namespace: str = "team") -> Raw:
    return an(LOCAL_QUEUE, name, namespace, spec={"clusterQueue": of})


def workload(name: str, *carries: str, on: str = "", nominated: tuple[str, ...] = (), gpus: int = 0) -> Raw:
    status: Raw = {"admissionChecks": [{"name": carry, "state": "Ready", "message": ""} for carry in carries]}
    status |= {"clusterName": on} if on else {"nominatedClusterNames": list(nominated)}
    container = {"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    pods = {"count": 2, "template": {"spec": {"containers": [container]}}}
    return an(constants.WORKLOAD, name, "team", spec={"queueName": "queue", "podSets": [pods]}, status=status)


def view(*objects: Raw | list[Raw], live: bool = True, without: tuple[Kind, ...] = ()) -> HubView:
    """A hub that holds these objects; what is in `without` may not be listed."""
    flat = [one for part in objects for one in (part if isinstance(part, list) else [part])]
    dump = dump_of(flat)
    if live:
        known = {kind: dump.of(kind) for kind in (*WATCHED_KINDS, CLUSTER_QUEUE, LOCAL_QUEUE)}
        missing = tuple(MissingRight("list", kind) for kind in without)
        objects_ = known | dict.fromkeys(without, ())
        dump = Dump(objects_, dump.served, missing, live=True)
    return HubView(dump, Settings(), NOW)


def only(seen: HubView) -> CheckStatus:
    (found,) = check_statuses(seen)
    return found


def states(found: CheckStatus) -> list[tuple[str, str, str]]:
    return [(row.name, row.state, row.why) for row in found.clusters]


CONNECTED = {"type": "Active", "status": "True", "reason": "Active", "message": "Connected"}
LOST = {"type": "Active", "status": "False", "reason": "ClientConnectionFailed", "message": "no route"}


def test_all_that_hangs_on_a_check() -> None:
    config, one, two = our_objects("a", "b")
    mine = only(
        view(
            check(active=condition(message="all is well")),
            multikueue_check(),
            placement(selected=2),
            decision(("b", 30), ("a", 70)),
            secrets("a", "b"),
            [config, one | {"status": {"conditions": [CONNECTED]}}],
            two | {"status": {"conditions": [LOST]}},
            queue("gpus", "check", "mk", active=condition(message="can admit")),
            queue("other", "else"),
            queue("idle", "mk", strategy=True, active=condition("False", "AdmissionCheckInactive", "not so")),
            local_queue("queue", "gpus"),
            local_queue("queue", "other", "elsewhere"),
            workload("one", "check", "mk", on="p-a", gpus=4),
            workload("two", "check", "mk", nominated=("p-a", "p-b")),
            workload("three", "mk"),
            workload("not-ours", "else", on="p-a"),
        )
    )
    secret_of = {cluster: Credential("Secret", f"multikueue-{cluster}") for cluster in "ab"}
    queues = [("gpus", "True", "", ("check", "mk"), ("team/queue",))]
    queues += [("idle", "False", "AdmissionCheckInactive: not so", ("mk",), ())]  # type: ignore[list-item]
    assert mine == CheckStatus(
        name="check",
        active="True",
        reason="Active",
        message="all is well",
        stale=False,
        placement="kueue-system/p",
        placement_exists=True,
        placement_says="",
        config="p",
        clusters=(
            ClusterRow("a", "listed", "", 1, 70, 0, "p-a", secret_of["a"], "True", running=1, waiting=1),
            ClusterRow(
                "b", "listed", "", 2, 30, 0, "p-b", secret_of["b"], "False",
                "ClientConnectionFailed: no route", waiting=1,
            ),
        ),
        queues=tuple(QueueRow(*row, pending=2, admitted=1) for row in queues),  # type: ignore[arg-type]
        users=("mk",),
        jobs=(
            WorkloadRow("team", "one", "queue", "running", "a", gpus=8),
            WorkloadRow("team", "three", "queue", "pending"),
            WorkloadRow("team", "two", "queue", "waiting", nominated=("a", "b")),
        ),
        list_writes=ListWrites(last_hour=None, total=0, since=None, workloads=3, clusters=2, requests=6),
    )  # fmt: skip


def test_a_job_that_kueue_sends_again_says_what_to_compare() -> None:
    evicted = 'Previously: … (Remote workload on worker cluster "p-b" is out of sync with its user job, …)'
    again, moved = workload("one", "check", nominated=("p-a",)), workload("two", "check", on="p-a")
    for job in (again, moved):
        condition = {"type": "Evicted", "status": "False", "message": evicted}
        job["status"]["conditions"] = [*job["status"].get("conditions", ()), condition]
    status = only(view(check("check", "p"), LISTED, again, moved))
    expected = (
        "compare the Job on b with the hub's: its copy there ended out of sync with it, because something on"
        " that worker changes or deletes Jobs, such as a webhook; Kueue sends it again"
    )
    assert {row.name: row.failure for row in status.jobs} == {"one": expected, "two": ""}


NO_SECRET = "create Secret kueue-system/multikueue-{0} with key kubeconfig: {0} has no credentials"


HELD = (
    "1 of 1 cluster would go at once though the Placement was not changed: held for 5 min, or until the"
    " Placement is changed"
)


def fleet(*clusters: str) -> list[Raw]:
    """The ManagedClusters, each with a good Secret."""
    return [*(an(constants.MANAGED_CLUSTER, cluster) for cluster in clusters), *secrets(*clusters)]


MANY = [f"c{index:02}" for index in range(21)]
LISTED = [placement(selected=1), decision("a"), *fleet("a", "b"), *our_objects("a", "b")]


@pytest.mark.parametrize(
    ("objects", "wanted"),
    [
        pytest.param(
            [placement(selected=2), decision("a", "b"), *secrets("a", "b"), *our_objects("a")],
            [("a", "listed", ""), ("b", "selected", "it is not on Kueue's list yet")],
            id="selected, not yet listed",
        ),
        pytest.param(
            [placement(selected=2), decision("a", "b"), *secrets("a"), *our_objects("a")],
            [("a", "listed", ""), ("b", "unusable", NO_SECRET.format("b"))],
            id="without credentials",
        ),
        pytest.param(
            [placement(selected=2), decision("a", "b"), *secrets("a"), *our_objects("a", "b")],
            [("a", "listed", ""), ("b", "draining", NO_SECRET.format("b"))],
            id="listed, but its credentials have gone",
        ),
        pytest.param(
            [*LISTED, workload("job", "check", on="p-b")],
            [("a", "listed", ""), ("b", "draining", "OCM no longer selects it; Workloads run there")],
            id="not selected any more, while a job runs there",
        ),
        pytest.param(
            [placement(selected=21), decision(*MANY), *secrets(*MANY), *our_objects(*MANY[:20])],
            [
                *((cluster, "listed", "") for cluster in MANY[:20]),
                (MANY[20], "beyond", "beyond the 20 clusters that Kueue takes"),
            ],
            id="one too many",
        ),
        pytest.param(
            [
                placement(selected=20), decision(*MANY[1:]), *fleet(*MANY), *our_objects(*MANY[:20]),
                workload("job", "check", on="p-c00"),
            ],
            [
                *((cluster, "listed", "") for cluster in MANY[1:20]),
                (MANY[20], "waiting", "it waits for the slot of a cluster that is draining"),
                ("c00", "draining", "OCM no longer selects it; Workloads run there"),
            ],
            id="one that waits for a slot",
        ),
        pytest.param([placement(selected=0)], [], id="nothing selected"),
        pytest.param(
            [*fleet("a"), *our_objects("a")],
            [("a", "listed", "the list stays as it is: PlacementNotFound")],
            id="its Placement has gone",
        ),
        pytest.param(
            [placement(), *fleet("a"), *our_objects("a")],
            [("a", "listed", "the list stays as it is: NoDecision")],
            id="listed, but nothing is decided any more",
        ),
        pytest.param(
            [placement(selected=0), *fleet("a"), *our_objects("a")],
            [("a", "draining", f"OCM no longer selects it; {HELD}")],
            id="a loss of all that is held",
        ),
        pytest.param([placement(), unreadable()], [], id="a decision that cannot be read"),
        pytest.param(
            [placement(selected=1), decision("a"), *secrets("a"), foreign_config("p", "by-hand")],
            [
                ("a", "selected", "the list stays as it is: NameTaken"),
                ("by-hand", "listed", "the list stays as it is: NameTaken"),
            ],
            id="somebody else's list",
        ),
        pytest.param(
            [placement(selected=1), decision("a"), *fleet("a"), *our_objects("a", "b")],
            [("a", "listed", ""), ("b", "draining", "the ManagedCluster no longer exists")],
            id="one that is gone",
        ),
    ],
)  # fmt: skip
def test_the_state_of_each_cluster_and_its_reason(
    objects: list[Raw], wanted: list[tuple[str, str, str]]
) -> None:
    assert states(only(view(check(), objects))) == wanted


def test_the_order_is_the_placements_and_a_draining_one_comes_last() -> None:
    found = only(
        view(check(), placement(selected=2), decision(("a", 1), ("c", 9)), our_objects("a", "b", "c"))
    )
    ranks = [(row.name, row.rank, row.score, row.group, row.draining_since) for row in found.clusters]
    assert ranks == [("c", 1, 9, 0, None), ("a", 2, 1, 0, None), ("b", None, None, None, None)]


def test_since_when_a_cluster_drains() -> None:
    config, *clusters = our_objects("a", "b")
    config["metadata"]["annotations"] = {constants.ANNOTATION_DRAINING: f"p-b={NOW.isoformat()}"}
    found = only(view(check(), placement(selected=1), decision("a"), secrets("a", "b"), config, clusters))
    assert [row.draining_since for row in found.clusters] == [None, NOW]


BAD = condition("False", "BadParameters", "spec.parameters is missing", observedGeneration=0)


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        pytest.param(check_with(None), ("Unknown", "", False, "", ""), id="no parameters, no condition"),
        pytest.param(
            check_with("nonsense", active=BAD),
            ("False", "BadParameters", True, "", ""),
            id="nonsense, of an older generation",
        ),
        pytest.param(
            check(active=condition("False", "PlacementNotFound")),
            ("False", "PlacementNotFound", False, "p", "it does not exist in namespace kueue-system"),
            id="no Placement",
        ),
    ],
)
def test_a_check_that_leads_nowhere(raw: Raw, wanted: tuple[Any, ...]) -> None:
    found = only(view(raw, queue("gpus", "check"), workload("job", "check")))
    assert (found.active, found.reason, found.stale, found.placement, found.placement_says) == wanted
    assert (found.config, found.clusters, found.users) == ("", (), ())
    assert [one.name for one in found.queues] == ["gpus"]
    assert [job.name for job in found.jobs] == ["job"]


def test_an_unsatisfied_placement_gives_its_reason() -> None:
    says = ("PlacementSatisfied", "False", "NoIntersection", "no set in common")
    found = only(view(check(), placement(selected=0, says=says)))
    assert found.placement_says == "NoIntersection: no set in common"


NO_RIGHT = "unknown: no right to list"
ROW = ClusterRow("a", "listed", "", 1, None, 0, "p-a", Credential("Secret", "multikueue-a"))


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        pytest.param(view(*LISTED, check(), our_objects("a")), ROW, id="all is known"),
        pytest.param(
            view(*LISTED, check(), our_objects("a"), without=(constants.SECRET,)),
            replace(ROW, credential=Credential("Secret", "multikueue-a", None, f"{NO_RIGHT} secrets", False)),
            id="no right to Secrets",
        ),
        pytest.param(
            view(*LISTED, check(), our_objects("a"), without=(constants.WORKLOAD,)),
            replace(ROW, running=None, waiting=None),
            id="no right to Workloads",
        ),
        pytest.param(
            view(check(), our_objects("a"), without=(constants.PLACEMENT_DECISION,)),
            replace(
                ROW, rank=None, score=None, group=None,
                credential=Credential(problem=NO_SECRET.format("a")),
                why=f"{NO_RIGHT} placementdecisions.cluster.open-cluster-management.io",
            ),
            id="no right to decisions",
        ),
        pytest.param(
            view(*LISTED[:2], check(), our_objects("a"), live=False),
            replace(
                ROW, running=None, waiting=None,
                credential=replace(
                    ROW.credential, problem="unknown: the dump holds no secrets", known=False
                ),
            ),
            id="a dump without Secrets and Workloads",
        ),
        pytest.param(
            view(*LISTED, check(), without=(constants.MULTIKUEUE_CONFIG, constants.MULTIKUEUE_CLUSTER)),
            replace(
                ROW, state="selected", why=f"{NO_RIGHT} multikueueconfigs.kueue.x-k8s.io",
            ),
            id="no right to what the controller makes",
        ),
    ],
)  # fmt: skip
def test_fields_without_rights_or_data_are_unknown(seen: HubView, wanted: ClusterRow) -> None:
    assert only(seen).clusters == (wanted,)


def test_objects_that_may_not_be_listed_may_be_there() -> None:
    hidden = (constants.MULTIKUEUE_CONFIG, constants.PLACEMENT_SCORE, LOCAL_QUEUE)
    asks = placement(selected=1, weights={"usage/gpu": 1})
    found = only(view(*LISTED, asks, check(), queue("q", "check"), without=hidden))
    (row,), (one,) = found.clusters, found.queues
    assert (found.config, row.score, one.local_queues) == (None, None, None)
    assert {found.config for found in check_statuses(view(check()))} == {""}


@pytest.mark.parametrize(
    ("garbage", "step"),
    [
        (None, 3),
        *(pytest.param(one, 1, marks=pytest.mark.long) for one in (None, "x", 5, [1], [{}], {"x": 1})),
    ],
    ids=repr,
)
def test_no_malformed_field_is_too_much(garbage: Any, step: int) -> None:
    """Of the fields of each object, every so-manieth is such."""
    config, *objects = our_objects("a", "b")
    items = [
        *(check(active=condition()), multikueue_check(), placement(selected=1), decision(("a", 7))),
        *(config, *objects, *secrets("a", "b"), queue("q", "check", active=LOST), local_queue("l", "q")),
        workload("job", "check", on="p-b", gpus=1),
    ]
    for place, item in enumerate(items):
        for path in [*paths(item)][place % step :: step]:
            if path[-1] in ("apiVersion", "kind", "name", "namespace"):
                continue
            broken = with_value(item, path, garbage)
            if not metadata_problem(broken):
                seen = [*items[:place], broken, *items[place + 1 :]]
                plain(check_statuses(HubView(dump_of(seen), Settings(), NOW)))


def test_names_choose_among_the_checks_of_ours() -> None:
    seen = view(check("one"), check("two"), check("three"), multikueue_check())
    assert [check_status.name for check_status in check_statuses(seen)] == ["one", "three", "two"]
    assert [check_status.name for check_status in check_statuses(seen, ("two", "mk", "none"))] == ["two"]


def test_never_fewer_are_admitted_than_run() -> None:
    placed = [workload(f"w{number}", "p", on="p-a") for number in range(3)]
    for one in placed:
        one["status"]["admission"] = {"clusterQueue": "queue"}
    placed[0]["status"]["conditions"] = [{"type": "Finished", "status": "True"}]
    seen = view(check("p", "p"), placement("p"), queue("queue", "p"), queue("other", "p"), placed)
    assert [(one.name, one.admitted) for one in only(seen).queues] == [("other", 1), ("queue", 2)]


@pytest.mark.parametrize(
    ("container", "wanted"),
    [
        pytest.param({"resources": {"requests": {"nvidia.com/gpu": "2", "cpu": "8"}}}, 6, id="requests"),
        pytest.param({"resources": {"limits": {"amd.com/gpu": 1}}}, 3, id="limits alone"),
        pytest.param(
            {"resources": {"limits": {"nvidia.com/gpu": 4}, "requests": {"nvidia.com/gpu": 2}}}, 6, id="both"
        ),
        pytest.param({"resources": {"requests": {"nvidia.com/gpu": "some"}}}, 0, id="no quantity"),
        pytest.param({"resources": []}, 0, id="no resources"),
        pytest.param("nonsense", 0, id="nonsense"),
    ],
)
def test_gpus(container: object, wanted: int) -> None:
    pods = {"count": 3, "template": {"spec": {"containers": [container]}}}
    assert gpus_of({"spec": {"podSets": [pods, "nonsense"]}}) == wanted


def test_the_expiry_of_a_secret_is_shown() -> None:
    ending = secret("multikueue-a", kubeconfig(jwt(hours=24)))
    found = only(view(check(), placement(selected=1), decision("a"), ending))
    assert found.clusters[0].credential == Credential("Secret", "multikueue-a", NOW + timedelta(days=1))


def test_a_second_name_of_a_worker_is_left_out_as_the_annotation_records_it() -> None:
    config, *rest = our_objects("a")
    config["metadata"]["annotations"] = {constants.ANNOTATION_SECOND_NAMES: "b=a"}
    hub = [check(), placement(), decision("a", "b"), *secrets("a", "b"), config, *rest]
    rows = {row.name: row for row in only(view(*hub)).clusters}
    assert (rows["a"].state, rows["b"].state) == ("listed", "unusable")
    assert rows["b"].why.startswith(
        "remove ManagedCluster b, or do not select it: it leads to the same worker as a"
    )
