"""Who leads by a Lease, at given times."""

from dataclasses import astuple
from datetime import UTC, datetime
from typing import Any

import pytest

from placement_ac.core.api.constants import ANNOTATION_LED_BEFORE
from placement_ac.core.leader_election import UNREADABLE, LeaderElection, LeaseDurations

DURATIONS = LeaseDurations.of(15.0)
WHEN = datetime(2026, 1, 1, 0, 0, 0, 5, UTC)
TIME = "2026-01-01T00:00:00.000005Z"
EARLIER = "2025-12-31T00:00:00.000000Z"
AFTER_SUSPEND = 1e6


def election(me: str = "me") -> LeaderElection:
    return LeaderElection(me, DURATIONS, namespace="ns", name="l", began=100)


Object = dict[str, Any]


def lease(holder: object = "other", renewed: object = EARLIER, version: str = "7", **spec: Any) -> Object:
    defaults: Object = {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": EARLIER}
    defaults |= {"renewTime": renewed, "leaseTransitions": 3}
    metadata = {"name": "l", "namespace": "ns", "uid": "u", "resourceVersion": version}
    return {"metadata": metadata | {"labels": {"a": "b"}, "managedFields": [{}]}, "spec": defaults | spec}


def leading(began: float = 100.0) -> LeaderElection:
    mine = election()
    mine.wrote(lease("me"), began)
    return mine


@pytest.mark.parametrize(
    ("seconds", "renew", "retry"),
    [(1.0, 2 / 3, 1 / 6), (6.0, 4.0, 1.0), (15.0, 10.0, 2.0), (60.0, 40.0, 2.0)],
)
def test_how_long_a_holder_leads_by_a_lease_and_how_often_it_is_read(
    seconds: float, renew: float, retry: float
) -> None:
    assert astuple(LeaseDurations.of(seconds)) == pytest.approx((seconds, renew, retry))


def claimed(mine: LeaderElection, now: float) -> Object | None:
    claim = mine.claim(now, WHEN)
    return claim and claim["spec"]


def taken(transitions: int) -> Object:
    return {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": TIME,
        "renewTime": TIME,
        "leaseTransitions": transitions,
    }


def test_a_lease_that_is_missing_is_made() -> None:
    mine = election()
    mine.saw(None, 0)
    assert mine.claim(0, WHEN) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "ns"},
        "spec": taken(0),
    }


def test_a_lease_that_is_taken_keeps_what_is_not_ours_and_is_that_very_version() -> None:
    mine = election()
    mine.saw(lease(""), 0)
    claim = mine.claim(0, WHEN)
    assert claim
    identity = {"name": "l", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    assert (claim["metadata"], claim["spec"]) == (identity | {"labels": {"a": "b"}}, taken(4))


@pytest.mark.parametrize(
    ("seen", "free_in"),
    [
        pytest.param(lease(""), 0, id="released"),
        pytest.param(lease(None), 0, id="without a holder"),
        pytest.param({"metadata": {}}, 0, id="empty"),
        pytest.param({"metadata": {}, "spec": None}, 0, id="null"),
        pytest.param(lease("me"), 0, id="ours"),
        pytest.param(lease(), 15, id="another's"),
        pytest.param(lease(leaseDurationSeconds=60), 60, id="another's, longer"),
        pytest.param(lease(leaseDurationSeconds=2147483647), 60, id="another's, for ever"),
        pytest.param(lease(leaseDurationSeconds=1), 15, id="another's, shorter"),
        pytest.param(lease(leaseDurationSeconds="60"), 15, id="a duration that is no number"),
        pytest.param(lease(leaseDurationSeconds=True), 15, id="a duration that is a truth"),
        pytest.param(lease(renewed={"a": 1}), 15, id="a time that is none"),
        pytest.param(lease({"name": "x"}), 15, id="a holder that is no text"),
        pytest.param({"metadata": {}, "spec": ["x"]}, 15, id="a spec that is none"),
    ],
)
def test_when_a_lease_is_free(seen: Object, free_in: float) -> None:
    mine = election()
    mine.saw(seen, 100)
    assert mine.free_in(100) == free_in
    assert (claimed(mine, 100) is None) is (free_in > 0)
    assert mine.free_in(100 + free_in) == 0
    assert claimed(mine, 100 + free_in) is not None


def test_an_unreadable_lease_is_held_by_nobody_known_and_is_taken_in_the_end() -> None:
    mine = election()
    mine.saw({"metadata": {"resourceVersion": "1"}, "spec": ["x"]}, 0)
    assert mine.holder == UNREADABLE
    assert claimed(mine, 15) == taken(1)


def test_the_others_time_counts_from_the_renewal_that_was_seen_and_by_no_clock_of_theirs() -> None:
    mine = election()
    mine.saw(lease(renewed="2099-01-01T00:00:00.000000Z"), 100)
    mine.saw(lease(renewed="2099-01-01T00:00:00.000000Z", version="8"), 110)
    assert mine.free_in(110) == 5, "who touched something else has not renewed it"
    mine.saw(lease(renewed="1999-01-01T00:00:00.000000Z"), 114)
    assert mine.free_in(114) == 15
    assert claimed(mine, 128.9) is None
    assert claimed(mine, 129) == taken(4)


def test_leading_ends_by_itself_and_counts_from_the_beginning_of_the_request() -> None:
    mine = leading(100)
    assert [mine.leads(now) for now in (100, 109.9, 110, AFTER_SUSPEND)] == [True, True, False, False]
    assert (mine.leads_until(), mine.ends()) == (110, 115)


def test_others_take_over_when_the_last_write_has_to_be_done() -> None:
    leader, other = leading(100), election("other")
    other.saw(lease("me"), 100)
    assert other.free_in(100) == leader.ends() - 100


def test_a_renewal_keeps_the_time_of_taking() -> None:
    kept = taken(3) | {"acquireTime": EARLIER}
    assert claimed(leading(100), 102) == kept


def test_who_woke_up_late_takes_it_anew() -> None:
    assert claimed(leading(100), 120) == taken(3)


@pytest.mark.parametrize("holder", ["other", "", {"x": 1}])
def test_who_is_not_the_holder_any_more_leads_no_more(holder: object) -> None:
    mine = leading(100)
    mine.saw(lease(holder), 101)
    assert not mine.leads(101)


def test_a_lease_that_was_deleted_is_made_anew_by_its_holder_only() -> None:
    mine, other = leading(100), election("other")
    other.saw(lease("me"), 100)
    for one in (mine, other):
        one.saw(None, 102)
    assert mine.leads(102)
    assert other.claim(114.9, WHEN) is None, "a delete does not stop the leader"
    for one, now in ((mine, 102), (other, 115)):
        claim = one.claim(now, WHEN)
        assert claim
        kept = {} if one is mine else {"annotations": {ANNOTATION_LED_BEFORE: "me"}}
        assert claim["metadata"] == {"name": "l", "namespace": "ns"} | kept


def test_a_lease_that_is_gone_holds_no_longer_than_a_leader_writes() -> None:
    mine = election()
    mine.saw(lease(leaseDurationSeconds=60), 100)
    mine.saw(None, 110)
    assert (mine.free_in(110), claimed(mine, 115)) == (5, taken(4))


@pytest.mark.parametrize(
    ("mine", "now", "says"),
    [
        pytest.param(leading(100), 119, "", id="who leads may renew"),
        pytest.param(
            leading(100), 119.1, "nobody leads: Lease ns/l is free, but cannot be taken", id="expired"
        ),
        pytest.param(election(), 119, "", id="just begun"),
    ],
)
def test_without_a_leader(mine: LeaderElection, now: float, says: str) -> None:
    assert mine.without_leader(now) == says


def test_who_holds_it_and_does_not_renew_it_is_named() -> None:
    mine = election()
    mine.saw(lease(leaseDurationSeconds=10**9), 100)
    assert mine.without_leader(119) == ""
    assert mine.without_leader(125.5) == (
        "delete Lease ns/l, or wait 35s: nobody leads, because other holds it and has not renewed it for 26s"
    )


def test_a_refused_claim_is_no_lead() -> None:
    mine = election()
    mine.saw(None, 0)
    mine.claim(0, WHEN)
    mine.wrote(lease("other"), 0)  # an answer to somebody else's request
    assert not mine.leads(0)


@pytest.mark.parametrize(
    ("change", "seen", "news"),
    [
        pytest.param("MODIFIED", lease("me", version="8"), False, id="our own renewal"),
        pytest.param("ADDED", lease("other", version="7"), False, id="what was seen"),
        pytest.param("MODIFIED", lease("other", version="8"), True, id="another's"),
        pytest.param("MODIFIED", lease("", version="8"), True, id="a release"),
        pytest.param("MODIFIED", {"metadata": {}, "spec": []}, True, id="garbage"),
        pytest.param("DELETED", lease("me", version="7"), True, id="deleted"),
        pytest.param("BOOKMARK", {"metadata": {"resourceVersion": "9"}}, False, id="a bookmark"),
    ],
)
def test_which_watch_events_of_the_lease_are_news(change: str, seen: Object, news: bool) -> None:
    assert leading(100).is_news(change, seen) is news


def test_everything_is_news_before_the_first_look() -> None:
    assert election().is_news("ADDED", lease("me"))


def test_giving_up() -> None:
    mine = leading(100)
    mine.stop_leading()
    assert not mine.leads(100)
    released = mine.release(WHEN)
    assert released
    assert (released["metadata"]["resourceVersion"], released["spec"]) == (
        "7",
        {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": EARLIER,
            "renewTime": TIME,
            "leaseTransitions": 3,
        },
    )


@pytest.mark.parametrize("seen", [None, lease("other")])
def test_who_does_not_hold_it_gives_nothing_up(seen: Object | None) -> None:
    mine = leading(100)
    mine.saw(seen, 101)
    assert mine.release(WHEN) is None


def led_before(lease: Object | None) -> str:
    return str(((lease or {})["metadata"].get("annotations") or {}).get(ANNOTATION_LED_BEFORE, ""))


def test_who_led_before_is_known_after_a_takeover_a_release_and_a_renewal() -> None:
    mine, successor = leading(), election("successor")
    released = mine.release(WHEN)
    assert led_before(released) == "me"
    successor.saw(released, 200)
    taken_over = successor.claim(200, WHEN)
    assert led_before(taken_over) == "me"
    successor.wrote(taken_over or {}, 200)
    assert led_before(successor.claim(201, WHEN)) == "me"
    late = election("late")
    late.saw(taken_over, 300)
    assert led_before(late.claim(400, WHEN)) == "successor"
