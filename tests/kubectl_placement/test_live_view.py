"""A LiveStatus that follows a hub has the same statuses as a reading from scratch, after any change."""

import base64
import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kubectl_placement.cli.ui_feed import KINDS
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.ui.live_status import LiveStatus
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    EVENT,
    LABEL_MANAGED_BY,
    LOCAL_QUEUE,
    MANAGED_BY,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.list_change import ANNOTATION, ClusterChange, ListChange
from tests.support.builders import (
    an,
    check,
    condition,
    decision,
    jwt,
    kubeconfig,
    managed_cluster,
    multikueue_check,
    our_objects,
    placement,
    secret,
    workload,
)
from tests.support.driver import Object
from tests.support.kueue_objects import cluster_queue

NOW = datetime(2026, 8, 1, 13, tzinfo=UTC)
CHECKS, CLUSTERS, JOBS = 4, 14, 20


def fleet() -> Iterator[Object]:
    """Yield clusters with Secrets, checks whose Placements select ten of them each, and their jobs."""
    names = [f"cluster-{number:04}" for number in range(CLUSTERS)]
    for name in names:
        yield managed_cluster(name)
        text = kubeconfig(jwt(name, issued=datetime.now(UTC)))
        yield secret(f"multikueue-{name}", text, labels={LABEL_MANAGED_BY: MANAGED_BY})
    for number in range(CHECKS):
        ours, theirs = f"placement-{number:03}", f"multikueue-{number:03}"
        chosen = [names[(number * 5 + n) % CLUSTERS] for n in range(10)]
        yield check(ours, ours, active=condition())
        yield multikueue_check(theirs, ours)
        config, *clusters = our_objects(*chosen, of=ours, owners=(ours, theirs))
        yield config
        yield from (one | {"status": {"conditions": [condition()]}} for one in clusters)
        satisfied = ("PlacementSatisfied", "True", "AllDecisionsScheduled", "")
        yield placement(ours, 10, groups=[([f"{ours}-decision-1"], 10)], says=satisfied)
        yield decision(*((name, 100 - n) for n, name in enumerate(chosen)), of=ours)
        yield cluster_queue(f"queue-{number:03}", ours, theirs) | {"status": {"conditions": [condition()]}}
        spec = {"clusterQueue": f"queue-{number:03}"}
        yield an(LOCAL_QUEUE, "user-queue", f"team-{number}", spec=spec)
    for number in range(JOBS):
        of = number % CHECKS
        job = workload(f"job-{number}", **{f"placement-{of:03}": "Ready", f"multikueue-{of:03}": "Ready"})
        job["metadata"] |= {"namespace": f"team-{of}", "uid": f"job-{number}"}
        job["spec"]["queueName"] = "user-queue"
        job["status"]["admission"] = {"clusterQueue": f"queue-{of:03}"}
        yield job


def whole_fleet() -> HubView:
    objects = list(fleet())
    for version, obj in enumerate(objects, 1):
        obj["metadata"]["resourceVersion"] = str(version)
    dump = dump_of(objects)
    served = {kind: kind.at(kind.versions[0]) for kind in KINDS}
    all_kinds = {kind: dump.of(kind) for kind in KINDS}
    return HubView(replace(dump, objects=all_kinds, served=served, live=True), Settings(), NOW)


Change = Callable[[random.Random, Object], None]


def some_cluster(chance: random.Random) -> str:
    return f"cluster-{chance.randrange(CLUSTERS):04}"


def decide(chance: random.Random, obj: Object) -> None:
    names = chance.sample(range(CLUSTERS), chance.randrange(CLUSTERS))
    obj["status"]["decisions"] = [
        {"clusterName": f"cluster-{n:04}", "reason": "", "score": chance.randrange(100)} for n in names
    ]


def relist(chance: random.Random, obj: Object) -> None:
    listed = obj["spec"]["clusters"]
    obj["spec"]["clusters"] = chance.sample(listed, chance.randint(0, len(listed)))


def drain(chance: random.Random, obj: Object) -> None:
    leaving = [f"{name}=2026-08-01T12:00:00Z" for name in obj["spec"]["clusters"] if chance.random() < 0.3]
    annotation = "placement-ac.open-cluster-management.io/draining"
    obj["metadata"].setdefault("annotations", {})[annotation] = ",".join(leaving)


def flip_condition(_: random.Random, obj: Object) -> None:
    for one in obj["status"]["conditions"]:
        one["status"] = "False" if one["status"] == "True" else "True"


def run_job(chance: random.Random, obj: Object) -> None:
    check = f"placement-{chance.randrange(CHECKS):03}"
    obj["status"]["clusterName"] = f"{check}-{some_cluster(chance)}"
    obj["status"]["admission"]["clusterQueue"] = f"queue-{chance.randrange(CHECKS):03}"


def nominate(chance: random.Random, obj: Object) -> None:
    obj["status"].pop("clusterName", None)
    check = f"placement-{chance.randrange(CHECKS):03}"
    obj["status"]["nominatedClusterNames"] = [f"{check}-{some_cluster(chance)}"]


def finish(_: random.Random, obj: Object) -> None:
    obj["status"]["conditions"] = [{"type": "Finished", "status": "True", "reason": "x", "message": ""}]


def other_answers(chance: random.Random, obj: Object) -> None:
    for admission_check in obj["status"]["admissionChecks"]:
        admission_check["name"] = f"{admission_check['name'][:-3]}{chance.randrange(CHECKS):03}"
        admission_check["state"] = chance.choice(["Pending", "Ready"])


def other_controller(_: random.Random, obj: Object) -> None:
    name = obj["spec"]["controllerName"]
    obj["spec"]["controllerName"] = "example.com/other" if "placement" in name else name


def other_config(chance: random.Random, obj: Object) -> None:
    obj["spec"]["parameters"]["name"] = f"placement-{chance.randrange(CHECKS):03}"


def other_checks(chance: random.Random, obj: Object) -> None:
    names = [f"{kind}-{chance.randrange(CHECKS):03}" for kind in ("placement", "multikueue")]
    checks = [{"name": name} for name in names]
    obj["spec"]["admissionChecksStrategy"] = {"admissionChecks": checks}


def other_queue(chance: random.Random, obj: Object) -> None:
    obj["spec"]["clusterQueue"] = f"queue-{chance.randrange(CHECKS):03}"


def touch(_: random.Random, obj: Object) -> None:
    obj["metadata"].setdefault("annotations", {})["touched"] = "true"


def renew(chance: random.Random, obj: Object) -> None:
    """A token that lasts longer: the controller does not have to know, but the status says until when."""
    token = jwt(issued=datetime.now(UTC), hours=chance.randint(30, 900))
    obj["data"] = {"kubeconfig": base64.b64encode(kubeconfig(token)).decode()}


def spoil(_: random.Random, obj: Object) -> None:
    obj["data"] = {}


CHANGES: dict[Kind, tuple[Change, ...]] = {
    PLACEMENT_DECISION: (decide, decide),
    MULTIKUEUE_CONFIG: (relist, drain),
    MULTIKUEUE_CLUSTER: (flip_condition,),
    WORKLOAD: (run_job, nominate, finish, other_answers),
    ADMISSION_CHECK: (other_controller, other_config),
    PLACEMENT: (flip_condition,),
    CLUSTER_QUEUE: (other_checks, flip_condition),
    LOCAL_QUEUE: (other_queue,),
    SECRET: (renew, spoil),
    MANAGED_CLUSTER: (touch,),
}
KEPT = (ADMISSION_CHECK, PLACEMENT)
"""Kinds that are deleted rarely: little happens without them."""


def event(chance: random.Random, version: int) -> Object:
    about = {"kind": "AdmissionCheck", "name": f"placement-{chance.randrange(CHECKS):03}"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"e{version}", "namespace": "default", "resourceVersion": str(version)}
        | {"annotations": {ANNOTATION: ListChange("added", (ClusterChange("a", 1),)).to_json()}},
        "involvedObject": about,
        "reason": "ClusterAdded",
        "source": {"component": "placement-ac"},
        "message": "1 cluster more: a (score 1)",
        "firstTimestamp": "2026-08-01T12:30:00Z",
        "lastTimestamp": "2026-08-01T12:30:00Z",
    }


def changed(view: HubView, chance: random.Random, version: int, trash: list[Object]) -> HubView:
    """Return a reading with one object changed, deleted, or created again."""
    kind = chance.choice(list(CHANGES))
    objects = list(view.dump.of(kind))
    if chance.random() < 0.1:
        kind, objects = EVENT, [*view.dump.of(EVENT), event(chance, version)]
    elif trash and chance.random() < 0.15:
        back = trash.pop(chance.randrange(len(trash)))
        kind = next(change for change in CHANGES if change.kind == back["kind"])
        uid = f"00000000-0000-0000-0000-{version:012}"
        again = back | {"metadata": back["metadata"] | {"resourceVersion": str(version), "uid": uid}}
        objects = [*view.dump.of(kind), again]
    elif objects and chance.random() < (0.05 if kind in KEPT else 0.25):
        trash.append(objects.pop(chance.randrange(len(objects))))
    elif objects:
        place = chance.randrange(len(objects))
        now = copy.deepcopy(objects[place])
        chance.choice(CHANGES[kind])(chance, now)
        now["metadata"]["resourceVersion"] = str(version)
        objects[place] = now
    copied = {one: found[:1] + found[1:] for one, found in view.dump.objects.items()}
    return replace(view, dump=replace(view.dump, objects={**copied, kind: tuple(objects)}))


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 15), *(pytest.param(seed, 120, marks=pytest.mark.long) for seed in range(1, 5))]
)
def test_after_any_change_it_has_what_a_new_reading_has(seed: int, steps: int) -> None:
    chance = random.Random(seed)
    live, reading = LiveStatus(), whole_fleet()
    live.update(reading)
    computed, trash = 0, list[Object]()
    for step in range(steps):
        reading = changed(reading, chance, 10_000 + step, trash)
        computed += len(live.update(reading))
        expected = {check_status.name: check_status for check_status in check_statuses(replace(reading))}
        assert live.statuses == expected, step
    assert computed < steps * CHECKS * 0.8  # else it proves nothing


def test_only_what_a_change_concerns_is_computed() -> None:
    live, reading = LiveStatus(), whole_fleet()
    assert len(live.update(reading)) == CHECKS
    assert live.update(replace(reading)) == []
    decision = copy.deepcopy(reading.dump.of(PLACEMENT_DECISION)[1])
    decision["metadata"]["resourceVersion"] = "1000"
    decision["status"]["decisions"][0]["score"] = 7
    decisions = (reading.dump.of(PLACEMENT_DECISION)[0], decision, *reading.dump.of(PLACEMENT_DECISION)[2:])
    later = replace(reading, dump=reading.dump.with_objects({PLACEMENT_DECISION: decisions}))
    assert live.update(later) == ["placement-001"]
    scores = {row.name: row.score for row in live.statuses["placement-001"].clusters}
    assert scores[decision["status"]["decisions"][0]["clusterName"]] == 7


def test_old_statuses_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials expire without any change on the hub."""
    live, reading = LiveStatus(), whole_fleet()
    live.update(reading)
    monkeypatch.setattr("kubectl_placement.ui.live_status.BATCH", CHECKS - 1)
    assert live.refresh(NOW + timedelta(seconds=59)) == []
    before, later = dict(live.statuses), datetime.now(UTC) + timedelta(days=2)
    assert len(live.refresh(later)) == CHECKS - 1
    assert len(live.refresh(later)) == 1
    assert live.refresh(later) == []
    now = {check_status.name: check_status for check_status in check_statuses(replace(reading, now=later))}
    assert before != now
    assert live.statuses == now


def test_a_check_that_is_gone_is_forgotten() -> None:
    live, reading = LiveStatus(), whole_fleet()
    live.update(reading)
    rest = tuple(
        check for check in reading.dump.of(ADMISSION_CHECK) if check["metadata"]["name"] != "placement-001"
    )
    live.update(replace(reading, dump=reading.dump.with_objects({ADMISSION_CHECK: rest})))
    assert sorted(live.statuses) == ["placement-000", "placement-002", "placement-003"]
    with pytest.raises(KeyError):
        live.timeline("placement-001", NOW)
