"""
`placement-ac plan` foretells what OCM's real placement controller decided for recorded fleets.

`test_scheduling.py` plays all of them with the engine alone.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.published.test_scheduling import PARTS, recorded
from tests.support import commands
from tests.support.commands import write_list


def wanted(fleet: dict[str, Any]) -> dict[str, Any]:
    """The recording in the command's own words."""
    status, decisions = fleet["expect"]["placementStatus"], fleet["expect"]["decisions"]
    entries = {
        decision["name"]: [c["clusterName"] for c in decision["decisions"] or []] for decision in decisions
    }
    groups = status.get("decisionGroups") or []
    return {
        "decisions": [
            cluster for group in groups for name in group["decisions"] for cluster in entries[name]
        ],
        "groups": groups,
        "conditions": {
            (condition["type"], condition["status"], condition["reason"])
            for condition in status["conditions"]
        },
        "count": status.get("numberOfSelectedClusters", 0),
    }


def predicted(output: str) -> dict[str, Any]:
    (plan,) = json.loads(output)["placements"]
    return {
        "decisions": plan["decisions"],
        "groups": plan["groups"],
        "conditions": {
            (condition["type"], condition["status"], condition["reason"]) for condition in plan["conditions"]
        },
        "count": len(plan["decisions"]),
    }


def written(fleet: dict[str, Any], folder: Path) -> list[str]:
    """The arguments of the command, for a dump of the fleet and the manifest of its Placement."""
    dump = write_list(folder / "dump.json", (obj for part in PARTS for obj in fleet[part]))
    manifest = folder / "placement.json"
    manifest.write_text(json.dumps(fleet["placement"]))
    return ["plan", "-f", str(manifest), "--from-dump", str(dump), "-o", "json"]


@pytest.mark.parametrize("fleet", recorded()[::4], ids=lambda fleet: fleet["name"])
def test_the_preview_matches_what_was_recorded(fleet: dict[str, Any], tmp_path: Path) -> None:
    done = commands.run(*written(fleet, tmp_path))
    assert done.exit_code == 1, done.output  # a new Placement is a change
    assert predicted(done.stdout) == wanted(fleet)
