"""Packages with plugins of the dispatcher, as if they were installed."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from placement_ac.config.dispatch_plugins import GROUP, installed_plugins
from placement_ac.lab.standins.manifests import samples

SAMPLE = samples() / "dispatch" / "plugin"


def install(plugins: Mapping[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a package with these entry points (name → module:function), whose modules are in `folder`."""
    metadata = folder / "acme_dispatch-1.0.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-dispatch\nVersion: 1.0.0\n")
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in plugins.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(folder)
    installed_plugins.cache_clear()


def install_sample(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the package of samples/dispatch/plugin."""
    project = tomllib.loads((SAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    for module in SAMPLE.glob("*.py"):
        (folder / module.name).write_bytes(module.read_bytes())
    install(project["entry-points"][GROUP], folder, monkeypatch)
