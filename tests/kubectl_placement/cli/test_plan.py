"""`placement-ac plan` as it is called: where it reads, what it prints, and its exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from kubectl_placement.cli.plan import NOT_VALIDATED
from placement_ac.core.api.constants import TAINT_UNREACHABLE
from tests.support import commands
from tests.support.builders import Raw, workload
from tests.support.commands import write_list
from tests.support.whatif import DEMO2, SAMPLES, as_list, job, story_2

STORY_2, STORY_3 = (str(SAMPLES / f"placement-demo2-{number}.yaml") for number in (1, 2))
JOBS = (job("train", "cluster2", gpus=2), job("tune", "cluster2"), job("wait", "", nominated=["cluster2"]))


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The end of Story 2 in a file, with jobs."""
    path = tmp_path_factory.mktemp("hub") / "hub.json"
    path.write_text(as_list(story_2(*JOBS).dump))
    return str(path)


NOTE = f"{NOT_VALIDATED}\n"


def plan(*words: str, stdin: str | None = None) -> Result:
    return commands.run("plan", *words, input=stdin)


def test_nothing_changes(dump: str) -> None:
    done = plan("-f", STORY_2, "--from-dump", dump)
    assert (done.exit_code, done.stderr) == (0, NOTE)
    assert done.stdout.splitlines()[0] == "Nothing changes."


def test_something_changes_as_people_read_it(dump: str) -> None:
    done = plan("-f", STORY_3, "--from-dump", dump)
    assert (done.exit_code, done.stderr) == (1, NOTE)
    output = done.stdout.splitlines()
    assert output[:7] == [
        f"Placement kueue-system/{DEMO2}: Kueue's list: cluster3",
        "  - cluster2 (drains: 2 running Workloads with 3 GPUs, 1 waiting Workload with 1 GPU)",
        "  PlacementMisconfigured: False, Succeedconfigured: Placement configurations check pass",
        "  PlacementSatisfied: True, AllDecisionsScheduled: All cluster decisions scheduled",
        (
            f"  AdmissionCheck {DEMO2}: stays True, Active: MultiKueueConfig and MultiKueueCluster"
            " generated; draining: cluster2 (Workloads run there)"
        ),
        f"change Placement kueue-system/{DEMO2}",
        "",
    ]
    assert output[7:10] == [
        f"apply MultiKueueConfig {DEMO2}, at once",
        f"--- MultiKueueConfig/{DEMO2}",
        f"+++ MultiKueueConfig/{DEMO2}",
    ]
    assert f"delete MultiKueueCluster {DEMO2}-cluster2, 60 min after it has left the list" in output


def test_the_answer_comes_first_then_warnings_then_diffs(dump: str) -> None:
    """As they appear on a terminal."""
    decided = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": {"name": f"{DEMO2}-decision-1"},
    }
    manifests = yaml.safe_dump_all([decided, yaml.safe_load(Path(STORY_3).read_text())])
    lines = plan("-f", "-", "--from-dump", dump, stdin=manifests).output.splitlines()
    (warning,) = (number for number, line in enumerate(lines) if line.startswith("warning: "))
    assert lines[0] == f"Placement kueue-system/{DEMO2}: Kueue's list: cluster3"
    assert next(number for number, line in enumerate(lines) if line.startswith("--- ")) > warning
    assert not any(line.startswith("warning: ") for line in lines[warning + 1 :])


def test_an_expression_that_is_not_evaluated_makes_the_plan_unknown(dump: str) -> None:
    document = yaml.safe_load(Path(STORY_3).read_text())
    selector = {"celSelector": {"celExpressions": ["{1: 1, 1: 2}[1] == 2"]}}
    document["spec"]["predicates"] = [{"requiredClusterSelector": selector}]
    done = plan("-f", "-", "--from-dump", dump, stdin=yaml.safe_dump(document))
    why = (
        "the CEL expression is not evaluated, because the runtime gives up: duplicate key in map: "
        "{1: 1, 1: 2}[1] == 2"
    )
    assert (done.exit_code, done.stdout.splitlines()[0]) == (
        2,
        f"Placement kueue-system/{DEMO2}: unknown: {why}",
    )
    assert "Misconfigured" not in done.output


def test_a_cluster_that_comes_has_its_score_and_its_credentials(tmp_path: Path) -> None:
    path = tmp_path / "hub.json"
    path.write_text(as_list(story_2().dump))
    document = yaml.safe_load(Path(STORY_3).read_text())
    document["metadata"]["name"] = "new"
    check = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": "new"},
        "spec": {
            "controllerName": "open-cluster-management.io/placement",
            "parameters": {
                "apiGroup": "cluster.open-cluster-management.io",
                "kind": "Placement",
                "name": "new",
            },
        },
    }
    manifests = yaml.safe_dump_all([document, check])
    done = plan("-f", "-", "--from-dump", str(path), stdin=manifests)
    assert "  + cluster3 (score 70, credentials Secret multikueue-cluster3)" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("jobs", "taints", "expected"),
    [
        pytest.param([], [], "its jobs are unknown", id="no Workloads in the dump"),
        pytest.param([job("else", "cluster3")], [], "no job runs there", id="no job"),
        pytest.param(
            [workload("of-others", cluster=f"{DEMO2}-cluster2", another="Ready")],
            [],
            "no job of its checks runs there, 1 Workload of other checks",
            id="a job of another check",
        ),
        pytest.param(
            [job("else", "cluster3")],
            [{"key": TAINT_UNREACHABLE, "effect": "PreferNoSelect"}],
            "it stays listed for now: OCM cannot reach it",
            id="out of reach",
        ),
    ],
)
def test_the_jobs_of_a_removed_cluster_are_counted(
    jobs: list[Raw], taints: list[Raw], expected: str, tmp_path: Path
) -> None:
    items = [*json.loads(as_list(story_2().dump))["items"], *jobs]
    for item in items:
        if (item["kind"], item["metadata"]["name"]) == ("ManagedCluster", "cluster2"):
            item["spec"]["taints"] = taints
    path = tmp_path / "hub.json"
    write_list(path, items)
    done = plan("-f", STORY_3, "--from-dump", str(path))
    assert f"  - cluster2 ({expected})" in done.stdout.splitlines()


@pytest.mark.parametrize("stdin", ["manifests", "dump"])
def test_stdin(dump: str, stdin: str) -> None:
    files = ("-", dump) if stdin == "manifests" else (STORY_3, "-")
    text = Path(STORY_3 if stdin == "manifests" else dump).read_text()
    done = plan("-f", files[0], "--from-dump", files[1], "-o", "name", stdin=text)
    assert (done.exit_code, done.stdout) == (1, f"placement/kueue-system/{DEMO2}\n")


def test_yaml_says_what_json_says(dump: str) -> None:
    printed = [plan("-f", STORY_3, "--from-dump", dump, "-o", form).stdout for form in ("json", "yaml")]
    assert without_writes(printed[0]) == without_writes(printed[1])


def without_writes(text: str) -> list[Raw]:
    """Return the Placements of a document without their diffs, which tell when a cluster began to drain."""
    placements = yaml.safe_load(text)["placements"]
    return [{key: value for key, value in one.items() if key != "writes"} for one in placements]


def test_an_object_whose_name_is_generated_is_named(dump: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "train-"}}
    done = plan("-f", "-", "--from-dump", dump, stdin=yaml.safe_dump(pod))
    expected = "ignored: Pod train-…: its name is generated when it is created\n" + NOTE
    assert (done.exit_code, done.stderr) == (0, expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(("-f", "nowhere.yaml"), "nowhere.yaml: No such file or directory", id="no file"),
        pytest.param((), "Missing option '-f' / '--filename'", id="no manifests"),
        pytest.param(("-f", STORY_3, "-o", "wide"), "'wide' is not one of", id="wrong word"),
        pytest.param(("-f", "-", "--from-dump", "-"), "stdin can be read only once", id="stdin twice"),
    ],
)
def test_errors(words: tuple[str, ...], expected: str, dump: str) -> None:
    done = plan(*words, *(("--from-dump", dump) if "--from-dump" not in words else ()))
    assert (done.exit_code, done.stdout) == (2, "")
    assert expected in done.stderr


STEERS = "\x1b[31mred\x1b]0;title\x07\x9b1m"


@pytest.mark.parametrize("form", ["", "--output=json", "--output=yaml"])
def test_control_characters_of_objects_are_not_printed(form: str, tmp_path: Path) -> None:
    printed = {"type": "Odd", "status": "True", "reason": STEERS, "message": STEERS}
    items = json.loads(as_list(story_2().dump))["items"]
    for item in items:
        if item["kind"] in ("Placement", "AdmissionCheck"):
            item.setdefault("status", {}).setdefault("conditions", []).append(printed)
    path = tmp_path / "hub.json"
    write_list(path, items)
    other = {"apiVersion": "v1", "kind": f"Map{STEERS}", "metadata": {"name": "m"}}
    manifests = yaml.safe_dump_all([other, yaml.safe_load(Path(STORY_2).read_text())])
    done = plan("-f", "-", "--from-dump", str(path), *filter(None, [form]), stdin=manifests)
    assert done.exit_code == 0
    assert "red" in done.stdout
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.output) == []
    wrong = plan("-f", "-", "--from-dump", str(path), stdin=yaml.safe_dump({"kind": f"Map{STEERS}"}))
    assert (wrong.exit_code, "\x1b" in wrong.stderr) == (2, False)


def test_a_full_disk_is_an_error(dump: str) -> None:
    words = [sys.executable, "-m", "placement_ac", "plan", "-f", STORY_2, "--from-dump", dump]
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=usual
        )
    assert (done.returncode, done.stderr) == (2, "Error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize(("number", "means"), [("1.0", "1"), ("2e0", "2"), ("3000000000", "3000000000.0")])
def test_only_a_server_refuses_a_number(dump: str, number: str, means: str) -> None:
    """It takes 1.0 for 1, and refuses what is no int32: a plan alone says that it is not validated."""
    text, field = Path(STORY_3).read_text(), "numberOfClusters: "
    texts = [text.replace(f"{field}1", field + written) for written in (number, means)]
    given, usual = (plan("-f", "-", "--from-dump", dump, stdin=one) for one in texts)
    assert given.stdout == usual.stdout
    assert "not validated" in given.stderr


def test_a_manifest_that_is_nested_too_deeply(dump: str) -> None:
    done = plan("-f", "-", "--from-dump", dump, stdin="&a {kind: List, apiVersion: v1, items: [*a]}")
    fix = "remove the levels beyond 200, or the alias by which it contains itself"
    assert (done.exit_code, done.stderr) == (2, f"Error: stdin: {fix}: it is nested too deeply\n")
    levels: Raw = {}
    for _ in range(195):
        levels = {"a": levels}
    document = yaml.safe_load(Path(STORY_3).read_text())
    document["metadata"]["managedFields"] = [{"fieldsV1": levels}]
    document["spec"]["deep"] = levels
    done = plan("-f", "-", "--from-dump", dump, "-o", "json", stdin=json.dumps(document))
    assert (done.exit_code, done.stderr) == (1, "")


def test_a_closed_pipe_is_an_error_and_no_change(dump: str) -> None:
    """`plan | head` must not look like a change; nor does it need a message."""
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "placement_ac", "plan", "-f", STORY_3, "--from-dump", dump]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError("without a number"), RecursionError()])
def test_a_bug_is_an_error_and_no_change(
    dump: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("kubectl_placement.cli.plan.what_if", broken)
    done = plan("-f", STORY_3, "--from-dump", dump)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("Traceback")
    assert type(error).__name__ in done.stderr.splitlines()[-1]


def test_json_documents_one_behind_the_other(dump: str) -> None:
    stream = "\n".join(
        json.dumps(document)
        for path in (STORY_2, STORY_3)
        for document in yaml.safe_load_all(Path(path).read_text())
    )
    both = plan("-f", "-", "--from-dump", dump, "-o", "json", stdin=stream)
    second = plan("-f", STORY_3, "--from-dump", dump, "-o", "json")
    assert without_writes(both.stdout) == without_writes(second.stdout)


def test_a_file_in_utf_16(dump: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(Path(STORY_3).read_text(), "utf-16")
    files = (str(tmp_path / "p.yaml"), STORY_3)
    one, other = (plan("-f", file, "--from-dump", dump, "-o", "json") for file in files)
    assert one.exit_code == other.exit_code == 1
    assert without_writes(one.stdout) == without_writes(other.stdout)


def test_a_kustomization_is_no_manifest(dump: str, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{STORY_3}]")
    done = plan("-f", str(tmp_path), "--from-dump", dump)
    assert done.exit_code == 2
    assert f"use `kubectl kustomize {tmp_path} | …` and -f -" in done.stderr


def test_a_namespace_that_kueue_leaves_alone_is_named_by_plan_and_job(tmp_path: Path) -> None:
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "managedJobsNamespaceSelector": {"matchLabels": {"managed-by-kueue": "true"}},
    }
    theirs: list[Raw] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
            "data": {"controller_manager_config.yaml": yaml.safe_dump(config)},
        },
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
    ]
    hub = json.loads(as_list(story_2(*JOBS).dump))["items"]
    dump = str(write_list(tmp_path / "hub.json", [*hub, *theirs]))
    labels = {"kueue.x-k8s.io/queue-name": "user-queue-demo2"}
    a_job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "another", "namespace": "default", "labels": labels},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }
    why = (
        "label namespace default managed-by-kueue=true: Kueue on this hub does not manage it, as its"
        " managedJobsNamespaceSelector selects others; a job there stays suspended for ever, or"
        " runs on the hub itself, beside all quota"
    )
    planned = plan("-f", str(write_list(tmp_path / "job.json", [a_job])), "--from-dump", dump)
    assert planned.stdout == f"Job default/another: no preview is possible: {why}\n"
    shown = commands.run("job", "another", "-n", "default", "--from-dump", dump)
    assert why in shown.stderr
