"""Commands of placement-ac in this process: on a hub, as a user with few rights, with a dump of a hub."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from placement_ac.cli.main import main
from placement_lab.hub import Hub
from tests.support.accounts import kubeconfig_of
from tests.support.hub_client import Client
from tests.support.rights import ACCOUNTS, Object, allow, rule, token_of

Run = Callable[..., Result]
"""Runs a command: its words, and options of click's runner."""

READ_GROUPS = ("kueue.x-k8s.io", "cluster.open-cluster-management.io", "multicluster.x-k8s.io")
"""The API groups that the commands read, beside Kubernetes' own."""


def run(*words: str, charset: str = "utf-8", **options: Any) -> Result:
    """Run `placement-ac` with these words, on a terminal with this charset."""
    return CliRunner(charset).invoke(main, words, **options)


def run_with(*given: str, **options: Any) -> Run:
    """Return a function that runs commands with these words behind their own."""
    return lambda *words, **more: run(*words, *given, **options | more)


def on_hub(kubeconfig: Path) -> Run:
    """Return a function that runs commands on the hub of a kubeconfig."""
    return run_with("--kubeconfig", str(kubeconfig))


def listing(*groups: str, verbs: str = "get list") -> list[Object]:
    """Return rules that allow to read all kinds of these API groups."""
    return [rule(verbs, group, "*") for group in groups]


def reader(hub: Hub, folder: Path, *rules: Object) -> Path:
    """Create a ServiceAccount with no other rights; return the path of its kubeconfig."""
    owner = Client(hub)
    owner.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    if rules:
        allow(owner, *rules)
    return kubeconfig_of(hub, folder / "reader", token_of(owner))


def default_settings(folder: Path) -> tuple[str, str]:
    """Return the option that names the controller's settings, for a user who cannot read them."""
    (folder / "defaults").touch()
    return "--settings", str(folder / "defaults")


def write_list(path: Path, objects: Iterable[Any]) -> Path:
    """Write objects as `kubectl get -o json` prints them; return the path."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]}))
    return path
