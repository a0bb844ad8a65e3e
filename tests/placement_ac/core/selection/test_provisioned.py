"""Which of many selected clusters get credentials: those that can be listed, and the next two in rank."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from placement_ac.core.inputs.state import HubFacts, PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.selection.provisioned import USABLE_WITHIN_SECONDS
from tests.support.builders import (
    PROVISIONING,
    check,
    decision,
    managed_cluster,
    our_config,
    placement,
    planned,
    provided,
    provisioned_cluster,
    secrets,
)

MANY = [f"c{at:02}" for at in range(60)]
SCORED = [(name, 100 - at) for at, name in enumerate(MANY)]


def answer_for(
    *objects: Any,
    selected: Sequence[Any] = MANY,
    given_up: Collection[str] = (),
    usable: Collection[str] = (),
    listed: Collection[str] = (),
    provisioning: Any = PROVISIONING,
    ages: Mapping[Any, float] | None = None,
    **rest: Any,
) -> Plan:
    """`usable` have our credentials; `given_up` have been unusable for too long; `listed` are listed."""
    made = [obj for name in usable for obj in provided(name)]
    config = [our_config(*(f"p-{name}" for name in listed))] if listed else []
    connected = [provisioned_cluster(name) for name in listed]
    late = {Since(SinceKind.PROVISIONED_UNUSABLE, name): USABLE_WITHIN_SECONDS for name in given_up}
    return planned(
        *(check(), placement(), decision(*selected), [managed_cluster(name) for name in MANY]),
        *(made, config, connected, *objects),
        ages=late | dict(ages or {}),
        provisioning=provisioning,
        **rest,
    )


def chosen(answer: Plan) -> list[str]:
    return sorted(answer.to_provision or ())


@pytest.mark.parametrize(
    ("most", "count", "wanted"),
    [
        pytest.param(20, 60, 22, id="60"),
        pytest.param(20, 23, 22, id="one more than get credentials"),
        pytest.param(10, 25, 12, id="25, and Kueue takes 10"),
    ],
)
def test_the_first_in_rank_and_two_more_get_credentials(most: int, count: int, wanted: int) -> None:
    answer = answer_for(selected=MANY[:count], hub=HubFacts(clusters_max=most))
    assert chosen(answer) == MANY[:wanted]
    assert answer.unusable == tuple(MANY[:wanted]), "the others need no credentials"


@pytest.mark.parametrize(
    ("count", "rest"),
    [
        pytest.param(22, {}, id="as many as get credentials"),
        pytest.param(60, {"provisioning": None}, id="without provisioning"),
    ],
)
def test_otherwise_nothing_is_chosen(count: int, rest: dict[str, Any]) -> None:
    answer = answer_for(selected=MANY[:count], **rest)
    assert (answer.to_provision, answer.unusable) == (None, tuple(MANY[:count]))
    assert not [since for since in answer.lasting if since.kind is SinceKind.PROVISIONED_UNUSABLE]


def test_the_condition_counts_the_others_as_beyond_the_limit() -> None:
    message = answer_for(usable=MANY[:22]).verdicts["check"].message
    assert message.startswith("MultiKueueConfig and MultiKueueCluster generated; 40 beyond the 20 clusters")
    assert "credentials" not in message
    assert "left out" not in message


def test_credentials_of_others_count_as_well() -> None:
    answer = answer_for(secrets(*MANY[:21]), secrets("c50"))
    assert chosen(answer) == MANY[:22]
    assert answer.config is not None
    assert answer.config.clusters == tuple(f"p-{name}" for name in MANY[:20])


@pytest.mark.parametrize(
    ("given_up", "usable", "wanted"),
    [
        pytest.param(MANY[:2], MANY[2:22], 22, id="two are lastingly unusable"),
        pytest.param(MANY[:3], MANY[3:22], 23, id="three are"),
        pytest.param(MANY[:3], [], 23, id="three are, and the others have no credentials yet"),
        pytest.param(MANY[:30], [], 50, id="thirty are"),
        pytest.param(MANY, [], 60, id="all are"),
        pytest.param(MANY[:20], MANY[:20], 22, id="that they were does not count"),
    ],
)
def test_the_lastingly_unusable_block_nobody(given_up: list[str], usable: list[str], wanted: int) -> None:
    assert chosen(answer_for(given_up=given_up, usable=usable)) == MANY[:wanted]


def test_20_usable_clusters_are_found_wherever_they_rank() -> None:
    given_up: set[str] = set()
    for _ in range(4):  # each time, those that have got credentials become usable if they are the last 20
        usable = chosen(answer_for(given_up=given_up))[40:]
        answer = answer_for(given_up=given_up, usable=usable)
        given_up |= {
            since.subject for since in answer.lasting if since.kind is SinceKind.PROVISIONED_UNUSABLE
        }
    assert answer.config is not None
    assert answer.config.clusters == tuple(f"p-{name}" for name in MANY[40:])


def test_a_listed_cluster_keeps_its_credentials_whatever_its_rank() -> None:
    listed = [*MANY[:10], *MANY[50:]]
    answer = answer_for(listed=listed, usable=listed)
    assert chosen(answer) == sorted({*MANY[:22], *MANY[50:]})
    assert answer.config is not None
    assert len(answer.config.clusters) == 20


def test_a_listed_cluster_that_is_hardly_worse_is_not_replaced_in_advance() -> None:
    slow = PlacementPolicy(retention=0.0, loss_grace=0.0, reorder_margin=10)
    listed = MANY[5:25]
    scores = [(name, 55 if name < "c05" else 50) for name in MANY]
    answer = answer_for(selected=scores, listed=listed, usable=listed, policy=slow)
    assert chosen(answer) == sorted(["c00", "c01", *listed])


def test_another_score_brings_another_cluster_in() -> None:
    better = [(name, 200 if name == "c40" else score) for name, score in SCORED]
    answer = answer_for(selected=better, listed=MANY[:20], usable=MANY[:22])
    assert chosen(answer) == [*MANY[:21], "c40"]
    assert answer.config is not None
    assert len(answer.config.clusters) == 20, "until it has credentials, nobody leaves"


def test_a_cluster_is_looked_at_again_when_it_no_longer_counts() -> None:
    waiting = Since(SinceKind.PROVISIONED_UNUSABLE, "c21")
    answer = answer_for(usable=MANY[:21], ages={waiting: USABLE_WITHIN_SECONDS - 1.0})
    assert (waiting in answer.lasting, answer.requeue_after) == (True, 1.0)
