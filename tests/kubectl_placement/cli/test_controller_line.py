"""The first line of `status` and `explain`."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubectl_placement.cli.controller_line import controller_line, controller_problem
from kubectl_placement.hub.controller_state import ControllerState
from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import ALL_KINDS
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import ANNOTATION_RECONCILED, LEASE
from tests.support.builders import an

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
SINCE, RENEWED = NOW - timedelta(days=3), NOW - timedelta(seconds=2)
NAME = "kueue-system/placement-ac"
STOPPED = "No controller is running: what follows is what it last wrote"


@pytest.mark.parametrize(
    ("controller", "expected"),
    [
        pytest.param(
            ControllerState(True, "one", SINCE, RENEWED, NAME, ""),
            "Controller: one leads since 2026-07-29T12:00:00Z (renewed 2s ago)",
            id="it leads",
        ),
        pytest.param(
            ControllerState(True, "one", SINCE, RENEWED, NAME, "", led_before="two", transitions=3),
            "Controller: one leads since 2026-07-29T12:00:00Z (renewed 2s ago), after two; "
            "3 changes of leader",
            id="it leads after another",
        ),
        pytest.param(
            ControllerState(True, "one", SINCE, RENEWED, NAME, "", transitions=1),
            "Controller: one leads since 2026-07-29T12:00:00Z (renewed 2s ago); 1 change of leader",
            id="it is not known after whom",
        ),
        pytest.param(
            ControllerState(True, "one", SINCE, RENEWED, NAME, "", silent=True),
            "Controller: one leads since 2026-07-29T12:00:00Z but has not reconciled yet: "
            "what follows is older",
            id="it leads and has not reconciled",
        ),
        pytest.param(
            ControllerState(True, "one", None, None, NAME, ""),
            "Controller: one leads (renewed at an unknown time)",
            id="without times",
        ),
        pytest.param(
            ControllerState(True, "", None, None, "", "ours/placement-ac"),
            "Controller: Deployment ours/placement-ac is ready; it uses no Lease",
            id="without a Lease",
        ),
        pytest.param(
            ControllerState(False, "one\x1b[31m", SINCE, SINCE, NAME, ""),
            f"{STOPPED} (Lease {NAME}: one\\x1b[31m renewed it last 3d ago)",
            id="it was killed",
        ),
        pytest.param(
            ControllerState(False, "", SINCE, RENEWED, NAME, ""),
            f"{STOPPED} (Lease {NAME}: it was released 2s ago)",
            id="it has ended",
        ),
        pytest.param(
            ControllerState(False, "", None, None, NAME, ""),
            f"{STOPPED} (there is no Lease {NAME})",
            id="it has never run",
        ),
        pytest.param(
            ControllerState(None, "", None, None, NAME, "", "no right to list leases"),
            "Controller: unknown whether it is running: no right to list leases",
            id="unknown",
        ),
    ],
)
def test_the_first_line(controller: ControllerState, expected: str) -> None:
    assert controller_line(controller, NOW).plain == expected


@pytest.mark.parametrize(
    ("lease", "begins"),
    [
        pytest.param({}, "No controller is running: ", id="nobody leads"),
        pytest.param({"renewTime": SINCE}, "No controller is running: ", id="the Lease was not renewed"),
        pytest.param({"renewTime": NOW}, "", id="it leads"),
        pytest.param({"renewTime": NOW, "mark": "true"}, "", id="it has reconciled"),
        pytest.param({"renewTime": NOW, "mark": "false"}, "Controller: one leads since ", id="it has not"),
        pytest.param({"renewTime": NOW, "mark": "false", "acquireTime": NOW}, "", id="it leads since now"),
    ],
)
def test_the_commands_about_jobs_begin_with_what_makes_all_else_old(
    lease: dict[str, Any], begins: str
) -> None:
    times = {
        name: when.isoformat() for name, when in ({"acquireTime": SINCE} | lease).items() if name != "mark"
    }
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15} | times
    raw = an(LEASE, "placement-ac", "kueue-system", spec=spec)
    raw["metadata"]["annotations"] = {ANNOTATION_RECONCILED: lease["mark"]} if "mark" in lease else {}
    objects = dict.fromkeys(ALL_KINDS, ()) | {LEASE: (raw,) if lease else ()}
    said = controller_problem(HubView(Dump(objects, live=True), Settings(), NOW))
    assert said.startswith(begins)
    assert bool(said) == bool(begins)
