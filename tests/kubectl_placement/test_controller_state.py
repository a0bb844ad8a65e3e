"""Who leads, by the Lease and the Deployment of a hub."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubectl_placement.hub.controller_state import ControllerState, controller_state
from kubectl_placement.hub.dump import Dump, MissingRight
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import ALL_KINDS
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import DEPLOYMENT, LEASE
from tests.support.builders import Raw, an

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
SINCE = NOW - timedelta(hours=2)
NAME = "kueue-system/placement-ac"
LEADS = ControllerState(True, "one", SINCE, NOW, NAME, "")


def lease(*, renewed: datetime | None = NOW, **spec: Any) -> Raw:
    times = {"acquireTime": SINCE.isoformat(), "renewTime": renewed.isoformat() if renewed else None}
    whole = {"holderIdentity": "one", "leaseDurationSeconds": 15} | times | spec
    return an(LEASE, "placement-ac", "kueue-system", spec=whole)


def deployment(ready: int) -> Raw:
    labels = {"app.kubernetes.io/name": "placement-ac"}
    found = an(DEPLOYMENT, "placement-ac", "ours", status={"readyReplicas": ready})
    return found | {"metadata": found["metadata"] | {"labels": labels}}


def state(
    *objects: Raw, live: bool = True, missing: tuple[MissingRight, ...] = (), **settings: Any
) -> object:
    dump = dump_of(objects)
    if live:
        dump = replace(
            dump, objects=dict.fromkeys(ALL_KINDS, ()) | dict(dump.objects), missing=missing, live=True
        )
    return controller_state(HubView(dump, Settings(**settings), NOW))


OLD = NOW - timedelta(seconds=76)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(state(lease()), LEADS, id="it leads"),
        pytest.param(
            state(lease(leaseTransitions=4)), replace(LEADS, transitions=4), id="others have led before"
        ),
        pytest.param(
            state(lease(), deployment(2)),
            replace(LEADS, deployment="ours/placement-ac"),
            id="of a Deployment",
        ),
        pytest.param(
            state(lease(renewed=NOW - timedelta(seconds=74))),
            replace(LEADS, renewed=NOW - timedelta(seconds=74)),
            id="clocks differ",
        ),
        pytest.param(
            state(lease(renewed=OLD)), replace(LEADS, running=False, renewed=OLD), id="it was not renewed"
        ),
        pytest.param(
            state(lease(holderIdentity="")), replace(LEADS, running=False, leader=""), id="it was released"
        ),
        pytest.param(
            state(lease(renewed=None)), replace(LEADS, running=False, renewed=None), id="it was never renewed"
        ),
        pytest.param(state(), ControllerState(False, "", None, None, NAME, ""), id="there is no Lease"),
        pytest.param(
            state(lease(renewed=OLD), live=False), replace(LEADS, renewed=OLD), id="a dump is of its time"
        ),
        pytest.param(
            state(live=False),
            ControllerState(None, "", None, None, NAME, "", f"the dump holds no {LEASE}"),
            id="a dump without a Lease",
        ),
        pytest.param(
            state(missing=(MissingRight("list", LEASE, "kueue-system"),)),
            ControllerState(
                None, "", None, None, NAME, "", f"no right to list {LEASE} in namespace kueue-system"
            ),
            id="it may not be read",
        ),
        pytest.param(
            state(deployment(1), leader_elect=False),
            ControllerState(True, "", None, None, "", "ours/placement-ac"),
            id="without leader election",
        ),
        pytest.param(
            state(deployment(0), leader_elect=False),
            ControllerState(
                None, "", None, None, "", "", "it uses no Lease, and no Deployment of it is ready"
            ),
            id="without leader election, and none is ready",
        ),
    ],
)
def test_who_leads(found: ControllerState, expected: ControllerState) -> None:
    assert found == expected


def test_the_lease_may_be_elsewhere() -> None:
    elsewhere = {"leader_elect_resource_namespace": "a", "leader_elect_resource_name": "b"}
    assert state(an(LEASE, "b", "a", spec=lease()["spec"]), **elsewhere) == replace(LEADS, lease="a/b")


@pytest.mark.parametrize("junk", [None, 0, "x", [], {}, {"renewTime": 1, "holderIdentity": []}])
def test_a_lease_of_any_shape(junk: Any) -> None:
    found = state(an(LEASE, "placement-ac", "kueue-system", spec=junk))
    assert isinstance(found, ControllerState)
    assert found.running is False


def test_nothing_is_known_of_an_empty_dump() -> None:
    assert controller_state(HubView(Dump(), Settings(), NOW)).running is None
