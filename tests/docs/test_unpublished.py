"""Nothing is published yet: no command names a package or an image that a stranger could register."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.documents import CHANGELOG, CONTRIBUTING, DOCUMENTS, lines_of
from tests.support.installation import ROOT

RESERVED = ("localhost", "registry.example", "registry.example.com")
"""Hosts that belong to nobody (RFC 2606)."""
IMAGE = re.compile(
    r"(?<![\w.-])(?<![\w.]/)((?:[\w-]+\.)+[a-z]{2,}(?::\d+)?|localhost(?::\d+)?)/([\w./-]*)placement-ac\b"
)
"""An image or a chart of ours, with the host in front."""
NOT_AN_IMAGE = ("github.com", "raw.githubusercontent.com")
PACKAGE = re.compile(
    r"\b(?:pip3? install|pipx (?:install|run)|uv (?:pip install|tool (?:install|run)|add)|uvx|poetry add|"
    r"conda install|brew install|krew install)\b([^\n`|&]*)"
)
"""A command that installs a package, and its arguments."""
INSTALLS = re.compile(
    r"pip install|docker (?:push|pull|run)|make image|setup-env\.sh|apply -k|helm (?:install|upgrade)"
)
SAYS_SO = re.compile(r"(?:[Nn]o (?:image|package)|Nothing|none)\s+is\s+published|尚未发布")


def tracked() -> list[Path]:
    """The text files of the repository, without the tests."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    if not paths:
        pytest.skip("this is no checkout: git lists no files")
    return [
        path
        for path in paths
        if path.is_file() and path.suffix not in (".png", ".lock") and path.parts[len(ROOT.parts)] != "tests"
    ]


def strangers(text: str) -> list[str]:
    """Return the images and the packages in a text that somebody else could register."""
    images = [found[0] for found in IMAGE.finditer(text) if found[1] not in (*RESERVED, *NOT_AN_IMAGE)]
    packages = [
        found[0]
        for found in PACKAGE.finditer(text)
        if any(re.match(r"['\"]?placement[-_]ac\b(?!/)", word) for word in found[1].split())
    ]
    return images + packages


def test_names_in_registries_that_a_stranger_could_register_are_found() -> None:
    wanted = {
        "docker push quay.io/somebody/placement-ac": ["quay.io/somebody/placement-ac"],
        "helm install x oci://ghcr.io/a/charts/placement-ac": ["ghcr.io/a/charts/placement-ac"],
        "docker push registry.example/placement-ac:v1": [],
        "pip install --upgrade 'placement_ac[demo]'": ["pip install --upgrade 'placement_ac[demo]'"],
        "pipx run placement-ac demo": ["pipx run placement-ac demo"],
        "pip install '.[demo]' ./placement-ac && placement-ac demo": [],
    }
    assert {text: strangers(text) for text in wanted} == wanted


def test_no_file_names_what_a_stranger_could_register() -> None:
    assert {
        str(path.relative_to(ROOT)): found
        for path in tracked()
        if (found := strangers(path.read_text("utf-8")))
    } == {}


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if path not in (CHANGELOG, CONTRIBUTING)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_page_says_that_nothing_is_published_before_a_command_that_installs(path: Path) -> None:
    text = path.read_text("utf-8")
    command = next((line for line in lines_of(text, code=True) if INSTALLS.search(line)), None)
    if command is not None:
        match = SAYS_SO.search(text)
        assert match is not None
        assert match.start() < text.index(command)
