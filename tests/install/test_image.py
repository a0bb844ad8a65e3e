"""The image: its Dockerfile, its lock files, and the wheels of the three packages."""

import ast
import functools
import json
import operator
import re
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from placement_ac.cli.main import COMMANDS, PACKAGES
from tests.support.installation import ROOT, controller_of, pod_of, pyproject, rendered
from tests.support.venvs import FOLDERS, build_wheel

Instruction = tuple[str, str]
OURS = {"placement-ac": "0.1.0", "kubectl-placement": "0.1.0"}
HIDDEN = (
    "kubectl_placement",
    "placement_lab",
    "cel_expr_python",
    "rich",
    "trustme",
    "pygments",
    "kubernetes",
)

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
            for extra in ("test", "docs", "dev")
        ),
    ],
)
def test_the_lock_has_the_packages_that_the_project_requires(lock: str, of: tuple[str, ...]) -> None:
    versions = locked(lock) | OURS
    wanted = map(Requirement, functools.reduce(operator.getitem, of, pyproject()))
    assert [
        str(one) for one in wanted if versions.get(canonicalize_name(one.name), "") not in one.specifier
    ] == []
    assert lock == "requirements-dev.lock" or not {"pip", "setuptools", "pytest"} & versions.keys()


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_lock_of_the_demo_has_what_each_package_requires(folder: str) -> None:
    versions = locked("requirements-demo.lock") | OURS
    wanted = [Requirement(dependency) for dependency in pyproject(folder)["project"]["dependencies"]]
    assert [
        str(one) for one in wanted if versions.get(canonicalize_name(one.name)) not in one.specifier
    ] == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-demo.lock"])
def test_the_tests_use_what_is_installed(lock: str) -> None:
    assert locked(lock).items() <= locked("requirements-dev.lock").items()


def test_the_image_holds_nothing_that_only_an_admin_or_a_test_needs() -> None:
    unneeded = {"cel-expr-python", "rich", "trustme", "pygments", "kubernetes"}
    assert unneeded <= locked("requirements-demo.lock").keys()
    assert not unneeded & locked("requirements.lock").keys()


# -- the three packages


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_package_requires_exactly_what_it_imports(folder: str) -> None:
    named = {
        canonicalize_name(Requirement(dependency).name)
        for dependency in pyproject(folder)["project"]["dependencies"]
    }
    imported = {
        top
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in _modules(node)
        if (top := name.partition(".")[0]) not in {*sys.stdlib_module_names, folder}
    }
    of_modules = packages_distributions() | {check.replace("-", "_"): [check] for check in OURS}
    assert named == {canonicalize_name(of_modules[top][0]) for top in imported}


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [name.name for name in node.names] if isinstance(node, ast.Import) else []


def test_the_three_packages_have_one_version() -> None:
    version = pyproject()["project"]["version"]
    assert {pyproject(folder)["project"]["version"] for folder in FOLDERS} == {version}
    ours = [
        Requirement(dependency)
        for folder in FOLDERS
        for dependency in pyproject(folder)["project"]["dependencies"]
    ]
    assert {str(check.specifier) for check in ours if check.name in OURS} == {f"=={version}"}


def test_the_help_names_each_command_and_its_package() -> None:
    groups = [pyproject(folder)["project"] for folder in FOLDERS]
    commands = {
        name: group["name"] for group in groups for name in group["entry-points"]["placement_ac.commands"]
    }
    assert commands == {name: PACKAGES.get(name, "placement-ac") for name in COMMANDS}


# -- the wheels


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each package's wheel, unpacked."""
    found = {}
    for folder in FOLDERS:
        target = tmp_path_factory.mktemp(folder)
        found[folder] = target / "app"
        with zipfile.ZipFile(build_wheel(folder, target)) as archive:
            archive.extractall(found[folder])
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_wheel_is_complete(folder: str, installed: dict[str, Path]) -> None:
    wanted = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if _is_source(path)}
    wanted -= {Path(folder, "pyproject.toml")}
    if folder == "placement_lab":
        samples = {path.relative_to(ROOT) for path in (ROOT / "samples").rglob("*") if _is_source(path)}
        wanted |= {folder / path for path in samples}
    held = {path.relative_to(installed[folder]) for path in installed[folder].rglob("*") if path.is_file()}
    assert {path for path in held if ".dist-info" not in path.parts[0]} == wanted


def test_placement_ac_runs_alone_and_names_the_packages_of_the_others(
    installed: dict[str, Path], project: dict[str, Any], tmp_path: Path
) -> None:
    """Without the modules of others: they are hidden, as they are installed for the tests."""
    version = _run(installed["placement_ac"], tmp_path, "--version")
    assert (version.returncode, version.stderr) == (0, "")
    assert project["project"]["version"] in version.stdout
    assert _run(installed["placement_ac"], tmp_path, "run", "--print-settings").returncode == 0
    shown = _run(installed["placement_ac"], tmp_path, "--help").stdout
    assert re.findall(r"^  ([a-z]+) ", shown, re.MULTILINE) == [
        "run", "check", "adopt", "cleanup", "version", "completion",
    ]  # fmt: skip
    refused = _run(installed["placement_ac"], tmp_path, *PACKAGES, each=True)
    assert refused.returncode == 0, refused.stderr
    for name, package in PACKAGES.items():
        where = f"install {package} (docs/install.md, The commands): it has the command {name}"
        assert where in refused.stderr


def _run(app: Path, where: Path, *words: str, each: bool = False) -> subprocess.CompletedProcess[str]:
    """Run placement-ac with these words, or, in one process, with each of them alone: none may succeed."""
    code = f"""
import sys
sys.path.insert(0, {str(app)!r})
for name in {HIDDEN}:
    sys.modules[name] = None
import importlib.metadata as metadata
every = metadata.entry_points
metadata.entry_points = lambda **of: [one for one in every(**of) if one.value.startswith("placement_ac.")]
import placement_ac.__main__ as it
assert it.__file__.startswith({str(app)!r}), it.__file__
if not {each}:
    it.main()
program, *words = sys.argv
for word in words:
    sys.argv = [program, word]
    try:
        it.main()
    except SystemExit as refused:
        assert refused.code == 2, word
    else:
        raise AssertionError(word)
"""
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=where,
        check=False,
        capture_output=True,
        text=True,
        timeout=50,
    )


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
