"""Whose is an object on a worker: for each kind, as each release of Kueue writes it."""

from typing import Any

import pytest

from placement_ac.core.api.copy_owner import CopyOwner, copy_owner, pod_group

ORIGIN = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
NAMED = {"kueue.x-k8s.io/prebuilt-workload-name": "job-train-5c0de"}
BEFORE = {"kueue.x-k8s.io/prebuilt-workload-name": "job-train-01d"}
UID = {"kueue.x-k8s.io/multikueue-origin-uid": "uid-1"}
GROUP = {"kueue.x-k8s.io/pod-group-name": "group"}

SENT = [
    pytest.param(ORIGIN | NAMED, {}, id="a job, or a Pod, until 0.17"),
    pytest.param(ORIGIN, NAMED, id="a job, or a Pod, from 0.18 on; with a long name, earlier"),
    pytest.param(ORIGIN | BEFORE, NAMED, id="an elastic job that 0.17 has created and 0.18 scaled"),
    pytest.param(ORIGIN | NAMED, UID, id="a StatefulSet, until 0.17"),
    pytest.param(ORIGIN, NAMED | UID, id="a StatefulSet, from 0.18 on"),
    pytest.param(ORIGIN, UID, id="a LeaderWorkerSet"),
    pytest.param({}, NAMED | GROUP, id="a Pod that a StatefulSet or a LeaderWorkerSet has created there"),
]


def made(labels: dict[str, Any], annotations: dict[str, Any] | None) -> dict[str, Any]:
    return {"metadata": {"name": "train", "labels": labels, "annotations": annotations}}


@pytest.mark.parametrize(("labels", "annotations"), SENT)
def test_the_hubs_own(labels: dict[str, str], annotations: dict[str, str]) -> None:
    owner = copy_owner(made(labels, annotations))
    assert (owner.is_sent, owner.is_of("job-train-5c0de", "uid-1")) == (True, True)
    assert not owner.is_of("job-train-other", "uid-2"), "not of a job of that name, made again on the hub"


@pytest.mark.parametrize(
    ("labels", "annotations", "is_of"),
    [
        pytest.param({}, {}, False, id="somebody else's"),
        pytest.param({"kueue.x-k8s.io/queue-name": "q"}, {}, False, id="a job of the worker's own Kueue"),
        pytest.param(ORIGIN, {}, True, id="by its origin alone"),
        pytest.param({"kueue.x-k8s.io/multikueue-origin": 1}, None, False, id="of a server of another kind"),
    ],
)
def test_others(labels: dict[str, Any], annotations: dict[str, Any] | None, is_of: bool) -> None:
    owner = copy_owner(made(labels, annotations))
    assert (owner.is_sent, owner.is_of("job-train-5c0de", "uid-1")) == (is_of, is_of)


def test_the_origin_and_an_unknown_uid() -> None:
    owner = copy_owner(made(ORIGIN, UID))
    assert owner == CopyOwner("multikueue", "", "uid-1")
    assert owner.is_of("lws-train-0"), "the caller does not know the uid"


@pytest.mark.parametrize(
    ("labels", "annotations", "group"),
    [({}, GROUP, "group"), (GROUP, {}, "group"), (BEFORE, NAMED, "")],
    ids=["from 0.18 on", "until 0.17", "in none"],
)
def test_the_group_of_a_pod(labels: dict[str, str], annotations: dict[str, str], group: str) -> None:
    assert pod_group(made(labels, annotations)) == group
