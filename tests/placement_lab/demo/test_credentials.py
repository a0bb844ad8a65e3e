"""`placement-ac demo --credentials made`: the three stories with provisioned credentials."""

import base64
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from placement_ac.core.api.constants import DRAIN, IMMEDIATE
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_lab.cli.demo import command
from placement_lab.demo import stories, story3
from placement_lab.demo.credentials import ObjectIdentity, ProvisionedCredentials, expected_identities
from placement_lab.demo.environment import DemoEnvironment
from placement_lab.demo.stories import scenario
from placement_lab.demo.story3 import UNSAFE
from placement_lab.hub import Hub
from tests.placement_lab.demo.test_demo import (
    ARGUMENTS,
    COUNTED,
    documents,
    untimed,
)

pytestmark = pytest.mark.long

STORIES = Path(__file__).resolve().parents[3] / "docs" / "stories.md"
PROVISIONED = ("--credentials", "made")
ALL = ("cluster1", "cluster2", "cluster3")


class Watched:
    """Remembers all hubs, for the Secrets that were written to them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hubs: list[Hub] = []

        def hub(**options: Any) -> Hub:
            self.hubs.append(Hub(**options))
            return self.hubs[-1]

        monkeypatch.setattr("placement_lab.demo.environment.Hub", hub)
        monkeypatch.setattr("placement_lab.standins.fleet.Hub", hub)

    def tokens(self) -> set[str]:
        """All tokens: of the hubs' admins, and in Secrets and their kubeconfigs."""
        written = {token for content in self.secrets() for token in _tokens(content)}
        return written | {hub.token for hub in self.hubs}

    def secrets(self) -> set[bytes]:
        """All values that a Secret ever had, except the CAs, which are public."""
        bodies = (
            json.loads(one.raw)
            for hub in self.hubs
            for one in hub.journal
            if _is_of_a_secret(one.path, one.raw)
        )
        data = (body.get("data") or {} for body in bodies)
        return {
            base64.b64decode(value) for one in data for key, value in one.items() if value and key != "ca.crt"
        }


def _is_of_a_secret(path: str, raw: bytes) -> bool:
    return "/secrets" in path and bool(raw)


def _tokens(content: bytes) -> Iterable[str]:
    access = read_kubeconfig(content)
    yield access.token if isinstance(access, ClusterAccess) else content.decode()


def traces_in(output: str, watched: Watched) -> list[str]:
    """The printed secrets: tokens, their signatures, values of Secrets; plain or in base64."""
    tokens, contents = watched.tokens(), watched.secrets()
    traces = {one for token in tokens for one in (token, token.rpartition(".")[2])}
    traces |= {content.decode() for content in contents}
    traces |= {base64.b64encode(one.encode()).decode() for one in tokens} | {
        base64.b64encode(content).decode() for content in contents
    }
    return sorted(trace for trace in traces if trace in output)


def assert_no_traces(output: str, watched: Watched) -> None:
    """Fail if a secret was printed, or if `traces_in` would not notice one."""
    assert traces_in(output, watched) == []
    assert len(watched.tokens()) > len(watched.hubs) == 1 + len(ALL)
    for content in watched.secrets():
        assert traces_in(f"… {content.decode()} …", watched)
        assert traces_in(base64.b64encode(content).decode(), watched)


def played(*words: str) -> Result:
    return CliRunner().invoke(command, [*PROVISIONED, *words])


def credential_objects(document: dict[str, Any]) -> list[str]:
    """The provisioned objects in a step's document: kind namespace/name."""
    return [
        f"{obj['kind']} {obj['metadata']['namespace']}/{obj['metadata']['name']}"
        for obj in document["objects"]
        if obj["kind"] in ("ManagedServiceAccount", "ClusterPermission", "Secret")
    ]


def all_credential_objects(*clusters: str) -> list[str]:
    return [
        *(f"ManagedServiceAccount {cluster}/placement-ac" for cluster in clusters),
        *(f"ClusterPermission {cluster}/placement-ac" for cluster in clusters),
        *(f"Secret {cluster}/placement-ac" for cluster in clusters),
        *(f"Secret kueue-system/placement-ac-{cluster}" for cluster in clusters),
    ]


# -- output


def test_all_stories_with_provisioned_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    run = played("-o", "json", "-v")
    assert run.exit_code == 0, run.output
    *steps, last = documents(run.stdout)
    assert (last["jobs"], last["ok"]) == ({"train": COUNTED[DRAIN]}, True)
    assert [doc["title"] for doc in steps] == [step.title for step in scenario(provisioned=True).steps]
    shown = {doc["title"]: doc for doc in steps if "credentials" in doc}
    assert {title: credential_objects(doc) for title, doc in shown.items()} == {
        step.title: all_credential_objects(*step.credentials_for)
        for step in scenario(provisioned=True).steps
        if step.credentials_for is not None
    }
    assert {
        title: doc["credentials"]["renewed"] for title, doc in shown.items() if doc["credentials"]["renewed"]
    } == {stories.TOKEN_RENEWED.title: ["cluster3"]}
    assert shown[stories.CREDENTIALS_REMOVED.title]["credentials"] == {
        "current": ["cluster3"],
        "renewed": [],
        "workers": ["cluster3"],
    }
    assert shown[stories.STORY_1_IS_OVER.title]["objects"] == []
    assert {key for doc in steps for obj in doc["objects"] if obj["kind"] == "Secret" for key in obj} == {
        "apiVersion",
        "kind",
        "metadata",
        "type",
    }
    assert_nothing_was_put_there(watched)
    assert "applied" in run.stderr
    assert_no_traces(run.output, watched)


def assert_nothing_was_put_there(watched: Watched) -> None:
    """Fail if another client wrote a Secret, or any client a ClusterProfile."""
    journal = [one for hub in watched.hubs for one in hub.journal if one.method in ("POST", "PUT", "PATCH")]
    managers = {one.query.get("fieldManager") for one in journal if "/secrets" in one.path}
    assert managers == {"placement-ac", "ocm-accounts"}
    assert [one.path for one in journal if "/clusterprofiles" in one.path] == []


def test_the_unsafe_variant_ends_as_with_existing_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The safe one is in all stories, above."""
    watched = Watched(monkeypatch)
    run = played("--story", "3", "-v", *ARGUMENTS[UNSAFE])
    assert run.exit_code == 0, run.output
    steps = scenario(3, UNSAFE, provisioned=True).steps
    lines = run.stdout.splitlines()
    assert [line for line in lines if line.startswith("Story")] == [
        f"Story 3, step {number}: {step.title}" for number, step in enumerate(steps, start=1)
    ]
    assert lines[-2].startswith("Job train: started 2 times, ")
    assert lines[-1].startswith(f"{len(steps)} of {len(steps)} steps succeeded in ")
    assert_no_traces(run.output, watched)


def test_the_unsafe_list_uses_the_credentials_of_another_check() -> None:
    steps = scenario(mode=UNSAFE, provisioned=True).steps
    assert stories.STORY_1_IS_OVER not in steps
    assert stories.CREDENTIALS_REMOVED not in steps
    assert {step.credentials_for for step in steps if step != stories.TOKEN_RENEWED} == {ALL}


@pytest.mark.parametrize("way", [DRAIN, IMMEDIATE])
def test_the_last_step_checks_that_credentials_are_removed(way: story3.Story3Mode) -> None:
    *_, back, last = scenario(3, way, provisioned=True).steps
    assert (back.credentials_for, last) == (None, stories.CREDENTIALS_REMOVED)


def test_the_documented_output_with_credentials_is_current() -> None:
    shown = played("--story", "2").stdout
    block = STORIES.read_text("utf-8").partition("## Credentials that are made\n")[2].split("```")[1]
    text = block.removeprefix("console\n")
    assert stories.TOKEN_RENEWED.title in text
    assert untimed(text) in untimed(shown)


def test_a_terminal_shows_provisioned_objects_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    console = Console(force_terminal=True, width=80, record=True, file=io.StringIO())
    monkeypatch.setattr("placement_lab.cli.demo.console", lambda: console)
    assert played("--story", "2").exit_code == 0
    text = console.export_text()
    panel = text.partition(f"╭─ Story 2, step 2: {stories.TOKEN_RENEWED.title}")[2].partition("OK after")[0]
    words = " ".join(panel.replace("│", " ").split())
    assert "ManagedServiceAccount: cluster2/placement-ac, cluster3/placement-ac" in words
    assert "Secret: kueue-system/placement-ac-cluster2, kueue-system/placement-ac-cluster3" in words
    assert "OCM's latest token for cluster2 and cluster3; renewed: cluster3" in words
    assert "On the workers: ServiceAccounts and roles on cluster2 and cluster3" in words
    assert "…" not in panel
    assert_no_traces(text, watched)


# -- failures


def test_a_token_that_is_not_renewed_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def do_nothing(_: DemoEnvironment, __: str) -> None:
        """Renew nothing."""

    monkeypatch.setattr(DemoEnvironment, "renew_token", do_nothing)
    monkeypatch.setattr("placement_lab.demo.runner.STEP_SECONDS", 4.0)  # unneeded objects stay for 2 s
    run = played("--story", "2")
    assert run.exit_code == 1
    [line] = [line for line in run.stdout.splitlines() if "FAILED" in line]
    assert line.endswith(
        "expected ['placement-demo2-cluster2', 'placement-demo2-cluster3'], "
        "credentials for cluster2 and cluster3 only, a new token for cluster3"
    )
    assert "3 of 4 steps succeeded" in run.stdout


THERE = expected_identities(["a"])


@pytest.mark.parametrize(
    ("things", "current", "right"),
    [
        pytest.param(THERE, ("a",), True, id="all is there"),
        *(
            pytest.param(THERE - {thing}, ("a",), False, id=f"no {thing[1]} {thing[2]}")
            for thing in sorted(THERE)
        ),
        *(
            pytest.param(THERE | {thing}, ("a",), False, id=f"{thing[1]} {thing[2]} of another")
            for thing in sorted(expected_identities(["b"]))
        ),
        pytest.param(THERE, (), False, id="an old token"),
        pytest.param(frozenset(), (), False, id="nothing"),
    ],
)
def test_credentials_must_match_the_clusters_exactly(
    things: frozenset[ObjectIdentity], current: tuple[str, ...], right: bool
) -> None:
    assert (
        ProvisionedCredentials(objects=(), identities=things, current=current, renewed=()).is_exactly_for(
            ["a"]
        )
        is right
    )
