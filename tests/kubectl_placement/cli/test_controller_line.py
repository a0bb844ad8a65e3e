"""The first line of `status` and `explain`."""

from datetime import UTC, datetime, timedelta

import pytest

from kubectl_placement.cli.controller_line import controller_line
from kubectl_placement.hub.controller_state import ControllerState

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
