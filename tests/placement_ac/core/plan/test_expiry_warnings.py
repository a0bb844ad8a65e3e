"""The expiry of credentials is known ahead: a warning comes in time, and the key is rechecked then."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.constants import EXPIRES_SOON
from placement_ac.core.inputs.state import EventIntent, Key, PlacementPolicy, Plan, Snapshot, WantedCluster
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.event_intents import DueEvents, expiry_warnings
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    AT_ONCE,
    NOW,
    check,
    decision,
    jwt,
    kubeconfig,
    our_objects,
    placement,
    secret,
    world,
)

HOUR = 3600.0
DAY = 24 * HOUR
WARNING = EventIntent(
    EXPIRES_SOON, "renew the credentials of cluster a in Secret s: they expire at 2026-08-01T13:00:00Z"
)


def expiring_inputs(warning: float = 7 * DAY) -> Snapshot:
    return Snapshot("p", NOW, policy=PlacementPolicy(expiry_warning=warning))


def cluster(left: float | None, life: float | None = None, name: str = "a") -> WantedCluster:
    """One whose credentials end in `left` seconds, after `life` seconds in all."""
    end = None if left is None else NOW + timedelta(seconds=left)
    begin = None if life is None or end is None else end - timedelta(seconds=life)
    return WantedCluster(f"p-{name}", name, CredentialSource("Secret", "s", end, begin), {})


@pytest.mark.parametrize(
    ("one", "ageing"),
    [
        pytest.param(cluster(None), DueEvents(), id="it never ends"),
        pytest.param(WantedCluster("p-a", "a", None, {}), DueEvents(), id="its way stays as it is"),
        pytest.param(cluster(30 * DAY), DueEvents((), 23 * DAY), id="long before"),
        pytest.param(cluster(HOUR), DueEvents((WARNING,), HOUR), id="in the admin's time"),
        pytest.param(cluster(HOUR, 365 * DAY), DueEvents((WARNING,), HOUR), id="of a long life"),
        pytest.param(cluster(20 * HOUR, DAY), DueEvents((), 63360.0), id="a token of a day that is renewed"),
        pytest.param(cluster(HOUR, DAY), DueEvents((WARNING,), HOUR), id="and that nobody renews"),
        pytest.param(cluster(HOUR, 10 * HOUR), DueEvents((WARNING,), HOUR), id="the very moment"),
        pytest.param(cluster(0.0), DueEvents((), 0.0), id="it has ended"),
        pytest.param(cluster(-HOUR), DueEvents((), 0.0), id="long ago"),
    ],
)
def test_the_time_of_a_warning_and_of_the_next_look(one: WantedCluster, ageing: DueEvents) -> None:
    assert expiry_warnings(expiring_inputs(), [one]) == ageing


def test_the_first_of_several_counts_and_each_is_reported() -> None:
    ageing = expiry_warnings(
        expiring_inputs(), [cluster(2 * HOUR), cluster(HOUR, name="b"), cluster(None), cluster(90 * DAY)]
    )
    assert ageing.requeue_after == HOUR
    assert [notice.message.split()[5] for notice in ageing.events] == ["a", "b"]


def test_an_admin_who_wants_no_warning_gets_none() -> None:
    assert expiry_warnings(expiring_inputs(warning=0.0), [cluster(HOUR)]) == DueEvents((), HOUR)


def test_an_admin_who_always_wants_a_warning_gets_one() -> None:
    assert expiry_warnings(expiring_inputs(warning=1e15), [cluster(HOUR)]) == DueEvents((WARNING,), HOUR)


def test_the_words_stay_the_same_until_it_is_renewed() -> None:
    later = replace(expiring_inputs(), now=NOW + timedelta(minutes=59))
    assert (
        expiry_warnings(later, [cluster(HOUR)]).events
        == expiry_warnings(expiring_inputs(), [cluster(HOUR)]).events
        == (WARNING,)
    )


# -- in a plan


def at(hours: float, *objects: Any) -> Snapshot:
    """The Placement on clusters a and b; the token of b ends 24 hours after NOW."""
    good, ending = secret("multikueue-a"), secret("multikueue-b", kubeconfig(jwt("b")))
    whole = world(check(), placement(), decision("a", "b"), good, ending, *objects, policy=AT_ONCE)
    return whole.snapshot(Key("placement", "p"), NOW + timedelta(hours=hours), {})


def warned(answer: Plan) -> list[str]:
    return [notice.reason for notice in answer.events if notice.reason == EXPIRES_SOON]


def test_a_plan_leads_to_the_warning_then_to_the_end_and_then_leaves_the_cluster_out() -> None:
    early, late = plan(at(0)), plan(at(22))
    assert (warned(early), early.requeue_after) == ([], pytest.approx(21.6 * HOUR))
    assert (warned(late), late.requeue_after) == ([EXPIRES_SOON], 2 * HOUR)
    ended = plan(at(24))
    assert ended.config is not None
    assert (ended.config.clusters, warned(ended)) == (("p-a",), [])
    assert ended.verdicts["check"].message.endswith(
        "left out: b (in Secret kueue-system/multikueue-b, renew the token: "
        "it expired at 2026-08-02T12:00:00Z)"
    )


def test_a_cluster_that_is_listed_leaves_after_its_token_as_after_any_lost_credentials() -> None:
    ended = plan(at(24, our_objects("a", "b")))
    assert ended.requeue_after == 2.0, "as for credentials that vanish"
