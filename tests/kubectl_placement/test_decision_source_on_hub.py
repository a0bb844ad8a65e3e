"""With another source of decisions in use, the controller and the commands follow it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement_lab.hub import Hub
from tests.support import rankings
from tests.support.driver import NS, Driver, eventually, owner_reference
from tests.support.replicas import Replica

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RANKINGS = f"/apis/example.com/v1/namespaces/{NS}/rankings"


def ranking(admin: Driver, *clusters: str) -> dict[str, Any]:
    owner = admin.get(f"{admin.ocm}/placements/p")
    assert owner
    metadata = {"name": "p", "namespace": NS, "ownerReferences": [owner_reference(owner)]}
    spec = {"clusters": list(clusters)}
    return {"apiVersion": "example.com/v1", "kind": "Ranking", "metadata": metadata, "spec": spec}


COMMANDS = """
import json, sys
from placement_ac.core import decisions
from tests.support.rankings import RANKINGS
decisions.SOURCE = RANKINGS  # before anything else is imported
from tests.support import commands
done = [commands.run(*words) for words in json.loads(sys.argv[1])]
print(json.dumps([[one.exit_code, one.stderr, one.stdout] for one in done]))
"""


def printed(*commands: list[str]) -> list[str]:
    """Run these commands in one process; return what each prints."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert [(code in (0, 1), errors) for code, errors, _ in found] == [(True, "")] * len(commands)
    return [text for *_, text in found]


@pytest.mark.timeout(180)  # two processes, each of which imports everything
@pytest.mark.embedded("a real API server serves a CRD a moment after it was created")
def test_the_controller_and_the_commands_follow_another_source(
    hub: Hub, admin: Driver, tmp_path: Path
) -> None:
    admin.ask("POST", CRDS, rankings.CRD)
    admin.secrets_for("a", "b", "c")
    admin.placement("p")
    admin.decide("p", "c")  # of OCM: nobody reads it
    admin.check("p")
    admin.ask("POST", RANKINGS, ranking(admin, "b", "a"))
    with Replica(hub, tmp_path, "one", program=rankings.__name__) as replica:
        eventually(lambda: admin.listed("p"), ["p-b", "p-a"], seconds=30)
        admin.ask("PATCH", f"{RANKINGS}/p", {"spec": {"clusters": ["a", "b", "c"]}}, "merge")
        eventually(lambda: admin.listed("p"), ["p-a", "p-b", "p-c"])
        admin.ask("PATCH", f"{RANKINGS}/p", {"spec": {"clusters": ["c", "a"]}}, "merge")
        eventually(lambda: admin.listed("p"), ["p-c", "p-a"])
        on_hub = f"--kubeconfig={replica.kubeconfig}"
        file = tmp_path / "ranking.yaml"
        file.write_text(yaml.safe_dump(ranking(admin, "b", "a")))
        shown, explained, plan = printed(
            ["status", "-o", "json", on_hub],
            ["explain", "cluster", "a", on_hub],
            ["plan", "-f", str(file), "-o", "json", on_hub],
        )
        (status,) = json.loads(shown)["checks"]
        assert [(row["name"], row["rank"], row["state"]) for row in status["clusters"]] == [
            ("c", 1, "listed"),
            ("a", 2, "listed"),
        ]
        assert f"Rankings has selected it: it is in Ranking {NS}/p" in explained
        assert "the controller ranks it 2 of 2" in explained
        (planned,) = json.loads(plan)["placements"]
        assert (planned["order"], planned["added"], planned["removed"]) == (["b", "a"], ["b"], ["c"])
