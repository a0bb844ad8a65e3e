"""The image: its Dockerfile, its lock files, and the content of its wheel."""

import functools
import json
import operator
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.installation import ROOT, controller_of, pod_of, pyproject, rendered

Instruction = tuple[str, str]

PINNED = re.compile(r"(\S+):(\S+)@sha256:[0-9a-f]{64}(?: AS \w+)?")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return pyproject()


@pytest.fixture(scope="module")
def stages() -> list[list[Instruction]]:
    """The instructions of each stage, starting with FROM."""
    parser = DockerfileParser(str(ROOT / "Dockerfile"))
    found: list[list[Instruction]] = []
    for one in parser.structure:
        if one["instruction"] == "FROM":
            found.append([])
        if one["instruction"] != "COMMENT":
            found[-1].append((one["instruction"], one["value"]))
    return found


def values(stage: list[Instruction], name: str) -> list[str]:
    return [value for instruction, value in stage if instruction == name]


# -- the Dockerfile


def test_every_base_is_pinned_and_has_the_same_debian_and_python(stages: list[list[Instruction]]) -> None:
    bases = [PINNED.fullmatch(values(stage, "FROM")[0]) for stage in stages]
    assert [base and base.group(1, 2) for base in bases] == [
        ("python", "3.13-slim-trixie"),
        ("gcr.io/distroless/python3-debian13", "nonroot"),
    ]


def test_the_last_stage_contains_only_the_installed_files(stages: list[list[Instruction]]) -> None:
    last = stages[-1]
    assert values(last, "COPY") == ["--from=build /app /app"]
    assert {name for name, _ in last} == {
        "FROM", "LABEL", "COPY", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD",
    }, "no RUN: there is no shell; no HEALTHCHECK: there are probes"  # fmt: skip
    assert json.loads(*values(last, "ENTRYPOINT")) == ["placement-ac"]
    assert json.loads(*values(last, "CMD")) == ["run"]


def test_it_runs_as_the_deployment_says(stages: list[list[Instruction]]) -> None:
    pod, last = pod_of(rendered("default")), stages[-1]
    asked = pod["securityContext"]
    assert values(last, "USER") == [f"{asked['runAsUser']}:{asked['runAsGroup']}"]
    ports = [str(port["containerPort"]) for port in controller_of(rendered("default"))["ports"]]
    assert values(last, "EXPOSE")[0].split() == ports
    assert "command" not in controller_of(rendered("default")), "the image's entry counts"


def test_every_installed_package_has_a_hash(stages: list[list[Instruction]]) -> None:
    installs = [part for run in values(stages[0], "RUN") for part in run.split("&&") if "pip install" in part]
    locked = [part for part in installs if "--require-hashes" in part and "--only-binary :all:" in part]
    (own,) = (part for part in installs if part not in locked)
    assert len(locked) == 2
    assert {"--no-deps", "--no-build-isolation", "."} <= set(own.split())


def test_labels(stages: list[list[Instruction]], project: dict[str, Any]) -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', *values(stages[-1], "LABEL")))
    about = project["project"]
    assert labels == {
        "title": about["name"],
        "description": about["description"],
        "version": about["version"],
        "licenses": about["license"],
    }


def test_copied_files_are_not_ignored(stages: list[list[Instruction]]) -> None:
    copied = {name for value in values(stages[0], "COPY") for name in value.split()[:-1]}
    lines = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


# -- the locks

LOCKED = re.compile(
    r"^([\w.-]+)==(\S+)(?: ; .+?)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)


def locked(name: str) -> dict[str, str]:
    """The packages of a lock file and their versions, each with its hashes."""
    text = (ROOT / name).read_text("utf-8")
    found = [(canonicalize_name(one[1]), one[2]) for one in LOCKED.finditer(text)]
    assert len(found) == len(re.findall(r"^[\w.-]+==", text, re.MULTILINE)), "one has no hash"
    return dict(found)


@pytest.mark.parametrize(
    ("lock", "of"),
    [
        pytest.param("requirements.lock", ("project", "dependencies"), id="runtime"),
        pytest.param("requirements-build.lock", ("build-system", "requires"), id="build"),
        *(
            pytest.param("requirements-dev.lock", ("project", "optional-dependencies", extra), id=extra)
            for extra in ("demo", "test", "docs", "dev")
        ),
    ],
)
def test_the_lock_has_the_packages_that_the_project_requires(lock: str, of: tuple[str, ...]) -> None:
    versions = locked(lock) | {"placement-ac": "0"}
    wanted = map(Requirement, functools.reduce(operator.getitem, of, pyproject()))
    assert [
        str(one) for one in wanted if versions.get(canonicalize_name(one.name), "") not in one.specifier
    ] == []
    assert lock == "requirements-dev.lock" or not {"pip", "setuptools", "pytest"} & versions.keys()


def test_the_tests_use_what_the_image_holds() -> None:
    assert locked("requirements.lock").items() <= locked("requirements-dev.lock").items()


# -- the wheel


def test_the_wheel_is_complete_and_runs(tmp_path: Path, project: dict[str, Any]) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=50)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        archive.extractall(tmp_path / "app")
    package = [path for path in (ROOT / "placement_ac").rglob("*") if _is_source(path)]
    samples = [path for path in (ROOT / "samples").rglob("*") if _is_source(path)]
    assert {str(path.relative_to(ROOT)) for path in package} <= held
    assert {f"placement_ac/{path.relative_to(ROOT)}" for path in samples} <= held
    (scripts,) = (tmp_path / "app").glob("*.dist-info/entry_points.txt")
    assert "placement-ac = placement_ac.__main__:main" in scripts.read_text("utf-8")
    run = [
        sys.executable,
        "-c",
        "import placement_ac.__main__ as it; print(it.__file__); it.main()",
        "--version",
    ]
    output = subprocess.run(
        run,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "app")},
        check=True,
        capture_output=True,
        text=True,
        timeout=50,
    ).stdout
    assert output.startswith(str(tmp_path / "app"))
    assert project["project"]["version"] in output


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
