"""The documents agree with the code: tables, commands, links and output are compared with it."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from pydantic.alias_generators import to_camel

from kubectl_placement.capacity.views import Row as CapacityRow
from kubectl_placement.cli.capacity import Answer, capacity_document
from kubectl_placement.explain.steps import StepName
from kubectl_placement.explain.workload import CheckEntry, WorkloadExplanation
from kubectl_placement.hub.controller_state import ControllerState
from kubectl_placement.jobs.choice import ClusterChoice, PlacementChoice
from kubectl_placement.jobs.new_job import NewJob
from kubectl_placement.jobs.queue_position import QueuePosition
from kubectl_placement.plan.plan_report import (
    AffectedWorkload,
    CheckChange,
    PlacementCondition,
    PlacementPlan,
)
from kubectl_placement.plan.preview import PlannedWrite
from kubectl_placement.status.model import (
    CheckStatus,
    ClusterRow,
    ClusterState,
    Credential,
    HeldRow,
    ListWrites,
    QueueRow,
    QuotaWarning,
    UnfitRow,
    WorkloadRow,
)
from kubectl_placement.story.model import JobLine, JobState, JobStory, StoryStep
from kubectl_placement.story.pods import PodRow, PodsThere
from placement_ac.cli.documents import plain
from placement_ac.cli.main import COMMANDS, main
from placement_ac.config.layout import PATHS
from placement_ac.config.load import PREFIX
from placement_ac.config.settings import Settings, default_of
from placement_ac.controller import hub_discovery, recorder, session
from placement_ac.core.api import constants, list_change
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.core.credentials import named_secret
from placement_ac.core.dispatch.filters import FILTERS
from placement_ac.core.dispatch.scores import SCORES
from placement_ac.core.plan import job_fit, workload_states
from placement_ac.core.selection import probe_schedule
from placement_ac.kube import client, informer, workqueue
from placement_ac.observability import health
from placement_ac.observability.metric_definitions import DEFINITIONS
from placement_ac.workers import connector, queries
from placement_lab.demo.renderers import TextRenderer, document
from placement_lab.demo.runner import DemoStepResult
from placement_lab.demo.stories import STEPS
from tests.support.documents import (
    ARCHITECTURE,
    CHANGELOG,
    CONTRIBUTING,
    DOCUMENTS,
    INSPECT,
    JSON,
    LIMITS,
    MONITORING,
    README,
    REFERENCE,
    ROOT,
    STORIES,
    Row,
    anchors,
    lines_of,
    spans,
    table,
    tables,
)
from tests.support.installation import pyproject
from website import options
from website.markdown import section

# -- conditions, settings, names, times
GOOD = (constants.ACTIVE, constants.SOME_CLUSTERS_UNUSABLE)


def test_every_reason_and_its_sentence() -> None:
    wanted = [
        ("True" if reason in GOOD else "False", reason, sentence)
        for reason, sentence in constants.REASONS.items()
    ]
    assert table(REFERENCE, "The condition `Active` and its reasons") == wanted


def test_every_reason_has_a_fix() -> None:
    _, fixes = tables(REFERENCE, "The condition `Active` and its reasons")
    assert [row[0] for row in fixes] == list(constants.REASONS)
    assert [row for row in fixes if not all(row)] == []


def settings() -> Iterator[Row]:
    """Yield flag, environment, path in the file and default of each setting."""
    for name in Settings.model_fields:
        yield f"--{name.replace('_', '-')}", PREFIX + name.upper(), PATHS.get(name, ""), default_of(name)


def test_every_setting() -> None:
    assert [row[:4] for row in table(REFERENCE, "Settings")] == list(settings())
    assert [row for row in table(REFERENCE, "Settings") if not row[-1]] == []


def test_the_sources_of_credentials_in_their_order() -> None:
    rows = table(REFERENCE, "Credentials")
    assert [row[0] for row in rows] == list(constants.CREDENTIAL_METHODS)
    looked_for = re.findall(r"Secrets (\S+), then (\S+), in", rows[1][1])
    assert looked_for == [named_secret.secret_names("<cluster>")]


def test_every_filter_and_score_of_the_dispatcher() -> None:
    page = ROOT / "docs" / "dispatch.md"
    assert [row[0] for row in table(page, "Filters")] == list(FILTERS)
    assert {row[0] for row in table(page, "Scores and profiles")} == set(SCORES)


def test_names_labels_and_annotations() -> None:
    account = default_of("credentials_account")
    assert [row[1] for row in table(REFERENCE, "Names, labels and annotations")] == [
        constants.OUR_CONTROLLER,
        "the Placement's name",
        f"{constants.PER_PLACEMENT}; or {constants.SHARED}, see the setting --cluster-names",
        f"{constants.LABEL_MANAGED_BY}: {constants.MANAGED_BY}",
        constants.LABEL_PLACEMENT,
        constants.LABEL_CLUSTER,
        f'{constants.ANNOTATION_ADOPT}: "true"',
        constants.ANNOTATION_DRAINING,
        constants.ANNOTATION_SECOND_NAMES,
        constants.ANNOTATION_PLACEMENT,
        constants.ANNOTATION_PLACEMENT_NAMESPACE,
        constants.ANNOTATION_UNLIST,
        constants.ANNOTATION_MAINTENANCE,
        constants.ANNOTATION_DELETE_UNKNOWN,
        constants.ANNOTATION_QUARANTINE,
        constants.ANNOTATION_QUOTA_MAX,
        constants.ANNOTATION_DISPATCH_PROFILE,
        (
            f"{constants.ANNOTATION_CLUSTER_NAMES}, {constants.ANNOTATION_CLUSTER_SELECTOR}, "
            f"{constants.ANNOTATION_ANTI_AFFINITY}, {constants.ANNOTATION_PREFERRED_CLUSTERS}, "
            f"{constants.ANNOTATION_GROUP}"
        ),
        f"{account}; or {constants.ADDON_ACCOUNT}, after placement-ac adopt",
        f"{account}-<cluster>; or {constants.ADDON_ACCOUNT}-<cluster>, after placement-ac adopt",
        f"{constants.CAPACITY_NAME}, {constants.CAPACITY_QUEUES_NAME}; {constants.CAPACITY_MANAGER}",
        list_change.ANNOTATION,
        constants.ANNOTATION_ACCOUNT,
        f'{constants.LABEL_SYNC}: "true"',
        constants.FIELD_MANAGER,
    ]


def test_times() -> None:
    assert [float(row[1]) for row in table(ROOT / "docs" / "develop" / "times.md", "Times")] == [
        constants.SETTLE_SECONDS,
        constants.REGROUP_SECONDS,
        constants.NAME_CONFLICT_SECONDS,
        constants.QUIET_SECONDS,
        constants.MIN_READY_SECONDS,
        constants.GATE_REOPEN_SECONDS,
        constants.GATE_CLOSED_MAX_SECONDS,
        constants.COPIES_FRESH_SECONDS,
        constants.COPIES_RETRY_SECONDS,
        constants.RETENTION_SECONDS,
        constants.REORDER_SECONDS,
        job_fit.ROUND_SECONDS,
        workload_states.REQUEUE_SECONDS,
        constants.SCORE_HOLD_SECONDS,
        constants.SCORE_INTERVAL_SECONDS,
        constants.STUCK_READY_SECONDS,
        constants.EDIT_WINDOW_SECONDS,
        constants.UNUSABLE_SECONDS,
        recorder.REPEAT_SECONDS,
        hub_discovery.DISCOVERY_SECONDS,
        session.REDISCOVERY_SECONDS,
        hub_discovery.MISSING_GRACE_SECONDS,
        informer.RELIST_SECONDS,
        informer.KOPF_RELIST_SECONDS,
        *workqueue.BACKOFF_SECONDS,
        probe_schedule.GOOD_SECONDS,
        probe_schedule.BAD_SECONDS,
        queries.CACHE_SECONDS,
        connector.CREDENTIALS_SECONDS,
        connector.EXPIRY_SECONDS,
        client.TIMEOUT_SECONDS,
        client.WATCH_SECONDS,
        client.WATCH_IDLE_SECONDS,
        health.REVIVE_SECONDS,
        health.DEAD_SECONDS,
        health.UNREACHABLE_SECONDS,
        health.LATE_SECONDS,
    ]


def test_the_annotation_of_events() -> None:
    [_, keys] = tables(REFERENCE, "Events")
    assert [row[0] for row in keys] == [field.name for field in fields(list_change.ListChange)]
    for field in fields(list_change.ClusterChange):
        assert field.name in keys[1][1]
    for change in get_args(list_change.Change):
        assert change in keys[0][1]
    assert f"{list_change.SIZE_MAX:,} characters" in keys[2][1]
    text = section(REFERENCE.read_text("utf-8"), "Events")
    [example] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    written = list_change.ListChange(
        "draining",
        (list_change.ClusterChange("cluster3", None, "not selected any more", "1 Workload runs there"),),
    )
    assert json.loads(example) == json.loads(written.to_json())


def test_events() -> None:
    rows = table(REFERENCE, "Events")
    assert {row[0]: row[1] for row in rows} == {name: kind for name, (kind, _) in constants.EVENTS.items()}
    for name, _, _, when in rows:
        assert when.startswith(constants.EVENTS[name][1])
    code = "".join(
        path.read_text("utf-8")
        for path in (ROOT / "placement_ac").rglob("*.py")
        if path.name not in ("constants.py", "recorder.py")
    )
    reasons = [
        key for key, value in vars(constants).items() if isinstance(value, str) and value in constants.EVENTS
    ]
    assert [key for key in reasons if not re.search(rf"\b{key}\b", code)] == [], "posted nowhere"


def test_metrics() -> None:
    wanted = [(m.name, m.type, ", ".join(m.labels), m.help.replace("`", "")) for m in DEFINITIONS]
    assert table(MONITORING, "Metrics") == wanted


# -- commands


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found
    return found


def flags(of: click.Command) -> set[str]:
    return {flag for option in of.params for flag in option.opts if flag.startswith("--")}


def test_every_command() -> None:
    rows = table(REFERENCE, "Commands and exit codes")
    assert {row[0]: row[1] for row in rows} == {
        f"placement-ac {name}": summary for name, summary in COMMANDS.items()
    }


def test_every_option() -> None:
    page = REFERENCE.read_text("utf-8")
    assert page == options.reference(page), "run `make reference`"


def test_the_states_of_a_cluster_in_status() -> None:
    states = get_args(ClusterState)
    assert tuple(row[0] for row in table(INSPECT, "Status")) == states


def test_the_keys_of_the_document_of_status() -> None:
    keys = [
        re.sub(r" \([^)]*\)", "", row[1]).split(", ") for row in table(JSON, "The JSON document of `status`")
    ]
    shapes = (
        ControllerState,
        CheckStatus,
        ClusterRow,
        Credential,
        QueueRow,
        WorkloadRow,
        HeldRow,
        UnfitRow,
        ListWrites,
        QuotaWarning,
    )
    assert keys == [[to_camel(field.name) for field in fields(shape)] for shape in shapes]


def test_the_keys_of_the_document_of_capacity() -> None:
    keys = [row[0] for row in table(JSON, "The JSON document of `capacity`")]
    now = datetime(2026, 11, 26, tzinfo=UTC)
    answer = Answer("cluster", "controller", (CapacityRow("a", "f", "cpu"),), (), CapacityReport(), now)
    found = capacity_document(answer)
    assert keys == list(found)
    documented = dict(table(JSON, "The JSON document of `capacity`"))["rows"]
    assert [name for name in plain(found)["rows"][0] if name != "cluster" and name not in documented] == []


def test_every_command_line_in_the_documents_is_possible() -> None:
    wrong = []
    for path in DOCUMENTS:
        for line in spans(path):
            if line.startswith("helm "):  # tests/install/test_helm.py runs these
                continue
            for words in re.findall(r"(?<!=)placement-ac((?: [^|#\s]+)+)", line):
                name, *rest = words.split()
                if name not in COMMANDS and not name.startswith("-"):
                    wrong.append(line)
                known = flags(command(name)) if name in COMMANDS else {"--version", "--help", "--"}
                wrong += [line for word in (name, *rest) if word.startswith("--") and word not in known]
    assert wrong == []


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {str(path.relative_to(ROOT)): _targets_named(spans(path)) for path in DOCUMENTS}
    assert {"demo", "test"} <= named["README.md"]
    assert {name: found - targets for name, found in named.items() if found - targets} == {}
    assert [row[0] for row in table(CONTRIBUTING, "Set up") if row[0][5:] not in targets] == []


def _targets_named(code: Iterable[str]) -> set[str]:
    return {target for line in code for target in re.findall(r"(?:^|\s)make ([a-z-]+)", line)}


def test_every_key_of_a_plan() -> None:
    rows = dict(table(JSON, "The JSON document of `plan`"))
    assert list(rows) == list(PlacementPlan.__dataclass_fields__)
    parts = {
        "conditions": PlacementCondition,
        "writes": PlannedWrite,
        "affected": AffectedWorkload,
        "checks": CheckChange,
    }
    for key, part in parts.items():
        assert [field for field in part.__dataclass_fields__ if field not in rows[key]] == []


def test_every_key_of_a_workload() -> None:
    rows = dict(table(JSON, "The JSON document of `explain workload`"))
    assert list(rows) == [to_camel(name) for name in WorkloadExplanation.__dataclass_fields__]
    wanted = [*CheckEntry.__dataclass_fields__, *PlacementChoice.__dataclass_fields__]
    below = JSON.read_text("utf-8").partition("## The JSON document of `explain workload`")[2]
    wanted += [*ClusterChoice.__dataclass_fields__, *NewJob.__dataclass_fields__]
    text = below.partition("\n## ")[0] + JSON.read_text("utf-8").partition("`jobs`, where each")[2]
    assert [name for name in wanted if f"`{to_camel(name)}`" not in text] == []


def test_every_key_of_jobs_and_of_a_story() -> None:
    assert [row[0] for row in table(JSON, "The JSON document of `jobs`")] == _keys(JobLine)
    rows = dict(table(JSON, "The JSON document of `job`"))
    assert list(rows) == _keys(JobStory)
    for key, part in (("position", QueuePosition), ("steps", StoryStep), ("pods", PodsThere)):
        assert [name for name in _keys(part) if name not in rows[key]] == []
    [below] = re.findall(r"^A Pod has (.*)$", JSON.read_text("utf-8"), re.MULTILINE)
    assert re.findall(r"`([a-z]+)`", below) == _keys(PodRow)


def test_every_state_of_a_job() -> None:
    assert [row[0] for row in table(ROOT / "docs" / "jobs.md", "Where my jobs are")] == list(JobState)


def _keys(of: type) -> list[str]:
    return [to_camel(name) for name in of.__dataclass_fields__]  # type: ignore[attr-defined]  # a dataclass


def test_every_step_of_explain() -> None:
    rows = table(INSPECT, "Explain")
    assert [row[0] for row in rows] == list(StepName)
    assert [row for row in rows if not row[1]] == []


# -- the demo


def test_the_keys_of_the_demos_document() -> None:
    assert [row[0] for row in table(JSON, "The JSON document of the demo")] == list(document(outcome()))


def test_the_step_in_the_stories_is_shown_like_that(capsys: pytest.CaptureFixture[str]) -> None:
    show, shown = TextRenderer(), outcome()
    show.step_started(shown.number, shown.step)
    show.step_finished(shown)
    printed = (
        section(STORIES.read_text("utf-8"), "What the demo shows")
        .partition("```console\n")[2]
        .partition("```")[0]
    )
    assert printed.strip() == capsys.readouterr().out.strip()


def outcome() -> DemoStepResult:
    """Return the outcome of the demo's second step."""
    step = STEPS[1]
    secrets = dict(
        zip(step.expected_clusters, ("kueue-admin-cluster2-kubeconfig", "multikueue-cluster3"), strict=True)
    )
    condition = {
        "type": "Active",
        "status": "True",
        "reason": constants.ACTIVE,
        "message": constants.GENERATED,
    }
    config = {"kind": "MultiKueueConfig", "spec": {"clusters": step.expected_clusters}}
    return DemoStepResult(
        number=2,
        step=step,
        succeeded=True,
        elapsed_ms=116,
        reaction_ms=30,
        decision=step.clusters,
        objects=[config, *(_multikueue_cluster(name, secret) for name, secret in secrets.items())],
        condition=condition,
    )


def _multikueue_cluster(name: str, secret: str) -> dict[str, Any]:
    return {
        "kind": "MultiKueueCluster",
        "metadata": {"name": name},
        "spec": {"clusterSource": {"kubeConfig": {"location": secret, "locationType": "Secret"}}},
        "status": {"conditions": [{"type": "Active", "status": "True"}]},
    }


# -- the tree
PACKAGE = ROOT / "placement_ac"


def folders(*roots: str) -> set[str]:
    """Return these packages and those right below them."""
    found = (path.parent for root in roots for path in (ROOT / root).glob("*/__init__.py"))
    return {*roots, *(str(path.relative_to(ROOT)) for path in found)}


def test_every_folder_is_in_the_table_of_the_architecture() -> None:
    rows = table(ARCHITECTURE, "Folders")
    known = folders("placement_ac", "placement_ac/core", "kubectl_placement", "placement_lab")
    assert sorted(row[0] for row in rows) == sorted(known)
    assert [row for row in rows if not all(row)] == []


def test_functions_named_in_the_architecture_exist() -> None:
    named = re.findall(r"`([\w/]+\.py): ([\w.]+)`", ARCHITECTURE.read_text("utf-8"))
    assert len(named) > 5
    missing = [
        (file, name)
        for file, names in named
        for name in names.split(".")
        if not re.search(rf"(?:def|class) {name}\b", (PACKAGE / file).read_text("utf-8"))
    ]
    assert missing == []


def test_the_changelog_has_an_entry_for_this_version() -> None:
    version = pyproject()["project"]["version"]
    assert re.search(rf"^## \[{re.escape(version)}\] - \S+$", CHANGELOG.read_text("utf-8"), re.MULTILINE)


def test_the_readme_asks_for_the_python_that_the_package_asks_for() -> None:
    least = pyproject()["project"]["requires-python"].removeprefix(">=")
    assert f"Python {least} or newer" in README.read_text("utf-8")
    assert ("Python", f"{least} or newer") in table(LIMITS, "Versions")


def test_the_readme_names_the_submitters_that_make_test_clients_installs() -> None:
    folder = ROOT / "tests" / "clients" / "requirements"
    files = [path for path in folder.glob("*.in") if path.stem != "libraries"]
    pins = [line.split("==") for path in files for line in path.read_text().split() if "==" in line]
    locks = "".join(path.with_suffix(".lock").read_text() for path in files)
    text = " ".join(README.read_text("utf-8").split())
    assert len(files) == 5
    assert [pin for pin in pins if " ".join(pin) not in text or "==".join(pin) not in locks] == []


def test_files_that_are_named_exist() -> None:
    named = {
        (path.name, span)
        for path in DOCUMENTS
        for line in spans(path)
        for span in re.findall(r"(?<![\w/])(?:samples|tests|config|charts|bench|kind)/[\w./-]*\w", line)
    }
    assert len(named) > 5
    assert {(name, span) for name, span in named if not (ROOT / span).exists()} == set()


def test_links_lead_somewhere() -> None:
    links = [
        (path, target)
        for path in DOCUMENTS
        for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(lines_of(path.read_text("utf-8"), code=False)))
        if not target.startswith("https://")
    ]
    assert len(links) > 10
    assert [(str(path), target) for path, target in links if not _leads_somewhere(path, target)] == []


def _leads_somewhere(path: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    found = (path.parent / file).resolve() if file else path
    return found.is_relative_to(ROOT) and found.exists() and (not anchor or anchor in anchors(found))
