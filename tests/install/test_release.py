"""The workflows, what a release publishes, the SBOM, and the version policy."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from placement_ac.cli.main import COMMANDS
from tests.install.test_config import KUBERNETES
from tests.install.test_image import locked
from tests.support.documents import CONTRIBUTING, ROOT, table
from tests.support.installation import pyproject

VERSIONS = ROOT / "docs" / "versions.md"
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
workflows = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)

Workflow = dict[str, Any]
PINNED = re.compile(r" +(?:- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
"""An action, by the hash of its commit, with its version in a comment."""
TARGET = re.compile(r"\bmake ([a-z-]+)")
TESTS: Final = re.compile(r"make (test|test-long|coverage)$")


def workflow(path: Path) -> Workflow:
    """Return a workflow; its triggers have the key `on` (YAML 1.1 reads it as True)."""
    found: Workflow = yaml.safe_load(path.read_text("utf-8"))
    return {"on": found.pop(True)} | found


def jobs(path: Path) -> dict[str, Workflow]:
    found: dict[str, Workflow] = workflow(path)["jobs"]
    return found


def steps(path: Path) -> Iterator[Workflow]:
    for job in jobs(path).values():
        yield from job["steps"]


def scripts(path: Path) -> Iterator[str]:
    yield from (step["run"] for step in steps(path) if "run" in step)


# -- every workflow


def test_there_are_four_workflows() -> None:
    assert [row[0] for row in table(CONTRIBUTING, "Workflows and releases")] == [
        "ci.yml",
        "e2e.yml",
        "docs.yml",
        "release.yml",
    ]
    assert {path.name for path in WORKFLOWS} == {"ci.yml", "e2e.yml", "docs.yml", "release.yml"}


@workflows
def test_every_action_is_pinned_by_its_commit(path: Path) -> None:
    lines = [line for line in path.read_text("utf-8").splitlines() if re.match(r" +(- )?uses:", line)]
    assert [line for line in lines if not PINNED.fullmatch(line)] == []
    assert len(lines) == len([step for step in steps(path) if "uses" in step])


@workflows
def test_no_job_has_more_rights_or_time_than_it_needs(path: Path) -> None:
    """`zizmor` judges the rights; here: none by default, and nothing forgotten."""
    found = workflow(path)
    assert found["permissions"] == {}
    assert "concurrency" in found
    assert [
        name
        for name, job in found["jobs"].items()
        if not job.get("permissions") or "timeout-minutes" not in job
    ] == []
    checkouts = [step for step in steps(path) if str(step.get("uses")).startswith("actions/checkout@")]
    assert [step for step in checkouts if step["with"] != {"persist-credentials": False}] == []


@workflows
def test_every_make_target_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {target for script in scripts(path) for target in TARGET.findall(script)} <= targets


@workflows
def test_shellcheck_has_nothing_to_say_of_the_scripts(path: Path) -> None:
    """GitHub runs them with `bash -eo pipefail`, as each workflow asks for bash."""
    assert workflow(path)["defaults"] == {"run": {"shell": "bash"}}
    for script in scripts(path):
        assert "${{" not in script, "pass it as an environment variable: bash would run what it contains"
        done = subprocess.run(
            [Path(sys.executable).with_name("shellcheck"), "--shell", "bash", "-"],
            input=f"set -eo pipefail\n{script}",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "")


@workflows
def test_no_owner_is_named(path: Path) -> None:
    """The registry and the names are those of the repository in which the workflow runs."""
    registries = re.findall(r"(?:ghcr|quay|docker)\.io/\S+", path.read_text("utf-8"))
    assert [name for name in registries if not name.startswith("ghcr.io/${GITHUB_REPOSITORY,,}")] == []


# -- CI


def test_ci_runs_what_a_developer_runs() -> None:
    ran = {target for script in scripts(GITHUB / "workflows" / "ci.yml") for target in TARGET.findall(script)}
    assert ran == {"check", "test", "test-long", "test-clients", "coverage", "docs", "image"}
    assert {'./setup-env.sh ${OPTIONS:+"$OPTIONS"}', "make test-kind"} <= set(
        scripts(GITHUB / "workflows" / "e2e.yml")
    )


def test_ci_tests_each_python_that_the_package_supports() -> None:
    matrix = jobs(GITHUB / "workflows" / "ci.yml")["test"]["strategy"]["matrix"]["python"]
    classifiers = pyproject()["project"]["classifiers"]
    assert matrix == [
        classifier.rsplit(" :: ", 1)[1] for classifier in classifiers if re.search(r":: 3\.\d+$", classifier)
    ]
    assert pyproject()["project"]["requires-python"] == f">={matrix[0]}"
    assert supported("Python") == matrix


def test_no_test_is_skipped_for_a_missing_program() -> None:
    """Runners set CI, with which a test fails that lacks a program; each job looks for kubectl first."""
    for path in WORKFLOWS:
        for job in jobs(path).values():
            ran = [step.get("run", "") for step in job["steps"]]
            tests = [n for n, script in enumerate(ran) if TESTS.search(script)]
            assert [ran[n] for n in tests if "CI=" in ran[n]] == []
            if tests:
                assert "kubectl version --client && google-chrome --version" in ran[: tests[0]]


# -- the release

RELEASE = GITHUB / "workflows" / "release.yml"


@pytest.fixture(scope="module")
def release() -> dict[str, Workflow]:
    return jobs(RELEASE)


@pytest.mark.parametrize(
    ("tag", "heading", "error"),
    [
        pytest.param("v1.2.0", "## [1.2.0] - 2026-12-01", "", id="released"),
        pytest.param("v1.3.0", "## [1.3.0] - 2026-12-01", "push the tag v1.2.0", id="another version"),
        pytest.param("v1.2.0", "## [1.2.0] - unreleased", "give CHANGELOG.md the heading", id="no date"),
    ],
)
def test_a_tag_releases_its_version(
    release: dict[str, Workflow], tmp_path: Path, tag: str, heading: str, error: str
) -> None:
    assert workflow(RELEASE)["on"] == {"push": {"tags": ["v*"]}}
    (check,) = (step["run"] for step in release["files"]["steps"] if step.get("id") == "version")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"{heading}\n")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "GITHUB_REF_NAME": tag,
        "GITHUB_OUTPUT": "outputs",
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", check],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == bool(error)
    assert (
        f"::error::{error}" in done.stdout
        if error
        else (tmp_path / "outputs").read_text() == "version=1.2.0\n"
    )


def test_the_files_images_and_chart_of_a_release(release: dict[str, Workflow]) -> None:
    text = RELEASE.read_text("utf-8")
    (build,) = (
        step["with"]
        for step in release["image"]["steps"]
        if "docker/build-push-action@" in step.get("uses", "")
    )
    assert build["platforms"] == "linux/amd64,linux/arm64"
    assert (build["push"], build["provenance"]) == (True, "mode=max")
    assert 'hatchling" build --directory dist' in text
    assert "for package in kubectl_placement placement_lab; do" in text
    assert "make sbom SBOM=" in text
    assert "cyclonedx-json=dist/" in text
    assert "helm package charts/placement-ac --version" in text
    assert "yq --inplace '.image.repository = strenv(IMAGE)' charts/placement-ac/values.yaml" in text
    values = yaml.safe_load((ROOT / "charts" / "placement-ac" / "values.yaml").read_text("utf-8"))
    assert values["image"]["repository"] == "", "the workflow sets it"
    assert 'helm push "dist/placement-ac-$VERSION.tgz" "oci://$CHARTS"' in text
    assert "sha256sum -- *" in text
    assert "gh release create" in text
    uploaded = {step["with"]["name"] for step in steps(RELEASE) if "upload-artifact@" in step.get("uses", "")}
    assert uploaded == {"release-files", "release-image-sbom", "release-chart"}
    assert set(release["release"]["needs"]) == {"files", "image", "image-sbom", "chart"}
    assert release["files"]["needs"] == "test"


UNPINNED: Final = ("docker/setup-qemu-action", "docker/setup-buildx-action", "docker/setup-docker-action")
"""Actions that pull an image or a program by its tag, unless an option names another one."""
IMAGE_OPTIONS: Final = {"image", "driver-opts"}


def test_no_image_runs_in_a_workflow_that_is_not_pinned_by_its_digest() -> None:
    """BuildKit's `sbom` also pulls an image, of a scanner; the job image-sbom does the same without."""
    for step in (step for path in WORKFLOWS for step in steps(path)):
        given = step.get("with", {})
        if step.get("uses", "").startswith(UNPINNED):
            assert any("@sha256:" in str(given.get(option)) for option in IMAGE_OPTIONS), step
        assert "sbom" not in given or "@sha256:" in str(given["sbom"]), step


def test_the_artifacts_that_a_release_signs(release: dict[str, Workflow]) -> None:
    signed = [
        (
            job,
            *sorted(
                step["with"].keys() & {"subject-digest", "subject-checksums", "subject-path", "sbom-path"}
            ),
        )
        for job, content in release.items()
        for step in content["steps"]
        if "actions/attest@" in step.get("uses", "")
    ]
    assert signed == [
        ("image", "subject-digest"),
        ("chart", "subject-digest"),
        ("release", "subject-checksums"),
        ("release", "sbom-path", "subject-path"),
        ("release", "sbom-path", "subject-digest"),
        ("release", "sbom-path", "subject-digest"),
    ]
    assert {job for job, content in release.items() if "id-token" in content["permissions"]} == {
        job for job, *_ in signed
    }


def test_the_notes_are_the_versions_part_of_the_changelog(
    release: dict[str, Workflow], tmp_path: Path
) -> None:
    (script,) = (step["run"] for step in release["release"]["steps"] if "gh release" in step.get("run", ""))
    awk = next(line for line in script.splitlines() if line.startswith("awk"))
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n- c\n\n## [1.0.0] - now\n\n- b\n\n## [0.1.0] - then\n\n- a\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "VERSION": "1.0.0"}
    subprocess.run(["bash", "-c", awk], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "notes.md").read_text() == "## [1.0.0] - now\n\n- b\n\n"


@pytest.mark.long
def test_the_tool_of_the_sbom_slows_no_start() -> None:
    """It needs rfc3987-syntax, which `kubernetes` imports where it is installed: that takes a second."""
    assert "rfc3987-syntax" in locked("requirements-sbom.lock")
    assert "rfc3987-syntax" not in locked("requirements-dev.lock")


@pytest.mark.long
@pytest.mark.timeout(200)
def test_the_sbom_has_what_the_lock_has(tmp_path: Path) -> None:
    """`make sbom`: the packages and versions of requirements.lock, byte for byte the same each time."""
    documents = []
    for name in ("a.json", "b.json"):
        command = ["make", "sbom", f"SBOM={tmp_path / name}"]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
        documents.append((tmp_path / name).read_bytes())
    assert documents[0] == documents[1]
    sbom = json.loads(documents[0])
    about, project = sbom["metadata"]["component"], pyproject()["project"]
    assert (sbom["bomFormat"], about["name"], about["version"]) == (
        "CycloneDX",
        project["name"],
        project["version"],
    )
    assert {component["name"]: component["version"] for component in sbom["components"]} == locked(
        "requirements.lock"
    )


# -- the version policy, the forms


def supported(software: str) -> list[str]:
    (row,) = (row for row in table(VERSIONS, "Supported versions") if row[0] == software)
    return row[1].split(", ")


def test_the_supported_versions_are_the_tested_ones() -> None:
    assert supported("Kubernetes, for the manifests") == list(KUBERNETES)
    limits = dict(row[:2] for row in table(ROOT / "docs" / "limits.md", "Versions"))
    assert supported("Kueue's API") == limits["Kueue's API"].partition(";")[0].split(", ")
    default = re.search(r"^KUEUE_VERSION=v(.+)$", (ROOT / "setup-env.sh").read_text("utf-8"), re.MULTILINE)
    assert default
    assert f"the kind environment installs {default[1]}," in VERSIONS.read_text("utf-8")


def test_the_forms_ask_for_commands_that_exist() -> None:
    bug = (GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text("utf-8")
    named = set(re.findall(r"placement-ac (?!-)([a-z]+)", bug))
    assert {"doctor", "status"} <= named <= set(COMMANDS)
    form = yaml.safe_load(bug)["body"]
    required = {one["id"] for one in form if one.get("validations", {}).get("required")}
    assert required >= {"doctor", "status", "version"}
    contact = (GITHUB / "ISSUE_TEMPLATE" / "config.yml").read_text("utf-8")
    assert "SECURITY.md" in contact
