"""Packages with plugins of the dispatcher, as if they were installed."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from placement_ac.config.dispatch_plugins import GROUP, installed_plugins
from placement_lab.standins.manifests import samples

SAMPLE = samples() / "dispatch" / "plugin"


class Installer:
    """Adds packages to the path; their modules are in `folder`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.syspath_prepend(folder)

    def install(self, plugins: Mapping[str, str], package: str = "acme_dispatch") -> None:
        """Install a package with these entry points (name → module:function)."""
        metadata = self.folder / f"{package}-1.0.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0.0\n")
        lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in plugins.items())]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
        installed_plugins.cache_clear()

    def install_sample(self) -> None:
        """Install the package of samples/dispatch/plugin."""
        project = tomllib.loads((SAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
        for module in SAMPLE.glob("*.py"):
            (self.folder / module.name).write_bytes(module.read_bytes())
        self.install(project["entry-points"][GROUP])


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installer]:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    yield Installer(folder, monkeypatch)
    installed_plugins.cache_clear()
